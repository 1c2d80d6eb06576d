//go:build !windows

package cli

import (
	"errors"
	"io"
	"syscall"
)

// pipeClosed tells whether an error says that nobody reads a pipe any more.
func pipeClosed(err error) bool { return errors.Is(err, syscall.EPIPE) }

// addressInUse tells whether an error says that somebody else listens.
func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// enableEscapes makes a terminal understand escape sequences; all but those of Windows do.
func enableEscapes(io.Writer) bool { return true }
