package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"github.com/kiln-pipeline/kiln/processor"
)

// The modules from which a guest may import functions.
const (
	hostModule = "kiln_v1"
	wasiModule = "wasi_snapshot_preview1"
)

// Results that are errors caused by the world; an error of the guest ends its job.
const (
	errFailed   = -1 // the function error has more
	errNotFound = -2
)

// Limits of one call and one job. They are far beyond what honest guests need, but small for the host.
const (
	maxText     = 64 << 10 // bytes of a path, a name, a message
	maxList     = 16 << 20 // bytes of a list of texts
	maxHandles  = 4096     // open at once: each may need an open file
	maxProblems = 1000     // warnings and errors of one job
	maxWritten  = 4 << 30  // bytes of all products
)

// function is a host function: its parameters and results as letters, i for i32 and l for i64.
type function struct {
	params, results string
	call            func(r *run, s []uint64)
}

// hostFunctions is kiln_v1, by name. docs/formats/wasm-abi.md describes the functions. A pointer and a
// length are two parameters; s has the parameters and receives the result.
func hostFunctions() map[string]function {
	return map[string]function{
		"describe":     {"ii", "", (*run).hostDescribe},
		"asset":        {"i", "i", (*run).hostAsset},
		"settings":     {"", "i", (*run).hostSettings},
		"setting":      {"ii", "i", (*run).hostSetting},
		"open":         {"ii", "i", (*run).hostOpen},
		"exists":       {"ii", "i", (*run).hostExists},
		"glob":         {"ii", "i", (*run).hostGlob},
		"products":     {"ii", "i", (*run).hostProducts},
		"assets":       {"ii", "i", (*run).hostAssets},
		"listed":       {"ii", "i", (*run).hostListed},
		"try_products": {"iiiiii", "i", (*run).hostTryProducts},
		"open_product": {"iiii", "i", (*run).hostOpenProduct},
		"request":      {"iiiiiiiii", "i", (*run).hostRequest},

		"request_named": {"iiiiiiiiiii", "i", (*run).hostRequestNamed},
		"adopt":         {"iiiiiiiiii", "i", (*run).hostAdopt},
		"run":           {"iiii", "i", (*run).hostRun},
		"size":          {"i", "l", (*run).hostSize},
		"read":          {"ilii", "i", (*run).hostRead},
		"reference":     {"iiiii", "i", (*run).hostReference},
		"resource_id":   {"ii", "i", (*run).hostResourceID},
		"create":        {"iiiiiiii", "i", (*run).hostCreate},
		"write":         {"iii", "i", (*run).hostWrite},
		"close":         {"i", "i", (*run).hostClose},
		"warn":          {"iiiiiiiii", "", (*run).hostWarn},
		"fail":          {"iiiiiiiiii", "", (*run).hostFail},
		"error":         {"", "i", (*run).hostError},
	}
}

// abuse is an error of the guest. It ends the job.
type abuse struct{ text string }

func (a *abuse) Error() string { return a.text }

func (r *run) abuse(format string, args ...any) {
	panic(&abuse{r.calling + " " + fmt.Sprintf(format, args...)})
}

func result(s []uint64, v int32) { s[0] = api.EncodeI32(v) }

// view is a part of the guest's memory.
func (r *run) view(ptr, length uint64, limit uint32) []byte {
	p, n := uint32(ptr), uint32(length)
	if n > limit {
		r.abuse("got %d bytes; at most %d can be given at once", n, limit)
	}
	b, ok := r.memory.Read(p, n)
	if !ok {
		r.abuse("got a pointer out of the module's memory: %d bytes from %d on, of %d", n, p, r.memory.Size())
	}
	return b
}

func (r *run) text(ptr, length uint64) string {
	b := r.view(ptr, length, maxText)
	if !utf8.Valid(b) {
		r.abuse("got text that is not UTF-8")
	}
	return string(b)
}

// list reads texts that each end in a zero byte.
func (r *run) list(ptr, length uint64) []string {
	b := r.view(ptr, length, maxList)
	switch {
	case len(b) == 0:
		return nil
	case b[len(b)-1] != 0:
		r.abuse("got a list whose last text has no zero byte at its end")
	case !utf8.Valid(b):
		r.abuse("got text that is not UTF-8")
	}
	return strings.Split(string(b[:len(b)-1]), "\x00")
}

// object is what a handle means: one of its fields is set.
type object struct {
	data processor.File // a file
	text []byte         // or bytes of the host
	err  error
	out  io.WriteCloser // a product
	name string         // of the product
}

