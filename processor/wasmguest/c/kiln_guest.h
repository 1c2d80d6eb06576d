/*
 * A Kiln processor in C. It has the functions of docs/formats/wasm-abi.md and some helpers. It needs no C library.
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o heights.wasm heights.c
 *
 * Include it in one file. A text is a pointer and a length; KILN_TEXT("abc") expands to both. A result below zero is an
 * error: KILN_FAILED or KILN_NOT_FOUND; kiln_error() returns its text. An invalid call (a bad pointer, a closed handle)
 * ends the job at once, so that callers need not check for it.
 */
#ifndef KILN_GUEST_H
#define KILN_GUEST_H

#define KILN_ABI 1
#define KILN_FAILED (-1)
#define KILN_NOT_FOUND (-2)

typedef int kiln_handle; /* above zero */
typedef unsigned char kiln_byte;
typedef __SIZE_TYPE__ kiln_size;

#define KILN_IMPORT(name) __attribute__((import_module("kiln_v1"), import_name(name)))
#define KILN_EXPORT(name) __attribute__((export_name(name)))
#define KILN_HELPER static __attribute__((unused)) /* not all of them are used */
#define KILN_TEXT(literal) (literal), (sizeof(literal) - 1)

/* In kiln_info, once: the description of the processor, in JSON. */
KILN_IMPORT("describe") void kiln_describe(const char *json, kiln_size n);

/* The subject of the job: handles of texts. */
enum { KILN_ASSET_ID = 0, KILN_ASSET_UUID = 1, KILN_ASSET_PATH = 2, KILN_PLATFORM = 3 };
KILN_IMPORT("asset") kiln_handle kiln_asset(int what);
KILN_IMPORT("settings") kiln_handle kiln_settings(void); /* all settings, as a JSON object */
KILN_IMPORT("setting") kiln_handle kiln_setting(const char *name, kiln_size n); /* one setting: a string as it is, all else in JSON */

/* Source files. A list is texts that each end in a zero byte. */
KILN_IMPORT("open") kiln_handle kiln_open(const char *path, kiln_size n);
KILN_IMPORT("exists") int kiln_exists(const char *path, kiln_size n); /* 1, 0 or an error */
KILN_IMPORT("glob") kiln_handle kiln_glob(const char *pattern, kiln_size n);

/*
 * The products of another processor, made from nothing (0), a source file (1: its path), a product (2: asset, name) or
 * bytes (3, and their extension). settings is JSON or empty. Five texts each: asset, UUID, name, type, extension.
 * kiln_adopt makes one of them a product of this asset.
 */
KILN_IMPORT("request") kiln_handle kiln_request(const char *processor, kiln_size pn, const char *settings, kiln_size sn,
                                                const void *a, kiln_size an, const char *b, kiln_size bn, int about);
/* The same for a request with a name, so that rules can set its settings: match = "knight.glb#cape". */
KILN_IMPORT("request_named") kiln_handle kiln_request_named(const char *name, kiln_size n, const char *processor, kiln_size pn, const char *settings,
                                                            kiln_size sn, const void *a, kiln_size an, const char *b, kiln_size bn, int about);
KILN_IMPORT("adopt") int kiln_adopt(const char *asset, kiln_size an, const char *name, kiln_size nn, const char *as, kiln_size asn,
                                    const char *type, kiln_size tn, const char *extension, kiln_size en);
/*
 * Runs a program: a command as JSON, and the bytes of its standard input and its files, one after the other. Returns a
 * list: the exit code, the handles of standard output and standard error, and for each file that the program wrote its
 * path and its handle, as decimal numbers.
 */
KILN_IMPORT("run") kiln_handle kiln_run(const char *command, kiln_size n, const void *data, kiln_size dn);
/* Other assets' products: five texts each: asset, UUID, name, type, file. */
KILN_IMPORT("products") kiln_handle kiln_products(const char *ids, kiln_size n);
/*
 * The assets that match a pattern: eight texts each: id, UUID, path, "1" for a folder, processor, type, settings and
 * metadata as JSON.
 */
