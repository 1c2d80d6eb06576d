package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// TestEnd: what happened before a reading ends is told, be it read by then or not.
func TestEnd(t *testing.T) {
	dir := t.TempDir()
	system, err := newNotifier()
	must(t, err)
	n := system.(*changes)
	r, err := n.begin(dir, "", nameMask, false)
	must(t, err)
	for len(n.out) < cap(n.out) {
		n.out <- nil // so that it cannot send
	}
	const files = 20
	for i := range files {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.txt", i)), nil, 0o666))
	}
	time.Sleep(100 * time.Millisecond) // Wine hears of them late
	r.end()
	told := map[string]bool{}
	go func() { n.over.Wait(); close(n.out) }()
	for events := range n.out {
		for _, e := range events {
			told[e.path] = true
		}
	}
	if len(told) != files {
		t.Errorf("%d of %d were told", len(told), files)
	}
}

// TestShortName: a file that is told of by its short name could be any.
func TestShortName(t *testing.T) {
	dir := t.TempDir()
	long, plain := filepath.Join(dir, "A long name.texture"), filepath.Join(dir, "a~1.txt")
	must(t, os.WriteFile(long, nil, 0o666), os.WriteFile(plain, nil, 0o666))
	buf := make([]uint16, 300)
	name, err := windows.UTF16PtrFromString(long)
	must(t, err)
	n, err := windows.GetShortPathName(name, &buf[0], uint32(len(buf)))
	must(t, err)
	short := filepath.Base(windows.UTF16ToString(buf[:n]))
	t.Logf("it is %s", short)
	r := &reading{path: dir}
	for name, want := range map[string]kind{short: lost, "GONE~1.TXT": lost, "a~1.txt": changed, "gone.txt~": changed, "~$gone.doc": changed, "A long name.texture": changed} {
		if got := r.parse(notification(windows.FILE_ACTION_MODIFIED, name)); len(got) != 1 || got[0].kind != want {
			t.Errorf("%s: %v, not %v", name, got, want)
		}
	}
}

// notification is FILE_NOTIFY_INFORMATION of one event.
func notification(action byte, name string) []byte {
	text := windows.StringToUTF16(name)
	text = text[:len(text)-1]
	b := []byte{0, 0, 0, 0, action, 0, 0, 0, byte(2 * len(text)), 0, 0, 0}
	for _, c := range text {
		b = append(b, byte(c), byte(c>>8))
	}
	return b
}
