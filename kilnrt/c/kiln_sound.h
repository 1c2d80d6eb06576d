/*
 * kiln_sound.h decodes the sounds that Kiln makes: QOA, and WAV of 16 bits, floats or IMA ADPCM, with their loops,
 * markers and gain. It is C99 or C++. It needs only memcpy and memcmp, and allocates no memory. docs/sounds.md
 * describes its use, docs/formats/sound.md the files.
 *
 * Include it where you need it, and in one file
 *
 *     #define KILN_SOUND_IMPLEMENTATION
 *     #include "kiln_sound.h"
 *
 *     kiln_sound s;                              // one for each file; its bytes must not move
 *     if (kiln_sound_open(&s, data, size)) ...   // 0 is success
 *     kiln_player p;                             // one for each voice; seeking is exact to the frame
 *     kiln_player_init(&p, &s, malloc(kiln_sound_room(&s)));
 *     kiln_player_loop(&p, 1);
 *     n = kiln_player_read(&p, samples, frames); // 16 bits, interleaved; multiply by pow(10, s.gain / 20)
 *
 * Broken or hostile bytes give at worst an error or noise. Threads may share a sound, but not a player.
 */
#ifndef KILN_SOUND_H
#define KILN_SOUND_H

#include <stddef.h>
#include <stdint.h>

#ifndef KILN_SOUND_API
#define KILN_SOUND_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { KILN_SOUND_OK = 0, KILN_SOUND_FORMAT, KILN_SOUND_DAMAGED };
enum { KILN_LOOP_FORWARD, KILN_LOOP_PING_PONG, KILN_LOOP_BACKWARD };
enum { KILN_SOUND_QOA, KILN_SOUND_PCM, KILN_SOUND_FLOAT, KILN_SOUND_ADPCM };
enum { KILN_SOUND_STREAM = 1, KILN_SOUND_MOMENTARY = 2, KILN_SOUND_SILENT = 4 };

/* A range of frames from begin to before end, played count times; 0 is forever. */
typedef struct kiln_loop {
    int64_t begin, end;
    uint32_t kind, count;
} kiln_loop;

typedef struct kiln_marker {
    int64_t frame, length;
    const char *name; /* UTF-8, without a zero byte at its end */
    size_t name_size;
} kiln_marker;

typedef struct kiln_sound {
    uint32_t rate, channels;
    int64_t frames;
    float gain, loudness, true_peak; /* gain to apply in dB; LUFS and dBTP before the gain */
    uint32_t flags;
    uint32_t loops, markers; /* number of loops and markers */
    /* The following fields are private. */
    int coding;
    const uint8_t *data, *notes, *marks;
    size_t size, notes_size, marks_size;
    int64_t block;     /* frames that are decoded together */
    size_t block_size; /* bytes of a block */
} kiln_sound;

typedef struct kiln_player {
    const kiln_sound *sound;
    int64_t at;    /* next frame */
    int looping, back;
    kiln_loop loop;
    int64_t left;  /* remaining repetitions of the loop; below 0 forever */
    int64_t first; /* first frame of the block in memory; -1 if there is none */
    int16_t *room;
} kiln_player;

KILN_SOUND_API int kiln_sound_open(kiln_sound *s, const void *data, size_t size);
/* kiln_sound_room returns the number of bytes that a player needs. */
KILN_SOUND_API size_t kiln_sound_room(const kiln_sound *s);
/* These return 0 if there is no loop or marker with that number. */
KILN_SOUND_API int kiln_sound_loop(const kiln_sound *s, uint32_t no, kiln_loop *out);
KILN_SOUND_API int kiln_sound_marker(const kiln_sound *s, uint32_t no, kiln_marker *out);

KILN_SOUND_API void kiln_player_init(kiln_player *p, const kiln_sound *s, void *room);
/* kiln_player_loop turns the sound's first loop on or off. When it is off, the sound plays to its end. */
KILN_SOUND_API void kiln_player_loop(kiln_player *p, int on);
/* kiln_player_loop_over sets another loop. A loop outside of the sound's frames turns looping off. */
KILN_SOUND_API void kiln_player_loop_over(kiln_player *p, kiln_loop loop);
KILN_SOUND_API void kiln_player_seek(kiln_player *p, int64_t frame);
/* kiln_player_read returns the number of frames. At the end it returns fewer than requested, and then 0. */
KILN_SOUND_API int64_t kiln_player_read(kiln_player *p, int16_t *samples, int64_t frames);

