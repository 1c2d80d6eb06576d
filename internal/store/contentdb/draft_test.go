package contentdb

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// names are the files in a folder.
func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestDraft: until its first build is whole there is no file, whatever became of the builds before, and nothing stays of those.
func TestDraft(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "content.db")
	for _, name := range []string{draftName(path), draftName(path) + "-wal"} { // of a program that was killed
		if err := os.WriteFile(name, []byte("half a page"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, path)
	if got := names(t, folder); !slices.Equal(got, []string{"content.db.new"}) {
		t.Errorf("after opening: %q", got)
	}
	for n, end := range []func(b *Build){
		func(b *Build) { b.Cancel() },
		func(b *Build) {
			b.Put(Asset{ID: "a", Jobs: []Job{{Platform: "none such"}}})
			if b.Finish(Summary{}) == nil {
				t.Error("a job on no platform is no error")
			}
		},
	} {
		b := begin(t, db, knightsStart(1, 0))
		if !b.Everything() {
			t.Errorf("%d: not everything is asked for", n)
		}
		b.PutFiles(knightsFiles())
		end(b)
		if got := names(t, folder); !slices.Equal(got, []string{"content.db.new"}) {
			t.Errorf("%d: after a build that did not finish: %q", n, got)
		}
	}
	b := begin(t, db, knightsStart(1, 0))
	b.PutFiles(knightsFiles())
	if err := db.Close(); err != nil { // with it under way
		t.Fatal(err)
	}
	if got := names(t, folder); len(got) > 0 {
		t.Errorf("after closing: %q", got)
	}
	writeKnights(t, path)
	if got := names(t, folder); !slices.Equal(got, []string{"content.db"}) {
		t.Errorf("after a build: %q", got)
	}
	if err := integrityOf(path); err != nil {
		t.Error(err)
	}
}

// TestLogOfAnother: the log of a file that somebody removed is not taken for that of the new one.
func TestLogOfAnother(t *testing.T) {
	path := knights(t)
	db := open(t, path)
	b := begin(t, db, knightsStart(3, 2))
	b.Delete("sprites/hero.png")
	finish(t, b)
	if _, err := db.Leave(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("there is no log: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	empty := func(path string) string {
		db := open(t, path)
		finish(t, begin(t, db, knightsStart(1, 0)))
		return dump(t, path)
	}
	if got, want := empty(path), empty(filepath.Join(t.TempDir(), "content.db")); got != want {
		t.Errorf("with the log of another file:\n%s\nwithout:\n%s", got, want)
	}
}

// integrityOf reads the whole file.
func integrityOf(path string) error {
	conn, err := openReadOnly(path)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	return integrity(conn)
}
