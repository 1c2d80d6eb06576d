//go:build wasip1

// Command guest is the processor that the tests of package wasm ask for all kinds of things. Its asset's content says what.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/wasmguest"
)

func init() { wasmguest.Serve(guest{}) }

func main() {}

type guest struct{}

type settings struct {
	Flag   bool      `toml:"flag" doc:"A flag."`
	Count  int64     `toml:"count" doc:"A number." min:"-3" max:"9"`
	Factor float64   `toml:"factor" doc:"A factor." min:"0.5"`
	Kind   string    `toml:"kind" doc:"A \"kind\"." values:"one,two"`
	Names  []string  `toml:"names" doc:"Names."`
	Sizes  []int     `toml:"sizes" doc:"Sizes."`
	Parts  []float64 `toml:"parts" doc:"Shares."`
}

func (guest) Info() processor.Info {
	return processor.Info{
		Name: "guest", Version: 3, Summary: "Does what it is told", Extensions: []string{".guest"}, Memory: 32 << 20,
		Settings: &settings{Flag: true, Count: -2, Factor: 1.5, Kind: "two", Names: []string{"a", "ü"}, Sizes: []int{1, 2}},
		Products: []processor.ProductType{{Type: "text", Extension: ".txt", Doc: "What it saw."}},
	}
}

var jobs int // in this memory

func (guest) Process(_ context.Context, job processor.Job) error {
	jobs++
	what, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	switch string(what) {
	case "all":
		return all(job)
	case "refused":
		_, err := job.Open("../x")
		return err
	case "wrapped":
		_, err := job.Products("no.png")
		return fmt.Errorf("while it looked: %w", err)
	case "requests":
		return requests(job)
	case "runs":
		return runs(job)
	case "two":
		return errors.Join(&processor.Problem{Line: 1, Text: "first"}, &processor.Problem{Line: 2, Text: "second"})
	case "world":
		return world(job)
	case "grow":
		big := make([]byte, 20<<20)
		return write(job, fmt.Sprint(len(big), " ", jobs))
	case "state":
		return write(job, fmt.Sprint(jobs))
	case "filter":
		return filter(job)
	case "nothing":
		return nil
	}
	return bad(job, string(what))
}

// requests has the processor echo work on each kind of source, and adopts what it makes of bytes.
func requests(job processor.Job) error {
	said := map[string]any{"say": "so"}
	made, err := job.Request(
		processor.Request{Processor: "echo"},
		processor.Request{Name: "other", Processor: "echo", Path: "other.txt", Settings: said},
		processor.Request{Processor: "echo", Bytes: []byte("\xff bytes"), Extension: ".bin"},
	)
	if err != nil {
		return err
	}
	again, err := job.Request(processor.Request{Processor: "echo", Product: &made[1][0], Settings: said})
	if err != nil {
		return err
	}
	var all []byte
	for _, ps := range append(made, again...) {
		f, err := job.OpenProduct(ps[0])
		if err != nil {
			return err
		}
		b, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		all = append(append(all, b...), '\n')
	}
	if err := job.Adopt(made[2][0], processor.Output{Name: "twin"}); err != nil {
		return err
	}
	if _, err := job.Request(processor.Request{Processor: "nobody"}); err == nil {
		return errors.New("a processor that is not there was asked")
	}
	return write(job, string(all))
}

// runs has a program run, and writes what it did; then one that fails.
func runs(job processor.Job) error {
	r, err := job.Run(context.Background(), processor.Command{
		Args: []string{"echo", "a", "b"}, Inputs: []string{"inc/*"}, Stdin: []byte("in"), Codes: []int{3},
		Files: map[string][]byte{"made.txt": []byte("made"), "none": nil}, Timeout: 1500 * time.Millisecond, Env: []string{"A"}, Tools: []string{"tool"},
	})
	if err != nil {
		return err
	}
	did := fmt.Sprintf("%d %q %s %d %s %q", r.Code, r.Stdout, r.Stderr, len(r.Files), r.Files["deep/x"], r.Files["empty"])
	if did != `3 "\xff out" err 2 X ""` {
		return errors.New(did)
	}
	_, err = job.Run(context.Background(), processor.Command{Args: []string{"nobody"}})
	return err
}