// open assigns a handle to an object. A job never reuses handles, so that use of a closed one is noticed.
func (r *run) open(o *object) int32 {
	if len(r.objects) >= maxHandles {
		r.abuse("would open one handle more than the %d that a job may have open: close some", maxHandles)
	}
	r.last++
	r.objects[r.last] = o
	return r.last
}

func (r *run) object(h uint64) *object {
	o := r.objects[int32(uint32(h))]
	if o == nil {
		was := "was never given"
		if n := int32(uint32(h)); n > 0 && n <= r.last {
			was = "is closed"
		}
		r.abuse("got handle %d, which %s", int32(uint32(h)), was)
	}
	return o
}

// failed stores an error for the function error.
func (r *run) failed(err error) int32 {
	r.err = err
	if isNotExist(err) {
		return errNotFound
	}
	return errFailed
}

func (r *run) textOr(text []byte, err error) int32 {
	if err != nil {
		return r.failed(err)
	}
	return r.open(&object{text: text})
}

func (r *run) hostDescribe(s []uint64) {
	r.about = append([]byte(nil), r.view(s[0], s[1], maxAbout)...)
}

func (r *run) hostAsset(s []uint64) {
	a := r.job.Asset()
	var text string
	switch what := uint32(s[0]); what {
	case 0:
		text = a.ID
	case 1:
		text = a.UUID
	case 2:
		text = a.Path
	case 3: // a job that asks for it runs for each platform
		text = r.job.Platform()
	default:
		r.abuse("got %d, which stands for nothing: 0 is the id, 1 the UUID, 2 the path, 3 the platform", what)
	}
	result(s, r.open(&object{text: []byte(text)}))
}

func (r *run) hostSettings(s []uint64) {
	all, _, err := r.p.about.settingsJSON(r.job.Settings())
	s[0] = api.EncodeI32(r.textOr(all, err))
}

func (r *run) hostSetting(s []uint64) {
	name := r.text(s[0], s[1])
	_, one, err := r.p.about.settingsJSON(r.job.Settings())
	if _, ok := one[name]; err == nil && !ok {
		r.abuse("got %q, which is not a setting that kiln_info describes", name)
	}
	result(s, r.textOr(one[name], err))
}

func (r *run) hostOpen(s []uint64) {
	f, err := r.job.Open(r.text(s[0], s[1]))
	result(s, r.file(f, err))
}

func (r *run) file(f processor.File, err error) int32 {
	if err != nil {
		return r.failed(err)
	}
	return r.open(&object{data: f})
}

func (r *run) hostExists(s []uint64) {
	ok, err := r.job.Exists(r.text(s[0], s[1]))
	switch {
	case err != nil:
		result(s, r.failed(err))
	case ok:
		result(s, 1)
	default:
		result(s, 0)
	}
}

func (r *run) hostGlob(s []uint64) {
	paths, err := r.job.Glob(r.text(s[0], s[1]))
	var text []byte
	for _, p := range paths {
		text = append(append(text, p...), 0)
	}
	result(s, r.textOr(text, err))
}

// hostProducts returns five texts for each product: asset, UUID, name, type, file.
func (r *run) hostProducts(s []uint64) {
	ids := r.list(s[0], s[1])
	resume := r.pause() // time for other jobs does not count
	all, err := r.job.Products(ids...)
	resume()
	result(s, r.textOr(r.answer(all, func(p processor.Product) string { return p.File }), err))
}

// answer records products as known to the guest, and returns five texts for each; last returns the last
// one.
func (r *run) answer(all [][]processor.Product, last func(processor.Product) string) (text []byte) {
	for _, of := range all {
		for _, p := range of {
			asset := p.AssetID
			if p.Platform != "" {
				asset = p.Platform + ":" + asset // so that it is not confused with that of the job's own platform
			}
			r.told[[2]string{asset, p.Name}] = p
			for _, field := range []string{asset, p.UUID, p.Name, p.Type, last(p)} {
				text = append(append(text, field...), 0)
			}
		}
	}
	return text
}

// hostAssets answers what hostListed answers, without the last text.
func (r *run) hostAssets(s []uint64) { r.catalogue(s, 7) }

// hostListed answers eight texts an asset and processor: id, UUID, path, "1" for a folder, processor, type, settings and metadata as JSON.
func (r *run) hostListed(s []uint64) { r.catalogue(s, 8) }

