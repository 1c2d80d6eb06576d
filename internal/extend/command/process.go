package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// errFull means that a program succeeded on a full disk: see cutShort.
var errFull = errors.New("the disk is full")

func (p *proc) Process(ctx context.Context, job processor.Job) error {
	if err := p.takes(job); err != nil {
		return err
	}
	tools, err := p.findTools(job)
	if err != nil {
		return err
	}
	v, err := p.view(ctx, job)
	if err != nil {
		return err
	}
	defer v.close()
	args, err := expand(p.args, func(ph part) ([]string, error) { return p.value(job, tools, ph) })
	if err != nil {
		return err
	}
	x := execution{job: job, v: v, tools: tools, args: args[1:]}
	if err := p.execute(ctx, &x); err != nil {
		return err
	}
	if err := p.takeDepfile(x.reads, tools); err != nil {
		return err
	}
	if err := p.publish(ctx, job, v); err != nil {
		return err
	}
	p.warn(&x)
	return nil
}

// execution is one run of a program in a view.
type execution struct {
	job   processor.Job
	v     *view
	tools map[string]string
	args  []string // without the program
	stdin *os.File // nil: nothing

	reads *reads
	out   capture
	code  int // exit code of the program
}

// execute runs the program to its end, and records what it read. It fails if the program does.
func (p *proc) execute(ctx context.Context, x *execution) error {
	timed, cancel := context.WithTimeoutCause(ctx, p.timeout, errTimeout)
	defer cancel()
	v, job := x.v, x.job
	program := x.tools[p.config.Command[0]]
	cmd := &exec.Cmd{
		Path: program,
		Args: append([]string{filepath.Base(program)}, x.args...), // as a shell would; its folder is not an input
		Dir:  v.path(viewFolder),
		Env:  environment(program, v, p.config.Env, job.Env),
	}
	if x.stdin != nil {
		cmd.Stdin = x.stdin
	}
	var done ended
	if v.sandbox != nil {
		v.alone = false
		done = v.sandbox.run(timed, cmd, &x.out)
		v.alone = done.alone
	} else {
		done = run(timed, cmd, &x.out, p.box(v))
	}
	x.reads = p.newReads(job, v)
	// Also after a failed run, because a change of one of these files may fix it.
	if err := p.record(x.reads, x.tools, done.seen); err != nil {
		return err
	}
	if exit := (*exec.ExitError)(nil); errors.As(done.err, &exit) && p.run != nil && slices.Contains(p.run.Codes, exit.ExitCode()) {
		x.code, done.err = exit.ExitCode(), nil
	}
	if done.err != nil {
		if err := p.recordFailed(x.reads); err != nil {
			return err
		}
		if p.run == nil {
			keep(job, v, cmd)
		}
		return p.failure(done.err, cmd, x)
	}
	if cutShort(x.out.stderr.String(), v.dir) {
		return p.failure(errFull, cmd, x)
	}
	p.tellMemory(job, done.peak)
	return nil
}

