//go:build unix

package conformance

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

const invertStar = `processor("invert", extensions = [".pix"], products = {"pixels": ""})

def process(job):
    data = job.read()
    if len(data) >= 4:
        data = image.of(1024, 1024, data).map(rgb = lambda v: 255 - v).pixels()
    job.write(data)
`

const invertLoopStar = `processor("invert", extensions = [".pix"], products = {"pixels": ""})

def process(job):
    data = list(job.read().elems())
    for i in range(0, len(data) - 3, 4):
        data[i] = 255 - data[i]
        data[i + 1] = 255 - data[i + 1]
        data[i + 2] = 255 - data[i + 2]
    job.write(bytes(data))
`

const invertC = `#include "kiln_guest.h"
KILN_EXPORT("kiln_info") void kiln_info(void) {
	static const char about[] = "{\"abi\": 1, \"name\": \"invert\", \"version\": 1, \"extensions\": [\".pix\"], \"products\": [{\"type\": \"pixels\"}]}";
	kiln_describe(KILN_TEXT(about));
}
KILN_EXPORT("kiln_process") int kiln_process(void) {
	kiln_size n, length;
	char *path = kiln_all(kiln_asset(KILN_ASSET_PATH), &n);
	kiln_handle file = kiln_open(path, n);
	if (file < 0) return 1;
	kiln_byte *pix = (kiln_byte *)kiln_all(file, &length);
	if (!pix) return 1;
	for (kiln_size i = 0; i + 3 < length; i += 4) pix[i] = 255 - pix[i], pix[i + 1] = 255 - pix[i + 1], pix[i + 2] = 255 - pix[i + 2];
	kiln_handle out = kiln_create(KILN_TEXT(""), KILN_TEXT("pixels"), KILN_TEXT(""), KILN_TEXT(""));
	return out < 0 || kiln_write(out, pix, length) < 0 || kiln_close(out) < 0;
}
`

// invertMain makes a module of invert_test.go.
const invertMain = `package main

import "github.com/kiln-pipeline/kiln/processor/wasmguest"

var _ = wasmguest.Serve(invert{})

func main() {}
`

// contender is an implementation of invert.
type contender struct {
	name     string
	toml     string
	files    map[string]string
	compiled []processor.Processor
	slow     bool // left out of the benchmark with many jobs
	large    bool // left out of the benchmark with many pixels
}

func contenders(b *testing.B) (all []contender) {
	all = []contender{
		{name: "go", compiled: []processor.Processor{invert{}}},
		{name: "starlark", toml: "[[processors]]\nscript = \"invert.star\"\n", files: map[string]string{"invert.star": invertStar}},
		{name: "starlark, a loop", toml: "[[processors]]\nscript = \"invert.star\"\n", files: map[string]string{"invert.star": invertLoopStar}, slow: true},
	}
	if _, err := exec.LookPath("go"); err == nil {
		all = append(all, contender{name: "wasm of go", toml: "[[processors]]\nname = \"invert\"\nwasm = { go = \"tools/conf\" }\n", files: guestOf(b, "invert_test.go", invertMain)})
	}
	if m := clangModule(b); m != "" {
		all = append(all, contender{name: "wasm of c", toml: "[[processors]]\nname = \"invert\"\nwasm = \"invert.wasm\"\n", files: map[string]string{"invert.wasm": m}})
	}
	const cp = "[[processors]]\nname = \"invert\"\ncommand = [\"cp\", \"{in}\", \"{out}\"]\nextensions = [\".pix\"]\n"
	return append(all, contender{name: "command", toml: commandInvert(b), slow: true}, contender{name: "command cp", toml: cp, large: true})
}

// clangModule returns invert in C as a module, or "" if clang is not installed.
func clangModule(b *testing.B) string {
	dir := b.TempDir()
	writeFile(b, filepath.Join(dir, "invert.c"), invertC)
	out := filepath.Join(dir, "invert.wasm")
	said, err := exec.Command("clang", "--target=wasm32", "-O2", "-nostdlib", "-Wl,--no-entry", "-I", "../../../processor/wasmguest/c", "-o", out, filepath.Join(dir, "invert.c")).CombinedOutput()
	if err != nil {
		b.Logf("without C: %v %s", err, said)
		return ""
	}
	code, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	return string(code)
}

// commandInvert makes this test binary available as a program: see TestMain.
func commandInvert(b *testing.B) string {
	commandToml(b, code{}, "[]") // puts it on PATH
	return fmt.Sprintf("[[processors]]\nname = \"invert\"\ncommand = [%q, \"{in}\", \"{out}\", \"invert\"]\nextensions = [\".pix\"]\n", program)
}

// processorTime returns the processor time of this process and the processes it waited for. It does not depend on the
// load of the machine.
func processorTime() (total time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}

// once builds assets with a contender in a new project, on one worker, and returns the processor time. With an empty
// contender the assets are copied.
func once(b *testing.B, c contender, assets map[string][]byte, want []byte) time.Duration {
	dir := b.TempDir()
	for name, text := range c.files {
		writeFile(b, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	writeFile(b, filepath.Join(dir, "kiln.toml"), "[project]\nname = \"bench\"\n"+c.toml)
	for name, data := range assets {
		writeFile(b, filepath.Join(dir, "assets", name), string(data))
	}
	p, err := build.Open(workspace.Config{Dir: dir, Version: "bench", Processors: processors.All(), Team: c.compiled})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	start := processorTime()
	r, err := p.Build(b.Context(), build.Request{Workers: 1, Reporter: &reporter{}})
	took := processorTime() - start
	if err != nil || r.Summary.Built != len(assets) || r.Summary.Failed > 0 {
		b.Fatal(err, r.Messages)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "build", "pc", "0.pix")); err != nil || want != nil && !bytes.Equal(got, want) {
		b.Fatalf("%s made something else: %v", c.name, err)
	}
	os.RemoveAll(dir)
	return took
}

// BenchmarkKinds measures how much more each kind of processor costs than the same build with the processor copy. It
// reports the best of all rounds, in milliseconds of processor time: a job, over 1,000 tiny assets, and the work on a
// million pixels.
func BenchmarkKinds(b *testing.B) {
	tiny := map[string][]byte{}
	for i := range 1000 {
		tiny[fmt.Sprintf("%d.pix", i)] = fmt.Appendf(nil, "%03d", i)
	}
	pix := make([]byte, 4<<20)
	want := make([]byte, len(pix))
	for i := range pix {
		pix[i] = byte(i * 7)
		if want[i] = 255 - pix[i]; i%4 == 3 {
			want[i] = pix[i]
		}
	}
	picture := map[string][]byte{"0.pix": pix}
	all := contenders(b)
	for _, c := range all {
		b.Run(c.name, func(b *testing.B) {
			jobs, jobFloor, pixels, pixelFloor := time.Hour, time.Hour, time.Hour, time.Hour
			for range b.N {
				if !c.slow {
					jobFloor = min(jobFloor, once(b, contender{}, tiny, nil))
					jobs = min(jobs, once(b, c, tiny, nil))
				}
				if !c.large {
					pixelFloor = min(pixelFloor, once(b, contender{}, picture, nil))
					pixels = min(pixels, once(b, c, picture, want))
				}
			}
			b.ReportMetric(0, "ns/op")
			if !c.slow {
				b.ReportMetric((jobs - jobFloor).Seconds(), "ms/job") // for a thousand jobs
			}
			if !c.large {
				b.ReportMetric((pixels-pixelFloor).Seconds()*1000, "ms/Mpixel")
			}
		})
	}
}
