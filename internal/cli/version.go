package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Version of a kiln.
type Version struct {
	Number   string // "1.2.0"
	Revision string // of Kiln's source code, perhaps its first digits; "" if not known
	Modified bool   // the source code differed from the revision
}

// ReadVersion adds what the Go linker recorded to a version number.
func ReadVersion(number string) Version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version{Number: number}
	}
	return versionIn(info, number)
}

// module is Kiln's.
const module = "github.com/kiln-pipeline/kiln"

// versionIn adds what is known of a program. In a team's own kiln, what version control says is about the team's source code: there, the
// version of Kiln's module counts, and one that is replaced by a folder has none.
func versionIn(info *debug.BuildInfo, number string) Version {
	v := Version{Number: number}
	of := info.Main
	if of.Path != module {
		i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == module })
		if i < 0 {
			return v
		}
		of = *info.Deps[i]
		if of.Replace != nil {
			of = *of.Replace
		}
	}
	if parts := strings.Split(of.Version, "-"); len(parts) > 2 { // v0.1.1-0.20261128104854-6bdd9823aaaa, a commit without a tag
		v.Revision, _, _ = strings.Cut(parts[len(parts)-1], "+")
		v.Modified = strings.HasSuffix(of.Version, "+dirty")
	}
	if info.Main.Path != module {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// Identity identifies the program.
func (v Version) Identity() string {
	if v.Revision == "" {
		return v.Number
	}
	if v.Modified {
		return v.Number + "+" + v.Revision + ".modified"
	}
	return v.Number + "+" + v.Revision
}

// Text is the version for display.
func (v Version) Text() string {
	s := v.Number
	if v.Revision != "" {
		s += " (" + v.Revision[:min(12, len(v.Revision))]
		if v.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return s
}

type versionLine struct {
	Type     string `json:"type"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which Kiln this is",
		GroupID: groupAbout,
		Example: "  kiln version",
		Args:    atMost(0),
		RunE:    func(*cobra.Command, []string) error { return a.tellVersion() },
	}
}

func (a *app) tellVersion() error {
	v := a.cfg.Version
	if a.json {
		return a.emit(versionLine{"version", v.Number, v.Revision, v.Modified, runtime.Version(), runtime.GOOS, runtime.GOARCH})
	}
	_, err := fmt.Fprintf(a.out, "kiln %s, %s, %s/%s\n", v.Text(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
