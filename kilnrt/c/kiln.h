/*
 * kiln.h reads parcels, the files in which Kiln packs what a game loads. C99 or C++, no dependencies, no memory of its own: a parcel is a
 * block of bytes of yours, mapped or read, and all that comes out of it points into that block. docs/formats/parcel.md is the format,
 * docs/runtime-c.md tells how to use this.
 *
 * Include it where you need it, and in one file
 *
 *     #define KILN_IMPLEMENTATION
 *     #include "kiln.h"
 *
 * KILN_API may be defined before that (static, an export). KILN_NO_FILES leaves out the functions that map files. Functions give
 * KILN_OK, which is 0, or an error; kiln_words has it in words. A broken or hostile parcel gives errors and nothing worse: every offset is
 * checked before it is followed. All may be called from many threads at once, for nothing is written but what the caller hands over.
 */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#ifndef KILN_API
#define KILN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KILN_OK = 0,
    KILN_NOT_FOUND,   /* no mounted parcel has it */
    KILN_NOT_PARCEL,  /* the file is none, or both of its headers are broken */
    KILN_VERSION,     /* made for a newer reader */
    KILN_DAMAGED,     /* something in it contradicts something else, or a checksum is wrong */
    KILN_COMPRESSED,  /* it needs decompression: kiln_view of such a resource, kiln_read without a function for it */
    KILN_UNPACKING,   /* decompression failed, or gave another size */
    KILN_ROOM,        /* the memory that was handed over is too small */
    KILN_MISSING,     /* a resource that another one requires is in no mounted parcel */
    KILN_CIRCLE,      /* needs go round in a circle, a chain of them is longer than 1000, or there are more than a million of them */
    KILN_FILE         /* the file cannot be opened or mapped */
};

/* kiln_words says an error in a few words of English. */
KILN_API const char *kiln_words(int error);

/* Text within a parcel: UTF-8, no zero byte at its end. */
typedef struct kiln_text {
    const char *data;
    size_t size;
} kiln_text;

typedef struct kiln_section {
    const uint8_t *data;
    size_t size;
    uint32_t crc;
} kiln_section;

enum { KILN_DIRECTORY, KILN_IDS, KILN_UUIDS, KILN_NAMES_TABLE, KILN_TYPES, KILN_NAMES, KILN_NEEDS, KILN_DICTIONARY, KILN_SIGNATURE, KILN_SECTIONS };

/* A parcel that is open. There is nothing to close; the bytes must stay where they are as long as it is used. */
typedef struct kiln_parcel {
    const uint8_t *data;
    uint64_t end;        /* bytes of it that count */
    uint64_t generation; /* grows with each change of the file */
    uint32_t count;      /* resources */
    uint32_t bits;       /* tables have 2^bits entries */
    uint32_t types;
    uint8_t digest[32]; /* as it is written in the file: compare it with kiln_digest */
    kiln_section sections[KILN_SECTIONS];

    /* Where look-ups go on if this parcel has no such resource: a patch, a mod or an addition is laid over the base by setting it. */
    const struct kiln_parcel *under;
} kiln_parcel;

typedef struct kiln_resource {
    const kiln_parcel *parcel; /* the one that has it */
    uint32_t index;            /* in that parcel, by ascending id */
    uint32_t id;
    uint32_t sub;        /* id of the product within its asset, 0: the main one */
    const uint8_t *uuid; /* of the asset: 16 bytes in the order in which they are printed */
    const uint8_t *hash; /* BLAKE3 of the content: 32 bytes */
    kiln_text name;
    uint64_t size;         /* of the content */
    uint64_t stored;       /* of what is in the file */
    const uint8_t *payload; /* the stored bytes, aligned within the file to 2^align */
    uint32_t crc;           /* CRC-32 of the stored bytes */
    uint32_t required;      /* how many resources it requires */
    uint32_t optional;      /* how many more it would use */
    const uint8_t *needs;   /* see kiln_need */
    uint16_t type;          /* see kiln_type */
    uint8_t codec;          /* 0: as it is, 1: Zstandard, 2: Zstandard with the parcel's dictionary */
    uint8_t align;
} kiln_resource;

/*
 * kiln_open opens the parcel in size bytes at data. It takes the same time for any parcel: all else is checked when it is used, or by
 * kiln_check. under becomes NULL.
 */
KILN_API int kiln_open(kiln_parcel *parcel, const void *data, size_t size);

/* kiln_check holds a whole parcel to the specification, all but the payloads. It reads the index, not the payloads. */
KILN_API int kiln_check(const kiln_parcel *parcel);

/* kiln_at is the resource at an index, 0 to count - 1, of this parcel alone. */
KILN_API int kiln_at(const kiln_parcel *parcel, uint32_t index, kiln_resource *resource);

/* Look-ups, in the parcel and then in those under it: KILN_NOT_FOUND if none has it. A broken entry is an error, and the search ends there. */
KILN_API int kiln_find(const kiln_parcel *parcel, uint32_t id, kiln_resource *resource);
KILN_API int kiln_find_uuid(const kiln_parcel *parcel, const uint8_t uuid[16], uint32_t sub, kiln_resource *resource);
KILN_API int kiln_find_name(const kiln_parcel *parcel, const char *name, size_t size, kiln_resource *resource);

/*
 * kiln_type is the text of a type, and kiln_find_type the number of a text, or -1. Both walk the list of types: ask once after opening,
 * and compare numbers from then on. Numbers are a parcel's own.
 */
KILN_API kiln_text kiln_type(const kiln_parcel *parcel, uint32_t type);
KILN_API int kiln_find_type(const kiln_parcel *parcel, const char *text, size_t size);

