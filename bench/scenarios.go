package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// step is one measurement: a change, and the build after it.
type step struct {
	name  string
	title string

	// change is called before the build of each run. nil means no change.
	change func(p *project, t tool, run int) error

	// jobs returns how many of Kiln's jobs have to run. Other tools do not report theirs.
	jobs func(p *project) int
}

// scenario is a sequence of steps, such as a change and its reversal.
type scenario struct {
	steps []step

	// setup is a change and an unmeasured build before all runs.
	setup *step

	// heavy scenarios take all peers about as long as a clean build. They run less often.
	heavy bool

	// warm scenarios have an unmeasured build before the first run.
	warm bool

	// again means that the peers repeat a whole clean build. It is left out at large sizes, where it gives no new
	// information.
	again bool
}

// clean builds are a separate step: each has a new file system.
var clean = step{"clean", "clean build", nil, func(p *project) int { return p.products() }}

// scenarios returns the scenarios in order. They run on the result of the last clean build.
func scenarios() []scenario {
	return []scenario{
		{warm: true, steps: []step{{"noop", "nothing changed", nil, ran(0)}}},
		{steps: []step{{"edit", "one file edited", func(p *project, _ tool, run int) error { return p.edit(odd(p, run)) }, ran(2)}}},
		{steps: []step{{"touch", "one file touched", func(p *project, _ tool, run int) error { return p.touch(odd(p, run)) }, ran(0)}}},
		{steps: []step{
			{"added", "one file added", addOne, ran(1)},
			{"removed", "that file removed", removeIt, ran(0)},
		}},
		{heavy: true, steps: []step{
			{"branch", "branch switched: a tenth differs", func(p *project, _ tool, run int) error { return p.branch(1000 * int32(run+1)) },
				func(p *project) int { return len(p.versions)/tenth + p.folders() }},
			{"back", "branch switched back", func(p *project, _ tool, run int) error { return p.branch(-1000 * int32(run+1)) }, ran(0)},
		}},
		{heavy: true, again: true, steps: []step{{"touchall", "all files touched", func(p *project, _ tool, _ int) error {
			for i := range p.versions {
				if err := p.touch(i); err != nil {
					return err
				}
			}
			return nil
		}, ran(0)}}},
		{heavy: true, again: true, steps: []step{{"restore", "output folder deleted", func(p *project, t tool, run int) error {
			// Moved away instead of deleted, because deleting would slow the file system down for the next runs.
			return os.Rename(t.output(p), filepath.Join(p.dir, "..", fmt.Sprintf("deleted-%d", run)))
		}, ran(0)}}},
		everyday(),
	}
}

// everyday has what real projects have: an empty file, a rule that matches nothing, a failing job, warnings, parcels.
// Measurements without these would not be realistic.
func everyday() scenario {
	return scenario{
		setup: &step{"everyday-made", "", func(p *project, t tool, _ int) error {
			return errors.Join(p.makeEveryday(), t.prepare(p))
		}, ran(2 + warned)},
		steps: []step{
			{"everyday", "everyday: nothing changed", nil, ran(0)},
			{"everyday-edit", "everyday: one file edited", func(p *project, _ tool, run int) error { return p.edit(odd(p, run)) }, ran(2)},
			{"everyday-added", "everyday: one file added", addOne, ran(1)},
			{"everyday-removed", "everyday: that file removed", removeIt, ran(0)},
		},
	}
}

// addOne adds a file with new content. If a file comes back with its old content, no job runs again.
func addOne(p *project, t tool, run int) error {
	return errors.Join(p.add(run, uint32(p.removed)), t.prepare(p))
}

func removeIt(p *project, t tool, _ int) error { return errors.Join(p.remove(), t.prepare(p)) }

func ran(n int) func(*project) int { return func(*project) int { return n } }

// odd returns an asset, another one in each run, that no branch changes.
func odd(p *project, run int) int { return (folderSize*run + 37) % len(p.versions) }

