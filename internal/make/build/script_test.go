package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// script is a processor of files whose lines say what to do, so that a test can make any job that it needs:
//
//	text WORDS       the words
//	read PATH        a file's content; missing is an error
//	try PATH         a file's content, or "none"
//	exists PATH      yes or no
//	glob PATTERN     the names
//	use ID           the content of all products of an asset
//	list ID...       names, files and UUIDs of the products of assets
//	ref ID           a reference to an asset that is required, or "no ID"
//	find ID          its id, path and UUID, or "no ID"
//	opt ID           one that is optional
//	part NAME WORDS  a product of its own with the words
//	env NAME         its value
//	number NAME      the resource id of a product of this asset, and whether it has one
//	scratch          what is in the scratch folder, which then gets a file
//	fail WORDS       a problem on this line
//	warn WORDS       a warning on this line
//	panic WORDS
//	setting          the setting "say"
//	platform         its name
//	ask PART...      how long the contents of parts are; a part is the path of a source file, or of a part after a plus sign
//	take PART...     the contents of parts
//	hook NAME        calls the test
//	twice NAME       writes a product twice
//	more NAME        a further product
//	refer ID NAME    to a product, whether it is there or not; it is required if the name is y
//	request SAY PATH what this processor makes of a source file with the setting "say"; PATH +PATH what it makes of what it makes of that
//	given NAME       the settings that this processor has for another asset, and those of them that a request to it has not
//	named NAME PATH  the same with the name of the request, for rules
//	bytes SAY WORDS  what it makes of bytes, in which a stroke ends a line
//	seed SAY         what a processor makes that needs no source
//	product ID       what it makes of an asset's product
//	adopt NAME PATH  a product of what it makes of a source file
//	shadow LINE      nothing: the line is for the processor shadow
//
// The main product is what the lines give, one after the other.
type script struct {
	version int
	hooks   *hooks
	meddle  atomic.Pointer[func()] // is called before each line; nil: nothing is
}

// hooks are what scripts call in a test.
type hooks struct {
	call func(ctx context.Context, name string, job processor.Job) error
}

type scriptSettings struct {
	Say string `toml:"say" doc:"Words."`
}

func (s *script) Info() processor.Info {
	return processor.Info{
		Name: "script", Version: s.version, Summary: "for tests", Extensions: []string{".s"}, Settings: &scriptSettings{Say: "hello"},
		Products: []processor.ProductType{{Type: "text", Extension: ".txt"}},
	}
}

func (s *script) Process(ctx context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	var out strings.Builder
	var refs []processor.Reference
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "ref" || verb == "opt" {
			r, err := job.Reference(rest, "", verb == "ref")
			if errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(&out, "no %s\n", rest)
			} else if err != nil {
				return err
			} else {
				refs = append(refs, r)
			}
			continue
		}
		if verb == "refer" { // to a product that need not be there, by the UUID of an asset that need not
			name, sub, _ := strings.Cut(rest, " ")
			refs = append(refs, processor.Reference{UUID: asset.UUID(name), SubID: processor.SubID(sub), Required: sub == "y"})
			continue
		}
		if err := s.line(ctx, job, &out, i+1, verb, rest); err != nil {
			return err
		}
	}
	return job.Write(processor.Output{Type: "text", Extension: ".txt", References: refs}, []byte(out.String()))
}

func (s *script) line(ctx context.Context, job processor.Job, out io.Writer, n int, verb, rest string) error {
	say := func(what any) error { _, err := fmt.Fprintf(out, "%v\n", what); return err }
	if f := s.meddle.Load(); f != nil {
		(*f)()
	}
	switch verb {
	case "text":
		return say(rest)
	case "more":
		return job.Write(processor.Output{Name: rest, Type: "text", Extension: ".more"}, []byte("more "+rest))
	case "read":
		b, err := job.ReadFile(rest)
		if err != nil {
			return err
		}
		return say(string(b))
	case "try":
		b, err := job.ReadFile(rest)
		if errors.Is(err, fs.ErrNotExist) {
			return say("none")
		} else if err != nil {
			return err
		}
		return say(string(b))
	case "exists":
		ok, err := job.Exists(rest)
		say(ok)
		return err
	case "glob":
		names, err := job.Glob(rest)
		return errors.Join(say(names), err)
	case "use", "list":
		return s.products(job, out, verb == "use", strings.Fields(rest))
	case "find", "perhaps", "assets":
		return others(job, out, verb, rest)
	case "part":
		name, words, _ := strings.Cut(rest, " ")
		return job.Write(processor.Output{Name: name, Type: "text", Extension: ".txt"}, []byte(words))
	case "ask", "take":
		return s.parts(job, out, map[string]string{"ask": "size", "take": "content"}[verb], strings.Fields(rest))
	case "request", "named", "bytes", "seed", "adopt", "product", "given", "run", "trace":
		return s.request(ctx, job, out, verb, rest)
	case "env":
		v, ok := job.Env(rest)
		return say(fmt.Sprint(v, ok))
	case "number":
		id, ok := job.ResourceID(rest)
		return say(fmt.Sprint(id, ok))
	case "scratch":
		return s.scratch(job, say)
	case "setting", "platform":
		return say(map[string]func() string{
			"setting": func() string { return processor.SettingsOf[scriptSettings](job).Say }, "platform": job.Platform,
		}[verb]())
	case "warn":
		job.Warn(processor.Problem{Line: n, Column: 1, Length: len(verb), Text: rest})
	case "fail":
		return &processor.Problem{Line: n, Column: 1, Length: len(verb), Text: rest, Hint: "write something else"}
	case "error":
		return errors.New(rest)
	case "panic":
		panic(rest)
	case "twice":
		out := processor.Output{Name: rest, Type: "text", Extension: ".txt"}
		return errors.Join(job.Write(out, nil), job.Write(out, nil))
	case "hook":
		return s.hooks.call(ctx, rest, job)
	}
	return nil
}

