package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// SnapshotVersion is in the header of the snapshot. Of one of version 3 or 4 the image is used, as after a power cut; one of another is not.
const SnapshotVersion = 5

var snapshotMagic = []byte("KILN\x00snp")

// Output is a file that Kiln put into the output tree, as it was right after.
type Output struct {
	File string // below the output folder
	Stat source.Stat
	Hash digest.Hash
}

// Tool is an external program that some job looked for.
type Tool struct {
	Name string // as the job called it
	Path string // where it was found; "" if it was not
	Stat source.Stat
	Hash digest.Hash // zero: it was missing
}

// Variable is an environment variable that some job looked at.
type Variable struct {
	Name  string
	Value digest.Hash // zero: not set
}

// Shipped is a file that was made of products, or that decides what these are, as it was after the build.
type Shipped struct {
	File string // relative to the project folder
	Made bool
	Stat source.Stat // zero: it is not there
}

// Totals of a build over the whole project.
type Totals struct {
	Assets, Jobs, Requests, Failed, Products int
	Bytes                                    int64
}

// Head is what a snapshot says besides its tables.
type Head struct {
	Signature digest.Hash // of all that decides what is built besides files: Kiln itself, processors, the environment of the project file
	Project   digest.Hash // of the project file
	Build     uint64      // number of the build
	Mirrored  uint64      // number of the build that the content database tells of; 0: none
	Journal   int64       // bytes of what was written to the database and stands in its log
	Whole     bool        // the build was of all assets on all platforms and was not stopped
	Plain     bool        // nothing is to be said but by jobs and notices
	Pinned    bool        // rules gave assets ids or UUIDs, or had them follow
	Log       Mark        // the trace log at the end of the build
	Tools     []Tool
	Variables []Variable
	Shipped   []Shipped // sorted by File
	Messages  []byte    // what there was to tell people, to be told again
	Notices   []byte    // those of them that are not of jobs, and what they are about
	Totals    Totals
}

// Image is all that a snapshot is written from.
type Image struct {
	Head
	Sources *source.Table
	Outputs []Output // sorted by File
	Tasks   []TaskState
	Edges   []Edge // in any order
	Globs   []Glob
}

// Snapshot is the world at the end of a build. If nothing in it differs, nothing is to be done.
//
// It is an image and what later builds appended to it. The large tables that only a build with something to do
// needs are read when they are asked for.
type Snapshot struct {
	Head
	Sources *source.Table
	Outputs *Outputs

	path    string
	version uint32
	size    int64 // of the file, up to the end of the last whole block
	base    int64 // of the image in it
	deltas  int   // appended to it
	blocks  map[uint32]block
	later   []*Delta
	tasks   *Tasks
}

// Blocks of the file. Those of the image come once, in this order; deltas follow.
const (
	blockHead    = 1
	blockSources = 2
	blockOutputs = 3
	blockHashes  = 4 // of the outputs
	blockTasks   = 5
	blockEdges   = 6
	blockDelta   = 7

	blockHeadSize = 16 // kind u32, size u64, checksum u32
)

// block is where in the file some payload is.
type block struct {
	at, size int64
	sum      uint32
}

// ReadSnapshot reads a snapshot. It is nil if there is none that can be used; why says so unless there simply is none.
func ReadSnapshot(path string) (s *Snapshot, why string, err error) {
	f, err := disk.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	s, why = parseSnapshot(f, info.Size())
	if s != nil {
		s.path = path
	}
	return s, why, nil
}

const snapshotDamaged = "the snapshot of files is damaged; all files are looked at"

