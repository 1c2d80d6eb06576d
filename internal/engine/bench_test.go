package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// still is a world in which nothing changes: lookups in maps, as in a real one.
type still struct {
	tasks  map[string]*engine.Task
	traces map[engine.Key][]*engine.Trace
	hash   digest.Hash
	all    []*engine.Task
}

func (s *still) Observe(engine.Kind, string) (digest.Hash, error) { return s.hash, nil }
func (s *still) Resolve(subject string) *engine.Task              { return s.tasks[subject] }
func (s *still) Available(*engine.Trace) (string, bool)           { return "", true }
func (s *still) Twins(*engine.Task) []*engine.Task                { return nil }
func (s *still) Translate(*engine.Trace, *engine.Task, *engine.Task) *engine.Trace {
	return nil
}
func (*still) Planned(int)                                    {}
func (s *still) Started(*engine.Task)                         {}
func (s *still) Finished(*engine.Result)                      {}
func (s *still) Suspended(*engine.Task, []*engine.Task, bool) {}
func (s *still) Traces(k engine.Key) []*engine.Trace          { return s.traces[k] }
func (s *still) Add(k engine.Key, t *engine.Trace) error {
	s.traces[k] = []*engine.Trace{t}
	return nil
}
func (s *still) Use(engine.Key, *engine.Trace) {}

// newStill has n tasks that each looked at two files and have two products, and, each tenth, at another task.
func newStill(n int) *still {
	s := &still{tasks: make(map[string]*engine.Task, n), traces: make(map[engine.Key][]*engine.Trace, n), hash: digest.Of([]byte("x"))}
	ps := []engine.Product{
		{Name: "", Type: "texture", File: "pc/a/b/c.png.ktx2", Hash: s.hash},
		{SubID: 1, Name: "1", Type: "texture", File: "pc/a/b/c.png.1.ktx2", Hash: s.hash},
	}
	outline := digest.Build("outline")
	for _, p := range ps {
		outline.Str("name", p.Name).Str("type", p.Type).Str("file", p.File)
	}
	for i := range n {
		name := fmt.Sprintf("pc\x00textures/folder%03d/image%06d.png", i/100, i)
		t := &engine.Task{Key: engine.Key(digest.Of([]byte(name))), Name: name, Work: &engine.Work{}}
		tr := &engine.Trace{Outcome: engine.Succeeded, Products: ps, Observations: []engine.Observation{
			{Kind: engine.FirstLeaf, Subject: name + ".png", Value: s.hash}, {Kind: engine.FirstLeaf, Subject: name + ".toml", Value: s.hash},
		}}
		if i%10 == 9 {
			tr.Observations = append(tr.Observations,
				engine.Observation{Kind: engine.Outline, Subject: s.all[i-1].Name, Value: outline.Sum()},
				engine.Observation{Kind: engine.Content, SubID: 1, Subject: s.all[i-1].Name, Value: s.hash})
		}
		s.tasks[name], s.traces[t.Key], s.all = t, []*engine.Trace{tr}, append(s.all, t)
	}
	return s
}

// BenchmarkSweep is a build in which all of 100,000 traces hold; the floor looks everything up that the sweep has to look up.
func BenchmarkSweep(b *testing.B) {
	const n = 100_000
	s := newStill(n)
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			same := 0
			for _, t := range s.all {
				for _, o := range s.Traces(t.Key)[0].Observations {
					if h, _ := s.Observe(o.Kind, o.Subject); h == o.Value {
						same++
					}
				}
			}
			if same == 0 {
				b.Fatal("nothing is the same")
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/task")
	})
	b.Run("build", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rs, err := engine.Build(context.Background(), s, s, engine.Options{Workers: 2}, s.all)
			if err != nil || len(rs) != n || rs[n-1].State != engine.Held {
				b.Fatal(err, len(rs))
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/task")
	})
}

// chain has n tasks, each needing the next.
func chain(n int) *still {
	s := &still{tasks: make(map[string]*engine.Task, n), traces: make(map[engine.Key][]*engine.Trace, n), hash: digest.Of([]byte("x"))}
	for i := range n {
		name := fmt.Sprint(i)
		t := &engine.Task{Key: engine.Key(digest.Of([]byte(name))), Name: name, Work: &engine.Work{}}
		t.Run = func(r *engine.Run) (engine.Output, error) {
			if i == n-1 {
				r.See(engine.FirstLeaf, "leaf", s.hash)
				return engine.Output{}, nil
			}
			_, err := r.Need(fmt.Sprint(i + 1))
			return engine.Output{}, err
		}
		s.tasks[name], s.all = t, append(s.all, t)
	}
	return s
}

// A chain of 100,000 is checked from its head, and again when its tail changes, from both ends.
func TestLongChain(t *testing.T) {
	const n = 100_000
	s := chain(n)
	build := func(tasks ...*engine.Task) []*engine.Result {
		t.Helper()
		rs, err := engine.Build(context.Background(), s, s, engine.Options{Workers: 2}, tasks)
		if err != nil || len(rs) != n {
			t.Fatal(len(rs), err)
		}
		return rs
	}
	ran := func(rs []*engine.Result) (c int) {
		for _, r := range rs {
			if r.State == engine.Ran {
				c++
			}
		}
		return c
	}
	// Traces as if it had been built: 100,000 suspended runs are another matter.
	empty := digest.Build("outline").Sum()
	for i, task := range s.all {
		o := engine.Observation{Kind: engine.Outline, Subject: fmt.Sprint(i + 1), Value: empty}
		if i == n-1 {
			o = engine.Observation{Kind: engine.FirstLeaf, Subject: "leaf", Value: s.hash}
		}
		s.traces[task.Key] = []*engine.Trace{{Outcome: engine.Succeeded, Observations: []engine.Observation{o}}}
	}
	if c := ran(build(s.all[0])); c != 0 {
		t.Errorf("%d ran", c)
	}
	for _, first := range []int{0, n - 1} {
		s.hash = digest.Of(s.hash[:])
		if c := ran(build(s.all[first], s.all[0])); c != 1 {
			t.Errorf("%d ran, want the tail only", c)
		}
	}
	backwards := make([]*engine.Task, n)
	for i := range backwards {
		backwards[i] = s.all[n-1-i]
	}
	s.hash = digest.Of(s.hash[:])
	if c := ran(build(backwards...)); c != 1 {
		t.Errorf("%d ran, want the tail only", c)
	}
}
