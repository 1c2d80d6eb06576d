package cli_test

import (
	"io/fs"

	"github.com/rogpeppe/go-internal/testscript"
)

func identity(fs.FileInfo) string { return "" }

func fifo(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("there are no pipes with names here")
}
