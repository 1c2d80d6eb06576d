package build

import (
	"os"
	"testing"
)

// TestOutputIgnored: git ignores the output folder that Kiln makes, and one that it finds empty; a folder with files in it stays as it is.
func TestOutputIgnored(t *testing.T) {
	t.Parallel()
	const file = "build/.gitignore"
	p := newProject(t, "-- assets/a.txt --\na\n")
	p.build()
	if got := p.read(file); got != "*\n" {
		t.Errorf("%s holds %q", file, got)
	}
	if b := p.build(); len(b.list) > 0 {
		t.Errorf("messages: %v", b.list)
	}

	p.remove("build")
	p.mkdir("build")
	p.build()
	if got := p.read(file); got != "*\n" {
		t.Errorf("in an empty folder %s holds %q", file, got)
	}

	p.remove(file)
	p.build()
	if _, err := os.Lstat(p.path(file)); err == nil {
		t.Errorf("%s was put back into a folder that holds products", file)
	}
}
