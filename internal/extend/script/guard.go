package script

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Limits of single values. They keep each step of the interpreter short, and so the reaction to other limits.
const (
	maxValue   = 256 << 20 // bytes of one string, list or picture
	maxText    = 64 << 20  // bytes of the text of a list, dict or tuple
	maxLength  = 1 << 24   // elements of a range, and of what is made from one
	maxBits    = 1 << 16   // of a product of whole numbers
	maxDigits  = 4300      // of a number in a string, as in Python
	maxDepth   = 500       // of what is written as text, and of nested tuples
	maxSpread  = 1 << 12   // arguments of a call by *list
	maxVisited = 1 << 20   // values within a tuple

	maxFrameName = 1 << 10   // bytes of the name of an atlas or a frame
	slice        = 1_000_000 // steps between two checks of the memory: about 30 ms
	look         = 16 << 20  // bytes between two checks of the memory
	stepBytes    = 32        // average memory of a step, at most: an element of a list or a small object
)

// guard limits what one thread uses. The interpreter counts steps; memory is limited as follows.
//
// Each operation that can make a large value (rewrite finds them) asks the guard first. A value over maxValue is
// refused, always at the same place. The sizes of all such values are added up, garbage included. Every 16 MiB and
// every million steps, a thread whose sum is over its limit checks the heap of the whole Kiln process: if that has
// grown by the limit since the thread began, without garbage, the thread ends. So a script whose sum is below its limit
// is never ended. One above it may be ended although another script uses the memory, and its job is tried again in the
// next build.
type guard struct {
	steps uint64 // limit
	used  uint64 // by threads that have ended
	limit int64  // bytes
	made  int64
	next  int64       // value of made for the next check
	base  int64       // heap at the beginning
	over  *limitError // ended the thread between two steps
}

const guardKey, jobKey = "guard", "job"

func newGuard(steps uint64, memory int64) *guard {
	return &guard{steps: steps, limit: memory, next: look, base: heap()}
}

func guardOf(thread *starlark.Thread) *guard { return thread.Local(guardKey).(*guard) }

// attach puts a thread under the guard. Threads that run one after the other share its limits.
func (g *guard) attach(thread *starlark.Thread) {
	thread.SetLocal(guardKey, g)
	left := g.steps - min(g.used, g.steps-1)
	thread.SetMaxExecutionSteps(min(slice, left))
	thread.OnMaxSteps = func(t *starlark.Thread) {
		done := t.ExecutionSteps()
		g.made += slice * stepBytes
		switch err := g.look(); {
		case done >= left:
			g.over = &limitError{text: fmt.Sprintf("the script took more than %d steps", g.steps), hint: "does a loop not end? else let image and bytes operations do the work"}
			t.Cancel("too many steps")
		case err != nil:
			g.over = err
			t.Cancel("too much memory")
		default:
			t.SetMaxExecutionSteps(min(done+slice, left))
		}
	}
}

// heap is the size of all objects in Kiln, including garbage that was not found yet, in bytes.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

func (g *guard) look() *limitError {
	g.next = g.made + look
	if g.made < g.limit || heap() < g.base+g.limit {
		return nil
	}
	runtime.GC()
	if heap() < g.base+g.limit {
		return nil
	}
	return &limitError{text: fmt.Sprintf("the script took more than %d MiB of memory", g.limit>>20), hint: "raise `memory` of the processor in kiln.toml if it needs that much", moment: true}
}

// limitError means that a script exceeded a limit.
type limitError struct {
	text, hint string
	moment     bool // it may pass
}

func (e *limitError) Error() string { return e.text }

// take is called before n bytes are allocated for one value.
func take(thread *starlark.Thread, n int64) error {
	if n < 0 || n > maxValue {
		return &limitError{text: fmt.Sprintf("a value would be larger than %d MiB", maxValue>>20)}
	}
	g := guardOf(thread)
	if g.made += n; g.made >= g.next {
		if over := g.look(); over != nil {
			return over
		}
	}
	if n >= askedFor {
		return askMemory(thread, 0)
	}
	return nil
}

// askedFor is the size from which on memory for a value is requested from the build, in bytes; smaller values are
// covered by the expected memory of a job.
const askedFor = 1 << 20

// askMemory waits until the build has memory for everything that the script made and may still use, and for more. The
// time limit does not count meanwhile.
func askMemory(thread *starlark.Thread, more int64) error {
	j, ok := thread.Local(jobKey).(*jobValue)
	if !ok {
		return nil
	}
	g := guardOf(thread)
	j.clock.pause()
	defer j.clock.resume()
	return j.job.NeedMemory(min(g.made, g.limit) + more)
}

// sizeOf is the size of a value itself, without its elements, in bytes.
func sizeOf(v starlark.Value) int64 {
	switch v := v.(type) {
	case starlark.String:
		return int64(len(v))
	case starlark.Bytes:
		return int64(len(v))
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			return bitsOf(n) / 8
		}
		return int64(v.BigInt().BitLen()) / 8
	case *starlark.Dict, *starlark.Set:
		return 64 * int64(starlark.Len(v))
	case starlark.Sequence:
		return 16 * int64(v.Len())
	}
	return 0
}

