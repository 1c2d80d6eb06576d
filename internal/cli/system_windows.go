package cli

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// pipeClosed reports whether an error means that the reader of a pipe closed it.
func pipeClosed(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}

// addressInUse reports whether an error means that another process listens on an address.
func addressInUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }

// enableEscapes makes a console interpret escape sequences, and reports whether it does: those before Windows 10 do
// not.
func enableEscapes(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	var mode uint32
	h := windows.Handle(f.Fd())
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	return mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0 ||
		windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
