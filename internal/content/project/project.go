// Package project reads kiln.toml and rules.toml into typed values with their places.
//
// Reading is strict: an unknown key, a wrong type, or an invalid name is an error with file, line,
// column, the line itself and a suggestion; and all errors of a file are reported at once. Package asset
// checks what needs more than the file itself, such as whether a processor exists or a rule matches
// anything. Find and Load are the only functions that access the disk, and only for kiln.toml.
package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// File is the name of a project file, RulesFile that of a folder's rules.
const (
	File      = "kiln.toml"
	RulesFile = "rules.toml"
)

// StateFolder is the folder of Kiln's state in the project folder.
const StateFolder = ".kiln"

// Project is a kiln.toml, with default values.
type Project struct {
	Dir       string // the project folder, absolute; "" if parsed from bytes
	Text      []byte // content of the file; nil if parsed from bytes
	Name      string
	Roots     []Root // in order; a later one overlays an earlier one
	Kiln      string // folder of the Go package of the project's own kiln, relative to the project folder; "" for none
	KilnSpan  settings.Span
	Output    string // folder relative to the project folder, forward slashes
	Ignore    []string
	Platforms []Platform // at least one, in the order of the file
	Rules     []Rule     // including entries of [[assets]]
	Names     Names      // groups and variables
	Listed    []Listed   // the strings of all lists of patterns, unchanged
	// Processors are those that the project declares.
	Processors []CustomProcessor
	Parcels    []Parcel
	Constants  []Constants
	Build      Build
	Cache      Cache
	Execution  Execution
	Run        Run
}

// Root is a source root.
type Root struct {
	Path string // forward slashes; relative to the project folder, perhaps with ".." at the beginning, or, for a root with a name, absolute
	Name string // "", or a name that replaces the path in all state, so that the path may differ between machines
	Span settings.Span
}

// Dir is the folder of the root in a project in dir, absolute.
func (r *Root) Dir(dir string) string {
	if p := filepath.FromSlash(r.Path); filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, filepath.FromSlash(r.Path))
}

// Prefix is the prefix of displayed paths of its files.
func (r *Root) Prefix() string {
	switch {
	case r.Name != "":
		return r.Name + ":"
	case r.Path == ".":
		return ""
	}
	return strings.TrimSuffix(r.Path, "/") + "/"
}

// Textures is the key of a platform's policy for textures. No processor has this name.
const Textures = "textures"

// TextureSettings are the settings of a policy for textures.
var TextureSettings = []string{"family", "quality", "container", "compress"}

// Platform is a target.
type Platform struct {
	Name       string
	Textures   *settings.Table     // for each processor that makes textures, below its own settings; nil: none
	Processors []PlatformProcessor // in the order of the file
	Span       settings.Span       // zero for the default platform
}

// PlatformProcessor has the settings of a processor on a platform, below all rules.
type PlatformProcessor struct {
	Name     string
	Settings *settings.Table
	Span     settings.Span
}

// Processor returns the settings of a processor on the platform, or nil.
func (p *Platform) Processor(name string) *settings.Table {
	for i := range p.Processors {
		if p.Processors[i].Name == name {
			return p.Processors[i].Settings
		}
	}
	return nil
}

// Parcel is a package of products.
type Parcel struct {
	Name      string
	Assets    []Pattern // globs of asset ids
	Platforms []string  // none: all

	SharedWith string // the parcel that gets what several of its sharers need; "" for none
	Split      bool   // what several split parcels need goes into parcels made for it

	Budget     int64     // maximum bytes of its file; 0: any
	WarnOnly   bool      // exceeding the budget is only a warning
	Stored     []Pattern // assets that are not compressed
	Store      bool      // nothing is compressed
	Align      int       // of uncompressed contents: a power of two from 16 to 4096
	Dictionary string    // of the compression, a file relative to the project folder; "": none
	Order      string    // the file that says what comes first in it, relative to the project folder; "": none
	Listed     bool      // parcels.json has what is in it

	Span, SharedSpan, DictionarySpan, OrderSpan settings.Span
}