func parseSnapshot(f io.ReaderAt, size int64) (*Snapshot, string) {
	head := make([]byte, headerSize)
	if _, err := f.ReadAt(head, 0); err != nil || !bytes.Equal(head[:8], snapshotMagic) {
		return nil, "the snapshot of files is not one; all files are looked at"
	}
	version := binary.LittleEndian.Uint32(head[8:])
	other := fmt.Sprintf("the snapshot of files has version %d, not %d; all files are looked at", version, SnapshotVersion)
	if version != SnapshotVersion && version != 4 && version != 3 {
		return nil, other
	}
	s := &Snapshot{blocks: map[uint32]block{}, size: headerSize, version: version}
	var sources reading
	defer sources.Wait()
	for len(s.blocks) < blockEdges {
		if !s.parseBlock(f, size, &sources) {
			return nil, snapshotDamaged
		}
	}
	if !s.takeSources(&sources) {
		return nil, snapshotDamaged
	}
	if version != SnapshotVersion { // what was appended is left out, and nothing is: the next build writes it whole
		s.Mirrored, s.Whole = 0, false
		return s, other
	}
	for s.size < size {
		d, b := readDelta(f, s.size, size)
		if d == nil { // as after a power cut: what is before it was so at the end of a build
			s.Mirrored = 0 // the database tells of a later one
			return s, "the end of the snapshot of files is damaged; what the last builds changed is looked at again"
		}
		s.deltas++
		s.size = b.at + b.size
		if !s.take(d) {
			return nil, snapshotDamaged
		}
	}
	return s, ""
}

// reading is the table of sources, which is two thirds of what is read, and is read beside the rest.
type reading struct {
	sync.WaitGroup
	table *source.Table // nil: it is damaged
}

func (r *reading) start(f io.ReaderAt, b block) {
	r.Go(func() {
		data, ok := b.read(f)
		d := decoder{buf: data}
		if t := decodeTable(&d); ok && d.err == nil && len(d.buf) == 0 {
			r.table = t
		}
	})
}

// takeSources waits for the table of sources.
func (s *Snapshot) takeSources(r *reading) bool {
	r.Wait()
	s.Sources = r.table
	return s.Sources != nil
}

// parseBlock takes in the block of the image at s.size.
func (s *Snapshot) parseBlock(f io.ReaderAt, size int64, sources *reading) bool {
	kind, b, ok := readBlock(f, s.size, size)
	if !ok {
		return false
	}
	s.size = b.at + b.size
	if kind != uint32(len(s.blocks))+1 { // each of the image once, and in order
		return false
	}
	s.blocks[kind], s.base = b, s.size
	if kind > blockOutputs {
		return true
	}
	if kind == blockSources {
		sources.start(f, b)
		return true
	}
	data, ok := b.read(f)
	d := decoder{buf: data}
	switch kind {
	case blockHead:
		s.Head = decodeHead(&d, s.version)
	case blockOutputs:
		s.Outputs = decodeOutputs(&d)
		s.Outputs.hashes = func() ([]byte, error) { return s.load(blockHashes) }
	}
	return ok && d.err == nil && len(d.buf) == 0
}

func readBlock(f io.ReaderAt, at, size int64) (kind uint32, b block, ok bool) {
	var head [blockHeadSize]byte
	if at+blockHeadSize > size {
		return 0, b, false
	}
	if _, err := f.ReadAt(head[:], at); err != nil {
		return 0, b, false
	}
	n := binary.LittleEndian.Uint64(head[4:])
	b = block{at + blockHeadSize, int64(n), binary.LittleEndian.Uint32(head[12:])}
	return binary.LittleEndian.Uint32(head[:]), b, n <= uint64(size-at-blockHeadSize)
}

func (b block) read(f io.ReaderAt) ([]byte, bool) {
	data := make([]byte, b.size)
	if _, err := f.ReadAt(data, b.at); err != nil {
		return nil, false
	}
	return data, crc32.Checksum(data, castagnoli) == b.sum
}

// errDamaged says that a part of the snapshot that is read later cannot be used.
var errDamaged = errors.New(snapshotDamaged)

// load reads a block of the image that was left for later. The file may have been replaced meanwhile, by a build that this process,
// which then holds no lock, does not see: that is an error as well.
func (s *Snapshot) load(kind uint32) ([]byte, error) {
	f, err := disk.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < s.size {
		return nil, errDamaged
	}
	was := s.blocks[kind]
	now, b, ok := readBlock(f, was.at-blockHeadSize, s.size)
	if !ok || now != kind || b != was {
		return nil, errDamaged
	}
	data, ok := b.read(f)
	if !ok {
		return nil, errDamaged
	}
	return data, nil
}

