//go:build amd64 || arm64

package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const helperEnv = "KILN_SEAL_HELPER"

// helperEnvironment: the race detector else waits a second at the end of each process.
var helperEnvironment = []string{helperEnv + "=1", "GORACE=atexit_sleep_ms=0"}

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "1" {
		if err := helper(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helper is the program in the box.
func helper(mode string, args []string) error {
	switch mode {
	case "read":
		for _, a := range args {
			if f, err := os.Open(a); err == nil {
				f.Close()
			}
		}
	case "many": // FOLDER COUNT: opens COUNT files
		n, _ := strconv.Atoi(args[1])
		for i := range n {
			os.ReadFile(filepath.Join(args[0], strconv.Itoa(i)))
		}
	case "threads": // FOLDER COUNT: the same from four threads
		n, _ := strconv.Atoi(args[1])
		var all sync.WaitGroup
		for k := range 4 {
			all.Go(func() {
				runtime.LockOSThread()
				for i := k; i < n; i += 4 {
					os.ReadFile(filepath.Join(args[0], strconv.Itoa(i)))
				}
			})
		}
		all.Wait()
	case "stat":
		for _, a := range args {
			os.Stat(a)
			os.Lstat(a)
		}
	case "list":
		os.ReadDir(args[0])
	case "folder": // FOLDER NAME: opens relative to a descriptor, and to another current folder
		root, err := os.OpenRoot(args[0])
		if err != nil {
			return err
		}
		f, err := root.Open(args[1])
		if err != nil {
			return err
		}
		f.Close()
		if err := os.Chdir(args[0]); err != nil {
			return err
		}
		_, err = os.ReadFile(args[1] + "2")
		return err
	case "run": // MODE...: a child does it
		exe, _ := os.Executable()
		out, err := exec.Command(exe, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	case "write": // each of these must fail; ends with 0 if they do
		return writes(args[0])
	case "dial":
		c, err := net.Dial("tcp", args[0])
		if err == nil {
			c.Close()
			return errors.New("connected")
		}
		if !errors.Is(err, syscall.EACCES) {
			return err
		}
		_, err = net.Dial("udp", args[0])
		if !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("udp: %v", err)
		}
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.Close(fds[0])
		}
		return err
	case "ring":
		if _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); errno != unix.ENOSYS {
			return fmt.Errorf("io_uring: %v", errno)
		}
		if err := unix.Chroot("/"); err != unix.EPERM {
			return fmt.Errorf("chroot: %v", err)
		}
	case "bad": // pointers that lead nowhere
		for _, p := range []uintptr{0, 1, ^uintptr(0), ^uintptr(0) - 4096} {
			if _, _, errno := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), p, 0, 0, 0, 0); errno != unix.EFAULT {
				return fmt.Errorf("%#x: %v", p, errno)
			}
		}
		if _, err := unix.Openat(12345, "x", 0, 0); err != unix.EBADF {
			return err
		}
		if _, err := os.Open(strings.Repeat("x/", 4000)); !errors.Is(err, syscall.ENAMETOOLONG) {
			return err
		}
	case "probe":
		return probe(args)
	case "forbidden":
		return forbiddenCalls()
	case "reach":
		return reach(args)
	case "spy":
		return spy(args)
	case "exec":
		return unix.Exec(args[0], args[1:], os.Environ())
	}
	return nil
}

