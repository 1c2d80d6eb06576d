//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// Replace gives the file from the name to, whose file goes.
func Replace(from, to string) error { return os.Rename(from, to) }

// Remove removes a file, or a folder that is empty.
func Remove(path string) error { return os.Remove(path) }

// Open opens a file for reading. Others may replace and remove it meanwhile.
func Open(path string) (*os.File, error) { return os.Open(path) }

// ReadFile reads a file whole. Others may replace and remove it meanwhile.
func ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// Full tells whether an error says that there is no room.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// InUse tells whether an error says that another program has the file open, which stops nobody here.
func InUse(error) bool { return false }
