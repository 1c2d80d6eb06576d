package report

import "testing"

// TestTwin: of files with one content, a new one was the only one that is gone, or the only one with its name; else it is not clear which.
func TestTwin(t *testing.T) {
	for _, c := range []struct {
		name        string
		gone, fresh []string
		to, want    string
	}{
		{"one and one", []string{"a.txt"}, []string{"b.txt"}, "b.txt", "a.txt"},
		{"none is gone", nil, []string{"b.txt"}, "b.txt", ""},
		{"by name", []string{"old/a.txt", "old/b.txt"}, []string{"new/a.txt", "new/b.txt"}, "new/b.txt", "old/b.txt"},
		{"no such name", []string{"old/a.txt", "old/b.txt"}, []string{"new/c.txt"}, "new/c.txt", ""},
		{"two of the name are gone", []string{"x/a.txt", "y/a.txt"}, []string{"z/a.txt"}, "z/a.txt", ""},
		{"two of the name are new", []string{"x/a.txt", "x/b.txt"}, []string{"y/a.txt", "z/a.txt"}, "y/a.txt", ""},
		{"a copy, too", []string{"x/a.txt"}, []string{"y/a.txt", "y/copy.txt"}, "y/a.txt", "x/a.txt"},
		{"the copy itself", []string{"x/a.txt"}, []string{"y/a.txt", "y/copy.txt"}, "y/copy.txt", ""},
	} {
		if got := twin(c.gone, c.fresh, c.to); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
