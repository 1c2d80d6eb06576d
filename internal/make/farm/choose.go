package farm

import (
	"cmp"
	"maps"
	"path/filepath"
	"runtime"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// Choose decides where jobs run besides this machine: by the environment, then by the project file. It is nil if neither says so. dir is
// the project folder.
func Choose(says project.Execution, dir string, getenv func(string) string) (*Place, error) {
	p := &Place{
		Remote: says.Remote, Jobs: cmp.Or(says.Jobs, DefaultJobs), Timeout: cmp.Or(says.Timeout, DefaultTimeout), Kiln: says.Kiln, Only: says.All,
		Properties: machine(), Origin: project.File, Credentials: reapi.FromEnvironment(reapi.FarmVariable, getenv),
	}
	if word := getenv(reapi.FarmVariable); word != "" {
		p.Remote, p.Origin = word, reapi.FarmVariable
		if word != "off" && !reapi.IsAddress(word) {
			return nil, diag.Errorf(diag.FarmWrong, diag.Pos{}, "%s cannot be %q", reapi.FarmVariable, word).
				WithHint("it is the address of a server, like grpcs://build.example.com, or off")
		}
	}
	if p.Remote == "" || p.Remote == "off" {
		return nil, nil
	}
	if says.Kiln != "" {
		if p.Properties = map[string]string{}; !filepath.IsAbs(says.Kiln) {
			p.Kiln = filepath.Join(dir, filepath.FromSlash(says.Kiln))
		}
	}
	maps.Copy(p.Properties, says.Properties)
	maps.DeleteFunc(p.Properties, func(_, value string) bool { return value == "" })
	return p, nil
}

// program is the name of the kiln that workers run.
func (p *Place) program() string {
	if p.Properties["OSFamily"] == "windows" {
		return "kiln.exe"
	}
	return "kiln"
}

// machine is what a worker needs to run the program of this process, as platform properties of the API.
func machine() map[string]string {
	os, ok := map[string]string{"darwin": "macos"}[runtime.GOOS]
	if !ok {
		os = runtime.GOOS
	}
	isa, ok := map[string]string{"amd64": "x86-64", "arm64": "arm-a64"}[runtime.GOARCH]
	if !ok {
		isa = runtime.GOARCH
	}
	return map[string]string{"OSFamily": os, "ISA": isa}
}
