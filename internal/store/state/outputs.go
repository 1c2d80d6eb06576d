package state

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/varint"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
)

// Outputs are the files that Kiln wrote into the output tree. Only the list of their folders is decoded: a
// comparison with the disk decodes one folder after the other, so a million outputs are never in memory as
// structs.
type Outputs struct {
	folders []outputFolder
	count   int                           // number of outputs in folders
	hashes  func() ([]byte, error)        // hashes of all outputs in folders, in their order
	loaded  []byte                        // result of hashes
	changed map[string]map[string]*Output // changes by deltas, by folder and name; nil: removed
	extra   []string                      // the folders in changed that are not in folders, sorted
}

// outputFolder is the outputs in one folder.
type outputFolder struct {
	path  string
	first int // number of its first output
	count int
	raw   []byte
}

// splitFile splits a path into folder and name.
func splitFile(file string) (folder, name string) {
	i := strings.LastIndexByte(file, '/')
	if i < 0 {
		return "", file
	}
	return file[:i], file[i+1:]
}

func joinFile(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// mostInFolder is how many outputs are stored together: larger folders are split, so that several workers can compare
// them.
const mostInFolder = 1024

// CompareOutputs defines the order on disk: by folder, then by name.
func CompareOutputs(a, b Output) int {
	fa, na := splitFile(a.File)
	fb, nb := splitFile(b.File)
	return cmp.Or(strings.Compare(fa, fb), strings.Compare(na, nb))
}

// encodeOutputs encodes outputs folder by folder, and appends their hashes to hashes, in the same
// order.
func encodeOutputs(e *varint.Encoder, hashes []byte, outputs []Output) []byte {
	if !slices.IsSortedFunc(outputs, CompareOutputs) {
		outputs = slices.Clone(outputs)
		slices.SortFunc(outputs, CompareOutputs)
	}
	var pieces []int // end of each piece
	last := ""
	for i := range outputs {
		folder, _ := splitFile(outputs[i].File)
		if n := len(pieces); n == 0 || folder != last || i-first(pieces) >= mostInFolder {
			pieces = append(pieces, i)
		}
		pieces[len(pieces)-1], last = i+1, folder
	}
	e.Uint(uint64(len(pieces)))
	var entries varint.Encoder
	at := 0
	for _, end := range pieces {
		entries.Buf = entries.Buf[:0]
		folder, _ := splitFile(outputs[at].File)
		e.Str(folder)
		e.Uint(uint64(end - at))
		for ; at < end; at++ {
			_, name := splitFile(outputs[at].File)
			entries.Str(name)
			encodeStat(&entries, &outputs[at].Stat)
			hashes = append(hashes, outputs[at].Hash[:]...)
		}
		e.Bytes(entries.Buf)
	}
	return hashes
}

// first is the start of the last piece.
func first(ends []int) int {
	if n := len(ends); n > 1 {
		return ends[n-2]
	}
	return 0
}

func decodeOutputs(d *varint.Decoder) *Outputs {
	o := &Outputs{folders: make([]outputFolder, d.Count(3))}
	for i := range o.folders {
		f := &o.folders[i]
		f.path = d.Str()
		count := d.Uint()
		f.raw = d.Bytes()
		if count > uint64(len(f.raw)/(1+leastStat)) || i > 0 && o.folders[i-1].path > f.path {
			d.Fail()
			return o
		}
		f.first, f.count = o.count, int(count)
		o.count += f.count
	}
	return o
}

// change applies a delta to an output; nil means that it was removed.
func (o *Outputs) change(file string, now *Output) {
	folder, name := splitFile(file)
	if o.changed == nil {
		o.changed = map[string]map[string]*Output{}
	}
	if o.changed[folder] == nil {
		o.changed[folder] = map[string]*Output{}
		i, _ := slices.BinarySearch(o.extra, folder)
		o.extra = slices.Insert(o.extra, i, folder)
	}
	o.changed[folder][name] = now
}

// Folders is the number of folders, for Folder.
func (o *Outputs) Folders() int { return len(o.folders) + len(o.extra) }

// Path is the path of a folder.
func (o *Outputs) Path(i int) string {
	if i >= len(o.folders) {
		return o.extra[i-len(o.folders)]
	}
	return o.folders[i].path
}

// Folder returns the names and stats of outputs in a folder. A large folder has several numbers.
func (o *Outputs) Folder(i int) (path string, files iter.Seq2[string, source.Stat]) {
	if i >= len(o.folders) {
		path = o.extra[i-len(o.folders)]
		return path, func(yield func(string, source.Stat) bool) {
			for name, out := range o.changed[path] {
				if out != nil && !yield(name, out.Stat) {
					return
				}
			}
		}
	}
	f := &o.folders[i]
	changed := o.changed[f.path]
	return f.path, func(yield func(string, source.Stat) bool) {
		d := varint.Decoder{Buf: f.raw}
		for range f.count {
			name := d.Str()
			var st source.Stat
			decodeStat(&d, &st)
			if d.Err != nil {
				return
			}
			if changed != nil {
				if _, other := changed[name]; other {
					continue
				}
			}
			if !yield(name, st) {
				return
			}
		}
	}
}

// hash is the hash of the output with this number.
func (o *Outputs) hash(i int) (h digest.Hash, err error) {
	if o.loaded == nil && o.count > 0 {
		data, err := o.hashes()
		if err == nil && len(data) != o.count*digest.Size {
			err = errDamaged
		}
		if err != nil {
			return h, err
		}
		o.loaded = data
	}
	copy(h[:], o.loaded[i*digest.Size:])
	return h, nil
}

// All returns all outputs, sorted by folder and name; those changed by deltas come last.
func (o *Outputs) All() ([]Output, error) {
	all := make([]Output, 0, o.count)
	for i := range o.folders {
		f := &o.folders[i]
		changed := o.changed[f.path]
		d := varint.Decoder{Buf: f.raw}
		for k := range f.count {
			name := d.Str()
			var st source.Stat
			decodeStat(&d, &st)
			if _, other := changed[name]; other {
				continue
			}
			h, err := o.hash(f.first + k)
			if err != nil {
				return nil, err
			}
			all = append(all, Output{joinFile(f.path, name), st, h})
		}
		if d.Err != nil {
			return nil, errDamaged
		}
	}
	for _, folder := range o.extra {
		for _, out := range o.changed[folder] {
			if out != nil {
				all = append(all, *out)
			}
		}
	}
	slices.SortFunc(all, func(a, b Output) int { return strings.Compare(a.File, b.File) })
	return all, nil
}

// Find finds an output.
func (o *Outputs) Find(file string) (Output, bool, error) {
	folder, name := splitFile(file)
	if out, ok := o.changed[folder][name]; ok {
		if out == nil {
			return Output{}, false, nil
		}
		return *out, true, nil
	}
	i := sort.Search(len(o.folders), func(i int) bool { return o.folders[i].path >= folder })
	for ; i < len(o.folders) && o.folders[i].path == folder; i++ {
		f := &o.folders[i]
		d := varint.Decoder{Buf: f.raw}
		for k := range f.count {
			found := d.Str() == name
			var st source.Stat
			decodeStat(&d, &st)
			if found && d.Err == nil {
				h, err := o.hash(f.first + k)
				return Output{file, st, h}, err == nil, err
			}
		}
	}
	return Output{}, false, nil
}

// Paths calls f for every output, and decodes only paths.
func (o *Outputs) Paths(f func(folder, name string)) {
	for i := range o.Folders() {
		path, files := o.Folder(i)
		for name := range files {
			f(path, name)
		}
	}
}

// Tasks are the tasks of the project, and former ones whose traces are kept. They keep their numbers from build to
// build until the snapshot is rewritten.
type Tasks struct {
	raw     []byte // taskSize bytes each
	names   []byte
	flags   []int             // the numbers of those in raw that speak or ignore, ascending
	changed map[int]TaskState // changes by deltas
	more    []TaskState       // added by deltas
	byKey   []int32           // hash table by key of numbers + 1; the size is a power of two
	named   []int32           // the same by subject, made when it is first needed
	edges   edges
}

// A task's record: key, trace, position of its last record in the log, position and length of its
// subject, flags.
const (
	taskSize    = digest.Size + 8 + 8 + 4 + 4 + 4
	flagGone    = 1
	flagSpeaks  = 2
	flagIgnores = 4
)

func encodeTasks(e *varint.Encoder, tasks []TaskState) {
	e.Fixed64(uint64(len(tasks)))
	names := 0
	for i := range tasks {
		t := &tasks[i]
		e.Hash((*digest.Hash)(&t.Key))
		e.Fixed64(t.Trace)
		e.Fixed64(uint64(t.Head))
		e.Buf = binary.LittleEndian.AppendUint32(e.Buf, uint32(names))
		e.Buf = binary.LittleEndian.AppendUint32(e.Buf, uint32(len(t.Subject)))
		e.Buf = binary.LittleEndian.AppendUint32(e.Buf, t.flags())
		names += len(t.Subject)
	}
	for i := range tasks {
		e.Buf = append(e.Buf, tasks[i].Subject...)
	}
}

func (t *TaskState) flags() (f uint32) {
	if t.Gone {
		f |= flagGone
	}
	if t.Speaks {
		f |= flagSpeaks
	}
	if t.Ignores {
		f |= flagIgnores
	}
	return f
}

func (t *TaskState) setFlags(f uint64) {
	t.Gone, t.Speaks, t.Ignores = f&flagGone != 0, f&flagSpeaks != 0, f&flagIgnores != 0
}

func decodeTasks(data []byte) (*Tasks, bool) {
	if len(data) < 8 {
		return nil, false
	}
	n := binary.LittleEndian.Uint64(data)
	if n > uint64(len(data)-8)/taskSize {
		return nil, false
	}
	end := 8 + int(n)*taskSize
	t := &Tasks{raw: data[8:end], names: data[end:], changed: map[int]TaskState{}}
	for i := range int(n) {
		if uint32(t.raw[i*taskSize+56])&(flagSpeaks|flagIgnores) != 0 {
			t.flags = append(t.flags, i)
		}
	}
	t.hash()
	return t, true
}

// Len is the number of tasks.
func (t *Tasks) Len() int { return len(t.raw)/taskSize + len(t.more) }

// At returns the task with a number.
func (t *Tasks) At(i int) TaskState {
	if n := len(t.raw) / taskSize; i >= n {
		return t.more[i-n]
	}
	if s, ok := t.changed[i]; ok {
		return s
	}
	b := t.raw[i*taskSize:][:taskSize]
	s := TaskState{Trace: binary.LittleEndian.Uint64(b[32:]), Head: int64(binary.LittleEndian.Uint64(b[40:]))}
	copy(s.Key[:], b)
	at, size := uint64(binary.LittleEndian.Uint32(b[48:])), uint64(binary.LittleEndian.Uint32(b[52:]))
	if at+size <= uint64(len(t.names)) {
		s.Subject = string(t.names[at : at+size])
	}
	flags := binary.LittleEndian.Uint32(b[56:])
	s.setFlags(uint64(flags))
	return s
}

// All returns all tasks, by number.
func (t *Tasks) All() iter.Seq2[int, TaskState] {
	return func(yield func(int, TaskState) bool) {
		for i := range t.Len() {
			if !yield(i, t.At(i)) {
				return
			}
		}
	}
}

// Speaking are the numbers of the tasks that have something to tell, or failed.
func (t *Tasks) Speaking() []int { return t.flagged(flagSpeaks) }

// Ignoring are the numbers of the tasks that held only because what differs is harmless.
func (t *Tasks) Ignoring() []int { return t.flagged(flagIgnores) }

// flagged are the numbers of the tasks that have a flag, and were not removed. A nil table has none.
func (t *Tasks) flagged(flag uint32) []int {
	if t == nil {
		return nil
	}
	has := func(flags uint32) bool { return flags&(flag|flagGone) == flag }
	var list []int
	for _, i := range t.flags {
		if _, other := t.changed[i]; !other && has(uint32(t.raw[i*taskSize+56])) {
			list = append(list, i)
		}
	}
	for i, s := range t.changed {
		if has(s.flags()) {
			list = append(list, i)
		}
	}
	for i := range t.more {
		if has(t.more[i].flags()) {
			list = append(list, len(t.raw)/taskSize+i)
		}
	}
	slices.Sort(list)
	return list
}

// Held returns the current trace of the task with a key, if the project had it. A nil table has
// none.
func (t *Tasks) Held(k [digest.Size]byte) (trace uint64, ok bool) {
	if t == nil {
		return 0, false
	}
	n, ok := t.ByKey(k)
	if !ok || t.At(n).Gone {
		return 0, false
	}
	return t.At(n).Trace, true
}

// Ignores reports whether the task with a key held only because what differs is harmless. A nil table has none.
func (t *Tasks) Ignores(k [digest.Size]byte) bool {
	if t == nil {
		return false
	}
	n, ok := t.ByKey(k)
	return ok && !t.At(n).Gone && t.At(n).Ignores
}

// Subject is the subject of the task with a key, "" if it is not known. A nil table has none.
func (t *Tasks) Subject(k [digest.Size]byte) string {
	if t == nil {
		return ""
	}
	n, ok := t.ByKey(k)
	if !ok {
		return ""
	}
	return t.At(n).Subject
}

// ByKey finds the task with a key.
func (t *Tasks) ByKey(k [digest.Size]byte) (int, bool) {
	if t.byKey == nil {
		t.hash() // again: it was full
	}
	mask := len(t.byKey) - 1
	for at := slot(k[:], mask); t.byKey[at] != 0; at = (at + 1) & mask {
		if i := int(t.byKey[at]) - 1; t.keyAt(i) == k {
			return i, true
		}
	}
	return 0, false
}

// BySubject finds the task with a subject: that of the project, else the former one with the greatest number.
func (t *Tasks) BySubject(subject string) (int, bool) {
	if t.named == nil {
		t.nameAll()
	}
	n := t.named[t.nameSlot(subject)] - 1
	return int(n), n >= 0
}

// nameAll makes the hash table by subject.
func (t *Tasks) nameAll() {
	size := 16
	for size < 2*t.Len() {
		size *= 2
	}
	t.named = make([]int32, size)
	for i, at := range t.All() {
		if at.Subject == "" {
			continue
		}
		k := t.nameSlot(at.Subject)
		if had := t.named[k]; had == 0 || !at.Gone || t.At(int(had-1)).Gone {
			t.named[k] = int32(i + 1)
		}
	}
}

// nameSlot is where the hash table by subject has a subject, or would have it.
func (t *Tasks) nameSlot(subject string) int {
	mask := len(t.named) - 1
	at := int(maphash.String(nameSeed, subject)) & mask
	for t.named[at] != 0 && t.At(int(t.named[at]-1)).Subject != subject {
		at = (at + 1) & mask
	}
	return at
}

var nameSeed = maphash.MakeSeed()

func slot(key []byte, mask int) int { return int(binary.LittleEndian.Uint64(key)) & mask }

// hash makes the hash table: 1 ms for 100,000 tasks.
func (t *Tasks) hash() {
	size := 16
	for size < 2*t.Len() {
		size *= 2
	}
	t.byKey = make([]int32, size)
	for i := range t.Len() {
		t.enter(i)
	}
}

// enter adds a task to the hash table, if there is one; a full table is made again.
func (t *Tasks) enter(i int) {
	if t.byKey == nil || len(t.byKey) < t.Len()+t.Len()/2 {
		t.byKey = nil
		return
	}
	k, mask := t.keyAt(i), len(t.byKey)-1
	at := slot(k[:], mask)
	for t.byKey[at] != 0 {
		at = (at + 1) & mask
	}
	t.byKey[at] = int32(i + 1)
}

func (t *Tasks) keyAt(i int) (k [digest.Size]byte) {
	if n := len(t.raw) / taskSize; i >= n {
		return t.more[i-n].Key
	}
	copy(k[:], t.raw[i*taskSize:]) // a changed task keeps its key
	return k
}

// change applies a delta to a task.
func (t *Tasks) change(i int, s TaskState) bool {
	n := len(t.raw) / taskSize
	switch {
	case i < n:
		t.changed[i] = s
	case i < n+len(t.more):
		t.more[i-n] = s
	case i == n+len(t.more):
		t.more = append(t.more, s)
		t.enter(i)
	default:
		return false
	}
	return true
}