/* kiln_need is the id of the i-th resource that it needs: i from 0, required ones first, in the order in which to load them. */
KILN_API uint32_t kiln_need(const kiln_resource *resource, uint32_t i);

/* kiln_view points at the content where it lies, after it has compared its CRC. KILN_COMPRESSED if it does not lie there as it is. */
KILN_API int kiln_view(const kiln_resource *resource, const void **content);

/*
 * A function that decompresses one Zstandard frame into room bytes and gives how many it wrote, anything else if it failed. dictionary is
 * NULL or the parcel's. With the library of Zstandard, and user a ZSTD_DCtx, it is one line:
 *
 *     return ZSTD_decompress_usingDict((ZSTD_DCtx *)user, to, room, from, size, dictionary, dictionary_size);
 */
typedef size_t (*kiln_unpacker)(void *user, void *to, size_t room, const void *from, size_t size, const void *dictionary, size_t dictionary_size);

/*
 * kiln_read writes the content, resource->size bytes, to memory of room bytes, after it has compared the CRC of what is stored. unpack may be
 * NULL if nothing is compressed. What is compressed has at most 256 MiB of content, but a broken parcel may claim so
 * much of a few bytes: do not trust a size above 64 * stored + 1 MiB.
 */
KILN_API int kiln_read(const kiln_resource *resource, void *to, size_t room, kiln_unpacker unpack, void *user);

/* kiln_verify compares content with the hash of the resource. About 0.6 GB/s, and the CRC has found accidents already: it is for patches. */
KILN_API int kiln_verify(const kiln_resource *resource, const void *content, size_t size);

/* kiln_hash is the BLAKE3 hash of some bytes. */
KILN_API void kiln_hash(const void *data, size_t size, uint8_t hash[32]);

/*
 * kiln_digest computes what all the parcel holds amounts to: what is signed. That it is equal to parcel->digest says that the index is as it was written; together
 * with kiln_verify of each content, all of it is.
 */
KILN_API int kiln_digest(const kiln_parcel *parcel, uint8_t digest[32]);

/* The order in which to load, see kiln_order_add. */
typedef struct kiln_order {
    uint32_t *ids; /* count of them: each after all that it needs */
    size_t count;
    size_t room;
    size_t looked; /* needs that the last call looked up */
} kiln_order;

/* kiln_order_begin takes memory of the caller, 16 bytes for each resource that may be loaded, and empties the list. */
KILN_API void kiln_order_begin(kiln_order *order, uint32_t *memory, size_t numbers);

/*
 * kiln_order_add appends a resource after all that it requires, as far as that is not in the list; with optional also after what it would use, where
 * that is mounted and can be loaded: "Load order" in docs/formats/parcel.md. After an error the list is as it was.
 */
KILN_API int kiln_order_add(kiln_order *order, const kiln_parcel *parcel, uint32_t id, int optional);

#ifndef KILN_NO_FILES
/* kiln_map_file maps a whole file (POSIX, Windows), read only; the path is UTF-8. An empty file is KILN_NOT_PARCEL. */
KILN_API int kiln_map_file(const char *path, const void **data, size_t *size);
KILN_API void kiln_unmap_file(const void *data, size_t size);
#endif

#ifdef __cplusplus
}
#endif
#endif /* KILN_H */

#ifdef KILN_IMPLEMENTATION
#ifndef KILN_IMPLEMENTED
#define KILN_IMPLEMENTED

#include <string.h>

KILN_API const char *kiln_words(int error) {
    switch (error) {
    case KILN_OK: return "all is well";
    case KILN_NOT_FOUND: return "there is no such resource";
    case KILN_NOT_PARCEL: return "the file is not a parcel, or its header is broken";
    case KILN_VERSION: return "the parcel needs a newer reader";
    case KILN_DAMAGED: return "the parcel is damaged";
    case KILN_COMPRESSED: return "the resource is compressed, and nobody is here to decompress it";
    case KILN_UNPACKING: return "the resource cannot be decompressed";
    case KILN_ROOM: return "the memory handed over is too small";
    case KILN_MISSING: return "a resource that is required is in no mounted parcel";
    case KILN_CIRCLE: return "resources require each other in a circle, or in a chain that is too long";
    case KILN_FILE: return "the file cannot be opened";
    }
    return "an error that is not Kiln's";
}

/* ---- numbers, and the two hashes of the format that are no BLAKE3 ---- */

static uint32_t kilni_u16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t kilni_u32(const uint8_t *p) { return kilni_u16(p) | kilni_u16(p + 2) << 16; }
static uint64_t kilni_u64(const uint8_t *p) { return kilni_u32(p) | (uint64_t)kilni_u32(p + 4) << 32; }

