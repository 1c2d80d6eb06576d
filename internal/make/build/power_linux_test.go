package build

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

var (
	cuts = flag.Int("cuts", 8, "how many power cuts TestPowerCut makes")
)

// A recording is what a build did to the files of a project, in order, as strace tells it.
//
// A disk that loses power keeps what was synced. Of the rest it keeps what it likes: names and contents are written by themselves, so that
// a file may have its name and not its bytes, or zeros in their place.
type recording struct {
	root     string
	content  map[int][]byte            // of files as they were before, by number
	folders  map[string]map[string]int // folder, name to number of the file; 0: a folder
	names    []nameOp
	data     map[int][]dataOp
	synced   map[string][]int // when a folder was
	syncs    []int            // when anything was
	ends     int              // how many steps there are
	tree     map[string]int   // as it is after the steps so far
	fds      map[string]*openFile
	lastFile int
}

type openFile struct {
	path   string
	file   int // 0: a folder
	offset int64
	append bool
}

// nameOp gives a name to a file, or takes it away.
type nameOp struct {
	at        int
	dir, name string
	file      int // 0: a folder; gone
}

const gone = -1

// dataOp changes what is in a file, or waits until it is on the disk.
type dataOp struct {
	at   int
	off  int64
	data []byte
	cut  bool // to the length off
	sync bool
}

const traced = "openat,open,creat,close,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,copy_file_range,sendfile,rename,renameat,renameat2,link,linkat," +
	"symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,sync,syncfs,dup,dup2,dup3,lseek,ioctl"

// record builds a project in a process of its own, and tells what that did to its files.
func (p *fixture) record(log string) *recording {
	p.Helper()
	root, err := filepath.EvalSymlinks(p.dir)
	p.must(err)
	r := &recording{root: root, content: map[int][]byte{}, folders: map[string]map[string]int{}, data: map[int][]dataOp{}, synced: map[string][]int{}, tree: map[string]int{}, fds: map[string]*openFile{}}
	numbers := map[uint64]int{}
	for path, info := range walk(p, root) {
		if info.IsDir() {
			r.setBase(path, 0)
			continue
		}
		ino := info.Sys().(*syscall.Stat_t).Ino
		if numbers[ino] == 0 {
			r.lastFile++
			numbers[ino] = r.lastFile
			r.content[r.lastFile], err = os.ReadFile(path)
			p.must(err)
		}
		r.setBase(path, numbers[ino])
	}
	p.child("", "strace", "-f", "-qq", "-y", "-xx", "-s", "100000000", "-o", log, "-e", "signal=none", "-e", "trace=?"+strings.ReplaceAll(traced, ",", ",?"))
	text, err := os.ReadFile(log)
	p.must(err)
	begun := map[string]string{}
	for line := range strings.Lines(string(text)) {
		pid, call, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		call = strings.TrimLeft(call, " ")
		if before, ok := strings.CutSuffix(call, " <unfinished ...>"); ok {
			begun[pid] = before
			if m := regexp.MustCompile(`^close\((\d+)`).FindStringSubmatch(before); m != nil {
				delete(r.fds, m[1]) // others may get the number before the call ends
			}
			continue
		}
		if strings.HasPrefix(call, "<... ") {
			_, rest, _ := strings.Cut(call, " resumed>")
			if call = begun[pid] + rest; strings.HasPrefix(call, "close(") {
				continue
			}
		}
		if err := r.step(call); err != nil {
			p.Fatalf("%v in: %.300s", err, call)
		}
	}
	r.holds(p)
	return r
}

// walk are all files and folders of a project but its sources.
func walk(p *fixture, root string) map[string]fs.FileInfo {
	p.Helper()
	all := map[string]fs.FileInfo{}
	p.must(filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(root, "assets") {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err == nil && path != root {
			all[path] = info
		}
		return err
	}))
	return all
}

func (r *recording) setBase(path string, file int) {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if r.folders[dir] == nil {
		r.folders[dir] = map[string]int{}
	}
	r.folders[dir][name] = file
	r.tree[path] = file
}

