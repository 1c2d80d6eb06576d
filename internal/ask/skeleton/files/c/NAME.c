/*
 * NAME is a processor in WebAssembly: see docs/wasm.md. Compile it, build testdata/in, and compare the products with testdata/want:
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o tools/NAME/NAME.wasm tools/NAME/NAME.c
 *     kiln test
 */
#include "kiln_guest.h"

KILN_EXPORT("kiln_info") void kiln_info(void) {
	static const char about[] =
	    "{\"abi\": 1, \"name\": \"NAME\", \"version\": 1, \"summary\": \"Lines to a table of strings\","
	    " \"extensions\": [\".NAME\"],"
	    " \"settings\": [{\"name\": \"upper\", \"type\": \"boolean\", \"default\": false, \"doc\": \"Make the letters a to z large.\"}],"
	    " \"products\": [{\"type\": \"NAME\", \"extension\": \".bin\","
	    "                 \"doc\": \"number of lines as 16 bits; each as a length of 8 bits and its text\"}]}";
	kiln_describe(KILN_TEXT(about));
}

static int wrong(const char *text, kiln_size n, const char *hint, kiln_size m, int line) {
	kiln_fail(text, n, hint, m, KILN_TEXT(""), line, 0, 0, 0);
	return 1;
}

KILN_EXPORT("kiln_process") int kiln_process(void) {
	kiln_size n, length, ignored;
	char *path = kiln_all(kiln_asset(KILN_ASSET_PATH), &n);
	int upper = kiln_all(kiln_setting(KILN_TEXT("upper")), &ignored)[0] == 't'; /* true or false */
	kiln_handle file = kiln_open(path, n);
	if (file < 0) return 1; /* Kiln has the error */
	char *text = kiln_all(file, &length);
	kiln_byte *out = kiln_alloc(2 * length + 3); /* in the worst case a length for each byte */
	if (!text || !out) return wrong(KILN_TEXT("the file is too large"), KILN_TEXT(""), 0);

	kiln_size end = 2, at = 0, lines = 0; /* out[at] is the line's length */
	for (kiln_size i = 0; i < length; i++) {
		if (i == 0 || text[i - 1] == '\n') lines++, at = end++;
		char c = text[i];
		if (upper && c >= 'a' && c <= 'z') c -= 'a' - 'A';
		if (c != '\n') out[end++] = (kiln_byte)c;
		kiln_size line = end - at - 1;
		if (line == 0) return wrong(KILN_TEXT("the line is empty"), KILN_TEXT("write something there"), (int)lines);
		if (line > 255) return wrong(KILN_TEXT("the line has more than 255 bytes"), KILN_TEXT("make two of it"), (int)lines);
		out[at] = (kiln_byte)line;
	}
	out[0] = lines & 255, out[1] = lines >> 8 & 255;

	kiln_handle product = kiln_create(KILN_TEXT(""), KILN_TEXT("NAME"), KILN_TEXT(".bin"), KILN_TEXT(""));
	if (product < 0 || kiln_write(product, out, end) < 0 || kiln_close(product) < 0) return 1;
	return 0;
}
