package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestUnlisted names a folder that cannot be listed as people know it; the job is tried again. A file in its place is what even the
// superuser cannot list.
func TestUnlisted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for folder, shown := range map[string]string{"": ".", "art/ui": "art/ui"} {
		_, err := (&view{}).entries(folder, file)
		var p *processor.Problem
		if !errors.As(err, &p) {
			t.Fatalf("%v", err)
		}
		if p.Code != "K0106" || p.Path != shown || p.Hint == "" || strings.Contains(p.Text, file) || !strings.HasPrefix(p.Text, "this folder cannot be listed: ") {
			t.Errorf("%+v", p)
		}
		if !errors.Is(err, diag.ErrMoment) {
			t.Error("it is not tried again")
		}
	}
}
