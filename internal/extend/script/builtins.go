package script

import (
	"fmt"

	"go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/kiln-pipeline/kiln/processor"
)

type builtinFunc = func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)

// predeclared are the names that every module has, in addition to the language's own.
func predeclared() starlark.StringDict {
	names := starlark.StringDict{
		"image":  imageModule(),
		"json":   jsonModule(),
		"toml":   reader("toml", readTOML),
		"xml":    reader("xml", readXML),
		"csv":    reader("csv", readCSV),
		"math":   math.Module,
		"struct": starlark.NewBuiltin("struct", starlarkstruct.Make),
	}
	for name, fn := range map[string]builtinFunc{"setting": setting, "writer": newWriter, "resolve": resolvePath, "fail": fail, "range": rangeOf, "int": intOf, "getattr": getattr} {
		names[name] = starlark.NewBuiltin(name, fn)
	}
	for _, name := range []string{"list", "tuple", "set", "dict", "sorted", "reversed", "enumerate", "zip", "bytes"} {
		names[name] = sized(name)
	}
	for _, name := range []string{"str", "repr", "print"} {
		names[name] = written(name)
	}
	for _, op := range growing {
		names[hidden+op.name] = operation(op.name, 2, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return operate(t, op.tok, a[0], a[1])
		})
		names[hidden+"i"+op.name] = operation("i"+op.name, 2, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return inPlace(t, op.tok, a[0], a[1])
		})
		names[hidden+"e"+op.name] = operation("e"+op.name, 3, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return element(t, op.tok, a[0], a[1], a[2])
		})
	}
	names[hidden+"attr"] = operation("attr", 2, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		return attribute(a[0], string(a[1].(starlark.String)))
	})
	names[hidden+"slice"] = operation("slice", 1, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return a[0], take(t, sizeOf(a[0])) })
	names[hidden+"spread"] = operation("spread", 1, spread)
	names[hidden+"second"] = operation("second", 2, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return a[1], nil })
	names[hidden+"tuple"] = operation("tuple", 1, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return checked(a[0], nil) })
	return names
}

// operation is a function that only rewrite calls, always with n arguments.
func operation(name string, n int, fn func(*starlark.Thread, starlark.Tuple) (starlark.Value, error)) *starlark.Builtin {
	return starlark.NewBuiltin(hidden+name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		if len(args) != n {
			return nil, fmt.Errorf("%s takes %d arguments", name, n)
		}
		return fn(t, args)
	})
}

func spread(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if n := starlark.Len(a[0]); n > maxSpread {
		return nil, &limitError{text: fmt.Sprintf("a call has more than %d arguments", maxSpread), hint: "give it the list"}
	}
	return a[0], nil
}

// universal is one of the language's own functions.
func universal(name string) *starlark.Builtin { return starlark.Universe[name].(*starlark.Builtin) }

// sized asks the guard before an iterable is turned into a list.
func sized(name string) *starlark.Builtin {
	own := universal(name)
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		n := int64(0)
		for _, a := range args {
			n += max(4*sizeOf(a), 64*int64(max(0, starlark.Len(a))))
			if len := starlark.Len(a); len < 0 && a.Type() != "function" { // elems and others have no length
				n += 16 * sizeOf(a)
			}
		}
		if err := take(t, min(n, maxValue)); err != nil {
			return nil, err
		}
		if n > 4*maxValue {
			return nil, &limitError{text: fmt.Sprintf("a value would be larger than %d MiB", maxValue>>20)}
		}
		return checked(own.CallInternal(t, args, kwargs))
	})
}

// written asks the guard before values are turned into text.
func written(name string) *starlark.Builtin {
	own := universal(name)
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		for _, a := range args {
			if err := takeText(t, a); err != nil {
				return nil, err
			}
		}
		return own.CallInternal(t, args, kwargs)
	})
}

func rangeOf(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := universal("range").CallInternal(t, args, kwargs)
	if err == nil && starlark.Len(v) > maxLength {
		return nil, &limitError{text: fmt.Sprintf("a range has more than %d numbers", maxLength)}
	}
	return v, err
}

func intOf(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		if s, ok := starlark.AsString(args[0]); ok && len(s) > maxDigits {
			return nil, &limitError{text: fmt.Sprintf("int: more than %d digits", maxDigits)}
		}
	}
	return universal("int").CallInternal(t, args, kwargs)
}

func getattr(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v, otherwise starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &v, &name, &otherwise); err != nil {
		return nil, err
	}
	a, err := attribute(v, name)
	if err != nil && otherwise != nil {
		return otherwise, nil
	}
	return a, err
}

// resolve(base, ref) converts a path, or "uuid:" and a UUID, in the source file base into a name for the job's reads
// and questions.
func resolvePath(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var base, ref string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "base", &base, "ref", &ref); err != nil {
		return nil, err
	}
	p, err := processor.ResolveAsset(base, ref)
	return starlark.String(p), err
}
