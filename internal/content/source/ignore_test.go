package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIgnoreLikeGit asks git the same questions.
func TestIgnoreLikeGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	entries := []string{
		"a.png", "b.txt", "keep.txt", "#x", "!x", "sp ", "[z]", "z", "q{r}",
		"art/", "art/a.png", "art/b.txt", "art/raw/", "art/raw/a.png", "art/raw/deep/", "art/raw/deep/a.png", "art/raw/deep/b.txt",
		"raw/", "raw/b.txt", "raw/x/", "raw/x/raw/", "raw/x/raw/c.dat", "x/", "x/raw/", "x/raw/y/", "x/raw/y/a.png", "x/a.png",
		"x/art/", "x/art/raw/", "x/art/raw/b.txt",
	}
	cases := []string{
		"*.png", "/*.png", "*.png\n!art/a.png", "art/", "/art", "art/*", "art/**", "art/**/a.png", "**/raw", "**/raw/", "raw/**", "**/raw/b.txt",
		"*\n!*/\n!*.png", "*\n!art/\n", "*\n!art\n!art/**", "/*\n!/art\n/art/*\n!/art/raw", "raw", "!raw", "raw\n!/raw", "x/raw/y", "x/**/y/a.png", "x/**/**/a.png",
		"[ab].*", "[!a].*", "[^a].txt", "?.png", "a**g", "**", "**/", "/", "//", "", "#x", `\#x`, `\!x`, "!x", "sp\\ ", "sp ", "sp", "\\[z\\]", "[z]", "q{r}", "{a,b}.png",
		"[", "a.png/", "*.txt\n!keep.txt\nkeep.txt\n!keep.txt", "art/raw/deep/*.png", "/raw/x/", "deep", "*/deep", "**/deep/**", "*/*/b.txt", "a.png \nb.txt   ", "\ufeffb.txt",
		"**/art/raw/b.txt", "**/x/**/raw/**/c.dat", "a.png\n\n\nb.txt", "!", "art//raw",
	}
	for _, text := range cases {
		dir := t.TempDir()
		git(t, dir, "", "init", "-q")
		for _, e := range entries {
			p := filepath.Join(dir, filepath.FromSlash(e))
			if strings.HasSuffix(e, "/") {
				os.MkdirAll(p, 0o777)
			} else if err := os.WriteFile(p, nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		// Asked about "art/", git matches the slash as well.
		said := git(t, dir, strings.ReplaceAll(strings.Join(entries, "\x00"), "/\x00", "\x00"), "check-ignore", "--no-index", "-z", "--stdin")
		want := map[string]bool{}
		for _, e := range strings.Split(said, "\x00") {
			want[e] = true
		}
		ps := parsePatterns(text, "")
		for _, e := range entries {
			if got := ignoredWithin(ps, e); got != want[strings.TrimSuffix(e, "/")] {
				t.Errorf("patterns %q, entry %q: ignored %t, git says %t", text, e, got, want[e])
			}
		}
	}
}

// ignoredWithin is what a scan comes to, which does not go into ignored folders.
func ignoredWithin(ps []pattern, entry string) bool {
	isDir := strings.HasSuffix(entry, "/")
	p := strings.TrimSuffix(entry, "/")
	for i := 0; i < len(p); i++ {
		if p[i] == '/' && ignored(ps, p[:i], true) {
			return true
		}
	}
	return ignored(ps, p, isDir)
}

func git(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := c.Output()
	if e, ok := err.(*exec.ExitError); err != nil && (!ok || e.ExitCode() != 1) { // 1: none is ignored
		t.Fatal(err)
	}
	return string(out)
}

func TestIgnoreBelowAFolder(t *testing.T) {
	ps := append(parsePatterns("*.tmp\n/top.txt\n", ""), parsePatterns("!a.tmp\n/top.txt\nx/y\n", "sub/")...)
	for entry, want := range map[string]bool{
		"a.tmp": true, "sub/a.tmp": false, "sub/b.tmp": true, "sub/deep/a.tmp": false, "subway/a.tmp": true,
		"top.txt": true, "sub/top.txt": true, "sub/deep/top.txt": false, "x/y": false, "sub/x/y": true, "sub": false,
	} {
		if got := ignored(ps, entry, false); got != want {
			t.Errorf("%s: ignored %t", entry, got)
		}
	}
}

// FuzzPattern: no pattern takes long or panics.
func FuzzPattern(f *testing.F) {
	f.Add("**/a/**/a/**/a/**/b", "a/a/a/a/a/a/a/a/a/a/a/a/a/c")
	f.Add("[a-", "a")
	f.Fuzz(func(t *testing.T, text, entry string) {
		for _, p := range parsePatterns(text, "") {
			p.match(entry, true)
		}
	})
}
