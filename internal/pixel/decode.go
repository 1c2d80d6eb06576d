package pixel

// FormatName is a format of [Sniff] as people write it: "PNG".
func FormatName(format string) string { return format }

// Sniff tells a file's format by its first bytes: "png", "jpeg", "gif", "bmp", "tiff", "webp", "tga", or "". TGA has no
// signature: the name must say .tga, and the header must make sense.
func Sniff(name string, data []byte) string { return "" }

// DecodeConfig reads the size of an image. The name serves only to know a TGA. Errors are an [*Error].
func DecodeConfig(name string, data []byte) (Config, error) {
	return Config{}, &Error{Fault: Unknown}
}

// Decode reads an image: the first frame, if there are several. The name serves only to know a TGA. Errors are an [*Error].
func Decode(name string, data []byte, lim Limits) (*Image, error) {
	return nil, &Error{Fault: Unknown}
}
