package script

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/kiln-pipeline/kiln/processor"
)

// run(args, tools=[], inputs=[], files={}, stdin=b"", env=[], codes=[], timeout=600, network=False) runs a program, and
// returns what it printed and the files that it wrote below ../out. The inputs are globs, or "traced".
func (j *jobValue) run(c *callArgs) (starlark.Value, error) {
	var args, tools, env, codes *starlark.List
	var inputs, stdin starlark.Value
	var files *starlark.Dict
	var seconds starlark.Value = starlark.MakeInt(0)
	var r processor.Command
	err := c.unpack("args", &args, "tools?", &tools, "inputs?", &inputs, "files?", &files, "stdin?", &stdin, "env?", &env, "codes?", &codes,
		"timeout?", &seconds, "network?", &r.Network)
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		name string
		from *starlark.List
		to   *[]string
	}{{"args", args, &r.Args}, {"tools", tools, &r.Tools}, {"env", env, &r.Env}} {
		if *l.to, err = texts(c, l.name, l.from); err != nil {
			return nil, err
		}
	}
	switch in := inputs.(type) {
	case nil, starlark.NoneType:
	case starlark.String:
		if r.Traced = in == "traced"; !r.Traced {
			return nil, fmt.Errorf("%s: inputs: got %v, want a list of globs, or \"traced\"", c.name, in)
		}
	case *starlark.List:
		if r.Inputs, err = texts(c, "inputs", in); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%s: inputs: got %s, want a list of globs, or \"traced\"", c.name, in.Type())
	}
	if r.Codes, err = numbers(c, "codes", codes); err != nil {
		return nil, err
	}
	s, ok := starlark.AsFloat(seconds)
	if !ok || !(s >= 0 && s <= 24*60*60) {
		return nil, fmt.Errorf("%s: timeout: got %v, want a number of seconds, at most a day", c.name, seconds)
	}
	r.Timeout = time.Duration(math.Round(s*1000)) * time.Millisecond
	if err := given(c, &r, files, stdin); err != nil {
		return nil, err
	}
	j.clock.pause()
	made, err := j.job.Run(j.ctx, r)
	j.clock.resume()
	if err != nil {
		return nil, jobFailed("", err)
	}
	return ran(c, made)
}

// given reads the input of the program: files, and standard input.
func given(c *callArgs, r *processor.Command, files *starlark.Dict, stdin starlark.Value) (err error) {
	if stdin != nil && stdin != starlark.None {
		if r.Stdin, err = bytesOf(stdin); err != nil {
			return fmt.Errorf("%s: stdin: %w", c.name, err)
		}
	}
	if files == nil {
		return nil
	}
	r.Files = map[string][]byte{}
	for _, item := range files.Items() {
		path, ok := starlark.AsString(item[0])
		if !ok {
			return fmt.Errorf("%s: files: got a key that is %s, want a path", c.name, item[0].Type())
		}
		data, err := bytesOf(item[1])
		if err != nil {
			return fmt.Errorf("%s: files: %s: %w", c.name, path, err)
		}
		r.Files[path] = data
	}
	return nil
}

// ran is the result of a program, for the script.
func ran(c *callArgs, made processor.Result) (starlark.Value, error) {
	total := int64(len(made.Stdout) + len(made.Stderr))
	for _, data := range made.Files {
		total += int64(len(data))
	}
	if err := take(c.thread, total); err != nil {
		return nil, err
	}
	files := starlark.NewDict(len(made.Files))
	var paths []string
	for path := range made.Files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		if err := files.SetKey(starlark.String(path), starlark.Bytes(made.Files[path])); err != nil {
			return nil, err
		}
	}
	return starlarkstruct.FromStringDict(starlark.String("result"), starlark.StringDict{
		"code": starlark.MakeInt(made.Code), "stdout": starlark.Bytes(made.Stdout), "stderr": starlark.String(made.Stderr), "files": files,
	}), nil
}

func texts(c *callArgs, name string, list *starlark.List) (all []string, err error) {
	if list == nil {
		return nil, nil
	}
	for v := range list.Elements() {
		s, ok := starlark.AsString(v)
		if !ok {
			return nil, fmt.Errorf("%s: %s: got %s, want a string", c.name, name, v.Type())
		}
		all = append(all, s)
	}
	return all, nil
}

func numbers(c *callArgs, name string, list *starlark.List) (all []int, err error) {
	if list == nil {
		return nil, nil
	}
	for v := range list.Elements() {
		n, err := starlark.AsInt32(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", c.name, name, err)
		}
		all = append(all, n)
	}
	return all, nil
}