/* What CRC-32 makes of a word that has only its i-th four bits: 8 x 16 numbers, so that four bytes are eight look-ups that wait for nothing. */
static const uint32_t kilni_crc_table[8][16] = {
    {0x00000000u, 0xB8BC6765u, 0xAA09C88Bu, 0x12B5AFEEu, 0x8F629757u, 0x37DEF032u, 0x256B5FDCu, 0x9DD738B9u,
     0xC5B428EFu, 0x7D084F8Au, 0x6FBDE064u, 0xD7018701u, 0x4AD6BFB8u, 0xF26AD8DDu, 0xE0DF7733u, 0x58631056u},
    {0x00000000u, 0x5019579Fu, 0xA032AF3Eu, 0xF02BF8A1u, 0x9B14583Du, 0xCB0D0FA2u, 0x3B26F703u, 0x6B3FA09Cu,
     0xED59B63Bu, 0xBD40E1A4u, 0x4D6B1905u, 0x1D724E9Au, 0x764DEE06u, 0x2654B999u, 0xD67F4138u, 0x866616A7u},
    {0x00000000u, 0x01C26A37u, 0x0384D46Eu, 0x0246BE59u, 0x0709A8DCu, 0x06CBC2EBu, 0x048D7CB2u, 0x054F1685u,
     0x0E1351B8u, 0x0FD13B8Fu, 0x0D9785D6u, 0x0C55EFE1u, 0x091AF964u, 0x08D89353u, 0x0A9E2D0Au, 0x0B5C473Du},
    {0x00000000u, 0x1C26A370u, 0x384D46E0u, 0x246BE590u, 0x709A8DC0u, 0x6CBC2EB0u, 0x48D7CB20u, 0x54F16850u,
     0xE1351B80u, 0xFD13B8F0u, 0xD9785D60u, 0xC55EFE10u, 0x91AF9640u, 0x8D893530u, 0xA9E2D0A0u, 0xB5C473D0u},
    {0x00000000u, 0x191B3141u, 0x32366282u, 0x2B2D53C3u, 0x646CC504u, 0x7D77F445u, 0x565AA786u, 0x4F4196C7u,
     0xC8D98A08u, 0xD1C2BB49u, 0xFAEFE88Au, 0xE3F4D9CBu, 0xACB54F0Cu, 0xB5AE7E4Du, 0x9E832D8Eu, 0x87981CCFu},
    {0x00000000u, 0x4AC21251u, 0x958424A2u, 0xDF4636F3u, 0xF0794F05u, 0xBABB5D54u, 0x65FD6BA7u, 0x2F3F79F6u,
     0x3B83984Bu, 0x71418A1Au, 0xAE07BCE9u, 0xE4C5AEB8u, 0xCBFAD74Eu, 0x8138C51Fu, 0x5E7EF3ECu, 0x14BCE1BDu},
    {0x00000000u, 0x77073096u, 0xEE0E612Cu, 0x990951BAu, 0x076DC419u, 0x706AF48Fu, 0xE963A535u, 0x9E6495A3u,
     0x0EDB8832u, 0x79DCB8A4u, 0xE0D5E91Eu, 0x97D2D988u, 0x09B64C2Bu, 0x7EB17CBDu, 0xE7B82D07u, 0x90BF1D91u},
    {0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
     0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu},
};

static uint32_t kilni_crc(const uint8_t *p, size_t n) {
    uint32_t c = 0xFFFFFFFFu;
    const uint32_t(*t)[16] = kilni_crc_table;
    for (; n >= 4; p += 4, n -= 4) {
        c ^= kilni_u32(p);
        c = t[0][c & 15] ^ t[1][c >> 4 & 15] ^ t[2][c >> 8 & 15] ^ t[3][c >> 12 & 15] ^ t[4][c >> 16 & 15] ^ t[5][c >> 20 & 15] ^
            t[6][c >> 24 & 15] ^ t[7][c >> 28];
    }
    for (; n; p++, n--) {
        c ^= *p;
        c = c >> 8 ^ t[6][c & 15] ^ t[7][c >> 4 & 15];
    }
    return ~c;
}

static uint32_t kilni_left(uint32_t x, int n) { return x << n | x >> (32 - n); }
static uint32_t kilni_mix(uint32_t k) { return kilni_left(k * 0xCC9E2D51u, 15) * 0x1B873593u; }

/* MurmurHash3_x86_32 with seed 0, by Austin Appleby. */
static uint32_t kilni_murmur(const uint8_t *p, size_t n) {
    uint32_t h = 0, k = 0, size = (uint32_t)n;
    for (; n >= 4; p += 4, n -= 4) h = kilni_left(h ^ kilni_mix(kilni_u32(p)), 13) * 5 + 0xE6546B64u;
    if (n) {
        while (n) k = k << 8 | p[--n];
        h ^= kilni_mix(k);
    }
    h ^= size;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    return h ^ h >> 16;
}

/* ---- opening ---- */

#define KILNI_SLOT 512u
#define KILNI_PITCH 4096u
#define KILNI_START 8192u
#define KILNI_RECORD 128u
#define KILNI_PAGE 64u
#define KILNI_CHAIN 1000
#define KILNI_MAX_LOOKED (1u << 20)
#define KILNI_MAX_NEEDS 65536u
#define KILNI_MAX_NAME 4096u
#define KILNI_MAX_SIGNATURE 4096u
#define KILNI_MAX_COUNT (1u << 24)
#define KILNI_MAX_COMPRESSED (1u << 28)
#define KILNI_MAX_DICTIONARY (1u << 20)
#define KILNI_MAX_TYPES (1u << 16)

static int kilni_good(const uint8_t *slot) {
    return memcmp(slot, "\x89KPRC\r\n\x1A", 8) == 0 && kilni_crc(slot, KILNI_SLOT - 4) == kilni_u32(slot + KILNI_SLOT - 4);
}

/* kilni_open_section takes section i from its 24 bytes, of which the size must be exact if it is of the first four, and at most most else. */
static int kilni_open_section(kiln_parcel *p, int i, const uint8_t *at, uint64_t exact, uint64_t most) {
    uint64_t offset = kilni_u64(at), size = kilni_u64(at + 8);
    p->sections[i].crc = kilni_u32(at + 16);
    if (i <= KILN_NAMES_TABLE ? size != exact : size > most) return KILN_DAMAGED;
    if (size == 0) {
        p->sections[i].data = NULL;
        p->sections[i].size = 0;
        return offset || p->sections[i].crc ? KILN_DAMAGED : KILN_OK;
    }
    if (offset < KILNI_START || offset % 16 || offset > p->end || size > p->end - offset) return KILN_DAMAGED;
    p->sections[i].data = p->data + (size_t)offset;
    p->sections[i].size = (size_t)size;
    return KILN_OK;
}

