//go:build wasip1

package wasmguest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// job implements processor.Job with the functions of the host.
type job struct {
	asset    processor.Asset
	settings any
}

func asset() processor.Asset {
	a := processor.Asset{ID: text(hostAsset(0)), UUID: text(hostAsset(1)), Path: text(hostAsset(2))}
	a.Folder = strings.HasSuffix(a.ID, "/")
	return a
}

func (j *job) Asset() processor.Asset { return j.asset }
func (j *job) Platform() string       { return text(hostAsset(3)) }
func (j *job) Settings() any          { return j.settings }

// file reads the data behind a handle.
type file struct {
	*io.SectionReader
	handle int32
	size   int64
}

func newFile(h int32) *file {
	f := &file{handle: h, size: hostSize(h)}
	f.SectionReader = io.NewSectionReader(byHandle(h), 0, f.size)
	return f
}

func (f *file) Size() int64 { return f.size }

func (f *file) Close() error {
	if f.handle == 0 {
		return fs.ErrClosed
	}
	err := failed(hostClose(f.handle), "close", "")
	f.handle = 0
	f.SectionReader = io.NewSectionReader(byHandle(0), 0, f.size)
	return err
}

// byHandle is an io.ReaderAt; 0 means closed.
type byHandle int32

func (h byHandle) ReadAt(b []byte, offset int64) (int, error) {
	if h == 0 {
		return 0, fs.ErrClosed
	}
	n := 0
	for n < len(b) {
		got := hostRead(int32(h), offset+int64(n), pointer(b[n:]), uint32(min(len(b)-n, 1<<30)))
		if got < 0 {
			return n, failed(got, "read", "")
		}
		if got == 0 {
			return n, io.EOF
		}
		n += int(got)
	}
	return n, nil
}

func (j *job) Open(path string) (processor.File, error) {
	h := hostOpen(path)
	if h < 0 {
		return nil, failed(h, "open", path)
	}
	return newFile(h), nil
}

func (j *job) ReadFile(path string) ([]byte, error) {
	f, err := j.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, f.Size())
	_, err = io.ReadFull(f, b)
	return b, err
}

func (j *job) Exists(path string) (bool, error) {
	h := hostExists(path)
	return h == 1, failed(h, "exists", path)
}

func (j *job) Glob(pattern string) ([]string, error) {
	h := hostGlob(pattern)
	if h < 0 {
		return nil, failed(h, "glob", pattern)
	}
	return texts(h), nil
}

func (j *job) Products(ids ...string) ([][]processor.Product, error) {
	var list string
	if len(ids) > 0 {
		list = strings.Join(ids, "\x00") + "\x00"
	}
	h := hostProducts(list)
	if h < 0 {
		return nil, failed(h, "products", "")
	}
	of := map[string][]processor.Product{}
	for _, p := range listed(texts(h), "") {
		if n := len(of[p.AssetID]); n == 0 || of[p.AssetID][0].Name != p.Name { // an asset that was named twice is listed twice
			of[p.AssetID] = append(of[p.AssetID], p)
		}
	}
	byUUID := map[string][]processor.Product{}
	for _, ps := range of {
		byUUID[processor.ByUUID(ps[0].UUID)] = ps
	}
	all := make([][]processor.Product, len(ids))
	for i, id := range ids {
		if all[i] = of[id]; all[i] == nil {
			all[i] = byUUID[id]
		}
	}
	return all, nil
}

// listed returns products from five texts each. For products of another platform, the asset is preceded by the platform
// and a colon.
func listed(t []string, platform string) (list []processor.Product) {
	for ; len(t) >= 5; t = t[5:] {
		p := processor.Product{AssetID: t[0], UUID: t[1], Name: t[2], SubID: processor.SubID(t[2]), Type: t[3], File: t[4]}
		if id, ok := strings.CutPrefix(p.AssetID, platform+":"); ok && platform != "" {
			p.AssetID, p.Platform = id, platform
		}
		p.Extension = strings.TrimPrefix(p.File, strings.TrimSuffix(p.AssetID, "/"))
		if p.Name != "" {
			p.Extension = strings.TrimPrefix(p.Extension, "."+p.Name)
		}
		list = append(list, p)
	}
	return list
}

