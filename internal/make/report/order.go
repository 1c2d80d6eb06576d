package report

import (
	"cmp"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// The order of the jobs that a build would run, for another program that runs them. Parts and requests are in it as what they are needed
// for: they run with the job that asks.

// Place is where a job stands in the order.
type Place struct {
	Depth int         // 0: after none; jobs of one depth can run at the same time
	After []JobReport // those that it needs, itself or by way of jobs that are up to date, in the order
	Cycle bool        // it needs itself: no order holds for it and the others of the cycle, which have the same depth
}

// Ordered returns the jobs that would run, or may, each with its place, after all that they are known to need: by rules, and by what they
// observed when they ran last.
func (s *Source) Ordered() []JobReport {
	o := &order{s: s, units: map[job.ID]*unit{}, last: s.lastBuild()}
	for _, res := range s.Results {
		o.add(res)
	}
	for _, u := range o.all {
		o.follow(u)
	}
	for _, u := range o.all {
		o.place(u)
	}
	slices.SortStableFunc(o.all, func(a, b *unit) int { return cmp.Compare(a.depth, b.depth) })
	for i, u := range o.all {
		u.at = i
	}
	jobs := make([]JobReport, 0, len(o.all))
	for _, u := range o.all {
		j := u.job
		j.Place = &Place{Depth: u.depth, Cycle: u.cycle}
		slices.SortFunc(u.after, func(a, b *unit) int { return cmp.Compare(a.at, b.at) })
		for _, other := range u.after {
			if other.group != u.group {
				j.Place.After = append(j.Place.After, other.job)
			}
		}
		jobs = append(jobs, j)
	}
	return jobs
}

type order struct {
	s     *Source
	last  map[string]state.TaskState // of the last build, by subject
	units map[job.ID]*unit
	all   []*unit

	met    int     // units that place has met
	stack  []*unit // that are not in a group of their own yet
	groups int
}

// unit is a job that would run, as a whole or in part.
type unit struct {
	t     *job.Task
	job   JobReport
	after []*unit

	depth, at   int
	number, low int // of the search for cycles: when it was met, and the first that it leads to; 0: not met
	group       int // the units that it needs and that need it have the same; 0: not known yet
	cycle       bool
}

// add takes a task that would run, or may.
func (o *order) add(res *engine.Result) {
	t := job.TaskOf(res)
	if t.Request() || res.State != engine.WouldRun && res.State != engine.Undecided {
		return
	}
	u := o.units[t.ID()]
	if u == nil {
		u = &unit{t: o.s.W.Task(t.Asset, t.On, "")}
		u.job = JobOf(&engine.Result{Task: &u.t.Task, State: engine.Undecided, Why: res.Why})
		o.units[t.ID()], o.all = u, append(o.all, u)
	}
	if tr := o.trace(t); tr != nil {
		u.job.Seconds += tr.Seconds
	}
	if res.State == engine.WouldRun && u.job.State != engine.WouldRun || t == u.t && res.State == u.job.State {
		u.job.State, u.job.Why = res.State, res.Why
	}
}

// lastBuild is what the last build knew of its tasks.
func (s *Source) lastBuild() map[string]state.TaskState {
	if s.Prev == nil {
		return nil
	}
	tasks, err := s.Prev.Tasks()
	if err != nil {
		return nil
	}
	last := make(map[string]state.TaskState, tasks.Len())
	for _, t := range tasks.All() {
		if !t.Gone {
			last[t.Subject] = t
		}
	}
	return last
}

// trace is that which a task has, or had last, with other settings if that has to be; nil: it was never built.
func (o *order) trace(t *job.Task) *engine.Trace {
	if t.Decided() {
		return t.Result.Trace
	}
	if all := o.s.Traces.Traces(t.Key); len(all) > 0 {
		return all[0]
	}
	if at, ok := o.last[t.Subject()]; ok {
		return o.s.TraceByID(at.Key, at.Trace)
	}
	return nil
}

// follow finds what a job needs.
func (o *order) follow(u *unit) {
	seen, found := map[*job.Task]bool{}, map[*unit]bool{}
	var visit func(t *job.Task)
	need := func(t *job.Task) {
		if seen[t] {
			return
		}
		seen[t] = true
		if other := o.units[t.ID()]; other != nil && t.Part == "" && other != u {
			if !found[other] {
				found[other], u.after = true, append(u.after, other)
			}
			return
		}
		if t.Result == nil || t.Result.State != engine.Held { // else nothing that it needs would run
			visit(t)
		}
	}
	observed := func(ob *engine.Observation) {
		if ob.Kind < engine.FirstLeaf && ob.Subject != "" {
			if needed := o.s.W.TaskFor(ob.Subject); needed != nil {
				need(needed)
			}
		}
	}
	visit = func(t *job.Task) {
		for _, needed := range o.s.W.Needed(t) {
			need(needed)
		}
		if t.Result != nil && t.Result.Why != nil { // a trace that is not the last may be why
			observed(&t.Result.Why.Observation)
		}
		tr := o.trace(t)
		if tr == nil {
			return
		}
		for i := range tr.Observations {
			observed(&tr.Observations[i])
		}
	}
	visit(u.t)
}

// place finds the depth of a job, and the cycle that it is in: Tarjan's search for strongly connected components.
func (o *order) place(u *unit) {
	if u.number > 0 {
		return
	}
	o.met++
	u.number, u.low = o.met, o.met
	o.stack = append(o.stack, u)
	for _, other := range u.after {
		o.place(other)
		if other.group == 0 {
			u.low = min(u.low, other.low)
		}
	}
	if u.low < u.number {
		return
	}
	o.groups++
	at := slices.Index(o.stack, u)
	members := o.stack[at:]
	o.stack = o.stack[:at]
	for _, m := range members {
		m.group, m.cycle = o.groups, len(members) > 1
	}
	for _, m := range members {
		for _, other := range m.after {
			if other.group != u.group {
				u.depth = max(u.depth, other.depth+1)
			}
		}
	}
	for _, m := range members {
		m.depth = u.depth
	}
}
