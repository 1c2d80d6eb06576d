package schema

import (
	"math"
	"math/big"
	"strconv"
	"testing"
)

// TestCompare compares numbers at the limits of their types, and checks the order against exact fractions.
func TestCompare(t *testing.T) {
	numbers := []any{int64(0), int64(1), int64(-1), int64(1 << 53), int64(1<<53 + 1), int64(-1<<53 - 1), int64(math.MaxInt64), int64(math.MinInt64), int64(9223372036854775000), int64(9223372036854776 * 1e2),
		uint64(1 << 63), uint64(math.MaxUint64), uint64(9223372036854776000), uint64(18446744073709551000),
		0.0, math.Copysign(0, -1), 1.0, 0.1, -0.1, float64(1 << 53), float64(1<<53 + 2), float64(1 << 63), -float64(1 << 63), 18446744073709551616.0, 1e18, 922337203685477600.0, 1e20, 1e300, -1e300, 5e-324}
	exact := func(v any) *big.Rat {
		switch x := v.(type) {
		case int64:
			return new(big.Rat).SetInt64(x)
		case uint64:
			return new(big.Rat).SetFrac(new(big.Int).SetUint64(x), big.NewInt(1))
		}
		r, _ := new(big.Rat).SetString(strconv.FormatFloat(v.(float64), 'g', -1, 64)) // as in JSON
		return r
	}
	for _, a := range numbers {
		for _, b := range numbers {
			if got, want := compare(a, b), exact(a).Cmp(exact(b)); got != want {
				t.Errorf("%v (%T) and %v (%T): %d, not %d", a, a, b, b, got, want)
			}
		}
	}
}