func (r *run) catalogue(s []uint64, texts int) {
	list, err := r.job.Assets(r.text(s[0], s[1]))
	var text []byte
	for _, a := range list {
		folder := ""
		if a.Folder {
			folder = "1"
		}
		for _, field := range []string{a.ID, a.UUID, a.Path, folder, a.Processor, a.Type, a.Settings, a.Meta}[:texts] {
			text = append(append(text, field...), 0)
		}
	}
	result(s, r.textOr(text, err))
}

// hostTryProducts returns a text, "1" if there are products, followed by five texts for each product as in
// hostProducts. The asset of a product of another platform has the platform and a colon as prefix.
func (r *run) hostTryProducts(s []uint64) {
	of := processor.Ask{Asset: r.text(s[0], s[1]), Platform: r.text(s[2], s[3]), Processor: r.text(s[4], s[5])}
	resume := r.pause()
	list, ok, err := r.job.TryProducts(of)
	resume()
	text := []byte("\x00")
	if ok {
		text = []byte("1\x00")
	}
	result(s, r.textOr(append(text, r.answer([][]processor.Product{list}, func(p processor.Product) string { return p.File })...), err))
}

func (r *run) hostOpenProduct(s []uint64) {
	f, err := r.job.OpenProduct(r.product(r.text(s[0], s[1]), r.text(s[2], s[3])))
	result(s, r.file(f, err))
}

// product returns one that the guest knows.
func (r *run) product(asset, name string) processor.Product {
	p, ok := r.told[[2]string{asset, name}]
	if !ok {
		r.abuse("got product %q of asset %q, which products and request did not return", name, asset)
	}
	return p
}

// The source of a request.
const (
	aboutNothing = iota
	aboutPath
	aboutProduct // asset and name
	aboutBytes   // and their extension
)

// maxRequested is the maximum size of bytes in a request.
const maxRequested = 256 << 20

// hostRequest takes a processor, settings as JSON, and the source, in two texts and its kind. It returns five texts for
// each product: asset, UUID, name, type, extension.
func (r *run) hostRequest(s []uint64) { result(s, r.request("", s)) }

// hostRequestNamed takes the name of a request first.
func (r *run) hostRequestNamed(s []uint64) { result(s, r.request(r.text(s[0], s[1]), s[2:])) }

func (r *run) request(name string, s []uint64) int32 {
	q := processor.Request{Name: name, Processor: r.text(s[0], s[1])}
	if given := r.text(s[2], s[3]); given != "" {
		if err := json.Unmarshal([]byte(given), &q.Settings); err != nil {
			r.abuse("got settings that are not a JSON object: %v", err)
		}
	}
	switch uint32(s[8]) {
	case aboutNothing:
	case aboutPath:
		q.Path = r.text(s[4], s[5])
	case aboutProduct:
		p := r.product(r.text(s[4], s[5]), r.text(s[6], s[7]))
		q.Product = &p
	case aboutBytes:
		q.Bytes, q.Extension = append([]byte{}, r.view(s[4], s[5], maxRequested)...), r.text(s[6], s[7])
	default:
		r.abuse("got %d, which no request is about", uint32(s[8]))
	}
	resume := r.pause()
	all, err := r.job.Request(q)
	resume()
	return r.textOr(r.answer(all, func(p processor.Product) string { return p.Extension }), err)
}

// hostAdopt takes a product, by asset and name, and its new name, type and extension.
func (r *run) hostAdopt(s []uint64) {
	p := r.product(r.text(s[0], s[1]), r.text(s[2], s[3]))
	if err := r.job.Adopt(p, processor.Output{Name: r.text(s[4], s[5]), Type: r.text(s[6], s[7]), Extension: r.text(s[8], s[9])}); err != nil {
		result(s, r.failed(err))
		return
	}
	result(s, 0)
}

func (r *run) hostSize(s []uint64) {
	switch o := r.object(s[0]); {
	case o.data != nil:
		s[0] = uint64(o.data.Size())
	case o.out != nil:
		r.abuse("got a product that is being written")
	default:
		s[0] = uint64(len(o.text))
	}
}

func (r *run) hostRead(s []uint64) {
	o, at, to := r.object(s[0]), int64(s[1]), r.view(s[2], s[3], 1<<31-1)
	n, err := 0, error(nil)
	switch {
	case at < 0:
		r.abuse("got the offset %d", at)
	case o.out != nil:
		r.abuse("got a product that is being written")
	case o.data != nil:
		n, err = o.data.ReadAt(to, at)
	case at < int64(len(o.text)):
		n = copy(to, o.text[at:])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		result(s, r.failed(err))
		return
	}
	result(s, int32(n))
}

