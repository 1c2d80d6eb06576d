package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/secret"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// Tool is an external program.
type Tool struct {
	Name    string   `json:"name"`
	For     string   `json:"for,omitempty"`     // what it does
	Path    string   `json:"path,omitempty"`    // empty if it does not exist or is not executable
	Refused bool     `json:"refused,omitempty"` // it exists, but is not executable
	Version string   `json:"version,omitempty"` // only for tools that Kiln knows
	Assets  []string `json:"assets"`            // ids of the assets that need it
	Install []string `json:"install,omitempty"` // commands; the one for this system is first
}

// known are tools that processors of games often use. The argument version makes a tool print its version. Package
// names are for Debian, Homebrew and winget; "" if there is none. If the tool is not installed, the processor runs the
// tool named by instead.
var known = []struct{ name, does, version, apt, brew, winget, instead string }{
	{"glslc", "GLSL and HLSL to SPIR-V", "--version", "glslc", "shaderc", "KhronosGroup.VulkanSDK", ""},
	{"spirv-cross", "SPIR-V to other shader languages", "--revision", "spirv-cross", "spirv-cross", "KhronosGroup.VulkanSDK", ""},
	{"spirv-opt", "makes SPIR-V smaller", "--version", "spirv-tools", "spirv-tools", "KhronosGroup.VulkanSDK", ""},
	{"opusenc", "sound to Opus", "--version", "opus-tools", "opus-tools", "", "ffmpeg"},
	{"oggenc", "sound to Ogg Vorbis", "--version", "vorbis-tools", "vorbis-tools", "", "ffmpeg"},
	{"assimp", "FBX and other models", "version", "assimp-utils", "assimp", "", ""},
	{"ffmpeg", "video and sound", "-version", "ffmpeg", "ffmpeg", "Gyan.FFmpeg", ""},
}

// insteadOf returns the tool that replaces another one, or "".
func insteadOf(tool string) string {
	for _, k := range known {
		if k.name == tool {
			return k.instead
		}
	}
	return ""
}

// tools finds the installed tools, and the assets that need them: those whose processor runs a tool, and those whose
// job searched one. v may be nil.
func (r *Report) tools(ctx context.Context, p *build.Project, v *view.View) {
	needs := map[string]map[string]bool{}
	need := func(tool, asset string) {
		if needs[tool] == nil {
			needs[tool] = map[string]bool{}
		}
		if asset != "" {
			needs[tool][asset] = true
		}
	}
	for i := range p.Project.Processors {
		c := &p.Project.Processors[i]
		if len(c.Command) == 0 || strings.ContainsAny(c.Command[0], "{}") {
			continue
		}
		need(c.Command[0], "")
		for _, id := range processedBy(v, c.Name) {
			need(c.Command[0], id)
		}
	}
	r.boxes(p.Project.Processors)
	if v != nil {
		v.Traces(func(a *asset.Asset, _, _, _ string, t *engine.Trace) {
			for _, o := range t.Observations {
				if t.Outcome == engine.Succeeded && o.Value == (digest.Hash{}) {
					continue // it was missing, and the job used another one
				}
				name := explain.Subject(o)
				if explain.Kind(o) == "tool" && !filepath.IsAbs(name) && !strings.HasPrefix(name, job.InProject) { // skips paths of traced programs
					need(name, a.ID)
				}
			}
		})
	}
	for _, k := range known {
		r.Tools = append(r.Tools, Tool{Name: k.name, For: k.does, Install: install(k.apt, k.brew, k.winget)})
	}
	var own []Tool
	for name := range needs {
		if !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == name }) {
			own = append(own, Tool{Name: name})
		}
	}
	slices.SortFunc(own, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	r.Tools = append(own, r.Tools...)
	for i := range r.Tools {
		r.tool(ctx, p.Dir, &r.Tools[i], needs[r.Tools[i].Name])
	}
	r.lacking()
}

// lacking reports tools that are needed and missing.
func (r *Report) lacking() {
	have := map[string]bool{}     // installed tools
	reported := map[string]bool{} // tool and asset
	for _, t := range r.Tools {
		have[t.Name] = t.Path != ""
	}
	for _, t := range r.Tools {
		instead := insteadOf(t.Name)
		if t.Path != "" || have[instead] {
			continue
		}
		needed := slices.DeleteFunc(slices.Clone(t.Assets), func(id string) bool { return reported[t.Name+"\x00"+id] })
		if len(needed) == 0 {
			continue
		}
		for _, id := range needed {
			reported[instead+"\x00"+id] = true
		}
		r.add(t.missing(needed, instead))
	}
}

