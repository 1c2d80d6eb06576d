// Package thorough decides how much tests do. `go test ./...` runs the short form of long tests; KILN_TESTS=all
// requests the long form, as .ci/run does. Of comparisons with other programs that does a part, and KILN_TESTS=whole all.
// Random tests do the same each time; KILN_SEED=random has them do something else, KILN_SEED=NUMBER what they did with
// that seed.
package thorough

import (
	"hash/fnv"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The environment variables that request the long form, and another seed each time.
const (
	Variable     = "KILN_TESTS"
	SeedVariable = "KILN_SEED"
)

// Enabled reports whether tests run in their long form.
func Enabled() bool { return os.Getenv(Variable) == "all" || Whole() }

// Whole reports whether all comparisons with other programs are made, which takes most of an hour.
func Whole() bool { return os.Getenv(Variable) == "whole" }

// OfPeers returns the number of comparisons with other programs: less, some in the long form, or all.
func OfPeers(less, some, all int) int {
	if Whole() {
		return all
	}
	return Of(less, some)
}

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

var (
	seedsMu sync.Mutex
	seeds   = map[string]uint64{} // how many each test took
)

// Seed returns a seed for a random test, and logs it. The n-th of a test is the same in each process, so that one state of the code has one
// verdict; with KILN_SEED=random it comes from the time, and with KILN_SEED=NUMBER it is that.
func Seed(t testing.TB) uint64 {
	t.Helper()
	s, err := strconv.ParseUint(os.Getenv(SeedVariable), 10, 64)
	if os.Getenv(SeedVariable) == "random" {
		s, err = uint64(time.Now().UnixNano()), nil
	}
	if err == nil {
		t.Logf("%s=%d", SeedVariable, s)
		return s
	}
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	seedsMu.Lock()
	defer seedsMu.Unlock()
	s = h.Sum64()>>8 + seeds[t.Name()]<<32 // tests that take several seeds add small numbers
	seeds[t.Name()]++
	t.Logf("%s=%d", SeedVariable, s)
	return s
}
