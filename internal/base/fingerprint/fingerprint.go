// Package fingerprint finds what stands for the code of a processor in Go that a team compiles into a kiln of its own.
//
// What is hashed is always what was compiled, never what lies on a disk: a file may be saved while the compiler reads it,
// and a program may be copied long after. There are three ways, the most precise first:
//
//   - The source that the processor carries in itself (processor.Sourced), if that is all of it: every package of a work tree that
//     it imports, tests left out. Modules that it imports count by their versions.
//   - The version of its module, if it has one.
//   - The whole program. That is always right, and changes whenever anything in the program does.
//
// In the first two ways the values that the processor was made with count besides: tilemap.New(16). Where these are more than values, such
// as a function, whose code may be anywhere in the program, the program counts.
package fingerprint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// Way is how the code of a processor is known.
type Way string

const (
	Source  Way = "source"  // its packages' source
	Module  Way = "module"  // its module's version
	Program Way = "program" // the program that it is compiled into
)

// Code stands for a processor's code: another text if the code is another.
type Code struct {
	Way  Way
	Text string
}

// Binary is the program that runs.
type Binary struct {
	Info *debug.BuildInfo // nil: it is not known how it was built
	Hash func() string    // of the program, made once
}

// This is the program that runs now.
func This() Binary {
	info, _ := debug.ReadBuildInfo()
	return Binary{info, sync.OnceValue(hashSelf)}
}

// hashSelf hashes the program's file, 25 ms for 40 MB. One that cannot be read is never the same as before.
func hashSelf() string {
	name, err := os.Executable()
	if err == nil {
		var f *os.File
		if f, err = os.Open(name); err == nil {
			defer f.Close()
			var h digest.Hash
			if h, _, err = digest.Reader(f); err == nil {
				return h.String()
			}
		}
	}
	return fmt.Sprintf("process %d: %v", os.Getpid(), err)
}

// Of finds the code of a processor.
func Of(p processor.Processor, in Binary) Code {
	t := reflect.TypeOf(p)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	values := &values{sum: digest.Build("values")}
	if in.Info != nil && t.PkgPath() != "" && values.add(reflect.ValueOf(p)) {
		made := " " + values.sum.Sum().String()
		home := t.PkgPath()
		if home == "main" {
			home = in.Info.Path
		}
		if s, ok := p.(processor.Sourced); ok {
			if text, err := ofSource(s.Source(), home, t.Name(), in.Info); err == nil {
				return Code{Source, text + made}
			}
		}
		if m := moduleOf(home, in.Info); m != nil && m.Version != "" {
			return Code{Module, m.text() + made}
		}
	}
	return Code{Program, in.Hash()}
}

// values hashes what a processor holds.
type values struct {
	sum     *digest.Builder
	visited int
}

// most is how many values a processor may hold to be known by them; it ends what leads back to itself.
const most = 10_000

