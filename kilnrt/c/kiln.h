/*
 * kiln.h reads parcels, the files in which Kiln packs the content of a game. It is C99 or C++, without dependencies,
 * and allocates no memory: a parcel is a block of your bytes, mapped or read. Results point into that block, or are
 * decompressed into memory of yours. docs/formats/parcel.md describes the format, docs/runtime-c.md the use of this
 * file.
 *
 * Include it where you need it, and in one file
 *
 *     #define KILN_IMPLEMENTATION
 *     #include "kiln.h"
 *
 * KILN_API may be defined before that (static, an export). KILN_NO_FILES leaves out the functions that map files.
 * Functions return KILN_OK, which is 0, or an error; kiln_words returns its text. A broken or hostile parcel gives at
 * worst an error: every offset is checked before it is used. All functions may be called by several threads at the same
 * time, because they write only to memory of the caller.
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
    KILN_NOT_FOUND,   /* it is in no mounted parcel */
    KILN_NOT_PARCEL,  /* the file is not a parcel, or both of its headers are broken */
    KILN_VERSION,     /* made for a newer reader */
    KILN_DAMAGED,     /* two parts contradict each other, or a checksum is wrong */
    KILN_COMPRESSED,  /* it must be decompressed: from kiln_view */
    KILN_UNPACKING,   /* decompression failed, or gave another size */
    KILN_ROOM,        /* the caller's memory is too small */
    KILN_MISSING,     /* a required resource is in no mounted parcel */
    KILN_CIRCLE,      /* resources need each other in a circle or in a chain longer than 1000, or there are more than a million needs */
    KILN_FILE,        /* the file cannot be opened or mapped */
    KILN_UNTRUSTED    /* the parcel is not signed, or not by this key */
};

/* kiln_words returns a short English text for an error. */
KILN_API const char *kiln_words(int error);

/* A text in a parcel: UTF-8, without a zero byte at its end. */
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

/* An open parcel. It need not be closed. The bytes must not move while it is used. */
typedef struct kiln_parcel {
    const uint8_t *data;
    uint64_t end;        /* size of the used part of the file, in bytes */
    uint64_t generation; /* increases with each change of the file */
    uint32_t count;      /* number of resources */
    uint32_t bits;       /* tables have 2^bits entries */
    uint32_t types;
    uint8_t digest[32]; /* the digest in the file: compare it with kiln_digest */
    kiln_section sections[KILN_SECTIONS];

    /*
     * The parcel where look-ups continue if this parcel has no such resource: set it to lay a patch, a mod or an
     * addition over the base.
     */
    const struct kiln_parcel *under;
} kiln_parcel;

typedef struct kiln_resource {
    const kiln_parcel *parcel; /* the parcel that contains it */
    uint32_t index;            /* in that parcel; resources are sorted by id */
    uint32_t id;
    uint32_t sub;        /* id of the product within its asset; 0 for the main one */
    const uint8_t *uuid; /* UUID of the asset: 16 bytes in the order in which they are printed */
    const uint8_t *hash; /* BLAKE3 hash of the content: 32 bytes */
    kiln_text name;
    uint64_t size;         /* of the content, in bytes */
    uint64_t stored;       /* size in the file, in bytes */
    const uint8_t *payload; /* the stored bytes, aligned within the file to 2^align */
    uint32_t crc;           /* CRC-32 of the stored bytes */
    uint32_t required;      /* number of resources that it requires */
    uint32_t optional;      /* number of further resources that it would use */
    const uint8_t *needs;   /* see kiln_need */
    uint16_t type;          /* see kiln_type */
    uint8_t codec;          /* 0: not compressed, 1: Zstandard, 2: Zstandard with the parcel's dictionary */
    uint8_t align;
} kiln_resource;

/*
 * kiln_open opens the parcel in the size bytes at data. It takes the same time for any parcel: all else is checked when
 * it is used, or by kiln_check. It sets under to NULL.
 */
KILN_API int kiln_open(kiln_parcel *parcel, const void *data, size_t size);

/* kiln_check checks a parcel against the specification, except the payloads. It reads only the index. */
KILN_API int kiln_check(const kiln_parcel *parcel);

/* kiln_at returns the resource at an index, 0 to count - 1, of this parcel only. */
KILN_API int kiln_at(const kiln_parcel *parcel, uint32_t index, kiln_resource *resource);

/*
 * Look-ups, in the parcel and then in those under it: KILN_NOT_FOUND if none has it. A broken entry is an error and
 * ends the search.
 */
KILN_API int kiln_find(const kiln_parcel *parcel, uint32_t id, kiln_resource *resource);
KILN_API int kiln_find_uuid(const kiln_parcel *parcel, const uint8_t uuid[16], uint32_t sub, kiln_resource *resource);
KILN_API int kiln_find_name(const kiln_parcel *parcel, const char *name, size_t size, kiln_resource *resource);

/*
 * kiln_type returns the text of a type. kiln_find_type returns the number of a text, or -1. Both go through the list of
 * types: call them once after opening, and then compare numbers. The numbers differ between parcels.
 */
KILN_API kiln_text kiln_type(const kiln_parcel *parcel, uint32_t type);
KILN_API int kiln_find_type(const kiln_parcel *parcel, const char *text, size_t size);

/* kiln_need returns the id of the i-th resource that it needs. i begins at 0; required ones come first, in load order. */
KILN_API uint32_t kiln_need(const kiln_resource *resource, uint32_t i);

/*
 * kiln_view returns a pointer to the content in the parcel, after checking its CRC. It returns KILN_COMPRESSED if the
 * content is compressed.
 */
KILN_API int kiln_view(const kiln_resource *resource, const void **content);

/*
 * A function that decompresses Zstandard into room bytes and returns the number of bytes written. Any other number is
 * an error. It replaces the decompressor of this file. dictionary is NULL or the parcel's. With the Zstandard library,
 * and a ZSTD_DCtx as user, it is one line:
 *
 *     return ZSTD_decompress_usingDict((ZSTD_DCtx *)user, to, room, from, size, dictionary, dictionary_size);
 */
typedef size_t (*kiln_unpacker)(void *user, void *to, size_t room, const void *from, size_t size, const void *dictionary, size_t dictionary_size);

/*
 * kiln_read writes the content, resource->size bytes, to memory of room bytes. It checks the CRC of the stored bytes
 * and decompresses them if necessary. unpack is another decompressor, or NULL. The one in this file takes 18 KB of
 * stack and no other memory, and supports what docs/formats/parcel.md allows: a dictionary, windows up to 8 MiB. After
 * an error the content of the memory is undefined.
 */
KILN_API int kiln_read(const kiln_resource *resource, void *to, size_t room, kiln_unpacker unpack, void *user);

/*
 * kiln_most returns the largest possible size of the content, computed from the stored bytes. A broken parcel may claim
 * that a few bytes expand to 256 MiB: if the size of a resource exceeds this limit, the claim is false, and no memory
 * need be allocated. It reads only the headers of blocks.
 */
KILN_API uint64_t kiln_most(const kiln_resource *resource);

/*
 * kiln_verify compares content with the hash of the resource, at about 0.6 GB/s. It is for patches; the CRC already
 * finds accidental damage.
 */
KILN_API int kiln_verify(const kiln_resource *resource, const void *content, size_t size);

/* kiln_hash computes the BLAKE3 hash of some bytes. */
KILN_API void kiln_hash(const void *data, size_t size, uint8_t hash[32]);

/*
 * kiln_digest computes the digest of the content, which is the value that is signed. If it is equal to parcel->digest,
 * the index is unchanged; together with kiln_verify of each content, the whole content is.
 */
KILN_API int kiln_digest(const kiln_parcel *parcel, uint8_t digest[32]);

/*
 * A function that verifies an Ed25519 signature of size bytes by a public key of 32 bytes. It returns 1 if it is valid,
 * else 0. With libsodium it is one line:
 *
 *     return crypto_sign_verify_detached(signature, message, size, key) == 0;
 */
typedef int (*kiln_ed25519)(void *user, const uint8_t signature[64], const uint8_t *message, size_t size, const uint8_t key[32]);

/*
 * kiln_trust verifies a parcel with a public key of minisign, the second line of a .pub file: the signature of the
 * digest, the index itself (kiln_check), and the digest of the index. It returns KILN_UNTRUSTED or KILN_DAMAGED if that
 * fails. Afterwards, content that passes kiln_verify was signed by the key's owner.
 */
KILN_API int kiln_trust(const kiln_parcel *parcel, const char *key, kiln_ed25519 verify, void *user);

/*
 * kiln_same reports whether two resources can share one loaded value: they have the same parcel, type and place, and
 * need nothing. A texture that a hundred models share is then one texture on the graphics card. Such resources have the
 * same `payload`.
 */
KILN_API int kiln_same(const kiln_resource *a, const kiln_resource *b);

/* A load order, see kiln_order_add. */
typedef struct kiln_order {
    uint32_t *ids; /* count ids, each after all that it needs */
    size_t count;
    size_t room;
    size_t looked; /* number of needs that the last call looked up */
} kiln_order;

/* kiln_order_begin empties the list. memory is the caller's, 16 bytes for each resource that may be loaded. */
KILN_API void kiln_order_begin(kiln_order *order, uint32_t *memory, size_t numbers);

/*
 * kiln_order_add appends a resource after all that it requires, except those in the list already. With optional it also
 * appends optional needs that are mounted and can be loaded: "Load order" in docs/formats/parcel.md. After an error the
 * list is unchanged.
 */
KILN_API int kiln_order_add(kiln_order *order, const kiln_parcel *parcel, uint32_t id, int optional);

#ifndef KILN_NO_FILES
/* kiln_map_file maps a whole file read-only (POSIX, Windows). The path is UTF-8. An empty file gives KILN_NOT_PARCEL. */
KILN_API int kiln_map_file(const char *path, const void **data, size_t *size);
KILN_API void kiln_unmap_file(const void *data, size_t size);
#endif

/*
 * ---- live: content as it is built, for development ----
 *
 * The following functions are the game's side of `kiln serve`: content without parcels, replaced while the game runs.
 * docs/formats/live.md describes the protocol, docs/live.md the use. Unlike the functions above, they use sockets and
 * allocate memory (KILN_LIVE_REALLOC(p, size) and KILN_LIVE_FREE(p) may be defined). Therefore the implementation is
 * included only if KILN_LIVE_IMPLEMENTATION is defined besides KILN_IMPLEMENTATION. On Windows link ws2_32.
 *
 *     kiln_live *live = kiln_live_open(&options);
 *     kiln_live_use_name(live, "sprites/tank.png");
 *     for (;;) { kiln_live_poll(live); ... kiln_live_value(live, kiln_live_find_name(live, "sprites/tank.png")) ... }
 *
 * All calls must be made by one thread. Only kiln_live_wait blocks, and kiln_live_open if it has to look up a host
 * name.
 */

/* A resource of the watcher. The pointer is valid until the next kiln_live_poll. */
typedef struct kiln_live_resource {
    uint32_t id;
    uint32_t sub;      /* id of the product within its asset; 0 for the main one */
    uint8_t uuid[16];  /* UUID of the asset */
    uint8_t hash[32];  /* BLAKE3 hash of the content */
    uint64_t size;     /* of the content, in bytes */
    const char *name;  /* the asset's id, and ID#NAME for a product with its own name */
    const char *type;  /* product type, such as "texture" */
    const uint32_t *needs; /* ids; required ones first, in load order */
    uint32_t required;
    uint32_t optional;
} kiln_live_resource;

typedef struct kiln_live kiln_live;

/* A message of a failed asset. A text is "", and a number 0, if there is none. */
typedef struct kiln_live_message {
    const char *severity; /* error, warning or note */
    const char *code;     /* such as K0201 */
    const char *file;     /* where it is */
    uint32_t line, column;
    const char *text;     /* what is wrong */
    const char *hint;     /* what to do next */
} kiln_live_message;

/* What notify reports. All pointers are valid during the call only. */
typedef struct kiln_live_event {
    const char *type;   /* connected, disconnected, failed, mended or refused */
    const char *asset;  /* failed, mended: the asset; else "" */
    const char *reason; /* refused: why; else "" */
    int resumed;        /* connected: what failed still fails. Otherwise forget that: failed is reported again for each asset that fails */
    const kiln_live_message *messages; /* failed: why; none if the messages are those of an asset that it needs */
    size_t count;
} kiln_live_event;

typedef struct kiln_live_options {
    const char *address;  /* of the watcher: host and port, with or without http://; NULL means "127.0.0.1:7171"; host names: see kiln_live_open */
    const char *token;    /* if the watcher listens beyond this machine; else NULL */
    const char *game;     /* name for the dashboard, or NULL */
    const char *platform; /* platform of the content; NULL means the project's first */
    void *user;           /* passed to the functions below */

    /*
     * load converts a resource to what the game uses, and stores it in *value, which contains the old value (NULL the
     * first time). kiln_live_poll calls it in load order: with the content for a resource that is new or has changed,
     * and with data NULL if only something that the resource needs has changed. data is valid only during the call.
     * None of these functions may be left by an exception or longjmp. A result other than 0 is a refusal: *value must
     * be unchanged, and stays in use. load itself must unload the old value. If something that a value needs was
     * replaced, load is called with data NULL also if the value is of a version that the watcher no longer has, because
     * a newer one was refused or the resource was removed: resource then has the needs of that version.
     */
    int (*load)(void *user, kiln_live *live, const kiln_live_resource *resource, const void *data, size_t size, void **value);

    /* unload frees the value of a resource that is not used any more. NULL: nothing is called. */
    void (*unload)(void *user, kiln_live *live, const kiln_live_resource *resource, void *value);

    /* notify reports events. NULL: nothing is called. */
    void (*notify)(void *user, kiln_live *live, const kiln_live_event *event);

    /*
     * For how many milliseconds nothing may come from the watcher, not even its sign of life, until the connection
     * counts as broken. 0 means 60000.
     */
    int patience;
} kiln_live_options;

/*
 * kiln_live_open begins to connect. The texts of the options must stay valid. It returns NULL if the address is not
 * valid, or there is no memory. A numeric address or localhost takes no time. Another name is looked up by the system,
 * which may take many seconds: open it on another thread, and then use it on one thread.
 */
KILN_API kiln_live *kiln_live_open(const kiln_live_options *options);

/*
 * kiln_live_close unloads everything and ends the connection. If it is called in load, unload or notify, that happens
 * after these have returned: afterwards only unload is called, and the kiln_live is freed when kiln_live_poll returns.
 */
KILN_API void kiln_live_close(kiln_live *live);

/*
 * kiln_live_poll applies the changes that have arrived: call it once a frame. It never blocks. It returns the number of
 * resources that were loaded, notified or refused, which is usually 0. Related changes are applied together, after the
 * content of the last one has arrived.
 */
KILN_API int kiln_live_poll(kiln_live *live);

/*
 * kiln_live_wait waits until there is something to do for kiln_live_poll, at most this many milliseconds: for loading
 * screens and tools. It needs no processor time. Call kiln_live_poll afterwards.
 */
KILN_API void kiln_live_wait(kiln_live *live, int milliseconds);

/* kiln_live_ready reports whether the list of resources and all content in use have arrived. */
KILN_API int kiln_live_ready(const kiln_live *live);

/* Look-ups. NULL if there is no such resource. kiln_live_find also finds one that was removed, as long as it is loaded. */
KILN_API const kiln_live_resource *kiln_live_find(const kiln_live *live, uint32_t id);
KILN_API const kiln_live_resource *kiln_live_find_uuid(const kiln_live *live, const uint8_t uuid[16], uint32_t sub);
KILN_API const kiln_live_resource *kiln_live_find_name(const kiln_live *live, const char *name);

/*
 * kiln_live_count returns the number of resources, kiln_live_at one of them by a number from 0, in no fixed order. NULL
 * means that it was removed.
 */
KILN_API size_t kiln_live_count(const kiln_live *live);
KILN_API const kiln_live_resource *kiln_live_at(const kiln_live *live, size_t index);

/*
 * kiln_live_use makes later polls load a resource and all that it needs, and keep them up to date. If there is no
 * resource of a name, the watcher is asked to build it, and it is used when it arrives. The watcher is not asked for
 * ids: before its first build has ended, an id may be unknown. Each use needs an unuse. A name stays the same when the
 * watcher is restarted, an id may not. A resource stays loaded until it is not used, and nothing that is loaded needs
 * it, also if the watcher no longer has it. Returns KILN_NOT_FOUND, KILN_ROOM (no memory) or KILN_OK.
 */
KILN_API int kiln_live_use(kiln_live *live, uint32_t id);
KILN_API int kiln_live_use_name(kiln_live *live, const char *name);
KILN_API int kiln_live_unuse(kiln_live *live, uint32_t id);
KILN_API int kiln_live_unuse_name(kiln_live *live, const char *name);

/* kiln_live_value returns the value of a resource from load, or NULL if it is not loaded (yet). */
KILN_API void *kiln_live_value(const kiln_live *live, const kiln_live_resource *resource);

/*
 * kiln_live_log writes a line to the dashboard; level is debug, info, warning or error. The line is lost if there is no
 * connection.
 */
KILN_API void kiln_live_log(kiln_live *live, const char *level, const char *text);

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
    case KILN_COMPRESSED: return "the resource is compressed, and does not lie there as it is";
    case KILN_UNPACKING: return "the resource cannot be decompressed";
    case KILN_ROOM: return "the memory handed over is too small";
    case KILN_MISSING: return "a resource that is required is in no mounted parcel";
    case KILN_CIRCLE: return "resources require each other in a circle, or in a chain that is too long";
    case KILN_FILE: return "the file cannot be opened";
    case KILN_UNTRUSTED: return "the parcel is not signed by this key";
    }
    return "an error that is not Kiln's";
}