/* kilni_walk_types passes over n types and gives where the next one begins, or NULL if they are not well formed. */
static const uint8_t *kilni_walk_types(const kiln_section *s, uint32_t n) {
    size_t at = 0;
    for (; n; n--) {
        uint32_t size;
        if (s->size - at < 2) return NULL;
        size = kilni_u16(s->data + at);
        if (size < 1 || size > 255 || size > s->size - at - 2) return NULL;
        at += 2 + size;
    }
    return s->data + at;
}

KILN_API int kiln_open(kiln_parcel *p, const void *data, size_t size) {
    const uint8_t *slot = (const uint8_t *)data, *other;
    kiln_section *types;
    uint64_t table;
    int i;
    memset(p, 0, sizeof *p);
    if (!data || size < KILNI_START) return KILN_NOT_PARCEL;
    p->data = slot;
    other = slot + KILNI_PITCH;
    if (!kilni_good(slot) || (kilni_good(other) && kilni_u64(other + 16) > kilni_u64(slot + 16))) slot = other;
    if (!kilni_good(slot)) return KILN_NOT_PARCEL;
    if (kilni_u32(slot + 8) != 1 || kilni_u16(slot + 12)) return KILN_VERSION;
    p->generation = kilni_u64(slot + 16);
    p->end = kilni_u64(slot + 24);
    p->count = kilni_u32(slot + 40);
    p->bits = kilni_u32(slot + 44);
    p->types = kilni_u32(slot + 48);
    memcpy(p->digest, slot + 280, 32);
    if (p->end < KILNI_START || p->end > size || p->count > KILNI_MAX_COUNT || (uint64_t)p->count * KILNI_RECORD > p->end) return KILN_DAMAGED;
    if (p->bits < 1 || p->bits > 26 || 1u << p->bits < p->count + 1 || p->types > KILNI_MAX_TYPES) return KILN_DAMAGED;
    table = (uint64_t)8 << p->bits;
    for (i = 0; i < KILN_SECTIONS; i++) {
        uint64_t exact = i == KILN_DIRECTORY ? (p->count + KILNI_PAGE - 1) / KILNI_PAGE * 16 : table;
        uint64_t most = i == KILN_DICTIONARY ? KILNI_MAX_DICTIONARY : i == KILN_SIGNATURE ? KILNI_MAX_SIGNATURE : 0xFFFFFFFFu;
        int error = kilni_open_section(p, i, slot + 64 + 24 * i, exact, most);
        if (error) return error;
    }
    if (p->sections[KILN_NEEDS].size % 4) return KILN_DAMAGED;
    types = &p->sections[KILN_TYPES];
    if (types->size == 0) return p->types ? KILN_DAMAGED : KILN_OK;
    return kilni_walk_types(types, p->types) == types->data + types->size ? KILN_OK : KILN_DAMAGED;
}

KILN_API kiln_text kiln_type(const kiln_parcel *p, uint32_t type) {
    kiln_text text = {NULL, 0};
    if (type < p->types) {
        const uint8_t *at = kilni_walk_types(&p->sections[KILN_TYPES], type);
        text.data = (const char *)at + 2;
        text.size = kilni_u16(at);
    }
    return text;
}

KILN_API int kiln_find_type(const kiln_parcel *p, const char *text, size_t size) {
    const uint8_t *at = p->sections[KILN_TYPES].data;
    uint32_t i;
    for (i = 0; i < p->types; i++, at += 2 + kilni_u16(at)) {
        if (kilni_u16(at) == size && memcmp(at + 2, text, size) == 0) return (int)i;
    }
    return -1;
}

/* ---- records ---- */

/* kilni_page is the k-th page of records and how many bytes it has, or NULL if it cannot lie where the directory says. */
static const uint8_t *kilni_page(const kiln_parcel *p, uint32_t k, size_t *size) {
    uint64_t offset = kilni_u64(p->sections[KILN_DIRECTORY].data + (size_t)16 * k);
    uint32_t left = p->count - k * KILNI_PAGE;
    *size = (size_t)KILNI_RECORD * (left < KILNI_PAGE ? left : KILNI_PAGE);
    if (offset < KILNI_START || offset % 16 || offset > p->end || *size > p->end - offset) return NULL;
    return p->data + (size_t)offset;
}

/* kilni_places takes what a record says about places, and tells whether all of it is possible. */
static int kilni_places(const kiln_parcel *p, const uint8_t *b, kiln_resource *r) {
    uint64_t offset = kilni_u64(b + 32), needs = kilni_u32(b + 96);
    uint32_t name = kilni_u32(b + 56), name_size = kilni_u32(b + 60);
    const kiln_section *names = &p->sections[KILN_NAMES], *all = &p->sections[KILN_NEEDS];
    if (r->stored == 0) {
        if (offset || r->size || r->crc || r->codec) return 0;
    } else if (offset < KILNI_START || offset > p->end || r->stored > p->end - offset || offset % (1u << r->align)) {
        return 0;
    }
    if (name_size > KILNI_MAX_NAME || (uint64_t)name + name_size > names->size) return 0;
    if ((uint64_t)r->required + r->optional > KILNI_MAX_NEEDS || needs + r->required + r->optional > all->size / 4) return 0;
    r->payload = r->stored ? p->data + (size_t)offset : NULL;
    r->name.data = name_size ? (const char *)names->data + name : "";
    r->name.size = name_size;
    r->needs = all->data ? all->data + 4 * (size_t)needs : NULL;
    return 1;
}