// writes tries all ways to change something in a folder of others.
func writes(dir string) error {
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile("own", nil, 0o600); err != nil {
		return fmt.Errorf("its own file: %w", err)
	}
	for name, err := range map[string]error{
		"new file":  os.WriteFile(in("new"), nil, 0o600),
		"overwrite": os.WriteFile(in("there"), []byte("x"), 0o600),
		"append":    func() error { _, err := os.OpenFile(in("there"), os.O_APPEND|os.O_RDWR, 0); return err }(),
		"truncate":  os.Truncate(in("there"), 0),
		"remove":    os.Remove(in("there")),
		"rename":    os.Rename(in("there"), "taken"),
		"put":       os.Rename("own", in("put")),
		"link":      os.Link(in("there"), "linked"),
		"symlink":   os.Symlink("x", in("link")),
		"mkdir":     os.Mkdir(in("folder"), 0o700),
		"fifo":      unix.Mkfifo(in("fifo"), 0o600),
		"dots":      os.WriteFile("../../"+filepath.Base(dir)+"/dots", nil, 0o600),
	} {
		if err == nil {
			return fmt.Errorf("%s succeeded", name)
		}
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EXDEV) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// inBox runs the helper in a box.
func inBox(t testing.TB, b Box, dir string, args ...string) ([]Access, error) {
	t.Helper()
	if b.Trace && Supported().Trace != nil {
		t.Skip(Supported().Trace)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	seen, err := runIn(b, &exec.Cmd{Path: exe, Args: append([]string{"helper"}, args...), Dir: dir, Env: helperEnvironment, Stderr: &said})
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &said)
	}
	return seen, err
}

func runIn(b Box, cmd *exec.Cmd) (seen []Access, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var tr *Tracer
		if tr, err = b.Enter(); err != nil {
			return
		}
		rerr := cmd.Run()
		seen, err = tr.Stop()
		err = errors.Join(rerr, err)
	}()
	<-done
	return seen, err
}

// lines are what was seen below a folder.
func lines(seen []Access, dir string) []string {
	var all []string
	for _, a := range seen {
		if rest, ok := within(dir, a.Path); ok {
			line := a.Op.String() + " " + rest
			if !a.State.Exists {
				line += " missing"
			}
			all = append(all, line)
		}
	}
	return all
}