/* ---- numbers, CRC-32 and MurmurHash3 ---- */

static uint32_t kilni_u16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t kilni_u32(const uint8_t *p) { return kilni_u16(p) | kilni_u16(p + 2) << 16; }
static uint64_t kilni_u64(const uint8_t *p) { return kilni_u32(p) | (uint64_t)kilni_u32(p + 4) << 32; }

/* CRC-32 of a word where only the i-th four bits are set: 8 x 16 numbers, so that four bytes are eight independent look-ups. */
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

/*
 * kilni_open_section reads section i from its 24 bytes. The size must be exact for the first four sections, and at most
 * most for the others.
 */
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

/* kilni_walk_types skips n types and returns the start of the next one, or NULL if one is not valid. */
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

/* kilni_page returns the k-th page of records and its size, or NULL if the place in the directory is not valid. */
static const uint8_t *kilni_page(const kiln_parcel *p, uint32_t k, size_t *size) {
    uint64_t offset = kilni_u64(p->sections[KILN_DIRECTORY].data + (size_t)16 * k);
    uint32_t left = p->count - k * KILNI_PAGE;
    *size = (size_t)KILNI_RECORD * (left < KILNI_PAGE ? left : KILNI_PAGE);
    if (offset < KILNI_START || offset % 16 || offset > p->end || *size > p->end - offset) return NULL;
    return p->data + (size_t)offset;
}

/* kilni_places reads the positions in a record, and reports whether all of them are valid. */
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

/* The key to search, by table: the id, the UUID with sub, or the name. */
typedef struct kilni_query {
    int table;
    uint32_t key; /* key in that table; for ids the id itself */
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

/* kilni_look searches one parcel: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4), then linear probing. */
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
    if (!size || size > KILNI_MAX_NAME) return KILN_NOT_FOUND; /* no resource has an empty name */
    return kilni_search(p, &q, r);
}

/* ---- checking ---- */

/* kilni_utf8 reports whether the text is valid UTF-8 (RFC 3629) without a zero byte. */
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

/* kilni_check_record checks that a look-up by each key of the record finds it. */
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

/*
 * ---- Zstandard (RFC 8878): one pass, directly into the memory of the content, 18 KB of stack ----
 *
 * The literals of a block are decoded to the end of the block's room, and sequences move them from there. The rest of
 * the block's output always fits into the space before the unread literals, so these are not overwritten.
 */

#define KILNI_BLOCK ((size_t)1 << 17) /* most content of a block */
#define KILNI_WINDOW ((uint64_t)8 << 20)
#define KILNI_LETTERS 11 /* bits of the longest Huffman code */
#define KILNI_STATES 9   /* bits of the largest table of states */

enum { KILNI_LITERAL, KILNI_OFFSET, KILNI_MATCH, KILNI_WEIGHT };

/* The meaning of a state: the number base plus extra bits; and the next state: next plus bits. */
typedef struct kilni_cell {
    uint16_t next;
    uint8_t bits, extra;
    uint32_t base;
} kilni_cell;

typedef struct kilni_zstd {
    kilni_cell cells[3][1 << KILNI_STATES]; /* of literal lengths, offsets, match lengths */
    int logs[3];                            /* -1: no table yet */
    uint16_t letters[1 << KILNI_LETTERS];   /* letter * 256 + bits of its code */
    unsigned letter_bits;                   /* 0: none yet */
    uint32_t offsets[3];                    /* repeat offsets */
    const uint8_t *dictionary;              /* content of the dictionary */
    size_t dictionary_size;
    uint8_t *begin, *at, *end; /* content of the frame: begin, current position, end of the room */
    size_t window, most;       /* window size; most content of a block */
    uint8_t *stop;             /* end of the room of the block */
    const uint8_t *literals, *literals_end;
    int inside; /* the literals are at stop */
} kilni_zstd;

/* kilni_high returns the position of the highest bit of a number other than 0. */
static unsigned kilni_high(uint32_t x) {
#if defined(__GNUC__)
    return 31u - (unsigned)__builtin_clz(x);
#else
    unsigned n = 0;
    while (x >>= 1) n++;
    return n;
#endif
}

/* Bits read from the end of some bytes towards their begin. If too many were read, used is above 64. */
typedef struct kilni_bits {
    const uint8_t *begin, *at; /* value has the 8 bytes at at, or fewer if there are fewer */
    uint64_t value;
    unsigned used; /* bits of value used, from the highest on */
} kilni_bits;

static int kilni_bits_begin(kilni_bits *b, const uint8_t *p, size_t n) {
    size_t i;
    if (!n || !p[n - 1]) return 0; /* the highest bit of the last byte marks the end of the bits */
    b->begin = b->at = p;
    b->value = 0;
    b->used = 8 - kilni_high(p[n - 1]);
    if (n >= 8) {
        b->at = p + n - 8;
        b->value = kilni_u64(b->at);
        return 1;
    }
    for (i = 0; i < n; i++) b->value |= (uint64_t)p[i] << 8 * i;
    b->used += 8 * (unsigned)(8 - n);
    return 1;
}

/* kilni_more makes at least 57 bits available, if there are so many. It returns 0 if too many were read. */
static int kilni_more(kilni_bits *b) {
    size_t n = b->used >> 3;
    if (b->used > 64) return 0;
    if (b->at == b->begin) return 1;
    if (n > (size_t)(b->at - b->begin)) n = (size_t)(b->at - b->begin);
    b->at -= n;
    b->used -= 8 * (unsigned)n;
    b->value = kilni_u64(b->at);
    return 1;
}

static uint32_t kilni_look_bits(const kilni_bits *b, unsigned n) { return (uint32_t)(b->value << (b->used & 63) >> 1 >> (63 - n)); }

static uint32_t kilni_take_bits(kilni_bits *b, unsigned n) {
    uint32_t v = kilni_look_bits(b, n);
    b->used += n;
    return v;
}

static int kilni_all_taken(const kilni_bits *b) { return b->at == b->begin && b->used == 64; }

/* kilni_forward returns 25 bits from a bit position, in the order of the bytes. After the end there are zeros. */
static uint32_t kilni_forward(const uint8_t *p, size_t size, size_t at) {
    uint32_t v = 0;
    size_t i;
    for (i = 0; i < 4 && (at >> 3) + i < size; i++) v |= (uint32_t)p[(at >> 3) + i] << 8 * i;
    return v >> (at & 7);
}

/*
 * kilni_chances reads the probabilities of symbols, where -1 is "less than 1". It returns the number of bytes, or 0 if
 * they are not valid.
 */
static size_t kilni_chances(const uint8_t *p, size_t size, int16_t chances[256], unsigned *count, unsigned *log, unsigned most) {
    size_t at = 4;
    uint32_t left, zeros = 0;
    unsigned n = 0;
    if (!size) return 0;
    *log = 5 + (p[0] & 15u);
    if (*log > most) return 0;
    left = 1u << *log;
    while (left && n < 256 && at >> 3 < size) {
        unsigned bits = kilni_high(left + 1) + 1;
        uint32_t v = kilni_forward(p, size, at) & ((1u << bits) - 1), low = v & ((1u << (bits - 1)) - 1), short_ones = (1u << bits) - 2 - left;
        if (low < short_ones) v = low, bits--;
        else if (v != low) v -= short_ones;
        at += bits;
        chances[n++] = (int16_t)((int)v - 1);
        left -= v ? v - 1 : 1;
        if (v != 1) continue;
        do { /* two bits with the number of further zeros; 3 means that two more bits follow */
            zeros = kilni_forward(p, size, at) & 3;
            at += 2;
            if (n + zeros > 256) return 0;
            memset(chances + n, 0, zeros * sizeof *chances);
            n += zeros;
        } while (zeros == 3);
    }
    *count = n;
    return left || n < 2 || at > 8 * size ? 0 : (at + 7) >> 3;
}

/* kilni_meanings replaces the symbols in the base of cells by their meaning. */
static int kilni_meanings(kilni_cell *cells, unsigned count, int kind) {
    static const uint8_t literal[36] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint8_t match[53] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                      0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    const uint8_t *extra = kind == KILNI_LITERAL ? literal : match;
    uint32_t bases[53], base = kind == KILNI_LITERAL ? 0 : 3;
    unsigned i, last = kind == KILNI_LITERAL ? 35 : kind == KILNI_OFFSET ? 31 : 52;
    if (kind == KILNI_WEIGHT) return 1;
    for (i = 0; kind != KILNI_OFFSET && i <= last; base += 1u << extra[i++]) bases[i] = base;
    for (i = 0; i < count; i++) {
        uint32_t symbol = cells[i].base;
        if (symbol > last) return 0;
        cells[i].extra = (uint8_t)(kind == KILNI_OFFSET ? symbol : extra[symbol]);
        cells[i].base = kind == KILNI_OFFSET ? 1u << symbol : bases[symbol];
    }
    return 1;
}

/* kilni_states makes a table of 2^log states (RFC 8878, 4.1.1). */
static int kilni_states(kilni_cell *cells, const int16_t *chances, unsigned count, unsigned log, int kind) {
    uint16_t seen[256];
    uint32_t size = 1u << log, high = size, at = 0, i;
    unsigned n;
    for (n = 0; n < count; n++) {
        seen[n] = (uint16_t)(chances[n] < 0 ? 1 : chances[n]);
        if (chances[n] < 0) cells[--high].base = n;
    }
    for (n = 0; n < count; n++) {
        int k;
        for (k = 0; k < chances[n]; k++) {
            cells[at].base = n;
            do at = (at + (size >> 1) + (size >> 3) + 3) & (size - 1);
            while (at >= high);
        }
    }
    for (i = 0; i < size; i++) {
        uint32_t x = seen[cells[i].base]++;
        unsigned bits = log - kilni_high(x);
        cells[i].bits = (uint8_t)bits;
        cells[i].next = (uint16_t)((x << bits) - size);
        cells[i].extra = 0;
    }
    return kilni_meanings(cells, size, kind);
}

/* kilni_weights reads compressed weights and returns their number, or 0 if they are not valid. */
static unsigned kilni_weights(const uint8_t *p, size_t size, uint8_t weights[256]) {
    kilni_cell cells[64];
    int16_t chances[256];
    unsigned count, log, n = 0, turn;
    kilni_bits b;
    uint32_t states[2];
    size_t head = kilni_chances(p, size, chances, &count, &log, 6);
    if (!head || !kilni_states(cells, chances, count, log, KILNI_WEIGHT) || !kilni_bits_begin(&b, p + head, size - head)) return 0;
    states[0] = kilni_take_bits(&b, log);
    states[1] = kilni_take_bits(&b, log);
    if (!kilni_more(&b)) return 0;
    for (turn = 0; n < 254; turn ^= 1) { /* two states alternate; the first one that needs bits when there are none ends the list */
        const kilni_cell *c = &cells[states[turn]];
        weights[n++] = (uint8_t)c->base;
        if (c->bits && kilni_all_taken(&b)) {
            weights[n++] = (uint8_t)cells[states[turn ^ 1]].base;
            return n;
        }
        states[turn] = c->next + kilni_take_bits(&b, c->bits);
        if (!kilni_more(&b)) return 0;
    }
    return 0;
}

/* kilni_tree reads the Huffman codes, and returns the number of bytes, or 0 if they are not valid. */
static size_t kilni_tree(kilni_zstd *z, const uint8_t *p, size_t size) {
    uint8_t weights[256];
    uint32_t starts[KILNI_LETTERS + 2] = {0}, total = 0, rest, at;
    size_t used;
    unsigned n, i, log;
    if (size < 2) return 0;
    used = p[0] < 128 ? p[0] : (p[0] - 126u) / 2;
    if (used > size - 1) return 0;
    if (p[0] < 128) n = kilni_weights(p + 1, used, weights);
    else for (n = 0; n < p[0] - 127u; n++) weights[n] = n & 1 ? p[1 + n / 2] & 15 : p[1 + n / 2] >> 4;
    for (i = 0; i < n; i++) {
        if (weights[i] > KILNI_LETTERS) return 0;
        if (weights[i]) total += 1u << (weights[i] - 1);
    }
    if (!total || total >= 1u << KILNI_LETTERS) return 0;
    log = kilni_high(total) + 1;
    rest = (1u << log) - total; /* weight of the last symbol, which is not stored */
    if (rest & (rest - 1)) return 0;
    weights[n++] = (uint8_t)(kilni_high(rest) + 1);
    for (i = 0; i < n; i++) starts[weights[i]]++;
    if (starts[1] < 2 || starts[1] & 1) return 0;
    for (i = 1, at = 0; i <= log; i++) {
        uint32_t next = at + (starts[i] << (i - 1));
        starts[i] = at;
        at = next;
    }
    for (i = 0; i < n; i++) {
        unsigned w = weights[i];
        uint32_t k, entries = w ? 1u << (w - 1) : 0;
        for (k = 0; k < entries; k++) z->letters[starts[w] + k] = (uint16_t)(i << 8 | (log + 1 - w));
        starts[w] += entries;
    }
    z->letter_bits = log;
    return 1 + used;
}

#define KILNI_LETTER(b, to)                                                          \
    do {                                                                             \
        uint32_t code = z->letters[(b).value << ((b).used & 63) >> (64 - z->letter_bits)]; \
        *(to)++ = (uint8_t)(code >> 8);                                              \
        (b).used += code & 255;                                                      \
    } while (0)

/* kilni_stream decodes the letters of one stream to its end. */
static int kilni_stream(const kilni_zstd *z, kilni_bits b, uint8_t *to, const uint8_t *end) {
    while (to < end) {
        if (!kilni_more(&b)) return 0;
        KILNI_LETTER(b, to);
    }
    return kilni_all_taken(&b) || (kilni_more(&b) && kilni_all_taken(&b));
}

/* kilni_four decodes four streams in parallel, while each of them has enough data. */
static int kilni_four(const kilni_zstd *z, const uint8_t *p, size_t size, uint8_t *to, size_t room) {
    kilni_bits b[4];
    uint8_t *at[4], *end = to + room;
    size_t part = (room + 3) / 4, i, left = size - 6;
    if (size < 10 || 3 * part > room) return 0;
    for (i = 0; i < 4; i++) {
        size_t n = i < 3 ? kilni_u16(p + 2 * i) : left;
        if (n > left || !kilni_bits_begin(&b[i], p + size - left, n)) return 0;
        left -= n;
        at[i] = to + i * part;
    }
    while (end - at[3] >= 5 && b[0].at - b[0].begin >= 8 && b[1].at - b[1].begin >= 8 && b[2].at - b[2].begin >= 8 && b[3].at - b[3].begin >= 8) {
        int k;
        for (k = 0; k < 4; k++) kilni_more(&b[k]);
        for (k = 0; k < 5; k++) {
            KILNI_LETTER(b[0], at[0]);
            KILNI_LETTER(b[1], at[1]);
            KILNI_LETTER(b[2], at[2]);
            KILNI_LETTER(b[3], at[3]);
        }
    }
    for (i = 0; i < 4; i++) {
        if (!kilni_stream(z, b[i], at[i], i < 3 ? to + (i + 1) * part : end)) return 0;
    }
    return 1;
}

/* kilni_literals finds or decodes the literals of a block, and returns the number of bytes, or 0 if they are not valid. */
static size_t kilni_literals(kilni_zstd *z, const uint8_t *p, size_t size) {
    static const uint8_t heads[2][4] = {{1, 2, 1, 3}, {3, 3, 4, 5}};
    unsigned kind = p[0] & 3u, form = p[0] >> 2 & 3u;
    size_t head = heads[kind > 1][form], count, used;
    uint64_t v = 0;
    size_t i;
    if (head > size) return 0;
    for (i = 0; i < head; i++) v |= (uint64_t)p[i] << 8 * i;
    if (kind < 2) {
        count = (size_t)(v >> (form & 1 ? 4 : 3));
        used = kind ? 1 : count;
    } else {
        unsigned bits = form < 2 ? 10 : form == 2 ? 14 : 18;
        count = (size_t)(v >> 4) & (((size_t)1 << bits) - 1);
        used = (size_t)(v >> (4 + bits));
    }
    if (used > size - head || count > (size_t)(z->stop - z->at)) return 0;
    p += head;
    z->inside = kind != 0;
    z->literals = kind ? z->stop - count : p;
    z->literals_end = z->literals + count;
    if (kind == 1) memset(z->stop - count, p[0], count);
    if (kind > 1) {
        size_t tree = kind == 2 ? kilni_tree(z, p, used) : 0;
        kilni_bits b;
        if (!z->letter_bits || (kind == 2 && !tree)) return 0;
        if (form == 0) {
            if (!kilni_bits_begin(&b, p + tree, used - tree) || !kilni_stream(z, b, z->stop - count, z->stop)) return 0;
        } else if (!kilni_four(z, p + tree, used - tree, z->stop - count, count)) return 0;
    }
    return head + used;
}