KILN_API int kiln_at(const kiln_parcel *p, uint32_t index, kiln_resource *r) {
    const uint8_t *b;
    size_t size;
    memset(r, 0, sizeof *r);
    if (index >= p->count) return KILN_NOT_FOUND;
    b = kilni_page(p, index / KILNI_PAGE, &size);
    if (!b) return KILN_DAMAGED;
    b += KILNI_RECORD * (index % KILNI_PAGE);
    r->parcel = p;
    r->index = index;
    r->id = kilni_u32(b);
    r->sub = kilni_u32(b + 4);
    r->uuid = b + 8;
    r->type = (uint16_t)kilni_u16(b + 24);
    r->codec = b[26];
    r->align = b[27];
    r->crc = kilni_u32(b + 28);
    r->stored = kilni_u64(b + 40);
    r->size = kilni_u64(b + 48);
    r->hash = b + 64;
    r->required = kilni_u32(b + 100);
    r->optional = kilni_u32(b + 104);
    if (r->id == 0xFFFFFFFFu || r->type >= p->types || r->align < 4 || r->align > 12) return KILN_DAMAGED;
    if (r->codec > 2 || (r->codec == 2 && !p->sections[KILN_DICTIONARY].size)) return KILN_DAMAGED;
    if (r->codec ? r->size > KILNI_MAX_COMPRESSED : r->size != r->stored) return KILN_DAMAGED;
    return kilni_places(p, b, r) ? KILN_OK : KILN_DAMAGED;
}

KILN_API uint32_t kiln_need(const kiln_resource *r, uint32_t i) { return kilni_u32(r->needs + (size_t)4 * i); }

/* ---- look-ups ---- */

/* What is looked for: by the table it is the id, the UUID with sub, or the name. */
typedef struct kilni_query {
    int table;
    uint32_t key; /* in that table; the id itself */
    uint32_t sub;
    const uint8_t *bytes; /* of the UUID or the name */
    size_t size;
} kilni_query;

static int kilni_matches(const kilni_query *q, const kiln_resource *r) {
    switch (q->table) {
    case KILN_IDS: return r->id == q->key;
    case KILN_UUIDS: return r->sub == q->sub && memcmp(r->uuid, q->bytes, 16) == 0;
    }
    return r->name.size == q->size && memcmp(r->name.data, q->bytes, q->size) == 0;
}

/* kilni_look searches one parcel: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4), then entry after entry. */
static int kilni_look(const kiln_parcel *p, const kilni_query *q, kiln_resource *r) {
    const uint8_t *table = p->sections[q->table].data;
    uint32_t size = 1u << p->bits, at = q->key * 2654435769u >> (32 - p->bits), left;
    for (left = size; left; left--, at = (at + 1) & (size - 1)) {
        const uint8_t *entry = table + (size_t)8 * at;
        uint32_t index1 = kilni_u32(entry + 4);
        if (!index1) break;
        if (kilni_u32(entry) != q->key) continue;
        if (index1 > p->count || kiln_at(p, index1 - 1, r)) return KILN_DAMAGED;
        if (kilni_matches(q, r)) return KILN_OK;
    }
    return KILN_NOT_FOUND;
}

static int kilni_search(const kiln_parcel *p, const kilni_query *q, kiln_resource *r) {
    int error = KILN_NOT_FOUND;
    for (; p && error == KILN_NOT_FOUND; p = p->under) error = kilni_look(p, q, r);
    return error;
}

static kilni_query kilni_by_id(uint32_t id) {
    kilni_query q = {KILN_IDS, 0, 0, NULL, 0};
    q.key = id;
    return q;
}

static kilni_query kilni_by_uuid(const uint8_t *uuid, uint32_t sub) {
    kilni_query q = {KILN_UUIDS, 0, 0, NULL, 0};
    uint8_t b[20];
    int i;
    memcpy(b, uuid, 16);
    for (i = 0; i < 4; i++) b[16 + i] = (uint8_t)(sub >> 8 * i);
    q.key = kilni_murmur(b, sizeof b);
    q.sub = sub;
    q.bytes = uuid;
    return q;
}

static kilni_query kilni_by_name(const char *name, size_t size) {
    kilni_query q = {KILN_NAMES_TABLE, 0, 0, NULL, 0};
    q.bytes = (const uint8_t *)name;
    q.size = size;
    q.key = kilni_murmur(q.bytes, size);
    return q;
}

KILN_API int kiln_find(const kiln_parcel *p, uint32_t id, kiln_resource *r) {
    kilni_query q = kilni_by_id(id);
    return kilni_search(p, &q, r);
}

KILN_API int kiln_find_uuid(const kiln_parcel *p, const uint8_t uuid[16], uint32_t sub, kiln_resource *r) {
    kilni_query q = kilni_by_uuid(uuid, sub);
    return kilni_search(p, &q, r);
}

KILN_API int kiln_find_name(const kiln_parcel *p, const char *name, size_t size, kiln_resource *r) {
    kilni_query q = kilni_by_name(name, size);
    if (!size || size > KILNI_MAX_NAME) return KILN_NOT_FOUND; /* nothing has the empty name */
    return kilni_search(p, &q, r);
}

/* ---- checking ---- */

