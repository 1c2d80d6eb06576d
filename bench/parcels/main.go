// Parcels compares parcels with other storage that a game could load from: zip archives, plain files, and maps in
// memory. Everything is measured in one run, in turns, on files that are in the page cache. It prints the tables of
// docs/internals/performance.md.
//
//	go run ./bench/parcels            # 1 GB of content, 3 GB on disk; two minutes
//	go run ./bench/parcels -quick     # only checks that it works
package main

import (
	"archive/zip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

func main() {
	quick := flag.Bool("quick", false, "a hundredth of everything, once")
	runs := flag.Int("runs", 5, "how often; the tables have the least")
	only := flag.String("only", "", "one part: pack, change, order or index")
	dir := flag.String("dir", "", "a folder to work in; a temporary one if there is none")
	flag.Parse()
	b := &bench{runs: *runs, packed: 10_000, indexed: 100_000}
	if *quick {
		b.runs, b.packed, b.indexed = 1, 100, 1000
	}
	var err error
	if b.dir, err = os.MkdirTemp(*dir, "kiln-parcels-"); err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(b.dir)
	fmt.Printf("%s, %d processors, load %s\n", runtime.GOARCH, runtime.NumCPU(), load())
	for _, part := range []struct {
		name string
		do   func() error
	}{{"pack", b.pack}, {"change", b.change}, {"order", b.order}, {"index", b.index}} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.do(); err != nil {
			os.RemoveAll(b.dir)
			log.Fatal(err)
		}
	}
	fmt.Printf("\nload at the end %s\n", load())
}

// load returns the load of the machine, if the system reports it.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:1], " ")
}

type bench struct {
	dir             string
	runs            int
	packed, indexed int
}

// contender is one way to do something.
type contender struct {
	name string
	do   func() error // measured
	undo func()       // not measured; may be nil
}

// times returns the least time of each contender. They run in turns, each round beginning with another one. The least
// time counts, because other load on the machine only adds time.
func (b *bench) times(cs []contender) ([]time.Duration, error) {
	least := make([]time.Duration, len(cs))
	for run := range b.runs {
		for k := range cs {
			i := (run + k) % len(cs)
			runtime.GC()
			start := time.Now()
			if err := cs[i].do(); err != nil {
				return nil, fmt.Errorf("%s: %w", cs[i].name, err)
			}
			if t := time.Since(start); run == 0 || t < least[i] {
				least[i] = t
			}
			if cs[i].undo != nil {
				cs[i].undo()
			}
		}
	}
	return least, nil
}

const packedSize = 100_000 // bytes of a content

// pack packs files without compression.
func (b *bench) pack() error {
	sources := filepath.Join(b.dir, "sources")
	rs, err := makeFiles(sources, b.packed)
	if err != nil {
		return err
	}
	out := filepath.Join(b.dir, "out")
	remove := func() { os.RemoveAll(out) }
	ours := func(workers int) func() error {
		return func() error { return parcel.Write(out, rs, parcel.Options{Workers: workers}) }
	}
	program := func(sync bool, args ...string) func() error {
		return func() error {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = b.dir
			if text, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, text)
			}
			if sync {
				return exec.Command("sync", "-f", out).Run()
			}
			return nil
		}
	}
	cs := []contender{
		{"kiln, two workers, on the disk", ours(2), remove},
		{"kiln, one worker, on the disk", ours(1), remove},
	}
	for _, peer := range [][]string{{"zip -0", "zip", "-0", "-q", "-r", "out.zip", "sources"}, {"cp -r", "cp", "-r", "sources", "out"}, {"cat", "sh", "-c", "cat sources/*/* > out"}} {
		if _, err := exec.LookPath(peer[1]); err != nil {
			fmt.Printf("%s is not installed\n", peer[0])
			continue
		}
		args := peer[1:]
		if peer[1] == "zip" { // zip appends its extension to a name without one
			args = []string{"sh", "-c", "zip -0 -q -r out.zip sources && mv out.zip out"}
		}
		cs = append(cs, contender{peer[0], program(false, args...), remove}, contender{peer[0] + ", on the disk", program(true, args...), remove})
	}
	ts, err := b.times(cs)
	if err != nil {
		return err
	}
	bytes := float64(b.packed) * packedSize
	fmt.Printf("\nPacking %d files, %.0f MB, without compression:\n\n| | s | MB/s | of the first |\n|---|---:|---:|---:|\n", b.packed, bytes/1e6)
	for i, c := range cs {
		fmt.Printf("| %s | %.2f | %.0f | %.2f |\n", c.name, ts[i].Seconds(), bytes/1e6/ts[i].Seconds(), float64(ts[i])/float64(ts[0]))
	}
	return nil
}

