/*
 * Prints the judgement of kiln.h on parcels, in the form of the conformance set.
 *
 *     check hash FILE...            BLAKE3 of each file
 *     check judge PARCEL QUERIES... the judgements, a line "== PARCEL" before each; QUERIES is a file with the lines "find ..." and "load ..." to answer
 *     check all FILE...             calls all functions on each file, valid or not, and prints nothing
 *     check facts PARCEL            maps the file, and prints the results of all other calls
 *     check trust PARCEL KEY        what kiln_trust would have verified, a line "signature message key" each, and its result if all of them are valid
 *     check order PARCEL... -- ID... load order, each parcel over the one before; "?" before an id includes optional needs
 */
#define KILN_IMPLEMENTATION
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WITH_ZSTD
#ifdef __cplusplus
extern "C" {
#endif
void *ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(void *context);
size_t ZSTD_decompress_usingDict(void *context, void *to, size_t room, const void *from, size_t size, const void *dictionary, size_t dictionary_size);
#ifdef __cplusplus
}
#endif
static size_t unpack(void *user, void *to, size_t room, const void *from, size_t size, const void *dictionary, size_t dictionary_size) {
    return ZSTD_decompress_usingDict(user, to, room, from, size, dictionary, dictionary_size);
}
static void *context(void) { return ZSTD_createDCtx(); }
static void drop(void *c) { ZSTD_freeDCtx(c); }
#else
#define unpack NULL /* the one of the header */
static void *context(void) { return NULL; }
static void drop(void *c) { (void)c; }
#endif

static void die(const char *what, const char *why) {
    fprintf(stderr, "check: %s: %s\n", what, why);
    exit(2);
}

/* load reads a file into memory of exactly its size, so that a sanitizer reports reads beyond it. */
static uint8_t *load(const char *name, size_t *size) {
    FILE *f = fopen(name, "rb");
    uint8_t *data;
    long n = 0;
    if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0) die(name, "cannot be read");
    rewind(f);
    *size = (size_t)n;
    data = (uint8_t *)malloc(*size ? *size : 1);
    if (!data || fread(data, 1, *size, f) != *size) die(name, "cannot be read");
    fclose(f);
    return data;
}

/* content reads a resource into memory that the caller frees, or returns NULL. */
static uint8_t *content(const kiln_resource *r, void *zstd, int *error) {
    uint8_t *to;
    *error = KILN_ROOM;
    if (r->size > kiln_most(r)) return NULL;
    to = (uint8_t *)malloc(r->size ? (size_t)r->size : 1);
    if (!to) die("content", "no memory");
    *error = kiln_read(r, to, (size_t)r->size, unpack, zstd);
    return to;
}

static void say_needs(const kiln_resource *r) {
    uint32_t i;
    if (r->required + r->optional == 0) return;
    printf(" needs=");
    for (i = 0; i < r->required + r->optional; i++) printf("%s%u", i == r->required ? ";" : i ? "," : "", (unsigned)kiln_need(r, i));
    if (!r->optional) printf(";");
}

/* say_name prints "?" for invalid text. A zero byte is valid here; only kiln_check refuses it. */
static void say_name(kiln_text name) {
    uint8_t copy[4096];
    size_t i;
    for (i = 0; i < name.size; i++) copy[i] = name.data[i] ? (uint8_t)name.data[i] : (uint8_t)' ';
    if (kilni_utf8(copy, name.size)) fwrite(name.data, 1, name.size, stdout);
    else printf("?");
}

static void say_resource(const kiln_parcel *p, uint32_t i, void *zstd) {
    kiln_resource r;
    uint8_t *bytes = NULL;
    int error = kiln_at(p, i, &r);
    if (error) r.codec = 0; /* ignore its value */
    else bytes = content(&r, zstd, &error);
    if (error) {
        printf("%u error\n", (unsigned)i);
    } else {
        kiln_text type = kiln_type(p, r.type);
        printf("%u id=%u sub=%u type=", (unsigned)i, (unsigned)r.id, (unsigned)r.sub);
        fwrite(type.data, 1, type.size, stdout);
        printf(" name=\"");
        say_name(r.name);
        printf("\" size=%lu content=%08x%s", (unsigned long)r.size, (unsigned)kilni_crc(bytes, (size_t)r.size), r.codec ? " zstd" : "");
        say_needs(&r);
        printf("\n");
    }
    free(bytes);
}

/* load_line prints what loading a resource loads. */
static void load_line(const kiln_parcel *p, uint32_t id) {
    uint32_t *memory = (uint32_t *)calloc(4 * ((size_t)p->count + 1), 4);
    kiln_order order;
    size_t i;
    if (!memory) die("load", "no memory");
    kiln_order_begin(&order, memory, 4 * ((size_t)p->count + 1));
    printf("load id=%u ", (unsigned)id);
    if (kiln_order_add(&order, p, id, 1)) printf("error");
    for (i = 0; i < order.count; i++) printf("%s%u", i ? "," : "", (unsigned)order.ids[i]);
    printf("\n");
    free(memory);
}