// name notes that a name means another file.
func (r *recording) name(path string, file int) {
	r.names = append(r.names, nameOp{r.ends, filepath.Dir(path), filepath.Base(path), file})
	if r.tree[path] = file; file == gone {
		delete(r.tree, path)
	}
}

var callRE = regexp.MustCompile(`^(\w+)\((.*)\)\s+= (-?\d+|\?)(.*)$`)

// unhex takes apart a path or bytes as strace writes them, and what stands before them in <>.
func unhex(arg string) []byte {
	_, arg, _ = strings.Cut(arg, `"`)
	arg, _, _ = strings.Cut(arg, `"`)
	b, _ := hex.DecodeString(strings.ReplaceAll(arg, `\x`, ""))
	return b
}

func (r *recording) path(dir, arg string) string {
	path := string(unhex(arg))
	if filepath.IsAbs(path) || dir == "" {
		return filepath.Clean(path)
	}
	_, dir, _ = strings.Cut(dir, "<")
	dir, _, _ = strings.Cut(dir, ">")
	b, _ := hex.DecodeString(strings.ReplaceAll(dir, `\x`, ""))
	return filepath.Join(string(b), path)
}

// step takes in one system call.
func (r *recording) step(line string) error {
	m := callRE.FindStringSubmatch(line)
	if m == nil || m[3] == "?" || strings.HasPrefix(m[3], "-") {
		return nil // it failed
	}
	call, args := m[1], strings.Split(m[2], ", ")
	r.ends++
	ours := func(path string) bool { return strings.HasPrefix(path, r.root+"/") }
	fd, _, _ := strings.Cut(args[0], "<")
	f := r.fds[fd]
	switch call {
	case "open", "openat":
		dir := ""
		if call == "openat" {
			dir, args = args[0], args[1:]
		}
		if path := r.path(dir, args[0]); ours(path) && !strings.HasPrefix(path, r.root+"/assets") {
			return r.open(path, args[1], m[3])
		}
		delete(r.fds, m[3])
	case "close":
		delete(r.fds, fd)
	case "mkdir", "rmdir", "unlink":
		if path := r.path("", args[0]); ours(path) {
			r.name(path, map[string]int{"mkdir": 0, "rmdir": gone, "unlink": gone}[call])
		}
	case "mkdirat", "unlinkat":
		if path := r.path(args[0], args[1]); ours(path) {
			r.name(path, map[string]int{"mkdirat": 0, "unlinkat": gone}[call])
		}
	case "rename", "link":
		return r.move(r.path("", args[0]), r.path("", args[1]), call == "link")
	case "renameat", "renameat2", "linkat":
		return r.move(r.path(args[0], args[1]), r.path(args[2], args[3]), call == "linkat")
	case "symlink", "symlinkat", "truncate", "creat", "writev", "pwritev", "pwritev2", "sendfile", "dup", "dup2", "dup3", "sync", "syncfs":
		if f != nil || strings.Contains(line, hex.EncodeToString([]byte(r.root))) {
			return fmt.Errorf("%s is not understood", call)
		}
	default:
		if f != nil {
			return r.change(f, call, args, m[3])
		}
	}
	return nil
}

func (r *recording) open(path, flags, fd string) error {
	file, there := r.tree[path]
	if !there {
		if !strings.Contains(flags, "O_CREAT") {
			return fmt.Errorf("%s was opened and is not known", path)
		}
		r.lastFile++
		file = r.lastFile
		r.name(path, file)
	} else if strings.Contains(flags, "O_TRUNC") {
		r.data[file] = append(r.data[file], dataOp{at: r.ends, cut: true})
	}
	r.fds[fd] = &openFile{path: path, file: file, append: strings.Contains(flags, "O_APPEND")}
	return nil
}

func (r *recording) move(from, to string, link bool) error {
	file, ok := r.tree[from]
	if !ok {
		return nil // of no project
	}
	if file == 0 {
		return fmt.Errorf("a folder is renamed")
	}
	if other, ok := r.tree[to]; ok && other == file && !link {
		return nil
	}
	r.name(to, file)
	if !link {
		r.name(from, gone)
	}
	return nil
}

