package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// Programs runs programs for jobs of other processors than commands. Everything else is as for a command: the view, the
// sandbox, the environment, the record, and the messages.
type Programs struct {
	kiln Kiln
	*machine
}

// NewPrograms returns Programs for a project with these files of Kiln's.
func NewPrograms(k Kiln) *Programs { return &Programs{k, &machine{}} }

// Limits of the results of a program for a job, which are in memory.
const (
	maxStdout = 64 << 20  // bytes
	maxFiles  = 10_000    // below out
	maxMade   = 256 << 20 // bytes in these
)

// Run runs a program for a job of a processor.
func (s *Programs) Run(ctx context.Context, job processor.Job, name string, c processor.Command) (processor.Result, error) {
	if err := checkCommand(&c); err != nil {
		return processor.Result{}, err
	}
	config := Config{Name: name, Command: c.Args, Env: c.Env, Network: c.Network, Kiln: s.kiln}
	p := &proc{config: config, machine: s.machine, run: &c, timeout: cmp.Or(c.Timeout, DefaultTimeout)}
	if c.Traced {
		p.config.Reads = Traced
	}
	tools, err := p.findTools(job)
	if err != nil {
		return processor.Result{}, err
	}
	v, err := p.view(ctx, job)
	if err != nil {
		return processor.Result{}, err
	}
	defer v.close()
	return p.result(ctx, job, v, tools)
}

// result runs the program in its view, and collects its results.
func (p *proc) result(ctx context.Context, job processor.Job, v *view, tools map[string]string) (r processor.Result, err error) {
	x := execution{job: job, v: v, tools: tools, args: slices.Clone(p.run.Args[1:])}
	for i, a := range x.args {
		if slices.Contains(p.run.Tools, a) {
			x.args[i] = tools[a]
		}
	}
	if len(p.run.Stdin) > 0 {
		if x.stdin, err = v.stdin(p.run.Stdin); err != nil {
			return r, moment(err)
		}
		defer x.stdin.Close()
	}
	x.out.keep()
	if err := p.execute(ctx, &x); err != nil {
		return r, err
	}
	r.Code, r.Stderr = x.code, []byte(x.out.stderr.String())
	whole, ok := x.out.whole()
	if !ok {
		return r, p.tooMuch(fmt.Sprintf("more than %d MiB to standard output", maxStdout>>20))
	}
	r.Stdout = whole
	r.Files, err = p.takeFiles(ctx, v)
	return r, err
}

// checkCommand returns an error for a command that no program can get. The processor has a bug then.
func checkCommand(c *processor.Command) error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return errors.New("a command without a program")
	}
	if c.Traced && len(c.Inputs) > 0 {
		return errors.New("a command has inputs, or is traced, not both")
	}
	if c.Timeout < 0 {
		return fmt.Errorf("the timeout %v of a command is negative", c.Timeout)
	}
	for _, s := range slices.Concat(c.Args, c.Env) {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("%q has a zero byte, which no argument and no variable can", s)
		}
	}
	for _, name := range c.Env {
		if !validEnv().MatchString(name) {
			return fmt.Errorf("%q cannot be the name of a variable", name)
		}
	}
	return checkPlaced(c)
}

// placed are the paths of the files that a job puts into the view.
func placed(c *processor.Command) map[string]bool {
	all := map[string]bool{}
	for name := range c.Files {
		all[name] = true
	}
	for name := range c.Scratch {
		all[name] = true
	}
	return all
}

// checkPlaced returns an error for paths that files in the view cannot have.
func checkPlaced(c *processor.Command) error {
	all := placed(c)
	if len(all) < len(c.Files)+len(c.Scratch) {
		return errors.New("a file of the view is both in Files and in Scratch")
	}
	for name := range all {
		if !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("%q cannot be the path of a file in the view", name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if all[dir] {
				return fmt.Errorf("%q cannot be a file and the folder of %q", dir, name)
			}
		}
	}
	for _, name := range c.Scratch {
		if !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("%q cannot be a file of the scratch folder", name)
		}
	}
	return nil
}

// stdin is a file for a program's standard input. A file can be written completely, even if the program does not read it.
func (v *view) stdin(data []byte) (*os.File, error) {
	name := v.path(stdinFile)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return nil, err
	}
	return os.Open(name)
}

func (p *proc) tooMuch(what string) error {
	return &processor.Problem{
		Code: string(diag.CommandTooMuch),
		Text: fmt.Sprintf("%s wrote %s, more than a processor can be given", path.Base(p.config.Command[0]), what),
		Hint: fmt.Sprintf("have the processor %q run it for less at once, or declare it as a command, which has no such limit", p.config.Name),
	}
}

// takeFiles reads all files that the program wrote below out.
func (p *proc) takeFiles(ctx context.Context, v *view) (map[string][]byte, error) {
	files, room := map[string][]byte{}, int64(maxMade)
	var odd *notAFile
	err := fs.WalkDir(v.root.FS(), outFolder, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return moment(err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.IsDir():
			return nil
		}
		f, err := v.open(name)
		if errors.As(err, &odd) {
			return &processor.Problem{
				Code: string(diag.CommandOutputKind),
				Text: fmt.Sprintf("%s wrote %s, which is %s", path.Base(p.config.Command[0]), name, odd.kind),
				Hint: "a file is handed back if it is a regular one",
				Err:  err,
			}
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(f, room+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return moment(err)
		}
		if room -= int64(len(data)); room < 0 || len(files) == maxFiles {
			return p.tooMuch(fmt.Sprintf("more than %d MiB, or more than %d files", maxMade>>20, maxFiles))
		}
		rel, _ := strings.CutPrefix(filepath.ToSlash(name), outFolder+"/")
		files[rel] = data
		return nil
	})
	return files, err
}
