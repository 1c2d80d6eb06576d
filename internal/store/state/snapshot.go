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

	"github.com/kiln-pipeline/kiln/internal/base/varint"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// SnapshotVersion is in the header of the snapshot. Of versions 3 and 4 the image is used, without deltas; other
// versions are ignored.
const SnapshotVersion = 5

var snapshotMagic = []byte("KILN\x00snp")

// Output is a file that Kiln wrote into the output tree, with its state right after.
type Output struct {
	File string // below the output folder
	Stat source.Stat
	Hash digest.Hash
}

// Tool is an external program that a job looked up.
type Tool struct {
	Name string // the name that the job used
	Path string // "" if it was not found
	Stat source.Stat
	Hash digest.Hash // zero if it was not found
}

// Variable is an environment variable that a job read.
type Variable struct {
	Name  string
	Value digest.Hash // zero: not set
}

// Shipped is a file made from products, or one that decides what these files contain, after the build.
type Shipped struct {
	File string // relative to the project folder
	Made bool
	Stat source.Stat // zero: it does not exist
}

// Totals are the counts of a build over the whole project.
type Totals struct {
	Assets, Jobs, Requests, Failed, Products int
	Bytes                                    int64
}

// Head is the snapshot without its tables.
type Head struct {
	// Hash of everything that decides what is built except files: Kiln itself, processors, environment variables of
	// the project file.
	Signature digest.Hash
	Project   digest.Hash // hash of the project file
	Build     uint64      // number of the build
	Mirrored  uint64      // number of the build that the content database describes; 0: none
	Journal   int64       // bytes that were written to the database and are in its log
	Whole     bool        // the build was of all assets on all platforms and finished
	Plain     bool        // all messages come from jobs and notices
	Pinned    bool        // rules set ids or UUIDs of assets, or make assets follow others
	Log       Mark        // the trace log at the end of the build
	Tools     []Tool
	Variables []Variable
	Shipped   []Shipped // sorted by File
	Messages  []byte    // messages of the build, to be reported again
	Notices   []byte    // those that do not come from jobs, with what they are about
	Totals    Totals
}

// Image is the input of a snapshot.
type Image struct {
	Head
	Sources *source.Table
	Outputs []Output // sorted by File
	Tasks   []TaskState
	Edges   []Edge // in any order
	Globs   []Glob
}

// Snapshot is the state of the world at the end of a build. If nothing in it differs, there is nothing to
// build.
//
// It consists of an image and of what later builds appended. The large tables that only a build with work
// needs are read on request.
type Snapshot struct {
	Head
	Sources *source.Table
	Outputs *Outputs

	path    string
	version uint32
	size    int64 // of the file, up to the end of the last complete block
	base    int64 // size of the image in it
	deltas  int   // number of deltas appended to it
	blocks  map[uint32]block
	later   []*Delta
	tasks   *Tasks
	ahead   func() (*Tasks, error) // reads those of the image; nil: not begun
}

// Blocks of the file. Those of the image come once, in this order; deltas follow.
const (
	blockHead    = 1
	blockSources = 2
	blockOutputs = 3
	blockHashes  = 4 // hashes of the outputs
	blockTasks   = 5
	blockEdges   = 6
	blockDelta   = 7

	blockHeadSize = 16 // kind u32, size u64, checksum u32
)

// block is the position of a payload in the file.
type block struct {
	at, size int64
	sum      uint32
}

// ReadSnapshot reads a snapshot. s is nil if there is no usable one; why is the reason, unless the file does not
// exist.
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

const snapshotDamaged = "the snapshot of files is damaged; all files are compared"