// change takes in a call about an open file.
func (r *recording) change(f *openFile, call string, args []string, result string) error {
	number := func(s string) int64 { n, _ := strconv.ParseInt(s, 0, 64); return n }
	n := number(result)
	op := dataOp{at: r.ends}
	switch call {
	case "fsync", "fdatasync":
		if r.syncs = append(r.syncs, r.ends); f.file == 0 {
			r.synced[f.path] = append(r.synced[f.path], r.ends)
			return nil
		}
		op.sync = true
	case "write":
		op.data, op.off = unhex(args[1])[:n], f.offset
		if f.append {
			op.off = int64(len(r.now(f.file)))
		}
		f.offset = op.off + n
	case "pwrite64":
		op.data, op.off = unhex(args[1])[:n], number(args[3])
	case "lseek":
		f.offset = n
		return nil
	case "ftruncate":
		op.cut, op.off = true, number(args[1])
	case "copy_file_range":
		from, _, _ := strings.Cut(args[0], "<")
		to, _, _ := strings.Cut(args[2], "<")
		in, out := r.fds[from], r.fds[to]
		if in == nil || out == nil || args[1] != "NULL" || args[3] != "NULL" {
			return fmt.Errorf("%s is not understood", call)
		}
		op.data, op.off = r.now(in.file)[in.offset:][:n], out.offset
		in.offset, out.offset, f = in.offset+n, out.offset+n, out
	case "ioctl":
		if strings.Contains(args[1], "FICLONE") {
			return fmt.Errorf("%s is not understood", call)
		}
		return nil
	default:
		return fmt.Errorf("%s is not understood", call)
	}
	if f.file == 0 {
		return fmt.Errorf("it is about a folder")
	}
	r.data[f.file] = append(r.data[f.file], op)
	return nil
}

// now is what is in a file after all steps so far.
func (r *recording) now(file int) []byte { return apply(slices.Clone(r.content[file]), r.data[file]) }

func apply(b []byte, ops []dataOp) []byte {
	for _, o := range ops {
		if o.sync {
			continue
		}
		if end := o.off + int64(len(o.data)); end > int64(len(b)) {
			b = append(b, make([]byte, end-int64(len(b)))...)
		}
		if copy(b[o.off:], o.data); o.cut {
			b = b[:o.off]
		}
	}
	return b
}

// holds tells whether the recording comes to what is there.
func (r *recording) holds(p *fixture) {
	p.Helper()
	real := walk(p, r.root)
	for path, file := range r.tree {
		info := real[path]
		if info == nil || info.IsDir() != (file == 0) {
			p.Fatalf("%s is not there, or another thing, or was there all the time", path)
		}
		delete(real, path)
		if file == 0 || strings.HasSuffix(path, "-shm") { // which is written in memory
			continue
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, r.now(file)) {
			p.Fatalf("the recording has %d bytes of %s, and there are %d: %v", len(r.now(file)), path, len(b), err)
		}
	}
	if len(real) > 0 {
		p.Fatalf("made by nobody: %v", slices.Collect(maps.Keys(real)))
	}
}

// held is what a disk holds.
type held struct {
	tree    map[string]int
	content map[int][]byte
	told    string
}