/* kilni_table reads the table of one of the three kinds, and returns the number of bytes, or -1 if it is not valid. */
static int kilni_table(kilni_zstd *z, int kind, unsigned mode, const uint8_t *p, size_t size) {
    static const int16_t usual[3][53] = {
        {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
        {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
        {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
         1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}};
    static const unsigned counts[3] = {36, 29, 53}, logs[3] = {6, 5, 6};
    int16_t chances[256];
    unsigned count, log;
    size_t used;
    switch (mode) {
    case 0:
        z->logs[kind] = (int)logs[kind];
        kilni_states(z->cells[kind], usual[kind], counts[kind], logs[kind], kind);
        return 0;
    case 1:
        if (!size) return -1;
        memset(&z->cells[kind][0], 0, sizeof z->cells[kind][0]);
        z->cells[kind][0].base = p[0];
        z->logs[kind] = 0;
        return kilni_meanings(z->cells[kind], 1, kind) ? 1 : -1;
    case 2:
        used = kilni_chances(p, size, chances, &count, &log, KILNI_STATES);
        if (!used || !kilni_states(z->cells[kind], chances, count, log, kind)) return -1;
        z->logs[kind] = (int)log;
        return (int)used;
    }
    return z->logs[kind] < 0 ? -1 : 0;
}

/* kilni_offset converts an offset's number to a distance, and updates the repeat offsets. */
static uint32_t kilni_offset(uint32_t offsets[3], uint32_t number, int no_literals) {
    uint32_t offset;
    if (number > 3) offset = number - 3;
    else {
        uint32_t which = number - 1 + (no_literals ? 1u : 0u);
        offset = which == 3 ? offsets[0] - 1 : offsets[which];
        if (!offset) offset = 1;
        if (which == 0) return offset;
        if (which == 1) {
            offsets[1] = offsets[0];
            return offsets[0] = offset;
        }
    }
    offsets[2] = offsets[1];
    offsets[1] = offsets[0];
    return offsets[0] = offset;
}

/* kilni_repeat copies n bytes from the distance back. It may write anything up to stop. */
static void kilni_repeat(uint8_t *to, size_t back, size_t n, const uint8_t *stop) {
    const uint8_t *from = to - back;
    uint8_t *end = to + n;
    if ((size_t)(stop - to) < n + 16) {
        while (to < end) *to++ = *from++;
        return;
    }
    if (back >= 16) {
        do memcpy(to, from, 16), to += 16, from += 16;
        while (to < end);
        return;
    }
    if (back < 8) { /* after eight bytes the pattern is repeated often enough to copy from at least eight bytes back */
        int i;
        for (i = 0; i < 8; i++) to[i] = from[i];
        to += 8;
        from = to - (7 + back) / back * back;
    }
    for (; to < end; to += 8, from += 8) memcpy(to, from, 8);
}

/* kilni_match copies a match, which may begin in the dictionary. It returns 0 if the match is not valid. */
static int kilni_match(const kilni_zstd *z, uint8_t *to, size_t back, size_t n, const uint8_t *stop) {
    size_t made = (size_t)(to - z->begin);
    if (back <= made) {
        if (back > z->window) return 0;
    } else {
        size_t before = back - made, from_it = before < n ? before : n;
        if (before > z->dictionary_size) return 0;
        memcpy(to, z->dictionary + (z->dictionary_size - before), from_it);
        to += from_it;
        n -= from_it;
        if (!n) return 1;
    }
    kilni_repeat(to, back, n, stop);
    return 1;
}

/* kilni_sequences writes the content of a block: literals and matches in turn. */
static int kilni_sequences(kilni_zstd *z, uint32_t count, const uint8_t *p, size_t size) {
    const uint8_t *literals = z->literals, *literals_end = z->literals_end, *stop = z->inside ? literals : z->stop;
    const kilni_cell *l, *o, *m;
    uint8_t *to = z->at;
    kilni_bits b;
    if (!kilni_bits_begin(&b, p, size)) return 0;
    l = z->cells[KILNI_LITERAL] + kilni_take_bits(&b, (unsigned)z->logs[KILNI_LITERAL]);
    o = z->cells[KILNI_OFFSET] + kilni_take_bits(&b, (unsigned)z->logs[KILNI_OFFSET]);
    m = z->cells[KILNI_MATCH] + kilni_take_bits(&b, (unsigned)z->logs[KILNI_MATCH]);
    for (;;) {
        uint32_t number, n, back, more = (uint32_t)o->extra + m->extra + l->extra;
        size_t letters;
        if (!kilni_more(&b)) return 0;
        number = o->base + kilni_take_bits(&b, o->extra);
        if (more > 31 && !kilni_more(&b)) return 0;
        n = m->base + kilni_take_bits(&b, m->extra);
        letters = l->base + kilni_take_bits(&b, l->extra);
        back = kilni_offset(z->offsets, number, letters == 0);
        if (letters > (size_t)(literals_end - literals) || (!z->inside && letters > (size_t)(stop - to))) return 0;
        if (letters <= 16 && literals_end - literals >= 16 && (z->inside ? literals : stop) - to >= 16) memcpy(to, literals, 16);
        else memmove(to, literals, letters);
        to += letters;
        literals += letters;
        if (z->inside) stop = literals;
        if (n > (size_t)(stop - to)) return 0;
        if (back >= 16 && back <= (size_t)(to - z->begin) && back <= z->window && (size_t)(stop - to) >= (size_t)n + 16) {
            const uint8_t *from = to - back;
            uint8_t *end = to + n;
            do memcpy(to, from, 16), to += 16, from += 16;
            while (to < end);
            to = end;
        } else {
            if (!kilni_match(z, to, back, n, stop)) return 0;
            to += n;
        }
        if (!--count) break;
        if (more > 31 && !kilni_more(&b)) return 0;
        l = z->cells[KILNI_LITERAL] + l->next + kilni_take_bits(&b, l->bits);
        m = z->cells[KILNI_MATCH] + m->next + kilni_take_bits(&b, m->bits);
        o = z->cells[KILNI_OFFSET] + o->next + kilni_take_bits(&b, o->bits);
    }
    if (!kilni_more(&b) || !kilni_all_taken(&b) || (size_t)(literals_end - literals) > (size_t)(z->stop - to)) return 0;
    memmove(to, literals, (size_t)(literals_end - literals));
    z->at = to + (literals_end - literals);
    return 1;
}

/* kilni_block decompresses a block. */
static int kilni_block(kilni_zstd *z, const uint8_t *p, size_t size) {
    uint32_t count;
    size_t used, head;
    int kind;
    z->stop = z->at + ((size_t)(z->end - z->at) < z->most ? (size_t)(z->end - z->at) : z->most);
    if (size < 2) return 0;
    used = kilni_literals(z, p, size);
    if (!used || used == size) return 0;
    p += used, size -= used;
    head = p[0] < 128 ? 1 : p[0] < 255 ? 2 : 3;
    if (size < head) return 0;
    count = head == 1 ? p[0] : head == 2 ? (p[0] - 128u) << 8 | p[1] : kilni_u16(p + 1) + 0x7F00u;
    p += head, size -= head;
    if (!count) {
        size_t n = (size_t)(z->literals_end - z->literals);
        memmove(z->at, z->literals, n);
        z->at += n;
        return size == 0;
    }
    if (!size || p[0] & 3) return 0;
    head = p[0];
    p++, size--;
    for (kind = 0; kind < 3; kind++) {
        int n = kilni_table(z, kind, (unsigned)head >> (6 - 2 * kind) & 3u, p, size);
        if (n < 0) return 0;
        p += n, size -= (size_t)n;
    }
    return kilni_sequences(z, count, p, size);
}

/*
 * kilni_take_dictionary begins a frame with a dictionary: raw content, or in the format of zstd --train. It returns 0
 * if it is not the frame's dictionary.
 */
static int kilni_take_dictionary(kilni_zstd *z, uint32_t id, const uint8_t *d, size_t size) {
    size_t at = 8, used;
    int i;
    int own = size >= 4 && kilni_u32(d) == 0xEC30A437u;
    if (own && (size < 21 || !kilni_u32(d + 4))) return 0;
    if (id != (own ? kilni_u32(d + 4) : 0)) return !id; /* a frame without a dictionary id uses none */
    z->dictionary = d, z->dictionary_size = size;
    if (!own) return 1;
    used = kilni_tree(z, d + at, size - at);
    if (!used) return 0;
    at += used;
    for (i = 0; i < 3; i++) {
        static const int kinds[3] = {KILNI_OFFSET, KILNI_MATCH, KILNI_LITERAL};
        int n = kilni_table(z, kinds[i], 2, d + at, size - at);
        if (n < 0) return 0;
        at += (size_t)n;
    }
    if (size - at < 12) return 0;
    z->dictionary += at + 12, z->dictionary_size -= at + 12;
    for (i = 0; i < 3; i++) {
        z->offsets[i] = kilni_u32(d + at + 4 * (size_t)i);
        if (!z->offsets[i] || z->offsets[i] > z->dictionary_size) return 0;
    }
    return 1;
}

#define KILNI_X1 0x9E3779B185EBCA87u
#define KILNI_X2 0xC2B2AE3D27D4EB4Fu
#define KILNI_X3 0x165667B19E3779F9u
#define KILNI_X4 0x85EBCA77C2B2AE63u
#define KILNI_X5 0x27D4EB2F165667C5u

static uint64_t kilni_left64(uint64_t x, int n) { return x << n | x >> (64 - n); }
static uint64_t kilni_round64(uint64_t h, uint64_t v) { return kilni_left64(h + v * KILNI_X2, 31) * KILNI_X1; }

/* kilni_xxh64 is XXH64 with seed 0, by Yann Collet. */
static uint64_t kilni_xxh64(const uint8_t *p, size_t n) {
    uint64_t h = KILNI_X5, size = n;
    if (n >= 32) {
        uint64_t v[4];
        int i;
        v[0] = KILNI_X1 + KILNI_X2, v[1] = KILNI_X2, v[2] = 0, v[3] = 0 - KILNI_X1;
        for (; n >= 32; p += 32, n -= 32) {
            for (i = 0; i < 4; i++) v[i] = kilni_round64(v[i], kilni_u64(p + 8 * i));
        }
        h = kilni_left64(v[0], 1) + kilni_left64(v[1], 7) + kilni_left64(v[2], 12) + kilni_left64(v[3], 18);
        for (i = 0; i < 4; i++) h = (h ^ kilni_round64(0, v[i])) * KILNI_X1 + KILNI_X4;
    }
    h += size;
    for (; n >= 8; p += 8, n -= 8) h = kilni_left64(h ^ kilni_round64(0, kilni_u64(p)), 27) * KILNI_X1 + KILNI_X4;
    if (n >= 4) h = kilni_left64(h ^ kilni_u32(p) * KILNI_X1, 23) * KILNI_X2 + KILNI_X3, p += 4, n -= 4;
    for (; n; p++, n--) h = kilni_left64(h ^ *p * KILNI_X5, 11) * KILNI_X1;
    h = (h ^ h >> 33) * KILNI_X2;
    h = (h ^ h >> 29) * KILNI_X3;
    return h ^ h >> 32;
}

/* The header of a frame. */
typedef struct kilni_head {
    size_t size; /* of the header, without the first four bytes */
    uint64_t window;
    uint64_t content; /* -1 if not stated */
    uint32_t dictionary;
    int checked; /* four bytes of XXH64 follow the blocks */
} kilni_head;

/* kilni_frame_head reads the header of a frame after its first four bytes. */
static int kilni_frame_head(kilni_head *h, const uint8_t *p, size_t size) {
    static const uint8_t id_bytes[4] = {0, 1, 2, 4}, content_bytes[4] = {0, 2, 4, 8};
    size_t ids, contents, i;
    int one; /* single segment: the window is the content */
    if (!size || p[0] & 8) return 0;
    one = p[0] >> 5 & 1;
    ids = id_bytes[p[0] & 3];
    contents = p[0] >> 6 || !one ? content_bytes[p[0] >> 6] : 1;
    h->size = (one ? 1 : 2) + ids + contents;
    if (size < h->size) return 0;
    h->checked = p[0] & 4;
    h->window = one ? 0 : ((uint64_t)8 + (p[1] & 7u)) << (7 + (p[1] >> 3));
    p += one ? 1 : 2;
    for (i = 0, h->dictionary = 0; i < ids; i++) h->dictionary |= (uint32_t)*p++ << 8 * i;
    h->content = !contents ? (uint64_t)-1 : contents == 2 ? 256 : 0;
    for (i = 0; i < contents; i++) h->content += (uint64_t)*p++ << 8 * i;
    if (one) h->window = h->content < 1024 ? 1024 : h->content;
    return h->window <= KILNI_WINDOW;
}

/* kilni_other_frame returns the size of a skippable frame, or 0 if it is not one. */
static size_t kilni_other_frame(const uint8_t *p, size_t size) {
    if (size < 8 || (kilni_u32(p) & 0xFFFFFFF0u) != 0x184D2A50u || kilni_u32(p + 4) > size - 8) return 0;
    return 8 + (size_t)kilni_u32(p + 4);
}

/* kilni_block_head reads the header of a block, and returns the number of bytes that follow it. */
static size_t kilni_block_head(const uint8_t *p, int *last, unsigned *kind, size_t *size) {
    *last = p[0] & 1;
    *kind = p[0] >> 1 & 3u;
    *size = (kilni_u16(p) | (uint32_t)p[2] << 16) >> 3;
    return *kind == 1 ? 1 : *size;
}

/* kilni_blocks decompresses the blocks of a frame, and returns the number of bytes, or 0 if one is not valid. */
static size_t kilni_blocks(kilni_zstd *z, const uint8_t *p, size_t size) {
    size_t at = 0;
    int last = 0;
    while (!last) {
        size_t n, follow, room = (size_t)(z->end - z->at);
        unsigned kind;
        if (size - at < 3) return 0;
        follow = kilni_block_head(p + at, &last, &kind, &n);
        at += 3;
        if (n > z->most || follow > size - at || kind > 2) return 0;
        if (kind == 2) {
            if (!kilni_block(z, p + at, n)) return 0;
        } else {
            if (n > room) return 0;
            if (kind == 1) memset(z->at, p[at], n);
            else memcpy(z->at, p + at, n);
            z->at += n;
        }
        at += follow;
    }
    return at;
}

/* kilni_unframe decompresses one frame after its first four bytes, and returns the number of bytes, or 0 if it is not valid. */
static size_t kilni_unframe(kilni_zstd *z, const uint8_t *p, size_t size, const uint8_t *dictionary, size_t dictionary_size) {
    kilni_head h;
    size_t used;
    if (!kilni_frame_head(&h, p, size)) return 0;
    z->window = (size_t)h.window;
    z->most = z->window < KILNI_BLOCK ? z->window : KILNI_BLOCK;
    z->logs[0] = z->logs[1] = z->logs[2] = -1;
    z->letter_bits = 0;
    z->offsets[0] = 1, z->offsets[1] = 4, z->offsets[2] = 8;
    z->dictionary = NULL, z->dictionary_size = 0;
    z->begin = z->at;
    if (!kilni_take_dictionary(z, h.dictionary, dictionary, dictionary_size)) return 0;
    used = kilni_blocks(z, p + h.size, size - h.size);
    if (!used || (h.content != (uint64_t)-1 && h.content != (uint64_t)(z->at - z->begin))) return 0;
    used += h.size;
    if (!h.checked) return used;
    if (size - used < 4 || kilni_u32(p + used) != (uint32_t)kilni_xxh64(z->begin, (size_t)(z->at - z->begin))) return 0;
    return used + 4;
}

/* kilni_unzstd is a kiln_unpacker. */
static size_t kilni_unzstd(void *user, void *to, size_t room, const void *from, size_t size, const void *dictionary, size_t dictionary_size) {
    const uint8_t *p = (const uint8_t *)from;
    kilni_zstd z;
    uint8_t none;
    (void)user;
    z.begin = z.at = room ? (uint8_t *)to : &none;
    z.end = z.at + room;
    to = z.begin;
    while (size) {
        size_t used = kilni_other_frame(p, size);
        if (!used && size > 4 && kilni_u32(p) == 0xFD2FB528u) {
            used = kilni_unframe(&z, p + 4, size - 4, (const uint8_t *)dictionary, dictionary_size);
            if (used) used += 4;
        }
        if (!used) return (size_t)-1;
        p += used, size -= used;
    }
    return (size_t)(z.at - (uint8_t *)to);
}

/* ---- content ---- */

KILN_API int kiln_view(const kiln_resource *r, const void **content) {
    *content = NULL;
    if (r->codec) return KILN_COMPRESSED;
    if (kilni_crc(r->payload, (size_t)r->stored) != r->crc) return KILN_DAMAGED;
    *content = r->payload ? (const void *)r->payload : "";
    return KILN_OK;
}

KILN_API uint64_t kiln_most(const kiln_resource *r) {
    const uint8_t *p = r->payload, *end;
    uint64_t most = 0;
    if (!r->codec) return r->stored;
    end = p + (size_t)r->stored;
    while (p < end && most <= KILNI_MAX_COMPRESSED) {
        size_t size, other = kilni_other_frame(p, (size_t)(end - p));
        kilni_head h;
        unsigned kind;
        int last = 0;
        p += other;
        if (other) continue;
        if (end - p < 4 || !kilni_frame_head(&h, p + 4, (size_t)(end - p) - 4)) return most;
        for (p += 4 + h.size; !last; most += kind == 2 ? KILNI_BLOCK : size) {
            size_t follow;
            if (end - p < 3) return most;
            follow = kilni_block_head(p, &last, &kind, &size);
            if (follow > (size_t)(end - p) - 3) return most;
            p += 3 + follow;
        }
        if (h.checked && end - p >= 4) p += 4;
    }
    return most;
}

KILN_API int kiln_read(const kiln_resource *r, void *to, size_t room, kiln_unpacker unpack, void *user) {
    const kiln_section *d = &r->parcel->sections[KILN_DICTIONARY];
    if (r->size > room) return KILN_ROOM;
    if (kilni_crc(r->payload, (size_t)r->stored) != r->crc) return KILN_DAMAGED;
    if (!r->codec) {
        if (r->size) memcpy(to, r->payload, (size_t)r->size);
        return KILN_OK;
    }
    if (!unpack) unpack = kilni_unzstd;
    if (r->codec == 1) return unpack(user, to, (size_t)r->size, r->payload, (size_t)r->stored, NULL, 0) == r->size ? KILN_OK : KILN_UNPACKING;
    return unpack(user, to, (size_t)r->size, r->payload, (size_t)r->stored, d->data, d->size) == r->size ? KILN_OK : KILN_UNPACKING;
}

/* ---- BLAKE3: the unkeyed hash with 32 bytes of output; section 2 of the BLAKE3 paper. One block at a time, 0.6 GB/s. ---- */

typedef struct kilni_hasher {
    uint32_t stack[54][8]; /* values of finished subtrees, the largest first: 2^54 chunks are 2^64 bytes */
    int depth;
    uint64_t chunk;    /* number of the current chunk */
    uint32_t cv[8];    /* its chaining value */
    int blocks;        /* number of its blocks that are in the chaining value */
    uint8_t block[64]; /* the next block, held back because the very last one is hashed in another way */
    size_t used;
} kilni_hasher;

static const uint32_t kilni_iv[8] = {0x6A09E667u, 0xBB67AE85u, 0x3C6EF372u, 0xA54FF53Au, 0x510E527Fu, 0x9B05688Cu, 0x1F83D9ABu, 0x5BE0CD19u};

/* The word of the block for each of the 16 places of a round: the permutation, applied 0 to 6 times. */
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

/* kilni_join replaces the value of the right subtree by that of both. */
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

/* kilni_hash_block adds the full block that was held back. It closes the chunk, and the subtrees that are complete with it. */
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

/* kilni_hash_text adds the length of a text and the text. */
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

/* ---- signatures of the digest by minisign ---- */

/* kilni_base64 decodes exactly size bytes from the n letters at text, and reports whether they are valid. */
static int kilni_base64(const uint8_t *text, size_t n, uint8_t *to, size_t size) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    size_t i, out = 0;
    if (n != (size + 2) / 3 * 4) return 0;
    for (i = 0; i < n; i++) {
        const char *at = text[i] ? strchr(letters, text[i]) : NULL;
        size_t left = size * 8 - i * 6; /* bits still to come; wraps around where there is padding */
        if (i * 6 >= size * 8) {
            if (text[i] != '=') return 0;
            continue;
        }
        if (!at) return 0;
        bits = bits << 6 | (uint32_t)(at - letters);
        if (left < 6 && (bits & ((1u << (6 - left)) - 1))) return 0;
        if (i % 4 && out < size) to[out++] = (uint8_t)(bits >> (6 - i % 4 * 2));
    }
    return out == size;
}

/* kilni_line returns the i-th line of a text without its line end, or an empty text. */
static kiln_text kilni_line(const kiln_section *s, int i) {
    const uint8_t *at = s->data, *end, *stop;
    kiln_text line = {"", 0};
    if (!s->size) return line;
    for (end = at + s->size; at < end; i--, at = stop + 1) {
        stop = (const uint8_t *)memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (i > 0) {
            if (stop == end) break;
            continue;
        }
        line.data = (const char *)at;
        line.size = (size_t)(stop - at);
        while (line.size && line.data[line.size - 1] == '\r') line.size--;
        break;
    }
    return line;
}

static uint64_t kilni_right64(uint64_t x, int n) { return x >> n | x << (64 - n); }

#define KILNI_B(a, b, c, d, x, y)                                                                    \
    (v[a] += v[b] + (x), v[d] = kilni_right64(v[d] ^ v[a], 32), v[c] += v[d], v[b] = kilni_right64(v[b] ^ v[c], 24), \
     v[a] += v[b] + (y), v[d] = kilni_right64(v[d] ^ v[a], 16), v[c] += v[d], v[b] = kilni_right64(v[b] ^ v[c], 63))

/* kilni_blake2b is the BLAKE2b-512 of 32 bytes (RFC 7693). */
static void kilni_blake2b(const uint8_t message[32], uint8_t hash[64]) {
    static const char *sigma[10] = {"0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
                                    "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0"};
    static const uint32_t iv[16] = {0x6A09E667u, 0xF3BCC908u, 0xBB67AE85u, 0x84CAA73Bu, 0x3C6EF372u, 0xFE94F82Bu, 0xA54FF53Au, 0x5F1D36F1u,
                                    0x510E527Fu, 0xADE682D1u, 0x9B05688Cu, 0x2B3E6C1Fu, 0x1F83D9ABu, 0xFB41BD6Bu, 0x5BE0CD19u, 0x137E2179u};
    uint64_t v[16], h[8], m[16] = {0}, w[16];
    int i, round;
    for (i = 0; i < 4; i++) m[i] = kilni_u64(message + 8 * i);
    for (i = 0; i < 8; i++) v[i] = v[8 + i] = h[i] = (uint64_t)iv[2 * i] << 32 | iv[2 * i + 1];
    v[0] = h[0] ^= 0x01010040u; /* 64 bytes of hash, no key */
    v[12] ^= 32;
    v[14] = ~v[14];
    for (round = 0; round < 12; round++) {
        for (i = 0; i < 16; i++) {
            char digit = sigma[round % 10][i];
            w[i] = m[digit <= '9' ? digit - '0' : digit - 'a' + 10];
        }
        KILNI_B(0, 4, 8, 12, w[0], w[1]);
        KILNI_B(1, 5, 9, 13, w[2], w[3]);
        KILNI_B(2, 6, 10, 14, w[4], w[5]);
        KILNI_B(3, 7, 11, 15, w[6], w[7]);
        KILNI_B(0, 5, 10, 15, w[8], w[9]);
        KILNI_B(1, 6, 11, 12, w[10], w[11]);
        KILNI_B(2, 7, 8, 13, w[12], w[13]);
        KILNI_B(3, 4, 9, 14, w[14], w[15]);
    }
    for (i = 0; i < 64; i++) hash[i] = (uint8_t)((h[i / 8] ^ v[i / 8] ^ v[8 + i / 8]) >> 8 * (i % 8));
}

/* kilni_signed reports whether the key (2 bytes "Ed", 8 bytes key id, 32 bytes key) signed the digest in the header. */
static int kilni_signed(const kiln_parcel *p, const uint8_t key[42], kiln_ed25519 verify, void *user) {
    const kiln_section *s = &p->sections[KILN_SIGNATURE];
    kiln_text first = kilni_line(s, 1), comment = kilni_line(s, 2), second = kilni_line(s, 3);
    uint8_t signature[74], global[64], hash[64], both[64 + KILNI_MAX_SIGNATURE];
    if (!kilni_base64((const uint8_t *)first.data, first.size, signature, 74) || !kilni_base64((const uint8_t *)second.data, second.size, global, 64)) return 0;
    if (comment.size < 17 || memcmp(comment.data, "trusted comment: ", 17) != 0) return 0;
    if (signature[0] != 'E' || (signature[1] != 'd' && signature[1] != 'D') || memcmp(signature + 2, key + 2, 8) != 0) return 0;
    kilni_blake2b(p->digest, hash);
    if (signature[1] == 'd' ? !verify(user, signature + 10, p->digest, 32, key + 10) : !verify(user, signature + 10, hash, 64, key + 10)) return 0;
    memcpy(both, signature + 10, 64);
    memcpy(both + 64, comment.data + 17, comment.size - 17);
    return verify(user, global, both, 64 + comment.size - 17, key + 10);
}

KILN_API int kiln_trust(const kiln_parcel *p, const char *key, kiln_ed25519 verify, void *user) {
    uint8_t bytes[42], digest[32];
    int error;
    if (!kilni_base64((const uint8_t *)key, strlen(key), bytes, 42) || bytes[0] != 'E' || bytes[1] != 'd') return KILN_UNTRUSTED;
    if (!kilni_signed(p, bytes, verify, user)) return KILN_UNTRUSTED;
    error = kiln_check(p);
    if (!error) error = kiln_digest(p, digest);
    if (error) return error;
    return memcmp(digest, p->digest, 32) == 0 ? KILN_OK : KILN_DAMAGED;
}

/* ---- load order ---- */

/*
 * The memory of an order has room ids, and after them a hash table of 3 * room entries with the same ids plus one, 0
 * for empty: if a third of it is used, a look-up takes 1.3 steps. An id is added after everything that it needs. The
 * ids in progress are in the frames of the calls.
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

/*
 * kilni_forget shortens the list to its first count ids. The last entry is in no other entry's probe path, so it may
 * simply be emptied.
 */
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

KILN_API int kiln_same(const kiln_resource *a, const kiln_resource *b) {
    if (a->parcel != b->parcel) return 0;
    if (a->index == b->index) return 1;
    return a->type == b->type && a->stored > 0 && a->payload == b->payload && a->stored == b->stored && a->size == b->size && a->codec == b->codec &&
           a->crc == b->crc && !a->required && !a->optional && !b->required && !b->optional;
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
    CloseHandle(mapping); /* the view keeps it open */
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
#ifdef O_CLOEXEC /* strict C99 without _POSIX_C_SOURCE 200809L does not have it */
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* do not wait for a pipe */
#else
    int file = open(path, O_RDONLY | O_NONBLOCK);
#endif
    *data = NULL;
    *size = 0;
    if (file < 0) return KILN_FILE;
    fcntl(file, F_SETFD, FD_CLOEXEC);
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

#if defined(KILN_LIVE_IMPLEMENTATION) && !defined(KILN_LIVE_IMPLEMENTED)
#define KILN_LIVE_IMPLEMENTED

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
typedef SOCKET kilnl_socket;
#define KILNL_NONE INVALID_SOCKET
#define KILNL_POLL WSAPoll
#define KILNL_CLOSE closesocket
#define KILNL_AGAIN (WSAGetLastError() == WSAEWOULDBLOCK)
#define KILNL_UNDER_WAY (WSAGetLastError() == WSAEWOULDBLOCK)
#else
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
typedef int kilnl_socket;
#define KILNL_NONE (-1)
#define KILNL_POLL poll
#define KILNL_CLOSE close
#define KILNL_AGAIN (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
#define KILNL_UNDER_WAY (errno == EINPROGRESS)
#endif

#ifndef KILN_LIVE_REALLOC
#define KILN_LIVE_REALLOC(p, size) realloc(p, size)
#define KILN_LIVE_FREE(p) free(p)
#endif

#define KILNL_MAX_MESSAGE (16u << 20)
#define KILNL_MAX_CONTENT ((uint64_t)1 << 31)
#define KILNL_MAX_HEAD 16384u
#define KILNL_MAX_UNSENT (4u << 20)
#define KILNL_MAX_RESOURCES (1u << 24)
#define KILNL_MAX_REFUSAL 65536u /* most bytes of an error answer */
#define KILNL_ADDRESSES 4
#define KILNL_RETRY 500 /* in milliseconds */
#define KILNL_PATIENCE 60000 /* the same */
#define KILNL_NO_ID 0xFFFFFFFFu /* of a resource that does not exist */

/* A growing buffer. If failed is set, nothing is added any more. */
typedef struct kilnl_bytes {
    uint8_t *data;
    size_t size, room;
    int failed;
} kilnl_bytes;

static int kilnl_reserve(kilnl_bytes *b, size_t more) {
    size_t room = b->room ? b->room : 1024;
    void *p;
    if (b->failed || more > SIZE_MAX / 4 || b->size > SIZE_MAX / 4) return 0;
    while (room < b->size + more) room *= 2;
    if (room == b->room) return 1;
    p = KILN_LIVE_REALLOC(b->data, room);
    if (!p) {
        b->failed = 1;
        return 0;
    }
    b->data = (uint8_t *)p;
    b->room = room;
    return 1;
}

static void kilnl_add(kilnl_bytes *b, const void *data, size_t size) {
    if (!size || !kilnl_reserve(b, size)) return;
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void kilnl_add_text(kilnl_bytes *b, const char *text) { kilnl_add(b, text, strlen(text)); }

static void kilnl_add_number(kilnl_bytes *b, uint64_t n) {
    char digits[24];
    int at = 24;
    do digits[--at] = (char)('0' + n % 10); while (n /= 10);
    kilnl_add(b, digits + at, (size_t)(24 - at));
}

static void kilnl_add_hex(kilnl_bytes *b, const uint8_t *p, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        char two[2];
        two[0] = "0123456789abcdef"[p[i] >> 4];
        two[1] = "0123456789abcdef"[p[i] & 15];
        kilnl_add(b, two, 2);
    }
}

/* kilnl_add_string adds a text as JSON. Invalid UTF-8 becomes question marks. */
static void kilnl_add_string(kilnl_bytes *b, const char *text) {
    size_t n = strlen(text), i;
    int good = kilni_utf8((const uint8_t *)text, n);
    kilnl_add_text(b, "\"");
    for (i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        char out[8];
        if (c == '"' || c == '\\') {
            out[0] = '\\';
            out[1] = (char)c;
            kilnl_add(b, out, 2);
        } else if (c < 32) {
            kilnl_add_text(b, "\\u00");
            kilnl_add_hex(b, &c, 1);
        } else {
            out[0] = c >= 128 && !good ? '?' : (char)c;
            kilnl_add(b, out, 1);
        }
    }
    kilnl_add_text(b, "\"");
}

static void kilnl_take(kilnl_bytes *b, size_t n) {
    b->size -= n;
    if (b->size) memmove(b->data, b->data + n, b->size);
}

static void kilnl_empty(kilnl_bytes *b) {
    KILN_LIVE_FREE(b->data);
    memset(b, 0, sizeof *b);
}

/* ---- JSON, the part that the protocol needs: a cursor over one message ---- */

typedef struct kilnl_json {
    char *at, *end;
    int bad;
} kilnl_json;

static void kilnl_space(kilnl_json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) j->at++;
}

/* kilnl_is skips a character if it comes next. */
static int kilnl_is(kilnl_json *j, char c) {
    kilnl_space(j);
    if (j->bad || j->at == j->end || *j->at != c) return 0;
    j->at++;
    return 1;
}

static void kilnl_must(kilnl_json *j, char c) {
    if (!kilnl_is(j, c)) j->bad = 1;
}

static uint32_t kilnl_four(kilnl_json *j) {
    uint32_t c = 0;
    int i;
    for (i = 0; i < 4; i++) {
        char d = j->at < j->end ? *j->at++ : 'x';
        uint32_t v = d >= '0' && d <= '9' ? (uint32_t)(d - '0') : (d | 32) >= 'a' && (d | 32) <= 'f' ? (uint32_t)((d | 32) - 'a' + 10) : 16;
        if (v > 15) j->bad = 1;
        c = c << 4 | (v & 15);
    }
    return c;
}

/* kilnl_escape writes the character for an escape sequence, which is never longer than the sequence. */
static char *kilnl_escape(kilnl_json *j, char *to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *known;
    char c = j->at < j->end ? *j->at++ : 0;
    if (c == 'u') {
        uint32_t u = kilnl_four(j);
        if (u >= 0xD800 && u < 0xDC00 && j->end - j->at >= 6 && j->at[0] == '\\' && j->at[1] == 'u') {
            j->at += 2;
            u = 0x10000 + ((u - 0xD800) << 10) + ((kilnl_four(j) - 0xDC00) & 0x3FF);
        }
        if (u == 0) u = '?'; /* texts end at a zero byte */
        if (u < 0x80) *to++ = (char)u;
        else if (u < 0x800) *to++ = (char)(0xC0 | u >> 6), *to++ = (char)(0x80 | (u & 63));
        else if (u < 0x10000) *to++ = (char)(0xE0 | u >> 12), *to++ = (char)(0x80 | (u >> 6 & 63)), *to++ = (char)(0x80 | (u & 63));
        else *to++ = (char)(0xF0 | u >> 18), *to++ = (char)(0x80 | (u >> 12 & 63)), *to++ = (char)(0x80 | (u >> 6 & 63)), *to++ = (char)(0x80 | (u & 63));
        return to;
    }
    known = c ? strchr(from, c) : NULL;
    if (!known) j->bad = 1;
    else *to++ = into[known - from];
    return to;
}

/* kilnl_string reads a string in place, and returns it with a zero byte in place of its closing quote. */
static const char *kilnl_string(kilnl_json *j) {
    char *begin, *to;
    kilnl_must(j, '"');
    begin = to = j->at;
    while (!j->bad) {
        char c = j->at < j->end ? *j->at++ : 0;
        if (c == '"') {
            *to = 0;
            return begin;
        }
        if (c == '\\') to = kilnl_escape(j, to);
        else if (c) *to++ = c;
        else j->bad = 1;
    }
    return "";
}

static uint64_t kilnl_number(kilnl_json *j) {
    uint64_t n = 0;
    char *begin;
    kilnl_space(j);
    for (begin = j->at; j->at < j->end && *j->at >= '0' && *j->at <= '9' && j->at - begin < 19; j->at++) n = n * 10 + (uint64_t)(*j->at - '0');
    if (j->at == begin) j->bad = 1;
    return n;
}

static int kilnl_true(kilnl_json *j) {
    kilnl_space(j);
    if (j->end - j->at >= 4 && memcmp(j->at, "true", 4) == 0) {
        j->at += 4;
        return 1;
    }
    if (j->end - j->at >= 5 && memcmp(j->at, "false", 5) == 0) j->at += 5;
    else j->bad = 1;
    return 0;
}

/* kilnl_skip skips any value. */
static void kilnl_skip(kilnl_json *j) {
    int depth = 0;
    do {
        kilnl_space(j);
        if (j->bad || j->at == j->end) {
            j->bad = 1;
            return;
        }
        switch (*j->at) {
        case '"': {
            j->at++;
            while (j->at < j->end && *j->at != '"') j->at += *j->at == '\\' && j->at + 1 < j->end ? 2 : 1;
            if (j->at < j->end) j->at++;
            else j->bad = 1;
            break;
        }
        case '{': case '[': depth++, j->at++; break;
        case '}': case ']': depth--, j->at++; break;
        case ',': case ':': j->at++; break;
        default:
            if (!*j->at) j->bad = 1;
            while (j->at < j->end && *j->at && !strchr(",:]} \t\r\n", *j->at)) j->at++;
        }
        kilnl_space(j);
        if (depth > 0 && j->at < j->end && (*j->at == ',' || *j->at == ':')) j->at++;
    } while (depth > 0);
}

/* kilnl_key begins the next field of an object, and returns 0 at its end: while ((key = kilnl_key(j, &first))). */
static const char *kilnl_key(kilnl_json *j, int *first) {
    const char *key;
    if (kilnl_is(j, '}') || j->bad) return NULL;
    if (!*first) kilnl_must(j, ',');
    *first = 0;
    key = kilnl_string(j);
    kilnl_must(j, ':');
    return j->bad ? NULL : key;
}

/* kilnl_item reports whether a list has another item. */
static int kilnl_item(kilnl_json *j, int *first) {
    if (kilnl_is(j, ']') || j->bad) return 0;
    if (!*first) kilnl_must(j, ',');
    *first = 0;
    return !j->bad;
}

static int kilnl_from_hex(uint8_t *to, size_t n, const char *text) {
    size_t i = 0;
    for (; *text; text++) {
        int c = *text | 32, v = *text >= '0' && *text <= '9' ? *text - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (*text == '-') continue;
        if (v < 0 || i == 2 * n) return 0;
        to[i / 2] = (uint8_t)(i % 2 ? to[i / 2] | v : v << 4);
        i++;
    }
    return i == 2 * n;
}

/* ---- SHA-1 (FIPS 180-4) and base64, only for the handshake of WebSocket ---- */

static void kilnl_sha1_block(uint32_t h[5], const uint8_t *p) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    int i;
    for (i = 0; i < 16; i++) w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (; i < 80; i++) w[i] = kilni_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (i = 0; i < 80; i++) {
        uint32_t f, t;
        if (i < 20) f = ((b & c) | (~b & d)) + 0x5A827999u;
        else if (i < 40) f = (b ^ c ^ d) + 0x6ED9EBA1u;
        else if (i < 60) f = ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDCu;
        else f = (b ^ c ^ d) + 0xCA62C1D6u;
        t = kilni_left(a, 5) + f + e + w[i];
        e = d, d = c, c = kilni_left(b, 30), b = a, a = t;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

/* kilnl_sha1 hashes up to 119 bytes: two blocks. */
static void kilnl_sha1(const uint8_t *data, size_t size, uint8_t out[20]) {
    uint32_t h[5] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u, 0xC3D2E1F0u};
    uint8_t block[128];
    size_t blocks = size < 56 ? 1 : 2;
    int i;
    memset(block, 0, sizeof block);
    memcpy(block, data, size);
    block[size] = 0x80;
    block[64 * blocks - 2] = (uint8_t)(size >> 5);
    block[64 * blocks - 1] = (uint8_t)(size << 3);
    kilnl_sha1_block(h, block);
    if (blocks == 2) kilnl_sha1_block(h, block + 64);
    for (i = 0; i < 20; i++) out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

static void kilnl_base64(const uint8_t *p, size_t n, char *to) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t i;
    for (i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0u);
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        *to++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
        *to++ = i + 2 < n ? digits[v & 63] : '=';
    }
    *to = 0;
}

