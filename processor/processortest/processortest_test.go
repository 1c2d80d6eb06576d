package processortest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

type settings struct{ Level int }

// does is a processor that calls a function of the test.
type does func(ctx context.Context, job processor.Job) error

func (does) Info() processor.Info {
	return processor.Info{Name: "does", Settings: &settings{Level: 3}}
}
func (d does) Process(ctx context.Context, job processor.Job) error { return d(ctx, job) }

var content = processortest.Case{
	Files:  map[string][]byte{"a/x.txt": []byte("x"), "a/y.txt": []byte("yy"), "a/[z].txt": nil, "b.png": []byte("b")},
	Asset:  "a/x.txt",
	Others: map[string][]processortest.OtherProduct{"tex.png": {{Product: processor.Product{Type: "texture"}, Data: []byte("main")}, {Product: processor.Product{Name: "mask"}, Data: []byte("m")}}},
	Env:    map[string]string{"HOME": "here"},
	Tools:  map[string]string{"tool": "/bin/tool"},

	ResourceIDs: map[string]uint32{"": 5},
}

func TestReads(t *testing.T) {
	r := processortest.Run(t, does(func(_ context.Context, job processor.Job) error {
		if a := job.Asset(); a.ID != "a/x.txt" || a.Path != "a/x.txt" || a.Folder || a.UUID != processortest.UUID("a/x.txt") {
			t.Errorf("asset %v", a)
		}
		if s := processor.SettingsOf[settings](job); s.Level != 3 || job.Platform() != "pc" {
			t.Errorf("settings %v, platform %s", s, job.Platform())
		}
		processor.SettingsOf[settings](job).Level = 9 // must not affect other jobs
		if b, err := job.ReadFile("a/y.txt"); err != nil || string(b) != "yy" {
			t.Errorf("%q %v", b, err)
		}
		f, err := job.Open("b.png")
		if err != nil || f.Size() != 1 || f.Close() != nil {
			t.Errorf("%v", err)
		}
		if _, err := job.Open("no"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing: %v", err)
		}
		for _, p := range []string{"../x", "/x", "", "a/"} {
			if _, err := job.ReadFile(p); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("ReadFile(%q): %v", p, err)
			}
			if _, err := job.Exists(p); err == nil {
				t.Errorf("Exists(%q)", p)
			}
		}
		yes, _ := job.Exists("b.png")
		no, _ := job.Exists("no")
		if !yes || no {
			t.Error("Exists")
		}
		found, err := job.Glob("a/*.txt")
		if err != nil || !slices.Equal(found, []string{"a/[z].txt", "a/x.txt", "a/y.txt"}) {
			t.Errorf("%q %v", found, err)
		}
		if found, _ := job.Glob(`a/\[z\].txt`); len(found) != 1 {
			t.Errorf("a backslash: %q", found)
		}
		if _, err := job.Glob("["); err == nil {
			t.Error("a bad pattern")
		}
		tool, err := job.Tool("tool")
		env, ok := job.Env("HOME")
		if tool != "/bin/tool" || err != nil || env != "here" || !ok {
			t.Error("tool or variable")
		}
		if _, err := job.Tool("none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("tool: %v", err)
		}
		if _, ok := job.Env("NONE"); ok {
			t.Error("variable")
		}
		id, ok := job.ResourceID("")
		if _, more := job.ResourceID("more"); id != 5 || !ok || more {
			t.Error("resource id")
		}
		return nil
	}), content)
	want := []string{
		"file a/y.txt", "file b.png", "missing no", "exists b.png: true", "exists no: false", "glob a/*.txt", `glob a/\[z\].txt`,
		"tool tool", "env HOME", "tool none", "env NONE", `resource id ""`, `resource id "more"`,
	}
	if !slices.Equal(r.Observations, want) || r.Err != nil {
		t.Errorf("%v\n%q", r.Err, r.Observations)
	}
	processortest.Run(t, does(func(_ context.Context, job processor.Job) error {
		if s := processor.SettingsOf[settings](job); s.Level != 3 {
			t.Error("one run's settings reached the next")
		}
		return nil
	}), content)
}

