package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

const ownMounts = "KILN_TEST_OWN_MOUNTS"

// inOwnMounts runs the test once more in a process that may mount what it likes, and tells whether this is that process.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	switch err := cmd.Run(); {
	case err != nil && out.Len() == 0:
		t.Skipf("no mounts of one's own here: %v", err)
	case err != nil:
		t.Errorf("in its own mounts:\n%s", out.String())
	case strings.Contains(out.String(), "--- SKIP"):
		t.Skip(out.String())
	}
	return false
}

func (p *fixture) mount(name, options string) {
	p.Helper()
	p.mkdir(name)
	if err := unix.Mount("tmpfs", p.path(name), "tmpfs", 0, options); err != nil {
		p.Skipf("no tmpfs can be mounted here: %v", err)
	}
	p.Cleanup(func() { unix.Unmount(p.path(name), unix.MNT_DETACH) })
}

// fill takes all room on a disk but so many bytes.
func (p *fixture) fill(dir string, leave int) {
	p.Helper()
	var st unix.Statfs_t
	p.must(unix.Statfs(p.path(dir), &st))
	n := int(st.Bavail)*int(st.Bsize) - leave
	p.must(os.WriteFile(p.path(dir+"/filler"), make([]byte, max(0, n)), 0o666))
}

const someTexts = "-- assets/a.s --\nuse 1.txt\n-- assets/z.s --\ntext small\n"

func (p *fixture) texts() {
	for i := range 8 {
		p.write(fmt.Sprintf("assets/%d.txt", i), strings.Repeat(fmt.Sprint(i), 300_000))
	}
}

// TestFullDisk has too little room for outputs, for state, or for anything. Each build says so; when there is room again, the next
// one gives what a clean one gives.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) {
		return
	}
	for _, where := range []string{"build", ".kiln"} {
		for _, leave := range []int{0, 400 << 10, 2 << 20} {
			p := newProject(t, someTexts)
			p.texts()
			p.mount(where, "size=4m")
			if where == "build" {
				p.write("build/"+workspace.Mark, "")
			}
			p.fill(where, leave)
			b, err := p.try(context.Background(), Request{})
			text := b.messages
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, "the disk is full") && !strings.Contains(text, "no space left on device") && !strings.Contains(text, "disk is full") {
				t.Errorf("%s with %d bytes: %v\n%s", where, leave, err, text)
			}
			if want := ".kiln/.gitignore: error[K0210]: this file of Kiln's own cannot be read or written: no space left on device"; where == ".kiln" && leave == 0 && text != want {
				t.Errorf("got %q, not %q", text, want)
			}
			if strings.Contains(text, p.dir) {
				t.Errorf("a path of this machine: %s", text)
			}
			if b.Products == 0 && b.Bytes != 0 {
				t.Errorf("no products, %d bytes", b.Bytes)
			}
			p.halfOutputs()
			p.remove(where + "/filler")
			p.build()
			p.nothing()
		}
	}
}

// TestFullDiskOfCommands has too little room for what programs write: for one that says so, one that fails and says nothing, and one
// that says so and succeeds. It is not remembered.
func TestFullDiskOfCommands(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) {
		return
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	p := newProject(t, "")
	text := "[project]\nname = \"test\"\n"
	for name, script := range map[string]string{
		"says": "cat $0 $0 > $1", "silent": "cat $0 $0 2> ../tmp/said > $1", "succeeds": "cat $0 $0 > $1; true",
	} {
		text += fmt.Sprintf("[[processors]]\nname = %q\ncommand = [\"sh\", \"-c\", %q, \"{in}\", \"{out}\"]\nextensions = [\".%s\"]\noutput = \".out\"\n", name, script, name)
	}
	p.write("kiln.toml", text)
	p.mount(".kiln", "size=4m")
	for _, name := range []string{"says", "silent", "succeeds"} {
		p.write("assets/a."+name, strings.Repeat(name, 60_000))
		p.fill(".kiln", 650<<10)
		b, err := p.try(context.Background(), Request{Workers: 1})
		if b.Failed != 1 || !strings.Contains(b.messages, "error[K1504]: sh ") {
			t.Errorf("%s: %v, failed %d\n%s", name, err, b.Failed, b.messages)
		}
		p.remove(".kiln/filler")
		p.wants("a." + name)
		p.nothing()
		if n, want := len(p.read("build/pc/a."+name+".out")), 120_000*len(name); n != want {
			t.Errorf("%s: %d bytes, not %d", name, n, want)
		}
		p.remove("assets/a." + name)
		p.build()
		p.remove(".kiln/cas")
	}
}

// halfOutputs tells of outputs that are not whole.
func (p *fixture) halfOutputs() {
	p.Helper()
	for f := range outputFiles(p.dir, "build/pc") {
		if text := p.read("build/pc/" + f); strings.HasSuffix(f, ".txt") && !strings.HasSuffix(f, ".s.txt") && len(text) != 300_000 {
			p.Errorf("%s has %d bytes", f, len(text))
		}
	}
}

// TestReadOnlyOutput cannot write to the output folder.
func TestReadOnlyOutput(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) {
		return
	}
	for _, before := range []bool{false, true} {
		p := newProject(t, "-- assets/a.txt --\na\n-- assets/b.txt --\nb\n-- assets/c.s --\nuse a.txt\n")
		p.mount("build", "size=1m")
		if before {
			p.build()
			p.write("assets/a.txt", "A")
			p.remove("assets/b.txt")
		}
		remount := func(flags uintptr) { p.must(unix.Mount("", p.path("build"), "", unix.MS_REMOUNT|flags, "")) }
		remount(unix.MS_RDONLY)
		want := `build/pc/a.txt: error[K0210]: the output cannot be written: read-only file system
  check that the output folder can be written to and nothing stands in the way
build/pc/b.txt: error[K0210]: the output cannot be written: read-only file system
  check that the output folder can be written to and nothing stands in the way
build/pc/c.s.txt: error[K0210]: the output cannot be written: read-only file system
  check that the output folder can be written to and nothing stands in the way
`
		if before {
			want = `build/pc/b.txt: error[K0210]: the output cannot be removed: read-only file system
  check that the output folder can be written to and nothing stands in the way
build/pc/a.txt: error[K0210]: the output cannot be written: read-only file system
  check that the output folder can be written to and nothing stands in the way
build/pc/c.s.txt: error[K0210]: the output cannot be written: read-only file system
  check that the output folder can be written to and nothing stands in the way
`
		}
		for i := range 2 {
			b, err := p.try(context.Background(), Request{})
			p.must(err)
			if b.messages != want {
				t.Errorf("build %d says\n%snot\n%s", i, b.messages, want)
			}
			if i == 1 && b.ran != "" {
				t.Errorf("ran %s again", b.ran)
			}
		}
		remount(0)
		p.wants("")
		p.nothing()
	}
}

// TestReadOnlySources builds what cannot be written, as from a disc.
func TestReadOnlySources(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) {
		return
	}
	p := newProject(t, "")
	p.mount("assets", "size=1m")
	p.write("assets/a.txt", "a")
	p.must(unix.Mount("", filepath.Join(p.dir, "assets"), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	p.wants("a.txt")
	p.nothing()
}