#ifdef __cplusplus
}
#endif
#endif /* KILN_SOUND_H */

#ifdef KILN_SOUND_IMPLEMENTATION
#include <string.h>

#define KILN_SOUND_MAX_CHANNELS 64

static uint32_t kiln_s16(const uint8_t *b) { return (uint32_t)b[0] | (uint32_t)b[1] << 8; }
static uint32_t kiln_s32(const uint8_t *b) { return kiln_s16(b) | kiln_s16(b + 2) << 16; }
static uint32_t kiln_b16(const uint8_t *b) { return (uint32_t)b[0] << 8 | b[1]; }
static uint32_t kiln_b32(const uint8_t *b) { return kiln_b16(b) << 16 | kiln_b16(b + 2); }
static int32_t kiln_i16(uint32_t v) { return v < 0x8000 ? (int32_t)v : (int32_t)v - 0x10000; }
static int32_t kiln_clamp16(int32_t v) { return v < -32768 ? -32768 : v > 32767 ? 32767 : v; }

static float kiln_f32(const uint8_t *b) {
    uint32_t u = kiln_s32(b);
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* kiln_number returns a float, or 0 if it is not finite. */
static float kiln_number(const uint8_t *b) { return (kiln_s32(b) >> 23 & 255) == 255 ? 0 : kiln_f32(b); }

/* Reads a loop of the notes, if it is valid. */
static int kiln_note_loop(const kiln_sound *s, const uint8_t *b, kiln_loop *l) {
    l->begin = kiln_s32(b), l->end = kiln_s32(b + 4), l->kind = kiln_s32(b + 8), l->count = kiln_s32(b + 12);
    return l->begin < l->end && l->end <= s->frames && l->kind <= KILN_LOOP_BACKWARD;
}

/* kiln_notes reads the notes as docs/formats/sound.md describes them. */
static void kiln_notes(kiln_sound *s, const uint8_t *b, size_t n) {
    uint32_t size, loops, markers;
    kiln_loop l;
    if (n < 32 || memcmp(b, "KSND", 4) != 0 || kiln_s16(b + 8) != 1) return;
    size = kiln_s32(b + 4);
    if (size < 32 || size > n) return;
    s->flags = kiln_s16(b + 10);
    s->gain = kiln_number(b + 12), s->loudness = kiln_number(b + 16), s->true_peak = kiln_number(b + 20);
    loops = kiln_s32(b + 24), markers = kiln_s32(b + 28);
    b += 32, n = size - 32;
    s->notes = b;
    for (; loops > 0 && n >= 16; loops--, b += 16, n -= 16) {
        s->notes_size += 16;
        if (kiln_note_loop(s, b, &l)) s->loops++;
    }
    s->marks = b;
    for (; markers > 0 && n >= 12; markers--) {
        uint64_t whole = 12 + ((uint64_t)kiln_s32(b + 8) + 3) / 4 * 4;
        if (whole > n) return;
        s->markers++, s->marks_size += (size_t)whole;
        b += whole, n -= (size_t)whole;
    }
}

static int kiln_sound_open_qoa(kiln_sound *s, const uint8_t *b, size_t n) {
    uint64_t end, rest;
    s->frames = kiln_b32(b + 4), s->channels = b[8], s->rate = kiln_b32(b + 8) & 0xffffff;
    if (s->frames == 0 || s->channels == 0 || s->channels > 8 || s->rate == 0) return KILN_SOUND_DAMAGED;
    s->coding = KILN_SOUND_QOA, s->block = 5120;
    s->block_size = 8 + (size_t)s->channels * (16 + 8 * 256);
    end = 8 + (uint64_t)(s->frames / s->block) * s->block_size;
    rest = (uint64_t)(s->frames % s->block);
    if (rest > 0) end += 8 + s->channels * (16 + 8 * ((rest + 19) / 20));
    if (end > n) return KILN_SOUND_DAMAGED;
    s->data = b + 8, s->size = (size_t)end - 8;
    kiln_notes(s, b + end, n - (size_t)end);
    return KILN_SOUND_OK;
}

static int kiln_wav_format(kiln_sound *s, const uint8_t *b, size_t n) {
    uint32_t tag, bits, align, ch;
    if (n < 16) return 0;
    tag = kiln_s16(b), ch = kiln_s16(b + 2), align = kiln_s16(b + 12), bits = kiln_s16(b + 14);
    s->channels = ch, s->rate = kiln_s32(b + 4);
    if (tag == 0xfffe && n >= 26) tag = kiln_s16(b + 24);
    if (ch == 0 || ch > KILN_SOUND_MAX_CHANNELS || s->rate == 0) return 0;
    s->block = 1024;
    if (tag == 1 && bits == 16 && align == 2 * ch) s->coding = KILN_SOUND_PCM;
    else if (tag == 3 && bits == 32 && align == 4 * ch) s->coding = KILN_SOUND_FLOAT;
    else if (tag == 0x11 && bits == 4 && align >= 8 * ch && align % (4 * ch) == 0) {
        s->coding = KILN_SOUND_ADPCM, s->block = (int64_t)(align / ch - 4) * 2 + 1, s->block_size = align;
        return 1;
    } else return 0;
    s->block_size = (size_t)s->block * align;
    return 1;
}

static int kiln_sound_open_wav(kiln_sound *s, const uint8_t *b, size_t n) {
    const uint8_t *notes = NULL;
    size_t notes_size = 0, at = 12;
    int64_t fact = -1;
    int format = 0;
    while (n - at >= 8) {
        const uint8_t *head = b + at, *body = head + 8;
        size_t left = n - at - 8, says = kiln_s32(head + 4), size = says < left ? says : left;
        if (memcmp(head, "fmt ", 4) == 0) {
            if (!(format = kiln_wav_format(s, body, size))) return KILN_SOUND_FORMAT;
        } else if (memcmp(head, "fact", 4) == 0 && size >= 4) fact = kiln_s32(body);
        else if (memcmp(head, "data", 4) == 0) s->data = body, s->size = size;
        else if (memcmp(head, "kiln", 4) == 0) notes = body, notes_size = size;
        if (says >= left || says + (says & 1) >= left) break;
        at += 8 + says + (says & 1);
    }
    if (!format || s->data == NULL) return KILN_SOUND_DAMAGED;
    if (s->coding == KILN_SOUND_ADPCM) {
        s->frames = (int64_t)(s->size / s->block_size) * s->block;
        if (fact >= 0 && fact < s->frames) s->frames = fact;
    } else s->frames = (int64_t)(s->size / (s->block_size / (size_t)s->block));
    if (notes != NULL) kiln_notes(s, notes, notes_size);
    return KILN_SOUND_OK;
}

KILN_SOUND_API int kiln_sound_open(kiln_sound *s, const void *data, size_t size) {
    const uint8_t *b = (const uint8_t *)data;
    memset(s, 0, sizeof *s);
    if (size >= 16 && memcmp(b, "qoaf", 4) == 0) return kiln_sound_open_qoa(s, b, size);
    if (size >= 12 && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "WAVE", 4) == 0) return kiln_sound_open_wav(s, b, size);
    return KILN_SOUND_FORMAT;
}

