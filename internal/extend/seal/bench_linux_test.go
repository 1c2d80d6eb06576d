//go:build amd64 || arm64

package seal

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkBox runs programs without a box, in one, and traced, one after the other, and prints how many times as long each takes
// and how many milliseconds more.
//
//	go test -run '^$' -bench Box ./internal/extend/seal
func BenchmarkBox(b *testing.B) {
	if s := Supported(); s.Trace != nil || s.Writes == 0 {
		b.Skipf("%+v", s)
	}
	dir := b.TempDir()
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), make([]byte, 4<<10), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		b.Fatal(err)
	}
	source := filepath.Join(dir, "a.c")
	text := "#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n" + strings.Repeat("double f(double);\n", 500) +
		"int main(void) { return printf(\"%f\", sin(1)); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		program string
		args    []string
	}{
		{"true", "true", nil},
		{"500files", exe, []string{"many", dir, "500"}},
		{"100ups", exe, append([]string{"read"}, slices.Repeat([]string{strings.Repeat("sub/../", 500) + "a.c"}, 100)...)},
		{"gcc", "gcc", []string{"-O1", "-c", "-o", "a.o", "a.c"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			file, err := exec.LookPath(c.program)
			if err != nil {
				b.Skip(err)
			}
			once := func(box Box) (time.Duration, int) {
				cmd := &exec.Cmd{Path: file, Args: append([]string{c.program}, c.args...), Dir: dir, Env: append(os.Environ(), append(helperEnvironment, "TMPDIR="+dir)...)}
				begin := time.Now()
				if box.Writable == nil {
					if err := cmd.Run(); err != nil {
						b.Fatal(err)
					}
					return time.Since(begin), 0
				}
				seen, err := runIn(box, cmd)
				if err != nil {
					b.Fatal(err)
				}
				return time.Since(begin), len(seen)
			}
			var took [3]time.Duration
			var paths int
			once(Box{Network: true, Writable: []string{dir}, Trace: true})
			for b.Loop() {
				for i, box := range []Box{{}, {Writable: []string{dir}}, {Writable: []string{dir}, Trace: true}} {
					d, n := once(box)
					took[i] += d
					paths = n
				}
			}
			ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(b.N) }
			b.ReportMetric(ms(took[0]), "ms-bare")
			b.ReportMetric(ms(took[1]-took[0]), "ms-more-sealed")
			b.ReportMetric(ms(took[2]-took[0]), "ms-more-traced")
			b.ReportMetric(took[2].Seconds()/took[0].Seconds(), "x-traced")
			b.ReportMetric(float64(paths), "paths")
		})
	}
}
