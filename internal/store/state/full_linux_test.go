package state

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/content/source"
)

// A full disk stops a record halfway: what was before it stays, and once there is room again the log goes on.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	path := filepath.Join(dir, "traces")
	tr := openWell(t, path)
	kept := 0
	for err := error(nil); err == nil; kept++ {
		x := trace(fmt.Sprint(kept), fmt.Sprint(kept))
		x.Messages = make([]byte, 5000)
		if err = tr.Add(key(fmt.Sprint(kept)), x); err != nil {
			break
		}
		if kept > 20 {
			t.Fatal("the disk does not fill")
		}
	}
	if err := WriteSnapshot(filepath.Join(dir, "snapshot"), &Image{Sources: &source.Table{}, Head: Head{Messages: make([]byte, 1<<16)}}); err == nil {
		t.Error("no error")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*snapshot*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	add(t, tr, "small", trace("small", "1")) // there is room for this
	closeIt(t, tr)
	tr = openWell(t, path)
	if len(tr.Keys()) != kept+1 || names(tr, "small") != "small" {
		t.Errorf("%d traces, want %d", len(tr.Keys()), kept+1)
	}
}