// cut is what a disk may hold if the power goes while the build is at work, or after it.
func (r *recording) cut(rng *rand.Rand) held {
	at := r.ends
	if rng.IntN(2) == 0 {
		at = rng.IntN(r.ends + 1)
	}
	posix := rng.IntN(3) == 0 // each folder by itself; else names are written in the order in which they were given, as file systems with a journal do
	since := func(syncs []int) int {
		n := 0
		for _, s := range syncs {
			if s <= at {
				n = s
			}
		}
		return n
	}
	upTo := func(last int) int {
		switch rng.IntN(4) {
		case 0:
			return last
		case 1:
			return last + rng.IntN(at-last+1)
		}
		return at
	}
	all := upTo(since(r.syncs))
	folders := map[string]map[string]int{}
	for dir, names := range r.folders {
		folders[dir] = maps.Clone(names)
	}
	limits := map[string]int{}
	for _, o := range r.names {
		limit, ok := limits[o.dir]
		if !ok {
			if limit = all; posix {
				limit = upTo(since(r.synced[o.dir]))
			}
			limits[o.dir] = limit
		}
		if folders[o.dir] == nil {
			folders[o.dir] = map[string]int{}
		}
		if o.at <= limit {
			folders[o.dir][o.name] = o.file
		}
	}
	st := held{tree: map[string]int{}, content: map[int][]byte{}}
	style := rng.IntN(fates + 2)
	var reach func(dir string)
	reach = func(dir string) {
		for _, name := range slices.Sorted(maps.Keys(folders[dir])) {
			path, file := filepath.Join(dir, name), folders[dir][name]
			if file == gone {
				continue
			}
			if st.tree[path] = file; file == 0 {
				reach(path)
			} else if _, ok := st.content[file]; !ok {
				st.content[file] = r.left(rng, file, at, style)
			}
		}
	}
	reach(r.root)
	st.told = fmt.Sprintf("after step %d of %d, names up to %d, each folder by itself: %t, fate %d of contents", at, r.ends, all, posix, style)
	return st
}

// What becomes of that part of a file which was not synced.
const (
	allKept = iota
	lost    // also the length
	zeroed  // the length is right
	torn    // up to some write, and of that one a part
	pages   // some pages
	fates
)

func (r *recording) left(rng *rand.Rand, file, at, fate int) []byte {
	var before, after []dataOp
	for _, o := range r.data[file] {
		if o.at > at {
			break
		}
		if after = append(after, o); o.sync {
			before, after = append(before, after...), nil
		}
	}
	had := apply(slices.Clone(r.content[file]), before)
	if len(after) == 0 {
		return had
	}
	has := apply(slices.Clone(had), after)
	if fate >= fates { // each file its own
		fate = rng.IntN(fates)
	}
	switch fate {
	case lost:
		return had
	case zeroed:
		return append(slices.Clone(had[:min(len(had), len(has))]), make([]byte, max(0, len(has)-len(had)))...)
	case torn:
		n := rng.IntN(len(after))
		last := after[n]
		last.data = last.data[:rng.IntN(len(last.data)+1)]
		return apply(had, append(slices.Clone(after[:n]), last))
	case pages:
		const page = 4096
		out := append(slices.Clone(had[:min(len(had), len(has))]), make([]byte, max(0, len(has)-len(had)))...)
		for i := 0; i < len(has); i += page {
			if end := min(i+page, len(has)); rng.IntN(2) == 0 {
				copy(out[i:end], has[i:end])
			}
		}
		return out
	}
	return has
}

