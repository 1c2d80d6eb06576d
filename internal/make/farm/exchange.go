package farm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
	"github.com/kiln-pipeline/kiln/processor"
)

// exchange is a job sent to a worker, in one round or several.
type exchange struct {
	f          *Farm
	w          *job.World
	j          *job.Job
	unrecorded *job.Job // answers questions that may not be asked
	client     *reapi.Client
	job        written.Job
	inputs     map[string]reapi.Input // by path, without the job itself
	deadline   time.Duration
	patience   time.Duration
	waited     time.Duration // for answers
	at         engine.Remote // what is known of the run there
	properties map[string]string
}

// moved changes what is known of the job's run there, and says so.
func (x *exchange) moved(change func(at *engine.Remote)) {
	if change(&x.at); x.j != nil { // else it is a trial
		at := x.at
		x.j.Moved(&at)
	}
}

func inputOf(data []byte) reapi.Input {
	return reapi.Input{
		Blob: share.Blob{SHA256: sha256.Sum256(data), Size: int64(len(data))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// begin encodes a job.
func (c *Dispatcher) begin(ctx context.Context, j *job.Job, t *job.Task) (*exchange, error) {
	open, cancel := context.WithTimeout(ctx, c.f.place.Timeout)
	defer cancel()
	client, program, err := c.f.opened(open)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	carried := c.carry(t.Proc.Info.Name)
	c.mu.Unlock()
	x := &exchange{
		f: c.f, w: c.w, j: j, unrecorded: j.Unrecorded(ctx), client: client, inputs: map[string]reapi.Input{c.f.place.program(): program},
		deadline: c.deadline(j.Last()), patience: c.patience(t, j.Last()), properties: carried.properties,
		job: written.Job{
			Version: c.f.version, Kiln: c.f.kiln,
			Processor: t.Proc.Info.Name, Own: carried.own, Part: t.Part, Platform: t.Platform, Asset: j.Asset(),
			Settings: string(t.On.Canonical), Inputs: j.Inputs(), Answers: map[string]written.Answer{},
		},
	}
	for path, in := range carried.files {
		x.inputs[path] = in
	}
	if carried.traced() || carried.command() == nil && ranProgram(j.Last()) {
		x.job.Project = carried.project
	}
	x.predict(ctx)
	return x, nil
}

// ranProgram reports whether a processor that is no program ran one in its last run, and so may run one that is traced: each run of a
// program says for itself whether it is. If that is wrong, a traced program has to run here, and any other runs as well.
func ranProgram(last *engine.Trace) bool {
	return last != nil && slices.ContainsFunc(last.Observations, func(o engine.Observation) bool { return o.Kind == job.SawRoots })
}

// predict answers what the processor is expected to ask: for its source, for what a command is given, and for what it looked at last time.
func (x *exchange) predict(ctx context.Context) {
	expect := func(kind written.Kind, names ...string) { x.expect(&written.Call{Kind: kind, Names: names}) }
	if path := x.job.Asset.Path; path != "" && !x.job.Asset.Folder {
		expect(written.Open, path)
		expect(written.Source)
	}
	if x.job.Own != nil && x.job.Own.Program != nil {
		expect(written.Tool, x.job.Own.Program.Args[0])
		for _, path := range x.handed() {
			expect(written.Open, path)
		}
	}
	if x.traced() || x.job.Own != nil && x.job.Own.Program != nil {
		x.needed(ctx)
	}
	last := x.j.Last()
	if last == nil {
		return
	}
	for i := range last.Observations {
		switch o := &last.Observations[i]; o.Kind {
		case job.SawFile:
			expect(written.Open, o.Subject)
		case job.SawExists:
			expect(written.Exists, o.Subject)
		case job.SawGlob:
			expect(written.Glob, o.Subject)
		case job.SawAsset:
			expect(written.Find, o.Subject)
		case job.SawEnv:
			expect(written.Env, o.Subject)
		case job.SawTool:
			expect(written.Tool, o.Subject)
			if x.traced() {
				for _, name := range x.w.Beside(o.Subject, written.Above) {
					expect(written.Tool, name)
				}
			}
		case job.SawSettings:
			s := task.ParseSubject(o.Subject)
			expect(written.Settings, s.Asset, s.Processor)
		case job.SawID:
			_, product := job.Numbered(o.Subject)
			expect(written.ID, product)
		}
	}
}

// needed answers what a command asks of the products that its job needs by hand: it reads all of them. They are made already. What this
// records is forgotten before the worker's questions are.
func (x *exchange) needed(ctx context.Context) {
	answer := func(c *written.Call) (a written.Answer, ok bool) {
		a, err := x.answer(ctx, x.j, c)
		if err == nil {
			x.job.Answers[c.Key()] = a
		}
		return a, err == nil
	}
	a, _ := answer(&written.Call{Kind: written.Needed})
	for _, p := range slices.Concat(a.Products...) {
		if _, ok := answer(&written.Call{Kind: written.Read, Product: &p}); !ok {
			return
		}
	}
}

// handed are the source files that a command gets to see, and it notes what lists they are from.
func (x *exchange) handed() (paths []string) {
	globs := x.job.Inputs
	if x.job.Asset.Folder {
		globs = append([]string{processor.QuoteGlob(x.job.Asset.Path) + "/**"}, globs...)
	}
	for _, glob := range globs {
		c := &written.Call{Kind: written.Glob, Names: []string{glob}}
		x.expect(c)
		paths = append(paths, x.job.Answers[c.Key()].Names...)
	}
	return paths
}

// expect answers a question that may be asked, if that is possible without a record.
func (x *exchange) expect(c *written.Call) {
	if c.Kind == written.Reference {
		c = &written.Call{Kind: written.Find, Names: c.Names[:1]}
	}
	if _, known := x.job.Answers[c.Key()]; known {
		return
	}
	if a, err := x.answer(context.Background(), x.unrecorded, c); err == nil {
		x.job.Answers[c.Key()] = a
	}
}

// round lets a worker run the job, and reads its log.
func (x *exchange) round(ctx context.Context) (*reapi.Ran, *written.Log, error) {
	x.inputs[written.JobFile] = inputOf(x.job.Encode())
	if x.j != nil { // else it is a trial
		defer x.j.Elsewhere(x.patience)()
	}
	ran, err := x.client.Run(ctx, &reapi.Action{
		Args: []string{"./" + x.f.place.program(), written.Command}, Inputs: x.inputs, Output: written.LogFile, Folder: written.OutFolder,
		Properties: x.properties, Timeout: x.deadline, Queue: queueTimes * x.f.place.Timeout,
		Stage: func(stage, worker string) {
			x.moved(func(at *engine.Remote) { at.Stage, at.Worker = stage, cmp.Or(worker, at.Worker) })
		},
	})
	if err != nil {
		return nil, nil, err
	}
	if ran.Code != 0 || ran.Output == nil {
		return nil, nil, fmt.Errorf("a worker could not run this kiln: it ended with %d: %s", ran.Code, firstLine(ran.Stderr))
	}
	log, err := written.DecodeLog(ran.Output)
	if errors.Is(err, written.ErrOther) || err == nil && log.Outcome == written.Other {
		err = x.f.other(log)
	}
	return ran, log, err
}

// other is the error of a worker that runs another kiln: a message without a place. log is nil if that writes another format.
func (f *Farm) other(log *written.Log) error {
	run := "run another version of Kiln"
	if log != nil && log.Reason != "" {
		run = "run Kiln " + log.Reason
	}
	if f.place.Kiln != "" {
		run += ", which `kiln` in [execution] names"
	}
	this := "this is Kiln " + f.version
	if log != nil && log.Reason == f.version {
		this = "this is the same version, with other processors"
	}
	return diag.Warningf(diag.FarmOther, diag.Pos{}, "the farm %s: workers %s; %s", f.place.Remote, run, this).
		WithHint("have `kiln` in [execution] name a program of this version, with the same processors, or leave it out: " +
			"then workers are sent this one")
}

func firstLine(text []byte) string {
	text, _, _ = bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	if len(text) > 200 {
		text = text[:200]
	}
	return string(text)
}

// replay asks here what the processor asked there. again means that the job has to be sent again, because an answer was
// missing or wrong. Otherwise the job has everything that the processor made.
func (x *exchange) replay(ctx context.Context, log *written.Log) (again bool, err error) {
	if log.Outcome == written.Local {
		return false, fmt.Errorf("%w: %s", errLocal, log.Reason)
	}
	began := time.Now()
	defer func() { x.waited += time.Since(began) }()
	x.j.Rewind()
	for i := range log.Calls {
		c := &log.Calls[i]
		if !c.Kind.IsQuestion() {
			continue
		}
		same, err := x.compare(ctx, c)
		if err != nil {
			return false, err
		}
		if !same { // the processor may not have asked the questions after this one
			for k := range log.Calls[i+1:] {
				if c := &log.Calls[i+1+k]; c.Kind.IsQuestion() {
					x.expect(c)
				}
			}
			return true, nil
		}
	}
	if log.Outcome != written.Done {
		return false, fmt.Errorf("%w: it needs nothing that was missing", errLocal)
	}
	x.j.Rewind() // now in order, together with what it made
	for i := range log.Calls {
		c := &log.Calls[i]
		if !c.Kind.IsQuestion() {
			if err := x.effect(ctx, c); err != nil {
				return false, err
			}
		} else if same, err := x.compare(ctx, c); err != nil || !same {
			return false, errors.Join(errLocal, err)
		}
	}
	return false, nil
}

// compare asks the question here and reports whether the worker had the same answer. The next round will have the right
// one.
func (x *exchange) compare(ctx context.Context, c *written.Call) (same bool, err error) {
	a, err := x.answer(ctx, x.j, c)
	if err != nil {
		return false, err
	}
	key := c.Key()
	if c.Kind == written.Reference {
		key = (&written.Call{Kind: written.Find, Names: c.Names[:1]}).Key()
	}
	was, known := x.job.Answers[key]
	x.job.Answers[key] = a
	return known && was.Same(a), nil
}

// answer asks a job a question.
func (x *exchange) answer(ctx context.Context, j *job.Job, c *written.Call) (a written.Answer, err error) {
	switch c.Kind {
	case written.Open:
		if a.Content, err = x.source(j, c.Names[0]); err == nil {
			err = x.placed(c.Names[0], &a)
		}
	case written.Source:
		if path := x.job.Asset.Path; path != "" {
			a.Content, err = x.source(j, path)
		} else {
			_, err = j.Source()
		}
	case written.Exists:
		if a.Yes, err = j.Exists(c.Names[0]); err == nil && a.Yes {
			err = x.placed(c.Names[0], &a)
		}
	case written.Glob:
		a.Names, err = j.Glob(c.Names[0])
	case written.Find:
		a.Asset, err = j.Find(c.Names[0])
	case written.Reference:
		if _, err = j.Reference(c.Names[0], c.Names[1], c.Yes); err == nil || errors.Is(err, fs.ErrNotExist) {
			a.Asset, err = x.unrecorded.Find(c.Names[0])
		}
	case written.Env:
		if value, ok := j.Env(c.Names[0]); ok {
			a.Names = []string{value}
		}
	case written.ID:
		if id, ok := j.ResourceID(c.Names[0]); ok {
			a.Names = []string{strconv.FormatUint(uint64(id), 10)}
		}
	case written.Products:
		a.Products, err = j.Products(c.Names...)
	case written.Try:
		var list []processor.Product
		list, a.Yes, err = j.TryProducts(processor.Ask{Asset: c.Names[0], Platform: c.Names[1], Processor: c.Names[2]})
		a.Products = [][]processor.Product{list}
	case written.Assets:
		a.Names, err = assetList(j, c.Names[0])
	case written.Parts:
		a.Products, err = j.Parts(c.Names...)
	case written.ToPack:
		var list []processor.Product
		list, err = j.ToPack()
		a.Products = [][]processor.Product{list}
	case written.Request:
		a.Products, err = x.request(ctx, j, c.Requests)
	case written.Read:
		a.Content, err = x.product(j, *c.Product)
	case written.Tool:
		err = x.tool(j, c.Names[0], &a)
	case written.Needed:
		var list []processor.Product
		list, err = j.Needs()
		a.Products = [][]processor.Product{list}
	case written.Settings:
		a.Names, err = assetSettings(j, c.Names[0], c.Names[1])
	default:
		err = fmt.Errorf("%w: a question of kind %d", errLocal, c.Kind)
	}
	if err != nil && errors.Is(err, fs.ErrNotExist) {
		return written.Answer{Missing: err.Error()}, nil
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errLocal, err) // a run here fails in the same way, with its own message
	}
	return a, err
}

// source is the content of a source file.
func (x *exchange) source(j *job.Job, path string) (written.Content, error) {
	h, err := j.Content(path)
	if err != nil {
		return written.Content{}, err
	}
	return x.input(h, func() (io.ReadCloser, error) { return x.unrecorded.Open(path) })
}

// traced reports whether what a program of the job reads is traced, or may be.
func (x *exchange) traced() bool {
	return x.job.Project != nil
}

// placed adds to an answer where a source file is, for a program that is traced, and its content: one that asks whether it exists gets to
// know its size as well.
func (x *exchange) placed(path string, a *written.Answer) (err error) {
	if !x.traced() {
		return nil
	}
	file := x.unrecorded.Where(path)
	below, ok := x.w.Below(file)
	st, err := os.Stat(file)
	if err != nil || !ok {
		return fmt.Errorf("%w: links lead to %s", errLocal, path)
	}
	a.Names = append([]string{below}, executable(st)...)
	a.Content, err = x.source(x.unrecorded, path)
	return err
}

// executable is what an answer says of a file that may be executed.
func executable(st fs.FileInfo) []string {
	if st.Mode()&0o111 == 0 {
		return nil
	}
	return []string{written.Executable}
}

// product is the content of a product.
func (x *exchange) product(j *job.Job, p processor.Product) (written.Content, error) {
	h, err := j.ProductContent(p)
	if err != nil {
		return written.Content{}, err
	}
	return x.input(h, func() (io.ReadCloser, error) { return x.w.Open(h) })
}

// input makes a content available to the worker.
func (x *exchange) input(h digest.Hash, open func() (io.ReadCloser, error)) (written.Content, error) {
	b, err := x.f.sum(h, open)
	if err != nil {
		return written.Content{}, err
	}
	c := written.Content{SHA256: b.SHA256, Size: b.Size}
	x.inputs[written.InFolder+"/"+c.Name()] = reapi.Input{Blob: b, Open: open}
	return c, nil
}

// request makes the requests in a log.
func (x *exchange) request(ctx context.Context, j *job.Job, list []written.Asked) ([][]processor.Product, error) {
	requests := make([]processor.Request, len(list))
	for i, asked := range list {
		r := &requests[i]
		*r = processor.Request{Processor: asked.Processor, Name: asked.Name, Path: asked.Path, Product: asked.Product, Extension: asked.Extension}
		if asked.Settings != "" {
			raw := map[string]json.RawMessage{} // numbers keep their text, which is in the request's key
			if err := json.Unmarshal([]byte(asked.Settings), &raw); err != nil {
				return nil, err
			}
			r.Settings = map[string]any{}
			for name, value := range raw {
				r.Settings[name] = value
			}
		}
		if asked.Bytes != nil {
			if j == x.unrecorded {
				return nil, errLocal
			}
			data := bytes.NewBuffer(make([]byte, 0, min(asked.Bytes.Size, job.WholeFile)))
			if err := x.fetch(ctx, *asked.Bytes, data); err != nil {
				return nil, err
			}
			r.Bytes = data.Bytes()
		}
	}
	return j.Request(requests...)
}

// tool finds a program, or a file that one is linked with. What is of the project goes along; all else a worker has to have itself.
func (x *exchange) tool(j *job.Job, name string, a *written.Answer) error {
	file, h, err := j.ToolContent(name)
	beside := strings.HasPrefix(name, job.InProject+"../")
	switch {
	case beside && errors.Is(err, fs.ErrNotExist):
		return errBeside
	case err != nil:
		return err
	case beside:
		return errLocal
	}
	below := job.ProjectTool(name)
	switch {
	case x.traced() && (below != "" || strings.HasPrefix(name, job.InProject)):
		return x.projectPart(file, h, a)
	case below == "":
		a.Names = []string{file, h.String()}
		return nil
	}
	b, err := x.f.sum(h, func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return err
	}
	a.Content, a.Names = written.Content{SHA256: b.SHA256, Size: b.Size}, []string{"", h.String()}
	x.inputs[path.Join(written.Code, below)] = reapi.Input{Blob: b, Executable: true, Open: func() (io.ReadCloser, error) {
		return os.Open(file)
	}}
	return nil
}

// errBeside is the same wherever the project is.
var errBeside = fmt.Errorf("beside the project folder: %w", fs.ErrNotExist)

// projectPart is what a traced program accessed in the project folder: a file, a folder, or the names in it.
func (x *exchange) projectPart(file string, h digest.Hash, a *written.Answer) error {
	below, ok := x.w.Below(file)
	st, err := os.Stat(file)
	if err != nil || !ok {
		return fmt.Errorf("%w: links lead to %s", errLocal, file)
	}
	a.Names = []string{job.InProject + below, h.String()}
	if !st.IsDir() {
		a.Names = append(a.Names, executable(st)...)
		a.Content, err = x.input(h, func() (io.ReadCloser, error) { return os.Open(file) })
		return err
	}
	if a.Names = append(a.Names, written.Folder); !strings.HasSuffix(file, "/") {
		return nil
	}
	a.Names[0] += "/"
	entries, err := x.w.Entries(file)
	for _, e := range entries {
		if kind := e.Type(); kind != 0 && kind != fs.ModeDir {
			return fmt.Errorf("%w: %s is neither a file nor a folder", errLocal, filepath.Join(file, e.Name()))
		} else {
			a.Names = append(a.Names, kind.String()[:1]+e.Name())
		}
	}
	return err
}

func assetList(j *job.Job, pattern string) ([]string, error) {
	list, err := j.Assets(pattern)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(list)
	return []string{string(text)}, err
}

func assetSettings(j *job.Job, name, by string) ([]string, error) {
	all, given, err := j.AssetSettings(name, by)
	if err != nil || all == nil {
		return nil, err
	}
	text, err := json.Marshal(given)
	return []string{string(settings.Canonical(all)), string(text)}, err
}

// effect repeats here what the processor did there.
func (x *exchange) effect(ctx context.Context, c *written.Call) error {
	switch c.Kind {
	case written.Platform:
		x.j.Platform()
	case written.Adopt:
		if err := x.j.Adopt(*c.Product, *c.Output); err != nil {
			return fmt.Errorf("%w: %w", errLocal, err)
		}
	case written.Warn:
		x.j.Warn(*c.Problem)
	case written.Memory:
		x.j.UsedMemory(c.Number)
	case written.Roots:
		x.j.Roots()
	case written.Create:
		w, err := x.j.Create(*c.Output)
		if err != nil {
			return fmt.Errorf("%w: %w", errLocal, err)
		}
		if err := x.fetch(ctx, c.Content, w); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("%w: %w", errLocal, err)
		}
	}
	return nil
}
