package written

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/varint"
	"github.com/kiln-pipeline/kiln/processor"
)

// Kinds of file, as their first bytes; the last is the version.
const (
	jobMagic = "KILN\x00job\x02"
	logMagic = "KILN\x00log\x02"
)

// encoder writes the parts of jobs and logs.
type encoder struct{ varint.Encoder }

func (e *encoder) strs(list []string) {
	e.Uint(uint64(len(list)))
	for _, s := range list {
		e.Str(s)
	}
}

func (e *encoder) content(c Content) {
	e.Buf = append(e.Buf, c.SHA256[:]...)
	e.Uint(uint64(c.Size))
}

func (e *encoder) named(list []Named) {
	e.Uint(uint64(len(list)))
	for _, n := range list {
		e.Str(n.Name)
		e.Str(n.Text)
	}
}

func (d *decoder) named() (list []Named) {
	for range d.Count(2) {
		if list = append(list, Named{d.Str(), d.Str()}); d.Err != nil {
			return nil
		}
	}
	return list
}

func (e *encoder) program(c *Program) {
	if e.Bool(c != nil); c == nil {
		return
	}
	e.strs(c.Args)
	e.strs(c.Env)
	e.Str(c.Output)
	e.named(c.Outputs)
	e.Bool(c.Network)
	e.named(c.Settings)
	e.Bool(c.Traced)
}

func (e *encoder) folders(f *Folders) {
	if e.Bool(f != nil); f == nil {
		return
	}
	e.strs(f.Roots)
	e.Str(f.Scratch)
	for _, list := range [][]string{f.Built, f.State, f.Shipped} {
		e.strs(list)
	}
}

func (d *decoder) folders() *Folders {
	if !d.Bool() {
		return nil
	}
	return &Folders{Roots: d.strs(), Scratch: d.Str(), Built: d.strs(), State: d.strs(), Shipped: d.strs()}
}

func (d *decoder) program() *Program {
	if !d.Bool() {
		return nil
	}
	return &Program{
		Args: d.strs(), Env: d.strs(), Output: d.Str(), Outputs: d.named(), Network: d.Bool(), Settings: d.named(), Traced: d.Bool(),
	}
}

// decoder reads what encoder wrote.
type decoder struct{ varint.Decoder }

func (d *decoder) strs() []string {
	var list []string
	for range d.Count(1) {
		if list = append(list, d.Str()); d.Err != nil {
			return nil
		}
	}
	return list
}

func (d *decoder) content() (c Content) {
	copy(c.SHA256[:], d.Take(uint64(len(c.SHA256))))
	n := d.Uint()
	if n > math.MaxInt64 {
		d.Fail()
		return c
	}
	c.Size = int64(n)
	return c
}

func (e *encoder) product(p *processor.Product) {
	if e.Bool(p != nil); p == nil {
		return
	}
	for _, s := range []string{p.AssetID, p.UUID, p.Name, p.Type, p.File, p.Extension, p.Processor, p.Part, p.Platform} {
		e.Str(s)
	}
	e.Uint(uint64(p.SubID))
}

func (d *decoder) product() *processor.Product {
	if !d.Bool() {
		return nil
	}
	p := &processor.Product{
		AssetID: d.Str(), UUID: d.Str(), Name: d.Str(), Type: d.Str(), File: d.Str(), Extension: d.Str(), Processor: d.Str(), Part: d.Str(),
		Platform: d.Str(),
	}
	p.SubID = d.Uint32()
	return p
}

func (e *encoder) asset(a *processor.Asset) {
	e.Str(a.ID)
	e.Str(a.UUID)
	e.Str(a.Path)
	e.Bool(a.Folder)
	e.Bool(a.Made)
}

func (d *decoder) asset() processor.Asset {
	return processor.Asset{ID: d.Str(), UUID: d.Str(), Path: d.Str(), Folder: d.Bool(), Made: d.Bool()}
}

func (e *encoder) output(o *processor.Output) {
	if e.Bool(o != nil); o == nil {
		return
	}
	e.Str(o.Name)
	e.Str(o.Type)
	e.Str(o.Extension)
	e.Uint(uint64(len(o.References)))
	for _, r := range o.References {
		e.Str(r.UUID)
		e.Uint(uint64(r.SubID))
		e.Bool(r.Required)
	}
	e.Uint(uint64(len(o.Facts)))
	for _, name := range slices.Sorted(maps.Keys(o.Facts)) {
		e.Str(name)
		e.Str(o.Facts[name])
	}
	e.Bool(o.Hidden)
}

