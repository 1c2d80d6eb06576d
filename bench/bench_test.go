package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// small returns a built project of two folders.
func small(t *testing.T, made tool) *project {
	t.Helper()
	p := newProject(t.TempDir(), 2*folderSize)
	if err := p.write(); err != nil {
		t.Fatal(err)
	}
	if err := made.prepare(p); err != nil {
		t.Fatal(err)
	}
	build(t, p, made)
	return p
}

// build does what a tool does.
func build(t *testing.T, p *project, made tool) {
	t.Helper()
	put := func(name string, data []byte) {
		name = filepath.Join(made.output(p), name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for f := range p.folders() {
		var all []byte
		for i := f * folderSize; i < (f+1)*folderSize; i++ {
			data, err := os.ReadFile(p.source(i))
			if err != nil {
				t.Fatal(err)
			}
			put(assetName(i), data)
			all = append(all, data...)
		}
		put(made.joinName(f), all)
	}
	if p.extra != nil {
		put(extraName(p.extra.folder), p.extraContent())
	}
	if p.everyday {
		put(emptyName, nil)
	}
}

func TestCheckSeesEveryWrongBuild(t *testing.T) {
	tests := map[string]struct {
		wrong func(p *project, made tool) error
		want  string
	}{
		"source edited": {func(p *project, _ tool) error { return p.edit(150) }, "0000150.bin has not the content"},
		"branch":        {func(p *project, _ tool) error { return p.branch(1) }, "0000000.bin has not the content"},
		"file added":    {func(p *project, _ tool) error { return p.add(1, 7) }, "extra.bin"},
		"product gone":  {func(p *project, made tool) error { return os.Remove(filepath.Join(made.output(p), assetName(3))) }, "0000003.bin"},
		"join old": {func(p *project, made tool) error {
			return os.WriteFile(filepath.Join(made.output(p), made.joinName(1)), []byte("old"), 0o666)
		}, "is not the bytes"},
		"one too many": {func(p *project, made tool) error {
			return os.WriteFile(filepath.Join(made.output(p), "stray"), nil, 0o666)
		}, "has 203 files, not 202"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := small(t, ninja{})
			if err := p.check(ninja{}); err != nil {
				t.Fatalf("a right build: %v", err)
			}
			if err := test.wrong(p, ninja{}); err != nil {
				t.Fatal(err)
			}
			if err := p.check(ninja{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, not %q", err, test.want)
			}
		})
	}
}

// TestCheckOfWhatIsLeftBehind adds and removes a file. Only a tool that does not sweep may leave its product behind.
func TestCheckOfWhatIsLeftBehind(t *testing.T) {
	p := small(t, ninja{})
	if err := p.add(0, 1); err != nil {
		t.Fatal(err)
	}
	build(t, p, ninja{})
	if err := p.check(ninja{}); err != nil {
		t.Error(err)
	}
	if err := p.remove(); err != nil {
		t.Fatal(err)
	}
	if err := p.check(ninja{}); err != nil {
		t.Error(err)
	}
	if err := p.check(sweeper{}); err == nil {
		t.Error("nothing was swept, and that passes")
	}
}

// TestEverydayProject checks that an everyday project has an empty file for all tools, and more for Kiln.
func TestEverydayProject(t *testing.T) {
	p := small(t, ninja{})
	if err := p.makeEveryday(); err != nil {
		t.Fatal(err)
	}
	if err := p.check(ninja{}); err == nil {
		t.Error("the empty file has no product, and that passes")
	}
	build(t, p, ninja{})
	if err := p.check(ninja{}); err != nil {
		t.Error(err)
	}
	if err := errors.Join(kiln{}.prepare(p), kiln{}.prepare(p)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(p.dir, "kiln.toml"))
	if err != nil || bytes.Count(data, []byte("[[parcels]]")) != 4 || bytes.Count(data, []byte("[[rules]]")) != 1 {
		t.Errorf("%s, %v", data, err)
	}
}

type sweeper struct{ ninja }

func (sweeper) sweeps() bool { return true }

func TestBranchAndBackIsTheSame(t *testing.T) {
	p := small(t, ninja{})
	for _, by := range []int32{1000, -1000} {
		if err := p.branch(by); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.check(ninja{}); err != nil {
		t.Error(err)
	}
}

func TestManifestsNameEveryFile(t *testing.T) {
	p := small(t, ninja{})
	if err := p.add(1, 1); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		made tool
		file string
		line string
		want int
	}{
		{ninja{}, "build.ninja", ": cp assets/", 201},
		{ninja{}, "build.ninja", ": cat assets/", 2},
		{gnuMake{}, "Makefile", "\n\tcp $< $@", 201},
		{gnuMake{}, "Makefile", "\n\tcat $^ > $@", 2},
	} {
		if err := test.made.prepare(p); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(p.dir, test.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), test.line); n != test.want || !strings.Contains(string(data), "00001/extra.bin") {
			t.Errorf("%s has %d times %q", test.file, n, test.line)
		}
	}
}

func TestGLB(t *testing.T) {
	glb := "glTF\x02\x00\x00\x00\x24\x00\x00\x00" + "\x04\x00\x00\x00JSON{}  " + "\x04\x00\x00\x00BIN\x00abcd"
	if err := isGLB([]byte(glb), []byte("abcd")); err != nil {
		t.Error(err)
	}
	for cut := range len(glb) {
		if isGLB([]byte(glb[:cut]), []byte("abcd")) == nil {
			t.Errorf("one of %d bytes passes", cut)
		}
	}
	if isGLB([]byte(glb), []byte("abce")) == nil {
		t.Error("other bytes pass")
	}
}

func TestKilnSaysHowManyJobsRan(t *testing.T) {
	said := []byte("warning\n3 assets built, 120 up to date, 1 warning in 0.42 s\n")
	if err := (kiln{}).built(said, 3, 0); err != nil {
		t.Error(err)
	}
	failed := []byte("2 assets built, 1 up to date, 1 failed in 0.42 s\n")
	if err := (kiln{}).built(failed, 3, 1); err != nil {
		t.Error(err)
	}
	if (kiln{}).built(said, 0, 0) == nil || (kiln{}).built(said, 3, 1) == nil || (kiln{}).built(failed, 3, 0) == nil {
		t.Error("another number, or a failure, passes")
	}
}

func some() *results {
	r := newResults()
	for i, size := range []int{1000, 10_000} {
		for _, ms := range []int{7, 1, 3} {
			scaled := time.Duration(ms) * time.Millisecond * time.Duration(1+9*i)
			r.add(size, "noop", "kiln", measure{scaled, scaled, 12e6})
			r.add(size, "noop", "ninja", measure{4 * scaled, 2 * scaled, 5e6})
		}
		r.add(size, "noop", floorName, measure{Wall: time.Millisecond})
	}
	return r
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	r := some()
	r.add(10_000, "edit", "kiln", measure{Wall: time.Second})
	r.wrong(10_000, "edit", "kiln", errors.New("a byte differs"))
	r.add(10_000, "edit", "ninja", measure{Wall: time.Second})
	r.table(&b, 10_000, []string{"kiln", "ninja"})
	r.verdict(&b)
	for _, want := range []string{
		"### 10,000 assets, 100 joins",
		"|                 | runs |           kiln |         ninja |\n|-----------------|-----:|---------------:|--------------:|\n",
		"| nothing changed |    3 | 30.0 ms (0.25) | 120 ms (1.00) |\n",
		"| one file edited |    1 |          wrong | 1.00 s (1.00) |\n",
		"| nothing changed |    3 | 30.0 ms (0.50), 12 MB | 60.0 ms (1.00), 5 MB |\n",
		"takes 1.00 ms, 0.008 of ninja.\n",
		"| nothing changed | 10,000 | 0.25 |           0.50 | 0.45 | 0.32 | aim reached |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if err := r.err(); err == nil || err.Error() != "kiln, edit, 10000 assets: a byte differs" {
		t.Errorf("got %v", err)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct{ runs, want []int64 }{
		{[]int64{5}, []int64{5}}, {[]int64{9, 1}, []int64{5}}, {[]int64{9, 1, 2}, []int64{2}}, {nil, []int64{0}},
	} {
		var runs []measure
		for _, n := range test.runs {
			runs = append(runs, measure{Peak: n})
		}
		if m := median(runs); m.Peak != test.want[0] {
			t.Errorf("median of %v is %d", test.runs, m.Peak)
		}
	}
}

func TestPlotIsWhole(t *testing.T) {
	var b bytes.Buffer
	if err := draw(&b, some(), []int{10_000, 1000}, []string{"kiln", "ninja", "make", "tup", floorName}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), ">make<") || !strings.Contains(b.String(), ">ninja<") {
		t.Error("the legend names a tool that was not measured, or not one that was")
	}
	counts := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		if start, ok := token.(xml.StartElement); ok {
			counts[start.Name.Local]++
		}
	}
	if counts["g"] != 1 || counts["polyline"] != 3 || counts["circle"] != 6 {
		t.Errorf("one panel with three lines of two dots each, but %v", counts)
	}
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Error("a number is none")
	}
	// 12 ms is 0.36 of the way from 1 ms to 1 s on the logarithmic axis; y decreases upwards.
	if want := `,108.8`; !strings.Contains(b.String(), want) {
		t.Errorf("no point at a height of %s in\n%s", want, b.String())
	}
}

