// Package command turns an external program into a processor: the project file declares it with a template for the
// command line.
//
// The program runs without a shell. The files that it reads are found in one of three ways:
//
//   - Declared: it runs in an input view, a folder with only the asset's file and the files that the job's inputs
//     match, each at its path below the source roots. All of them are recorded with their content, and so is the
//     listing of each glob, whether the program reads them or not, because they must be opened to be laid out before
//     it runs. A depfile never reduces that. It can only show that a file was read and not recorded, and that fails
//     the job.
//   - Traced: it runs in a view of links to the source files, and each file that it accesses is recorded afterwards,
//     including those that it did not find, and its own libraries.
//   - Depfile: the same, with the list that the program itself writes.
//
// What is recorded afterwards is compared with its state when the program read it. If it changed, the job fails, and is
// tried again.
//
// Products of other assets that the job needs by hand are beside the view, in a folder of their own.
//
// A job of another processor runs a program in the same way, by [Programs]: the same view, sandbox, environment and
// record.
//
// The program's paths are relative, its environment is fixed except for the variables that are declared, and copies
// have a fixed time, so that its output cannot depend on the machine, the user or the day. On Linux it runs in a
// sandbox (package seal): it can write only to its scratch folder, and cannot use the network. Other systems do not
// enforce that.
package command

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// DefaultTimeout is how long a program may run by default. It ends a program that waits for input, and does not limit one that works.
const DefaultTimeout = 10 * time.Minute

// runner is part of every fingerprint. It is raised when this package changes the surroundings of
// programs: the environment, or the layout of folders; or if what it made before may be wrong.
const runner = "3"

// Config declares a processor that runs a program.
type Config struct {
	// Name is the name in rules, and the type of the main product.
	Name string

	// Summary is one line for display; empty is "runs" and the program.
	Summary string

	// Version is raised by hand when the output changes although nothing recorded does; 0 is 1.
	Version int

	// Command is the program and its arguments, as templates: see docs/commands.md. The
	// program is a name on PATH or a path relative to the project, without placeholders.
	Command []string

	// Extensions for which it is the default processor, lower case with the dot.
	Extensions []string

	// Folder means that its assets are folders: {in} is the folder, and the view has all files below it.
	Folder bool

	// Memory that one run needs at most, in bytes; 0: not known.
	Memory int64

	// Output is the extension of the main product, with the dot; empty keeps the source's own name.
	Output string

	// Outputs are the extensions of further products by name; the name is the type as well.
	Outputs map[string]string

	// Reads is how the files are found that the program reads.
	Reads Reads

	// Network allows the program to use the network.
	Network bool

	// Timeout of one run; 0 is DefaultTimeout.
	Timeout time.Duration

	// Env names the variables that are passed to the program and recorded.
	Env []string

	// Settings for rules, in the order of display.
	Settings []Setting

	Kiln
}

// Kiln has the files of Kiln itself in the project.
type Kiln struct {
	// Built and State are the folders for products, the current one first, and for Kiln's state: absolute, under all their names. Shipped
	// are the files elsewhere that Kiln writes after the jobs of a build: resource ids and constants. Programs must not read any of these,
	// because their content at that time is undefined. They are not part of the fingerprint.
	Built, State, Shipped []string
}

// Reads is how the files are found that a program reads.
type Reads string

const (
	Declared Reads = ""        // by the job's inputs: it gets only these files
	Traced   Reads = "traced"  // by watching it; on Linux only
	Depfile  Reads = "depfile" // from what it writes to {dep}
)

// Setting is one setting of the processor.
type Setting struct {
	// Name is lower case letters, digits and underscores.
	Name string

	// Default also gives the type: bool, int, int64, float64, string or a slice of those; a []any
	// needs elements of one type, and is a list of strings if it is empty.
	Default any

	Doc string
}

// ConfigError is an error in a Config.
type ConfigError struct {
	// Key of the declaration: "command", "outputs.reflection", "settings.level".
	Key string

	// Index of the element if the key's value is a list; -1: the whole value.
	Index int

	Code diag.Code
	Text string
	Hint string
}

func (e *ConfigError) Error() string {
	if e.Index >= 0 {
		return fmt.Sprintf("%s[%d]: %s", e.Key, e.Index, e.Text)
	}
	return e.Key + ": " + e.Text
}

// New makes the processor. Its error is one or several *ConfigError, joined.
func New(c Config) (processor.Processor, error) {
	p := &proc{config: c, timeout: c.Timeout, frames: &frames{rest: idleSandbox}, machine: &machine{}}
	if p.timeout == 0 {
		p.timeout = DefaultTimeout
	}
	p.outputs = append(p.outputs, output{extension: c.Output})
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		p.outputs = append(p.outputs, output{name, c.Outputs[name]})
	}
	errs := check(c)
	settings, err := settingsStruct(c.Settings)
	errs = append(errs, err...)
	p.settings = settings
	p.args, err = parseCommand(c)
	if errs = append(errs, err...); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Fingerprint is everything in the declaration that a run depends on and that is not in another part of a job's key:
// the template, the outputs and the names of variables. The timeout is not included, because it changes no output.
func (c Config) Fingerprint() string {
	b := digest.Build("command").Str("runner", runner)
	for _, s := range c.Command {
		b.Str("argument", s)
	}
	b.Str("output", c.Output)
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		b.Str("output "+name, c.Outputs[name])
	}
	for _, s := range c.Env {
		b.Str("env", s)
	}
	b.Str("reads", string(c.Reads)).Str("network", strconv.FormatBool(c.Network))
	return b.Sum().String()
}

// output is one product that the program writes; the main one has no name.
type output struct{ name, extension string }

type proc struct {
	config   Config
	timeout  time.Duration
	outputs  []output // the main one first, then by name
	args     []argument
	settings any // as processor.Info.Settings
	frames   *frames
	*machine

	run *processor.Command // the command of a job of another processor: see Programs; nil: this processor's own
}

// machine is what is remembered about this machine between runs.
type machine struct {
	linked linked
	own    atomic.Int64 // Kiln's own peak memory when it was last measured, in bytes
}

// Runs reports whether a processor was made by New, and so runs a program.
func Runs(p processor.Processor) bool {
	_, ok := p.(*proc)
	return ok
}

func (p *proc) Info() processor.Info {
	info := processor.Info{
		Name:       p.config.Name,
		Version:    max(p.config.Version, 1),
		Summary:    p.config.Summary,
		Extensions: p.config.Extensions,
		Folder:     p.config.Folder,
		Settings:   p.settings,
		Memory:     p.config.Memory,
	}
	if info.Summary == "" {
		info.Summary = "runs " + p.config.Command[0]
	}
	for _, o := range p.outputs {
		info.Products = append(info.Products, processor.ProductType{Type: p.productType(o), Extension: o.extension})
	}
	return info
}

func (p *proc) productType(o output) string {
	if o.name == "" {
		return p.config.Name
	}
	return o.name
}

var (
	validName      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`) })
	validExtension = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\.[^./\\*?\[\]{}<>:|"\pC\pZ]+)+$`) })
	validEnv       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^=\x00]+$`) })
)

// check checks everything except the template and the settings.
func check(c Config) (errs []error) {
	bad := func(key string, index int, hint, format string, args ...any) {
		errs = append(errs, &ConfigError{key, index, diag.CommandConfig, fmt.Sprintf(format, args...), hint})
	}
	if !validName().MatchString(c.Name) {
		bad("name", -1, "use lower case letters, digits and dashes", "%q is not a name of a processor", c.Name)
	}
	for i, e := range c.Extensions {
		if !validExtension().MatchString(e) || strings.ToLower(e) != e {
			bad("extensions", i, `write it in lower case and with the dot, as ".vert"`, "%q is not an extension", e)
		}
	}
	if c.Output != "" && !validExtension().MatchString(c.Output) {
		bad("output", -1, `write it with the dot, as ".spv"; leave it out to keep the source's name`, "%q is not an extension", c.Output)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		if !validName().MatchString(name) {
			bad("outputs."+name, -1, "use lower case letters, digits and dashes", "%q is not a name of a product", name)
		}
		if !validExtension().MatchString(c.Outputs[name]) {
			bad("outputs."+name, -1, `write it with the dot, as ".json"`, "%q is not an extension", c.Outputs[name])
		}
		if "."+name+c.Outputs[name] == c.Output {
			bad("outputs."+name, -1, "choose another name", "it would be the same file as the main product, which ends in %q", c.Output)
		}
	}
	switch c.Reads {
	case Declared, Traced:
	case Depfile:
		if !slices.ContainsFunc(c.Command, func(s string) bool { return strings.Contains(s, "{dep}") }) {
			bad("inputs", -1, "name {dep} in `command`, where the program gets the path of that file", "inputs come from a depfile, and the command has no {dep}")
		}
	default:
		bad("inputs", -1, `use "declared", "traced", "depfile" or a list of globs`, "%q is not a way to know inputs", string(c.Reads))
	}
	if c.Timeout < 0 {
		bad("timeout", -1, `write it as "90s" or "5m"`, "%v is not a time to run", c.Timeout)
	}
	for i, name := range c.Env {
		if !validEnv().MatchString(name) {
			bad("env", i, "name the variable only; its value comes from the environment", "%q is not a name of a variable", name)
		}
	}
	return errs
}