// told returns the host's name for the asset of a product.
func told(p processor.Product) string {
	if p.Platform != "" {
		return p.Platform + ":" + p.AssetID
	}
	return p.AssetID
}

func (j *job) TryProducts(of processor.Ask) ([]processor.Product, bool, error) {
	h := hostTryProducts(of.Asset, of.Platform, of.Processor)
	if h < 0 {
		return nil, false, failed(h, "products", of.Asset)
	}
	t := texts(h)
	return listed(t[1:], of.Platform), t[0] == "1", nil
}

func (j *job) Assets(pattern string) (list []processor.Listed, err error) {
	h := hostListed(pattern)
	if h < 0 {
		return nil, failed(h, "assets", pattern)
	}
	for t := texts(h); len(t) >= 8; t = t[8:] {
		a := processor.Asset{ID: t[0], UUID: t[1], Path: t[2], Folder: t[3] == "1"}
		list = append(list, processor.Listed{Asset: a, Processor: t[4], Type: t[5], Settings: t[6], Meta: t[7]})
	}
	return list, nil
}

func (j *job) OpenProduct(p processor.Product) (processor.File, error) {
	h := hostOpenProduct(told(p), p.Name)
	if h < 0 {
		return nil, failed(h, "open product", p.File)
	}
	return newFile(h), nil
}

func (j *job) Find(name string) (processor.Asset, error) {
	return processor.Asset{}, fmt.Errorf("find %q: %w", name, errNot)
}

func (j *job) Reference(assetID, name string, required bool) (processor.Reference, error) {
	if assetID == "" {
		return processor.Reference{}, &fs.PathError{Op: "reference", Path: assetID, Err: fs.ErrNotExist}
	}
	flag := int32(0)
	if required {
		flag = 1
	}
	h := hostReference(assetID, name, flag)
	if h < 0 {
		return processor.Reference{}, failed(h, "reference", assetID)
	}
	t := texts(h)
	sub, err := strconv.ParseUint(t[1], 10, 32)
	return processor.Reference{UUID: t[0], SubID: uint32(sub), Required: required}, err
}

var errNot = errors.New("not there for a module in WebAssembly")

func (j *job) ToPack() ([]processor.Product, error) {
	return nil, fmt.Errorf("images to pack: %w", errNot)
}

// The host limits a module's memory, and waits for it. Drafts are only for processors that are compiled into Kiln.
func (j *job) NeedMemory(int64) error               { return nil }
func (j *job) UsedMemory(int64)                     {}
func (j *job) Drafts() bool                         { return false }
func (j *job) Draft(processor.Output, []byte) error { return nil }

func (j *job) Parts(...string) ([][]processor.Product, error) {
	return nil, fmt.Errorf("parts: %w", errNot)
}

// Kinds of sources of a request: docs/formats/wasm-abi.md.
const (
	ofNothing = iota
	ofPath
	ofProduct
	ofBytes
)

func (j *job) Request(requests ...processor.Request) ([][]processor.Product, error) {
	all := make([][]processor.Product, len(requests))
	for i := range requests {
		r := &requests[i]
		settings, err := json.Marshal(r.Settings)
		if err != nil {
			return nil, err
		}
		about, a, b := int32(ofNothing), []byte(nil), ""
		switch {
		case r.Path != "":
			about, a = ofPath, []byte(r.Path)
		case r.Product != nil:
			about, a, b = ofProduct, []byte(r.Product.AssetID), r.Product.Name
		case r.Bytes != nil:
			about, a, b = ofBytes, r.Bytes, r.Extension
		}
		h := hostRequest(r.Name, r.Processor, string(settings), pointer(a), uint32(len(a)), b, about)
		if h < 0 {
			return nil, failed(h, "request", "")
		}
		for t := texts(h); len(t) >= 5; t = t[5:] {
			all[i] = append(all[i], processor.Product{
				AssetID: t[0], UUID: t[1], Name: t[2], SubID: processor.SubID(t[2]), Type: t[3], Extension: t[4], Processor: r.Processor,
			})
		}
	}
	return all, nil
}

