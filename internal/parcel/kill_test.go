package parcel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

var errKilled = errors.New("killed")

// killed is a file whose writer ends after some writes and syncs, in the middle of a write.
type killed struct {
	f    *os.File
	left int
}

func (k *killed) step() bool { k.left--; return k.left >= 0 }

func (k *killed) WriteAt(b []byte, at int64) (int, error) {
	if k.step() {
		return k.f.WriteAt(b, at)
	}
	n, _ := k.f.WriteAt(b[:len(b)/2], at)
	return n, errKilled
}

func (k *killed) Sync() error {
	if k.step() {
		return nil
	}
	return errKilled
}

// TestKill: wherever an update ends, the parcel is the old one or the new one, whole; and the next update makes it
// the new one.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	for seed := range 4 {
		rng := rand.New(rand.NewPCG(uint64(seed), 4))
		old := some(rng, 150)
		changed := append([]Resource(nil), old...)
		for i := range 3 + seed {
			fresh := one(rng, old[i*20].ID)
			fresh.Required, fresh.Optional, fresh.Type, fresh.Name = old[i*20].Required, old[i*20].Optional, old[i*20].Type, old[i*20].Name
			changed[i*20] = fresh
		}
		if seed%2 == 1 {
			changed = append(changed, one(rng, 5000))
		}
		steps := 0
		for finished := false; !finished; steps++ {
			path := filepath.Join(dir, fmt.Sprint(seed, steps))
			if err := Write(path, old, Options{}); err != nil {
				t.Fatal(err)
			}
			finished = killAt(t, path, changed, steps)
			want := old
			if p, err := kilnrt.Open(path); err != nil {
				t.Fatalf("killed after %d steps: %v", steps, err)
			} else {
				if p.Header().Generation == 2 {
					want = changed
				}
				if finished != (p.Header().Generation == 2) && steps == 0 {
					t.Fatal("the first write decides nothing")
				}
				p.Close()
			}
			holds(t, path, want)
			if _, err := Update(path, changed, Options{}); err != nil {
				t.Fatal(err)
			}
			holds(t, path, changed)
			os.Remove(path)
		}
		if steps < 6 {
			t.Errorf("an update has only %d steps", steps)
		}
	}
}

// killAt updates a parcel up to a step, and tells whether it came to the end before.
func killAt(t *testing.T, path string, rs []Resource, steps int) bool {
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
	_, err = c.append(&killed{f, steps}, c.keep(), 0, Options{})
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	return err == nil
}