/* ---- known and loaded resources ---- */

/* A slot is a resource of the watcher, or one that is still loaded. */
typedef struct kilnl_slot {
    kiln_live_resource r;
    char *memory; /* name, type and needs of r */
    int here;     /* the watcher has it */
    int listed;   /* it is on a received page of the current list */
    uint32_t uses; /* uses by the game itself */

    int loaded;
    uint8_t applied[32]; /* hash of what was loaded or refused */
    void *value;
    int stale;              /* the value is of an older version, because a newer one was refused */
    kiln_live_resource was; /* the resource that the value is of; its needs are the second half of held */
    uint32_t *held;         /* what the value was made with: slots + 1, 0 for what was not there */
    int again; /* load it although it is unchanged */
    int told;  /* the watcher knows that it is used */

    uint8_t *content; /* content that has arrived, with the hash of r */
    int have;         /* content is there, empty or not */
    int lost;         /* its content no longer exists; a change of r will follow */
    int mark, fresh;  /* for kilnl_plan */
} kilnl_slot;

enum { KILNL_OFF, KILNL_CONNECTING, KILNL_SENDING, KILNL_HEAD, KILNL_OPEN };

/* A connection: one for the messages, and one for fetching contents. */
typedef struct kilnl_line {
    kilnl_socket socket;
    int state;
    kilnl_bytes in, out;
    uint64_t came; /* when something arrived, or the connection was begun, in milliseconds */
} kilnl_line;

