package disk_test

import (
	"runtime"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

func TestBootID(t *testing.T) {
	id := disk.BootID()
	if id != disk.BootID() {
		t.Error("it changes while the system runs")
	}
	if (runtime.GOOS == "linux" || runtime.GOOS == "darwin") && len(id) != 36 {
		t.Errorf("%q", id)
	}
}