func TestKeepOtherSizes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.json")
	if err := some().save(file); err != nil {
		t.Fatal(err)
	}
	r := newResults()
	sizes, err := r.load(file, []int{10_000})
	if err != nil || len(sizes) != 2 || sizes[0] != 1000 {
		t.Fatal(sizes, err)
	}
	if _, ok := r.median(10_000, "noop", "kiln"); ok {
		t.Error("a size that is measured anew was taken over")
	}
	if m, ok := r.median(1000, "noop", "kiln"); !ok || m.Wall != 3*time.Millisecond {
		t.Errorf("got %v", m)
	}
}

func TestRetell(t *testing.T) {
	o := options{keep: filepath.Join(t.TempDir(), "kept.json"), svg: filepath.Join(t.TempDir(), "plot.svg"), peers: []string{"kiln", "ninja"}}
	if err := retell(o, io.Discard); err == nil {
		t.Error("nothing was told")
	}
	if err := some().save(o.keep); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := retell(o, &b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "### 1,000 assets") || !strings.Contains(b.String(), "### 10,000 assets") {
		t.Error(b.String())
	}
	if _, err := os.Stat(o.svg); err != nil {
		t.Error(err)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-sizes", "150"}, {"-sizes", "x"}, {"-only", "nothing"}, {"-runs", "0"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v passes", args)
		}
	}
	o, err := parse([]string{"-quick", "-peers", "kiln,ninja"})
	if err != nil || len(o.sizes) != 1 || o.sizes[0] != 1000 || o.runs != 1 || len(o.peers) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var said tail
	for range 1000 {
		io.WriteString(&said, strings.Repeat("x", 100))
	}
	io.WriteString(&said, "the end")
	if len(said.data) != 8<<10 || !bytes.HasSuffix(said.data, []byte("the end")) {
		t.Errorf("%d bytes", len(said.data))
	}
}

// TestMurmur64 uses the number that ninja 1.11.1 wrote to its log for this command.
func TestMurmur64(t *testing.T) {
	if h := murmur64("cp assets/00000/0000000.bin out/00000/0000000.bin"); h != 0x9ff0b31f5f8e1336 {
		t.Errorf("%x", h)
	}
}

func TestNinjaTakesWhatWasLaidOut(t *testing.T) {
	if _, err := (ninja{}).find(); err != nil {
		t.Skip(err)
	}
	p := newProject(t.TempDir(), 2*folderSize)
	if err := errors.Join(p.write(), ninja{}.prepare(p), ninja{}.lay(p), p.check(ninja{})); err != nil {
		t.Fatal(err)
	}
	if err := p.edit(3); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("ninja", "-j1") // an edit is built as usual
	build.Dir = p.dir
	said, err := build.CombinedOutput()
	if err = errors.Join(err, p.check(ninja{})); err != nil || !bytes.Contains(said, []byte("[2/2]")) {
		t.Errorf("%v: %s", err, said)
	}
}
