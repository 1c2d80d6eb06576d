package kilnrt

import (
	"testing"
)

// TestMurmur3 uses values published with the reference implementation.
func TestMurmur3(t *testing.T) {
	for text, want := range map[string]uint32{
		"": 0, "test": 0xba6bd213, "Hello, world!": 0xc0363e43, "The quick brown fox jumps over the lazy dog": 0x2e4ff723,
	} {
		if got := murmur3(text); got != want {
			t.Errorf("of %q it is %08x, not %08x", text, got, want)
		}
		if got := murmur3([]byte(text)); got != want {
			t.Errorf("of the bytes of %q it is %08x, not %08x", text, got, want)
		}
	}
}
