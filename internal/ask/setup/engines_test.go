package setup

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

// given returns the settings that rules give to a file, by subject. Later rules override earlier ones.
func given(rules []Rule, file string) map[string]string {
	has := map[string]string{}
	for _, r := range rules {
		folder, ext, covers := strings.Cut(r.Match, "**/*")
		if covers && (!strings.HasPrefix(file, folder) || path.Ext(file) != ext) || !covers && r.Match != file {
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(r.Does, "settings = { "), " }")
		for s := range strings.SplitSeq(text, ", ") {
			name, value, _ := strings.Cut(s, " = ")
			has[name] = value
		}
	}
	maps.DeleteFunc(has, func(name, value string) bool {
		return strings.HasSuffix(unset[codec]+unset[loop], value) || value == `"auto"` || value == "0"
	})
	return has
}

// TestFolded checks for random needs that the rules give each file the settings it needs.
func TestFolded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		all := map[string]taken{}
		for i := range 1 + r.IntN(60) {
			file := fmt.Sprintf("f%d%s", i, []string{".wav", ".ogg"}[r.IntN(2)])
			for range r.IntN(4) {
				file = fmt.Sprintf("d%d/%s", r.IntN(3), file)
			}
			k := taken{from: "Godot"}
			if r.IntN(3) > 0 {
				k.set(codec, `codec = %q`, []string{"pcm", "adpcm"}[r.IntN(2)])
			}
			if r.IntN(3) == 0 {
				k.set(loop, `loop = "forward", loop_begin = %d`, 1+r.IntN(3))
			} else if r.IntN(3) == 0 {
				k.set(loop, `loop = "forward"`)
			}
			all[file] = k
		}
		rules := folded(all)
		if again := folded(all); !slices.Equal(rules, again) {
			t.Fatalf("%v\nand then\n%v", rules, again)
		}
		for file, k := range all {
			got, want := given(rules, file), given([]Rule{{Match: file, Does: k.has[codec] + ", " + k.has[loop]}}, file)
			delete(want, "")
			if !maps.Equal(got, want) {
				t.Fatalf("%s: %v, want %v, of %v", file, got, want, rules)
			}
		}
	}
}

// TestFew checks that a project of many files needs few rules: one for each common setting, and one for each exception.
func TestFew(t *testing.T) {
	all := map[string]taken{}
	for i := range 840 {
		k := taken{from: "Godot"}
		k.set(codec, `codec = "pcm"`)
		if i%10 == 3 {
			k.set(channels, `channels = "mono"`)
		}
		if i%50 == 0 {
			k.set(loop, `loop = "forward"`)
		}
		all[fmt.Sprintf("sfx/%d/%d.wav", i%10, i)] = k
	}
	if rules := folded(all); len(rules) > 40 {
		t.Errorf("%d rules: %v", len(rules), rules)
	}
}
