/*
 * A simple fuzzer, for systems without clang's: alone RUNS SIZE FILE... damages each file randomly RUNS times, and
 * calls the target with inputs of at most SIZE bytes.
 */
#undef main
#ifdef ALONE
static uint32_t alone_state = 2463534242u;

/* alone_chance returns a random number below n, the same in each run: 32-bit xorshift (Marsaglia 2003). */
static uint32_t alone_chance(size_t n) {
    alone_state ^= alone_state << 13;
    alone_state ^= alone_state >> 17;
    alone_state ^= alone_state << 5;
    return (uint32_t)(alone_state % n);
}

static void alone_once(const uint8_t *data, size_t size, int damage) {
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1);
    if (!copy) exit(2);
    memcpy(copy, data, size);
    for (; size && damage > 0; damage--) {
        uint8_t *place = copy + alone_chance(alone_chance(2) && size > 64 ? 64 : size);
        switch (alone_chance(6)) {
        case 0: *place ^= (uint8_t)(1u << alone_chance(8)); break;
        case 1: *place = 0; break;
        case 2: *place = 0xFF; break;
        case 3: *place = (uint8_t)alone_chance(256); break;
        case 4: (*place)++; break;
        case 5: if (!alone_chance(8)) size = (size_t)(place - copy); break;
        }
    }
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int n, char **args) {
    int file, run;
    for (file = 3; file < n; file++) {
        static uint8_t data[1 << 18];
        size_t size = 0, most = (size_t)atol(args[2]);
        FILE *f = fopen(args[file], "rb");
        if (!f) return 2;
        size = fread(data, 1, most < sizeof data ? most : sizeof data, f);
        fclose(f);
        for (run = 0; run <= atoi(args[1]); run++) alone_once(data, size, run ? 1 + (int)alone_chance(4) : 0);
    }
    return 0;
}
#endif
