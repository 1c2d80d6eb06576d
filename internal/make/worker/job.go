package worker

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/processor"
)

// run is a processor.Job that answers from a written job.
type run struct {
	written  *written.Job
	program  *workspace.Program
	version  string // of this kiln
	settings any
	own      string // a folder of the run's own, outside of the action's
	folder   string // that of the action, absolute

	project string          // the project folder of a traced program, absolute; "" for others
	kiln    command.Kiln    // in it
	climbed map[string]bool // names that its program looked for in every folder above it

	mu         sync.Mutex // guards all fields below
	calls      []written.Call
	needs      bool   // the processor asked something to which the job has no answer
	local      string // why the job has to run at the client; ""
	unfinished int    // number of open products
	platform   bool   // the processor asked for it, which is logged once
	over       bool
	checked    map[written.Content]bool // inputs
	tools      map[string]string        // hashes of programs of this machine, by path
}

// errUnknown is the error for a question to which the job has no answer.
var errUnknown = errors.New("not known here")

// missing is an fs.ErrNotExist with the text that the client's error has.
type missing string

func (m missing) Error() string      { return string(m) }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// log adds a call to the log.
func (w *run) log(c written.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.calls = append(w.calls, c)
	}
}

// onlyThere records that the job has to run at the client.
func (w *run) onlyThere(format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.local == "" {
		w.local = fmt.Sprintf(format, args...)
	}
	return errors.New(w.local)
}

// ask returns the answer to a question, or errUnknown.
func (w *run) ask(c written.Call) (written.Answer, error) {
	w.log(c)
	key := c
	if c.Kind == written.Reference {
		key = written.Call{Kind: written.Find, Names: c.Names[:1]}
	}
	a, ok := w.written.Answers[key.Key()]
	switch {
	case !ok:
		w.mu.Lock()
		w.needs = true
		w.mu.Unlock()
		return a, errUnknown
	case a.Missing != "":
		return a, missing(a.Missing)
	}
	return a, nil
}

func (w *run) Asset() processor.Asset { return w.written.Asset }
func (w *run) Settings() any          { return w.settings }

func (w *run) Platform() string {
	w.mu.Lock()
	logged := w.platform
	w.platform = true
	w.mu.Unlock()
	if !logged {
		w.log(written.Call{Kind: written.Platform})
	}
	return w.written.Platform
}

// file is a processor.File.
type file struct {
	*os.File
	size int64
}

func (f *file) Size() int64 { return f.size }

func (w *run) open(a written.Answer, err error) (processor.File, error) {
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(written.InFolder, a.Content.Name()))
	if err == nil {
		err = w.whole(f, a.Content)
	}
	if err != nil {
		f.Close()
		return nil, w.onlyThere("an input: %v", err)
	}
	return &file{f, a.Content.Size}, nil
}