// makeFiles writes files of noise, a hundred in a folder, and waits until they are on disk.
func makeFiles(dir string, n int) ([]parcel.Resource, error) {
	noise := make([]byte, packedSize+n)
	for i := 0; i < len(noise); i += sha256.Size {
		sum := sha256.Sum256(fmt.Append(nil, i))
		copy(noise[i:], sum[:])
	}
	rs := make([]parcel.Resource, n)
	for i := range rs {
		content := noise[i : i+packedSize]
		name := fmt.Sprintf("%03d/file%d.bin", i/100, i)
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
		rs[i] = parcel.Resource{
			ID: uint32(i), UUID: uuidOf(i), Name: name, Type: "data", Size: packedSize, Hash: digest.Of(content),
			Open: func() (io.ReadCloser, error) { return os.Open(path) },
		}
	}
	exec.Command("sync", "-f", dir).Run() // if sync is missing, the first run is slower
	return rs, nil
}

func uuidOf(i int) (u [16]byte) {
	sum := sha256.Sum256(fmt.Append(nil, "uuid", i))
	copy(u[:], sum[:])
	return u
}

// change changes one content of 10 KB, twice, in a parcel with the packed files.
func (b *bench) change() error {
	sources := filepath.Join(b.dir, "sources")
	rs, err := makeFiles(sources, b.packed)
	if err != nil {
		return err
	}
	out := filepath.Join(b.dir, "changed")
	if err := parcel.Write(out, rs, parcel.Options{Workers: 2}); err != nil {
		return err
	}
	os.RemoveAll(sources)
	var written int64
	run := 0
	ts, err := b.times([]contender{{"one content", func() error {
		run++
		content := strings.Repeat(fmt.Sprintf("%09d\n", run), 1000)
		r := &rs[run*37%len(rs)]
		r.Size, r.Hash = int64(len(content)), digest.Of([]byte(content))
		r.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
		rep, err := parcel.Update(out, rs, parcel.Options{})
		written = max(written, rep.Written)
		return err
	}, nil}})
	if err != nil {
		return err
	}
	os.Remove(out)
	fmt.Printf("\nChanging one content of 10 KB in it: %.0f ms, %d bytes written.\n", ts[0].Seconds()*1000, written)
	return nil
}

