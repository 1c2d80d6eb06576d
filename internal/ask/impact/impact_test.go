package impact

import "testing"

// TestTouches checks for each kind of observation which changes affect it.
func TestTouches(t *testing.T) {
	for _, c := range []struct {
		kind, subject          string
		edited, added, removed bool
	}{
		{"file", "a/b.png", true, true, true},
		{"tool", "a/b.png", true, true, true},
		{"missing", "a/b.png", true, true, false},
		{"exists", "a/b.png", false, false, true},
		{"glob", "a/*.png", false, true, true},
		{"glob", "a/**/*.{jpg,png}", false, true, true},
		{"glob", "b/*.png", false, false, false},
		{"file", "a/c.png", false, false, false},
		{"env", "a/b.png", false, false, false},
	} {
		for change, want := range map[Change]bool{Edited: c.edited, Added: c.added, Removed: c.removed} {
			if got := touches(c.kind, c.subject, File{Path: "a/b.png", Change: change}); got != want {
				t.Errorf("%s %s, change %d: %v", c.kind, c.subject, change, got)
			}
		}
	}
}