func (j *job) Adopt(p processor.Product, out processor.Output) error {
	if out.Hidden || len(out.References) > 0 {
		return fmt.Errorf("adopt with references of its own: %w", errNot)
	}
	return failed(hostAdopt(told(p), p.Name, out.Name, out.Type, out.Extension), "adopt", "")
}

// command is processor.Command in the form of the host: docs/formats/wasm-abi.md.
type command struct {
	Args    []string    `json:"args"`
	Tools   []string    `json:"tools,omitempty"`
	Inputs  []string    `json:"inputs,omitempty"`
	Traced  bool        `json:"traced,omitempty"`
	Env     []string    `json:"env,omitempty"`
	Codes   []int       `json:"codes,omitempty"`
	Timeout float64     `json:"timeout,omitempty"`
	Network bool        `json:"network,omitempty"`
	Stdin   int         `json:"stdin,omitempty"`
	Files   []givenFile `json:"files,omitempty"`
}

type givenFile struct {
	Path string `json:"path"`
	Size int    `json:"size"`
}

func (j *job) Run(_ context.Context, c processor.Command) (r processor.Result, err error) {
	about := command{
		Args: c.Args, Tools: c.Tools, Inputs: c.Inputs, Traced: c.Traced, Env: c.Env, Codes: c.Codes, Timeout: c.Timeout.Seconds(),
		Network: c.Network, Stdin: len(c.Stdin),
	}
	data := c.Stdin[:len(c.Stdin):len(c.Stdin)]
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		about.Files = append(about.Files, givenFile{path, len(c.Files[path])})
		data = append(data, c.Files[path]...)
	}
	text, err := json.Marshal(about)
	if err != nil {
		return r, err
	}
	h := hostRun(string(text), pointer(data), uint32(len(data)))
	if h < 0 {
		return r, failed(h, "run", "")
	}
	t := texts(h)
	take := func(handle string) []byte {
		n, nerr := strconv.ParseInt(handle, 10, 32)
		if err = errors.Join(err, nerr); err != nil {
			return nil
		}
		b := content(int32(n))
		hostClose(int32(n))
		return b
	}
	r.Code, err = strconv.Atoi(t[0])
	r.Stdout, r.Stderr, r.Files = take(t[1]), take(t[2]), map[string][]byte{}
	for t = t[3:]; len(t) >= 2; t = t[2:] {
		r.Files[t[0]] = take(t[1])
	}
	return r, err
}

func (j *job) ResourceID(name string) (uint32, bool) {
	id := hostResourceID(name)
	return uint32(max(id, 0)), id >= 0
}

func (j *job) Source() (processor.File, error) { return j.Open(j.asset.Path) }

func (j *job) Tool(name string) (string, error) { return "", fmt.Errorf("tool %q: %w", name, errNot) }
func (j *job) Env(string) (string, bool)        { return "", false }
func (j *job) Scratch() (string, error)         { return "", fmt.Errorf("scratch: %w", errNot) }

// writer writes a product.
type writer struct{ handle int32 }

func (j *job) Create(out processor.Output) (io.WriteCloser, error) {
	if out.Hidden {
		return nil, fmt.Errorf("hidden products: %w", errNot)
	}
	var refs strings.Builder
	for _, r := range out.References {
		required := 0
		if r.Required {
			required = 1
		}
		fmt.Fprintf(&refs, "%s\x00%d\x00%d\x00", r.UUID, r.SubID, required)
	}
	h := hostCreate(out.Name, out.Type, out.Extension, refs.String())
	if h < 0 {
		return nil, failed(h, "create", "")
	}
	return &writer{h}, nil
}

func (w *writer) Write(b []byte) (int, error) {
	if w.handle == 0 {
		return 0, fs.ErrClosed
	}
	if err := failed(hostWrite(w.handle, pointer(b), uint32(len(b))), "write", ""); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (w *writer) Close() error {
	if w.handle == 0 {
		return fs.ErrClosed
	}
	h := w.handle
	w.handle = 0
	return failed(hostClose(h), "close", "")
}

func (j *job) Write(out processor.Output, data []byte) error {
	w, err := j.Create(out)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

func (j *job) Warn(p processor.Problem) {
	hostWarn(p.Text, p.Hint, p.Path, int32(p.Line), int32(p.Column), int32(p.Length))
}
