package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/source"
)

// SnapshotVersion is in the header of the snapshot; one of another version is not used.
const SnapshotVersion = 1

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

// TaskState says which trace of a task held at the end of a build.
type TaskState struct {
	Key   engine.Key
	Trace uint64
}

// Totals of a build over the whole project.
type Totals struct {
	Assets, Jobs, Failed, Products int
	Bytes                          int64
}

// Snapshot is the world at the end of a build. If nothing in it differs, nothing is to be done.
type Snapshot struct {
	Signature digest.Hash // of all that decides what is built besides files: Kiln itself, processors, the environment of the project file
	Project   digest.Hash // of the project file
	Build     uint64      // number of the build
	Mirrored  uint64      // number of the build that the content database tells of; 0: none
	Whole     bool        // the build was of all assets on all platforms and was not stopped
	Sources   *source.Table
	Outputs   []Output // sorted by File
	Tools     []Tool
	Variables []Variable
	Tasks     []TaskState
	Messages  []byte // what there was to tell people, to be told again
	Totals    Totals
}

// ReadSnapshot reads a snapshot. It is nil if there is none that can be used; why says so unless there simply is none.
func ReadSnapshot(path string) (s *Snapshot, why string, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	s, why = parseSnapshot(data)
	return s, why, nil
}

func parseSnapshot(data []byte) (s *Snapshot, why string) {
	if len(data) < headerSize+4 || !bytes.Equal(data[:8], snapshotMagic) {
		return nil, "the snapshot of files is not one; all files are looked at"
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != SnapshotVersion {
		return nil, fmt.Sprintf("the snapshot of files has version %d, not %d; all files are looked at", v, SnapshotVersion)
	}
	body := data[headerSize+4:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[headerSize:]) {
		return nil, "the snapshot of files is damaged; all files are looked at"
	}
	d := decoder{buf: body}
	s = decodeSnapshot(&d)
	if d.err != nil {
		return nil, "the snapshot of files is damaged; all files are looked at"
	}
	return s, ""
}

// WriteSnapshot replaces the snapshot, whole or not at all.
func WriteSnapshot(path string, s *Snapshot) error {
	e := encoder{buf: make([]byte, headerSize+4, 1<<20)}
	copy(e.buf, header(snapshotMagic, SnapshotVersion))
	encodeSnapshot(&e, s)
	binary.LittleEndian.PutUint32(e.buf[headerSize:], crc32.Checksum(e.buf[headerSize+4:], castagnoli))
	return writeFile(path, e.buf)
}

func encodeSnapshot(e *encoder, s *Snapshot) {
	e.hash(&s.Signature)
	e.hash(&s.Project)
	e.uint(s.Build)
	e.uint(s.Mirrored)
	e.bool(s.Whole)
	encodeTable(e, s.Sources)
	e.uint(uint64(len(s.Outputs)))
	for i := range s.Outputs {
		o := &s.Outputs[i]
		e.str(o.File)
		encodeStat(e, &o.Stat)
		e.hash(&o.Hash)
	}
	e.uint(uint64(len(s.Tools)))
	for i := range s.Tools {
		in := &s.Tools[i]
		e.str(in.Name)
		e.str(in.Path)
		encodeStat(e, &in.Stat)
		e.hash(&in.Hash)
	}
	e.uint(uint64(len(s.Variables)))
	for i := range s.Variables {
		e.str(s.Variables[i].Name)
		e.hash(&s.Variables[i].Value)
	}
	e.uint(uint64(len(s.Tasks)))
	for i := range s.Tasks {
		e.hash((*digest.Hash)(&s.Tasks[i].Key))
		e.fixed64(s.Tasks[i].Trace)
	}
	e.bytes(s.Messages)
	e.uint(uint64(s.Totals.Assets))
	e.uint(uint64(s.Totals.Jobs))
	e.uint(uint64(s.Totals.Failed))
	e.uint(uint64(s.Totals.Products))
	e.int(s.Totals.Bytes)
}

func encodeStat(e *encoder, s *source.Stat) {
	e.int(s.Size)
	e.fixed64(uint64(s.MTime))
	e.fixed64(uint64(s.CTime))
	e.uint(s.Inode)
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
		e.bool(f.Racy)
		encodeStat(e, &f.Stat)
		e.uint(uint64(f.Count))
		for j := f.First; j < f.First+f.Count; j++ {
			file := &t.Files[j]
			e.str(file.Name)
			e.byte(byte(file.Trouble))
			e.bool(file.Racy)
			encodeStat(e, &file.Stat)
			e.hash(&file.Hash)
		}
	}
}

const (
	leastStat   = 18
	leastFile   = 3 + leastStat + digest.Size
	leastFolder = 4 + leastStat
)

func decodeSnapshot(d *decoder) *Snapshot {
	s := &Snapshot{Signature: d.hash(), Project: d.hash(), Build: d.uint(), Mirrored: d.uint(), Whole: d.bool()}
	s.Sources = decodeTable(d)
	s.Outputs = make([]Output, d.count(1+leastStat+digest.Size))
	for i := range s.Outputs {
		o := &s.Outputs[i]
		o.File = d.str()
		decodeStat(d, &o.Stat)
		o.Hash = d.hash()
	}
	s.Tools = make([]Tool, d.count(2+leastStat+digest.Size))
	for i := range s.Tools {
		in := &s.Tools[i]
		in.Name, in.Path = d.str(), d.str()
		decodeStat(d, &in.Stat)
		in.Hash = d.hash()
	}
	s.Variables = make([]Variable, d.count(1+digest.Size))
	for i := range s.Variables {
		s.Variables[i] = Variable{d.str(), d.hash()}
	}
	s.Tasks = make([]TaskState, d.count(8+digest.Size))
	for i := range s.Tasks {
		s.Tasks[i] = TaskState{engine.Key(d.hash()), d.fixed64()}
	}
	s.Messages = d.bytes()
	s.Totals = Totals{Assets: int(d.uint()), Jobs: int(d.uint()), Failed: int(d.uint()), Products: int(d.uint()), Bytes: d.int()}
	return s
}

func decodeStat(d *decoder, s *source.Stat) {
	s.Size = d.int()
	s.MTime, s.CTime = int64(d.fixed64()), int64(d.fixed64())
	s.Inode = d.uint()
}

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
		f.Root, f.Path, f.Racy = int(root), d.str(), d.bool()
		decodeStat(d, &f.Stat)
		f.First, f.Count = len(t.Files), d.count(leastFile)
		for range f.Count {
			var file source.File
			file.Name, file.Trouble, file.Racy = d.str(), source.Trouble(d.byte()), d.bool()
			decodeStat(d, &file.Stat)
			file.Hash = d.hash()
			t.Files = append(t.Files, file)
		}
	}
	return t
}