// WriteSnapshot replaces the snapshot, whole or not at all.
func WriteSnapshot(path string, im *Image) error { return EncodeTables(im).Write(path, &im.Head) }

// Tables are all of a snapshot but its head, as they are written.
type Tables struct{ blocks [][]byte }

// EncodeTables does not look at the head, which others may still be about.
func EncodeTables(im *Image) Tables {
	hashes := make([]byte, 0, digest.Size*len(im.Outputs))
	var t Tables
	for kind, fill := range []func(*encoder){
		blockSources: func(e *encoder) { encodeTable(e, im.Sources) },
		blockOutputs: func(e *encoder) { hashes = encodeOutputs(e, hashes, im.Outputs) },
		blockHashes:  func(e *encoder) { e.buf = append(e.buf, hashes...) },
		blockTasks:   func(e *encoder) { encodeTasks(e, im.Tasks) },
		blockEdges:   func(e *encoder) { encodeEdges(e, im.Edges, im.Globs) },
	} {
		if fill != nil {
			var e encoder
			e.block(uint32(kind), func() { fill(&e) })
			t.blocks = append(t.blocks, e.buf)
		}
	}
	return t
}

// Write replaces the snapshot, whole or not at all.
func (t Tables) Write(path string, h *Head) error {
	e := encoder{buf: header(snapshotMagic, SnapshotVersion)}
	e.block(blockHead, func() { encodeHead(&e, h) })
	return writeFile(path, false, append([][]byte{e.buf}, t.blocks...)...)
}

// block writes a block with what fill appends.
func (e *encoder) block(kind uint32, fill func()) {
	at := len(e.buf)
	e.buf = append(e.buf, make([]byte, blockHeadSize)...)
	fill()
	data := e.buf[at+blockHeadSize:]
	binary.LittleEndian.PutUint32(e.buf[at:], kind)
	binary.LittleEndian.PutUint64(e.buf[at+4:], uint64(len(data)))
	binary.LittleEndian.PutUint32(e.buf[at+12:], crc32.Checksum(data, castagnoli))
}

func encodeHead(e *encoder, h *Head) {
	e.hash(&h.Signature)
	e.hash(&h.Project)
	e.uint(h.Build)
	e.uint(h.Mirrored)
	e.uint(uint64(h.Journal))
	e.bool(h.Whole)
	e.bool(h.Plain)
	e.bool(h.Pinned)
	e.fixed64(h.Log.Made)
	e.uint(uint64(h.Log.Size))
	e.uint(uint64(h.Log.Live))
	e.uint(uint64(len(h.Tools)))
	for i := range h.Tools {
		in := &h.Tools[i]
		e.str(in.Name)
		e.str(in.Path)
		encodeStat(e, &in.Stat)
		e.hash(&in.Hash)
	}
	e.uint(uint64(len(h.Variables)))
	for i := range h.Variables {
		e.str(h.Variables[i].Name)
		e.hash(&h.Variables[i].Value)
	}
	e.uint(uint64(len(h.Shipped)))
	for i := range h.Shipped {
		e.str(h.Shipped[i].File)
		e.bool(h.Shipped[i].Made)
		encodeStat(e, &h.Shipped[i].Stat)
	}
	e.bytes(h.Messages)
	e.bytes(h.Notices)
	e.uint(uint64(h.Totals.Assets))
	e.uint(uint64(h.Totals.Jobs))
	e.uint(uint64(h.Totals.Failed))
	e.uint(uint64(h.Totals.Products))
	e.int(h.Totals.Bytes)
	e.uint(uint64(h.Totals.Requests))
}