func (d *decoder) output() *processor.Output {
	if !d.Bool() {
		return nil
	}
	o := &processor.Output{Name: d.Str(), Type: d.Str(), Extension: d.Str()}
	for range d.Count(1) {
		r := processor.Reference{UUID: d.Str()}
		r.SubID, r.Required = d.Uint32(), d.Bool()
		o.References = append(o.References, r)
	}
	last := ""
	for i := range d.Count(1) {
		name := d.Str()
		if i > 0 && name <= last {
			d.Fail()
		}
		if o.Facts == nil {
			o.Facts = map[string]string{}
		}
		o.Facts[name], last = d.Str(), name
	}
	o.Hidden = d.Bool()
	return o
}

func (e *encoder) asked(r *Asked) {
	for _, s := range []string{r.Processor, r.Name, r.Settings, r.Path, r.Extension} {
		e.Str(s)
	}
	e.product(r.Product)
	if e.Bool(r.Bytes != nil); r.Bytes != nil {
		e.content(*r.Bytes)
	}
}

func (d *decoder) asked() Asked {
	r := Asked{Processor: d.Str(), Name: d.Str(), Settings: d.Str(), Path: d.Str(), Extension: d.Str(), Product: d.product()}
	if d.Bool() {
		c := d.content()
		r.Bytes = &c
	}
	return r
}

func (e *encoder) problem(p *processor.Problem) {
	if e.Bool(p != nil); p == nil {
		return
	}
	for _, s := range []string{p.Code, p.Path, p.Text, p.Hint} {
		e.Str(s)
	}
	for _, n := range []int{p.Line, p.Column, p.Length} {
		e.Int(int64(n))
	}
}

func (d *decoder) problem() *processor.Problem {
	if !d.Bool() {
		return nil
	}
	p := &processor.Problem{Code: d.Str(), Path: d.Str(), Text: d.Str(), Hint: d.Str()}
	for _, n := range []*int{&p.Line, &p.Column, &p.Length} {
		v := d.Int()
		if v > math.MaxInt32 || v < math.MinInt32 {
			d.Fail()
		}
		*n = int(v)
	}
	return p
}

func (e *encoder) call(c *Call) {
	e.Buf = append(e.Buf, byte(c.Kind))
	e.strs(c.Names)
	e.Bool(c.Yes)
	e.product(c.Product)
	e.Uint(uint64(len(c.Requests)))
	for i := range c.Requests {
		e.asked(&c.Requests[i])
	}
	e.output(c.Output)
	e.content(c.Content)
	e.problem(c.Problem)
	e.Int(c.Number)
}

func (d *decoder) call() Call {
	c := Call{Kind: Kind(d.Byte()), Names: d.strs(), Yes: d.Bool(), Product: d.product()}
	for range d.Count(1) {
		if c.Requests = append(c.Requests, d.asked()); d.Err != nil {
			return Call{}
		}
	}
	c.Output, c.Content, c.Problem, c.Number = d.output(), d.content(), d.problem(), d.Int()
	if c.Kind == 0 || c.Kind >= kinds || !c.complete() {
		d.Fail()
	}
	return c
}

// complete reports whether a call has the fields that its kind requires.
func (c *Call) complete() bool {
	switch c.Kind {
	case Open, Exists, Glob, Find, Env, Assets, Tool, ID:
		return len(c.Names) == 1
	case Reference, Settings:
		return len(c.Names) == 2
	case Try:
		return len(c.Names) == 3
	case Read:
		return c.Product != nil
	case Adopt:
		return c.Product != nil && c.Output != nil
	case Create:
		return c.Output != nil
	case Warn:
		return c.Problem != nil
	}
	return true
}

func (e *encoder) answer(a *Answer) {
	e.Str(a.Missing)
	e.content(a.Content)
	e.Bool(a.Yes)
	e.strs(a.Names)
	e.asset(&a.Asset)
	e.Uint(uint64(len(a.Products)))
	for _, list := range a.Products {
		e.Uint(uint64(len(list)))
		for i := range list {
			e.product(&list[i])
		}
	}
}

func (d *decoder) answer() Answer {
	a := Answer{Missing: d.Str(), Content: d.content(), Yes: d.Bool(), Names: d.strs(), Asset: d.asset()}
	for range d.Count(1) {
		var list []processor.Product
		for range d.Count(1) {
			p := d.product()
			if p == nil {
				d.Fail()
				return Answer{}
			}
			list = append(list, *p)
		}
		a.Products = append(a.Products, list)
	}
	return a
}

