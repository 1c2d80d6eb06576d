// Package fingerprint computes a hash of the code of a Go processor that a team compiles into a kiln of its own.
//
// It always hashes what was compiled, never files on a disk: a file may be saved while the compiler reads it, and a
// program may be copied much later. There are three ways, the most precise first:
//
//   - The source that the processor embeds (processor.Sourced), if that is complete: every package of a work tree that
//     it imports, without tests. Imported modules count by their versions.
//   - The version of its module, if it has one.
//   - The whole program. That is always right, and changes whenever anything in the program does.
//
// In the first two ways the values with which the processor was made also count: tilemap.New(16). If one of them is
// more than a value, such as a function, whose code may be anywhere in the program, the program counts.
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

// Way is how the code of a processor is identified.
type Way string

const (
	Source  Way = "source"  // its packages' source
	Module  Way = "module"  // its module's version
	Program Way = "program" // the program that it is compiled into
)

// Code identifies a processor's code: its text changes with the code.
type Code struct {
	Way  Way
	Text string
}

// Binary is the running program.
type Binary struct {
	Info *debug.BuildInfo // nil: its build information is not known
	Hash func() string    // of the program, computed once
}

// This is the running program.
func This() Binary {
	info, _ := debug.ReadBuildInfo()
	return Binary{info, sync.OnceValue(hashSelf)}
}

// hashSelf hashes the program's file, 25 ms for 40 MB. A program that cannot be read gets a different hash
// each time.
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

// Of returns the code of a processor.
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

// values hashes the fields of a processor.
type values struct {
	sum     *digest.Builder
	visited int
}

// most is how many values a processor may contain; it also ends cyclic values.
const most = 10_000

// add returns false if it finds something other than a value.
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

// addMap adds the entries in the order of their keys.
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

// moduleOf returns the module of a package, or nil for the standard library.
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

// versionOf returns nil for a version that does not identify the code: of a modified work tree.
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

// contract is the package that processors are written against. A separate number for its meaning is part of every
// fingerprint.
const contract = "github.com/kiln-pipeline/kiln/processor"

// maxSource is how much source a processor may embed, in bytes.
const maxSource = 64 << 20

var errIncomplete = errors.New("not all of the source")

// ofSource hashes the source of a package in which a type of this name is declared. It fails if source is missing.
func ofSource(source fs.FS, home, typeName string, info *debug.BuildInfo) (string, error) {
	typeName, _, _ = strings.Cut(typeName, "[")
	sum := digest.Build("source").Str("package", home)
	packages := map[string]bool{} // those whose source is embedded
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
	if modules { // what these import counts too
		for _, m := range info.Deps {
			if m := versionOf(m); !strings.HasPrefix(contract, m.Path+"/") {
				sum.Str("module", m.text())
			}
		}
	}
	return sum.Sum().String(), nil
}

// outside checks imports of packages whose source is not embedded: it fails if one is of a work tree, and reports
// whether one is of a module.
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

// self reports whether a Go file compiles only from itself and embedded files: no C, no assembly, and no go:embed of
// other files.
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