// findTools finds the program and those of {tool:NAME}, by their names in the template. Their content is recorded.
func (p *proc) findTools(job processor.Job) (map[string]string, error) {
	names := []string{p.config.Command[0]}
	for _, a := range p.args {
		for _, ph := range a {
			if ph.name == "tool" {
				names = append(names, ph.detail)
			}
		}
	}
	if p.run != nil {
		names = append(names, p.run.Tools...)
	}
	found := map[string]string{}
	for _, name := range names {
		if found[name] != "" {
			continue
		}
		file, err := job.Tool(name)
		if errors.Is(err, fs.ErrNotExist) {
			where, hint := "not on PATH", fmt.Sprintf("install %q", name)
			switch {
			case errors.Is(err, fs.ErrPermission):
				where, hint = "there, but is not executable", "run `chmod +x "+name+"`"
			case strings.ContainsAny(name, `/\`):
				where, hint = "not in the project", "put it there and make it executable"
			case path.Ext(name) != "": // a script, most likely, and whoever named it has it in the project folder
				hint = fmt.Sprintf("if it lies in the project folder, write %q; else install it", "./"+name)
			}
			return nil, &processor.Problem{
				Code: string(diag.ToolMissing),
				Text: fmt.Sprintf("processor %q needs the program %q, which is %s", p.config.Name, name, where),
				Hint: hint + p.correct("; `kiln doctor` lists the programs that this project needs"),
				Err:  err,
			}
		}
		if err != nil {
			return nil, err
		}
		if file, err = filepath.Abs(file); err != nil { // the program runs in another folder
			return nil, err
		}
		if shown, is := shownBelow(p.config.Built, file); is {
			return nil, &processor.Problem{
				Code: string(diag.CommandReadsBuilt),
				Text: fmt.Sprintf("processor %q runs %s: %s", p.config.Name, shown, byChance),
				Hint: "put the program somewhere else than in the output folder" + p.correct(""),
			}
		}
		found[name] = file
	}
	return found, p.recordLinked(job, slices.Sorted(maps.Values(found)))
}

// correct is a hint about the command line, if the project file has it.
func (p *proc) correct(more string) string {
	if p.run != nil {
		return ""
	}
	return ", or correct `command`" + more
}

// value is the value of a placeholder in one job. Paths are relative to the view's root, where the
// program runs, so that none of them can get into a product.
func (p *proc) value(job processor.Job, tools map[string]string, ph part) ([]string, error) {
	source := job.Asset().Path
	base, ext := baseName(job.Asset())
	switch ph.name {
	case "in":
		return []string{guarded(source)}, nil
	case "out":
		return []string{"../" + outFile(job.Asset(), output{ph.detail, p.extension(ph.detail)})}, nil
	case "dep":
		return []string{"../" + depfile}, nil
	case "name":
		return []string{base}, nil
	case "ext":
		return []string{ext}, nil
	case "platform":
		return []string{job.Platform()}, nil
	case "root":
		return []string{"."}, nil
	case "needs":
		return []string{"../" + needsFolder}, nil
	case "assets":
		return []string{"../" + listFile(slices.Index(lists(p.args), ph.detail))}, nil
	case "tool":
		return []string{tools[ph.detail]}, nil
	}
	values := settingValue(job.Settings(), ph.name)
	for _, s := range values {
		if strings.ContainsRune(s, 0) {
			return nil, &processor.Problem{
				Code: string(diag.CommandStart),
				Text: fmt.Sprintf("the setting %q holds a zero byte, which no argument can", ph.name),
				Hint: "correct the setting in the rules",
			}
		}
	}
	return values, nil
}

// guarded prevents a path from being read as an option or a file of arguments.
func guarded(source string) string {
	if strings.ContainsRune("-@+/", rune(source[0])) {
		return "./" + source
	}
	return source
}

func (p *proc) extension(name string) string {
	for _, o := range p.outputs {
		if o.name == name {
			return o.extension
		}
	}
	return ""
}

// baseName splits the name of an asset's file; a folder has no extension.
func baseName(a processor.Asset) (name, ext string) {
	name = path.Base(a.Path)
	if a.Folder {
		return name, ""
	}
	ext = path.Ext(name)
	return strings.TrimSuffix(name, ext), ext
}

// outFile is where the program writes a product, below the scratch folder: out/water.spv, out/water.reflection.json.
func outFile(a processor.Asset, o output) string {
	name, ext := baseName(a)
	if o.name != "" {
		name += "." + o.name
	}
	if o.extension != "" {
		ext = o.extension
	}
	return path.Join(outFolder, name+ext)
}

// failure tells people why a run failed: each line with a position, then the whole.
func (p *proc) failure(err error, cmd *exec.Cmd, x *execution) error {
	name := path.Base(p.config.Command[0])
	var exit *exec.ExitError
	var start *startError
	var text, hint string
	output := x.shown(x.out.all.String())
	code := diag.CommandFailed
	var cause error
	switch {
	case errors.Is(err, errTimeout):
		code, cause = diag.CommandTimeout, diag.ErrMoment
		text = fmt.Sprintf("%s took longer than %v and was ended", name, p.timeout)
		hint = fmt.Sprintf("raise `timeout` of the processor %q if it needs that long; does it wait for somebody?", p.config.Name)
		if p.run != nil {
			hint = fmt.Sprintf("have the processor %q give it more time if it needs that; does it wait for somebody?", p.config.Name)
		}
	case errors.Is(err, errFull):
		cause = diag.ErrMoment
		text = fmt.Sprintf("%s succeeded, and says that the disk is full", name)
		hint = "make room on the disk, and build again"
	case errors.As(err, &start):
		why := start.err
		var path *fs.PathError
		if errors.As(why, &path) { // with the path, the text would differ between machines
			why = path.Err
		}
		return &processor.Problem{
			Code: string(diag.CommandStart),
			Text: fmt.Sprintf("%s does not start: %v", name, why),
			Hint: "run it by hand; is it a program of this system, and may it be executed?",
			Err:  errors.Join(err, diag.ErrMoment),
		}
	case errors.As(err, &exit):
		text = name + " " + exitText(exit)
		hint = p.whatItMay()
		if p.config.Reads == Depfile {
			cause = diag.ErrMoment // it is not known what else it read: see recordFailed
		}
		if shortOf(output, x.v.dir) {
			cause = diag.ErrMoment
			hint = "if it was short of room on the disk, or of memory, make some; it is tried again in each build"
		}
		if signalled(exit) {
			cause = diag.ErrMoment
			hint = "run it by hand; the system kills a program when memory is short, and this one was not ended by Kiln"
		}
	default: // cancelled
		return err
	}
	d := diagnose(output, x.v)
	if len(d.errors) > 0 && exit != nil && !signalled(exit) { // what it said says why: the exit code is no second mistake
		return p.said(&d, x.line(cmd), exit, errors.Join(err, cause))
	}
	text += "\n    $ " + x.line(cmd)
	if output != "" {
		text += "\n    " + strings.ReplaceAll(output, "\n", "\n    ")
	}
	var all []error
	for i := range d.errors {
		all = append(all, &d.errors[i])
	}
	all = append(all, &processor.Problem{Code: string(code), Text: text, Hint: hint, Err: errors.Join(err, cause)})
	return errors.Join(all...)
}

// whatItMay is a hint for a program that failed.
func (p *proc) whatItMay() string {
	switch {
	case p.config.Reads == Declared && p.run != nil:
		return "run it by hand to see more; a file that it did not find has to be " + p.whereInputs()
	case p.config.Reads == Declared:
		return "`kiln shell ASSET` opens a shell where it ran; a file that it did not find has to be " + p.whereInputs()
	case p.run != nil:
		return "run it by hand to see more; it may write only below ../out and below its current folder"
	}
	return "`kiln shell ASSET` opens a shell where it ran; it may write only to {out} and below its current folder"
}

// whereInputs is where the inputs of a program are declared.
func (p *proc) whereInputs() string {
	if p.run != nil {
		return fmt.Sprintf("among the inputs that the processor %q gives it", p.config.Name)
	}
	return fmt.Sprintf("in `inputs` of the processor %q", p.config.Name)
}

// said makes errors of what a program that failed said of places in source files.
func (p *proc) said(d *diagnosis, line string, exit *exec.ExitError, why error) error {
	last := &d.errors[len(d.errors)-1]
	if d.rest != "" {
		last.Text += "\n    " + strings.ReplaceAll(d.rest, "\n", "\n    ")
	}
	last.Hint = fmt.Sprintf("`%s` %s; a file that it did not find has to be %s", line, exitText(exit), p.whereInputs())
	d.errors[0].Err = why
	var all []error
	for i := range d.errors {
		all = append(all, &d.errors[i])
	}
	return errors.Join(all...)
}

// maxWarning is how many lines of standard error a warning shows.
const maxWarning = 20

// warn keeps what a program that succeeded wrote to standard error.
func (p *proc) warn(x *execution) {
	job, d := x.job, diagnose(x.shown(x.out.stderr.String()), x.v)
	for _, w := range append(d.errors, d.warnings...) {
		job.Warn(w)
	}
	if d.rest == "" {
		return
	}
	lines := strings.Split(d.rest, "\n")
	if more := len(lines) - maxWarning; more > 0 {
		lines = append(lines[:maxWarning], fmt.Sprintf("... %d lines more", more))
	}
	job.Warn(processor.Problem{
		Code: string(diag.CommandStderr),
		Text: fmt.Sprintf("%s wrote to standard error:\n    %s", path.Base(p.config.Command[0]), strings.Join(lines, "\n    ")),
		Hint: "if it always does, look for its option to be quiet",
	})
}

// publish makes products of what the program wrote. All outputs must exist: if a declared one could
// be missing, a stale file would stay in the game.
func (p *proc) publish(ctx context.Context, job processor.Job, v *view) error {
	name := path.Base(p.config.Command[0])
	for _, o := range p.outputs {
		placeholder := part{name: "out", detail: o.name}
		err := p.hand(ctx, job, v, o)
		var odd *notAFile
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &processor.Problem{
				Code: string(diag.CommandOutputMissing),
				Text: fmt.Sprintf("%s succeeded, but did not write %v", name, placeholder),
				Hint: "run it by hand; does it add an extension of its own to the name?",
				Err:  err,
			}
		case errors.As(err, &odd):
			return &processor.Problem{
				Code: string(diag.CommandOutputKind),
				Text: fmt.Sprintf("%s wrote no file for %v: it is %s", name, placeholder, odd.kind),
				Hint: "a product is one regular file",
				Err:  err,
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// adopter is a job that can make a product by moving a file. It is not part of the contract of processors.
type adopter interface {
	TakeIn(out processor.Output, dir *os.File, name string) error
}

// hand makes a product of one output. Its error is fs.ErrNotExist or *notAFile if there is none.
func (p *proc) hand(ctx context.Context, job processor.Job, v *view, o output) error {
	file := outFile(job.Asset(), o)
	out := processor.Output{Name: o.name, Type: p.productType(o), Extension: o.extension}
	if j, ok := job.(adopter); ok && v.shelf != "" { // no process outside of a sandbox writes to the store
		if _, err := v.regular(file); err != nil {
			return err
		}
		dir, err := v.root.Open(outFolder)
		if err != nil {
			return moment(err)
		}
		defer dir.Close()
		if err := j.TakeIn(out, dir, path.Base(file)); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	f, err := v.open(file)
	if err != nil {
		return err
	}
	return errors.Join(send(ctx, job, f, out), f.Close())
}

// send streams a file into a product.
func send(ctx context.Context, job processor.Job, from io.Reader, out processor.Output) (err error) {
	w, err := job.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	_, err = io.Copy(w, untilDone{ctx, from})
	return err
}

// untilDone is a reader that ends with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}