/* find answers a line of queries. */
static void find(const kiln_parcel *p, char *line) {
    kiln_resource r;
    int error = KILN_FILE;
    unsigned id, sub, b[16], i;
    size_t n = strcspn(line, "\r\n");
    line[n] = 0;
    if (sscanf(line, "load id=%u", &id) == 1) {
        load_line(p, id);
        return;
    }
    if (sscanf(line, "find id=%u", &id) == 1) {
        error = kiln_find(p, id, &r);
    } else if (strncmp(line, "find uuid=", 10) == 0 && n > 42) {
        uint8_t uuid[16];
        for (i = 0; i < 16; i++) {
            if (sscanf(line + 10 + 2 * i, "%2x", &b[i]) != 1) die(line, "no query");
            uuid[i] = (uint8_t)b[i];
        }
        if (sscanf(line + 42, " sub=%u", &sub) != 1) die(line, "no query");
        error = kiln_find_uuid(p, uuid, sub, &r);
    } else if (strncmp(line, "find name=\"", 11) == 0) {
        error = kiln_find_name(p, line + 11, n - 12, &r);
    } else {
        die(line, "no query");
    }
    printf("%s ", line);
    if (error == KILN_OK) printf("%u\n", (unsigned)r.index);
    else printf("%s\n", error == KILN_NOT_FOUND ? "none" : "error");
}

static void judge(const char *parcel, const char *queries) {
    size_t size;
    uint8_t *data = load(parcel, &size);
    kiln_parcel p;
    uint32_t i;
    char line[8192];
    void *zstd = context();
    FILE *f = fopen(queries, "r");
    int error = kiln_open(&p, data, size);
    printf("open %s\n", error ? "error" : "ok");
    if (!error) {
        printf("check %s\ncount %u\n", kiln_check(&p) ? "error" : "ok", (unsigned)p.count);
        for (i = 0; i < p.count; i++) say_resource(&p, i, zstd);
        while (f && fgets(line, sizeof line, f)) find(&p, line);
    }
    if (f) fclose(f);
    drop(zstd);
    free(data);
}

/* say_yes accepts any signature; say_all also prints its arguments. */
static int say_yes(void *user, const uint8_t signature[64], const uint8_t *message, size_t size, const uint8_t key[32]) {
    (void)user, (void)signature, (void)message, (void)size, (void)key;
    return 1;
}

static void say_hex(const uint8_t *p, size_t n, char end) {
    while (n--) printf("%02x", *p++);
    printf("%c", end);
}

static int say_all(void *user, const uint8_t signature[64], const uint8_t *message, size_t size, const uint8_t key[32]) {
    (void)user;
    say_hex(signature, 64, ' ');
    say_hex(message, size, ' ');
    say_hex(key, 32, '\n');
    return 1;
}

static void trust(const char *name, const char *key) {
    size_t size;
    uint8_t *data = load(name, &size);
    kiln_parcel p;
    int error = kiln_open(&p, data, size);
    if (error) die(name, kiln_words(error));
    printf("%s\n", kiln_words(kiln_trust(&p, key, say_all, NULL)));
    free(data);
}

/* all calls all functions. */
static void all(const uint8_t *data, size_t size) {
    static const uint8_t uuid[16] = {0};
    static uint32_t memory[4 * 64];
    kiln_parcel p;
    kiln_resource r, found;
    kiln_order order;
    uint8_t hash[32];
    void *zstd;
    uint32_t i;
    if (kiln_open(&p, data, size)) return;
    kiln_check(&p);
    kiln_digest(&p, hash);
    kiln_trust(&p, "RWRkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3ODkrL0FCQ0RF", say_yes, NULL);
    kiln_find_type(&p, "texture", 7);
    kiln_find_uuid(&p, uuid, 0, &found);
    kiln_order_begin(&order, memory, 4 * 64);
    zstd = context();
    for (i = 0; i < p.count; i++) {
        const void *view;
        uint8_t *bytes;
        int error;
        if (kiln_at(&p, i, &r)) continue;
        bytes = content(&r, zstd, &error);
        if (!error) kiln_verify(&r, bytes, (size_t)r.size);
        free(bytes);
        kiln_view(&r, &view);
        kiln_find(&p, r.id, &found);
        kiln_find(&p, r.id + 1, &found);
        kiln_find_name(&p, r.name.data, r.name.size, &found);
        kiln_find_uuid(&p, r.uuid, r.sub, &found);
        kiln_order_add(&order, &p, r.id, (int)i & 1);
    }
    drop(zstd);
}