/* kilni_utf8 tells whether all is valid UTF-8 (RFC 3629) without a zero byte. */
static int kilni_utf8(const uint8_t *p, size_t n) {
    while (n) {
        uint32_t c = *p, least = 0;
        size_t more = 0, i;
        if (c == 0) return 0;
        if (c >= 0x80) {
            if (c < 0xC2 || c > 0xF4) return 0;
            more = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
            least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
            if (n <= more) return 0;
            c &= 0x3Fu >> more;
            for (i = 1; i <= more; i++) {
                if ((p[i] & 0xC0) != 0x80) return 0;
                c = c << 6 | (p[i] & 0x3Fu);
            }
            if (c < least || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
        }
        p += more + 1;
        n -= more + 1;
    }
    return 1;
}

static int kilni_zeros(const uint8_t *p, size_t n) {
    while (n && !*p) p++, n--;
    return n == 0;
}

static int kilni_check_types(const kiln_parcel *p) {
    const uint8_t *at = p->sections[KILN_TYPES].data, *next;
    uint32_t i;
    for (i = 1; i < p->types; i++, at = next) {
        uint32_t n = kilni_u16(at), m;
        int order;
        next = at + 2 + n;
        m = kilni_u16(next);
        order = memcmp(at + 2, next + 2, n < m ? n : m);
        if (order > 0 || (order == 0 && n >= m)) return KILN_DAMAGED;
    }
    return KILN_OK;
}

/* kilni_check_record: a look-up by anything that the record has must lead to it. */
static int kilni_check_record(const kiln_parcel *p, const kiln_resource *r) {
    kiln_resource found;
    kilni_query q = kilni_by_id(r->id);
    if (!kilni_utf8((const uint8_t *)r->name.data, r->name.size)) return KILN_DAMAGED;
    if (kilni_look(p, &q, &found) || found.index != r->index) return KILN_DAMAGED;
    q = kilni_by_uuid(r->uuid, r->sub);
    if (kilni_look(p, &q, &found) || found.index != r->index) return KILN_DAMAGED;
    if (!r->name.size) return KILN_OK;
    q = kilni_by_name(r->name.data, r->name.size);
    return kilni_look(p, &q, &found) || found.index != r->index ? KILN_DAMAGED : KILN_OK;
}

KILN_API int kiln_check(const kiln_parcel *p) {
    kiln_resource r;
    uint32_t i, before = 0;
    for (i = 0; i < KILN_SECTIONS; i++) {
        if (kilni_crc(p->sections[i].data, p->sections[i].size) != p->sections[i].crc) return KILN_DAMAGED;
    }
    if (kilni_check_types(p)) return KILN_DAMAGED;
    for (i = 0; i < p->count; i++) {
        if (i % KILNI_PAGE == 0) {
            size_t size;
            const uint8_t *page = kilni_page(p, i / KILNI_PAGE, &size), *entry = p->sections[KILN_DIRECTORY].data + (size_t)(i / KILNI_PAGE) * 16;
            if (!page || kilni_crc(page, size) != kilni_u32(entry + 8) || !kilni_zeros(entry + 12, 4)) return KILN_DAMAGED;
        }
        if (kiln_at(p, i, &r) || (i && r.id <= before) || !kilni_zeros(r.uuid - 8 + 108, KILNI_RECORD - 108)) return KILN_DAMAGED;
        before = r.id;
        if (kilni_check_record(p, &r)) return KILN_DAMAGED;
    }
    return KILN_OK;
}

/* ---- content ---- */

KILN_API int kiln_view(const kiln_resource *r, const void **content) {
    *content = NULL;
    if (r->codec) return KILN_COMPRESSED;
    if (kilni_crc(r->payload, (size_t)r->stored) != r->crc) return KILN_DAMAGED;
    *content = r->payload ? (const void *)r->payload : "";
    return KILN_OK;
}

KILN_API int kiln_read(const kiln_resource *r, void *to, size_t room, kiln_unpacker unpack, void *user) {
    const kiln_section *d = &r->parcel->sections[KILN_DICTIONARY];
    if (r->size > room) return KILN_ROOM;
    if (kilni_crc(r->payload, (size_t)r->stored) != r->crc) return KILN_DAMAGED;
    if (!r->codec) {
        if (r->size) memcpy(to, r->payload, (size_t)r->size);
        return KILN_OK;
    }
    if (!unpack) return KILN_COMPRESSED;
    if (r->codec == 1) return unpack(user, to, (size_t)r->size, r->payload, (size_t)r->stored, NULL, 0) == r->size ? KILN_OK : KILN_UNPACKING;
    return unpack(user, to, (size_t)r->size, r->payload, (size_t)r->stored, d->data, d->size) == r->size ? KILN_OK : KILN_UNPACKING;
}

/* ---- BLAKE3: the hash without a key, 32 bytes of it; section 2 of the BLAKE3 paper. One block at a time, 0.6 GB/s. ---- */

typedef struct kilni_hasher {
    uint32_t stack[54][8]; /* values of finished subtrees, the largest first: 2^54 chunks are 2^64 bytes */
    int depth;
    uint64_t chunk;    /* number of the chunk that is under way */
    uint32_t cv[8];    /* its chaining value */
    int blocks;        /* how many of its blocks are in that */
    uint8_t block[64]; /* the next one, which is held back: the last one of all is hashed in another way */
    size_t used;
} kilni_hasher;

static const uint32_t kilni_iv[8] = {0x6A09E667u, 0xBB67AE85u, 0x3C6EF372u, 0xA54FF53Au, 0x510E527Fu, 0x9B05688Cu, 0x1F83D9ABu, 0x5BE0CD19u};

/* Which word of the block each of the 16 places of a round takes: the permutation, applied 0 to 6 times. */
static const uint8_t kilni_schedule[7][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},  {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},  {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},  {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13},
};

#define KILNI_CHUNK_START 1u
#define KILNI_CHUNK_END 2u
#define KILNI_PARENT 4u
#define KILNI_ROOT 8u