// hostReference returns three texts: UUID, sub id, and 1 if it is required, else 0. An empty asset is the job's own.
func (r *run) hostReference(s []uint64) {
	asset, name, required := r.text(s[0], s[1]), r.text(s[2], s[3]), uint32(s[4]) != 0
	ref, err := processor.Own(r.job, name, required), error(nil)
	if asset != "" {
		ref, err = r.job.Reference(asset, name, required)
	}
	flag := 0
	if required {
		flag = 1
	}
	result(s, r.textOr(fmt.Appendf(nil, "%s\x00%d\x00%d\x00", ref.UUID, ref.SubID, flag), err))
}

// hostResourceID returns the number of a product of the job's asset, or that it has none.
func (r *run) hostResourceID(s []uint64) {
	if id, ok := r.job.ResourceID(r.text(s[0], s[1])); ok {
		result(s, int32(id)) // of 24 bits
		return
	}
	result(s, errNotFound)
}

// references reads texts as returned by hostReference, one after the other.
func (r *run) references(list []string) (refs []processor.Reference) {
	if len(list)%3 != 0 {
		r.abuse("got references of %d texts; each has three", len(list))
	}
	for ; len(list) > 0; list = list[3:] {
		sub, err := strconv.ParseUint(list[1], 10, 32)
		if err != nil || list[2] != "0" && list[2] != "1" {
			r.abuse("got a reference with the sub id %q and required %q", list[1], list[2])
		}
		refs = append(refs, processor.Reference{UUID: list[0], SubID: uint32(sub), Required: list[2] == "1"})
	}
	return refs
}

func (r *run) hostCreate(s []uint64) {
	out := processor.Output{
		Name: r.text(s[0], s[1]), Type: r.text(s[2], s[3]), Extension: r.text(s[4], s[5]), References: r.references(r.list(s[6], s[7])),
	}
	w, err := r.job.Create(out)
	if err != nil {
		result(s, r.failed(err))
		return
	}
	result(s, r.open(&object{out: w, name: out.Name}))
}

func (r *run) hostWrite(s []uint64) {
	o, data := r.object(s[0]), r.view(s[1], s[2], 1<<32-1)
	if o.out == nil {
		r.abuse("got handle %d, which is not a product", uint32(s[0]))
	}
	if r.written += int64(len(data)); r.written > maxWritten {
		r.abuse("would make the products of this job larger than %d GiB", maxWritten>>30)
	}
	if _, err := o.out.Write(data); err != nil {
		result(s, r.failed(err))
		return
	}
	result(s, 0)
}

func (r *run) hostClose(s []uint64) {
	o, err := r.object(s[0]), error(nil)
	delete(r.objects, int32(uint32(s[0])))
	switch {
	case o.data != nil:
		err = o.data.Close()
	case o.out != nil:
		err = o.out.Close()
	}
	if err != nil {
		result(s, r.failed(err))
		return
	}
	result(s, 0)
}

// problemAt reads text, hint, path, line, column and length.
func (r *run) problemAt(s []uint64) *processor.Problem {
	if r.problems++; r.problems > maxProblems {
		r.abuse("would give more than %d warnings and errors", maxProblems)
	}
	p := &processor.Problem{
		Text: r.text(s[0], s[1]), Hint: r.text(s[2], s[3]), Path: r.text(s[4], s[5]),
		Line: int(int32(s[6])), Column: int(int32(s[7])), Length: int(int32(s[8])),
	}
	if p.Line < 0 || p.Column < 0 || p.Length < 0 {
		r.abuse("got a line, a column or a length below zero")
	}
	return p
}

func (r *run) hostWarn(s []uint64) { r.job.Warn(*r.problemAt(s)) }

// hostFail takes a tenth parameter: a handle from the function error with the cause, or 0. An error that
// is passed unchanged keeps its meaning for the host.
func (r *run) hostFail(s []uint64) {
	p := r.problemAt(s)
	if cause := s[9]; uint32(cause) != 0 {
		if p.Err = r.object(cause).err; p.Err == nil {
			r.abuse("got a handle as its cause that error did not give")
		}
		if p.Text == p.Err.Error() && p.Hint == "" && p.Line == 0 && p.Path == "" {
			r.fails = append(r.fails, p.Err)
			return
		}
	}
	r.fails = append(r.fails, p)
}

func (r *run) hostError(s []uint64) {
	if r.err == nil {
		r.abuse("is called, and nothing went wrong")
	}
	result(s, r.open(&object{err: r.err, text: []byte(r.err.Error())}))
}