struct kiln_live {
    kiln_live_options o;
    struct sockaddr_storage where[KILNL_ADDRESSES]; /* addresses to try in order */
    socklen_t where_size[KILNL_ADDRESSES];
    int addresses, address;
    char host[272];
    kilnl_line talk, fetch;
    uint64_t retry; /* time of the next attempt, in milliseconds */
    uint32_t noise; /* random number for masks */
    char accept[32];
    kilnl_bytes message; /* fragments of a message, so far */
    kilnl_bytes pages;   /* of a list or change, before the last one: the size of each as a size_t, and its text */
    int listing;         /* they are those of a list */
    size_t taken;        /* number of received bytes that were read as frames */
    int welcome;         /* a list of resources has arrived */
    int inside, leaving; /* kiln_live_poll or _close is running; the game has called close in it */
    int refused;

    char epoch[64]; /* of the resources; "" before the first list */
    uint64_t seq;   /* of the resources */
    char coming[64]; /* epoch of the watcher; "" before its welcome */
    int level;      /* the resources are the watcher's: numbers mean the same */
    uint64_t beat;  /* how often it sends a sign of life, in milliseconds; 0: never */

    kilnl_slot *slots;
    size_t count, room;
    uint32_t *tables; /* three of 2^bits entries: slot + 1 by id, by UUID and sub, by name */
    size_t entries[3];
    int bits;

    char **wanted; /* names used before they existed */
    size_t wants;

    int dirty;         /* kilnl_apply has work */
    int waiting;       /* number of missing contents */
    int64_t fetching;  /* slot, or -1 */
    uint8_t fetched[32];
    uint64_t length;   /* of the current answer */
    int status, closing;
    uint64_t fetch_retry;
    uint32_t *order;   /* slots in load order */
    size_t ordered;
    uint32_t asked;
};

static uint64_t kilnl_now(void) {
#ifdef _WIN32
    return GetTickCount64();
#else
    struct timeval t;
    gettimeofday(&t, NULL);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000;
#endif
}

/* kilnl_left is the time until a moment. If it is more than most, the clock was set back, and the moment has come. */
static uint64_t kilnl_left(uint64_t at, uint64_t most) {
    uint64_t now = kilnl_now();
    return at > now && at - now <= most ? at - now : 0;
}

static uint64_t kilnl_patience(const kiln_live *l) { return l->o.patience > 0 ? (uint64_t)l->o.patience : KILNL_PATIENCE; }

static void kilnl_report(kiln_live *l, const kiln_live_event *e) {
    if (l->o.notify && !l->leaving) l->o.notify(l->o.user, l, e);
}

static void kilnl_tell(kiln_live *l, const char *type, const char *reason) {
    kiln_live_event e;
    memset(&e, 0, sizeof e);
    e.type = type, e.asset = "", e.reason = reason;
    kilnl_report(l, &e);
}

static uint32_t kilnl_key_of(const uint8_t uuid[16], uint32_t sub) {
    uint8_t key[20];
    int i;
    memcpy(key, uuid, 16);
    for (i = 0; i < 4; i++) key[16 + i] = (uint8_t)(sub >> 8 * i);
    return kilni_murmur(key, 20);
}

static uint32_t kilnl_name_key(const char *name) { return kilni_murmur((const uint8_t *)name, strlen(name)); }

static size_t kilnl_start(const kiln_live *l, uint32_t key) { return (key * 2654435769u) >> (32 - l->bits); }

static void kilnl_enter(kiln_live *l, int t, uint32_t key, size_t slot) {
    size_t size = (size_t)1 << l->bits, at = kilnl_start(l, key);
    uint32_t *table = l->tables + (size_t)t * size;
    while (table[at]) at = (at + 1) & (size - 1);
    table[at] = (uint32_t)slot + 1;
    l->entries[t]++;
}

/* kilnl_index rebuilds the three tables, a quarter full. */
static int kilnl_index(kiln_live *l) {
    size_t i, size;
    int bits = 6;
    void *p;
    while (((size_t)1 << bits) < 4 * l->count) bits++;
    size = (size_t)1 << bits;
    p = bits < 32 ? KILN_LIVE_REALLOC(l->tables, 3 * size * sizeof *l->tables) : NULL;
    if (!p) return 0;
    l->tables = (uint32_t *)p;
    l->bits = bits;
    memset(l->tables, 0, 3 * size * sizeof *l->tables);
    memset(l->entries, 0, sizeof l->entries);
    for (i = 0; i < l->count; i++) {
        const kilnl_slot *s = &l->slots[i];
        kilnl_enter(l, 1, kilnl_key_of(s->r.uuid, s->r.sub), i);
        if (s->here) kilnl_enter(l, 0, s->r.id, i), kilnl_enter(l, 2, kilnl_name_key(s->r.name), i);
    }
    return 1;
}

/* kilnl_note adds a slot to table t. Entries with its old keys still lead to it; a look-up notices that they do not match. */
static int kilnl_note(kiln_live *l, int t, uint32_t key, size_t slot) {
    if (2 * (l->entries[t] + 1) > (size_t)1 << l->bits && !kilnl_index(l)) return 0;
    kilnl_enter(l, t, key, slot);
    return 1;
}

/* kilnl_seek finds a slot in table t: by id, by UUID and sub (also a removed one), or by name. */
static kilnl_slot *kilnl_seek(const kiln_live *l, int t, uint32_t key, const kiln_live_resource *like) {
    size_t size = (size_t)1 << l->bits, at = kilnl_start(l, key);
    uint32_t found;
    for (; (found = l->tables[(size_t)t * size + at]) != 0; at = (at + 1) & (size - 1)) {
        kilnl_slot *s = &l->slots[found - 1];
        if (t == 0 && s->here && s->r.id == like->id) return s;
        if (t == 1 && s->r.sub == like->sub && memcmp(s->r.uuid, like->uuid, 16) == 0) return s;
        if (t == 2 && s->here && strcmp(s->r.name, like->name) == 0) return s;
    }
    return NULL;
}

/* kilnl_gone finds a removed resource that is still used or loaded, by its number. */
static kilnl_slot *kilnl_gone(const kiln_live *l, uint32_t id) {
    size_t size = (size_t)1 << l->bits, at = kilnl_start(l, id);
    uint32_t found;
    for (; (found = l->tables[at]) != 0; at = (at + 1) & (size - 1)) {
        kilnl_slot *s = &l->slots[found - 1];
        if (!s->here && s->r.id == id && (s->loaded || s->uses)) return s;
    }
    return NULL;
}

static kilnl_slot *kilnl_by_number(const kiln_live *l, uint32_t id) {
    kiln_live_resource like;
    like.id = id;
    return kilnl_seek(l, 0, id, &like);
}

static kilnl_slot *kilnl_by_key(const kiln_live *l, const uint8_t uuid[16], uint32_t sub) {
    kiln_live_resource like;
    memcpy(like.uuid, uuid, 16);
    like.sub = sub;
    return kilnl_seek(l, 1, kilnl_key_of(uuid, sub), &like);
}

KILN_API const kiln_live_resource *kiln_live_find(const kiln_live *l, uint32_t id) {
    kilnl_slot *s = kilnl_by_number(l, id);
    if (!s) s = kilnl_gone(l, id);
    return s ? &s->r : NULL;
}

KILN_API const kiln_live_resource *kiln_live_find_uuid(const kiln_live *l, const uint8_t uuid[16], uint32_t sub) {
    kilnl_slot *s = kilnl_by_key(l, uuid, sub);
    return s && s->here ? &s->r : NULL;
}

KILN_API const kiln_live_resource *kiln_live_find_name(const kiln_live *l, const char *name) {
    kiln_live_resource like;
    kilnl_slot *s;
    like.name = name;
    s = kilnl_seek(l, 2, kilnl_name_key(name), &like);
    return s ? &s->r : NULL;
}

KILN_API size_t kiln_live_count(const kiln_live *l) { return l->count; }

KILN_API const kiln_live_resource *kiln_live_at(const kiln_live *l, size_t index) {
    return index < l->count && l->slots[index].here ? &l->slots[index].r : NULL;
}

KILN_API void *kiln_live_value(const kiln_live *l, const kiln_live_resource *r) {
    const kilnl_slot *s = r ? kilnl_by_key(l, r->uuid, r->sub) : NULL;
    return s && s->loaded ? s->value : NULL;
}

static void kilnl_drop_content(kilnl_slot *s) {
    KILN_LIVE_FREE(s->content);
    s->content = NULL;
    s->have = 0;
}

/* kilnl_new_slot returns a slot for a new key. A removed resource keeps its slot. */
static kilnl_slot *kilnl_new_slot(kiln_live *l) {
    kilnl_slot *s;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        void *p = l->count < KILNL_MAX_RESOURCES ? KILN_LIVE_REALLOC(l->slots, room * sizeof *l->slots) : NULL;
        if (!p) return NULL;
        l->slots = (kilnl_slot *)p;
        l->room = room;
    }
    s = &l->slots[l->count++];
    memset(s, 0, sizeof *s);
    return s;
}

/* kilnl_text_of copies the texts and ids of a resource into one block that belongs to the slot. */
static int kilnl_text_of(kilnl_slot *s, const char *name, const char *type, const uint32_t *needs, size_t count) {
    size_t n = strlen(name) + 1, t = strlen(type) + 1, words = count * sizeof *needs;
    char *memory = (char *)KILN_LIVE_REALLOC(NULL, words + n + t);
    if (!memory) return 0;
    if (words) memcpy(memory, needs, words);
    memcpy(memory + words, name, n);
    memcpy(memory + words + n, type, t);
    KILN_LIVE_FREE(s->memory);
    s->memory = memory;
    s->r.needs = (const uint32_t *)(void *)memory;
    s->r.name = memory + words;
    s->r.type = memory + words + n;
    return 1;
}

/* kilnl_ids appends a list of numbers to b. */
static uint32_t kilnl_ids(kilnl_json *j, kilnl_bytes *b) {
    uint32_t n = 0;
    int first = 1;
    kilnl_must(j, '[');
    while (kilnl_item(j, &first)) {
        uint32_t id = (uint32_t)kilnl_number(j);
        kilnl_add(b, &id, sizeof id);
        n++;
    }
    if (b->failed || n > KILNI_MAX_NEEDS) j->bad = 1;
    return n;
}

/* kilnl_settle stores a resource in its slot. */
static int kilnl_settle(kiln_live *l, kiln_live_resource *r, const char *name, const char *type, const uint32_t *needs) {
    kilnl_slot *s = kilnl_by_key(l, r->uuid, r->sub);
    int fresh = !s, moved;
    if (!s) s = kilnl_new_slot(l);
    if (!s) return 0;
    moved = !s->here || s->r.id != r->id || strcmp(s->r.name, name) != 0;
    if (!s->here || memcmp(s->r.hash, r->hash, 32) != 0) kilnl_drop_content(s), s->lost = 0;
    if (!kilnl_text_of(s, name, type, needs, (size_t)r->required + r->optional)) {
        if (fresh) l->count--;
        return 0;
    }
    r->name = s->r.name, r->type = s->r.type, r->needs = s->r.needs;
    s->r = *r;
    s->here = s->listed = 1;
    if (fresh && !kilnl_note(l, 1, kilnl_key_of(r->uuid, r->sub), (size_t)(s - l->slots))) return 0;
    return !moved || (kilnl_note(l, 0, r->id, (size_t)(s - l->slots)) && kilnl_note(l, 2, kilnl_name_key(name), (size_t)(s - l->slots)));
}

/* kilnl_resource reads one resource. */
static void kilnl_resource(kiln_live *l, kilnl_json *j) {
    kiln_live_resource r;
    kilnl_bytes needs = {NULL, 0, 0, 0}, uses = {NULL, 0, 0, 0};
    const char *key, *name = "", *type = "";
    int first = 1, good = 1;
    memset(&r, 0, sizeof r);
    kilnl_must(j, '{');
    while ((key = kilnl_key(j, &first)) != NULL) {
        if (!strcmp(key, "id")) r.id = (uint32_t)kilnl_number(j);
        else if (!strcmp(key, "sub")) r.sub = (uint32_t)kilnl_number(j);
        else if (!strcmp(key, "size")) r.size = kilnl_number(j);
        else if (!strcmp(key, "uuid")) good &= kilnl_from_hex(r.uuid, 16, kilnl_string(j));
        else if (!strcmp(key, "hash")) good &= kilnl_from_hex(r.hash, 32, kilnl_string(j));
        else if (!strcmp(key, "name")) name = kilnl_string(j);
        else if (!strcmp(key, "kind")) type = kilnl_string(j);
        else if (!strcmp(key, "needs")) r.required = kilnl_ids(j, &needs);
        else if (!strcmp(key, "uses")) r.optional = kilnl_ids(j, &uses);
        else kilnl_skip(j);
    }
    kilnl_add(&needs, uses.data, uses.size);
    if (j->bad || !good || needs.failed || r.size > KILNL_MAX_CONTENT) j->bad = 1;
    else if (!kilnl_settle(l, &r, name, type, (const uint32_t *)(void *)needs.data)) j->bad = 1;
    kilnl_empty(&needs);
    kilnl_empty(&uses);
}

