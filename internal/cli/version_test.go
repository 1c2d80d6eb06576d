package cli

import (
	"runtime/debug"
	"testing"
)

// TestVersionIn: two commits have different versions, however the program was made; where nothing is known, nothing is said.
func TestVersionIn(t *testing.T) {
	git := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: modified}}
	}
	kiln := debug.Module{Path: module, Version: "(devel)"}
	tagless := debug.Module{Path: module, Version: "v0.1.1-0.20261128104854-6bdd9823aaaa"}
	team := debug.Module{Path: "example.com/game"}
	local := debug.Module{Path: module, Version: "v0.1.0", Replace: &debug.Module{Path: "../kiln"}}
	for _, c := range []struct {
		name           string
		info           debug.BuildInfo
		text, identity string
	}{
		{"go build", debug.BuildInfo{Main: kiln, Settings: git("false")}, "0.1.0 (0123456789ab)", "0.1.0+0123456789abcdef"},
		{"changed", debug.BuildInfo{Main: kiln, Settings: git("true")}, "0.1.0 (0123456789ab, modified)", "0.1.0+0123456789abcdef.modified"},
		{"go run", debug.BuildInfo{Main: kiln}, "0.1.0", "0.1.0"},
		{"go install", debug.BuildInfo{Main: tagless}, "0.1.0 (6bdd9823aaaa)", "0.1.0+6bdd9823aaaa"},
		{"a release", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.0"}}, "0.1.0", "0.1.0"},
		{"a team's", debug.BuildInfo{Main: team, Deps: []*debug.Module{&tagless}, Settings: git("true")}, "0.1.0 (6bdd9823aaaa)", "0.1.0+6bdd9823aaaa"},
		{"a team's, of a folder", debug.BuildInfo{Main: team, Deps: []*debug.Module{&local}, Settings: git("true")}, "0.1.0", "0.1.0"},
		{"a test", debug.BuildInfo{}, "0.1.0", "0.1.0"},
	} {
		v := versionIn(&c.info, "0.1.0")
		if v.Text() != c.text || v.Identity() != c.identity {
			t.Errorf("%s: %s, %s", c.name, v.Text(), v.Identity())
		}
	}
}
