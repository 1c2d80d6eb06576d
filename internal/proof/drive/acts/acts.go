// Package acts is a processor that executes the lines of its asset. Tests compile it into a kiln and into a WebAssembly
// module.
package acts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
)

// Actor executes these lines, and writes their results:
//
//	read PATH     the content of a source file
//	twice PATH    the same, read a second time a little later
//	exists PATH   whether it exists
//	glob PATTERN  the paths that match
//	use ASSET     the products of another asset, with their content
//	ref ASSET     a reference to another asset's main product
//	more NAME     a second product
//	warn TEXT, fail TEXT, text TEXT
type Actor struct{ Name, Extension string }

// Info returns the description of the processor.
func (a Actor) Info() processor.Info {
	return processor.Info{
		Name: a.Name, Version: 1, Summary: "does what its asset says", Extensions: []string{a.Extension},
		Products: []processor.ProductType{{Type: "text", Extension: ".out"}},
	}
}

// Process executes the lines in order.
func (a Actor) Process(_ context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	out := processor.Output{Type: "text", Extension: ".out"}
	saw := job.Asset().ID + " on " + job.Platform() + "\n"
	for i, line := range strings.Split(string(text), "\n") {
		verb, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		if verb == "ref" {
			r, err := job.Reference(arg, "", true)
			if err != nil {
				return err
			}
			out.References = append(out.References, r)
			continue
		}
		s, err := act(job, verb, arg, i+1)
		if err != nil {
			return err
		}
		saw += s
	}
	return job.Write(out, []byte(saw))
}

func act(job processor.Job, verb, arg string, line int) (string, error) {
	switch verb {
	case "read", "twice":
		saw, err := job.ReadFile(arg)
		if err == nil && verb == "twice" {
			time.Sleep(20 * time.Millisecond)
			var again []byte
			again, err = job.ReadFile(arg)
			saw = append(saw, again...)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "no " + arg + "\n", nil
		}
		return string(saw), err
	case "exists":
		there, err := job.Exists(arg)
		return fmt.Sprintln(arg, there), err
	case "glob":
		found, err := job.Glob(arg)
		return fmt.Sprintln(found), err
	case "use":
		return use(job, arg)
	case "more":
		return "", job.Write(processor.Output{Type: "text", Name: arg, Extension: ".out"}, []byte(arg))
	case "warn":
		job.Warn(processor.Problem{Line: line, Text: arg})
	case "fail":
		return "", &processor.Problem{Line: line, Text: arg}
	case "text":
		return arg + "\n", nil
	}
	return "", nil
}

func use(job processor.Job, id string) (string, error) {
	all, err := job.Products(id)
	if err != nil {
		return "", err
	}
	saw := ""
	for _, p := range all[0] {
		f, err := job.OpenProduct(p)
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			return "", err
		}
		saw += fmt.Sprintln(p.AssetID, p.UUID, p.Name, p.Type, p.File, len(content)) + string(content)
	}
	return saw, nil
}
