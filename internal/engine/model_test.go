package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// A graph is a world whose tasks are small programs that stand in files. A task is an asset on a platform; it reads the
// file that has the asset's name, and does what the lines say:
//
//	read FILE           looks at a file, missing or not
//	or FILE FILE        looks at the second if the first is missing
//	glob PATTERN        lists files
//	when FILE LINE      does the line if the file's content begins with "y"
//	need TASK...        asks for tasks together; fails if one of them fails
//	try TASK...         the same, and goes on if one of them fails
//	use TASK PRODUCT    asks for a task and looks at the content of one product, if it has it
//	fail                fails
//	failif FILE         fails if the file's content begins with "y"
//	passif FILE         the same, with an error that may pass
//	write PRODUCT       makes a product of all that was seen
//	half PRODUCT        makes a product that has one of two contents
//	const PRODUCT       makes a product that is always the same
//	maybe PRODUCT       makes a product, or not, by what was seen
//
// A TASK is an asset, on the same platform, or "asset@platform".

// eyes is what a program sees through: the engine's Run, or the model.
type eyes interface {
	read(file string) (string, bool)
	glob(pattern string) []string
	need(tasks ...string) ([][]engine.Product, error)
	use(task string, p engine.Product) string
	write(content string) digest.Hash
}

var errFail = errors.New("fails")