func bad(job processor.Job, what string) error {
	switch what {
	case "panic":
		panic("too bad")
	case "exit":
		os.Exit(7)
	case "nil":
		var p *settings
		p.Count++
	case "deadlock":
		<-make(chan int)
	case "recursion":
		return errors.New(strings.Repeat("x", deep(1)))
	case "unclosed":
		_, err := job.Create(processor.Output{Name: "half", Type: "text"})
		return err
	}
	return fmt.Errorf("what is %q", what)
}

func deep(n int) int { return deep(n+1) + n }

func write(job processor.Job, s string) error {
	return job.Write(processor.Output{Type: "text", Extension: ".txt"}, []byte(s))
}

func world(job processor.Job) error {
	var b strings.Builder
	start := time.Now()
	time.Sleep(time.Hour)
	fmt.Fprintln(&b, start.UTC().Year(), time.Since(start) >= time.Hour, rand.Uint64(), os.Args, os.Environ())
	for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9} {
		b.WriteString(k)
	}
	done := make(chan int)
	for i := range 5 {
		go func() { done <- i }()
	}
	for range 5 {
		fmt.Fprint(&b, <-done)
	}
	_, err := os.ReadFile("/etc/passwd")
	_, stat := os.Stat(".")
	fmt.Fprintln(&b, err, stat)
	return write(job, b.String())
}

// all calls each method of Job.
func all(job processor.Job) error {
	var b strings.Builder
	say := func(v ...any) { fmt.Fprintln(&b, v...) }
	say(job.Asset(), job.Platform())
	say(*processor.SettingsOf[settings](job))
	_, err := job.ReadFile("missing.txt")
	say(err, errors.Is(err, fs.ErrNotExist))
	say(job.Exists("other.txt"))
	say(job.Exists("missing.txt"))
	say(job.Glob("*.txt"))
	products, err := job.Products("b.png")
	say(products, err)
	f, err := job.OpenProduct(products[0][0])
	if err != nil {
		return err
	}
	f.Seek(2, io.SeekStart)
	rest, err := io.ReadAll(f)
	say(string(rest), err, f.Size(), f.Close(), f.Close())
	say(job.Assets("*.png"))
	say(job.TryProducts(processor.Ask{Asset: "nobody.png"}))
	say(job.TryProducts(processor.Ask{Asset: "b.png", Processor: "other"}))
	tried, ok, err := job.TryProducts(processor.Ask{Asset: "b.png", Platform: "tv"})
	say(tried, ok, err)
	if f, err = job.OpenProduct(tried[0]); err != nil {
		return err
	}
	rest, err = io.ReadAll(f)
	say(string(rest), err, f.Close())
	ref, err := job.Reference("b.png", "", true)
	say(ref, err)
	_, err = job.Reference("nobody.png", "", true)
	say(err, errors.Is(err, fs.ErrNotExist))
	say(job.ResourceID(""))
	say(job.ResourceID("refs"))
	_, err = job.Tool("cc")
	say(err)
	_, err = job.Parts("x")
	say(err)
	say(job.Env("HOME"))
	job.Warn(processor.Problem{Path: "other.txt", Line: 1, Column: 2, Length: 3, Text: "careful", Hint: "or not"})
	err = job.Write(processor.Output{Name: "refs", Type: "text", References: []processor.Reference{ref, processor.Own(job, "x", false)}}, nil)
	say(err)
	return write(job, b.String())
}

// filter is work on each of a million pixels, the same as in the benchmark of package wasm.
func filter(job processor.Job) error {
	in, out := make([]byte, 4<<20), make([]byte, 1<<20)
	for i := range out {
		p := in[4*i : 4*i+4]
		out[i] = byte((int(p[0])*54 + int(p[1])*183 + int(p[2])*19 + (i & 255)) >> 8)
	}
	return write(job, fmt.Sprint(len(out), out[77]))
}
