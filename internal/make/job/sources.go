package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/processor"
)

// How a job reads source files.

// WholeFile is the size up to which a source file or a product is read into memory when it is opened, in bytes.
const WholeFile = 1 << 20

func (j *Job) Open(path string) (processor.File, error) {
	path = j.sourceOf(path)
	if j.given != nil && path == j.given.path && path != "" {
		if err := j.over(); err != nil {
			return nil, err
		}
		return j.given.open()
	}
	i, f, err := j.openSource(path)
	if err != nil {
		return nil, err
	}
	if f.stat.Size <= WholeFile {
		data, err := j.readWhole(path, i, f)
		if err != nil {
			return nil, err
		}
		return memFile{bytes.NewReader(data)}, nil
	}
	if err := j.settle(path, &f); err != nil {
		return nil, err
	}
	return j.stream(path, i, f), nil
}

// settle waits until any change of an open file is visible in its stat: a file written within the last clock tick can
// be written again with the same stat.
func (j *Job) settle(path string, f *opened) error {
	for range 10 {
		wait := f.stat.Settles(f.at)
		if wait == 0 {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-j.run.Context().Done():
			f.Close()
			return context.Cause(j.run.Context())
		}
		f.at = time.Now()
		st, err := source.StatFile(f.File)
		if err != nil {
			f.Close()
			return j.mayPass(j.unreadable(path, err))
		}
		if st == f.stat {
			return nil // its time may even be in the future
		}
		f.stat = st
	}
	f.Close()
	return j.changed(path)
}

func (j *Job) ReadFile(path string) ([]byte, error) {
	path = j.sourceOf(path)
	if j.given != nil && path == j.given.path && path != "" {
		if err := j.over(); err != nil {
			return nil, err
		}
		return j.given.read()
	}
	i, f, err := j.openSource(path)
	if err != nil {
		return nil, err
	}
	return j.readWhole(path, i, f)
}

// sourceOf is the path of an asset's source if the argument is the asset's UUID, else the path itself.
func (j *Job) sourceOf(path string) string {
	if _, ok := processor.UUIDOf(path); ok {
		if a, err := j.Find(path); err == nil {
			return a.Path
		}
	}
	return path
}

type memFile struct{ *bytes.Reader }

func (memFile) Close() error { return nil }

// opened is a source file that was just opened.
type opened struct {
	*os.File
	stat source.Stat
	at   time.Time // just before it was opened
}

// openSource finds and opens a source file. If it is missing, that is recorded.
func (j *Job) openSource(path string) (source.Index, opened, error) {
	if err := j.allowed(path); err != nil {
		return 0, opened{}, err
	}
	i, root, ok := j.w.Table.Find(path)
	if !ok {
		j.run.See(SawFile, path, digest.Hash{})
		return 0, opened{}, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	now := time.Now()
	f, err := disk.Open(j.w.Table.Abs(root, path))
	if err != nil {
		return 0, opened{}, j.mayPass(j.unreadable(path, err))
	}
	st, err := source.StatFile(f)
	if err != nil {
		f.Close()
		return 0, opened{}, j.mayPass(j.unreadable(path, err))
	}
	return i, opened{f, st, now}, nil
}

// noSource is the error for a missing source of a declared asset.
func (j *Job) noSource() error {
	at := diag.Pos{File: j.display(j.t.Asset.Path)}
	return diag.Errorf(diag.SourceMissing, at, "this file does not exist, and the asset %q has it as its source", j.t.Asset.ID).
		WithHint("put the file there, or correct source in [[assets]]")
}

// allowed returns an error for paths that cannot be below the source roots, and for all paths once the job is over.
func (j *Job) allowed(path string) error {
	if err := j.may(path); err != nil {
		return err
	}
	if fs.ValidPath(path) && !strings.ContainsAny(path, "\\") && !(len(path) > 1 && path[1] == ':') {
		return nil
	}
	here := diag.Pos{File: j.display(j.t.Asset.Path)}
	if path == "" && j.path() == "" {
		what, hint := fmt.Sprintf("the asset %q", j.t.Asset.ID), `write source = "..." in its [[assets]], or name a processor that needs none`
		if j.t.Request() {
			what, hint = "the request", "give it a path, a product or bytes, or ask a processor that needs none"
		}
		return diag.Errorf(diag.SourceMissing, here, "processor %q wants to read a source file, and %s has none", j.t.Proc.Info.Name, what).
			WithHint("%s", hint)
	}
	if path == j.t.Asset.Path {
		return diag.Errorf(diag.ReadRefused, here, "the name of this file would be that of another one on Windows").
			WithHint("rename it: without a backslash, and without a colon after its first letter")
	}
	return diag.Errorf(diag.ReadRefused, here, "the job wants to read %q, which is not a path below the source roots", path).
		WithHint("use a path relative to the source roots, with forward slashes and without \"..\"")
}

func (j *Job) unreadable(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &diag.Message{
		Severity: diag.Error, Code: diag.SourceUnreadable, Pos: diag.Pos{File: j.display(path)},
		Text: fmt.Sprintf("the file cannot be read: %v", err), Hint: "check its permissions, or close the program that holds it",
	}
}

// readWhole reads an opened file, closes it and records its content.
func (j *Job) readWhole(path string, i source.Index, f opened) ([]byte, error) {
	for range 3 {
		data, after, err := readAll(f)
		f.Close()
		if err != nil {
			return nil, j.mayPass(j.unreadable(path, err))
		}
		if after == f.stat && int64(len(data)) == f.stat.Size {
			j.saw(path, i, f, func() digest.Hash { return digest.Of(data) })
			return data, nil
		}
		if _, f, err = j.openSource(path); err != nil {
			return nil, err
		}
	}
	f.Close()
	return nil, j.changed(path)
}

func readAll(f opened) ([]byte, source.Stat, error) {
	data := make([]byte, f.stat.Size, f.stat.Size+1)
	n, err := io.ReadFull(f, data)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, source.Stat{}, err
	}
	after, err := source.StatFile(f.File)
	return data[:n], after, err
}

