package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// someView is a view with files, but without any on disk.
func someView(t testing.TB, files ...string) *view {
	v := &view{dir: t.TempDir(), files: map[string]bool{}}
	for _, f := range files {
		v.files[f] = true
	}
	return v
}

func TestDiagnose(t *testing.T) {
	v := someView(t, "a/water.vert", "a/x.hlsl", "dir with (1)/b.c")
	absolute := filepath.Join(v.dir, "in", "a", "water.vert")
	for name, test := range map[string]struct {
		in   string
		want []string // severity path:line:column text
		rest string
	}{
		"nothing": {},
		"gcc":     {in: "a/water.vert:3:14: error: 'x' : undeclared\n", want: []string{"error a/water.vert:3:14 'x' : undeclared"}},
		"glslc":   {in: "a/water.vert:3: error: 'x' : undeclared", want: []string{"error a/water.vert:3:0 'x' : undeclared"}},
		"fatal":   {in: "a/water.vert:3:1: fatal error: gone", want: []string{"error a/water.vert:3:1 gone"}},
		"warning": {in: "./a/water.vert:3:1: warning: odd [-Wodd]", want: []string{"warning a/water.vert:3:1 odd [-Wodd]"}},
		"cl":      {in: "a/x.hlsl(7,3): error X3004: undeclared identifier", want: []string{"error a/x.hlsl:7:3 X3004: undeclared identifier"}},
		"fxc":     {in: "a/x.hlsl(7,3-9): error X3004: undeclared", want: []string{"error a/x.hlsl:7:3 X3004: undeclared"}},
		"cl line": {in: "a/x.hlsl(7) : warning C4244: narrowed", want: []string{"warning a/x.hlsl:7:0 C4244: narrowed"}},
		"glslang": {in: "ERROR: a/x.hlsl:7: 'x' : undeclared", want: []string{"error a/x.hlsl:7:0 'x' : undeclared"}},
		"brace":   {in: "dir with (1)/b.c(4): error : text", want: []string{"error dir with (1)/b.c:4:0 text"}},
		"absolute": {in: absolute + ":3:14: error: text", want: []string{
			"error a/water.vert:3:14 text"}},
		"another file": {in: "/usr/include/x.h:3:14: error: text", rest: "/usr/include/x.h:3:14: error: text"},
		"no position":  {in: "glslc: error: no input files", rest: "glslc: error: no input files"},
		"a note stays with its error": {
			in:   "In file b.h:\na/water.vert:3:14: error: bad\n    x = y;\n        ^\n1 error generated.\n",
			want: []string{"error a/water.vert:3:14 bad\n        x = y;\n            ^\n    1 error generated."},
			rest: "In file b.h:",
		},
		"context has an end": {
			in:   "a/water.vert:1: error: bad\n1\n2\n3\n4\n5\n6\n7\n8\n",
			want: []string{"error a/water.vert:1:0 bad\n    1\n    2\n    3\n    4\n    5\n    6"},
			rest: "7\n8",
		},
		"a large number": {in: "a/water.vert:9999999999: error: x", rest: "a/water.vert:9999999999: error: x"},
	} {
		t.Run(name, func(t *testing.T) {
			d := diagnose(test.in, v)
			var got []string
			for _, p := range d.errors {
				got = append(got, fmt.Sprintf("error %s:%d:%d %s", p.Path, p.Line, p.Column, p.Text))
			}
			for _, p := range d.warnings {
				got = append(got, fmt.Sprintf("warning %s:%d:%d %s", p.Path, p.Line, p.Column, p.Text))
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
			if d.rest != test.rest {
				t.Errorf("rest %q, want %q", d.rest, test.rest)
			}
		})
	}
}

func TestDiagnoseHasAnEnd(t *testing.T) {
	d := diagnose(strings.Repeat("a.c:1:1: error: bad\n", 1000), someView(t, "a.c"))
	if len(d.errors) != maxReported {
		t.Errorf("%d problems, want %d", len(d.errors), maxReported)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                        "plain\ttext",
		"a\r\nb\rc":                            "a\nb\nc",
		"\x1b[1;31merror\x1b[0m: \x1b[Kx":      "error: x",
		"\x1b[1;31":                            "",
		"\x1b[1\nx":                            "x",
		"bell\a, null\x00, escape\x1b]0;t\x1b": "bell, null, escape]0;t",
		"\xff\xfeö":                            "\uFFFDö",
		"\u009b31m":                            "31m",
	} {
		if got := printable(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzOutput(f *testing.F) {
	for _, s := range []string{"a.c:1:2: error: x\n", "a.c(1,2-3): warning C1: x", "ERROR: a.c:1: x", "\x1b[31mx\x1b[m", "\xff\r\x00"} {
		f.Add(s)
	}
	v := someView(f, "a.c")
	f.Fuzz(func(t *testing.T, s string) {
		var kept text
		kept.write([]byte(s))
		out := kept.String()
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' && r != '\t'
		}) {
			t.Errorf("%q is shown as %q", s, out)
		}
		d := diagnose(out, v)
		for _, p := range append(d.errors, d.warnings...) {
			if p.Path != "a.c" || p.Line < 0 || p.Column < 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}

func TestTextKeepsBothEnds(t *testing.T) {
	const half = maxOutput / 2
	whole := make([]byte, 5*maxOutput+123)
	for i := range whole {
		whole[i] = 'a' + byte(i%23)
	}
	for _, size := range []int{0, 1, half, half + 1, maxOutput - 1, maxOutput, maxOutput + 1, len(whole)} {
		for _, piece := range []int{1, 7, 4096, half, half + 9, len(whole)} {
			data := whole[:size]
			var kept text
			for at := 0; at < size; at += piece {
				kept.write(data[at:min(size, at+piece)])
			}
			want := string(data)
			if size > maxOutput {
				want = fmt.Sprintf("%s\n... %d bytes left out ...\n%s", data[:half], size-maxOutput, data[size-half:])
			}
			if kept.String() != want {
				t.Errorf("%d bytes in pieces of %d: kept %d bytes, want %d", size, piece, len(kept.String()), len(want))
			}
		}
	}
}

func TestCommandLine(t *testing.T) {
	for want, args := range map[string][]string{
		"glslc a.vert -o ../out/a.spv": {"glslc", "a.vert", "-o", "../out/a.spv"},
		"x '' 'a b' 'it'\\''s' '*'":    {"x", "", "a b", "it's", "*"},
	} {
		if got := commandLine(args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestWithoutView(t *testing.T) {
	v := someView(t)
	in := v.path("in") + string(os.PathSeparator)
	out := v.dir + string(os.PathSeparator)
	got := withoutView("open "+in+"a.c: gone, "+out+"tmp: full", v)
	if want := "open a.c: gone, tmp: full"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
