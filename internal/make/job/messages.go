package job

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

// maxSourceText is the largest source file that is read again to show one of its lines, in bytes.
const maxSourceText = 16 << 20

// display returns the displayed form of a source path, relative to the project folder.
func (j *Job) display(path string) string {
	shown := j.w.Display(path)
	if path == "" {
		shown = j.w.DisplayAsset(j.t.Asset)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.shown == nil {
		j.shown = map[string]string{}
	}
	j.shown[shown] = path
	return shown
}

func (w *World) Display(path string) string {
	if _, root, ok := w.Table.Find(path); ok {
		return w.prefixes[root] + path
	}
	if path == "" || task.IsFileName(path) { // the source of a request, which is not a file
		return path
	}
	return w.prefixes[0] + path
}

// DisplayAsset returns an asset's source path for display, or its id if it has no source.
func (w *World) DisplayAsset(a *asset.Asset) string {
	if a.Path == "" && a.Declared {
		return a.ID
	}
	return w.Display(a.Path)
}

// said returns what a job that ended with an error, or nil, has to say: its warnings, and the problems that the error holds.
func (j *Job) said(err error) diag.List {
	var c diag.Collector
	j.mu.Lock() // what a processor left running may still hold it
	warnings := j.warnings.List()
	j.mu.Unlock()
	for _, m := range warnings {
		c.Add(m)
	}
	j.messages(err, c.Add)
	return c.List()
}

// messages turns a job's error into messages. One error may hold several problems.
func (j *Job) messages(err error, add func(*diag.Message)) {
	if err == nil {
		return
	}
	var cycle *engine.CycleError
	var need *engine.NeedError
	here := diag.Pos{File: j.display(j.t.Asset.Path)}
	switch {
	case errors.As(err, &cycle):
		add(diag.Errorf(diag.Cycle, here, "%s", cycleText(cycle.Cycle)).WithHint("remove one of these dependencies"))
	case errors.As(err, &need) && strings.HasPrefix(task.JobOf(need.Root), task.Name(j.t.Asset.ID, j.t.Among(), "")+task.PartMark):
		// a part of the same job has reported the reason
	case errors.As(err, &need):
		if j.needProblems(err, add) {
			return
		}
		m := diag.Errorf(diag.NeedsFailed, here, "needs %s, which failed", task.AssetOf(need.Name))
		if need.Root != need.Name {
			m.WithNote("the cause is %s", task.AssetOf(need.Root))
		}
		add(m)
	case !j.problems(err, add):
		add(j.plain(err))
	}
}

// needProblems adds the problems in which a processor itself explains why it needed something that failed, and reports whether there
// are any.
func (j *Job) needProblems(err error, add func(*diag.Message)) (some bool) {
	switch e := err.(type) {
	case *processor.Problem:
		var need *engine.NeedError
		if errors.As(e.Err, &need) {
			m := j.problem(e)
			m.Code = diag.NeedsFailed
			add(m)
			return true
		}
	case interface{ Unwrap() []error }:
		for _, x := range e.Unwrap() {
			some = j.needProblems(x, add) || some
		}
	}
	return some
}

// plain returns the message for an error without a code of its own.
func (j *Job) plain(err error) *diag.Message {
	here := diag.Pos{File: j.display(j.t.Asset.Path)}
	if disk.Full(err) {
		return diag.Errorf(diag.OutputUnwritable, here, "the disk is full").
			WithHint("make room, then build again; what was built is kept")
	}
	text := strings.TrimSuffix(err.Error(), " ("+engine.ErrPassing.Error()+")")
	var missing *fs.PathError
	switch {
	case !errors.Is(err, os.ErrNotExist):
	case errors.As(err, &missing):
		return diag.Errorf(diag.SourceMissing, here, "it needs %q, which does not exist", missing.Path).
			WithHint("put the file there, or correct what names it")
	default:
		return diag.Errorf(diag.SourceMissing, here, "%s", text)
	}
	return diag.Errorf(diag.JobFailed, here, "processor %q: %s", j.t.Proc.Info.Name, text)
}

// problems adds the problems and messages in a tree of errors, and reports whether there are any.
func (j *Job) problems(err error, add func(*diag.Message)) (some bool) {
	switch e := err.(type) {
	case nil:
		return false
	case *diag.Message:
		own := *e // several jobs may have it
		own.Notes = slices.Clone(e.Notes)
		add(&own)
		return true
	case *processor.Problem:
		add(j.problem(e))
		return true
	case interface{ Unwrap() []error }:
		for _, x := range e.Unwrap() {
			some = j.problems(x, add) || some
		}
		return some
	case interface{ Unwrap() error }:
		return j.problems(e.Unwrap(), add)
	}
	return false
}

// problem turns a processor's problem into a message. Its line is added by quote, if the message is one of those that are kept.
func (j *Job) problem(p *processor.Problem) *diag.Message {
	path := p.Path
	if path == "" {
		path = j.t.Asset.Path
	}
	code := diag.Code(p.Code)
	if code == "" {
		code = diag.JobFailed
	}
	m := diag.Errorf(code, diag.Pos{File: j.display(path), Line: p.Line, Column: p.Column}, "%s", p.Text)
	m.Hint = p.Hint
	if p.Line > 0 {
		m.Length = max(1, p.Length)
	}
	return m
}

// quote adds the lines of source files to messages about them.
func (j *Job) quote(l diag.List) {
	for _, m := range l {
		if m.Pos.Line < 1 || m.Length == 0 || m.Line != "" {
			continue
		}
		j.mu.Lock()
		path, ok := j.shown[m.File]
		j.mu.Unlock()
		if !ok {
			continue
		}
		if lines := j.quoted(path); lines != nil {
			m.WithLine(lines, m.Length)
		} else {
			m.Length = 0
		}
	}
}

// quoted reads a source file of which a message quotes a line; nil if there is none. It counts as observed by the job,
// so that the quoted line and the job's result are of the same state. The file is read once.
func (j *Job) quoted(path string) *diag.Lines {
	i, _, ok := j.w.Table.Find(path)
	if !ok || j.w.Table.At(i).Stat.Size > maxSourceText {
		return nil
	}
	j.mu.Lock()
	lines, known := j.quotes[path]
	j.mu.Unlock()
	if known {
		return lines
	}
	if text, err := j.ReadFile(path); err == nil {
		lines = diag.NewLines(text)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.quotes == nil {
		j.quotes = map[string]*diag.Lines{}
	}
	j.quotes[path] = lines
	return lines
}

// noAsset begins the message about an asset that is missing; its name follows.
const noAsset = "there is no asset "

// missingName returns the name of the asset that a message says is missing, or "".
func missingName(m *diag.Message) string {
	name, ok := "", false
	switch m.Code {
	case diag.AssetMissing:
		name, ok = strings.CutPrefix(m.Text, noAsset)
	case diag.DataReferenceMissing:
		name, ok = strings.CutSuffix(strings.TrimPrefix(m.Text, "asset "), " does not exist")
	}
	if name, err := strconv.Unquote(name); ok && err == nil {
		return name
	}
	return ""
}

// remark is a message in the form that a trace stores.
type remark struct {
	diag.Message
	Path string `json:"path,omitempty"` // of the source file that the message is about
}

// keep encodes a job's messages for a trace.
func (j *Job) keep(l diag.List) []byte {
	all := make([]remark, len(l))
	j.mu.Lock() // what a processor left running may still hold it
	defer j.mu.Unlock()
	for i, m := range l {
		if a := j.t.Asset; a.Declared && a.Path != "" && m.Code != diag.SourceMissing { // several assets may have this source
			m.WithNote("this is about the asset %q", a.ID)
		}
		all[i] = remark{*m, j.shown[m.File]}
	}
	return diag.Encode(all)
}

// cycleText names the assets of a dependency cycle of tasks. An asset may appear several times in a row: as itself and by its parts.
func cycleText(ring []string) string {
	var assets []string
	for _, n := range append(ring[:len(ring):len(ring)], ring[0]) {
		if a := task.AssetOf(n); len(assets) == 0 || assets[len(assets)-1] != a {
			assets = append(assets, a)
		}
	}
	return "needs itself: " + strings.Join(assets, " -> ")
}

// MessagesFor returns the messages of a task's trace, without warnings that rules accept.
func (w *World) MessagesFor(t *Task, tr *engine.Trace) diag.List {
	return slices.DeleteFunc(w.MessagesOf(tr), t.Asset.Allows)
}

// MessagesOf returns a trace's messages. The root of a source file, and the asset that a missing one is now, or whose name is
// similar, are looked up again, because they may change although the trace holds.
func (w *World) MessagesOf(tr *engine.Trace) diag.List {
	all := diag.Decode[remark](tr.Messages)
	l := make(diag.List, len(all))
	for i := range all {
		m := &all[i].Message
		l[i] = m
		if path := all[i].Path; path != "" {
			m.File = w.Display(path)
		}
		if name := missingName(m); name != "" {
			if a := w.Names().ByUUID(asset.UUID(name)); a != nil { // kiln mv has pinned it
				m.WithHint("it is %q now: write that", a.ID)
			} else if like := w.Names().Nearest(name); like != "" && m.Code == diag.AssetMissing {
				m.WithHint("did you mean %q?", like)
			}
		}
	}
	return l
}
