package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// singleKeys makes a console return each key at once without showing it, until restore is called. Ctrl-C stays an
// interrupt.
func singleKeys(f *os.File) (restore func(), err error) {
	h := windows.Handle(f.Fd())
	var was uint32
	if err := windows.GetConsoleMode(h, &was); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(h, was&^(windows.ENABLE_LINE_INPUT|windows.ENABLE_ECHO_INPUT)); err != nil {
		return nil, err
	}
	return func() { windows.SetConsoleMode(h, was) }, nil
}
