//go:build !windows

package cli

import (
	"errors"
	"io"
	"syscall"
)

// pipeClosed reports whether an error means that the reader of a pipe closed it.
func pipeClosed(err error) bool { return errors.Is(err, syscall.EPIPE) }

// addressInUse reports whether an error means that another process listens on an address.
func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// enableEscapes makes a terminal interpret escape sequences; only Windows needs that.
func enableEscapes(io.Writer) bool { return true }
