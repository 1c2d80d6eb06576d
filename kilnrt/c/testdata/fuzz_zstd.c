/*
 * The Zstandard decompressor of kiln.h, called by clang's fuzzer: two bytes of size, one for the kind of dictionary,
 * and frames.
 */
#define main check_main
#include "check.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kiln_resource r;
    uint8_t *from, *to;
    size_t room, dictionary, made;
    if (size < 3) return 0;
    room = kilni_u16(data), dictionary = data[2] * (size_t)8;
    data += 3, size -= 3;
    if (dictionary > size) dictionary = size;
    from = (uint8_t *)malloc(size - dictionary + 1);
    to = (uint8_t *)malloc(room + 1);
    if (!from || !to) return 0;
    memcpy(from + 1, data + dictionary, size - dictionary); /* so that a sanitizer reports reads beyond the end */
    memset(&r, 0, sizeof r);
    r.codec = 1, r.payload = from + 1, r.stored = size - dictionary;
    made = kilni_unzstd(NULL, to + 1, room, from + 1, size - dictionary, data, dictionary);
    if (made <= room && made > kiln_most(&r)) die("frames", "they become more than is possible");
    free(from);
    free(to);
    return 0;
}

#include "alone.h"