KILN_SOUND_API size_t kiln_sound_room(const kiln_sound *s) { return (size_t)s->block * s->channels * sizeof(int16_t); }

KILN_SOUND_API int kiln_sound_loop(const kiln_sound *s, uint32_t no, kiln_loop *out) {
    size_t at;
    for (at = 0; at < s->notes_size; at += 16)
        if (kiln_note_loop(s, s->notes + at, out) && no-- == 0) return 1;
    return 0;
}

KILN_SOUND_API int kiln_sound_marker(const kiln_sound *s, uint32_t no, kiln_marker *out) {
    const uint8_t *b = s->marks;
    if (no >= s->markers) return 0;
    for (; no > 0; no--) b += 12 + ((size_t)kiln_s32(b + 8) + 3) / 4 * 4;
    out->frame = kiln_s32(b), out->length = kiln_s32(b + 4), out->name_size = kiln_s32(b + 8), out->name = (const char *)b + 12;
    return 1;
}

/* The 3-bit codes of QOA mean (scale * quarters + 2) / 4, and their negatives. */
static const int32_t kiln_qoa_scales[16] = {1, 7, 21, 45, 84, 138, 211, 304, 421, 562, 731, 928, 1157, 1419, 1715, 2048};
static const int32_t kiln_qoa_quarters[4] = {3, 10, 18, 28};

