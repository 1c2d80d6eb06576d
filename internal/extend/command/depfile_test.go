package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDepfile(t *testing.T) {
	for name, test := range map[string]struct {
		in   string
		want []string
		err  string
	}{
		"empty":           {in: ""},
		"blank":           {in: " \t\n\n"},
		"one":             {in: "a.spv: a.vert\n", want: []string{"a.vert"}},
		"no newline":      {in: "a.spv: a.vert b.glsl", want: []string{"a.vert", "b.glsl"}},
		"none":            {in: "a.spv:\n"},
		"none at the end": {in: "a.spv:"},
		"space first":     {in: "a.spv : a.vert", want: []string{"a.vert"}},
		"joined":          {in: "a.o: a.c \\\n  b.h\\\n c.h\n", want: []string{"a.c", "b.h", "c.h"}},
		"joined with CR":  {in: "a.o: a.c \\\r\n  b.h\r\nb.o: c.h\r\n", want: []string{"a.c", "b.h", "c.h"}},
		"joined at colon": {in: "a.o:\\\n a.c", want: []string{"a.c"}},
		"joined at end":   {in: "a.o: a.c \\\n", want: []string{"a.c"}},
		"targets":         {in: "a.o a.d \\\n b.o: a.c", want: []string{"a.c"}},
		"phony rules":     {in: "a.o: a.c b.h\n\nb.h:\nc.h: b.h\n", want: []string{"a.c", "b.h"}},
		"space":           {in: `a.o: my\ file.c other`, want: []string{"my file.c", "other"}},
		"hash":            {in: `a.o: a\#b.c`, want: []string{"a#b.c"}},
		"bare hash":       {in: `a.o: a#b.c`, want: []string{"a#b.c"}},
		"dollar":          {in: `a.o: $$x$y`, want: []string{"$x$y"}},
		"backslashes":     {in: `a.o: a\\b \c\d`, want: []string{`a\\b`, `\c\d`}},
		"2n backslashes":  {in: `a.o: a\\ b`, want: []string{`a\`, `b`}},
		"2n+1":            {in: `a.o: a\\\ b`, want: []string{`a\ b`}},
		"drive":           {in: `C:\out\a.o: C:\src\a.c D:/b.h`, want: []string{`C:\src\a.c`, `D:/b.h`}},
		"drive target":    {in: "C:/out/a.o: x", want: []string{"x"}},
		"escaped colon":   {in: `a\:b.o: c\:d.h`, want: []string{"c:d.h"}},
		"colon inside":    {in: "a.o: c:d.h", want: []string{"c:d.h"}},
		"backslash colon": {in: `out\: a.c`, want: []string{"a.c"}},
		"comment":         {in: "# made by hand\na.o: a.c\n# end", want: []string{"a.c"}},
		"order only":      {in: "a.o: a.c | b.h", want: []string{"a.c", "b.h"}},
		"not ASCII":       {in: "a.o: schöne\\ größe.glsl", want: []string{"schöne größe.glsl"}},
		"last backslash":  {in: `a.o: a\`, want: []string{`a\`}},
		"no colon":        {in: "a.o: a.c\n\nb.o c.h\n", err: "line 3 has no `target: prerequisite`"},
		"no colon, late":  {in: "a.o: a.c \\\n b.h\nb.o", err: "line 3 has no `target: prerequisite`"},
		"zero":            {in: "a.o: a\x00b", err: "it holds a zero byte"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseDepfile([]byte(test.in))
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
			if text := errorText(err); text != test.err {
				t.Errorf("error %q, want %q", text, test.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzDepfile(f *testing.F) {
	for _, s := range []string{
		"a.o: a.c \\\n b.h\n", `C:\a.o: a\ b a\\\ c \# $$x`, "a:\\\r\n b\n#x\n", `x\: y\:z`, "a", ":", "\\\n", `a: \`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := parseDepfile(data)
		if err != nil {
			return
		}
		total := 0
		for _, p := range found {
			if p == "" || strings.ContainsAny(p, "\x00\n") {
				t.Errorf("path %q", p)
			}
			total += len(p)
		}
		if total > len(data) {
			t.Errorf("%d bytes of paths in %d bytes of depfile", total, len(data))
		}
		if sorted := slices.Sorted(slices.Values(found)); len(slices.Compact(sorted)) != len(found) {
			t.Errorf("a path is listed twice: %q", found)
		}
	})
}