// order loads a tenth of a parcel like a game, in areas of twenty resources of which levels are made, and counts the
// contiguous ranges that are read.
func (b *bench) order() error {
	const area = 20
	rnd := rand.New(rand.NewPCG(1, 2))
	rs := make([]parcel.Resource, b.packed)
	for i := range rs {
		content := strings.Repeat(fmt.Sprintf("%09d\n", i), 100)
		rs[i] = parcel.Resource{
			ID: uint32(i), UUID: uuidOf(i), Name: fmt.Sprint(i), Type: "data", Size: int64(len(content)), Hash: digest.Of([]byte(content)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
		}
	}
	var load []uint32
	for _, i := range rnd.Perm(b.packed / area)[:max(1, b.packed/area/10)] { // the resources of an area have names in many folders
		for k := range area {
			load = append(load, uint32((i+k*b.packed/area)%b.packed))
		}
	}
	out := filepath.Join(b.dir, "ordered")
	defer os.Remove(out)
	fmt.Printf("\nLoading %d of %d resources reads:\n\n| | runs of neighbouring bytes |\n|---|---:|\n", len(load), b.packed)
	for _, c := range []struct {
		name    string
		options parcel.Options
	}{
		{"by number", parcel.Options{Workers: 2}},
		{"by an order of what was loaded", parcel.Options{Workers: 2, First: load, Order: digest.Of(nil)}},
	} {
		if err := parcel.Write(out, rs, c.options); err != nil {
			return err
		}
		n, err := runs(out, load)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %d |\n", c.name, n)
	}
	return nil
}

// runs counts how often a load continues at another place than where it stopped. Alignment gaps do not count.
func runs(path string, load []uint32) (n int, err error) {
	p, err := kilnrt.Open(path)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	end := int64(-1)
	for _, id := range load {
		r, err := p.ByID(id)
		if err != nil {
			return 0, err
		}
		if gap := r.Offset - end; gap < 0 || gap >= int64(r.Align) {
			n++
		}
		end = r.Offset + r.Stored
	}
	return n, nil
}

// index opens storage with many small resources, and looks them up in random order.
func (b *bench) index() error {
	x, err := b.makeIndexed()
	if err != nil {
		return err
	}
	defer x.close()
	opening := []contender{
		{"kiln, mapped, and one look-up", x.openMapped, nil},
		{"kiln, read", x.openRead, nil},
		{"zip of Go", x.openZip, nil},
		{"a list of plain files", x.listFiles, nil},
	}
	ts, err := b.times(opening)
	if err != nil {
		return err
	}
	fmt.Printf("\nOpening %d resources:\n\n| | ms |\n|---|---:|\n", b.indexed)
	for i, c := range opening {
		fmt.Printf("| %s | %.3f |\n", c.name, ts[i].Seconds()*1000)
	}
	looking := []contender{
		{"kiln, by id", x.each(func(i int) error { _, err := x.parcel.ByID(x.ids[i]); return err }), nil},
		{"kiln, by UUID", x.each(func(i int) error { _, err := x.parcel.ByUUID(x.uuids[i], 0); return err }), nil},
		{"kiln, by name", x.each(func(i int) error { _, err := x.parcel.ByName(x.names[i]); return err }), nil},
		{"kiln, by id, and its content with its checksum", x.each(x.content), nil},
		{"Go map of ids", x.each(func(i int) error { return found(x.byID[x.ids[i]]) }), nil},
		{"Go map of names", x.each(func(i int) error { return found(x.byName[x.names[i]]) }), nil},
		{"zip of Go, by name", x.each(func(i int) error { return opened(x.zip.Open(x.names[i])) }), nil},
		{"plain file, opened", x.each(func(i int) error { return opened(os.Open(filepath.Join(x.files, x.names[i]))) }), nil},
	}
	if ts, err = b.times(looking); err != nil {
		return err
	}
	fmt.Printf("\nLooking up one of %d, at random:\n\n| | ns |\n|---|---:|\n", b.indexed)
	for i, c := range looking {
		fmt.Printf("| %s | %.0f |\n", c.name, float64(ts[i].Nanoseconds())/float64(b.indexed))
	}
	return nil
}

func found(r *kilnrt.Resource) error {
	if r == nil || r.Size == 0 {
		return fs.ErrNotExist
	}
	return nil
}

func opened(f io.Closer, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

// indexed is the same small contents in a parcel, a zip and a folder, with a random order.
type indexed struct {
	path, files string
	parcel      *kilnrt.Parcel
	zip         *zip.ReadCloser
	ids         []uint32
	uuids       [][16]byte
	names       []string
	byID        map[uint32]*kilnrt.Resource
	byName      map[string]*kilnrt.Resource
}

func (b *bench) makeIndexed() (*indexed, error) {
	x := &indexed{path: filepath.Join(b.dir, "indexed"), files: filepath.Join(b.dir, "files"), byID: map[uint32]*kilnrt.Resource{}, byName: map[string]*kilnrt.Resource{}}
	rs := make([]parcel.Resource, b.indexed)
	for i := range rs {
		content := fmt.Sprint("content ", i)
		rs[i] = parcel.Resource{ID: uint32(i), UUID: uuidOf(i), Name: fmt.Sprintf("textures/level%d/file%d.ktx2", i/1000, i), Type: "texture", Size: int64(len(content)), Hash: digest.Of([]byte(content))}
		rs[i].Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	}
	if err := parcel.Write(x.path, rs, parcel.Options{Workers: 2}); err != nil {
		return nil, err
	}
	if err := writeZip(x.path+".zip", rs); err != nil {
		return nil, err
	}
	var err error
	if x.parcel, err = kilnrt.Open(x.path); err != nil {
		return nil, err
	}
	for i := range x.parcel.Len() {
		r, err := x.parcel.At(i)
		if err != nil {
			return nil, err
		}
		x.byID[r.ID], x.byName[r.Name()] = &r, &r
		if err := extract(&r, x.files); err != nil {
			return nil, err
		}
	}
	if x.zip, err = zip.OpenReader(x.path + ".zip"); err != nil {
		return nil, err
	}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(rs)) {
		x.ids, x.uuids, x.names = append(x.ids, rs[i].ID), append(x.uuids, rs[i].UUID), append(x.names, rs[i].Name)
	}
	return x, nil
}

func writeZip(path string, rs []parcel.Resource) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for i := range rs {
		w, err := z.CreateHeader(&zip.FileHeader{Name: rs[i].Name, Method: zip.Store})
		if err != nil {
			return err
		}
		r, err := rs[i].Open()
		if err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
	return z.Close()
}

func extract(r *kilnrt.Resource, dir string) error {
	content, err := r.Bytes()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, r.Name())
	if r.Index()%1000 == 0 {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(path, content, 0o644)
}

func (x *indexed) close() {
	x.parcel.Close()
	x.zip.Close()
}

// each calls do once for each resource, in the random order.
func (x *indexed) each(do func(i int) error) func() error {
	return func() error {
		for i := range x.ids {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
}

func (x *indexed) content(i int) error {
	r, err := x.parcel.ByID(x.ids[i])
	if err != nil {
		return err
	}
	_, err = r.Bytes()
	return err
}

func (x *indexed) openMapped() error {
	p, err := kilnrt.Open(x.path)
	if err != nil {
		return err
	}
	if _, err := p.ByName(x.names[0]); err != nil {
		return err
	}
	return p.Close()
}

func (x *indexed) openRead() error {
	f, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = kilnrt.OpenReaderAt(f, info.Size())
	return err
}

func (x *indexed) openZip() error {
	z, err := zip.OpenReader(x.path + ".zip")
	if err != nil {
		return err
	}
	return z.Close()
}

func (x *indexed) listFiles() error {
	return filepath.WalkDir(x.files, func(_ string, _ fs.DirEntry, err error) error { return err })
}
