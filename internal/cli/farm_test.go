package cli_test

import (
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

// startFarm starts a server with workers, and sets a variable to its address: farm WORKERS VARIABLE. None of its workers has the property
// pool = "assets".
func startFarm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: farm WORKERS VARIABLE")
	}
	workers, err := strconv.Atoi(args[0])
	ts.Check(err)
	f, err := reapitest.StartFarm(ts.MkAbs(ts.Getenv("TMPDIR")), workers)
	ts.Check(err)
	ts.Defer(f.Stop)
	f.Lacks = map[string]string{"pool": "assets"}
	f.Env = []string{"TMPDIR=" + ts.Getenv("TMPDIR"), "TEMP=" + ts.Getenv("TEMP")}
	ts.Setenv(args[1], f.Address)
}
