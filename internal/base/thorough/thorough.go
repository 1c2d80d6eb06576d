// Package thorough says how much tests are to do. `go test ./...` takes the short form of what is long; KILN_TESTS=all asks for all of it,
// as .ci/run does.
package thorough

import (
	"os"
	"testing"
)

// Variable is the environment variable that asks for all of it.
const Variable = "KILN_TESTS"

// Enabled reports whether tests are to do all that they can.
func Enabled() bool { return os.Getenv(Variable) == "all" }

// Only skips a test that is too long for `go test ./...`, and says why.
func Only(t testing.TB, why string) {
	t.Helper()
	if !Enabled() {
		t.Skip(why + ": only with " + Variable + "=all")
	}
}

// Of is how often something is done: less often, or all the times.
func Of(less, all int) int {
	if Enabled() {
		return all
	}
	return less
}
