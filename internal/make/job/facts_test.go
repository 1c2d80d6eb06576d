package job

import (
	"maps"
	"strings"
	"testing"
)

func TestFacts(t *testing.T) {
	want := map[string]string{"sound.loudness": "-23.04", "sound.basis": "a=b", "empty": ""}
	text, err := encodeFacts(want)
	if err != nil || text != "empty=\nsound.basis=a=b\nsound.loudness=-23.04\n" {
		t.Fatalf("%q, %v", text, err)
	}
	got := map[string]string{}
	for name, value := range Facts(text) {
		got[name] = value
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	many := map[string]string{}
	for i := range maxFacts + 1 {
		many[strings.Repeat("a", i+1)] = ""
	}
	for _, bad := range []map[string]string{many, {"": "x"}, {"Upper": "x"}, {"a": "two\nlines"}, {"a": "\xff"},
		{"a": strings.Repeat("x", maxFactBytes)}} {
		if _, err := encodeFacts(bad); err == nil {
			t.Errorf("%.40v is taken", bad)
		}
	}
}