static void facts(const char *name) {
    const void *data, *view;
    size_t size;
    kiln_parcel p;
    kiln_resource r;
    uint8_t digest[32], *bytes;
    uint32_t i, viewed = 0, verified = 0, aligned = 0;
    int error = kiln_map_file(name, &data, &size);
    if (!error) error = kiln_open(&p, data, size);
    if (!error) error = kiln_digest(&p, digest);
    if (error) die(name, kiln_words(error));
    for (i = 0; i < p.count; i++) {
        if (kiln_at(&p, i, &r)) die(name, "a resource");
        if (kiln_view(&r, &view)) continue;
        viewed++;
        if ((uintptr_t)r.payload % ((uintptr_t)1 << r.align) == 0) aligned++;
        bytes = content(&r, NULL, &error);
        if (!error && memcmp(bytes, view, (size_t)r.size) == 0 && !kiln_verify(&r, bytes, (size_t)r.size)) verified++;
        if (r.size) {
            bytes[r.size - 1] ^= 1;
            if (!kiln_verify(&r, bytes, (size_t)r.size)) die(name, "a hash that anything has");
            if (kiln_read(&r, bytes, (size_t)r.size - 1, NULL, NULL) != KILN_ROOM) die(name, "room that is not there");
        }
        free(bytes);
    }
    printf("digest %s, texture is type %d, nothing is %d, %u viewed, %u aligned, %u verified\n", memcmp(digest, p.digest, 32) ? "wrong" : "right",
           kiln_find_type(&p, "texture", 7), kiln_find_type(&p, "nothing", 7), (unsigned)viewed, (unsigned)aligned, (unsigned)verified);
    kiln_unmap_file(data, size);
    if (kiln_map_file("no/such/file", &data, &size) != KILN_FILE || data) die(name, "a file that is not there");
    if (kiln_map_file(".", &data, &size) != KILN_FILE || data) die(name, "a folder");
}

static void load_order(int n, char **args) {
    kiln_parcel layers[8];
    uint8_t *data[8];
    uint32_t memory[4 * 2048];
    kiln_order order;
    int count = 0, i, parcels;
    for (; count < n && strcmp(args[count], "--") != 0; count++) {
        size_t size;
        int error;
        if (count == 8) die(args[count], "too many parcels");
        data[count] = load(args[count], &size);
        error = kiln_open(&layers[count], data[count], size);
        if (error) die(args[count], kiln_words(error));
        if (count) layers[count].under = &layers[count - 1];
    }
    parcels = count;
    kiln_order_begin(&order, memory, sizeof memory / sizeof *memory);
    for (i = count + 1; i < n; i++) {
        int optional = args[i][0] == '?';
        size_t before = order.count;
        int error = kiln_order_add(&order, &layers[parcels - 1], (uint32_t)strtoul(args[i] + optional, NULL, 10), optional);
        if (error == KILN_MISSING || error == KILN_CIRCLE) printf(" error %s", error == KILN_MISSING ? "missing" : "circle");
        else if (error) die("order", kiln_words(error));
        for (; before < order.count; before++) {
            kiln_resource r;
            if (kiln_find(&layers[parcels - 1], order.ids[before], &r)) die("order", "an id that is not found");
            printf(" %u@%d", (unsigned)r.id, (int)(r.parcel - layers));
        }
        printf("\n");
    }
    while (count--) free(data[count]);
}

/* same prints the pairs of resources that can share one loaded value. */
static void same(const char *path) {
    size_t size;
    uint32_t i, k;
    uint8_t *data = load(path, &size);
    kiln_parcel p;
    if (kiln_open(&p, data, size)) die(path, "cannot be opened");
    for (i = 0; i < p.count; i++) {
        for (k = i + 1; k < p.count; k++) {
            kiln_resource a, b;
            if (kiln_at(&p, i, &a) || kiln_at(&p, k, &b) || !kiln_same(&a, &a)) die(path, "is damaged");
            if (kiln_same(&a, &b) != kiln_same(&b, &a)) die(path, "differs");
            if (kiln_same(&a, &b)) printf("%lu %lu\n", (unsigned long)a.id, (unsigned long)b.id);
        }
    }
    free(data);
}

int main(int n, char **args) {
    int i;
    if (n > 2 && strcmp(args[1], "hash") == 0) {
        for (i = 2; i < n; i++) {
            uint8_t hash[32];
            size_t size, k;
            uint8_t *data = load(args[i], &size);
            kiln_hash(data, size, hash);
            for (k = 0; k < 32; k++) printf("%02x", hash[k]);
            printf("\n");
            free(data);
        }
    } else if (n > 3 && strcmp(args[1], "judge") == 0) {
        for (i = 2; i + 1 < n; i += 2) {
            printf("== %s\n", args[i]);
            judge(args[i], args[i + 1]);
        }
    } else if (n > 2 && strcmp(args[1], "all") == 0) {
        for (i = 2; i < n; i++) {
            size_t size;
            uint8_t *data = load(args[i], &size);
            all(data, size);
            free(data);
        }
    } else if (n == 3 && strcmp(args[1], "same") == 0) {
        same(args[2]);
    } else if (n == 3 && strcmp(args[1], "facts") == 0) {
        facts(args[2]);
    } else if (n == 4 && strcmp(args[1], "trust") == 0) {
        trust(args[2], args[3]);
    } else if (n > 2 && strcmp(args[1], "order") == 0) {
        load_order(n - 2, args + 2);
    } else {
        die("usage", "hash FILE... | judge PARCEL QUERIES... | all FILE... | same PARCEL | facts PARCEL | trust PARCEL KEY | order PARCEL... -- ID...");
    }
    return 0;
}
