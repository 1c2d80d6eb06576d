package schema

import (
	"cmp"
	"math"
	"math/big"
	"strconv"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// typeOf returns the types of a value. 1.0 is an integer in all drafts.
func typeOf(v any) types {
	switch x := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case int64, uint64:
		return typeNumber | typeInteger
	case float64:
		if x == math.Trunc(x) {
			return typeNumber | typeInteger
		}
		return typeNumber
	case string:
		return typeString
	case []document.Value:
		return typeArray
	}
	return typeObject
}

// compare compares two numbers by their decimal form: 0.1 is exactly a tenth.
func compare(a, b any) int {
	x, xFloat := a.(float64)
	y, yFloat := b.(float64)
	switch {
	case xFloat && yFloat:
		return cmp.Compare(x, y)
	case xFloat:
		return -compareMixed(b, x)
	case yFloat:
		return compareMixed(a, y)
	}
	return compareIntegers(a, b)
}

func compareIntegers(a, b any) int {
	x, xSigned := a.(int64)
	y, ySigned := b.(int64)
	switch {
	case xSigned && ySigned:
		return cmp.Compare(x, y)
	case xSigned: // the other number is above all int64
		return -1
	case ySigned:
		return 1
	}
	ux, _ := a.(uint64)
	uy, _ := b.(uint64)
	return cmp.Compare(ux, uy)
}

// compareMixed compares an integer and a float. Rounding to a float keeps the order, so only numbers that round to the
// same float need a closer comparison: from 2^53 on, the shortest decimal form of a float may be another integer than
// its value.
func compareMixed(integer any, f float64) int {
	var rounded float64
	switch x := integer.(type) {
	case int64:
		rounded = float64(x)
	case uint64:
		rounded = float64(x)
	}
	const exact = 1 << 53
	if rounded != f || -exact < f && f < exact {
		return cmp.Compare(rounded, f)
	}
	digits := strconv.FormatFloat(f, 'f', -1, 64)
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return compareIntegers(integer, n)
	}
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return compareIntegers(integer, n)
	}
	return cmp.Compare(0, f) // f is outside the range of integers
}

// multiple reports whether a is an integer multiple of b, which is above 0. For a float it takes 1 to 6 µs.
func (r *run) multiple(a, b any) bool {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return x%y == 0
		}
	}
	return r.spend(32) && new(big.Rat).Quo(rat(a), rat(b)).IsInt()
}

// rat returns a number as a fraction, from its shortest decimal form.
func rat(v any) *big.Rat {
	switch x := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(x)
	case uint64:
		return new(big.Rat).SetUint64(x)
	}
	f, _ := v.(float64)
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return r
}

// equal compares values as JSON schema defines it: 1 equals 1.0, and the order of keys does not matter.
func (r *run) equal(a, b *document.Value) bool {
	if !r.spend(1) {
		return false
	}
	switch x := a.V.(type) {
	case []document.Value:
		y, ok := b.V.([]document.Value)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !r.equal(&x[i], &y[i]) {
				return false
			}
		}
		return true
	case document.Object:
		y, ok := b.V.(document.Object)
		if !ok || len(x) != len(y) {
			return false
		}
		keys := keysOf(r, y)
		for i := range x {
			if other := keys.get(x[i].Key); !r.spend(len(x[i].Key)/64) || other == nil || !r.equal(&x[i].Value, other) {
				return false
			}
		}
		return true
	case int64, uint64, float64:
		return typeOf(b.V)&typeNumber != 0 && compare(x, b.V) == 0
	case string:
		y, ok := b.V.(string)
		return ok && r.spend(len(x)/64) && x == y
	}
	return a.V == b.V && typeOf(a.V) == typeOf(b.V)
}

// keys finds the members of an object. For a few members a search is cheaper than a table.
type keys struct {
	o     document.Object
	index map[string]*document.Value
}

func keysOf(r *run, o document.Object) keys {
	k := keys{o: o}
	if len(o) > 16 {
		k.index = make(map[string]*document.Value, len(o))
		for i := range o {
			r.spend(1 + len(o[i].Key)/64)
			k.index[o[i].Key] = &o[i].Value
		}
	}
	return k
}

func (k *keys) get(key string) *document.Value {
	if k.index != nil {
		return k.index[key]
	}
	return k.o.Get(key)
}

// twins returns the indices of two equal items, the earlier one first, or -1.
func (r *run) twins(list []document.Value) (first, second int) {
	if len(list) <= 8 {
		for i := range list {
			for j := range i {
				if r.equal(&list[i], &list[j]) {
					return j, i
				}
			}
		}
		return -1, -1
	}
	seen := make(map[uint64][]int, len(list))
	for i := range list {
		h := r.hash(&list[i])
		for _, j := range seen[h] {
			if r.equal(&list[i], &list[j]) {
				return j, i
			}
		}
		seen[h] = append(seen[h], i)
	}
	return -1, -1
}

// hash returns the same number for equal values. It has no seed: a run takes the same steps on every machine, and
// values made to collide reach the limit of steps.
func (r *run) hash(v *document.Value) uint64 {
	const prime = 0x9E3779B97F4A7C15
	h := uint64(typeOf(v.V)&^typeInteger) * prime
	s, _ := v.V.(string)
	r.spend(1 + len(s)/64)
	switch x := v.V.(type) {
	case bool:
		if x {
			h++
		}
	case int64:
		h ^= math.Float64bits(float64(x)) * prime
	case uint64:
		h ^= math.Float64bits(float64(x)) * prime
	case float64:
		h ^= math.Float64bits(x+0) * prime // -0 is 0
	case string:
		h ^= hashText(x)
	case []document.Value:
		for i := range x {
			h = (h ^ r.hash(&x[i])) * prime
		}
	case document.Object:
		for i := range x {
			r.spend(len(x[i].Key) / 64)
			h += (hashText(x[i].Key) ^ r.hash(&x[i].Value)*3) * prime
		}
	}
	return h ^ h>>29
}

// hashText is the 64-bit FNV-1a hash.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
