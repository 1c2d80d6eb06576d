package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// TestMergeChain: mappings that each merge the one before cost as much as the values that they make, up to the limit of these.
func TestMergeChain(t *testing.T) {
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString("m0: &m0 {k0: 1}\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&b, "m%d: &m%d {<<: *m%d, k%d: 1}\n", i, i, i-1, i)
		}
		return b.String()
	}
	v, err := YAML([]byte(chain(1000)))
	if err != nil {
		t.Fatal(err)
	}
	o := v.V.(Object)
	if last := o[999].Value.V.(Object); len(o) != 1000 || len(last) != 1000 || last[0].Key != "k999" || last[999].Key != "k0" {
		t.Errorf("%d mappings, the last with %d keys", len(o), len(last))
	}
	if _, err := YAML([]byte(chain(4000))); !isLimit(err) {
		t.Errorf("4,000 mappings: %v", err)
	}
	// Without merges: each value holds the one before twice.
	text := "- &a0 x\n"
	for i := 1; i < 64; i++ {
		text += fmt.Sprintf("- &a%d [*a%d, *a%d]\n", i, i-1, i-1)
	}
	if _, err := YAML([]byte(text)); !isLimit(err) {
		t.Errorf("aliases: %v", err)
	}
	// An alias of something deep, deep inside.
	deep := "a: &a " + strings.Repeat("[", MaxDepth*2/3) + strings.Repeat("]", MaxDepth*2/3) + "\nb: " +
		strings.Repeat("[", MaxDepth*2/3) + "*a" + strings.Repeat("]", MaxDepth*2/3) + "\n"
	if _, err := YAML([]byte(deep)); !isLimit(err) {
		t.Errorf("depth: %v", err)
	}
}

func isLimit(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Fault == Limit
}

// TestMergeRandom writes random mappings that merge and hold others, and compares what is read with what a simple form makes of them.
func TestMergeRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(thorough.Seed(t), 2))
	n := thorough.Of(300, 30000)
	for range n {
		var text, want strings.Builder
		var made []Object // by anchor
		for i := range 1 + r.IntN(12) {
			o, line := Object{}, []string{}
			add := func(m Member) {
				for _, x := range o {
					if x.Key == m.Key {
						return
					}
				}
				o = append(o, m)
			}
			for k := range r.IntN(4) {
				m := Member{Key: fmt.Sprint("k", k, r.IntN(2)), Value: Value{V: int64(i)}}
				shown := fmt.Sprint(i)
				if len(made) > 0 && r.IntN(2) == 0 {
					from := r.IntN(len(made))
					m.Value, shown = Value{V: made[from]}, fmt.Sprintf("*m%d ", from)
				}
				add(m)
				line = append(line, m.Key+": "+shown)
			}
			if len(made) > 0 && r.IntN(3) > 0 {
				some := []string{}
				for range 1 + r.IntN(2) {
					from := r.IntN(len(made))
					some = append(some, fmt.Sprintf("*m%d ", from))
					for _, m := range made[from] {
						add(m)
					}
				}
				line = append(line, "<<: ["+strings.Join(some, ", ")+"]")
			}
			made = append(made, o)
			fmt.Fprintf(&text, "m%d: &m%d {%s}\n", i, i, strings.Join(line, ", "))
			fmt.Fprintf(&want, "m%d %s\n", i, plainText(t, Value{V: o}))
		}
		v, err := YAML([]byte(text.String()))
		if isLimit(err) {
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, &text)
		}
		var got strings.Builder
		for _, m := range v.V.(Object) {
			fmt.Fprintf(&got, "%s %s\n", m.Key, plainText(t, m.Value))
		}
		if got.String() != want.String() {
			t.Fatalf("%s\ngot\n%s\nwant\n%s", &text, &got, &want)
		}
	}
	t.Logf("%d documents", n)
}

func plainText(t *testing.T, v Value) string {
	b, err := json.Marshal(v.Plain())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