// interpret does what the program of a task says.
func interpret(e eyes, name string, version int) ([]engine.Product, error) {
	asset, platform, _ := strings.Cut(name, "@")
	text, ok := e.read(asset)
	if !ok {
		return nil, errFail
	}
	p := program{eyes: e, name: name, platform: platform, acc: []string{name, fmt.Sprint(version)}}
	for _, line := range strings.Split(text, "\n") {
		if err := p.line(strings.Fields(line)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(p.products, func(a, b engine.Product) int { return int(a.SubID) - int(b.SubID) })
	return p.products, nil
}

type program struct {
	eyes
	name, platform string
	acc            []string // all that was seen
	products       []engine.Product
}

func (p *program) saw(parts ...string) { p.acc = append(p.acc, parts...) }

func (p *program) see(file string) (string, bool) {
	s, ok := p.read(file)
	p.saw(file, s, fmt.Sprint(ok))
	return s, ok
}

func (p *program) subjects(tasks []string) []string {
	ss := make([]string, len(tasks))
	for i, t := range tasks {
		if ss[i] = t; !strings.Contains(t, "@") {
			ss[i] = t + "@" + p.platform
		}
	}
	return ss
}

func (p *program) line(f []string) error {
	if len(f) == 0 {
		return nil
	}
	switch f[0] {
	case "read":
		p.see(f[1])
	case "or":
		if _, ok := p.see(f[1]); !ok {
			p.see(f[2])
		}
	case "glob":
		p.saw(p.glob(f[1])...)
	case "when":
		if s, _ := p.see(f[1]); strings.HasPrefix(s, "y") {
			return p.line(f[2:])
		}
	case "need", "try":
		return p.ask(f[0] == "try", p.subjects(f[1:]))
	case "use":
		return p.content(p.subjects(f[1:2])[0], f[2])
	case "fail":
		return errFail
	case "failif":
		if s, _ := p.see(f[1]); strings.HasPrefix(s, "y") {
			return errFail
		}
	case "passif":
		if s, _ := p.see(f[1]); strings.HasPrefix(s, "y") {
			return engine.ErrPassing
		}
	case "write", "half", "const", "maybe":
		p.make(f[0], f[1])
	default:
		return fmt.Errorf("no such line: %q", f)
	}
	return nil
}

func (p *program) ask(try bool, subjects []string) error {
	all, err := p.need(subjects...)
	if err != nil && !try {
		return err
	}
	if err != nil {
		p.saw("error", err.Error())
		return nil
	}
	for _, ps := range all {
		for i := range ps {
			p.saw(ps[i].Name, ps[i].Type)
		}
	}
	return nil
}

func (p *program) content(subject, product string) error {
	all, err := p.need(subject)
	if err != nil {
		return err
	}
	for _, pr := range all[0] {
		if pr.Name == product {
			p.saw(p.use(subject, pr))
		}
	}
	return nil
}

func (p *program) make(how, name string) {
	id := uint32(name[0])
	for _, o := range p.products {
		if o.SubID == id {
			return
		}
	}
	h := hashOf(p.acc...)
	content := p.name + " " + name // no two tasks make the same blob: which is lost would depend on who is first
	switch how {
	case "write":
		content += " " + h.String()
	case "half":
		content += fmt.Sprint(" ", h[0]&1)
	case "maybe":
		if h[0]&1 == 0 {
			return
		}
	}
	p.products = append(p.products, engine.Product{
		SubID: id, Name: name, Type: "t", File: p.name + "." + name, Hash: p.write(content), Size: int64(len(content)),
	})
}

// runEyes sees through the engine.
type runEyes struct {
	w *world
	r *engine.Run
}

func (e runEyes) read(file string) (string, bool) { return e.w.see(e.r, file) }
func (e runEyes) glob(pattern string) []string {
	found := e.w.glob(pattern)
	e.r.See(sawGlob, pattern, hashList(found))
	return found
}
func (e runEyes) need(tasks ...string) ([][]engine.Product, error) { return e.r.Need(tasks...) }
func (e runEyes) use(task string, p engine.Product) string {
	e.r.Use(task, p)
	s, ok := e.w.content(p.Hash)
	if !ok {
		panic("a product that Need gave is not there")
	}
	return s
}
func (e runEyes) write(content string) digest.Hash { return e.w.blob(content) }

// truth is what a task comes to, found without any cache.
type truth struct {
	outcome  engine.Outcome
	products []engine.Product
	root     string
	cycle    []string
	passing  bool
	asked    [][]string // groups, in order
}

// model builds everything from nothing, naively: it tries each task again and again from its start until all that it
// needs is there. Tasks that then wait for ever are in cycles or behind one: each waits for the first
// of the group it asked for that is not done, and cycles are what following that leads back to.
type model struct {
	w        *world
	versions map[string]int
	done     map[string]*truth
	waits    map[string]string // for the first that is not done
	contents map[digest.Hash]string
}

func rebuild(w *world, versions map[string]int, wanted []*engine.Task) *model {
	m := &model{w: w, versions: versions, done: map[string]*truth{}, waits: map[string]string{}, contents: map[digest.Hash]string{}}
	for _, t := range wanted {
		m.waits[t.Name] = ""
	}
	for len(m.waits) > 0 {
		if !m.round() {
			m.cycles()
		}
	}
	return m
}

// round tries all that is not done.
func (m *model) round() (progress bool) {
	for name := range m.waits {
		before := len(m.waits)
		if t, on := m.try(name); t != nil {
			m.done[name] = t
			delete(m.waits, name)
			progress = true
		} else {
			m.waits[name] = on
		}
		progress = progress || len(m.waits) > before
	}
	return progress
}

func (m *model) cycles() {
	found := map[string][]string{}
	for name := range m.waits {
		cycle := []string{name}
		for at := m.waits[name]; at != name; at = m.waits[at] {
			if slices.Contains(cycle, at) {
				cycle = nil // name is behind a cycle
				break
			}
			cycle = append(cycle, at)
		}
		if cycle != nil {
			found[name] = cycle
		}
	}
	in := map[string]*truth{}
	for name, cycle := range found {
		in[name] = &truth{outcome: engine.Cyclic, cycle: fromSmallest(cycle), asked: m.askedSoFar(name)}
	}
	for name, t := range in {
		m.done[name] = t
		delete(m.waits, name)
	}
	if len(found) == 0 {
		panic("the model is stuck")
	}
}

func fromSmallest(cycle []string) []string {
	at := slices.Index(cycle, slices.Min(cycle))
	return append(slices.Clone(cycle[at:]), cycle[:at]...)
}

type blocked struct{ on string }

func (m *model) try(name string) (t *truth, on string) {
	e := &modelEyes{m: m}
	defer func() {
		if v := recover(); v != nil {
			b, ok := v.(blocked)
			if !ok {
				panic(v)
			}
			t, on = nil, b.on
		}
	}()
	ps, err := interpret(e, name, m.versions[name])
	t = &truth{asked: e.asked}
	var need *engine.NeedError
	switch {
	case err == nil:
		t.outcome, t.products = engine.Succeeded, ps
	case errors.As(err, &need):
		t.outcome, t.root = engine.NeedsFailed, need.Root
	default:
		t.outcome, t.passing = engine.Failed, errors.Is(err, engine.ErrPassing)
	}
	return t, ""
}

// askedSoFar is for a task that waits.
func (m *model) askedSoFar(name string) (asked [][]string) {
	e := &modelEyes{m: m}
	defer func() {
		if _, ok := recover().(blocked); !ok {
			panic(name + " does not wait")
		}
		asked = e.asked
	}()
	interpret(e, name, m.versions[name])
	return nil
}

type modelEyes struct {
	m     *model
	asked [][]string
}

func (e *modelEyes) read(file string) (string, bool) { s, ok := e.m.w.files[file]; return s, ok }
func (e *modelEyes) glob(pattern string) []string    { return e.m.w.glob(pattern) }
func (e *modelEyes) use(_ string, p engine.Product) string {
	return e.m.contents[p.Hash]
}
func (e *modelEyes) write(content string) digest.Hash {
	h := digest.Of([]byte(content))
	e.m.contents[h] = content
	return h
}

func (e *modelEyes) need(tasks ...string) ([][]engine.Product, error) {
	e.asked = append(e.asked, tasks)
	on := ""
	for _, t := range tasks {
		if e.m.w.tasks[t] == nil || e.m.done[t] != nil {
			continue
		}
		if _, ok := e.m.waits[t]; !ok {
			e.m.waits[t] = ""
		}
		if on == "" {
			on = t
		}
	}
	if on != "" {
		panic(blocked{on})
	}
	all := make([][]engine.Product, len(tasks))
	for i, t := range tasks {
		if e.m.w.tasks[t] == nil {
			return nil, fmt.Errorf("%s: %w", t, fs.ErrNotExist)
		}
		d := e.m.done[t]
		switch d.outcome {
		case engine.Succeeded:
			all[i] = d.products
		case engine.NeedsFailed:
			return nil, &engine.NeedError{Subject: t, Name: t, Root: d.root}
		default:
			return nil, &engine.NeedError{Subject: t, Name: t, Root: t}
		}
	}
	return all, nil
}

// least works out which tasks have to run, and which have to be looked at at all.
type least struct {
	*model
	traces  map[engine.Key][]*engine.Trace
	blobs   map[digest.Hash]string // that are there when the build begins
	forced  map[string]bool
	visited map[string]bool
	runs    map[string]bool
}

func (l *least) visit(name string) {
	t := l.w.tasks[name]
	if t == nil || l.visited[name] {
		return
	}
	l.visited[name] = true
	if !l.forced[name] {
		for _, tr := range l.traces[t.Key] {
			if l.holds(t, tr) {
				return
			}
		}
	}
	l.runs[name] = true
	for _, group := range l.done[name].asked {
		for _, n := range group {
			l.visit(n)
		}
	}
}

func (l *least) holds(t *engine.Task, tr *engine.Trace) bool {
	if tr.Fingerprint != t.Fingerprint {
		return false
	}
	for _, o := range tr.Observations {
		var same bool
		switch o.Kind {
		case sawFile:
			same = o.Value == l.w.hashFile(o.Subject)
		case sawGlob:
			same = o.Value == hashList(l.w.glob(o.Subject))
		default:
			l.visit(o.Subject)
			same = o.Value == l.value(t.Name, o)
		}
		if !same {
			return false
		}
	}
	for _, p := range tr.Products {
		if _, ok := l.blobs[p.Hash]; !ok {
			return false
		}
	}
	return true
}

// value is what the engine's own observations should have recorded.
func (l *least) value(who string, o engine.Observation) digest.Hash {
	if l.w.tasks[o.Subject] == nil {
		return digest.Hash{}
	}
	d := l.done[o.Subject]
	switch {
	case d.outcome == engine.Cyclic && slices.Contains(d.cycle, who):
		return digest.Build("cycle").Str("ring", strings.Join(d.cycle, "\x00")).Sum()
	case d.outcome == engine.NeedsFailed:
		return failed(d.root)
	case d.outcome != engine.Succeeded:
		return failed(o.Subject)
	case o.Kind == engine.Outline:
		b := digest.Build("outline")
		for _, p := range d.products {
			b.Str("name", p.Name).Str("type", p.Type).Str("file", p.File)
		}
		return b.Sum()
	}
	for _, p := range d.products {
		if p.SubID == o.SubID {
			return p.Hash
		}
	}
	return digest.Hash{}
}

// failed is the value of a failure, which begins with a mark that people's words are made from.
func failed(root string) digest.Hash {
	h := digest.Build("task failed").Str("root", root).Sum()
	copy(h[:], "\x00failed\x00")
	return h
}
