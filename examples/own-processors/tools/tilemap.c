/*
 * The tile map in C, without a library:
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -I ../../processor/wasmguest/c -o tools/tilemap.wasm tools/tilemap.c
 */
#include "kiln_guest.h"

KILN_EXPORT("kiln_info") void kiln_info(void) {
	static const char about[] =
	    "{\"abi\": 1, \"name\": \"tilemap-c\", \"version\": 1,"
	    " \"settings\": [{\"name\": \"border\", \"type\": \"integer\", \"default\": -1, \"min\": -1, \"max\": 65535,"
	    "                 \"doc\": \"Tile that is laid around the map; -1 is none.\"}],"
	    " \"products\": [{\"type\": \"tilemap\", \"extension\": \".tiles\","
	    "                 \"doc\": \"width, height, size of a tile, tiles in a row of the sheet, then each tile; all in 16 bits\"}]}";
	kiln_describe(KILN_TEXT(about));
}

/* Messages are built from texts and numbers. */
static char message[200];
static kiln_size used;

static void say(const char *s) {
	while (*s && used < sizeof message) message[used++] = *s++;
}

static void say_number(unsigned n) {
	if (n > 9) say_number(n / 10);
	char digit[2] = {(char)('0' + n % 10), 0};
	say(digit);
}

static int wrong(int line, int column) {
	kiln_fail(message, used, KILN_TEXT(""), KILN_TEXT(""), line, column, column > 0, 0);
	return 1;
}

/* The text after "key": in JSON that contains the key once. */
static const char *value(const char *json, const char *key) {
	for (; *json; json++) {
		if (*json != '"') continue;
		const char *k = key, *j = json + 1;
		while (*k && *k == *j) k++, j++;
		if (*k || *j != '"') continue;
		for (j++; *j == ' ' || *j == ':' || *j == '\n'; j++) {
		}
		return j;
	}
	return "";
}

static unsigned big_endian(const kiln_byte *b) { return (unsigned)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]; }

static kiln_byte *put(kiln_byte *to, unsigned n) {
	*to++ = n & 255, *to++ = n >> 8 & 255;
	return to;
}

/* Reads a whole file; n is its size. Returns 0 on failure, which Kiln reports. */
static char *read_file(const char *path, kiln_size length, kiln_size *n) {
	kiln_handle h = kiln_open(path, length);
	return h < 0 ? 0 : kiln_all(h, n);
}

/* length of the line at s */
static kiln_size line_length(const char *s, const char *end) {
	kiln_size n = 0;
	while (s + n < end && s[n] != '\n') n++;
	return n;
}

KILN_EXPORT("kiln_process") int kiln_process(void) {
	kiln_size n, length, ignored;
	char *path = kiln_all(kiln_asset(KILN_ASSET_PATH), &n);
	int border = kiln_number(kiln_all(kiln_setting(KILN_TEXT("border")), &ignored));
	char *text = read_file(path, n, &length);
	if (!text) return 1;
	const char *end = text + length;
	n = line_length(text, end);
	char *json = read_file(text, n, &ignored);
	if (!json) return 1;
	const char *rows = text + n + 1 < end ? text + n + 1 : end;
	const char *image = value(json, "image");
	unsigned tile = (unsigned)kiln_number(value(json, "tile"));
	if (*image) image++; /* skip the quotation mark */
	for (n = 0; image[n] && image[n] != '"'; n++) {
	}
	kiln_byte *png = (kiln_byte *)read_file(image, n, &length);
	if (!png) return 1;
	unsigned columns = 0, number = 0;
	if (length >= 24 && tile) columns = big_endian(png + 16) / tile, number = columns * (big_endian(png + 20) / tile);

	kiln_size width = line_length(rows, end), height = 0;
	if (width == 0) return say("the map has no rows"), wrong(1, 0);
	for (const char *row = rows; row < end; row += line_length(row, end) + 1) height++;
	kiln_size framed = border >= 0 ? 1 : 0;
	kiln_byte *out = kiln_alloc(8 + 2 * (width + 2) * (height + 2));
	if (!out) return say("the map is too large"), wrong(0, 0);
	kiln_byte *to = put(put(put(put(out, width + 2 * framed), height + 2 * framed), tile), columns);

	const char *letters = value(json, "letters");
	for (kiln_size i = 0; framed && i < width + 2; i++) to = put(to, (unsigned)border);
	for (int y = 2; rows < end; y++, rows += width + 1) {
		if (line_length(rows, end) != width) {
			say("the row has "), say_number(line_length(rows, end)), say(" tiles, the first one "), say_number(width);
			return wrong(y, 0);
		}
		if (framed) to = put(to, (unsigned)border);
		for (kiln_size x = 0; x < width; x++) {
			char letter[2] = {rows[x], 0};
			const char *found = value(letters, letter);
			unsigned at = (unsigned)kiln_number(found);
			if (!*found || at >= number) {
				say("letter \""), say(letter);
				if (!*found) say("\" is not in the tile set");
				else say("\" is tile "), say_number(at), say(", and the sheet has "), say_number(number);
				return wrong(y, (int)x + 1);
			}
			to = put(to, at);
		}
		if (framed) to = put(to, (unsigned)border);
	}
	for (kiln_size i = 0; framed && i < width + 2; i++) to = put(to, (unsigned)border);

	kiln_handle product = kiln_create(KILN_TEXT(""), KILN_TEXT("tilemap"), KILN_TEXT(".tiles"), KILN_TEXT(""));
	if (product < 0 || kiln_write(product, out, (kiln_size)(to - out)) < 0 || kiln_close(product) < 0) return 1;
	return 0;
}