// others writes what is known of an asset, which assets a pattern matches, or the products of an asset, on a platform and of a processor if
// these are named, or that there are none.
func others(job processor.Job, out io.Writer, verb, rest string) error {
	switch verb {
	case "find":
		a, err := job.Find(rest)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(out, "no", rest)
			return nil
		}
		fmt.Fprintln(out, a.ID, a.Path, a.UUID, a.Folder)
		return err
	case "assets":
		list, err := job.Assets(rest)
		for _, a := range list {
			fmt.Fprintln(out, a.ID, a.Path, a.UUID, a.Folder, a.Processor, a.Type, a.Settings, a.Meta)
		}
		return err
	}
	words := append(strings.Fields(rest), "-", "-")
	of := processor.Ask{Asset: words[0], Platform: strings.Trim(words[1], "-"), Processor: strings.Trim(words[2], "-")}
	made, ok, err := job.TryProducts(of)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, of.Asset, ok)
	for _, p := range made {
		f, err := job.OpenProduct(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s %s %s: ", p.Platform, p.Processor, p.File, p.Type)
		_, err = io.Copy(out, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// given says which settings the script of another asset has.
func given(job processor.Job, out io.Writer, name string) error {
	all, given, err := job.(interface {
		AssetSettings(name, by string) (any, map[string]any, error)
	}).AssetSettings(name, "script")
	if all == nil {
		fmt.Fprintln(out, "no settings")
		return err
	}
	fmt.Fprintf(out, "%v\n%v\n", all.(*scriptSettings).Say, given)
	return err
}

func (s *script) products(job processor.Job, out io.Writer, content bool, ids []string) error {
	all, err := job.Products(ids...)
	if err != nil {
		return err
	}
	for _, ps := range all {
		for _, p := range ps {
			if !content {
				fmt.Fprintf(out, "%s of %s is %s, %s\n", p.Name, p.AssetID, p.File, p.UUID)
				continue
			}
			f, err := job.OpenProduct(p)
			if err != nil {
				return err
			}
			if _, err := io.Copy(out, f); err != nil {
				return err
			}
			f.Close()
		}
	}
	return nil
}

func (s *script) request(ctx context.Context, job processor.Job, out io.Writer, verb, rest string) error {
	if verb == "run" || verb == "trace" {
		return s.program(ctx, job, out, verb == "trace", strings.Fields(rest))
	}
	if verb == "given" {
		return given(job, out, rest)
	}
	word, of, _ := strings.Cut(rest, " ")
	r := processor.Request{Processor: "script", Settings: map[string]any{"say": word}}
	again := 0
	switch verb {
	case "product":
		of, err := job.Products(word)
		if err != nil {
			return err
		}
		if len(of[0]) == 0 {
			return errors.New("it makes no product")
		}
		r.Product, r.Settings = &of[0][0], nil
	case "seed":
		r.Processor = "seed"
	case "bytes":
		r.Bytes, r.Extension = []byte(strings.ReplaceAll(of, "|", "\n")), ".s"
	default:
		r.Path = strings.TrimLeft(of, "+")
		switch again = len(of) - len(r.Path); verb {
		case "adopt":
			r.Settings = nil
		case "named":
			r.Name, r.Settings = word, map[string]any{"say": "plain"}
		}
	}
	made, err := job.Request(r)
	for ; err == nil && again > 0; again-- {
		made, err = job.Request(processor.Request{Processor: "script", Product: &made[0][0]})
	}
	if err != nil {
		return err
	}
	if verb == "adopt" {
		return job.Adopt(made[0][0], processor.Output{Name: word})
	}
	f, err := job.OpenProduct(made[0][0])
	if err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return errors.Join(err, f.Close())
}

// program has a program run, of those that every system but Windows has: "cat FILE...", "ls FOLDER", or "fail FILE", which reads the file
// and fails.
func (s *script) program(ctx context.Context, job processor.Job, out io.Writer, traced bool, words []string) error {
	if traced && seal.Supported().Trace != nil {
		traced = false
	}
	c := processor.Command{
		Args: words, Traced: traced, Codes: []int{1, 2}, Files: map[string][]byte{"given": []byte("given\n")}, Stdin: []byte("stdin\n"),
	}
	if words[0] == "fail" {
		c.Args, c.Codes = []string{"sh", "-c", "cat " + words[1] + " 2>/dev/null; exit 3"}, nil
	}
	for _, name := range words[1:] {
		switch {
		case traced:
		case words[0] == "ls":
			c.Inputs = append(c.Inputs, strings.TrimPrefix(processor.QuoteGlob(name)+"/*", "./"))
		default:
			c.Inputs = append(c.Inputs, processor.QuoteGlob(name))
		}
	}
	r, err := job.Run(ctx, c)
	fmt.Fprintf(out, "%d %s", r.Code, r.Stdout)
	return err
}

// seeder is a processor that needs no source.
type seeder struct{}

func (seeder) Info() processor.Info {
	return processor.Info{
		Name: "seed", Version: 1, Summary: "for tests", Settings: &scriptSettings{}, Products: []processor.ProductType{{Type: "text"}},
	}
}

func (seeder) Process(_ context.Context, job processor.Job) error {
	if processor.SettingsOf[scriptSettings](job).Say == "fail" {
		return errors.New("no such seed")
	}
	return job.Write(processor.Output{Type: "text", Extension: ".seed"}, []byte("seed "+processor.SettingsOf[scriptSettings](job).Say+"\n"))
}

// Part reads a file, or another part, and writes its content and the length of that, hidden, and its name for all to see, with the
// content if that begins with "show". If it begins with "number", the resource id of the product of that name follows.
func (s *script) Part(_ context.Context, job processor.Job, name string) error {
	var content strings.Builder
	if of, ok := strings.CutPrefix(name, "+"); ok {
		if err := s.parts(job, &content, "content", []string{of}); err != nil {
			return err
		}
	} else if b, err := job.ReadFile(name); err != nil {
		return err
	} else if content.Write(b); strings.HasPrefix(content.String(), "fail") {
		return &processor.Problem{Path: name, Text: "the part is broken", Hint: "mend it"}
	}
	if product, ok := strings.CutPrefix(content.String(), "number "); ok {
		product, _, _ = strings.Cut(product, "\n")
		id, ok := job.ResourceID(product)
		fmt.Fprintln(&content, id, ok)
	}
	seen := name
	if strings.HasPrefix(content.String(), "show") {
		seen += content.String()
	}
	return errors.Join(
		job.Write(processor.Output{Name: "content", Type: "text", Hidden: true}, []byte(content.String())),
		job.Write(processor.Output{Name: "size", Type: "text", Hidden: true}, []byte(fmt.Sprint(content.Len()))),
		job.Write(processor.Output{Name: strings.ReplaceAll(name, "/", "-"), Type: "text", Extension: ".part"}, []byte(seen)))
}

// parts writes a product of each of some parts.
func (s *script) parts(job processor.Job, out io.Writer, product string, names []string) error {
	all, err := job.Parts(names...)
	if err != nil {
		return err
	}
	for _, ps := range all {
		for _, p := range ps {
			if p.Name != product {
				continue
			}
			f, err := job.OpenProduct(p)
			if err != nil {
				return err
			}
			if _, err := io.Copy(out, f); err != nil {
				return err
			}
			f.Close()
			fmt.Fprintln(out)
		}
	}
	return nil
}

func (s *script) scratch(job processor.Job, say func(any) error) error {
	dir, err := job.Scratch()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	say(len(entries))
	return os.WriteFile(filepath.Join(dir, "file"), nil, 0o666)
}

// shadow is a processor of the same files, for assets that have several: it does the lines that begin with "shadow", and writes a
// product of that name. Two more lines let it clash with the script: "main" writes the main product, "file" the file of that.
type shadow struct{ *script }

func (s *shadow) Info() processor.Info {
	return processor.Info{Name: "shadow", Version: s.version, Summary: "for tests", Settings: &scriptSettings{Say: "hush"}}
}

func (s *shadow) Process(ctx context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	var out strings.Builder
	for i, line := range strings.Split(string(text), "\n") {
		line, ok := strings.CutPrefix(line, "shadow ")
		verb, rest, _ := strings.Cut(line, " ")
		switch {
		case !ok:
		case verb == "main":
			err = job.Write(processor.Output{Type: "text", Extension: ".main"}, nil)
		case verb == "file":
			err = job.Write(processor.Output{Name: "txt", Type: "text"}, nil)
		default:
			err = s.line(ctx, job, &out, i+1, verb, rest)
		}
		if err != nil {
			return err
		}
	}
	return job.Write(processor.Output{Name: "shadow", Type: "text", Extension: ".sh"}, []byte(out.String()))
}

// bundle is a processor of folders: it lists the files in one.
type bundle struct{}

func (bundle) Info() processor.Info {
	return processor.Info{
		Name: "bundle", Version: 1, Summary: "for tests", Folder: true, Extensions: []string{".bin"}, Products: []processor.ProductType{{Type: "list", Extension: ".list"}},
	}
}

func (bundle) Process(_ context.Context, job processor.Job) error {
	names, err := job.Glob(job.Asset().Path + "/**")
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: "list", Extension: ".list"}, []byte(strings.Join(names, "\n")))
}
