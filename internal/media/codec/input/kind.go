package input

// kinds are how files of common formats begin; ? matches any byte. The first that matches counts.
var kinds = []struct{ magic, name string }{
	{"\x89PNG\r\n\x1a\n", "a PNG image"},
	{"\xff\xd8\xff", "a JPEG image"},
	{"GIF8?a", "a GIF image"},
	{"RIFF????WEBP", "a WebP image"},
	{"RIFF????WAVE", "a WAV sound"},
	{"RIFF????AVI ", "an AVI film"},
	{"8BPS", "a Photoshop image"},
	{"II*\x00", "a TIFF image"},
	{"MM\x00*", "a TIFF image"},
	{"II+\x00", "a BigTIFF image; save it as TIFF"},
	{"MM\x00+", "a BigTIFF image; save it as TIFF"},
	{"v/1\x01", "an OpenEXR image"},
	{"#?RADIANCE", "a Radiance HDR image"},
	{"qoif", "a QOI image"},
	{"DDS ", "a DDS texture"},
	{"\xabKTX 11\xbb", "a KTX texture"},
	{"\xabKTX 20\xbb", "a KTX 2.0 texture"},
	{"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"},
	{"????ftypM4A", "an M4A sound"},
	{"????ftyp", "an AVIF, HEIF or MP4 file"},
	{"\xff\x0a", "a JPEG XL image"},
	{"\x00\x00\x01\x00", "an icon"},
	{"gimp xcf", "a GIMP image"},
	{"fLaC", "a FLAC sound"},
	{"OggS", "an Ogg file"},
	{"ID3", "an MP3 sound"},
	{"FORM????AIF", "an AIFF sound"},
	{"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "a WMA or WMV file"},
	{"\x1aE\xdf\xa3", "a Matroska or WebM film"},
	{"glTF", "a binary glTF model"},
	{"Kaydara FBX Binary", "an FBX model"},
	{"BLENDER", "a Blender file"},
	{"\x00\x01\x00\x00\x00", "a TrueType font"},
	{"OTTO", "an OpenType font"},
	{"wOF2", "a WOFF2 font"},
	{"wOFF", "a WOFF font"},
	{"PK\x03\x04", "a zip archive"},
	{"Rar!\x1a\x07", "a RAR archive"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"\x1f\x8b\x08", "a gzip archive"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"%PDF-", "a PDF document"},
	{"version https://git-lfs", "a Git LFS pointer"},
	{"<svg", "an SVG drawing"},
	{"<", "text of XML or HTML"},
}

// Kind says in words what a file is by how it begins, for messages: "a JPEG image". It is "" for a file of no common format.
func Kind(data []byte) string {
	for _, k := range kinds {
		if Matches(data, k.magic) {
			return k.name
		}
	}
	return ""
}

// KindSize is how many bytes at most Kind looks at.
const KindSize = 32

// Matches reports whether data begin with a signature, in which ? is any byte.
func Matches(data []byte, magic string) bool {
	if len(data) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != data[i] {
			return false
		}
	}
	return true
}
