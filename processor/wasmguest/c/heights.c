/* A height map drawn with digits becomes columns of blocks. */
#include "kiln_guest.h"

KILN_EXPORT("kiln_info") void kiln_info(void) {
	static const char about[] =
	    "{\"abi\": 1, \"name\": \"heights\", \"version\": 1, \"summary\": \"A map of heights to columns of blocks\","
	    " \"extensions\": [\".heights\"],"
	    " \"settings\": [{\"name\": \"scale\", \"type\": \"integer\", \"default\": 1, \"min\": 1, \"max\": 25,"
	    "                 \"doc\": \"How many blocks a step is high.\"}],"
	    " \"products\": [{\"type\": \"voxel\", \"extension\": \".vox\", \"doc\": \"width and depth as 16 bits, then a byte a column\"}]}";
	kiln_describe(KILN_TEXT(about));
}

static int wrong(const char *text, kiln_size n, int line, int column) {
	kiln_fail(text, n, KILN_TEXT("heights are digits, and all rows are as long"), KILN_TEXT(""), line, column, column ? 1 : 0, 0);
	return 1;
}

KILN_EXPORT("kiln_process") int kiln_process(void) {
	kiln_size n, length, ignored;
	char *path = kiln_all(kiln_asset(KILN_ASSET_PATH), &n);
	int scale = kiln_number(kiln_all(kiln_setting(KILN_TEXT("scale")), &ignored));
	kiln_handle file = kiln_open(path, n);
	if (file < 0) return 1; /* Kiln has the error */
	char *text = kiln_all(file, &length);
	kiln_byte *out = kiln_alloc(length + 4);
	if (!text || !out) return wrong(KILN_TEXT("the map is too large"), 0, 0);

	kiln_size columns = 0, width = 0, height = 0, x = 0;
	for (kiln_size i = 0; i < length; i++) {
		if (text[i] != '\n') {
			if (text[i] < '0' || text[i] > '9') return wrong(KILN_TEXT("this is not a height"), (int)height + 1, (int)x + 1);
			out[4 + columns++] = (kiln_byte)((text[i] - '0') * scale);
			x++;
		}
		if (text[i] == '\n' || i + 1 == length) {
			if (height == 0) width = x;
			if (x != width) return wrong(KILN_TEXT("this row is not as long as the first one"), (int)height + 1, 0);
			height++, x = 0;
		}
	}
	out[0] = width & 255, out[1] = width >> 8 & 255, out[2] = height & 255, out[3] = height >> 8 & 255;

	kiln_handle product = kiln_create(KILN_TEXT(""), KILN_TEXT("voxel"), KILN_TEXT(".vox"), KILN_TEXT(""));
	if (product < 0 || kiln_write(product, out, columns + 4) < 0 || kiln_close(product) < 0) return 1;
	return 0;
}