static void kiln_decode_qoa(const kiln_sound *s, int16_t *out, const uint8_t *b, size_t size, int64_t n) {
    int32_t history[8][4];
    uint32_t weights[8][4];
    uint32_t c, k, ch = s->channels;
    int64_t at, i;
    if (size < 8 + 16 * (size_t)ch) {
        memset(out, 0, kiln_sound_room(s));
        return;
    }
    b += 8, size -= 8;
    for (c = 0; c < ch; c++, b += 16, size -= 16)
        for (k = 0; k < 4; k++) history[c][k] = kiln_i16(kiln_b16(b + 2 * k)), weights[c][k] = (uint32_t)kiln_i16(kiln_b16(b + 8 + 2 * k));
    for (at = 0; at < n; at += 20)
        for (c = 0; c < ch; c++, b += 8, size -= 8) {
            uint64_t slice;
            int32_t table[8], *h = history[c];
            uint32_t *w = weights[c];
            if (size < 8) return;
            slice = (uint64_t)kiln_b32(b) << 32 | kiln_b32(b + 4);
            for (k = 0; k < 4; k++) table[2 * k] = (kiln_qoa_scales[slice >> 60] * kiln_qoa_quarters[k] + 2) / 4, table[2 * k + 1] = -table[2 * k];
            for (i = at; i < at + 20 && i < n; i++) {
                /* Unsigned, because the sum may overflow in damaged files. */
                uint32_t sum = (uint32_t)h[0] * w[0] + (uint32_t)h[1] * w[1] + (uint32_t)h[2] * w[2] + (uint32_t)h[3] * w[3];
                int32_t r = table[slice >> 57 & 7], v;
                uint32_t shifted = sum >> 13 | (sum & 0x80000000u ? 0xfff80000u : 0), d = (uint32_t)(r >= 0 ? r >> 4 : -((-r + 15) >> 4));
                slice <<= 3;
                shifted += (uint32_t)r;
                v = shifted < 0x80000000u ? (shifted > 32767 ? 32767 : (int32_t)shifted) : (shifted < 0xffff8000u ? -32768 : -(int32_t)(0u - shifted));
                out[i * ch + c] = (int16_t)v;
                for (k = 0; k < 4; k++) w[k] += h[k] < 0 ? 0u - d : d;
                h[0] = h[1], h[1] = h[2], h[2] = h[3], h[3] = v;
            }
        }
}

static const int8_t kiln_ima_index[8] = {-1, -1, -1, -1, 2, 4, 6, 8};
static const uint16_t kiln_ima_steps[89] = {7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143,
    157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878,
    2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818,
    18500, 20350, 22385, 24623, 27086, 29794, 32767};

static void kiln_decode_adpcm(const kiln_sound *s, int16_t *out, const uint8_t *b, size_t size) {
    int32_t last[KILN_SOUND_MAX_CHANNELS], index[KILN_SOUND_MAX_CHANNELS];
    uint32_t c, i, ch = s->channels;
    size_t at;
    if (size < 4 * (size_t)ch) return;
    for (c = 0; c < ch; c++, b += 4, size -= 4) {
        last[c] = kiln_i16(kiln_s16(b)), index[c] = b[2] > 88 ? 88 : b[2];
        out[c] = (int16_t)last[c];
    }
    for (at = 1; size >= 4 * (size_t)ch; at += 8)
        for (c = 0; c < ch; c++, b += 4, size -= 4) {
            uint32_t bits = kiln_s32(b);
            for (i = 0; i < 8; i++, bits >>= 4) {
                int32_t step = kiln_ima_steps[index[c]], d = step >> 3;
                if (bits & 4) d += step;
                if (bits & 2) d += step >> 1;
                if (bits & 1) d += step >> 2;
                last[c] = kiln_clamp16(bits & 8 ? last[c] - d : last[c] + d);
                index[c] += kiln_ima_index[bits & 7];
                index[c] = index[c] < 0 ? 0 : index[c] > 88 ? 88 : index[c];
                out[(at + i) * ch + c] = (int16_t)last[c];
            }
        }
}

/* Rounds to nearest, halves to even. NaN becomes 0. */
static int16_t kiln_float16(const uint8_t *b) {
    double v = kiln_f32(b), x;
    int32_t low;
    if (v != v) return 0;
    x = v * 32768;
    if (x <= -32768) return -32768;
    if (x >= 32767) return 32767;
    low = (int32_t)x;
    if (low > x) low--;
    x -= low;
    return (int16_t)(x > 0.5 || (x == 0.5 && (low & 1)) ? low + 1 : low);
}