#define KILNI_TURN(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define KILNI_G(a, b, c, d, i)                                                       \
    (a += b + m[s[i]], d = KILNI_TURN(d ^ a, 16), c += d, b = KILNI_TURN(b ^ c, 12), \
     a += b + m[s[(i) + 1]], d = KILNI_TURN(d ^ a, 8), c += d, b = KILNI_TURN(b ^ c, 7))

/* kilni_compress mixes a block into the chaining value cv. */
static void kilni_compress(uint32_t cv[8], const uint8_t block[64], uint64_t counter, size_t size, uint32_t flags) {
    uint32_t m[16], v[16];
    int i;
    for (i = 0; i < 16; i++) m[i] = kilni_u32(block + 4 * i);
    memcpy(v, cv, 32);
    memcpy(v + 8, kilni_iv, 16);
    v[12] = (uint32_t)counter;
    v[13] = (uint32_t)(counter >> 32);
    v[14] = (uint32_t)size;
    v[15] = flags;
    for (i = 0; i < 7; i++) {
        const uint8_t *s = kilni_schedule[i];
        KILNI_G(v[0], v[4], v[8], v[12], 0);
        KILNI_G(v[1], v[5], v[9], v[13], 2);
        KILNI_G(v[2], v[6], v[10], v[14], 4);
        KILNI_G(v[3], v[7], v[11], v[15], 6);
        KILNI_G(v[0], v[5], v[10], v[15], 8);
        KILNI_G(v[1], v[6], v[11], v[12], 10);
        KILNI_G(v[2], v[7], v[8], v[13], 12);
        KILNI_G(v[3], v[4], v[9], v[14], 14);
    }
    for (i = 0; i < 8; i++) cv[i] = v[i] ^ v[8 + i];
}

static void kilni_store(uint8_t to[32], const uint32_t cv[8]) {
    int i;
    for (i = 0; i < 32; i++) to[i] = (uint8_t)(cv[i / 4] >> 8 * (i % 4));
}

/* kilni_join makes the value of two subtrees of that of the right one. */
static void kilni_join(const uint32_t left[8], uint32_t right[8], uint32_t root) {
    uint8_t block[64];
    kilni_store(block, left);
    kilni_store(block + 32, right);
    memcpy(right, kilni_iv, 32);
    kilni_compress(right, block, 0, 64, KILNI_PARENT | root);
}

static void kilni_hash_begin(kilni_hasher *h) {
    memset(h, 0, sizeof *h);
    memcpy(h->cv, kilni_iv, 32);
}

/* kilni_hash_block mixes in the full block that was held back, and closes the chunk and all subtrees that are full with it. */
static void kilni_hash_block(kilni_hasher *h) {
    uint64_t done;
    uint32_t flags = (h->blocks == 0 ? KILNI_CHUNK_START : 0u) | (h->blocks == 15 ? KILNI_CHUNK_END : 0u);
    kilni_compress(h->cv, h->block, h->chunk, 64, flags);
    h->used = 0;
    if (++h->blocks < 16) return;
    for (done = ++h->chunk; !(done & 1); done >>= 1) kilni_join(h->stack[--h->depth], h->cv, 0);
    memcpy(h->stack[h->depth++], h->cv, 32);
    memcpy(h->cv, kilni_iv, 32);
    h->blocks = 0;
}

static void kilni_hash_add(kilni_hasher *h, const void *data, size_t size) {
    const uint8_t *p = (const uint8_t *)data;
    while (size) {
        size_t n;
        if (h->used == 64) kilni_hash_block(h);
        n = 64 - h->used < size ? 64 - h->used : size;
        memcpy(h->block + h->used, p, n);
        h->used += n;
        p += n;
        size -= n;
    }
}

static void kilni_hash_end(kilni_hasher *h, uint8_t hash[32]) {
    uint32_t flags = (h->blocks == 0 ? KILNI_CHUNK_START : 0u) | KILNI_CHUNK_END | (h->depth == 0 ? KILNI_ROOT : 0u);
    memset(h->block + h->used, 0, 64 - h->used);
    kilni_compress(h->cv, h->block, h->chunk, h->used, flags);
    while (h->depth--) kilni_join(h->stack[h->depth], h->cv, h->depth == 0 ? KILNI_ROOT : 0u);
    kilni_store(hash, h->cv);
}

KILN_API void kiln_hash(const void *data, size_t size, uint8_t hash[32]) {
    kilni_hasher h;
    kilni_hash_begin(&h);
    kilni_hash_add(&h, data, size);
    kilni_hash_end(&h, hash);
}

KILN_API int kiln_verify(const kiln_resource *r, const void *content, size_t size) {
    uint8_t hash[32];
    if (size != r->size) return KILN_DAMAGED;
    kiln_hash(content, size, hash);
    return memcmp(hash, r->hash, 32) == 0 ? KILN_OK : KILN_DAMAGED;
}

/* kilni_hash_text adds a text behind its length. */
static void kilni_hash_text(kilni_hasher *h, kiln_text text) {
    uint8_t size[2];
    size[0] = (uint8_t)text.size;
    size[1] = (uint8_t)(text.size >> 8);
    kilni_hash_add(h, size, 2);
    kilni_hash_add(h, text.data, text.size);
}

KILN_API int kiln_digest(const kiln_parcel *p, uint8_t digest[32]) {
    kilni_hasher h;
    kiln_resource r;
    uint32_t i;
    kilni_hash_begin(&h);
    for (i = 0; i < p->count; i++) {
        const uint8_t *record;
        int error = kiln_at(p, i, &r);
        if (error) return error;
        record = r.uuid - 8;
        kilni_hash_add(&h, record, 24); /* id, sub, UUID */
        kilni_hash_add(&h, record + 48, 8); /* size */
        kilni_hash_add(&h, record + 64, 32); /* hash */
        kilni_hash_text(&h, kiln_type(p, r.type));
        kilni_hash_text(&h, r.name);
        kilni_hash_add(&h, record + 100, 8); /* required, optional */
        kilni_hash_add(&h, r.needs, ((size_t)r.required + r.optional) * 4);
    }
    kilni_hash_end(&h, digest);
    return KILN_OK;
}

