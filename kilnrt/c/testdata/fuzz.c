/* All functions of kiln.h, called by clang's fuzzer. */
#define main check_main
#include "check.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* The checksum of the header is corrected, because almost no input would pass it. */
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1);
    size_t slot = 0;
    if (!copy) return 0;
    memcpy(copy, data, size);
    for (; slot <= KILNI_PITCH && slot + KILNI_SLOT <= size; slot += KILNI_PITCH) {
        uint32_t crc = kilni_crc(copy + slot, KILNI_SLOT - 4);
        size_t i;
        for (i = 0; i < 4; i++) copy[slot + KILNI_SLOT - 4 + i] = (uint8_t)(crc >> 8 * i);
    }
    all(copy, size);
    free(copy);
    return 0;
}

#include "alone.h"