static void kiln_decode(const kiln_sound *s, int16_t *out, int64_t no) {
    size_t from = (size_t)no * s->block_size, size, i;
    const uint8_t *b;
    int64_t n = s->frames - no * s->block;
    if (from > s->size) from = s->size;
    b = s->data + from, size = s->size - from;
    if (size > s->block_size) size = s->block_size;
    if (n > s->block) n = s->block;
    switch (s->coding) {
    case KILN_SOUND_QOA: kiln_decode_qoa(s, out, b, size, n); break;
    case KILN_SOUND_ADPCM: kiln_decode_adpcm(s, out, b, size); break;
    case KILN_SOUND_PCM:
        for (i = 0; i < size / 2; i++) out[i] = (int16_t)kiln_i16(kiln_s16(b + 2 * i));
        break;
    default:
        for (i = 0; i < size / 4; i++) out[i] = kiln_float16(b + 4 * i);
    }
}

KILN_SOUND_API void kiln_player_init(kiln_player *p, const kiln_sound *s, void *room) {
    memset(p, 0, sizeof *p);
    p->sound = s, p->first = -1, p->room = (int16_t *)room;
}

KILN_SOUND_API void kiln_player_loop_over(kiln_player *p, kiln_loop l) {
    p->looping = 0, p->back = 0;
    if (l.begin < 0 || l.begin >= l.end || l.end > p->sound->frames || l.kind > KILN_LOOP_BACKWARD) return;
    p->looping = 1, p->loop = l, p->left = l.count > 0 ? (int64_t)l.count - 1 : -1;
}

KILN_SOUND_API void kiln_player_loop(kiln_player *p, int on) {
    kiln_loop l;
    p->looping = 0, p->back = 0;
    if (on && kiln_sound_loop(p->sound, 0, &l)) kiln_player_loop_over(p, l);
}

KILN_SOUND_API void kiln_player_seek(kiln_player *p, int64_t frame) {
    p->at = frame < 0 ? 0 : frame > p->sound->frames ? p->sound->frames : frame;
    p->back = 0;
}

/* Decides where to continue at an end of the loop. */
static void kiln_player_turn(kiln_player *p) {
    const kiln_loop *l = &p->loop;
    if (!p->looping) return;
    if (!p->back && p->at == l->end) {
        if (p->left == 0) {
            p->looping = 0;
            return;
        }
        if (p->left > 0) p->left--;
        if (l->kind == KILN_LOOP_FORWARD) p->at = l->begin;
        else {
            p->back = 1, p->at = l->end - (l->kind == KILN_LOOP_PING_PONG ? 2 : 1);
            if (p->at < l->begin) p->at = l->begin;
        }
    } else if (p->back && p->at < l->begin) {
        if (p->left == 0) { /* continue from the end of the loop */
            p->looping = 0, p->back = 0, p->at = l->end;
            return;
        }
        if (p->left > 0) p->left--;
        if (l->kind == KILN_LOOP_PING_PONG) p->back = 0, p->at = l->begin + 1 < l->end ? l->begin + 1 : l->end - 1;
        else p->at = l->end - 1;
    }
}

KILN_SOUND_API int64_t kiln_player_read(kiln_player *p, int16_t *samples, int64_t frames) {
    const kiln_sound *s = p->sound;
    int64_t done = 0;
    while (done < frames) {
        int64_t first, offset, n;
        kiln_player_turn(p);
        if (p->at >= s->frames || p->at < 0) break;
        first = p->at / s->block * s->block;
        if (first != p->first) kiln_decode(s, p->room, first / s->block), p->first = first;
        offset = p->at - first;
        n = 1;
        if (p->back) p->at--;
        else {
            n = (s->frames - first < s->block ? s->frames - first : s->block) - offset;
            if (n > frames - done) n = frames - done;
            if (p->looping && p->at < p->loop.end && n > p->loop.end - p->at) n = p->loop.end - p->at;
            p->at += n;
        }
        memcpy(samples + done * s->channels, p->room + offset * s->channels, (size_t)n * s->channels * sizeof(int16_t));
        done += n;
    }
    return done;
}
#endif /* KILN_SOUND_IMPLEMENTATION */