// add is false if it comes upon what is more than a value.
func (s *values) add(v reflect.Value) bool {
	if s.visited++; s.visited > most {
		return false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
		if v.IsZero() {
			s.sum.Str("nil", "")
			return true
		}
		return v.Kind() == reflect.Pointer && s.add(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			s.sum.Str("field", v.Type().Field(i).Name)
			if !s.add(v.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		s.sum.Str("length", strconv.Itoa(v.Len()))
		for i := range v.Len() {
			if !s.add(v.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return s.addMap(v)
	}
	s.sum.Str(v.Kind().String(), fmt.Sprint(v))
	return true
}

// addMap takes the entries in the order of their keys.
func (s *values) addMap(v reflect.Value) bool {
	keys := v.MapKeys()
	if k := v.Type().Key().Kind(); len(keys) > 0 && k != reflect.String && k != reflect.Bool && (k < reflect.Int || k > reflect.Float64) {
		return false
	}
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, k := range keys {
		s.sum.Str("key", fmt.Sprint(k))
		if !s.add(v.MapIndex(k)) {
			return false
		}
	}
	return true
}

// module is a module in a program. Its version is empty if it comes from a work tree.
type module struct{ Path, Version, Sum string }

func (m *module) text() string { return m.Path + "@" + m.Version + " " + m.Sum }

// moduleOf is the module of a package, or nil for one of the standard library.
func moduleOf(pkg string, info *debug.BuildInfo) *module {
	var found *debug.Module
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if (pkg == m.Path || strings.HasPrefix(pkg, m.Path+"/")) && m.Path != "" && (found == nil || len(m.Path) > len(found.Path)) {
			found = m
		}
	}
	if found == nil {
		return nil
	}
	return versionOf(found)
}

// versionOf leaves out versions that say less than all of the code: of a work tree that is not as it was committed.
func versionOf(m *debug.Module) *module {
	out := &module{Path: m.Path, Version: m.Version, Sum: m.Sum}
	if m.Replace != nil {
		out.Version, out.Sum = m.Replace.Path+"@"+m.Replace.Version, m.Replace.Sum
		if m.Replace.Version == "" {
			out.Version = ""
		}
	}
	if out.Version == "(devel)" || strings.Contains(out.Version, "+dirty") {
		out.Version = ""
	}
	return out
}

// contract is what of Kiln a processor is written against. Its meaning is part of every fingerprint by a number of its own.
const contract = "github.com/kiln-pipeline/kiln/processor"

// maxSource is how much source a processor may carry, in bytes.
const maxSource = 64 << 20

var errIncomplete = errors.New("not all of the source")

// ofSource hashes the source of a package, in which a type of this name is declared. It fails if more source would be needed than there is.
func ofSource(source fs.FS, home, typeName string, info *debug.BuildInfo) (string, error) {
	typeName, _, _ = strings.Cut(typeName, "[")
	sum := digest.Build("source").Str("package", home)
	packages := map[string]bool{} // that source is there of
	imports := map[string]bool{}
	declared := false
	size := 0
	err := fs.WalkDir(source, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		data, err := readFile(source, name, maxSource-size)
		if err != nil {
			return err
		}
		size += len(data)
		sum.Str("file", name).Hash("content", digest.Of(data))
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, data, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		if !self(f, source, path.Dir(name)) {
			return errIncomplete
		}
		packages[path.Join(home, path.Dir(name))] = true
		for _, i := range f.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			imports[p] = true
		}
		declared = declared || path.Dir(name) == "." && declares(f, typeName)
		return nil
	})
	if err == nil && !declared {
		err = errIncomplete // it is the source of another package
	}
	if err != nil {
		return "", err
	}
	modules, err := outside(imports, packages, info)
	if err != nil {
		return "", err
	}
	if modules { // whatever these import counts as well
		for _, m := range info.Deps {
			if m := versionOf(m); !strings.HasPrefix(contract, m.Path+"/") {
				sum.Str("module", m.text())
			}
		}
	}
	return sum.Sum().String(), nil
}

// outside looks at what is imported besides the packages that source is there of: it fails if that is of a work tree, and tells whether
// it is of a module.
func outside(imports, packages map[string]bool, info *debug.BuildInfo) (modules bool, err error) {
	for p := range imports {
		if packages[p] || p == contract || strings.HasPrefix(p, contract+"/") {
			continue
		}
		switch m := moduleOf(p, info); {
		case m == nil:
		case m.Version == "":
			return false, errIncomplete
		default:
			modules = true
		}
	}
	return modules, nil
}

// self tells whether a file of Go compiles to nothing but what is in it, and in files that are there: no C, no assembly, and no embedded
// file that is elsewhere.
func self(f *ast.File, source fs.FS, dir string) bool {
	for _, i := range f.Imports {
		if i.Path.Value == `"C"` {
			return false
		}
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil {
			return false
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			patterns, ok := strings.CutPrefix(c.Text, "//go:embed ")
			if !ok {
				continue
			}
			for _, p := range strings.Fields(patterns) {
				p = strings.TrimPrefix(strings.Trim(p, "\"`"), "all:")
				if found, err := fs.Glob(source, path.Join(dir, p)); err != nil || len(found) == 0 {
					return false
				}
			}
		}
	}
	return true
}

func declares(f *ast.File, typeName string) bool {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if t, ok := s.(*ast.TypeSpec); ok && t.Name.Name == typeName {
					return true
				}
			}
		}
	}
	return false
}

func readFile(source fs.FS, name string, most int) ([]byte, error) {
	f, err := source.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("more than %d bytes of source", maxSource)
	}
	return data, err
}