func TestOtherProducts(t *testing.T) {
	r := processortest.Run(t, does(func(_ context.Context, job processor.Job) error {
		all, err := job.Products("tex.png")
		if err != nil || len(all) != 1 || len(all[0]) != 2 {
			t.Fatal(all, err)
		}
		mask := all[0][1]
		if mask.AssetID != "tex.png" || mask.UUID != processortest.UUID("tex.png") || mask.SubID != processor.SubID("mask") {
			t.Errorf("%v", mask)
		}
		f, err := job.OpenProduct(mask)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(f); string(b) != "m" {
			t.Errorf("%q", b)
		}
		if _, err := job.OpenProduct(processor.Product{AssetID: "tex.png", Name: "no"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if _, err := job.Products("b.png", "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		ref, err := job.Reference("b.png", "part", true)
		if err != nil || ref != (processor.Reference{UUID: processortest.UUID("b.png"), SubID: processor.SubID("part"), Required: true}) {
			t.Errorf("%v %v", ref, err)
		}
		if _, err := job.Reference("none", "", true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if ref, err := job.Reference("none", "", false); err != nil || ref.UUID != processortest.UUID("none") || ref.Required {
			t.Errorf("%v %v", ref, err)
		}
		if own := processor.Own(job, "part", false); own.UUID != job.Asset().UUID || own.SubID != processor.SubID("part") || own.Required {
			t.Errorf("%v", own)
		}
		return nil
	}), content)
	want := []string{"products tex.png", "product tex.png mask", "products b.png", "asset b.png", "asset none", "asset none"}
	if !slices.Equal(r.Observations, want) {
		t.Errorf("%q", r.Observations)
	}
}

func TestWrites(t *testing.T) {
	write := func(_ context.Context, job processor.Job) error {
		refs := []processor.Reference{{UUID: "u"}}
		w, err := job.Create(processor.Output{Type: "t", Extension: ".x", References: refs})
		if err != nil {
			return err
		}
		io.WriteString(w, "ma")
		io.WriteString(w, "in")
		if err := w.Close(); err != nil {
			return err
		}
		refs[0].UUID = "changed afterwards"
		if w.Close() == nil {
			t.Error("closed twice")
		}
		if err := job.Write(processor.Output{Name: "part"}, []byte("p")); err != nil {
			return err
		}
		if job.Write(processor.Output{Name: "part"}, nil) == nil {
			t.Error("written twice")
		}
		job.Create(processor.Output{Name: "never closed"})
		job.Warn(processor.Problem{Text: "odd"})
		a, err := job.Scratch()
		b, _ := job.Scratch()
		if entries, derr := os.ReadDir(a); a != b || err != nil || derr != nil || len(entries) != 0 || !filepath.IsAbs(a) {
			t.Errorf("scratch %s %s %v %v", a, b, err, derr)
		}
		return nil
	}
	r := processortest.Run(t, does(write), content)
	main := r.Products[""]
	if r.Err != nil || len(r.Products) != 2 || string(main.Data) != "main" || main.Type != "t" || main.Extension != ".x" || main.References[0].UUID != "u" {
		t.Errorf("%v %v", r.Err, r.Products)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Text != "odd" {
		t.Errorf("warnings %v", r.Warnings)
	}
	failed := processortest.Run(t, does(func(ctx context.Context, job processor.Job) error {
		write(ctx, job)
		return errors.New("after all")
	}), content)
	if failed.Products != nil || failed.Err == nil || len(failed.Warnings) != 1 {
		t.Errorf("a job that failed: %v", failed)
	}
}

// halves is a processor with parts: "sum" needs "a.txt" and "b.txt"; each of these is its own length.
type halves struct{}

func (halves) Info() processor.Info { return processor.Info{Name: "halves"} }

func (halves) Process(ctx context.Context, job processor.Job) error {
	made, err := job.Parts("sum", "a.txt")
	if err != nil {
		return err
	}
	if len(made) != 2 || made[1][0].Part != "a.txt" || made[1][0].File != "" || made[0][0].File != "all.txt.sum.n" {
		return fmt.Errorf("%+v", made)
	}
	f, err := job.OpenProduct(made[0][0])
	if err != nil {
		return err
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	return job.Write(processor.Output{}, b)
}

func (halves) Part(ctx context.Context, job processor.Job, name string) error {
	if name != "sum" {
		b, err := job.ReadFile(name)
		if err != nil {
			return err
		}
		return job.Write(processor.Output{Name: "length", Hidden: true}, fmt.Append(nil, len(b)))
	}
	parts, err := job.Parts("a.txt", "b.txt")
	if err != nil {
		return err
	}
	var sum []byte
	for _, p := range parts {
		f, err := job.OpenProduct(p[0])
		if err != nil {
			return err
		}
		b, _ := io.ReadAll(f)
		sum = append(sum, b...)
	}
	return job.Write(processor.Output{Name: "sum", Extension: ".n"}, sum)
}

func TestParts(t *testing.T) {
	c := processortest.Case{Files: map[string][]byte{"a.txt": []byte("x"), "b.txt": []byte("yy")}, Asset: "all.txt"}
	r := processortest.Run(t, halves{}, c)
	if r.Err != nil || len(r.Products) != 2 || string(r.Products[""].Data) != "12" || string(r.Products["sum"].Data) != "12" {
		t.Errorf("%v %v", r.Err, r.Products)
	}
	if want := []string{"part sum", "part a.txt", "part sum product sum"}; !slices.Equal(r.Observations, want) {
		t.Errorf("the job saw %q", r.Observations)
	}
	if len(r.Parts) != 3 || string(r.Parts["b.txt"].Products["length"].Data) != "2" {
		t.Errorf("%v", r.Parts)
	}
	if want := []string{"part a.txt", "part b.txt", "part a.txt product length", "part b.txt product length"}; !slices.Equal(r.Parts["sum"].Observations, want) {
		t.Errorf("sum saw %q", r.Parts["sum"].Observations)
	}
	if want := []string{"file b.txt"}; !slices.Equal(r.Parts["b.txt"].Observations, want) {
		t.Errorf("b.txt saw %q", r.Parts["b.txt"].Observations)
	}
	delete(c.Files, "b.txt")
	if r := processortest.Run(t, halves{}, c); !errors.Is(r.Err, fs.ErrNotExist) || r.Products != nil || r.Parts["b.txt"].Err == nil || r.Parts["a.txt"].Err != nil {
		t.Errorf("a part that fails: %+v", r)
	}
	r = processortest.Run(t, does(func(_ context.Context, job processor.Job) error {
		_, err := job.Parts("x")
		return err
	}), c)
	if r.Err == nil {
		t.Error("a processor without parts was asked for one")
	}
}

func TestContextAndFolder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := content
	c.Asset, c.Platform, c.Settings = "a/", "mobile", &settings{Level: 1}
	r := processortest.RunContext(t, ctx, does(func(ctx context.Context, job processor.Job) error {
		if a := job.Asset(); a.ID != "a/" || a.Path != "a" || !a.Folder || job.Platform() != "mobile" || processor.SettingsOf[settings](job).Level != 1 {
			t.Errorf("%v", a)
		}
		return ctx.Err()
	}), c)
	if !errors.Is(r.Err, context.Canceled) {
		t.Errorf("%v", r.Err)
	}
}

func TestProblems(t *testing.T) {
	a, b := &processor.Problem{Text: "a"}, &processor.Problem{Text: "b", Err: &processor.Problem{Text: "cause"}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {errors.New("plain"), ""}, {a, "a"}, {errors.Join(a, b), "a b"}, {fmt.Errorf("x: %w", errors.Join(b, errors.New("y"), a)), "b a"},
	} {
		var got []string
		for _, p := range processortest.Problems(c.err) {
			got = append(got, p.Text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}

// failing records what a helper reports.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()                           {}
func (f *failing) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }
func (f *failing) Fatal(args ...any)                 { f.said += fmt.Sprint(args...) }
func (f *failing) Fatalf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "golden")
	f := &failing{TB: t}
	processortest.Golden(f, file, []byte("x"), true)
	processortest.Golden(f, file, []byte("x"), false)
	if f.said != "" {
		t.Errorf("said %q", f.said)
	}
	processortest.Golden(f, file, []byte("yy"), false)
	if !strings.Contains(f.said, "2 bytes differ from the golden 1") {
		t.Errorf("said %q", f.said)
	}
	f.said = ""
	processortest.Golden(f, file+"2", nil, false)
	if !strings.Contains(f.said, "-update") {
		t.Errorf("said %q", f.said)
	}
}

// said is a processor that writes its setting.
type said struct{}

type saidSettings struct {
	Say string `toml:"say" doc:"What."`
}

func (said) Info() processor.Info {
	return processor.Info{Name: "said", Version: 1, Settings: &saidSettings{Say: "nothing"}, Products: []processor.ProductType{{Type: "text"}}}
}

func (said) Process(_ context.Context, job processor.Job) error {
	return job.Write(processor.Output{Type: "text"}, []byte(processor.SettingsOf[saidSettings](job).Say))
}

// TestNamedRequest checks that settings from rules for a request's name override those of the job, and are recorded.
func TestNamedRequest(t *testing.T) {
	c := content
	c.Processors, c.Named = []processor.Processor{said{}}, map[string]map[string]any{"loud": {"say": "HO"}}
	r := processortest.Run(t, does(func(_ context.Context, job processor.Job) error {
		given := map[string]any{"say": "ho"}
		made, err := job.Request(
			processor.Request{Name: "loud", Processor: "said", Settings: given},
			processor.Request{Name: "soft", Processor: "said", Settings: given},
			processor.Request{Processor: "said"},
		)
		for i, want := range []string{"HO", "ho", "nothing"} {
			if err == nil {
				err = job.Adopt(made[i][0], processor.Output{Name: want})
			}
		}
		return err
	}), c)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, want := range []string{"HO", "ho", "nothing"} {
		if got := string(r.Products[want].Data); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !slices.Contains(r.Observations, "settings a/x.txt#loud") || !slices.Contains(r.Observations, "settings a/x.txt#soft") {
		t.Errorf("observed %q", r.Observations)
	}
}
