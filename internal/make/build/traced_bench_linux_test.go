package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// BenchmarkTraced runs a program over some files by itself, one after the other, and has Kiln do so with one worker, from nothing, with
// what the program reads traced, hashed and recorded, its outputs stored and linked into place, and the state written. It prints what a
// job takes, how many times that is of the program alone, and how many milliseconds more for each process.
//
//	go test -run '^$' -bench Traced -benchtime 5x ./internal/make/build
func BenchmarkTraced(b *testing.B) {
	if err := seal.Supported().Trace; err != nil {
		b.Skip(err)
	}
	const headers = 200
	for _, c := range []struct {
		name, extension, text string
		command               []string
		processes             int // of one run
		files                 int // so many that what a build costs besides is small
	}{
		{"cp", ".txt", "", []string{"cp", "{in}", "{out}"}, 1, 300},
		{"gcc", ".c", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) { return f0(1); }\n",
			[]string{"gcc", "-O1", "-c", "{in}", "-o", "{out}", "-I{root}/include"}, 3, 20},
		{"glslc", ".vert", "void main() { gl_Position = vec4(f0(1)); }\n", []string{"glslc", "{in}", "-o", "{out}", "-I{root}/include"}, 1, 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			if _, err := exec.LookPath(c.command[0]); err != nil {
				b.Skip(err)
			}
			dir := b.TempDir()
			put := func(name, text string) {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					b.Fatal(err)
				}
			}
			var first strings.Builder
			switch c.name {
			case "glslc":
				first.WriteString("#version 450\n#extension GL_GOOGLE_include_directive : require\n")
				fallthrough
			case "gcc":
				for i := range headers {
					fmt.Fprintf(&first, "#include \"%d.h\"\n", i)
					put(fmt.Sprintf("assets/include/%d.h", i), fmt.Sprintf("int f%d(int a) { return a * %d; }\n", i, i))
				}
			}
			for i := range c.files {
				put(fmt.Sprintf("assets/%d%s", i, c.extension), first.String()+c.text+strings.Repeat("\n", i))
			}
			put("kiln.toml", fmt.Sprintf("[project]\nname = \"bench\"\n[[processors]]\nname = \"tool\"\ncommand = [\"%s\"]\nextensions = [%q]\noutput = \".out\"\ninputs = \"traced\"\n",
				strings.Join(c.command, `", "`), c.extension))
			var bare, traced spent
			for b.Loop() {
				bare.add(func() { alone(b, dir, c.command, c.extension, c.files) })
				clean(b, dir)
				traced.add(func() { tracedBuild(b, dir, c.files) })
			}
			each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(b.N) / float64(c.files) }
			b.ReportMetric(each(bare.wall), "ms-bare")
			b.ReportMetric(traced.wall.Seconds()/bare.wall.Seconds(), "x")
			b.ReportMetric(each(traced.wall-bare.wall)/float64(c.processes), "ms-more/process")
			b.ReportMetric(each(bare.cpu), "cpu-ms-bare")
			b.ReportMetric(traced.cpu.Seconds()/bare.cpu.Seconds(), "cpu-x")
			b.ReportMetric(each(traced.cpu-bare.cpu)/float64(c.processes), "cpu-ms-more/process")
		})
	}
}

// spent is time, and processor time of this process and of those that it waited for, which other work on the machine changes less.
type spent struct{ wall, cpu time.Duration }

func (s *spent) add(f func()) {
	start, cpu := time.Now(), processorTime()
	f()
	s.wall, s.cpu = s.wall+time.Since(start), s.cpu+processorTime()-cpu
}

func processorTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// alone runs a command for each file.
func alone(b *testing.B, dir string, command []string, extension string, files int) {
	out := b.TempDir()
	for i := range files {
		in := fmt.Sprint(i, extension)
		args := make([]string, len(command))
		for k, a := range command {
			args[k] = strings.NewReplacer("{in}", in, "{out}", filepath.Join(out, in+".o"), "{root}", ".").Replace(a)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = filepath.Join(dir, "assets")
		if said, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, said)
		}
	}
}

// clean forgets all builds.
func clean(b *testing.B, dir string) {
	for _, folder := range []string{".kiln", "build"} {
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			b.Fatal(err)
		}
	}
}

// tracedBuild builds the project from nothing.
func tracedBuild(b *testing.B, dir string, files int) {
	p, err := Open(workspace.Config{Dir: dir, Version: "bench", Processors: processors.All()})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if err := p.Lock(ctx, true, func() {}); err != nil {
		b.Fatal(err)
	}
	defer p.Unlock()
	r, err := p.Build(ctx, Request{Workers: 1, Patterns: []string{"*"}, Reporter: job.Silent{}})
	if err != nil || r.Summary.Built != files || r.Failed() {
		b.Fatal(err, r)
	}
}