func bitsOf(n int64) int64 {
	if n < 0 {
		n = -n
	}
	bits := int64(0)
	for ; n > 0; n >>= 8 {
		bits += 8
	}
	return bits
}

// weigh adds up the text of a value as str() writes it, in bytes, with shared parts each time they are written. It
// stops over the limit, and at maxDepth.
func weigh(v starlark.Value, limit int64, depth int) (int64, error) {
	if depth > maxDepth {
		return 0, &limitError{text: fmt.Sprintf("a value is nested deeper than %d", maxDepth)}
	}
	total := int64(2)
	add := func(e starlark.Value) error {
		n, err := weigh(e, limit-total, depth+1)
		if total += n + 2; err == nil && total > limit {
			err = &limitError{text: fmt.Sprintf("the text of a value would be larger than %d MiB", maxText>>20)}
		}
		return err
	}
	switch v := v.(type) {
	case starlark.String, starlark.Bytes:
		if depth == 0 {
			return sizeOf(v), nil
		}
		return 2 + 4*sizeOf(v), nil // escapes
	case starlark.Int:
		return 2 + 3*sizeOf(v), nil
	case *starlark.Dict:
		for k, e := range v.Entries() {
			if err := add(k); err != nil {
				return total, err
			}
			if err := add(e); err != nil {
				return total, err
			}
		}
		return total, nil
	case *starlark.List:
		for i := range v.Len() {
			if err := add(v.Index(i)); err != nil {
				return total, err
			}
		}
		return total, nil
	case starlark.Tuple:
		for _, e := range v {
			if err := add(e); err != nil {
				return total, err
			}
		}
		return total, nil
	case starlark.Iterable:
		if _, ok := v.(starlark.Sequence); !ok || v.Type() == "range" {
			return 64, nil
		}
		for e := range starlark.Elements(v) {
			if err := add(e); err != nil {
				return total, err
			}
		}
		return total, nil
	case interface{ Attrs() []starlark.Value }: // structs and elements of XML
		for _, e := range v.Attrs() {
			if err := add(e); err != nil {
				return total, err
			}
		}
		return total, nil
	}
	return 64, nil
}

// takeText is take for the text of a value.
func takeText(thread *starlark.Thread, v starlark.Value) error {
	n, err := weigh(v, maxText, 0)
	if err != nil {
		return err
	}
	return take(thread, n)
}

// flat checks a tuple: its hash, and its text in errors, are computed by recursion.
func flat(t starlark.Tuple) error {
	visited, bytes := 0, int64(0)
	var walk func(t starlark.Tuple, depth int) error
	walk = func(t starlark.Tuple, depth int) error {
		if depth > maxDepth {
			return &limitError{text: fmt.Sprintf("a tuple is nested deeper than %d", maxDepth)}
		}
		for _, e := range t {
			switch e := e.(type) {
			case starlark.Tuple:
				if visited++; visited > maxVisited {
					return &limitError{text: fmt.Sprintf("a tuple has more than %d others within", maxVisited)}
				}
				if err := walk(e, depth+1); err != nil {
					return err
				}
			case starlark.String, starlark.Bytes:
				if bytes += sizeOf(e); bytes > maxValue/4 {
					return &limitError{text: fmt.Sprintf("a tuple holds more than %d MiB of text", maxValue>>22)}
				}
			}
		}
		return nil
	}
	return walk(t, 0)
}

// checked returns a value unless it is a tuple that is not allowed, or a list of such tuples.
func checked(v starlark.Value, err error) (starlark.Value, error) {
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case starlark.Tuple:
		err = flat(v)
	case *starlark.List:
		for e := range v.Elements() {
			if t, ok := e.(starlark.Tuple); ok && err == nil {
				err = flat(t)
			}
		}
	}
	return v, err
}

// operate runs one of the growing operators.
func operate(thread *starlark.Thread, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	if xi, ok := x.(starlark.Int); ok {
		if yi, ok := y.(starlark.Int); ok {
			return whole(op, xi, yi)
		}
	}
	n := sizeOf(x) + sizeOf(y)
	switch op {
	case syntax.STAR:
		n = repeated(x, y)
	case syntax.PERCENT:
		if format, ok := x.(starlark.String); ok {
			w, err := weigh(y, maxText, 0)
			if err != nil {
				return nil, err
			}
			n = int64(len(format)) + w
		}
	}
	if err := take(thread, n); err != nil {
		return nil, err
	}
	v, err := starlark.Binary(op, x, y)
	if _, ok := v.(starlark.Tuple); ok {
		return checked(v, err)
	}
	return v, err
}

func whole(op syntax.Token, x, y starlark.Int) (starlark.Value, error) {
	if op == syntax.STAR && 8*(sizeOf(x)+sizeOf(y)) > maxBits || op == syntax.LTLT && 8*sizeOf(x) > maxBits {
		return nil, &limitError{text: fmt.Sprintf("a whole number would have more than %d bits", maxBits)}
	}
	return starlark.Binary(op, x, y)
}

