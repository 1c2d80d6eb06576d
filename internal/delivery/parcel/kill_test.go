package parcel

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

var errKilled = errors.New("killed")

// killed is a file whose writer ends after some writes and syncs, with all of the system: of what was written since the last sync, any part
// may be lost, and of the write that it ends in, some thirds come to be.
type killed struct {
	f            *os.File
	rng          *rand.Rand
	left, thirds int
	pending      []piece
}

type piece struct {
	b  []byte
	at int64
}

func (k *killed) step() bool { k.left--; return k.left >= 0 }

func (k *killed) WriteAt(b []byte, at int64) (int, error) {
	if k.step() {
		k.pending = append(k.pending, piece{bytes.Clone(b), at})
		return len(b), nil
	}
	k.f.WriteAt(b[:len(b)*k.thirds/3], at)
	return 0, k.lose()
}

func (k *killed) Sync() error {
	if !k.step() {
		return k.lose()
	}
	for _, p := range k.pending {
		if _, err := k.f.WriteAt(p.b, p.at); err != nil {
			return err
		}
	}
	k.pending = nil
	return nil
}

// lose writes what is not lost.
func (k *killed) lose() error {
	for _, p := range k.pending {
		if k.rng.IntN(2) == 0 {
			k.f.WriteAt(p.b, p.at)
		}
	}
	return errKilled
}

// TestKill: wherever an update ends, the parcel is the old one or the new one, whole; and the next update makes it
// the new one.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	for seed := range 3 {
		rng := rand.New(rand.NewPCG(uint64(seed), 4))
		old := some(rng, 70)
		changed := append([]Resource(nil), old...)
		for i := range 3 + seed {
			fresh := one(rng, old[i*12].ID)
			if i == 1 { // larger than what is written at once
				fresh = with(fresh, noise(uint64(seed), 3*smallWrites))
				fresh.Compress = false
			}
			fresh.Required, fresh.Optional, fresh.Type, fresh.Name = old[i*12].Required, old[i*12].Optional, old[i*12].Type, old[i*12].Name
			changed[i*12] = fresh
		}
		if seed%2 == 1 {
			changed = append(changed, one(rng, 5000))
		}
		steps := 0
		for finished := false; !finished; steps++ {
			for thirds := range 4 {
				finished = tryKill(t, filepath.Join(dir, fmt.Sprint(seed, steps, thirds)), old, changed, steps, thirds)
			}
		}
		if steps < 6 { // two writes, a sync, the slot, a sync, and the end
			t.Errorf("an update has only %d steps", steps)
		}
	}
}

// tryKill ends an update after some steps, and tells whether it came to its end before.
func tryKill(t *testing.T, path string, old, changed []Resource, steps, thirds int) bool {
	t.Helper()
	if err := Write(path, old, Options{}); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	finished := killAt(t, path, changed, steps, thirds)
	p, err := kilnrt.Open(path)
	if err != nil {
		t.Fatalf("killed after %d steps: %v", steps, err)
	}
	newer := p.Header().Generation == 2
	p.Close()
	if newer && steps == 0 || finished && !newer {
		t.Fatalf("after %d steps generation 2 counts: %v", steps, newer)
	}
	if newer {
		holds(t, path, changed)
	} else {
		holds(t, path, old)
	}
	if _, err := Update(path, changed, Options{}); err != nil {
		t.Fatal(err)
	}
	holds(t, path, changed)
	return finished
}

// killAt updates a parcel up to a step, and tells whether it came to the end before.
func killAt(t *testing.T, path string, rs []Resource, steps, thirds int) bool {
	t.Helper()
	now, err := prepare(rs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := kilnrt.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	was, err := itemsOf(p)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &change{old: p, header: p.Header(), was: was, now: now}
	c.compare()
	_, err = c.append(&killed{f: f, rng: rand.New(rand.NewPCG(uint64(steps), uint64(thirds))), left: steps, thirds: thirds}, c.keep(), 0, Options{})
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	return err == nil
}