KILN_IMPORT("listed") kiln_handle kiln_listed(const char *pattern, kiln_size n);
/* The same without the metadata: seven texts each. */
KILN_IMPORT("assets") kiln_handle kiln_assets(const char *pattern, kiln_size n);
/*
 * Products of an asset that may fail or not exist, on a platform and of a processor (all if empty). Returns a text, "1"
 * if there are products, and then five texts each, as for kiln_products. For a product of another platform, the asset
 * is preceded by the platform and a colon.
 */
KILN_IMPORT("try_products") kiln_handle kiln_try_products(const char *asset, kiln_size n, const char *platform, kiln_size m,
                                                          const char *processor, kiln_size o);
KILN_IMPORT("open_product") kiln_handle kiln_open_product(const char *asset, kiln_size n, const char *name, kiln_size m);

/* The data behind a handle. kiln_read returns the number of bytes read, 0 at the end. */
KILN_IMPORT("size") long long kiln_handle_size(kiln_handle h);
KILN_IMPORT("read") int kiln_read(kiln_handle h, long long offset, void *to, kiln_size n);
KILN_IMPORT("close") int kiln_close(kiln_handle h);

/* Products. References are results of kiln_reference, one after the other. */
KILN_IMPORT("reference") kiln_handle kiln_reference(const char *asset, kiln_size n, const char *name, kiln_size m, int required);
/* The number by which games find a product of this asset, or KILN_NOT_FOUND as long as it has none; without a name, that of the main product. */
KILN_IMPORT("resource_id") int kiln_resource_id(const char *name, kiln_size n);
KILN_IMPORT("create") kiln_handle kiln_create(const char *name, kiln_size n, const char *type, kiln_size m, const char *extension, kiln_size k,
                                              const char *references, kiln_size r);
KILN_IMPORT("write") int kiln_write(kiln_handle h, const void *from, kiln_size n);

/*
 * Messages. An empty path is the asset's own file. Lines and columns count from 1; 0 is unknown. cause is 0 or from
 * kiln_error.
 */
KILN_IMPORT("warn") void kiln_warn(const char *text, kiln_size n, const char *hint, kiln_size m, const char *path, kiln_size k, int line, int column, int length);
KILN_IMPORT("fail") void kiln_fail(const char *text, kiln_size n, const char *hint, kiln_size m, const char *path, kiln_size k, int line, int column, int length, kiln_handle cause);
KILN_IMPORT("error") kiln_handle kiln_error(void);

/* Functions that clang calls implicitly. */
void *memcpy(void *to, const void *from, kiln_size n) {
	kiln_byte *t = to;
	const kiln_byte *f = from;
	while (n--) *t++ = *f++;
	return to;
}

void *memset(void *to, int c, kiln_size n) {
	kiln_byte *t = to;
	while (n--) *t++ = (kiln_byte)c;
	return to;
}

/* Memory that is never freed: each job begins with all of it. Returns 0 if there is no more. */
KILN_HELPER void *kiln_alloc(kiln_size n) {
	extern kiln_byte __heap_base;
	static kiln_size used;
	if (used == 0) used = (kiln_size)&__heap_base;
	kiln_size at = (used + 15) & ~(kiln_size)15, pages = __builtin_wasm_memory_size(0);
	if (n > (kiln_size)-1 - at - 65535) return 0;
	if (at + n > pages * 65536 && __builtin_wasm_memory_grow(0, (at + n + 65535) / 65536 - pages) == (kiln_size)-1) return 0;
	used = at + n;
	return (void *)at;
}

/*
 * All data behind a handle, followed by a zero byte. Closes the handle. Returns 0 if there is too little memory, or it
 * cannot be read.
 */
KILN_HELPER char *kiln_all(kiln_handle h, kiln_size *n) {
	long long size = kiln_handle_size(h);
	if (size > 0x7ffffff0) return 0;
	char *b = kiln_alloc((kiln_size)size + 1);
	if (!b) return 0;
	for (*n = 0; (long long)*n < size;) {
		int got = kiln_read(h, *n, b + *n, (kiln_size)size - *n);
		if (got <= 0) return 0;
		*n += (kiln_size)got;
	}
	b[*n] = 0;
	kiln_close(h);
	return b;
}

/* The number in a setting's text. */
KILN_HELPER int kiln_number(const char *s) {
	int sign = 1, n = 0;
	if (*s == '-') sign = -1, s++;
	while (*s >= '0' && *s <= '9') n = n * 10 + (*s++ - '0');
	return sign * n;
}

#endif