/* ---- what to load, and in which order ---- */

/*
 * The memory of an order is room ids, and behind them a table of 3 * room entries with the same ids, each plus one, 0 where it is empty: with a third of
 * them in use a look-up takes 1.3 steps. Ids get there when all they need is there; those that are under way are the frames of the calls.
 */
static uint32_t *kilni_place(const kiln_order *o, uint32_t id) {
    uint32_t *table = o->ids + o->room;
    size_t size = 3 * o->room, at = (size_t)((uint64_t)(id * 2654435769u) * size >> 32);
    while (table[at] && table[at] != id + 1) at = at + 1 == size ? 0 : at + 1;
    return table + at;
}

static int kilni_known(const kiln_order *o, uint32_t id) { return o->room && *kilni_place(o, id); }

KILN_API void kiln_order_begin(kiln_order *o, uint32_t *memory, size_t numbers) {
    o->ids = memory;
    o->count = 0;
    o->room = numbers / 4;
    o->looked = 0;
    if (o->room) memset(memory + o->room, 0, 3 * o->room * sizeof *memory);
}

typedef struct kilni_frame {
    uint32_t id;
    int depth;
    const struct kilni_frame *below;
} kilni_frame;

/* kilni_forget takes the list back to its first count ids. The entry that came last is in nobody's way, so it may simply be emptied. */
static void kilni_forget(kiln_order *o, size_t count) {
    while (o->count > count) *kilni_place(o, o->ids[--o->count]) = 0;
}

static int kilni_visit(kiln_order *o, const kiln_parcel *p, uint32_t id, int optional, const kilni_frame *below) {
    kiln_resource r;
    kilni_frame here;
    const kilni_frame *f;
    uint32_t i, all;
    int error = kiln_find(p, id, &r);
    if (error) return error;
    for (f = below; f; f = f->below) {
        if (f->id == id) return KILN_CIRCLE;
    }
    here.id = id;
    here.depth = below ? below->depth + 1 : 0;
    here.below = below;
    if (here.depth > KILNI_CHAIN) return KILN_CIRCLE;
    all = r.required + (optional ? r.optional : 0);
    o->looked += all;
    if (o->looked > KILNI_MAX_LOOKED) return KILN_CIRCLE;
    for (i = 0; i < all; i++) {
        uint32_t need = kiln_need(&r, i);
        size_t before = o->count;
        if (kilni_known(o, need)) continue;
        error = kilni_visit(o, p, need, optional, &here);
        if (!error) continue;
        if (i < r.required || error == KILN_ROOM || o->looked > KILNI_MAX_LOOKED) return error == KILN_NOT_FOUND ? KILN_MISSING : error;
        kilni_forget(o, before);
    }
    if (o->count == o->room) return KILN_ROOM;
    o->ids[o->count++] = id;
    *kilni_place(o, id) = id + 1;
    return KILN_OK;
}

KILN_API int kiln_order_add(kiln_order *o, const kiln_parcel *p, uint32_t id, int optional) {
    size_t before = o->count;
    int error = KILN_OK;
    o->looked = 0;
    if (!kilni_known(o, id)) error = kilni_visit(o, p, id, optional, NULL);
    if (error) kilni_forget(o, before);
    return error;
}

/* ---- files ---- */

#ifndef KILN_NO_FILES
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

KILN_API int kiln_map_file(const char *path, const void **data, size_t *size) {
    wchar_t wide[1024];
    HANDLE file, mapping = NULL;
    LARGE_INTEGER length;
    *data = NULL;
    *size = 0;
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 1024)) return KILN_FILE;
    file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) return KILN_FILE;
    length.QuadPart = 0;
    if (GetFileSizeEx(file, &length) && length.QuadPart > 0 && (uint64_t)length.QuadPart <= SIZE_MAX) {
        mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    }
    CloseHandle(file);
    if (!mapping) return length.QuadPart ? KILN_FILE : KILN_NOT_PARCEL;
    *data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, (SIZE_T)length.QuadPart);
    CloseHandle(mapping); /* the view holds it */
    if (!*data) return KILN_FILE;
    *size = (size_t)length.QuadPart;
    return KILN_OK;
}

KILN_API void kiln_unmap_file(const void *data, size_t size) {
    (void)size;
    if (data) UnmapViewOfFile(data);
}

#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

KILN_API int kiln_map_file(const char *path, const void **data, size_t *size) {
    struct stat info;
    void *block = MAP_FAILED;
    int file = open(path, O_RDONLY);
    *data = NULL;
    *size = 0;
    if (file < 0) return KILN_FILE;
    if (fstat(file, &info) || !S_ISREG(info.st_mode) || (uint64_t)info.st_size > SIZE_MAX) info.st_size = -1;
    if (info.st_size > 0) block = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (info.st_size == 0) return KILN_NOT_PARCEL;
    if (block == MAP_FAILED) return KILN_FILE;
    *data = block;
    *size = (size_t)info.st_size;
    return KILN_OK;
}

KILN_API void kiln_unmap_file(const void *data, size_t size) {
    if (data) munmap((void *)(uintptr_t)data, size);
}
#endif
#endif /* KILN_NO_FILES */

#endif /* KILN_IMPLEMENTED */
#endif /* KILN_IMPLEMENTATION */