// allSteps returns the rows of the tables, which are also the values of -only.
func allSteps() []step {
	all := []step{clean}
	for _, s := range scenarios() {
		all = append(all, s.steps...)
	}
	return all
}

// The pauses before and after a change. Debian's tup compares file times in whole seconds, so it misses a change in the
// second of its last build. The other pause makes a change older than the age that any tool distrusts.
const (
	pauseBefore = 1100 * time.Millisecond
	pauseAfter  = 50 * time.Millisecond
)

// session runs the scenarios at one size.
type session struct {
	size    int
	jobs    int  // 0 means one per core for the peers
	runs    int  // runs of fast steps
	heavy   int  // runs of slow steps
	full    bool // run everything, also at large sizes
	lay     bool // ninja gets a prepared clean build
	only    []string
	tools   []tool
	volumes *volumes
	results *results
	log     io.Writer

	projects map[string]*project // by tool, as of the last clean build
	out      map[string]bool     // tools that have failed at this size, or are finished
}

func (s *session) wants(sc scenario) bool {
	return len(s.only) == 0 || slices.ContainsFunc(sc.steps, func(st step) bool { return slices.Contains(s.only, st.name) })
}

func (s *session) all(ctx context.Context) error {
	s.projects, s.out = map[string]*project{}, map[string]bool{}
	defer func() {
		for name := range s.projects {
			if err := s.volumes.drop(volumeName(name)); err != nil {
				fmt.Fprintln(s.log, err)
			}
		}
	}()
	runs := 1 // always at least one, because later steps need the result
	if len(s.only) == 0 || slices.Contains(s.only, clean.name) {
		runs = s.heavy
	}
	for n := range runs {
		for _, t := range s.order(clean.name, n) {
			if err := s.clean(ctx, t); err != nil {
				return err
			}
		}
	}
	for _, sc := range scenarios() { // those with again are last
		if s.wants(sc) {
			if sc.again && s.size >= large && !s.full {
				s.peersDone()
			}
			if err := s.scenario(ctx, sc); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// large is the size from which a clean build of a peer takes minutes.
const large = 100_000

func (s *session) peersDone() {
	for _, t := range s.tools {
		if _, isKiln := t.(kiln); !isKiln {
			s.out[t.name()] = true
		}
	}
}

// order returns the tools that take part in a step, beginning with another one each run.
func (s *session) order(step string, run int) []tool {
	var all []tool
	for i := range s.tools {
		if t := s.tools[(i+run)%len(s.tools)]; t.takes(step) && !s.out[t.name()] {
			all = append(all, t)
		}
	}
	return all
}

// layer is a tool for which a build can be prepared, as if it had made it itself: at 1,000,000 assets, one process for
// each takes an hour.
type layer interface{ lay(p *project) error }

func volumeName(tool string) string { return strings.ReplaceAll(tool, " ", "-") }

// clean writes a tool's project to a new file system and measures its first build.
func (s *session) clean(ctx context.Context, t tool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := s.volumes.fresh(volumeName(t.name()), s.size)
	if err != nil {
		return err
	}
	p := newProject(dir, s.size)
	s.projects[t.name()] = p
	if err := p.write(); err != nil {
		return err
	}
	if err := t.prepare(p); err != nil {
		return err
	}
	if l, ok := t.(layer); ok && (s.lay || s.size >= million) {
		if err := l.lay(p); err != nil {
			s.fail(t, clean, err)
		}
		flush(dir)
	} else {
		flush(dir)
		time.Sleep(pauseAfter)
		s.build(ctx, t, clean, true)
	}
	s.check(ctx, t, clean)
	if !t.takes("noop") { // it is finished
		delete(s.projects, t.name())
		return s.volumes.drop(volumeName(t.name()))
	}
	return nil
}

func (s *session) scenario(ctx context.Context, sc scenario) error {
	runs := s.runs
	if sc.heavy {
		runs = s.heavy
	}
	name := sc.steps[0].name
	if sc.setup != nil {
		if err := s.change(ctx, *sc.setup, 0); err != nil {
			return err
		}
		for _, t := range s.order(name, 0) {
			s.build(ctx, t, *sc.setup, false)
		}
	}
	if sc.warm {
		for _, t := range s.order(name, 0) {
			s.build(ctx, t, sc.steps[0], false)
		}
	}
	for n := range runs {
		for _, st := range sc.steps {
			if err := s.change(ctx, st, n); err != nil {
				return err
			}
			for _, t := range s.order(name, n) {
				if sc.heavy {
					s.settle(s.projects[t.name()])
				}
				s.build(ctx, t, st, true)
			}
			if n == runs-1 {
				for _, t := range s.order(name, n) {
					s.check(ctx, t, st)
				}
			}
			if st.name == "noop" {
				s.floor()
			}
		}
	}
	return nil
}

// settle writes pending data of all tools to disk, and reads the files of the project that is built next, so that a
// tool's time does not depend on the tool before it. After a peer had rebuilt everything for thirty seconds, a part of
// the files was no longer in memory, on a machine with 20 GB of it free: a build that reads 40 MB had to fetch 5 to 18
// of them, and took twice as long.
func (s *session) settle(next *project) {
	for _, p := range s.projects {
		flush(p.dir)
	}
	filepath.WalkDir(next.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			os.ReadFile(path) // the tool reports unreadable files
		}
		return nil
	})
}

// change makes a step's change in all projects.
func (s *session) change(ctx context.Context, st step, run int) error {
	if st.change == nil {
		return ctx.Err()
	}
	time.Sleep(pauseBefore)
	for _, t := range s.order(st.name, run) {
		if err := st.change(s.projects[t.name()], t, run); err != nil {
			return err
		}
	}
	time.Sleep(pauseAfter)
	return ctx.Err()
}

// build runs a tool. If it fails or gives a wrong result, it has no numbers from then on.
func (s *session) build(ctx context.Context, t tool, st step, measured bool) {
	if ctx.Err() != nil || s.out[t.name()] {
		return
	}
	p := s.projects[t.name()]
	failed := 0
	if p.everyday {
		failed = 1
	}
	m, said, err := run(ctx, p.dir, t.command(s.jobs), failed > 0)
	if err == nil {
		err = t.built(said, st.jobs(p), failed)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.fail(t, st, err)
		}
		return
	}
	if measured {
		s.results.add(s.size, st.name, t.name(), m)
		fmt.Fprintf(s.log, "%9d  %-9s %-8s %10s  cpu %10s  %s\n", s.size, st.name, t.name(), seconds(m.Wall), seconds(m.CPU), megabytes(m.Peak))
	}
}

// check compares all products.
func (s *session) check(ctx context.Context, t tool, st step) {
	if ctx.Err() != nil || s.out[t.name()] {
		return
	}
	if err := s.projects[t.name()].check(t); err != nil {
		s.fail(t, st, err)
	}
}

func (s *session) fail(t tool, st step, err error) {
	s.out[t.name()] = true
	s.results.wrong(s.size, st.name, t.name(), err)
	fmt.Fprintf(s.log, "%9d  %-9s %-8s WRONG: %v\n", s.size, st.name, t.name(), err)
}

// floor measures the minimum for any build, in turns with the builds in which nothing changed.
func (s *session) floor() {
	takers := s.order("noop", 0)
	if len(takers) == 0 {
		return
	}
	t := takers[0] // the files of one tool are enough
	p := s.projects[t.name()]
	if m, err := statAll(p, t); err == nil {
		s.results.add(s.size, "noop", floorName, m)
	}
	if each, err := spawnAll(p.dir, 100); err == nil {
		s.results.add(s.size, clean.name, spawnName, measure{Wall: each})
	}
}