// files makes a folder of files; those whose content begins with "->" are links.
func files(t testing.TB, all map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(data, "->"); ok {
			err = os.Symlink(to, file)
		} else {
			err = os.WriteFile(file, []byte(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTrace(t *testing.T) {
	dir := files(t, map[string]string{
		"a": "", "b/c": "", "b/c2": "", "link": "->b", "b/up": "->../a", "with space/ü": "",
	})
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"relative", []string{"read", "a", "./b/../a", "none", "b/none"}, []string{"read a", "look b", "read none missing", "read b/none missing"}},
		{"up", []string{"read", "none/../a", "b/none/../../a"}, []string{"look none missing", "look b/none missing"}},
		{"absolute", []string{"read", dir + "/a", dir + "//b/./c"}, []string{"read a", "read b/c"}},
		{"links", []string{"read", "link/c", "link/../a", "b/up"}, []string{"read link/c", "look link", "read a", "read b/up"}},
		{"names", []string{"read", "with space/ü"}, []string{"read with space/ü"}},
		{"through /proc", []string{"read", "/proc/self/cwd/a", "/proc/self/root" + dir + "/b/c"}, []string{"read a", "read b/c"}},
		{"stat", []string{"stat", "a", "b", "none"}, []string{"look a", "look b", "look none missing"}},
		{"list", []string{"list", "b"}, []string{"list b"}},
		{"descriptors", []string{"folder", "b", "c"}, []string{"list b", "read b/c", "read b/c2"}},
		{"a child", []string{"run", "run", "read", "a"}, []string{"read a"}},
		{"bad", []string{"bad"}, nil},
		{"refused", []string{"ring"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen, err := inBox(t, Box{Network: true, Trace: true}, dir, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			got := lines(seen, dir)
			if c.name == "descriptors" { // how os.Root goes its way is its own business
				got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "look") })
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// What Kiln itself does to start the program is not seen, and its exec is not waited for: see place.
func TestOwnExecIsNotSeen(t *testing.T) {
	for range 50 {
		seen, err := inBox(t, Box{Network: true, Trace: true}, t.TempDir(), "nothing")
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range seen {
			if a.Op == Exec {
				t.Fatalf("%v", a)
			}
		}
	}
}

func TestExecIsSeen(t *testing.T) {
	file, err := exec.LookPath("true")
	if err != nil {
		t.Skip(err)
	}
	file, _ = filepath.EvalSymlinks(file)
	cat, err := exec.LookPath("env")
	if err != nil {
		t.Skip(err)
	}
	if Supported().Trace != nil {
		t.Skip(Supported().Trace)
	}
	seen, err := runIn(Box{Network: true, Trace: true}, exec.Command(cat, file))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(seen, func(a Access) bool { return a.Op == Exec && a.Path == file && a.State.Exists }) {
		t.Errorf("%v", seen)
	}
}

func TestManyAndThreads(t *testing.T) {
	dir := t.TempDir()
	const n = 10_000
	for _, mode := range []string{"many", "threads"} {
		seen, err := inBox(t, Box{Network: true, Trace: true}, dir, mode, "deep", strconv.Itoa(n))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(lines(seen, dir)); got != n {
			t.Errorf("%s: %d files seen of %d", mode, got, n)
		}
	}
}

func TestSkip(t *testing.T) {
	dir := files(t, map[string]string{"scratch/a": "", "scratch2/a": ""})
	seen, err := inBox(t, Box{Network: true, Trace: true, Skip: []string{dir + "/scratch"}}, dir, "read", "scratch/a", "scratch2/a", "/proc/self/maps", "/dev/null", "/sys/kernel")
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(seen, "/"); len(got) > 0 && strings.HasPrefix(got[0], "read proc") {
		t.Errorf("%q", got)
	}
	if got, want := lines(seen, dir), []string{"read scratch2/a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDiskInMemory reads a file below /dev, where a project may be as well.
func TestDiskInMemory(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "seal")
	if err != nil {
		t.Skip("there is no disk in memory at /dev/shm:", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(dir+"/a", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	seen, err := inBox(t, Box{Network: true, Trace: true}, dir, "read", "a")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(seen, dir), []string{"read a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWritesAreRefused(t *testing.T) {
	if Supported().Writes < 3 {
		t.Skip("this system's landlock does not refuse all of that")
	}
	for _, trace := range []bool{false, true} {
		dir := files(t, map[string]string{"there": "kept", "scratch/x": ""})
		if _, err := inBox(t, Box{Writable: []string{dir + "/scratch"}, Trace: trace}, dir+"/scratch", "run", "write", dir); err != nil {
			t.Error(err)
		}
		if data, _ := os.ReadFile(dir + "/there"); string(data) != "kept" {
			t.Errorf("%q", data)
		}
		if all, _ := os.ReadDir(dir); len(all) != 2 {
			t.Errorf("%v", all)
		}
	}
}

func TestNetworkIsRefused(t *testing.T) {
	if !Supported().Network {
		t.Skip("this system refuses seccomp filters")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	for _, trace := range []bool{false, true} {
		if _, err := inBox(t, Box{Trace: trace}, t.TempDir(), "dial", l.Addr().String()); err != nil {
			t.Error(err)
		}
		if _, err := inBox(t, Box{Trace: trace, Network: true}, t.TempDir(), "dial", l.Addr().String()); err == nil {
			t.Error("no connection")
		}
	}
}

// Threads of Kiln that are in no box are as free as ever.
func TestOthersAreFree(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := inBox(t, Box{Trace: true, Writable: []string{t.TempDir()}}, dir, "read", "x"); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for i := range 100 {
				if err := os.WriteFile(filepath.Join(t.TempDir(), strconv.Itoa(i)), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestChangedMeanwhile(t *testing.T) {
	tr := &Tracer{seen: map[seenKey]int{}}
	file := filepath.Join(t.TempDir(), "a")
	for _, data := range []string{"1", "12"} {
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tr.add(file, Read, os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if len(tr.accesses) != 1 || tr.accesses[0].State == StateOf(file) {
		t.Errorf("%v", tr.accesses)
	}
}

// TestYoungFile: a file that changes again in the moment after it was looked at is not as it was.
func TestYoungFile(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		tr, file := &Tracer{seen: map[seenKey]int{}}, filepath.Join(dir, strconv.Itoa(i))
		for _, data := range []string{"1", "2"} {
			if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if data == "1" {
				if err := tr.add(file, Read, os.Getpid()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if tr.accesses[0].State == StateOf(file) {
			t.Errorf("%+v", tr.accesses[0])
		}
	}
}

// TestFind: where a path leads, whether or not there is something.
func TestFind(t *testing.T) {
	dir := files(t, map[string]string{"a": "", "b/c": "", "link": "->b", "up": "->link/../a", "lost": "->b/none/x", "round": "->round", "b/abs": "->/none/y"})
	for path, want := range map[string]string{
		"a": "a", "link/c": "b/c", "up": "a", "link": "b", "none": "none", "link/none/x": "b/none/x", "lost": "b/none/x", "round": "round", "a/x": "a/x",
	} {
		real, state := Find(dir + "/" + path)
		_, err := os.Stat(dir + "/" + path)
		if real != dir+"/"+want || state.Exists != (err == nil) || state != StateOf(dir+"/"+path) {
			t.Errorf("%s: %s, %+v", path, real, state)
		}
	}
	if real, _ := Find(dir + "/b/abs"); real != "/none/y" {
		t.Error(real)
	}
}

// TestUps compares where paths with ".." lead with where the kernel takes them, for random paths of folders, files and links.
func TestUps(t *testing.T) {
	dir := files(t, map[string]string{"a": "", "b/c": "", "b/d/e": "", "link": "->b/d", "b/d/back": "->../..", "b/file": "->c", "lost": "->none", ".../x": ""})
	rng := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "d", "e", "link", "back", "file", "lost", "none", "...", "..", "..", "..", ".", ""}
	there, tr := 0, &Tracer{seen: map[seenKey]int{}}
	for range 20000 {
		path := dir
		for range 1 + rng.IntN(8) {
			path += "/" + names[rng.IntN(len(names))]
		}
		want, err := filepath.EvalSymlinks(path)
		if err != nil || !strings.HasPrefix(want, dir) {
			continue
		}
		there++
		before := len(tr.accesses)
		if err := tr.add(path, Look, os.Getpid()); err != nil {
			t.Fatal(err)
		}
		real := func(a Access) bool { return a.Real == want && a.State == StateOf(path) }
		if !slices.ContainsFunc(tr.accesses, real) {
			t.Fatalf("%s leads to %s; recorded: %v", path, want, tr.accesses[before:])
		}
	}
	for _, a := range tr.accesses {
		if strings.Contains(a.Path, "/../") || strings.HasSuffix(a.Path, "/..") || !a.State.Exists {
			t.Errorf("%v", a)
		}
	}
	if there < 1000 {
		t.Errorf("only %d paths lead anywhere", there)
	}
}

// TestFolderPassedThrough: a folder that files come into while a program goes through it has not changed for the program; one that it lists
// has.
func TestFolderPassedThrough(t *testing.T) {
	tr := &Tracer{seen: map[seenKey]int{}}
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		for _, op := range []Op{Look, Read} {
			if err := tr.add(dir, op, os.Getpid()); err != nil {
				t.Fatal(err)
			}
		}
		for { // until the folder's time is another
			was := StateOf(dir)
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if StateOf(dir) != was {
				break
			}
			os.Remove(filepath.Join(dir, name))
		}
	}
	now := StateOf(dir)
	for _, a := range tr.accesses {
		if same := a.State.Inode == now.Inode; same != (a.Op == Look) {
			t.Errorf("%v", a)
		}
	}
	if len(tr.accesses) != 2 {
		t.Errorf("%v", tr.accesses)
	}
}
