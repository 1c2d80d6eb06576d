//go:build nosound

package main

import (
	"errors"
	"io"
)

func openDevice(_ int, _ io.Reader, failed func(error)) {
	failed(errors.New("the game was compiled with -tags nosound"))
}
