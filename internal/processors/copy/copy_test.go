package copy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

func TestCopy(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty":            {},
		"a byte":           {0},
		"a buffer":         bytes.Repeat([]byte("kiln"), bufferSize/4),
		"a buffer and one": bytes.Repeat([]byte{7}, bufferSize+1),
	} {
		t.Run(name, func(t *testing.T) {
			r := processortest.Run(t, New(), processortest.Case{
				Asset: "music/theme.ogg",
				Files: map[string][]byte{"music/theme.ogg": data},
			})
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			p, ok := r.Products[""]
			if !ok || len(r.Products) != 1 {
				t.Fatalf("products %v, want the main one only", r.Products)
			}
			if p.Type != "file" || p.Extension != "" {
				t.Errorf("type %q, extension %q; want file with its own name", p.Type, p.Extension)
			}
			if !bytes.Equal(p.Data, data) {
				t.Errorf("%d bytes differ from the source's %d", len(p.Data), len(data))
			}
			if d := cmp.Diff([]string{"file music/theme.ogg"}, r.Observations); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	r := processortest.Run(t, New(), processortest.Case{Asset: "gone.bin"})
	if !errors.Is(r.Err, fs.ErrNotExist) {
		t.Fatalf("error %v, want fs.ErrNotExist", r.Err)
	}
}

func TestInfo(t *testing.T) {
	info := New().Info()
	if info.Name != "copy" || info.Version != 1 || info.Extensions != nil || info.Settings != nil {
		t.Errorf("%+v", info)
	}
}

// streamJob is a Job with a file of any size that is never in memory.
type streamJob struct {
	processor.Job
	file endless
	out  counter
}

func (j *streamJob) Asset() processor.Asset { return processor.Asset{ID: "big.bin", Path: "big.bin"} }

func (j *streamJob) Open(string) (processor.File, error) { return &j.file, nil }

func (j *streamJob) Create(processor.Output) (io.WriteCloser, error) { return &j.out, nil }

// endless is a file whose byte at i is i's lowest byte times 7.
type endless struct {
	processor.File
	at, size int64
	fail     error // instead of the end
}

func (f *endless) Read(p []byte) (int, error) {
	n := min(int64(len(p)), f.size-f.at)
	if n == 0 {
		if f.fail != nil {
			return 0, f.fail
		}
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = byte(f.at+int64(i)) * 7
	}
	f.at += n
	return int(n), nil
}

func (f *endless) Close() error { return nil }

// counter checks what endless gives.
type counter struct {
	n      int64
	bad    bool
	closed int
	fail   error
	onData func()
}

func (c *counter) Write(p []byte) (int, error) {
	if c.fail != nil {
		return 0, c.fail
	}
	if c.onData != nil {
		c.onData()
	}
	for i, b := range p {
		c.bad = c.bad || b != byte(c.n+int64(i))*7
	}
	c.n += int64(len(p))
	return len(p), nil
}

func (c *counter) Close() error { c.closed++; return nil }

func TestLargeFileIsStreamed(t *testing.T) {
	const size = 64 << 20
	j := &streamJob{file: endless{size: size}}
	p := New()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := p.Process(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if j.out.n != size || j.out.bad || j.out.closed != 1 {
		t.Errorf("wrote %d bytes, wrong %t, closed %d times", j.out.n, j.out.bad, j.out.closed)
	}
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 1<<20 {
		t.Errorf("allocated %d bytes for a file of %d, want at most 1 MiB", grew, size)
	}
}

func TestSmallFilesAllocateNothing(t *testing.T) {
	j := &streamJob{}
	p := New()
	perRun := testing.AllocsPerRun(1000, func() {
		j.file, j.out = endless{size: 4096}, counter{}
		if err := p.Process(context.Background(), j); err != nil {
			t.Fatal(err)
		}
	})
	if perRun > 1 { // a garbage collection may empty the pool
		t.Errorf("%v allocations a file, want none", perRun)
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	t.Run("read", func(t *testing.T) {
		j := &streamJob{file: endless{size: 10, fail: broken}}
		if err := New().Process(t.Context(), j); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		if j.out.closed != 1 {
			t.Errorf("closed %d times", j.out.closed)
		}
	})
	t.Run("write", func(t *testing.T) {
		j := &streamJob{file: endless{size: 10}, out: counter{fail: broken}}
		if err := New().Process(t.Context(), j); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		j := &streamJob{file: endless{size: 1 << 40}}
		j.out.onData = func() { cancel(broken) }
		if err := New().Process(ctx, j); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		if j.out.n != bufferSize {
			t.Errorf("went on for %d bytes after the cancel", j.out.n)
		}
	})
}

func BenchmarkSmall(b *testing.B) {
	j := &streamJob{}
	p := New()
	b.SetBytes(4096)
	b.ReportAllocs()
	for b.Loop() {
		j.file, j.out = endless{size: 4096}, counter{}
		if err := p.Process(context.Background(), j); err != nil {
			b.Fatal(err)
		}
	}
}
