package dashboard

import (
	"context"
	"testing"
	"time"
)

// TestSoon: what is made quickly is of the build that was last; what takes long is of the one before, each by its name, until it is made.
func TestSoon(t *testing.T) {
	k := kept[string]{wait: time.Minute} // a machine may be busy
	build, gate := "1", make(chan struct{})
	close(gate)
	want := func(want string) {
		t.Helper()
		at, open := build, gate
		got, err := k.soon(t.Context(), func(context.Context) (string, error) { return at, nil }, want[:1], func(context.Context) (string, error) {
			<-open
			return want[:1] + at, nil
		})
		if err != nil || got != want {
			t.Errorf("%s, %v; not %s", got, err, want)
		}
	}
	want("a1")
	want("b1")
	build = "2"
	want("a2")
	want("b2")
	build, gate, k.wait = "3", make(chan struct{}), time.Millisecond
	want("a2")
	want("b2")
	k.wait = time.Minute
	close(gate)
	want("a3")
	want("b3")
}