// changed is the error for a file that changed while it was read. What was read does not count.
func (j *Job) changed(path string) error {
	j.run.Tear(SawFile, path)
	return j.torn(&engine.Observation{Kind: SawFile, Subject: path})
}

// torn is the error of a run that saw two values of one subject.
func (j *Job) torn(o *engine.Observation) error {
	hint := "build again when the program that writes it is done"
	switch o.Kind {
	case SawFile:
		return diag.Errorf(diag.SourceChanged, diag.Pos{File: j.display(o.Subject)}, "the file changed while it was read").WithHint("%s", hint)
	case SawTool:
		return diag.Errorf(diag.SourceChanged, diag.Pos{File: j.display(j.t.Asset.Path)}, "the program %s changed while the job ran", o.Subject).WithHint("%s", hint)
	}
	return diag.Errorf(diag.SourceChanged, diag.Pos{File: j.display(j.t.Asset.Path)}, "%s changed while the job ran that looked at it",
		strings.ReplaceAll(o.Subject, "\x00", " ")).WithHint("build again when it keeps still")
}

// saw records the content of a file that did not change while it was read. hash is called only if the table does not know the hash.
func (j *Job) saw(path string, i source.Index, f opened, hash func() digest.Hash) {
	j.run.SeeLater(SawFile, path)(j.know(i, f, hash))
}

// know returns the hash of a file, and how the table of files learns it.
func (j *Job) know(i source.Index, f opened, hash func() digest.Hash) (h digest.Hash, learn func()) {
	known := j.w.Table.At(i)
	if !known.Hash.IsZero() && known.Stat == f.stat && !known.Racy {
		return known.Hash, func() {}
	}
	h = hash()
	if !known.Hash.IsZero() && known.Hash != h {
		// Other jobs may have seen the old content: the next build must check all traces.
		_, path := j.w.Table.PathOf(i)
		shown := j.display(path)
		j.w.mu.Lock()
		j.w.unsettled(shown)
		j.w.mu.Unlock()
	}
	return h, func() { j.w.Table.Know(i, f.stat, h, f.at) }
}

// stream is an open file that is too large for memory. It is hashed while it is read from start to end, or else when it is closed.
type stream struct {
	opened
	j    *Job
	path string
	i    source.Index
	set  func(h digest.Hash, learn func())

	mu   sync.Mutex
	hash *digest.Hasher // nil: it is not read in order
	read int64
	done bool
}

func (j *Job) stream(path string, i source.Index, f opened) *stream {
	s := &stream{opened: f, j: j, path: path, i: i, set: j.run.SeeLater(SawFile, path), hash: digest.New()}
	if known := j.w.Table.At(i); known.Stat == f.stat && !known.Hash.IsZero() && !known.Racy {
		s.hash = nil
	}
	j.closeAtEnd(s)
	return s
}

// closeAtEnd closes a file when the job ends, or now if it has ended.
func (j *Job) closeAtEnd(f io.Closer) {
	j.mu.Lock()
	j.open = append(j.open, f)
	j.mu.Unlock()
	if j.over() != nil {
		f.Close()
	}
}

func (s *stream) Size() int64 { return s.stat.Size }

func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return 0, fs.ErrClosed
	}
	n, err := s.File.Read(p)
	if s.hash != nil {
		s.hash.Write(p[:n])
	}
	s.read += int64(n)
	return n, err
}

func (s *stream) Seek(offset int64, whence int) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return 0, fs.ErrClosed
	}
	s.hash = nil
	return s.File.Seek(offset, whence)
}

// WriteTo hides the method of os.File, which would bypass Read.
func (s *stream) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(w, struct{ io.Reader }{s}, make([]byte, 256<<10))
}

// Close records the content, and fails if it has changed since it was opened.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil
	}
	s.done = true
	defer s.File.Close()
	var err error
	h, learn := s.j.know(s.i, s.opened, func() digest.Hash {
		if s.hash != nil && s.read == s.stat.Size {
			return s.hash.Sum()
		}
		var h digest.Hash
		if _, err = s.File.Seek(0, io.SeekStart); err == nil {
			h, _, err = digest.Reader(s.File)
		}
		return h
	})
	if err != nil {
		return s.j.mayPass(s.j.unreadable(s.path, err))
	}
	s.set(h, learn)
	if after, err := source.StatFile(s.File); err != nil || after != s.stat {
		return s.j.changed(s.path)
	}
	return nil
}
