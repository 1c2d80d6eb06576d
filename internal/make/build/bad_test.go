package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// pngOf is a picture of w by h pixels, w and h claimed anew if they are not 0.
func pngOf(t *testing.T, w, h, claimW, claimH uint32) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, int(w), int(h)))); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	if claimW > 0 {
		binary.BigEndian.PutUint32(data[16:], claimW)
		binary.BigEndian.PutUint32(data[20:], claimH)
		binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	}
	return string(data)
}

const goodModel = `{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"name":"root"}]}`

// TestBadContent has content that cannot be built among content that can. Each has its message, the rest is built, and a
// second build says the same without a job.
func TestBadContent(t *testing.T) {
	t.Parallel()
	good := pngOf(t, 16, 16, 0, 0)
	for _, c := range []struct{ file, bad, good, code string }{
		{"truncated.png", good[:len(good)/2], good, "K1203"},
		{"vast.png", pngOf(t, 16, 16, 60_000, 60_000), good, "K1206"},
		{"ring.gltf", `{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"children":[1]},{"children":[0]}]}`, goodModel, "K1409"},
		{"accessor.gltf", `{"asset":{"version":"2.0"},"buffers":[{"byteLength":4,"uri":"data:application/octet-stream;base64,AAAAAA=="}],
"bufferViews":[{"buffer":0,"byteLength":4}],"accessors":[{"bufferView":0,"componentType":5126,"count":1000,"type":"VEC3"}],
"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],"nodes":[{"mesh":0}],"scene":0,"scenes":[{"nodes":[0]}]}`, goodModel, "K1407"},
		{"syntax.json", "{\"a\": 1,\n\"b\": }", "{}", "K1101"},
		{"panic.s", "panic stations", "text fine", "K0205"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "-- assets/fine.txt --\nfine\n-- assets/fine.json --\n{}\n")
			p.procs = append(processors.All(), &script{version: 1})
			p.write("assets/fine.png", good)
			p.write("assets/"+c.file, c.bad)
			b := p.build()
			if b.Failed != 1 || b.Built != 4 || !strings.HasPrefix(b.messages, "assets/"+c.file) || !strings.Contains(b.messages, "error["+c.code+"]: ") {
				t.Errorf("built %d, failed %d: %s", b.Built, b.Failed, b.messages)
			}
			if strings.Contains(names(outputFiles(p.dir, "build")), c.file) {
				t.Errorf("an output of what failed: %s", names(outputFiles(p.dir, "build")))
			}
			again := p.wants("")
			if d := cmp.Diff(b.messages, again.messages); d != "" || again.Failed != 1 {
				t.Errorf("the second build says something else: %s", d)
			}
			p.nothing()
			p.write("assets/"+c.file, c.good)
			if b := p.wants(c.file); b.Failed != 0 {
				t.Error(b.messages)
			}
		})
	}
}

// TestLock has two who want a project.
func TestLock(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/a.txt --\na\n")
	ctx := context.Background()
	one, two := p.open(), p.open()
	p.must(one.Lock(ctx, true, func() { t.Error("waits for nobody") }))
	if err := two.Lock(ctx, false, nil); !errors.Is(err, workspace.ErrBusy) {
		t.Errorf("got %v", err)
	}
	stopped, cancel := context.WithCancel(ctx)
	if err := two.Lock(stopped, true, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waits, has := make(chan bool), make(chan error)
	go func() { has <- two.Lock(ctx, true, func() { close(waits) }) }()
	<-waits
	if _, err := one.Build(ctx, Request{Reporter: job.Silent{}}); err != nil {
		t.Error(err)
	}
	p.must(one.Unlock())
	p.must(<-has)
	r, err := two.Build(ctx, Request{Reporter: job.Silent{}})
	if err != nil || r.Summary.Reused != 1 || r.Summary.Built != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	p.must(two.Unlock())
}

// TestDeterminism builds the same at 1, 2 and 8 workers, in other folders: the same outputs, messages and traces.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	files := everything + `
-- assets/bad.s --
use good1.s bad1.s good2.s bad2.s
-- assets/bad1.s --
fail one
-- assets/bad2.s --
panic two
-- assets/good1.s --
use parts.s good2.s
-- assets/good2.s --
list parts.s
-- assets/ring1.s --
use ring2.s a.txt
-- assets/ring2.s --
list ring3.s good1.s
-- assets/ring3.s --
use ring1.s
-- assets/ringer.s --
use ring2.s
`
	type outcome struct {
		Outputs  map[string]string
		Messages []string
		Traces   map[engine.Key]engine.Trace
		Database map[string][]string
	}
	var want *outcome
	for i, workers := range []int{1, 2, 8, 8, 1} {
		p := newProject(t, files)
		p.workers = workers
		b := p.build()
		got := &outcome{outputFiles(p.dir, "build"), sortedMessages(b.list), map[engine.Key]engine.Trace{}, p.database()}
		traces, _, err := state.OpenTraces(p.path(".kiln/traces"), true)
		p.must(err)
		for _, k := range traces.Keys() {
			for _, tr := range traces.Traces(k) {
				got.Traces[k] = engine.Trace{
					Fingerprint: tr.Fingerprint, Outcome: tr.Outcome, Observations: tr.Observations, Products: tr.Products,
					Messages: tr.Messages, Root: tr.Root, Cycle: tr.Cycle,
				}
			}
		}
		if want == nil {
			want = got
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("build %d, with %d workers, differs: %s", i, workers, d)
		}
		p.nothing()
	}
	if len(want.Traces) < 20 {
		t.Errorf("%d traces", len(want.Traces))
	}
}

// TestSmallMemory builds jobs that need more memory together than they may, and one that alone needs more.
func TestSmallMemory(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n[build]\nmemory = \"1MiB\"\n-- assets/a.s --\nuse b.s c.s\n-- assets/b.s --\nuse c.s\n-- assets/c.s --\ntext c\n")
	p.workers = 8
	for i := range 20 {
		p.write(fmt.Sprintf("assets/%d.s", i), "use a.s")
	}
	if b := p.build(); b.Built != 23 || b.Failed != 0 {
		t.Errorf("built %d, failed %d: %s", b.Built, b.Failed, b.messages)
	}
}