/* ---- messages ---- */

/* kilnl_say sends a message: one masked frame. */
static void kilnl_say(kiln_live *l, kilnl_bytes *text) {
    uint8_t head[14], mask[4];
    size_t n = text->size, i, h = 2, at;
    kilnl_bytes *out = &l->talk.out;
    if (!text->failed && l->talk.state == KILNL_OPEN && out->size < KILNL_MAX_UNSENT) {
        head[0] = 0x81;
        if (n < 126) head[1] = (uint8_t)(0x80 | n);
        else {
            int k, wide = n > 65535 ? 8 : 2;
            head[1] = wide == 8 ? 0xFF : 0xFE;
            for (k = 0; k < wide; k++) head[h++] = (uint8_t)((uint64_t)n >> 8 * (wide - 1 - k));
        }
        l->noise = l->noise * 1664525u + 1013904223u; /* masks protect proxies that confuse messages with requests; there is no proxy here */
        for (i = 0; i < 4; i++) head[h + i] = mask[i] = (uint8_t)(l->noise >> 8 * i);
        kilnl_add(out, head, h + 4);
        at = out->size;
        kilnl_add(out, text->data, n);
        for (i = 0; !out->failed && i < n; i++) out->data[at + i] ^= mask[i & 3];
    }
    kilnl_empty(text);
}

static void kilnl_begin(kilnl_bytes *b, const char *type) {
    memset(b, 0, sizeof *b);
    kilnl_add_text(b, "{\"type\":\"");
    kilnl_add_text(b, type);
    kilnl_add_text(b, "\"");
}

static void kilnl_field(kilnl_bytes *b, const char *name, const char *value) {
    if (!value) return;
    kilnl_add_text(b, ",\"");
    kilnl_add_text(b, name);
    kilnl_add_text(b, "\":");
    kilnl_add_string(b, value);
}

static void kilnl_hello(kiln_live *l) {
    kilnl_bytes b;
    kilnl_begin(&b, "hello");
    kilnl_add_text(&b, ",\"version\":1,\"list\":true,\"client\":\"kiln.h\"");
    kilnl_field(&b, "game", l->o.game);
    kilnl_field(&b, "platform", l->o.platform);
    if (l->epoch[0]) {
        kilnl_field(&b, "epoch", l->epoch);
        kilnl_add_text(&b, ",\"seq\":");
        kilnl_add_number(&b, l->seq);
    }
    kilnl_add_text(&b, "}");
    kilnl_say(l, &b);
}

static void kilnl_ask(kiln_live *l, const char *name) {
    kilnl_bytes b;
    kilnl_begin(&b, "request");
    kilnl_add_text(&b, ",\"request\":");
    kilnl_add_number(&b, ++l->asked);
    kilnl_field(&b, "name", name);
    kilnl_add_text(&b, "}");
    kilnl_say(l, &b);
}

KILN_API void kiln_live_log(kiln_live *l, const char *level, const char *text) {
    kilnl_bytes b;
    kilnl_begin(&b, "log");
    kilnl_field(&b, "level", level);
    kilnl_field(&b, "text", text);
    kilnl_add_text(&b, "}");
    kilnl_say(l, &b);
}

/*
 * kilnl_welcomed handles the welcome: either the watcher knew the state of the game, or it sends the whole list again,
 * as soon as it knows it. Until then the resources stay as they are.
 */
static void kilnl_welcomed(kiln_live *l, const char *epoch, int resumed, uint64_t beat) {
    kiln_live_event e;
    size_t i;
    strcpy(l->coming, "?"); /* in place of an epoch that is too long: no watcher has it, so the next hello resumes nothing */
    if (*epoch && strlen(epoch) < sizeof l->coming) memcpy(l->coming, epoch, strlen(epoch) + 1);
    l->pages.size = 0;
    l->level = resumed;
    l->beat = beat;
    l->dirty = 1;
    for (i = 0; i < l->count; i++) l->slots[i].told = 0, l->slots[i].lost = 0;
    for (i = 0; i < l->wants; i++) kilnl_ask(l, l->wanted[i]);
    memset(&e, 0, sizeof e);
    e.type = "connected", e.asset = e.reason = "", e.resumed = resumed;
    kilnl_report(l, &e);
}

/* kilnl_read_page stores the resources of one page. It returns 0 if the page is not valid. */
static int kilnl_read_page(kiln_live *l, char *data, size_t size, uint64_t *seq) {
    kilnl_json j;
    const char *key;
    int first = 1;
    j.at = data, j.end = data + size, j.bad = 0;
    kilnl_must(&j, '{');
    while ((key = kilnl_key(&j, &first)) != NULL) {
        int begin = 1;
        if (!strcmp(key, "seq")) *seq = kilnl_number(&j);
        else if (!strcmp(key, "resources")) {
            kilnl_must(&j, '[');
            while (kilnl_item(&j, &begin)) kilnl_resource(l, &j);
        } else if (!strcmp(key, "removed") && !l->listing) {
            kilnl_must(&j, '[');
            while (kilnl_item(&j, &begin)) {
                kilnl_slot *s = kilnl_by_number(l, (uint32_t)kilnl_number(&j));
                if (s) s->here = 0;
            }
        } else kilnl_skip(&j);
    }
    return !j.bad;
}

/* kilnl_listed ends a list: resources that are on no page are removed. One that is still used gives up its number. */
static int kilnl_listed(kiln_live *l) {
    size_t i;
    for (i = 0; i < l->count; i++) l->slots[i].here &= l->slots[i].listed;
    for (i = 0; i < l->count; i++) {
        kilnl_slot *s = &l->slots[i];
        if (s->here || (!s->loaded && !s->uses) || !kilnl_by_number(l, s->r.id)) continue;
        s->r.id = KILNL_NO_ID - 1 - (uint32_t)i;
        if (!kilnl_note(l, 0, s->r.id, i)) return 0;
    }
    return 1;
}

/*
 * kilnl_page handles a page of a list or change. Nothing of it counts before the last one has arrived: the connection may
 * break. It returns 0 if a page is not valid.
 */
static int kilnl_page(kiln_live *l, int list, int more, char *data, size_t size) {
    size_t i, at, n;
    uint64_t seq = 0;
    int good = 1;
    if (!l->coming[0] || (l->pages.size && l->listing != list)) return 0;
    l->listing = list;
    if (more) {
        kilnl_add(&l->pages, &size, sizeof size);
        kilnl_add(&l->pages, data, size);
        return !l->pages.failed;
    }
    for (i = 0; list && i < l->count; i++) l->slots[i].listed = 0;
    for (at = 0; good && at < l->pages.size; at += n) {
        memcpy(&n, l->pages.data + at, sizeof n);
        at += sizeof n;
        good = kilnl_read_page(l, (char *)l->pages.data + at, n, &seq);
    }
    kilnl_empty(&l->pages);
    good = good && kilnl_read_page(l, data, size, &seq) && (!list || kilnl_listed(l));
    memcpy(l->epoch, l->coming, sizeof l->epoch);
    l->seq = good ? seq : 0; /* of 0 no watcher resumes */
    l->welcome |= list;
    l->level = good;
    l->dirty = 1;
    return good;
}

static void kilnl_forget_want(kiln_live *l, size_t i) {
    KILN_LIVE_FREE(l->wanted[i]);
    l->wanted[i] = l->wanted[--l->wants];
}

static void kilnl_reload(kiln_live *l, kilnl_json *j, int all) {
    size_t i;
    int first = 1;
    for (i = 0; all && i < l->count; i++) l->slots[i].again = l->slots[i].loaded;
    if (!all) {
        kilnl_must(j, '[');
        while (kilnl_item(j, &first)) {
            kilnl_slot *s = kilnl_by_number(l, (uint32_t)kilnl_number(j));
            if (s) s->again = s->loaded;
        }
    }
    l->dirty = 1;
}

/*
 * kilnl_kind_of finds the type of a message, and whether more pages follow. It copies the text, because reading strings
 * in place would change the message.
 */
static void kilnl_kind_of(kilnl_json j, char *type, size_t room, int *more) {
    int first = 1;
    type[0] = 0;
    *more = 0;
    kilnl_must(&j, '{');
    while (!j.bad && !kilnl_is(&j, '}')) {
        char *key, *value;
        size_t n;
        if (!first) kilnl_must(&j, ',');
        first = 0;
        kilnl_space(&j);
        key = j.at;
        kilnl_skip(&j);
        n = (size_t)(j.at - key);
        kilnl_must(&j, ':');
        kilnl_space(&j);
        value = j.at;
        kilnl_skip(&j);
        if (j.bad) return;
        if (n >= 6 && memcmp(key, "\"more\"", 6) == 0) *more = j.at - value >= 4 && memcmp(value, "true", 4) == 0;
        if (n >= 6 && memcmp(key, "\"type\"", 6) == 0 && j.at - value >= 2 && (size_t)(j.at - value) - 2 < room) {
            memcpy(type, value + 1, (size_t)(j.at - value) - 2);
            type[j.at - value - 2] = 0;
        }
    }
}

/* kilnl_message reads a message of a failed asset. */
static void kilnl_message(kilnl_json *j, kilnl_bytes *to) {
    kiln_live_message m;
    const char *key;
    int first = 1;
    memset(&m, 0, sizeof m);
    m.severity = m.code = m.file = m.text = m.hint = "";
    kilnl_must(j, '{');
    while ((key = kilnl_key(j, &first)) != NULL) {
        if (!strcmp(key, "severity")) m.severity = kilnl_string(j);
        else if (!strcmp(key, "code")) m.code = kilnl_string(j);
        else if (!strcmp(key, "file")) m.file = kilnl_string(j);
        else if (!strcmp(key, "line")) m.line = (uint32_t)kilnl_number(j);
        else if (!strcmp(key, "column")) m.column = (uint32_t)kilnl_number(j);
        else if (!strcmp(key, "text")) m.text = kilnl_string(j);
        else if (!strcmp(key, "hint")) m.hint = kilnl_string(j);
        else kilnl_skip(j);
    }
    kilnl_add(to, &m, sizeof m);
    if (to->failed) j->bad = 1;
}

/* kilnl_failed reports that an asset fails, or no longer does. */
static void kilnl_failed(kiln_live *l, const char *type, const char *asset, const kilnl_bytes *messages) {
    kiln_live_event e;
    memset(&e, 0, sizeof e);
    e.type = type, e.asset = asset, e.reason = "";
    e.messages = (const kiln_live_message *)(const void *)messages->data;
    e.count = messages->size / sizeof *e.messages;
    kilnl_report(l, &e);
}

/* kilnl_other handles a message that is not a page. It returns 0 if the message is not valid. */
static int kilnl_other(kiln_live *l, const char *type, kilnl_json *j) {
    kilnl_bytes messages = {NULL, 0, 0, 0};
    const char *key, *epoch = "", *asset = "", *reason = NULL;
    int first = 1, resumed = 0, some = 0;
    uint64_t beat = 0;
    kilnl_must(j, '{');
    while ((key = kilnl_key(j, &first)) != NULL) {
        int begin = 1;
        if (!strcmp(key, "epoch")) epoch = kilnl_string(j);
        else if (!strcmp(key, "asset")) asset = kilnl_string(j);
        else if (!strcmp(key, "reason")) reason = kilnl_string(j);
        else if (!strcmp(key, "resumed")) resumed = kilnl_true(j);
        else if (!strcmp(key, "beat")) beat = kilnl_number(j);
        else if (!strcmp(key, "messages") && kilnl_is(j, '[')) {
            while (kilnl_item(j, &begin)) kilnl_message(j, &messages);
        } else if (!strcmp(key, "ids") && !strcmp(type, "reload")) {
            some = 1;
            kilnl_reload(l, j, 0);
        } else kilnl_skip(j);
    }
    if (!j->bad) {
        if (!strcmp(type, "welcome")) kilnl_welcomed(l, epoch, resumed, beat);
        else if (!strcmp(type, "failed") || !strcmp(type, "mended")) kilnl_failed(l, type, asset, &messages);
        else if (!strcmp(type, "reload") && !some) kilnl_reload(l, j, 1);
        else if (!strcmp(type, "reply") && reason) kilnl_tell(l, "refused", reason);
        else if (!strcmp(type, "refused")) {
            l->refused = 1;
            kilnl_tell(l, "refused", reason ? reason : "");
            j->bad = 1;
        }
    }
    kilnl_empty(&messages);
    return !j->bad;
}

/* kilnl_heard handles a message. It returns 0 if the message is not valid. */
static int kilnl_heard(kiln_live *l, char *data, size_t size) {
    kilnl_json j;
    char type[16];
    int more;
    j.at = data, j.end = data + size, j.bad = 0;
    kilnl_kind_of(j, type, sizeof type, &more);
    if (!strcmp(type, "list") || !strcmp(type, "changed")) return kilnl_page(l, type[0] == 'l', more, data, size);
    return kilnl_other(l, type, &j);
}

/* ---- connections ---- */

static void kilnl_hang_up(kilnl_line *c) {
    if (c->socket != KILNL_NONE) KILNL_CLOSE(c->socket);
    c->socket = KILNL_NONE;
    c->state = KILNL_OFF;
    kilnl_empty(&c->in);
    kilnl_empty(&c->out);
}

/* kilnl_new_socket makes a socket that programs started by the game never inherit. */
static kilnl_socket kilnl_new_socket(int family) {
#ifdef SOCK_CLOEXEC
    kilnl_socket s = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s != KILNL_NONE || errno != EINVAL) return s; /* the system is older than its header */
#endif
    return socket(family, SOCK_STREAM, 0);
}