// repeated is the size of x * y if one is a whole number, in bytes; -1 if it is too large.
func repeated(x, y starlark.Value) int64 {
	if _, ok := x.(starlark.Int); ok {
		x, y = y, x
	}
	times, ok := y.(starlark.Int)
	if !ok {
		return 0
	}
	n, ok := times.Int64()
	size := sizeOf(x)
	switch {
	case times.Sign() <= 0 || size == 0:
		return 0
	case !ok || n > maxValue/size:
		return -1
	}
	return n * size
}

// inPlace runs x op= y: lists are extended, sets and dicts updated in place.
func inPlace(thread *starlark.Thread, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	list, ok := x.(*starlark.List)
	if it, iterable := y.(starlark.Iterable); ok && iterable && op == syntax.PLUS {
		extend, err := list.Attr("extend")
		if err != nil {
			return nil, err
		}
		if err := take(thread, sizeOf(x)+16*int64(max(0, starlark.Len(it)))); err != nil {
			return nil, err
		}
		_, err = starlark.Call(thread, extend, starlark.Tuple{y}, nil)
		return x, err
	}
	return operate(thread, op, x, y)
}

// element runs x[i] op= y.
func element(thread *starlark.Thread, op syntax.Token, x, i, y starlark.Value) (starlark.Value, error) {
	switch c := x.(type) {
	case starlark.HasSetKey:
		old, ok, err := c.Get(i)
		if err == nil && !ok {
			err = fmt.Errorf("key %s not in %s", i, x.Type())
		}
		if err != nil {
			return nil, err
		}
		v, err := inPlace(thread, op, old, y)
		if err != nil {
			return nil, err
		}
		return starlark.None, c.SetKey(i, v)
	case starlark.HasSetIndex:
		n, err := starlark.AsInt32(i)
		if n < 0 {
			n += c.Len()
		}
		if err != nil || n < 0 || n >= c.Len() {
			return nil, fmt.Errorf("%s index %s out of range: it has %d elements", x.Type(), i, c.Len())
		}
		v, err := inPlace(thread, op, c.Index(n), y)
		if err != nil {
			return nil, err
		}
		return starlark.None, c.SetIndex(n, v)
	}
	return nil, fmt.Errorf("%s value does not support item assignment", x.Type())
}

// building are the methods of built-in types whose result can be larger than their arguments.
var building = map[string]bool{
	"join": true, "replace": true, "format": true, "extend": true, "update": true, "union": true,
	"items": true, "popitem": true, "split": true, "rsplit": true, "splitlines": true, "keys": true, "values": true,
	"upper": true, "lower": true, "title": true, "capitalize": true,
}

// attribute is v.name; a method then asks the guard first.
func attribute(v starlark.Value, name string) (starlark.Value, error) {
	has, ok := v.(starlark.HasAttrs)
	var a starlark.Value
	var err error
	if ok {
		a, err = has.Attr(name)
	}
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, fmt.Errorf("%s has no .%s field or method", v.Type(), name)
	}
	method, ok := a.(*starlark.Builtin)
	if !ok || !building[name] {
		return a, nil
	}
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		n, err := built(v, name, args, kwargs)
		if err == nil {
			err = take(thread, n)
		}
		if err != nil {
			return nil, err
		}
		return checked(method.CallInternal(thread, args, kwargs))
	}), nil
}

// built is an upper estimate of the size of a method's result, in bytes.
func built(v starlark.Value, name string, args starlark.Tuple, kwargs []starlark.Tuple) (int64, error) {
	size := sizeOf(v)
	s, _ := starlark.AsString(v)
	text := func(i int) string {
		if i >= len(args) {
			return ""
		}
		t, _ := starlark.AsString(args[i])
		return t
	}
	switch name {
	case "join":
		n := int64(0)
		if len(args) > 0 {
			if it, ok := args[0].(starlark.Iterable); ok {
				for e := range starlark.Elements(it) {
					if n += size + sizeOf(e); n > maxValue {
						break
					}
				}
			}
		}
		return n, nil
	case "replace":
		return size + int64(strings.Count(s, text(0)))*int64(len(text(1))), nil
	case "format":
		n := int64(0)
		for _, a := range args {
			w, err := weigh(a, maxText, 0)
			if err != nil {
				return 0, err
			}
			n += w
		}
		for _, kv := range kwargs {
			w, err := weigh(kv[1], maxText, 0)
			if err != nil {
				return 0, err
			}
			n += w
		}
		return size + int64(strings.Count(s, "{"))*min(n, maxValue), nil
	case "split", "rsplit", "splitlines":
		sep := text(0)
		if name == "splitlines" || sep == "" {
			return 16 * (size/2 + 1), nil
		}
		return 16 * int64(strings.Count(s, sep)+1), nil
	case "extend", "update", "union":
		for _, a := range args {
			size += 4 * max(sizeOf(a), 16*int64(max(0, starlark.Len(a))))
		}
		return size, nil
	}
	return 4 * size, nil
}
