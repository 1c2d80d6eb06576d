package cli_test

import (
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// conformance copies parcels of the conformance set: conformance NAME FILE.
func conformance(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: conformance NAME FILE")
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "kilnrt", "testdata", "conformance", args[0]+".parcel"))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o644))
}