/* kilnl_call begins to connect. */
static int kilnl_call(kiln_live *l, kilnl_line *c) {
    int yes = 1;
    kilnl_hang_up(c);
    c->came = kilnl_now();
    c->socket = kilnl_new_socket(l->where[l->address].ss_family);
    if (c->socket == KILNL_NONE) return 0;
#ifdef _WIN32
    {
        u_long on = 1;
        ioctlsocket(c->socket, (long)FIONBIO, &on);
        SetHandleInformation((HANDLE)c->socket, HANDLE_FLAG_INHERIT, 0);
    }
#else
    fcntl(c->socket, F_SETFL, O_NONBLOCK);
    fcntl(c->socket, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
    setsockopt(c->socket, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
#endif
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, (const char *)&yes, sizeof yes);
    c->state = KILNL_CONNECTING;
    if (connect(c->socket, (const struct sockaddr *)&l->where[l->address], l->where_size[l->address]) == 0 || KILNL_UNDER_WAY) return 1;
    kilnl_hang_up(c);
    return 0;
}

static void kilnl_request_head(kiln_live *l, kilnl_bytes *out, const char *path) {
    kilnl_add_text(out, "GET ");
    kilnl_add_text(out, path);
    kilnl_add_text(out, " HTTP/1.1\r\nHost: ");
    kilnl_add_text(out, l->host);
    if (l->o.token) {
        kilnl_add_text(out, "\r\nAuthorization: Bearer ");
        kilnl_add_text(out, l->o.token);
    }
    kilnl_add_text(out, "\r\n");
}

static void kilnl_upgrade(kiln_live *l) {
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t nonce[16], hash[20];
    char key[64];
    int i;
    for (i = 0; i < 16; i++) {
        l->noise = l->noise * 1664525u + 1013904223u;
        nonce[i] = (uint8_t)(l->noise >> 24);
    }
    kilnl_base64(nonce, 16, key);
    kilnl_request_head(l, &l->talk.out, "/live/v1");
    kilnl_add_text(&l->talk.out, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: kiln.live.v1\r\nSec-WebSocket-Key: ");
    kilnl_add_text(&l->talk.out, key);
    kilnl_add_text(&l->talk.out, "\r\n\r\n");
    memcpy(key + strlen(key), guid, sizeof guid);
    kilnl_sha1((const uint8_t *)key, strlen(key), hash);
    kilnl_base64(hash, 20, l->accept);
}

/* kilnl_send sends what it can without waiting. It returns 0 if the connection is broken. */
static int kilnl_send(kilnl_line *c) {
    size_t sent = 0;
    while (sent < c->out.size) {
#ifdef _WIN32
        int n = send(c->socket, (const char *)c->out.data + sent, (int)(c->out.size - sent < 65536 ? c->out.size - sent : 65536), 0);
#elif defined(MSG_NOSIGNAL)
        ssize_t n = send(c->socket, c->out.data + sent, c->out.size - sent, MSG_NOSIGNAL);
#else
        ssize_t n = send(c->socket, c->out.data + sent, c->out.size - sent, 0);
#endif
        if (n < 0 && KILNL_AGAIN) break;
        if (n <= 0) return 0;
        sent += (size_t)n;
    }
    kilnl_take(&c->out, sent);
    return !c->out.failed;
}

/* kilnl_receive reads what has arrived, up to a limit. It returns 0 if the connection is broken. */
static int kilnl_receive(kilnl_line *c, size_t limit) {
    while (c->in.size < limit) {
        size_t room = limit - c->in.size < 65536 ? limit - c->in.size : 65536;
#ifdef _WIN32
        int n;
#else
        ssize_t n;
#endif
        if (!kilnl_reserve(&c->in, room)) return 0;
#ifdef _WIN32
        n = recv(c->socket, (char *)c->in.data + c->in.size, (int)room, 0);
#else
        n = recv(c->socket, c->in.data + c->in.size, room, 0);
#endif
        if (n < 0 && KILNL_AGAIN) return 1;
        if (n <= 0) return 0;
        c->in.size += (size_t)n;
        c->came = kilnl_now();
    }
    return 1;
}

/* kilnl_silent reports whether nothing has come for too long. */
static int kilnl_silent(const kilnl_line *c, uint64_t most) {
    uint64_t now = kilnl_now();
    return now > c->came && now - c->came > most;
}

/* kilnl_expected is how long the watcher may be silent; 0: for ever, because it sends no signs of life. */
static uint64_t kilnl_expected(const kiln_live *l) {
    uint64_t most = kilnl_patience(l);
    if (!l->coming[0]) return most;
    return l->beat > most / 2 ? 2 * l->beat : l->beat ? most : 0;
}

/* kilnl_connected returns 1 if the connection is established, 0 if not yet, -1 if it failed. */
static int kilnl_connected(kilnl_line *c) {
    int error = 0;
    socklen_t size = sizeof error;
#ifdef _WIN32 /* before version 2004, WSAPoll does not report failed connections */
    fd_set there, failed;
    struct timeval none = {0, 0};
    FD_ZERO(&there);
    FD_ZERO(&failed);
    there.fd_count = failed.fd_count = 1;
    there.fd_array[0] = failed.fd_array[0] = c->socket;
    if (select(0, NULL, &there, &failed, &none) <= 0) return 0;
    if (failed.fd_count) return -1;
#else
    struct pollfd p;
    p.fd = c->socket, p.events = POLLOUT, p.revents = 0;
    if (KILNL_POLL(&p, 1, 0) <= 0) return 0;
#endif
    if (getsockopt(c->socket, SOL_SOCKET, SO_ERROR, (char *)&error, &size) || error) return -1;
    return 1;
}

/* kilnl_head returns the size of an answer's header with the empty line after it, or 0 if it is incomplete. */
static size_t kilnl_head(const kilnl_bytes *in) {
    size_t i;
    for (i = 3; i < in->size; i++) {
        if (memcmp(in->data + i - 3, "\r\n\r\n", 4) == 0) return i + 1;
    }
    return 0;
}

/* kilnl_header finds a header field and copies its value. It returns 0 if there is none. */
static int kilnl_header(const kilnl_bytes *in, size_t head, const char *name, char *value, size_t room) {
    size_t n = strlen(name), i, k;
    for (i = 0; i + n + 1 < head; i++) {
        if (i && in->data[i - 1] != '\n') continue;
        for (k = 0; k < n && (in->data[i + k] | 32) == (name[k] | 32); k++) {}
        if (k < n || in->data[i + n] != ':') continue;
        for (i += n + 1; in->data[i] == ' ' || in->data[i] == '\t'; i++) {}
        for (k = 0; in->data[i + k] != '\r' && in->data[i + k] != '\n' && k + 1 < room; k++) value[k] = (char)in->data[i + k];
        value[k] = 0;
        return 1;
    }
    return 0;
}

static int kilnl_status(const kilnl_bytes *in) {
    const uint8_t *p = in->data;
    if (in->size < 12 || memcmp(p, "HTTP/1.", 7) != 0) return 0;
    return (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
}

/* kilnl_frame reads one frame. It returns 1, 0 if the frame is incomplete, or -1 if it is not valid. */
static int kilnl_frame(kiln_live *l) {
    kilnl_bytes *in = &l->talk.in;
    const uint8_t *p = in->data;
    uint64_t n;
    size_t head = 2;
    int code, i, good = 1;
    if (in->size < 2) return 0;
    code = p[0] & 15;
    n = p[1] & 127;
    if (n > 125) {
        int wide = n == 126 ? 2 : 8;
        head += (size_t)wide;
        if (in->size < head) return 0;
        for (n = 0, i = 0; i < wide; i++) n = n << 8 | p[2 + i];
    }
    if ((p[0] & 0x70) || (p[1] & 0x80) || n > KILNL_MAX_MESSAGE || n + l->message.size > KILNL_MAX_MESSAGE) return -1;
    if (in->size - head < n) return 0;
    if (code == 9) { /* ping: the answer has the same content */
        uint8_t pong[6] = {0x8A, 0x80, 0, 0, 0, 0};
        if (n > 125) return -1;
        pong[1] = (uint8_t)(0x80 | n);
        if (l->talk.out.size < KILNL_MAX_UNSENT) {
            kilnl_add(&l->talk.out, pong, 6);
            kilnl_add(&l->talk.out, p + head, (size_t)n);
        }
    } else if (code == 8) return -1;
    else if (code <= 2) {
        kilnl_add(&l->message, p + head, (size_t)n);
        if (p[0] & 0x80) {
            good = code != 2 && l->message.size && !l->message.failed && kilnl_heard(l, (char *)l->message.data, l->message.size);
            l->message.size = 0;
        }
    }
    l->taken += head + (size_t)n;
    in->data += head + (size_t)n, in->size -= head + (size_t)n; /* kilnl_talk moves it back */
    return good ? 1 : -1;
}

/* kilnl_frames reads all frames that have arrived. It returns 0 if one is not valid. */
static int kilnl_frames(kiln_live *l) {
    int more = 1;
    l->taken = 0;
    while (more > 0 && !l->leaving) more = kilnl_frame(l);
    if (l->taken) {
        l->talk.in.data -= l->taken, l->talk.in.size += l->taken;
        kilnl_take(&l->talk.in, l->taken);
    }
    return more == 0;
}

static void kilnl_broken(kiln_live *l) {
    int was = l->talk.state == KILNL_OPEN;
    kilnl_hang_up(&l->talk);
    if (l->fetching < 0) kilnl_hang_up(&l->fetch);
    l->message.size = l->pages.size = 0;
    l->coming[0] = 0;
    l->level = 0;
    l->beat = 0;
    l->retry = kilnl_now() + KILNL_RETRY;
    if (was) kilnl_tell(l, "disconnected", "");
}

/* kilnl_unreached tries the next address at once. After the last one it waits. */
static void kilnl_unreached(kiln_live *l) {
    if (++l->address < l->addresses) l->retry = kilnl_now();
    else l->address = 0, l->retry = kilnl_now() + KILNL_RETRY;
}

/* kilnl_answered checks the answer to the upgrade. It returns 1, 0 if it is incomplete, or -1 if it is a refusal. */
static int kilnl_answered(kiln_live *l) {
    char accept[64];
    size_t head = kilnl_head(&l->talk.in);
    int status;
    if (!head) return l->talk.in.size > KILNL_MAX_HEAD ? -1 : 0;
    status = kilnl_status(&l->talk.in);
    if (status == 401 || status == 403) {
        l->refused = 1;
        kilnl_tell(l, "refused", status == 401 ? "the token is wrong" : "not by this address");
    }
    if (status != 101 || !kilnl_header(&l->talk.in, head, "Sec-WebSocket-Accept", accept, sizeof accept) || strcmp(accept, l->accept) != 0) return -1;
    kilnl_take(&l->talk.in, head);
    return 1;
}

/* kilnl_talk advances the connection for messages. */
static void kilnl_talk(kiln_live *l) {
    int there = 1, ok = 1;
    kilnl_line *c = &l->talk;
    if (c->state == KILNL_OFF) {
        if (!l->refused && !kilnl_left(l->retry, KILNL_RETRY) && !kilnl_call(l, c)) kilnl_unreached(l);
        return;
    }
    if (c->state == KILNL_CONNECTING) {
        there = kilnl_connected(c);
        if (there == 1) {
            c->state = KILNL_HEAD;
            kilnl_upgrade(l);
        }
    }
    if (there == 1) {
        ok = kilnl_send(c) && kilnl_receive(c, KILNL_MAX_MESSAGE + 16);
        if (c->state == KILNL_HEAD) {
            int answer = kilnl_answered(l);
            if (answer < 0) ok = 0;
            if (answer > 0) {
                c->state = KILNL_OPEN;
                kilnl_hello(l);
            }
        }
        if (c->state == KILNL_OPEN && !kilnl_frames(l)) ok = 0;
        if (ok) ok = kilnl_send(c);
    }
    if (ok && kilnl_expected(l) && kilnl_silent(c, kilnl_expected(l))) ok = 0;
    if (there < 0 || !ok) {
        int reached = c->state == KILNL_OPEN;
        kilnl_broken(l);
        if (!reached) kilnl_unreached(l);
    }
}

/* ---- contents ---- */

static void kilnl_ask_content(kiln_live *l, size_t slot) {
    kilnl_bytes path = {NULL, 0, 0, 0};
    const kilnl_slot *s = &l->slots[slot];
    l->fetching = (int64_t)slot;
    memcpy(l->fetched, s->r.hash, 32);
    l->length = 0, l->status = 0;
    kilnl_add_text(&path, "/live/v1/blob/");
    kilnl_add_hex(&path, s->r.hash, 32);
    kilnl_add(&path, "", 1);
    if (!path.failed) kilnl_request_head(l, &l->fetch.out, (const char *)path.data);
    kilnl_add_text(&l->fetch.out, "\r\n");
    kilnl_empty(&path);
    if (l->fetch.state == KILNL_OPEN) l->fetch.state = KILNL_SENDING, l->fetch.came = kilnl_now();
}

/* kilnl_arrived stores a complete content, if it is still needed. */
static void kilnl_arrived(kiln_live *l) {
    kilnl_slot *s = &l->slots[l->fetching];
    uint8_t hash[32];
    l->fetching = -1;
    l->dirty = 1;
    if (memcmp(l->fetched, s->r.hash, 32) != 0 || s->have) return;
    if (l->status != 200) {
        if (l->status == 404) s->lost = 1;
        else l->fetch_retry = kilnl_now() + KILNL_RETRY;
        return;
    }
    kiln_hash(l->fetch.in.data, (size_t)l->length, hash);
    if (l->length != s->r.size || memcmp(hash, s->r.hash, 32) != 0) s->lost = 1;
    else if (l->length == 0) s->have = 1;
    else {
        s->content = (uint8_t *)KILN_LIVE_REALLOC(NULL, (size_t)l->length);
        if (s->content) {
            memcpy(s->content, l->fetch.in.data, (size_t)l->length);
            s->have = 1;
        }
    }
}

/* kilnl_answer reads header and body. It returns 0 if they are not valid. */
static int kilnl_answer(kiln_live *l) {
    char value[32];
    if (l->fetch.state == KILNL_SENDING) {
        size_t head = kilnl_head(&l->fetch.in);
        if (!head) return l->fetch.in.size <= KILNL_MAX_HEAD;
        l->status = kilnl_status(&l->fetch.in);
        if (!kilnl_header(&l->fetch.in, head, "Content-Length", value, sizeof value)) return 0;
        l->length = strtoull(value, NULL, 10);
        if (l->length > (l->status == 200 ? l->slots[l->fetching].r.size : KILNL_MAX_REFUSAL)) { /* not what was requested, and too large to read */
            kilnl_slot *s = &l->slots[l->fetching];
            s->lost = memcmp(l->fetched, s->r.hash, 32) == 0;
            l->fetching = -1, l->dirty = 1;
            return 0;
        }
        l->closing = kilnl_header(&l->fetch.in, head, "Connection", value, sizeof value) && (value[0] | 32) == 'c';
        kilnl_take(&l->fetch.in, head);
        l->fetch.state = KILNL_HEAD;
    }
    if (l->fetch.state == KILNL_HEAD && l->fetch.in.size >= l->length) {
        kilnl_arrived(l);
        kilnl_take(&l->fetch.in, (size_t)l->length);
        l->fetch.state = KILNL_OPEN;
        return !l->closing;
    }
    return 1;
}

/* kilnl_get advances the fetching of contents: one after the other, in load order. */
static void kilnl_get(kiln_live *l) {
    kilnl_line *c = &l->fetch;
    int there = 1, ok = 1;
    if (l->fetching < 0) {
        if (c->state == KILNL_OPEN && (!kilnl_receive(c, 1) || c->in.size)) kilnl_hang_up(c); /* nothing may come now but the end */
        return;
    }
    if (c->state == KILNL_OFF) {
        if (kilnl_left(l->fetch_retry, KILNL_RETRY)) return;
        if (!kilnl_call(l, c)) {
            l->fetch_retry = kilnl_now() + KILNL_RETRY / 10;
            return;
        }
        kilnl_ask_content(l, (size_t)l->fetching);
    }
    if (c->state == KILNL_CONNECTING) {
        there = kilnl_connected(c);
        if (there == 1) c->state = KILNL_SENDING;
    }
    if (there == 1) {
        size_t limit = c->state == KILNL_HEAD ? (size_t)l->length : KILNL_MAX_HEAD + 65536;
        ok = kilnl_send(c) && kilnl_receive(c, limit);
        if (c->in.size) ok = kilnl_answer(l) && (ok || l->fetching < 0);
        else if (c->state == KILNL_HEAD) ok = kilnl_answer(l) && ok;
    }
    if (l->fetching >= 0 && kilnl_silent(c, kilnl_patience(l))) ok = 0;
    if (there < 0 || !ok) {
        kilnl_hang_up(c);
        if (l->fetching >= 0) l->fetch_retry = kilnl_now() + KILNL_RETRY / 10;
        else l->fetch_retry = 0;
    }
}

/* ---- resources in use, in load order ---- */

/* kilnl_held is the number of resources that a value was made with. */
static uint32_t kilnl_held(const kilnl_slot *s) { return s->loaded ? s->was.required + s->was.optional : 0; }

/*
 * kilnl_visit appends a slot after all that it needs, and all that its value was made with. depth limits circles and
 * hostile chains.
 */
static void kilnl_visit(kiln_live *l, kilnl_slot *s, int depth) {
    uint32_t i;
    if (s->mark || depth > KILNI_CHAIN) return;
    s->mark = 1;
    for (i = 0; s->here && i < s->r.required + s->r.optional; i++) {
        kilnl_slot *need = kilnl_by_number(l, s->r.needs[i]);
        if (need) kilnl_visit(l, need, depth + 1);
    }
    for (i = 0; i < kilnl_held(s); i++) {
        if (s->held[i]) kilnl_visit(l, &l->slots[s->held[i] - 1], depth + 1);
    }
    l->order[l->ordered++] = (uint32_t)(s - l->slots);
}

/* kilnl_plan finds what is in use. Roots are sorted by id. */
static int kilnl_plan(kiln_live *l) {
    size_t i, roots = 0;
    void *p = KILN_LIVE_REALLOC(l->order, (l->count + 1) * 2 * sizeof *l->order);
    uint32_t *found;
    if (!p) return 0;
    l->order = (uint32_t *)p;
    found = l->order + l->count + 1;
    l->ordered = 0;
    for (i = 0; i < l->count; i++) {
        size_t at;
        l->slots[i].mark = 0;
        if (!l->slots[i].uses) continue;
        for (at = roots++; at && l->slots[found[at - 1]].r.id > l->slots[i].r.id; at--) found[at] = found[at - 1];
        found[at] = (uint32_t)i;
    }
    for (i = 0; i < roots; i++) kilnl_visit(l, &l->slots[found[i]], 0);
    return 1;
}

/* kilnl_missing reports whether a required need is not loaded and cannot be. */
static int kilnl_missing(const kiln_live *l, const kilnl_slot *s) {
    uint32_t i;
    for (i = 0; i < s->r.required; i++) {
        const kilnl_slot *need = kilnl_by_number(l, s->r.needs[i]);
        if (!need || !need->loaded) return 1;
    }
    return 0;
}

/* kilnl_differs reports whether a slot's own content must be loaded. */
static int kilnl_differs(const kilnl_slot *s) {
    static const uint8_t none[32] = {0};
    if (!s->here) return 0;
    if (!s->loaded && memcmp(s->applied, none, 32) == 0) return 1;
    return s->again || memcmp(s->applied, s->r.hash, 32) != 0;
}

/* kilnl_need is what a slot needs, as slot + 1, or 0 if it is not loaded. */
static uint32_t kilnl_need(const kiln_live *l, const kilnl_slot *s, uint32_t i) {
    const kilnl_slot *need = kilnl_by_number(l, s->r.needs[i]);
    return need && need->loaded ? (uint32_t)(need - l->slots) + 1 : 0;
}

/* kilnl_due reports whether something that a slot needs was just replaced, or is about to be, or came or went. */
static int kilnl_due(const kiln_live *l, const kilnl_slot *s) {
    uint32_t i, n = s->r.required + s->r.optional;
    if (!s->here) return 0;
    for (i = 0; i < n; i++) {
        const kilnl_slot *need = kilnl_by_number(l, s->r.needs[i]);
        if (need && need->fresh) return 1;
    }
    if (!s->loaded || s->stale) return 0;
    for (i = 0; i < n && n == kilnl_held(s); i++) {
        if (kilnl_need(l, s, i) != s->held[i]) return 1;
    }
    return n != kilnl_held(s);
}

/* kilnl_due_old is kilnl_due for a value of an older version: something that it was made with was replaced. */
static int kilnl_due_old(const kiln_live *l, const kilnl_slot *s) {
    uint32_t i;
    for (i = 0; (s->stale || !s->here) && i < kilnl_held(s); i++) {
        if (s->held[i] && l->slots[s->held[i] - 1].fresh) return 1;
    }
    return 0;
}

static void kilnl_list_id(kilnl_bytes *b, uint32_t id) {
    if (b->size) kilnl_add_text(b, ",");
    kilnl_add_number(b, id);
}

/*
 * kilnl_hold returns what a value is made with now, for held, or NULL if there is no memory. What a resource needs and was
 * removed has no number for the game from now on, or kiln_live_find would find it as long as others use it.
 */
static uint32_t *kilnl_hold(const kiln_live *l, kilnl_slot *s) {
    uint32_t i, n = s->r.required + s->r.optional;
    uint32_t *needs = (uint32_t *)(void *)s->memory; /* r.needs */
    uint32_t *held = (uint32_t *)KILN_LIVE_REALLOC(NULL, ((size_t)n + 1) * 2 * sizeof *held);
    for (i = 0; held && i < n; i++) {
        held[i] = kilnl_need(l, s, i);
        if (!kilnl_by_number(l, needs[i])) needs[i] = KILNL_NO_ID;
    }
    return held;
}

/* kilnl_rebind tells the game that something was replaced that an older version of a resource was made with. */
static void kilnl_rebind(kiln_live *l, kilnl_slot *s) {
    uint32_t i, n = kilnl_held(s);
    for (i = 0; i < n; i++) s->held[n + i] = s->held[i] ? l->slots[s->held[i] - 1].r.id : KILNL_NO_ID;
    s->was.id = s->r.id, s->was.name = s->r.name, s->was.type = s->r.type, s->was.needs = s->held + n;
    if (l->o.load) l->o.load(l->o.user, l, &s->was, NULL, 0, &s->value);
    s->fresh = 1;
}

/* kilnl_load_one calls the game's load, and records the result. */
static void kilnl_load_one(kiln_live *l, kilnl_slot *s, int content, kilnl_bytes *swapped, kilnl_bytes *refused, kilnl_bytes *used) {
    void *value = s->loaded ? s->value : NULL;
    const void *data = content ? (s->content ? (const void *)s->content : (const void *)"") : NULL;
    uint32_t *held = kilnl_hold(l, s);
    int wrong = !held || kilnl_missing(l, s) ? -1 : l->o.load && l->o.load(l->o.user, l, &s->r, data, content ? (size_t)s->r.size : 0, &value) ? 1 : 0;
    if (content && wrong != -1) memcpy(s->applied, s->r.hash, 32);
    s->again = 0;
    kilnl_drop_content(s);
    if (wrong) {
        KILN_LIVE_FREE(held);
        s->stale |= content;
        if (kilnl_due_old(l, s)) kilnl_rebind(l, s);
        if (refused->size) kilnl_add_text(refused, ",");
        kilnl_add_text(refused, "{\"id\":");
        kilnl_add_number(refused, s->r.id);
        kilnl_add_text(refused, ",\"hash\":\"");
        kilnl_add_hex(refused, s->r.hash, 32);
        kilnl_add_text(refused, wrong == -1 ? "\",\"reason\":\"something that it requires is not there\"}" : "\",\"reason\":\"the game's loader refused it\"}");
        return;
    }
    KILN_LIVE_FREE(s->held);
    s->held = held;
    s->was = s->r;
    s->value = value;
    s->loaded = s->fresh = 1;
    s->stale = 0;
    kilnl_list_id(swapped, s->r.id);
    if (!s->told && l->level) s->told = 1, kilnl_list_id(used, s->r.id);
}

static void kilnl_unload_one(kiln_live *l, kilnl_slot *s) {
    if (s->loaded && l->o.unload) l->o.unload(l->o.user, l, &s->r, s->value);
    s->loaded = s->stale = 0;
    s->value = NULL;
    KILN_LIVE_FREE(s->held);
    s->held = NULL;
    memset(s->applied, 0, 32);
    kilnl_drop_content(s);
}

/* kilnl_unload unloads what no slot in the order needs, each before what it was made with. */
static void kilnl_unload(kiln_live *l) {
    size_t i, kept = l->ordered;
    for (i = 0; i < l->count; i++) {
        if (!l->slots[i].mark && (l->slots[i].loaded || l->slots[i].have)) kilnl_visit(l, &l->slots[i], 0);
    }
    while (l->ordered > kept) kilnl_unload_one(l, &l->slots[l->order[--l->ordered]]);
}

static void kilnl_say_applied(kiln_live *l, kilnl_bytes *swapped, kilnl_bytes *refused, kilnl_bytes *used) {
    kilnl_bytes b;
    kilnl_begin(&b, "applied");
    kilnl_add_text(&b, ",\"seq\":");
    kilnl_add_number(&b, l->seq);
    kilnl_add_text(&b, ",\"swapped\":[");
    kilnl_add(&b, swapped->data, swapped->size);
    kilnl_add_text(&b, "],\"refused\":[");
    kilnl_add(&b, refused->data, refused->size);
    kilnl_add_text(&b, "]}");
    if (l->level) kilnl_say(l, &b); /* else the numbers mean nothing to the watcher */
    else kilnl_empty(&b);
    if (used->size) {
        kilnl_begin(&b, "used");
        kilnl_add_text(&b, ",\"ids\":[");
        kilnl_add(&b, used->data, used->size);
        kilnl_add_text(&b, "]}");
        kilnl_say(l, &b);
    }
    kilnl_empty(swapped);
    kilnl_empty(refused);
    kilnl_empty(used);
}

/* kilnl_wanted_names uses the wanted names that exist now. */
static void kilnl_wanted_names(kiln_live *l) {
    size_t i = 0;
    while (i < l->wants) {
        kiln_live_resource like;
        kilnl_slot *s;
        like.name = l->wanted[i];
        s = kilnl_seek(l, 2, kilnl_name_key(like.name), &like);
        if (!s) i++;
        else {
            s->uses++;
            kilnl_forget_want(l, i);
        }
    }
}

/* kilnl_apply applies everything, if all contents are there. It returns the number of resources that it touched. */
static int kilnl_apply(kiln_live *l) {
    kilnl_bytes swapped = {NULL, 0, 0, 0}, refused = {NULL, 0, 0, 0}, used = {NULL, 0, 0, 0};
    size_t i;
    int done = 0;
    l->dirty = 0;
    kilnl_wanted_names(l);
    if (!kilnl_plan(l)) {
        l->dirty = 1;
        return 0;
    }
    l->waiting = 0;
    for (i = 0; i < l->ordered; i++) {
        kilnl_slot *s = &l->slots[l->order[i]];
        s->fresh = kilnl_due(l, s);
        if (s->fresh && (!s->loaded || s->stale)) s->again = 1; /* it was refused, perhaps because something was missing that arrives now */
        s->fresh |= kilnl_differs(s) || kilnl_due_old(l, s);
        if (!kilnl_differs(s) || s->have) continue;
        l->waiting = 1;
        if (l->fetching < 0 && !s->lost && !kilnl_left(l->fetch_retry, KILNL_RETRY)) kilnl_ask_content(l, l->order[i]);
    }
    if (l->waiting) return 0;
    for (i = 0; i < l->ordered; i++) l->slots[l->order[i]].fresh = 0;
    for (i = 0; i < l->ordered && !l->leaving; i++) {
        kilnl_slot *s = &l->slots[l->order[i]];
        int content = kilnl_differs(s), old = !content && kilnl_due_old(l, s);
        if (old) kilnl_rebind(l, s);
        else if (content || kilnl_due(l, s)) kilnl_load_one(l, s, content, &swapped, &refused, &used);
        else {
            if (s->loaded && s->here && !s->told && l->level) s->told = 1, kilnl_list_id(&used, s->r.id);
            continue;
        }
        done++;
    }
    if (!l->leaving && kilnl_plan(l)) kilnl_unload(l);
    kilnl_say_applied(l, &swapped, &refused, &used);
    return done;
}

/* ---- functions for games ---- */

/* kilnl_may_be adds an address to try. */
static void kilnl_may_be(kiln_live *l, const void *address, size_t size) {
    if (l->addresses == KILNL_ADDRESSES || size > sizeof l->where[0]) return;
    memcpy(&l->where[l->addresses], address, size);
    l->where_size[l->addresses++] = (socklen_t)size;
}

/* kilnl_numbers adds a numeric address, IPv4 or IPv6. It returns 0 if it is not one. */
static int kilnl_numbers(kiln_live *l, const char *host, uint16_t port) {
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    memset(&four, 0, sizeof four);
    memset(&six, 0, sizeof six);
    four.sin_family = AF_INET, four.sin_port = htons(port);
    six.sin6_family = AF_INET6, six.sin6_port = htons(port);
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) kilnl_may_be(l, &four, sizeof four);
    else if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) kilnl_may_be(l, &six, sizeof six);
    else return 0;
    return 1;
}

/*
 * kilnl_look_up asks the system for the addresses of a name, and waits. It is not available in strict C99 without
 * _POSIX_C_SOURCE.
 */
static void kilnl_look_up(kiln_live *l, const char *host, const char *port) {
#ifdef AI_PASSIVE
    struct addrinfo hints, *found = NULL, *a;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host, port, &hints, &found)) return;
    for (a = found; a; a = a->ai_next) kilnl_may_be(l, a->ai_addr, (size_t)a->ai_addrlen);
    freeaddrinfo(found);