// On reports whether the parcel is made for a platform.
func (p *Parcel) On(platform string) bool {
	return len(p.Platforms) == 0 || slices.Contains(p.Platforms, platform)
}

// Parcel returns a parcel by its name, or nil.
func (p *Project) Parcel(name string) *Parcel {
	for i := range p.Parcels {
		if p.Parcels[i].Name == name {
			return &p.Parcels[i]
		}
	}
	return nil
}

// Custom returns a processor that the project file declares, or nil.
func (p *Project) Custom(name string) *CustomProcessor {
	for i := range p.Processors {
		if p.Processors[i].Name == name {
			return &p.Processors[i]
		}
	}
	return nil
}

// Constants is a source file for the game's code, with a name for each resource.
type Constants struct {
	Language string
	Package  string // of the language; "" is its default
	Template string // a file relative to the project folder that replaces Kiln's own; "": none
	File     string // path, relative to the project folder; "": in the output folder, named as usual in the language

	Span, LanguageSpan, TemplateSpan, FileSpan settings.Span
}

// Build has the settings for builds.
type Build struct {
	Workers int   // 0: one a processor core
	Memory  int64 // bytes that running jobs may use together; 0: the default limit
}

// Find returns the nearest folder, dir or one of its parents, that has a kiln.toml.
func Find(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	var odd *diag.Message // a kiln.toml that is not a file
	for at := start; ; {
		file := filepath.Join(at, File)
		info, err := os.Stat(file)
		if err == nil && !info.IsDir() {
			return at, nil
		}
		if odd == nil {
			odd = noFile(file)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			if odd != nil { // a link to itself
				return "", odd
			}
			return "", diag.Errorf(diag.ProjectMissing, diag.Pos{File: filepath.Join(at, File)}, "cannot be read: %v", cause(err)).
				WithHint("check the permissions of the folder")
		}
		up := filepath.Dir(at)
		if up == at {
			if odd != nil {
				return "", odd
			}
			return "", diag.Errorf(diag.ProjectMissing, diag.Pos{}, "no %s in %s or above it", File, start).
				WithHint("go to the project's folder, name it with -C, or write one with: kiln init")
		}
		at = up
	}
}

// noFile reports what is there instead of a project file: a folder, or a link to nothing. It returns nil if nothing is
// there.
func noFile(file string) *diag.Message {
	at := diag.Pos{File: file}
	switch info, err := os.Lstat(file); {
	case err != nil:
		return nil
	case info.IsDir():
		return diag.Errorf(diag.ProjectMissing, at, "this is a folder, not a file").WithHint("put the file in its place")
	}
	if _, err := os.Stat(file); err != nil {
		return diag.Errorf(diag.ProjectMissing, at, "this symbolic link leads to nothing").WithHint("remove the link, or put back what it pointed to")
	}
	return diag.Errorf(diag.ProjectMissing, at, "this symbolic link leads to a folder, not to a file").WithHint("put the file in its place")
}

// Load reads the kiln.toml of a project folder. The project is nil if it cannot be used at all.
func Load(dir string, given Given) (*Project, diag.List) {
	fail := func(err error) (*Project, diag.List) {
		hint := "check its permissions"
		switch {
		case errors.Is(err, fs.ErrNotExist):
			hint = "write one with: kiln init"
		case errors.Is(err, disk.ErrNotAFile):
			hint = "put a file in its place"
		}
		return nil, diag.List{diag.Errorf(diag.ProjectMissing, diag.Pos{File: File}, "cannot be read: %v", cause(err)).WithHint("%s", hint)}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fail(err)
	}
	data, err := disk.ReadText(filepath.Join(abs, File), maxSize)
	if err != nil {
		return fail(err)
	}
	p, diags := Parse(File, data, given)
	if p != nil {
		p.Dir, p.Text = abs, data
	}
	return p, diags
}

// cause removes the path from an error, because the message has it already.
func cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