// Same reports whether two answers are equal.
func (a Answer) Same(b Answer) bool {
	x, y := &encoder{}, &encoder{}
	x.answer(&a)
	y.answer(&b)
	return string(x.Buf) == string(y.Buf)
}

// Encode writes a job. Equal jobs have equal bytes.
func (j *Job) Encode() []byte {
	e := begin(jobMagic)
	e.Str(j.Version)
	e.Hash(&j.Kiln)
	e.Str(j.Processor)
	if e.Bool(j.Own != nil); j.Own != nil {
		e.Str(j.Own.Script)
		e.Str(j.Own.Wasm)
		e.program(j.Own.Program)
		e.Bool(j.Own.Folder)
		e.Int(int64(j.Own.Version))
		e.strs(j.Own.Extensions)
		e.Int(int64(j.Own.Timeout))
		e.Int(j.Own.Memory)
	}
	e.Str(j.Part)
	e.Str(j.Platform)
	e.asset(&j.Asset)
	e.Str(j.Settings)
	e.strs(j.Inputs)
	e.folders(j.Project)
	e.Uint(uint64(len(j.Answers)))
	for _, key := range slices.Sorted(maps.Keys(j.Answers)) {
		a := j.Answers[key]
		e.Str(key)
		e.answer(&a)
	}
	return e.end()
}

// DecodeJob reads a job.
func DecodeJob(data []byte) (*Job, error) {
	d, err := open(jobMagic, data)
	if err != nil {
		return nil, err
	}
	j := &Job{Version: d.Str()}
	j.Kiln = d.Hash()
	j.Processor = d.Str()
	if d.Bool() {
		j.Own = &Own{Script: d.Str(), Wasm: d.Str(), Program: d.program(), Folder: d.Bool()}
		v := d.Int()
		if j.Own.Version = int(v); int64(j.Own.Version) != v {
			d.Fail()
		}
		j.Own.Extensions, j.Own.Timeout, j.Own.Memory = d.strs(), time.Duration(d.Int()), d.Int()
	}
	j.Part, j.Platform, j.Asset, j.Settings, j.Inputs = d.Str(), d.Str(), d.asset(), d.Str(), d.strs()
	j.Project = d.folders()
	last := ""
	for i := range d.Count(1) {
		key := d.Str()
		if i > 0 && key <= last {
			d.Fail()
		}
		if j.Answers == nil {
			j.Answers = map[string]Answer{}
		}
		j.Answers[key], last = d.answer(), key
		if d.Err != nil {
			break
		}
	}
	return j, d.close()
}

// Encode writes a log.
func (l *Log) Encode() []byte {
	e := begin(logMagic)
	e.Buf = append(e.Buf, byte(l.Outcome))
	e.Str(l.Reason)
	e.Uint(uint64(len(l.Calls)))
	for i := range l.Calls {
		e.call(&l.Calls[i])
	}
	return e.end()
}

// DecodeLog reads a log.
func DecodeLog(data []byte) (*Log, error) {
	d, err := open(logMagic, data)
	if err != nil {
		return nil, err
	}
	l := &Log{Outcome: Outcome(d.Byte()), Reason: d.Str()}
	if l.Outcome < Done || l.Outcome > Other {
		d.Fail()
	}
	for range d.Count(1) {
		if l.Calls = append(l.Calls, d.call()); d.Err != nil {
			break
		}
	}
	return l, d.close()
}

// end adds the checksum.
func (e *encoder) end() []byte {
	sum := digest.Of(e.Buf)
	return append(e.Buf, sum[:]...)
}

// begin starts a file.
func begin(magic string) *encoder { return &encoder{varint.Encoder{Buf: []byte(magic)}} }

// open checks the magic number and the checksum of a file.
func open(magic string, data []byte) (*decoder, error) {
	if kind := magic[:len(magic)-1]; len(data) > len(kind) && string(data[:len(kind)]) == kind && data[len(kind)] != magic[len(kind)] {
		return nil, ErrOther
	}
	if len(data) < len(magic)+digest.Size || len(data) > maxFile || string(data[:len(magic)]) != magic {
		return nil, ErrFormat
	}
	body := data[:len(data)-digest.Size]
	if digest.Of(body) != digest.Hash(data[len(body):]) {
		return nil, ErrFormat
	}
	return &decoder{varint.Decoder{Buf: body[len(magic):]}}, nil
}

// close returns an error unless everything was read without one.
func (d *decoder) close() error {
	if d.Err != nil || len(d.Buf) > 0 {
		return ErrFormat
	}
	return nil
}