#else
    (void)l, (void)host, (void)port;
#endif
}

/*
 * kilnl_address reads "127.0.0.1:7171", "[::1]:7171", "localhost:7171" or "name:7171", with or without http:// before
 * and a slash after it.
 */
static int kilnl_address(kiln_live *l, const char *text) {
    const char *end;
    char host[254], port[6]; /* a DNS name has at most 253 characters */
    size_t n, digits;
    unsigned long number;
    if (strncmp(text, "http://", 7) == 0) text += 7;
    if (*text == '[') {
        end = strchr(++text, ']');
        n = end ? (size_t)(end++ - text) : 0;
    } else {
        end = strchr(text, ':');
        n = end ? (size_t)(end - text) : 0;
    }
    if (!n || n >= sizeof host || *end++ != ':') return 0;
    memcpy(host, text, n);
    host[n] = 0;
    digits = strspn(end, "0123456789");
    if (!digits || digits >= sizeof port || (end[digits] && strcmp(end + digits, "/") != 0)) return 0;
    memcpy(port, end, digits);
    port[digits] = 0;
    number = strtoul(port, NULL, 10);
    if (number < 1 || number > 65535) return 0;
    sprintf(l->host, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    if (strcmp(host, "localhost") == 0) { /* no name server is needed for it (RFC 6761) */
        kilnl_numbers(l, "127.0.0.1", (uint16_t)number);
        kilnl_numbers(l, "::1", (uint16_t)number);
    } else if (!kilnl_numbers(l, host, (uint16_t)number)) kilnl_look_up(l, host, port);
    return l->addresses > 0;
}

KILN_API kiln_live *kiln_live_open(const kiln_live_options *options) {
    kiln_live *l = (kiln_live *)KILN_LIVE_REALLOC(NULL, sizeof *l);
    if (!l) return NULL;
    memset(l, 0, sizeof *l);
    l->o = *options;
    l->talk.socket = l->fetch.socket = KILNL_NONE;
    l->fetching = -1;
    l->noise = (uint32_t)kilnl_now() ^ (uint32_t)(uintptr_t)l;
#ifdef _WIN32
    {
        WSADATA data;
        if (WSAStartup(MAKEWORD(2, 2), &data)) {
            KILN_LIVE_FREE(l);
            return NULL;
        }
    }
#endif
    if (!kilnl_address(l, options->address ? options->address : "127.0.0.1:7171") || !kilnl_index(l)) {
        kiln_live_close(l);
        return NULL;
    }
    return l;
}

KILN_API void kiln_live_close(kiln_live *l) {
    size_t i;
    if (!l) return;
    l->leaving = 1;
    if (l->inside) return; /* the running call closes it */
    l->inside = 1;
    for (i = 0; i < l->count; i++) l->slots[i].uses = 0;
    if (kilnl_plan(l)) kilnl_unload(l);
    for (i = 0; i < l->count; i++) {
        kilnl_unload_one(l, &l->slots[i]); /* without memory for an order */
        KILN_LIVE_FREE(l->slots[i].memory);
    }
    while (l->wants) kilnl_forget_want(l, 0);
    kilnl_hang_up(&l->talk);
    kilnl_hang_up(&l->fetch);
    kilnl_empty(&l->message);
    kilnl_empty(&l->pages);
    KILN_LIVE_FREE(l->wanted);
    KILN_LIVE_FREE(l->slots);
    KILN_LIVE_FREE(l->tables);
    KILN_LIVE_FREE(l->order);
    KILN_LIVE_FREE(l);
#ifdef _WIN32
    WSACleanup();
#endif
}

static int kilnl_poll(kiln_live *l) {
    int done;
    kilnl_talk(l);
    if (l->leaving) return 0;
    kilnl_get(l);
    if (!l->welcome || (!l->dirty && !l->waiting)) return 0;
    if (!l->dirty && l->fetching >= 0) return 0;
    done = kilnl_apply(l);
    if (!l->leaving) kilnl_get(l);
    return done;
}

KILN_API int kiln_live_poll(kiln_live *l) {
    int done;
    if (l->inside) return 0; /* called by load, unload or notify */
    l->inside = 1;
    done = kilnl_poll(l);
    l->inside = 0;
    if (l->leaving) kiln_live_close(l);
    return done;
}

/* kilnl_until shortens a wait to what is left until a moment. */
static void kilnl_until(int *milliseconds, uint64_t at, uint64_t most) {
    uint64_t left = kilnl_left(at, most);
    if (*milliseconds < 0 || left < (uint64_t)*milliseconds) *milliseconds = (int)left;
}

KILN_API void kiln_live_wait(kiln_live *l, int milliseconds) {
    struct pollfd p[2];
    kilnl_line *lines[2];
    unsigned n = 0;
    int i;
    uint64_t expected = kilnl_expected(l);
    lines[0] = &l->talk, lines[1] = &l->fetch;
    if (l->dirty && l->welcome) return;
    for (i = 0; i < 2; i++) {
        if (lines[i]->state == KILNL_OFF) continue;
        p[n].fd = lines[i]->socket;
        p[n].events = POLLIN;
        if (lines[i]->state == KILNL_CONNECTING || lines[i]->out.size) p[n].events = POLLIN | POLLOUT;
        p[n++].revents = 0;
    }
    if (l->talk.state != KILNL_OFF) {
        if (expected) kilnl_until(&milliseconds, l->talk.came + expected + 1, expected + 1);
    } else if (!l->refused) kilnl_until(&milliseconds, l->retry, KILNL_RETRY);
    if (l->fetch.state != KILNL_OFF && l->fetching >= 0) kilnl_until(&milliseconds, l->fetch.came + kilnl_patience(l) + 1, kilnl_patience(l) + 1);
    else if (l->fetching >= 0 || (l->waiting && kilnl_left(l->fetch_retry, KILNL_RETRY))) kilnl_until(&milliseconds, l->fetch_retry, KILNL_RETRY);
#ifdef _WIN32
    if (!n) Sleep((DWORD)milliseconds);
    else
#endif
        KILNL_POLL(p, n, milliseconds);
}

KILN_API int kiln_live_ready(const kiln_live *l) { return l->welcome && !l->dirty && !l->waiting && !l->wants; }

KILN_API int kiln_live_use(kiln_live *l, uint32_t id) {
    kilnl_slot *s = kilnl_by_number(l, id);
    if (!s) return KILN_NOT_FOUND;
    s->uses++;
    l->dirty = 1;
    return KILN_OK;
}

KILN_API int kiln_live_use_name(kiln_live *l, const char *name) {
    const kiln_live_resource *r = kiln_live_find_name(l, name);
    size_t n = strlen(name) + 1;
    void *p;
    if (r) return kiln_live_use(l, r->id);
    p = KILN_LIVE_REALLOC(l->wanted, (l->wants + 1) * sizeof *l->wanted);
    if (!p) return KILN_ROOM;
    l->wanted = (char **)p;
    l->wanted[l->wants] = (char *)KILN_LIVE_REALLOC(NULL, n);
    if (!l->wanted[l->wants]) return KILN_ROOM;
    memcpy(l->wanted[l->wants++], name, n);
    if (l->talk.state == KILNL_OPEN) kilnl_ask(l, name);
    return KILN_OK;
}

static int kilnl_unuse(kiln_live *l, kilnl_slot *s) {
    if (!s || !s->uses) return KILN_NOT_FOUND;
    s->uses--;
    l->dirty = 1;
    return KILN_OK;
}

KILN_API int kiln_live_unuse(kiln_live *l, uint32_t id) {
    kilnl_slot *s = kilnl_by_number(l, id);
    return kilnl_unuse(l, s ? s : kilnl_gone(l, id));
}

KILN_API int kiln_live_unuse_name(kiln_live *l, const char *name) {
    kiln_live_resource like;
    kilnl_slot *s;
    size_t i;
    like.name = name;
    s = kilnl_seek(l, 2, kilnl_name_key(name), &like);
    if (s && s->uses) return kilnl_unuse(l, s);
    for (i = 0; i < l->wants; i++) {
        if (strcmp(l->wanted[i], name) != 0) continue;
        kilnl_forget_want(l, i);
        return KILN_OK;
    }
    for (i = 0; i < l->count; i++) { /* it was removed */
        if (!l->slots[i].here && l->slots[i].uses && strcmp(l->slots[i].r.name, name) == 0) return kilnl_unuse(l, &l->slots[i]);
    }
    return KILN_NOT_FOUND;
}

#endif /* KILN_LIVE_IMPLEMENTATION */