func parseSnapshot(f io.ReaderAt, size int64) (*Snapshot, string) {
	head := make([]byte, headerSize)
	if _, err := f.ReadAt(head, 0); err != nil || !bytes.Equal(head[:8], snapshotMagic) {
		return nil, "the snapshot of files is not one; all files are compared"
	}
	version := binary.LittleEndian.Uint32(head[8:])
	other := fmt.Sprintf("the snapshot of files has version %d, not %d; all files are compared", version, SnapshotVersion)
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
	if version != SnapshotVersion { // deltas are ignored, and none is appended: the next build rewrites the file
		s.Mirrored, s.Whole = 0, false
		return s, other
	}
	c := tableChange{t: s.Sources}
	defer c.end()
	for s.size < size {
		d, b := readDelta(f, s.size, size)
		if d == nil { // as after a power failure: everything before it was true at the end of a build
			s.Mirrored = 0 // the database describes a later build
			return s, "the end of the snapshot of files is damaged; what the last builds changed is compared again"
		}
		s.deltas++
		s.size = b.at + b.size
		if !s.takeLater(d, &c) {
			return nil, snapshotDamaged
		}
	}
	return s, ""
}

// reading is the table of sources, two thirds of the bytes, which is decoded in parallel to the
// rest.
type reading struct {
	sync.WaitGroup
	table *source.Table // nil: it is damaged
}

