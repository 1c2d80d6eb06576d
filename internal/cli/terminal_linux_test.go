package cli

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal opens both ends of a terminal. Nobody has told it a size.
func Terminal(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { tty.Close() })
	return master, tty
}

// A terminal that was told no size says that it has 0 columns and rows, as some containers' and serial lines do: a picture for it would be
// empty.
func TestTerminalWithoutSize(t *testing.T) {
	_, tty := Terminal(t)
	if !isTerminal(tty) {
		t.Fatal("it is no terminal")
	}
	for _, size := range []struct{ told, want unix.Winsize }{
		{unix.Winsize{}, unix.Winsize{Col: 80, Row: 24}},
		{unix.Winsize{Col: 100}, unix.Winsize{Col: 80, Row: 24}},
		{unix.Winsize{Col: 100, Row: 7}, unix.Winsize{Col: 100, Row: 7}},
	} {
		if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &size.told); err != nil {
			t.Fatal(err)
		}
		if columns, rows := screenSize(tty); columns != int(size.want.Col) || rows != int(size.want.Row) {
			t.Errorf("told %d x %d, it is %d x %d", size.told.Col, size.told.Row, columns, rows)
		}
		if s := screenOf(tty); !s.Terminal || s.Columns != int(size.want.Col) || s.Rows != int(size.want.Row) {
			t.Errorf("told %d x %d, another kiln is asked for %+v", size.told.Col, size.told.Row, s)
		}
	}
}
