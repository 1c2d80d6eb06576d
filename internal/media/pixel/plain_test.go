package pixel

import (
	"strings"
	"testing"
)

// TestPlainReasons checks that a message has its reason once, and no names of Go packages.
func TestPlainReasons(t *testing.T) {
	files := map[string]string{
		"a.hdr": "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y x +X 1\n",
		"a.psd": "8BPS\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x03",
		"a.qoi": "qoif\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00",
		"a.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\x00IHDR\x00\x00\x00\x00",
		"a.gif": "GIF89a\x01\x00\x01\x00\x00\x00\x00\x99\x99",
	}
	for name, data := range files {
		_, err := Decode(name, []byte(data), Limits{MaxSide: 64, MaxBytes: 1 << 20})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		text := err.Error()
		if strings.Count(text, "damaged") != 1 || strings.Contains(text, name[2:]+": ") || strings.Contains(text, "invalid format") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
