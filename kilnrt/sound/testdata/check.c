/* check.c executes the commands in its arguments on a sound, and prints what it reads. */
#define KILN_SOUND_IMPLEMENTATION
#include "kiln_sound.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    FILE *f = fopen(argv[1], "rb");
    uint8_t *data;
    long size;
    kiln_sound s;
    kiln_player p;
    kiln_loop l;
    kiln_marker m;
    void *room;
    uint32_t i;
    int a;
    if (f == NULL) return 1;
    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);
    data = (uint8_t *)malloc((size_t)size);
    if (fread(data, 1, (size_t)size, f) != (size_t)size) return 1;
    fclose(f);
    if (kiln_sound_open(&s, data, (size_t)size) != KILN_SOUND_OK) {
        puts("error");
        free(data);
        return 0;
    }
    printf("%u %u %lld %u %u %d\n", s.rate, s.channels, (long long)s.frames, s.loops, s.markers, (int)floor(s.gain * 100 + 0.5));
    for (i = 0; kiln_sound_loop(&s, i, &l); i++) printf("loop %lld %lld %u %u\n", (long long)l.begin, (long long)l.end, l.kind, l.count);
    for (i = 0; kiln_sound_marker(&s, i, &m); i++) printf("marker %lld %lld %.*s\n", (long long)m.frame, (long long)m.length, (int)m.name_size, m.name);
    room = calloc(1, kiln_sound_room(&s));
    kiln_player_init(&p, &s, room);
    for (a = 2; a + 1 < argc; a += 2) {
        long long n = atoll(argv[a + 1]);
        if (argv[a][0] == 's') kiln_player_seek(&p, n);
        if (argv[a][0] == 'l') kiln_player_loop(&p, n == 1);
        if (argv[a][0] == 'r') {
            int16_t *buf = (int16_t *)malloc((size_t)n * s.channels * 2);
            int64_t got = kiln_player_read(&p, buf, n), k;
            uint32_t hash = 2166136261u;
            for (k = 0; k < got * s.channels; k++) {
                hash = (hash ^ (buf[k] & 255)) * 16777619u;
                hash = (hash ^ (buf[k] >> 8 & 255)) * 16777619u;
            }
            printf("read %lld at %lld: %08x\n", (long long)got, (long long)p.at, hash);
            free(buf);
        }
    }
    free(room);
    free(data);
    return 0;
}
