package command

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// weighing runs a processor with a job that wants to know.
type weighing struct {
	processor.Processor
	told []int64
}

type weighingJob struct {
	processor.Job
	w *weighing
}

func (w *weighing) Process(ctx context.Context, job processor.Job) error {
	return w.Processor.Process(ctx, weighingJob{job, w})
}

func (j weighingJob) UsedMemory(bytes int64) { j.w.told = append(j.w.told, bytes) }

func TestMemory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("memory is committed before it is touched, and counted then")
	}
	touch(40 << 20) // of our own, which a small program must not be taken for
	const mib = 1 << 20
	own := ownPeak()
	large := own/mib + own/mib/4 + 100
	for _, c := range []struct {
		mode  string
		size  int64 // MiB
		fails bool
		told  bool
	}{
		{"hold", 1, false, runtime.GOOS != "linux"},
		{"hold", large, false, true},
		{"nurse", large, false, true},
		{"hold", 1, false, runtime.GOOS != "linux"},
		{"holds", large, true, false},
	} {
		w := &weighing{Processor: mustNew(t, helperConfig(c.mode, "{out}", fmt.Sprint(c.size), "{in}"))}
		r := processortest.Run(t, w, helperCase(t))
		if (r.Err != nil) != c.fails {
			t.Fatalf("%s %d: %v", c.mode, c.size, r.Err)
		}
		if (len(w.told) == 1) != c.told {
			t.Errorf("%s %d: told %d", c.mode, c.size, w.told)
		}
		for _, bytes := range w.told {
			said, err := strconv.ParseInt(string(r.Products[""].Data), 10, 64)
			if err != nil || bytes < c.size*mib || said > 0 && (bytes < said-16*mib || bytes > said+16*mib) {
				t.Errorf("%s %d: told %d bytes, and the program says %d; %v", c.mode, c.size, bytes, said, err)
			}
		}
	}
}

func TestOwnPeak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux counts Kiln's own memory as a program's")
	}
	before := ownPeak()
	touch(int(before) + 32<<20)
	if after := ownPeak(); before < 1<<20 || after < before+16<<20 {
		t.Errorf("%d bytes, then %d", before, after)
	}
}
