package used

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func uuid(name string) string { return fmt.Sprintf("%036x", name) }

// keys are resources with names of one letter.
func keys(names string) (all []Key) {
	for _, name := range strings.Fields(names) {
		all = append(all, Key{uuid(name), uint32(name[0])})
	}
	return all
}

func wants(t *testing.T, dir string, want ...[]Key) {
	t.Helper()
	got, err := Read(File(dir, "pc"))
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// TestUsed: each resource is kept once, in the order in which games loaded them, and beside what a later game loaded next.
func TestUsed(t *testing.T) {
	dir := t.TempDir()
	l := NewLog(dir)
	var first, other Play
	for _, c := range []struct {
		play  *Play
		names string
	}{{&first, "b c"}, {&first, "d"}, {&other, "b x y"}, {&other, "d e"}, {&first, "z"}, {&first, "a b"}, {&other, "b"}} {
		if err := l.Add("pc", c.play, keys(c.names)); err != nil {
			t.Fatal(err)
		}
	}
	if err := NewLog(dir).Add("pc", new(Play), keys("c q d z")); err != nil { // another run of the watcher
		t.Fatal(err)
	}
	wants(t, dir, keys("b c d"), keys("b x y d e"), keys("d z a b"), keys("c q d"))
	if got, err := Read(File(dir, "web")); len(got) != 0 || err != nil {
		t.Error(got, err)
	}
}

// TestLinesThatAreNone: what a kill left is passed over, and what comes next is not.
func TestLinesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	if err := NewLog(dir).Add("pc", new(Play), nil); err != nil || len(Files(dir)) != 0 {
		t.Errorf("nothing was loaded: %v, %v", Files(dir), err)
	}
	if err := os.MkdirAll(filepath.Dir(File(dir, "pc")), 0o777); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{uuid("a")[:20]: "b", "what\n" + uuid("a") + " 97\n" + uuid("b"): "a b"} {
		if err := os.WriteFile(File(dir, "pc"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := NewLog(dir).Add("pc", new(Play), keys("b")); err != nil {
			t.Fatal(err)
		}
		wants(t, dir, keys(want))
	}
	if want := []string{File(dir, "pc")}; !slices.Equal(Files(dir), want) {
		t.Error(Files(dir))
	}
}

// TestDiskError: what could not be written is written with what comes next, and each other game's by itself.
func TestDiskError(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Dir(File(dir, "pc"))
	if err := os.WriteFile(inTheWay, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	l := NewLog(dir)
	var first, other Play
	for _, c := range []struct {
		play  *Play
		names string
	}{{&first, "a b"}, {&first, "c"}, {&other, "b d"}} {
		if err := l.Add("pc", c.play, keys(c.names)); err == nil {
			t.Fatal("it was written where it cannot be")
		}
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	for _, play := range []*Play{&first, &other} {
		if err := l.Add("pc", play, keys("e")); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, dir, keys("a b c e"), keys("b d e"))
}

// TestMost: a file that holds the most that it can, in the most lines, is read as a whole, and takes no more.
func TestMost(t *testing.T) {
	const most = 50
	dir := t.TempDir()
	l := NewLog(dir)
	l.most = most
	key := func(i int) Key { return Key{uuid("k"), 4_000_000_000 + uint32(i)} }
	plays := []*Play{new(Play), new(Play)}
	for i := range most + 1 {
		if err := l.Add("pc", plays[i%2], []Key{key(i), key(0)}); err != nil { // a new one between two that are known
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(File(dir, "pc"))
	if err != nil {
		t.Fatal(err)
	}
	if want := most*(1+3*48) - len(plays)*48; len(text) != want { // what a game loads first has nothing before it
		t.Errorf("%d bytes, want %d", len(text), want)
	}
	if len(text) > maxSize/mostKeys*most {
		t.Errorf("%d bytes of %d keys are more than is read", len(text), most)
	}
	again := NewLog(dir)
	again.most = most
	if err := again.Add("pc", new(Play), []Key{key(0), key(most - 1), key(most)}); err != nil {
		t.Fatal(err)
	}
	seen := map[Key]bool{}
	if err := Each(File(dir, "pc"), func(k Key, _ bool) { seen[k] = true }); err != nil || len(seen) != most {
		t.Errorf("%d keys, want %d; %v", len(seen), most, err)
	}
	if now, err := os.ReadFile(File(dir, "pc")); err != nil || !bytes.Equal(now, text) {
		t.Errorf("it has %d bytes more, %v", len(now)-len(text), err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0a1b2c3d-0000-5000-8000-000000000000 7\n\x00\nx 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, pieces := 0, 0
		err := parse(bytes.NewReader(data), func(_ Key, begins bool) {
			if keys++; begins {
				pieces++
			}
		})
		if err == nil && (keys > len(data)/38+1 || pieces > keys || keys > 0 && pieces == 0) {
			t.Errorf("%d keys in %d pieces of %d bytes", keys, pieces, len(data))
		}
	})
}

// TestUsedLinks: what games loaded is not appended to a file elsewhere.
func TestUsedLinks(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.MkdirAll(filepath.Dir(File(dir, "pc")), 0o777); err != nil {
		t.Fatal(err)
	}
	if os.Symlink(out, File(dir, "pc")) != nil {
		t.Skip("there are no symbolic links")
	}
	if err := NewLog(dir).Add("pc", &Play{}, keys("a")); err == nil {
		t.Error("it was written through a link")
	}
	if _, err := os.Lstat(out); err == nil {
		t.Error("the file was made")
	}
}