func (t *Tool) missing(assets []string, instead string) *diag.Message {
	m := diag.Errorf(diag.ToolMissing, diag.Pos{}, "%s is not there, and %s", t.Name, needText(assets))
	switch {
	case t.Refused:
		m.Text = fmt.Sprintf("%s is not executable, and %s", t.Name, needText(assets))
		m.WithHint("run `chmod +x %s`; in Git, `git update-index --chmod=+x %[1]s` keeps that for others", t.Name)
	case len(t.Install) > 0 && instead != "":
		m.WithHint("install it: %s; %s does as well", t.Install[0], instead)
	case len(t.Install) > 0:
		m.WithHint("install it: %s", t.Install[0])
	case strings.ContainsAny(t.Name, `/\`):
		m.WithHint("put it there, and make it executable; the path is relative to kiln.toml")
	default:
		m.WithHint("install it, or see that it is on PATH")
	}
	return m
}

// boxes reports guarantees for command processors that this system cannot give.
func (r *Report) boxes(commands []project.CustomProcessor) {
	commands = slices.DeleteFunc(slices.Clone(commands), func(c project.CustomProcessor) bool { return len(c.Command) == 0 })
	if len(commands) == 0 {
		return
	}
	can := seal.Supported()
	for i := range commands {
		if c := &commands[i]; c.Reads == "traced" && can.Trace != nil {
			r.add(c.CommandSpan.Warningf(diag.CommandUntraced, "processor %q: %v", c.Name, can.Trace).
				WithHint("give it a list of `inputs`, or %q; its assets fail here", "depfile"))
		}
	}
	if err := secret.Exposed(); err != nil {
		r.add(diag.Warningf(diag.CommandUnsealed, diag.Pos{}, "external programs can read secrets in the environment of Kiln: %v", err).
			WithHint("give Kiln tokens in files, whose names are in KILN_CACHE_TOKEN_FILE and so on, that only Kiln's user can read"))
	}
	if os.Geteuid() == 0 && runtime.GOOS != "windows" {
		m := diag.Warningf(diag.CommandUnsealed, diag.Pos{}, "Kiln runs as root: external programs have no special rights, "+
			"but they can read, and change the mode, "+
			"owner and times of, every file that belongs to root").
			WithHint("run Kiln as a user who owns nothing but the project")
		m.Severity = diag.Note
		r.add(m)
	}
	if lacks := can.Lacks(); runtime.GOOS == "linux" && len(lacks) > 0 {
		m := diag.Warningf(diag.CommandUnsealed, diag.Pos{}, "this system does not hold external programs back from everything: %s", strings.Join(lacks, "; ")).
			WithHint("use a newer Linux with landlock (6.12 or later has all), and a container that allows seccomp")
		if can.Writes > 0 && can.Network {
			m.Severity = diag.Note
		}
		r.add(m)
	}
}

func processedBy(v *view.View, processor string) []string {
	var ids []string
	if v == nil {
		return nil
	}
	for i := range v.Assets {
		if slices.ContainsFunc(v.Assets[i].Jobs, func(j view.JobView) bool { return j.Processor == processor }) {
			ids = append(ids, v.Assets[i].ID)
		}
	}
	return ids
}

func (r *Report) tool(ctx context.Context, dir string, t *Tool, assets map[string]bool) {
	t.Assets = []string{}
	for id := range assets {
		t.Assets = append(t.Assets, id)
	}
	slices.Sort(t.Assets)
	name := t.Name
	if strings.ContainsAny(name, `/\`) && !filepath.IsAbs(name) {
		name = filepath.Join(dir, filepath.FromSlash(name))
	}
	path, err := exec.LookPath(name)
	if t.Refused = errors.Is(err, fs.ErrPermission); err == nil {
		t.Path = path
		t.Version = version(ctx, t)
	}
}

func needText(assets []string) string {
	switch len(assets) {
	case 1:
		return assets[0] + " needs it"
	case 2:
		return assets[0] + " and " + assets[1] + " need it"
	}
	return assets[0] + ", " + assets[1] + " and others need it"
}

// versionTime is the time limit for a tool to print its version.
const versionTime = 3 * time.Second

var versionNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[nv]?\d+(\.\d+)+[\w.+~-]*`) })

// version runs a known tool to get its version.
func version(ctx context.Context, t *Tool) string {
	for _, k := range known {
		if k.name != t.Name {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, versionTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, t.Path, k.version)
		cmd.Env, cmd.WaitDelay = secret.Environ(), time.Second
		out, err := cmd.CombinedOutput()
		if err != nil && len(out) == 0 {
			return ""
		}
		for line := range strings.Lines(string(out)) {
			if n := versionNumber().FindString(line); n != "" {
				return n
			}
		}
	}
	return ""
}

// install returns the commands that install a package. The one for this system is first.
func install(apt, brew, winget string) []string {
	var list []string
	add := func(system, command, name string) {
		if name == "" {
			return
		}
		if runtime.GOOS == system {
			list = slices.Insert(list, 0, command+name)
		} else {
			list = append(list, command+name)
		}
	}
	add("linux", "apt install ", apt)
	add("darwin", "brew install ", brew)
	add("windows", "winget install ", winget)
	return list
}
