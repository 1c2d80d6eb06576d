package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheapStat: no file is opened to look at it, however the path of its folder is written.
func TestCheapStat(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a b", strings.Repeat("deep", 20))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("four"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, filepath.ToSlash(folder), folder + `\`, strings.ToUpper(folder), `\\?\` + folder, `\\.\` + folder, folder + `\..\` + filepath.Base(folder)} {
		d, err := openDir(path, false)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var info networkOpenInfo
		if !info.of(d, "a.txt") {
			t.Errorf("%s: the file has to be opened", path)
		}
		if info.of(d, "none.txt") {
			t.Errorf("%s: a file is there that is not", path)
		}
		st, mode, err := d.stat("a.txt")
		f, ferr := os.Open(filepath.Join(folder, "a.txt"))
		if err != nil || ferr != nil {
			t.Fatal(err, ferr)
		}
		if want, err := StatFile(f); st != want || mode != 0 || st.Size != 4 || err != nil {
			t.Errorf("%s: %+v, opened %+v, %v", path, st, want, err)
		}
		f.Close()
		d.close()
	}
}