func (r *reading) start(f io.ReaderAt, b block) {
	r.Go(func() {
		data, ok := b.read(f)
		d := varint.Decoder{Buf: data}
		if t := decodeTable(&d); ok && d.Err == nil && len(d.Buf) == 0 {
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

// parseBlock reads the block of the image at s.size.
func (s *Snapshot) parseBlock(f io.ReaderAt, size int64, sources *reading) bool {
	kind, b, ok := readBlock(f, s.size, size)
	if !ok {
		return false
	}
	s.size = b.at + b.size
	if kind != uint32(len(s.blocks))+1 { // each kind occurs once in the image, in this order
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
	d := varint.Decoder{Buf: data}
	switch kind {
	case blockHead:
		s.Head = decodeHead(&d, s.version)
	case blockOutputs:
		s.Outputs = decodeOutputs(&d)
		s.Outputs.hashes = func() ([]byte, error) { return s.load(blockHashes) }
	}
	return ok && d.Err == nil && len(d.Buf) == 0
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

// errDamaged means that a part of the snapshot that is read later cannot be used.
var errDamaged = errors.New(snapshotDamaged)

// load reads a block of the image on request. It returns an error if another process, which may hold the lock now, has
// replaced the file.
func (s *Snapshot) load(kind uint32) ([]byte, error) {
	f, err := disk.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < s.base {
		return nil, errDamaged
	}
	was := s.blocks[kind]
	now, b, ok := readBlock(f, was.at-blockHeadSize, s.base)
	if !ok || now != kind || b != was {
		return nil, errDamaged
	}
	data, ok := b.read(f)
	if !ok {
		return nil, errDamaged
	}
	return data, nil
}

// WriteSnapshot replaces the snapshot, completely or not at all.
func WriteSnapshot(path string, im *Image) error { return EncodeTables(im).Write(path, &im.Head) }

// Tables is an encoded snapshot without its head.
type Tables struct{ blocks [][]byte }

// EncodeTables does not use the head, which may still change meanwhile.
func EncodeTables(im *Image) Tables {
	hashes := make([]byte, 0, digest.Size*len(im.Outputs))
	var t Tables
	for kind, b := range []struct {
		room int // that it will need, or about that: to grow step by step takes twice as much
		fill func(*varint.Encoder)
	}{
		blockSources: {80 * len(im.Sources.Files), func(e *varint.Encoder) { encodeTable(e, im.Sources) }},
		blockOutputs: {48 * len(im.Outputs), func(e *varint.Encoder) { hashes = encodeOutputs(e, hashes, im.Outputs) }},
		blockHashes:  {cap(hashes), func(e *varint.Encoder) { e.Buf = append(e.Buf, hashes...) }},
		blockTasks:   {(taskSize + 32) * len(im.Tasks), func(e *varint.Encoder) { encodeTasks(e, im.Tasks) }},
		blockEdges:   {edgeSize * len(im.Edges), func(e *varint.Encoder) { encodeEdges(e, im.Edges, im.Globs) }},
	} {
		if b.fill != nil {
			e := varint.Encoder{Buf: make([]byte, 0, b.room+4096)}
			writeBlock(&e, uint32(kind), func() { b.fill(&e) })
			t.blocks = append(t.blocks, e.Buf)
		}
	}
	return t
}

// Write replaces the snapshot, completely or not at all.
func (t Tables) Write(path string, h *Head) error {
	e := varint.Encoder{Buf: header(snapshotMagic, SnapshotVersion)}
	writeBlock(&e, blockHead, func() { encodeHead(&e, h) })
	return writeFile(path, false, append([][]byte{e.Buf}, t.blocks...)...)
}

// writeBlock writes a block whose payload fill appends.
func writeBlock(e *varint.Encoder, kind uint32, fill func()) {
	at := len(e.Buf)
	e.Buf = append(e.Buf, make([]byte, blockHeadSize)...)
	fill()
	data := e.Buf[at+blockHeadSize:]
	binary.LittleEndian.PutUint32(e.Buf[at:], kind)
	binary.LittleEndian.PutUint64(e.Buf[at+4:], uint64(len(data)))
	binary.LittleEndian.PutUint32(e.Buf[at+12:], crc32.Checksum(data, castagnoli))
}

func encodeHead(e *varint.Encoder, h *Head) {
	e.Hash(&h.Signature)
	e.Hash(&h.Project)
	e.Uint(h.Build)
	e.Uint(h.Mirrored)
	e.Uint(uint64(h.Journal))
	e.Bool(h.Whole)
	e.Bool(h.Plain)
	e.Bool(h.Pinned)
	e.Fixed64(h.Log.Made)
	e.Uint(uint64(h.Log.Size))
	e.Uint(uint64(h.Log.Live))
	e.Uint(uint64(len(h.Tools)))
	for i := range h.Tools {
		in := &h.Tools[i]
		e.Str(in.Name)
		e.Str(in.Path)
		encodeStat(e, &in.Stat)
		e.Hash(&in.Hash)
	}
	e.Uint(uint64(len(h.Variables)))
	for i := range h.Variables {
		e.Str(h.Variables[i].Name)
		e.Hash(&h.Variables[i].Value)
	}
	e.Uint(uint64(len(h.Shipped)))
	for i := range h.Shipped {
		e.Str(h.Shipped[i].File)
		e.Bool(h.Shipped[i].Made)
		encodeStat(e, &h.Shipped[i].Stat)
	}
	e.Bytes(h.Messages)
	e.Bytes(h.Notices)
	e.Uint(uint64(h.Totals.Assets))
	e.Uint(uint64(h.Totals.Jobs))
	e.Uint(uint64(h.Totals.Failed))
	e.Uint(uint64(h.Totals.Products))
	e.Int(h.Totals.Bytes)
	e.Uint(uint64(h.Totals.Requests))
}

// decodeHead decodes a head: version 3 has no notices and no Pinned; version 4 has no count of requests.
func decodeHead(d *varint.Decoder, version uint32) Head {
	h := Head{Signature: d.Hash(), Project: d.Hash(), Build: d.Uint(), Mirrored: d.Uint(), Journal: int64(d.Uint())}
	h.Whole, h.Plain = d.Bool(), d.Bool()
	h.Pinned = version == 3 || d.Bool()
	h.Log = Mark{Made: d.Fixed64(), Size: int64(d.Uint()), Live: int64(d.Uint())}
	h.Tools = make([]Tool, d.Count(2+leastStat+digest.Size))
	for i := range h.Tools {
		in := &h.Tools[i]
		in.Name, in.Path = d.Str(), d.Str()
		decodeStat(d, &in.Stat)
		in.Hash = d.Hash()
	}
	h.Variables = make([]Variable, d.Count(1+digest.Size))
	for i := range h.Variables {
		h.Variables[i] = Variable{d.Str(), d.Hash()}
	}
	h.Shipped = make([]Shipped, d.Count(2+leastStat))
	for i := range h.Shipped {
		in := &h.Shipped[i]
		in.File, in.Made = d.Str(), d.Bool()
		decodeStat(d, &in.Stat)
	}
	if h.Messages = d.Bytes(); version > 3 {
		h.Notices = d.Bytes()
	}
	h.Totals = Totals{Assets: int(d.Uint()), Jobs: int(d.Uint()), Failed: int(d.Uint()), Products: int(d.Uint()), Bytes: d.Int()}
	if version > 4 {
		h.Totals.Requests = int(d.Uint())
	}
	return h
}

func encodeStat(e *varint.Encoder, s *source.Stat) {
	e.Int(s.Size)
	e.Fixed64(uint64(s.MTime))
	e.Fixed64(uint64(s.CTime))
	e.Uint(s.Inode)
}

func decodeStat(d *varint.Decoder, s *source.Stat) {
	s.Size = d.Int()
	s.MTime, s.CTime = int64(d.Fixed64()), int64(d.Fixed64())
	s.Inode = d.Uint()
}

func encodeTable(e *varint.Encoder, t *source.Table) {
	e.Uint(uint64(len(t.Roots)))
	for _, r := range t.Roots {
		e.Str(r)
	}
	e.Uint(uint64(len(t.Files)))
	e.Uint(uint64(len(t.Folders)))
	for i := range t.Folders {
		f := &t.Folders[i]
		e.Uint(uint64(f.Root))
		e.Str(f.Path)
		encodeFolder(e, f)
		e.Uint(uint64(f.Count))
		for j := f.First; j < f.First+f.Count; j++ {
			encodeFile(e, &t.Files[j])
		}
	}
}

// encodeFolder encodes the stat of the folder itself.
func encodeFolder(e *varint.Encoder, f *source.Folder) {
	e.Bool(f.Racy)
	encodeStat(e, &f.Stat)
}

func encodeFile(e *varint.Encoder, file *source.File) {
	e.Str(file.Name)
	e.Byte(byte(file.Trouble))
	e.Bool(file.Racy)
	encodeStat(e, &file.Stat)
	e.Hash(&file.Hash)
}

const (
	leastStat   = 18
	leastFile   = 3 + leastStat + digest.Size
	leastFolder = 4 + leastStat
)

func decodeTable(d *varint.Decoder) *source.Table {
	t := &source.Table{Roots: make([]string, d.Count(leastString))}
	for i := range t.Roots {
		t.Roots[i] = d.Str()
	}
	files := d.Count(leastFile)
	t.Files = make([]source.File, 0, files+files/64+16) // there is room for some that came since
	t.Folders = make([]source.Folder, d.Count(leastFolder))
	for i := range t.Folders {
		f := &t.Folders[i]
		root := d.Uint()
		if root >= uint64(len(t.Roots)) {
			d.Fail()
		}
		f.Root, f.Path = int(root), d.Str()
		decodeFolder(d, f)
		f.First, f.Count = len(t.Files), d.Count(leastFile)
		for range f.Count {
			t.Files = append(t.Files, decodeFile(d))
		}
	}
	return t
}

func decodeFolder(d *varint.Decoder, f *source.Folder) {
	f.Racy = d.Bool()
	decodeStat(d, &f.Stat)
}

func decodeFile(d *varint.Decoder) (f source.File) {
	f.Name, f.Trouble, f.Racy = d.Str(), source.Trouble(d.Byte()), d.Bool()
	decodeStat(d, &f.Stat)
	f.Hash = d.Hash()
	return f
}

// TaskState is the state of a task at the end of a build.
type TaskState struct {
	Subject string     // its name: platform, asset and part
	Key     engine.Key //
	Trace   uint64     // the one that held; 0: none did
	Head    int64      // where in the trace log the last record of its key is; 0: there is none
	Gone    bool       // the project has it no more; its traces are kept for when it comes back
	Speaks  bool       // its trace has something to tell people, or it failed
	Ignores bool       // its trace held only because what differs is harmless, or that of a task that it is made of did
}