// decodeHead reads a head of a version: 3 has no notices, and does not say whether assets are pinned; 4 counts no requests.
func decodeHead(d *decoder, version uint32) Head {
	h := Head{Signature: d.hash(), Project: d.hash(), Build: d.uint(), Mirrored: d.uint(), Journal: int64(d.uint())}
	h.Whole, h.Plain = d.bool(), d.bool()
	h.Pinned = version == 3 || d.bool()
	h.Log = Mark{Made: d.fixed64(), Size: int64(d.uint()), Live: int64(d.uint())}
	h.Tools = make([]Tool, d.count(2+leastStat+digest.Size))
	for i := range h.Tools {
		in := &h.Tools[i]
		in.Name, in.Path = d.str(), d.str()
		decodeStat(d, &in.Stat)
		in.Hash = d.hash()
	}
	h.Variables = make([]Variable, d.count(1+digest.Size))
	for i := range h.Variables {
		h.Variables[i] = Variable{d.str(), d.hash()}
	}
	h.Shipped = make([]Shipped, d.count(2+leastStat))
	for i := range h.Shipped {
		in := &h.Shipped[i]
		in.File, in.Made = d.str(), d.bool()
		decodeStat(d, &in.Stat)
	}
	if h.Messages = d.bytes(); version > 3 {
		h.Notices = d.bytes()
	}
	h.Totals = Totals{Assets: int(d.uint()), Jobs: int(d.uint()), Failed: int(d.uint()), Products: int(d.uint()), Bytes: d.int()}
	if version > 4 {
		h.Totals.Requests = int(d.uint())
	}
	return h
}

func encodeStat(e *encoder, s *source.Stat) {
	e.int(s.Size)
	e.fixed64(uint64(s.MTime))
	e.fixed64(uint64(s.CTime))
	e.uint(s.Inode)
}

func decodeStat(d *decoder, s *source.Stat) {
	s.Size = d.int()
	s.MTime, s.CTime = int64(d.fixed64()), int64(d.fixed64())
	s.Inode = d.uint()
}

func encodeTable(e *encoder, t *source.Table) {
	e.uint(uint64(len(t.Roots)))
	for _, r := range t.Roots {
		e.str(r)
	}
	e.uint(uint64(len(t.Files)))
	e.uint(uint64(len(t.Folders)))
	for i := range t.Folders {
		f := &t.Folders[i]
		e.uint(uint64(f.Root))
		e.str(f.Path)
		encodeFolder(e, f)
		e.uint(uint64(f.Count))
		for j := f.First; j < f.First+f.Count; j++ {
			encodeFile(e, &t.Files[j])
		}
	}
}

// encodeFolder writes what is known of the folder itself.
func encodeFolder(e *encoder, f *source.Folder) {
	e.bool(f.Racy)
	encodeStat(e, &f.Stat)
}

func encodeFile(e *encoder, file *source.File) {
	e.str(file.Name)
	e.byte(byte(file.Trouble))
	e.bool(file.Racy)
	encodeStat(e, &file.Stat)
	e.hash(&file.Hash)
}

const (
	leastStat   = 18
	leastFile   = 3 + leastStat + digest.Size
	leastFolder = 4 + leastStat
)

func decodeTable(d *decoder) *source.Table {
	t := &source.Table{Roots: make([]string, d.count(leastString))}
	for i := range t.Roots {
		t.Roots[i] = d.str()
	}
	t.Files = make([]source.File, 0, d.count(leastFile))
	t.Folders = make([]source.Folder, d.count(leastFolder))
	for i := range t.Folders {
		f := &t.Folders[i]
		root := d.uint()
		if root >= uint64(len(t.Roots)) {
			d.fail()
		}
		f.Root, f.Path = int(root), d.str()
		decodeFolder(d, f)
		f.First, f.Count = len(t.Files), d.count(leastFile)
		for range f.Count {
			t.Files = append(t.Files, decodeFile(d))
		}
	}
	return t
}

func decodeFolder(d *decoder, f *source.Folder) {
	f.Racy = d.bool()
	decodeStat(d, &f.Stat)
}

func decodeFile(d *decoder) (f source.File) {
	f.Name, f.Trouble, f.Racy = d.str(), source.Trouble(d.byte()), d.bool()
	decodeStat(d, &f.Stat)
	f.Hash = d.hash()
	return f
}

// TaskState is what is known of a task at the end of a build.
type TaskState struct {
	Subject string     // what it was asked for by: platform, asset and part
	Key     engine.Key //
	Trace   uint64     // the one that held; 0: none did
	Head    int64      // where in the trace log the last record of its key is; 0: there is none
	Gone    bool       // the project has it no more; its traces are kept for when it comes back
	Speaks  bool       // its trace has something to tell people, or it failed
}