// put makes the project on the disk what a power cut leaves. Files that are left as they are, are not touched; the others are the same
// files, with the times that they had: a build that trusts these is deceived as well as can be.
func (r *recording) put(p *fixture, st held) {
	p.Helper()
	at := map[int]string{} // where a file is that is there
	for path, file := range r.tree {
		if file > 0 {
			at[file] = path
		}
	}
	var news []string
	made := map[int]string{}
	for _, path := range slices.Sorted(maps.Keys(st.tree)) {
		file := st.tree[path]
		if now, ok := r.tree[path]; ok && now == file {
			continue
		}
		if file == 0 {
			continue
		}
		tmp := filepath.Join(r.root, fmt.Sprintf("new-%d", len(news)))
		if from, ok := at[file]; ok {
			p.must(os.Link(from, tmp))
		} else if from, ok := made[file]; ok {
			p.must(os.Link(from, tmp))
		} else {
			p.must(os.WriteFile(tmp, st.content[file], 0o644))
			made[file] = tmp
		}
		news = append(news, path)
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(r.tree))) {
		if now, ok := st.tree[path]; !ok || now != r.tree[path] {
			p.must(os.Remove(path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(st.tree)) {
		if st.tree[path] == 0 {
			p.must(os.MkdirAll(path, 0o777))
		}
	}
	for i, path := range news {
		p.must(os.Rename(filepath.Join(r.root, fmt.Sprintf("new-%d", i)), path))
	}
	done := map[int]bool{}
	for path, file := range st.tree {
		if file == 0 || done[file] || strings.HasSuffix(path, "-shm") {
			continue
		}
		done[file] = true
		p.tear(path, st.content[file])
	}
}

// tear changes what is in a file, and no more.
func (p *fixture) tear(path string, content []byte) {
	p.Helper()
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return
	}
	info, err := os.Stat(path)
	p.must(err)
	p.must(os.Chmod(path, 0o644))
	p.must(os.WriteFile(path, content, 0o644))
	p.must(os.Chmod(path, info.Mode().Perm()))
	ts := []unix.Timespec{unix.NsecToTimespec(info.ModTime().UnixNano()), unix.NsecToTimespec(info.ModTime().UnixNano())}
	p.must(unix.UtimesNanoAt(unix.AT_FDCWD, path, ts, 0))
}

// child builds in a process of its own, which thinks that the system was started as boot says; "" for as it was.
func (p *fixture) child(boot string, watcher ...string) {
	p.Helper()
	exe, err := os.Executable()
	p.must(err)
	args := append(watcher, exe)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childDir+"="+p.dir, childBoot+"="+boot)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("%v\n%s", err, out)
	}
}

// TestPowerCut builds a project again and again, and has the power go each time: what a disk may hold then is put in the place of what it
// holds. The next build gives what a clean one gives, and the one after has nothing to do.
//
// What a build does is recorded by strace, so that all of it is seen, SQLite's share, too.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	thorough.Only(t, "the work is done in other programs")
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	rng := randomSource(t)
	p := newProject(t, powered)
	log := filepath.Join(t.TempDir(), "strace")
	for n := range *cuts {
		if n%16 == 0 { // all of it anew
			for _, name := range []string{".kiln", "build"} {
				p.remove(name)
			}
		}
		for range rng.IntN(4) {
			p.edit(rng)
		}
		r := p.record(log)
		st := r.cut(rng)
		r.put(p, st)
		p.child(fmt.Sprint("boot ", n))
		want := p.clean()
		if got := p.delivered(); !maps.Equal(got, want.outputs) {
			t.Errorf("cut %d, %s: outputs are not those of a clean build: %s", n, st.told, differ(want.outputs, got))
		}
		if left, _ := filepath.Glob(p.path(disk.TempPrefix + "*")); left != nil {
			t.Errorf("cut %d, %s: left behind: %v", n, st.told, left)
		}
		if b := p.build(); b.Built != 0 {
			t.Errorf("cut %d, %s: the build after the next one runs %s", n, st.told, b.ran)
		}
		if t.Failed() {
			return
		}
	}
}

const powered = `
-- kiln.toml --
[project]
name = "test"
[[parcels]]
name = "all"
assets = ["**"]
[[constants]]
language = "go"
-- assets/large.txt --
L
-- assets/use.s --
use 1.s 2.s
-- assets/glob.s --
glob **
-- assets/1.s --
text one
-- assets/2.s --
text two
-- assets/sub/3.txt --
three
`

// edit makes a change to the sources.
func (p *fixture) edit(rng *rand.Rand) {
	p.Helper()
	n := rng.IntN(6)
	text := fmt.Sprint("text ", rng.IntN(1000))
	switch rng.IntN(6) {
	case 0:
		p.write(fmt.Sprintf("assets/%d.s", 1+n%2), text)
	case 1, 2:
		p.write(fmt.Sprintf("assets/sub/%d.txt", n), text)
	case 3:
		p.remove(fmt.Sprintf("assets/sub/%d.txt", n))
	case 4:
		p.write("assets/large.txt", strings.Repeat(text+"\n", rng.IntN(20_000)))
	case 5:
		p.write(fmt.Sprintf("assets/%d.txt", n), strings.Repeat(text, n*1000))
	}
}
