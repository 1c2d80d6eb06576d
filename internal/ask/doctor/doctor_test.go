package doctor

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

func picture(t *testing.T) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 90, 90))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i>>3) | 1
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUnportable(t *testing.T) {
	for name, bad := range map[string]bool{
		"con": true, "Con.png": true, "nul.tar.gz": true, "lpt1": true, "COM9.x": true, "a.": true, "a ": true, "a:b": true, "a?": true, `a\b`: true, "a\tb": true,
		"cone.png": false, "com.png": false, ".con": false, "a b.c": false, "ö.png": false, "lpt10": false,
	} {
		if why := unportable(name); (why != "") != bad {
			t.Errorf("%q: %q", name, why)
		}
	}
}

func open(t *testing.T, files map[string]string) *build.Project {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p, err := build.Open(workspace.Config{Dir: dir, Version: "test", Processors: processors.All()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const plainProject = "[project]\nname = \"a\"\n"

// TestMessages causes each message.
func TestMessages(t *testing.T) {
	whole := picture(t)
	half := whole[:len(whole)/2]
	var g bytes.Buffer
	if err := gif.Encode(&g, image.NewPaletted(image.Rect(0, 0, 9, 9), color.Palette{color.Black, color.White}), nil); err != nil {
		t.Fatal(err)
	}
	withoutTrailer := g.String()[:g.Len()-1]
	sound := "RIFF\x24\x08\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x08\x00\x00" +
		strings.Repeat("\x01\x02", 1024)
	for _, c := range []struct {
		file, text string
		code       diag.Code
		severity   diag.Severity
	}{
		{"assets/cut.png", half, diag.FileCutShort, diag.Error},
		{"assets/cut.ogg", "OggS", diag.FileCutShort, diag.Error},
		{"assets/cut.ogv", "OggS", diag.FileCutShort, diag.Warning},
		{"assets/zeros.png", strings.Repeat("\x00", 4096), diag.FileZeros, diag.Error},
		{"assets/cut.gif", withoutTrailer, diag.FileCutShort, diag.Warning},
		{"assets/cut.wav", sound[:len(sound)-100], diag.FileCutShort, diag.Warning},
		{"assets/cut.wav", sound[:30], diag.FileCutShort, diag.Error},
		{"assets/empty.png", "", diag.EmptyFile, diag.Error},
		{"assets/empty.wav", "", diag.EmptyFile, diag.Error},
		{"assets/empty.glb", "", diag.EmptyFile, diag.Error},
		{"assets/empty.json", "", diag.EmptyFile, diag.Error},
		{"assets/empty.toml", "", diag.EmptyFile, diag.Warning},
		{"assets/empty.txt", "", diag.EmptyFile, diag.Warning},
		{"assets/a.png.part", "x", diag.FileTemporary, diag.Warning},
		{"assets/~$plan.xlsx", "x", diag.FileTemporary, diag.Warning},
		{"assets/lfs.png", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", diag.LFSPointer, diag.Error},
		{"assets/nul.txt", "x", diag.NameNotPortable, diag.Warning},
		{"assets/" + strings.Repeat("deep/", 40) + "a.txt", "x", diag.PathTooLong, diag.Warning},
	} {
		if runtime.GOOS == "windows" && c.code == diag.NameNotPortable {
			continue
		}
		p := open(t, map[string]string{"kiln.toml": plainProject, c.file: c.text})
		r, err := Examine(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Messages, func(m *diag.Message) bool { return m.Code == c.code })
		if i < 0 || r.Messages[i].Severity != c.severity || r.Messages[i].Hint == "" || r.Messages[i].Pos.File != c.file {
			t.Errorf("%s: want %s %s, got %v", c.file, c.severity, c.code, r.Messages)
		}
		if r.Stops() != (c.severity == diag.Error) {
			t.Errorf("%s: Stops is %v", c.file, r.Stops())
		}
		if b, err := p.Build(context.Background(), build.Request{Reporter: job.Silent{}}); err != nil || b.Failed() != r.Stops() { // errors are what keeps an asset from being built
			t.Errorf("%s: %v, and of the build %+v, %v", c.file, r.Messages, b, err)
		}
	}
}

func TestTools(t *testing.T) {
	p := open(t, map[string]string{
		"kiln.toml": plainProject + "[[processors]]\nname=\"tiles\"\ncommand=[\"no-such-tool\", \"{in}\", \"{out}\"]\nextensions=[\".map\"]\n" +
			"[[processors]]\nname=\"shaders\"\ncommand=[\"glslc\", \"{in}\", \"{out}\"]\nextensions=[\".frag\"]\n",
		"assets/a.map": "x", "assets/b.map": "x",
	})
	t.Setenv("PATH", t.TempDir())
	r, err := Examine(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	first := r.Tools[0]
	if first.Name != "no-such-tool" || first.Path != "" || !slices.Equal(first.Assets, []string{"a.map", "b.map"}) {
		t.Errorf("got %+v", first)
	}
	r.Messages = slices.DeleteFunc(r.Messages, func(m *diag.Message) bool {
		return slices.Contains([]diag.Code{diag.LimitLow, diag.DiskLow, diag.CommandUnsealed}, m.Code) // messages about this machine
	})
	i := slices.IndexFunc(r.Messages, func(m *diag.Message) bool { return m.Code == diag.ToolMissing })
	if len(r.Messages) != 1 || i < 0 || r.Messages[i].Text != "no-such-tool is not there, and a.map and b.map need it" || !r.Stops() {
		t.Errorf("got %v", r.Messages)
	}
}

func TestVersion(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the tool of this test is a shell script")
	}
	bin := t.TempDir()
	script := "#!/bin/sh\necho shaderc v2023.2 v2022.4\n"
	if err := os.WriteFile(filepath.Join(bin, "glslc"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	tool := Tool{Name: "glslc"}
	for try := 0; tool.Version == "" && try < 20; try++ { // on a busy machine a shell may take longer than the time limit of a tool
		(&Report{}).tool(context.Background(), bin, &tool, nil)
	}
	if tool.Version != "v2023.2" || tool.Path == "" {
		t.Errorf("got %+v", tool)
	}
}

func TestPlaces(t *testing.T) {
	p := open(t, map[string]string{"kiln.toml": plainProject, "assets/a.txt": "x", "build": "a file where the output folder should be"})
	r := &Report{}
	r.places(p)
	if len(r.Places) != 2 || !r.Places[0].Writable {
		t.Errorf("got %+v", r.Places)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, ".kiln-doctor*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	r.space(&Place{Folder: "build", Free: none - 1})
	r.space(&Place{Folder: "build", Free: scarce - 1})
	r.space(&Place{Folder: "build", Free: scarce})
	r.Limits = nil
	var codes []string
	for _, m := range r.Messages {
		codes = append(codes, string(m.Severity)+" "+string(m.Code))
	}
	want := []string{"error K0246", "error K0247", "warning K0247"}
	if !slices.Equal(codes, want) {
		t.Errorf("got %q, want %q", codes, want)
	}
}

func TestLimits(t *testing.T) {
	r := &Report{Limits: []Limit{{"open files", 100, 1024, "raise it"}, {"watchers", -1, 16, ""}}}
	r.judge()
	if len(r.Messages) != 1 || r.Messages[0].Code != diag.LimitLow || r.Stops() {
		t.Errorf("got %v", r.Messages)
	}
}

// TestRoomIsNotCounted checks that a file system that counts no blocks is not reported as full.
func TestRoomIsNotCounted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a file system that counts no blocks")
	}
	if free, err := freeSpace("/proc"); err == nil {
		t.Errorf("%d bytes", free)
	}
}