// whole checks that a file has the expected content.
func (w *run) whole(f *os.File, c written.Content) error {
	w.mu.Lock()
	known := w.checked[c]
	w.mu.Unlock()
	if known {
		return nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err == nil && (n != c.Size || [sha256.Size]byte(sum.Sum(nil)) != c.SHA256) {
		err = errors.New("it is damaged")
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checked[c] = err == nil
	return err
}

func (w *run) read(a written.Answer, err error) ([]byte, error) {
	f, err := w.open(a, err)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func (w *run) Open(path string) (processor.File, error) {
	a, err := w.ask(written.Call{Kind: written.Open, Names: []string{path}})
	if err == errUnknown && w.project != "" {
		err = missing(path) // so that the rest that the program accessed is asked for as well
	}
	return w.open(a, err)
}

func (w *run) ReadFile(path string) ([]byte, error) {
	return w.read(w.ask(written.Call{Kind: written.Open, Names: []string{path}}))
}

func (w *run) Source() (processor.File, error) {
	return w.open(w.ask(written.Call{Kind: written.Source}))
}

func (w *run) Exists(path string) (bool, error) {
	a, err := w.ask(written.Call{Kind: written.Exists, Names: []string{path}})
	if errors.Is(err, errUnknown) {
		// The content that the processor reads next is asked for as well. A traced program has run already, and found what is laid here.
		return w.project == "" || w.Where(path) != "", nil
	}
	return a.Yes, err
}

func (w *run) Glob(pattern string) ([]string, error) {
	a, err := w.ask(written.Call{Kind: written.Glob, Names: []string{pattern}})
	if errors.Is(err, errUnknown) {
		return nil, nil
	}
	return a.Names, err
}

func (w *run) Find(name string) (processor.Asset, error) {
	a, err := w.ask(written.Call{Kind: written.Find, Names: []string{name}})
	if errors.Is(err, errUnknown) {
		return processor.Asset{ID: name, Path: name}, nil
	}
	return a.Asset, err
}

func (w *run) Reference(asset, name string, required bool) (processor.Reference, error) {
	a, err := w.ask(written.Call{Kind: written.Reference, Names: []string{asset, name}, Yes: required})
	if errors.Is(err, errUnknown) {
		err = nil
	}
	if errors.Is(err, fs.ErrNotExist) && !required {
		return processor.Reference{}, w.onlyThere("it refers to %q, which is not there", asset) // the client has to record that
	}
	return processor.Reference{UUID: a.Asset.UUID, SubID: processor.SubID(name), Required: required}, err
}

func (w *run) Products(names ...string) ([][]processor.Product, error) {
	a, err := w.ask(written.Call{Kind: written.Products, Names: names})
	return a.Products, err
}

func (w *run) TryProducts(of processor.Ask) ([]processor.Product, bool, error) {
	a, err := w.ask(written.Call{Kind: written.Try, Names: []string{of.Asset, of.Platform, of.Processor}})
	if err != nil || len(a.Products) == 0 {
		return nil, false, err
	}
	return a.Products[0], a.Yes, nil
}

func (w *run) Assets(pattern string) (list []processor.Listed, err error) {
	a, err := w.ask(written.Call{Kind: written.Assets, Names: []string{pattern}})
	if errors.Is(err, errUnknown) {
		return nil, nil // as with Glob: the next question about them is not known yet
	}
	if err == nil && len(a.Names) == 1 {
		err = json.Unmarshal([]byte(a.Names[0]), &list)
	}
	return list, err
}

func (w *run) Parts(names ...string) ([][]processor.Product, error) {
	a, err := w.ask(written.Call{Kind: written.Parts, Names: names})
	return a.Products, err
}

func (w *run) ToPack() ([]processor.Product, error) {
	a, err := w.ask(written.Call{Kind: written.ToPack})
	if err != nil || len(a.Products) == 0 {
		return nil, err
	}
	return a.Products[0], nil
}

func (w *run) OpenProduct(p processor.Product) (processor.File, error) {
	return w.open(w.ask(written.Call{Kind: written.Read, Product: &p}))
}

func (w *run) Request(requests ...processor.Request) ([][]processor.Product, error) {
	c := written.Call{Kind: written.Request}
	for _, r := range requests {
		asked := written.Asked{Processor: r.Processor, Name: r.Name, Path: r.Path, Product: r.Product, Extension: r.Extension}
		if len(r.Settings) > 0 {
			text, err := json.Marshal(r.Settings)
			if err != nil {
				return nil, w.onlyThere("settings of a request to %q: %v", r.Processor, err)
			}
			asked.Settings = string(text)
		}
		if r.Bytes != nil {
			content, err := w.keep(r.Bytes)
			if err != nil {
				return nil, w.onlyThere("%v", err)
			}
			asked.Bytes = &content
		}
		c.Requests = append(c.Requests, asked)
	}
	a, err := w.ask(c)
	return a.Products, err
}

func (w *run) keep(data []byte) (written.Content, error) {
	c := written.Content{SHA256: sha256.Sum256(data), Size: int64(len(data))}
	return c, os.WriteFile(filepath.Join(written.OutFolder, c.Name()), data, 0o666)
}

func (w *run) Adopt(p processor.Product, out processor.Output) error {
	w.log(written.Call{Kind: written.Adopt, Product: &p, Output: &out})
	return nil
}

// AssetSettings is the method of job.Job that package gltf uses.
func (w *run) AssetSettings(name, by string) (all any, given map[string]any, err error) {
	a, err := w.ask(written.Call{Kind: written.Settings, Names: []string{name, by}})
	if err != nil || len(a.Names) != 2 {
		if errors.Is(err, errUnknown) {
			err = nil
		}
		return nil, nil, err
	}
	info, ok := w.program.Info(by)
	if !ok {
		return nil, nil, w.onlyThere("it asks for settings of %q", by)
	}
	if all, err = settings.Parse(info.Settings, []byte(a.Names[0])); err == nil {
		d := json.NewDecoder(strings.NewReader(a.Names[1]))
		d.UseNumber() // numbers keep their text, which is in the keys of requests
		err = d.Decode(&given)
	}
	if err != nil {
		return nil, nil, w.onlyThere("settings of %q: %v", name, err)
	}
	return all, given, nil
}

func (w *run) Env(name string) (string, bool) {
	a, err := w.ask(written.Call{Kind: written.Env, Names: []string{name}})
	if err != nil || len(a.Names) == 0 {
		return "", false
	}
	return a.Names[0], true
}

func (w *run) ResourceID(name string) (uint32, bool) {
	a, err := w.ask(written.Call{Kind: written.ID, Names: []string{name}})
	if err != nil || len(a.Names) == 0 {
		return 0, false
	}
	id, err := strconv.ParseUint(a.Names[0], 10, 32)
	if err != nil {
		w.onlyThere("the resource id of %q: %v", name, err)
	}
	return uint32(id), err == nil
}

// product is a product being written.
type product struct {
	w    *run
	out  processor.Output
	file *os.File
	hash hash.Hash
	size int64
}

func (w *run) Create(out processor.Output) (io.WriteCloser, error) {
	f, err := os.CreateTemp(w.own, "product-*")
	if err != nil {
		return nil, w.onlyThere("%v", err)
	}
	w.mu.Lock()
	w.unfinished++
	w.mu.Unlock()
	return &product{w: w, out: out, file: f, hash: sha256.New()}, nil
}

func (p *product) Write(data []byte) (int, error) {
	n, err := p.file.Write(data)
	p.hash.Write(data[:n])
	if p.size += int64(n); err != nil && !errors.Is(err, fs.ErrClosed) {
		err = p.w.onlyThere("%v", err)
	}
	return n, err
}

func (p *product) Close() error {
	if err := p.file.Close(); err != nil {
		return err // it is closed already
	}
	c := written.Call{Kind: written.Create, Output: &p.out, Content: written.Content{SHA256: [sha256.Size]byte(p.hash.Sum(nil)), Size: p.size}}
	if err := move(p.file.Name(), filepath.Join(written.OutFolder, c.Content.Name())); err != nil {
		return p.w.onlyThere("%v", err)
	}
	p.w.mu.Lock()
	p.w.unfinished--
	p.w.mu.Unlock()
	p.w.log(c)
	return nil
}

// move moves a file, also to another disk.
func move(from, to string) error {
	if os.Rename(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (w *run) Write(out processor.Output, data []byte) error {
	p, err := w.Create(out)
	if err != nil {
		return err
	}
	if _, err := p.Write(data); err != nil {
		return err
	}
	return p.Close()
}

func (w *run) NeedMemory(int64) error { return nil } // it is the only job of this process

func (w *run) UsedMemory(bytes int64) { w.log(written.Call{Kind: written.Memory, Number: bytes}) }

func (w *run) Drafts() bool                         { return false }
func (w *run) Draft(processor.Output, []byte) error { return nil }
