// Package thorough decides how much tests do. `go test ./...` runs the short form of long tests; KILN_TESTS=all
// requests the long form, as .ci/run does.
package thorough

import (
	"os"
	"testing"
)

// Variable is the environment variable that requests the long form.
const Variable = "KILN_TESTS"

// Enabled reports whether tests run in their long form.
func Enabled() bool { return os.Getenv(Variable) == "all" }

// Only skips a test that is too long for `go test ./...`, and logs why.
func Only(t testing.TB, why string) {
	t.Helper()
	if !Enabled() {
		t.Skip(why + ": only with " + Variable + "=all")
	}
}

// Of returns the number of repetitions: less, or all in the long form.
func Of(less, all int) int {
	if Enabled() {
		return all
	}
	return less
}
