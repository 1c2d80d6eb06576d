package results

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// LastGood returns what replaces a task that failed: the last used trace that succeeded and whose products can be read;
// and for each part that it asked for in that trace, and for their parts, the last used trace that has the contents
// which the others saw. It is empty if there is none.
func (s *Set) LastGood(t *job.Task, traces *state.Traces) map[*job.Task]*engine.Trace {
	type seen struct {
		of  engine.Key
		sub uint32
	}
	good, saw := map[*job.Task]*engine.Trace{}, map[seen]digest.Hash{}
	asSeen := func(t *job.Task, tr *engine.Trace) bool {
		for i := range tr.Products {
			if h, ok := saw[seen{t.Key, tr.Products[i].SubID}]; ok && h != tr.Products[i].Hash {
				return false
			}
		}
		for o, p := range s.W.ContentsSeen(t, tr) {
			if h, ok := saw[seen{p.Key, o.SubID}]; ok && h != o.Value {
				return false
			}
		}
		return true
	}
	var visit func(t *job.Task)
	visit = func(t *job.Task) {
		if good[t] != nil {
			return
		}
		all := slices.DeleteFunc(slices.Clone(traces.Traces(t.Key)), func(tr *engine.Trace) bool {
			_, ok := s.W.Available(tr)
			return tr.Outcome != engine.Succeeded || !ok
		})
		if len(all) == 0 {
			return
		}
		tr := all[max(0, slices.IndexFunc(all, func(tr *engine.Trace) bool { return asSeen(t, tr) }))]
		good[t] = tr
		for o, p := range s.W.ContentsSeen(t, tr) {
			saw[seen{p.Key, o.SubID}] = o.Value
		}
		for _, p := range s.W.PartsIn(t, tr) {
			visit(p)
		}
	}
	visit(t)
	return good
}

// Yield removes the last good products of failed jobs where a job that did not fail makes the same product, wants the
// same file, or has a file where the other needs a folder of that name. Of two failed jobs, the first keeps its own.
//
// A build of few tasks has no such jobs: when outputs clash, all tasks are checked.
func (s *Set) Yield() {
	s.Yielding = map[job.ID]bool{}
	if s.Scope != nil {
		return
	}
	for again := true; again; {
		again = false
		claimed := map[string]job.ID{}
		for _, ps := range s.standingJobs() {
			if len(claimed) == 0 {
				s.claim(claimed)
			}
			if job := ps[0].t.ID(); slices.ContainsFunc(ps, func(p jobProduct) bool { return p.clashes(claimed) }) {
				s.Yielding[job], again = true, true
				continue
			}
			for _, p := range ps {
				p.claim(claimed)
			}
		}
		if again {
			s.Find()
		}
	}
}

type jobProduct struct {
	t *job.Task
	engine.Product
}

// standingJobs returns the last good products of failed jobs and their parts, job by job.
func (s *Set) standingJobs() [][]jobProduct {
	var all [][]jobProduct
	number := map[job.ID]int{}
	for _, t := range s.Live {
		good := s.Good[t]
		if good == nil {
			continue
		}
		for _, p := range good.Products {
			if p.File == "" {
				continue
			}
			n, ok := number[t.ID()]
			if !ok {
				n = len(all)
				number[t.ID()] = n
				all = append(all, nil)
			}
			all[n] = append(all[n], jobProduct{t, p})
		}
	}
	return all
}

// claim claims the products of all tasks that did not fail.
func (s *Set) claim(claimed map[string]job.ID) {
	for _, t := range s.Live {
		if _, stands := s.Good[t]; stands {
			continue
		}
		products, _ := s.ProductsOf(t)
		for _, p := range products {
			if p.File != "" {
				jobProduct{t, p}.claim(claimed)
			}
		}
	}
}

// names returns a product's file in lower case, the folders above it, and a name for the product itself that no file
// can have.
func (p jobProduct) names() (file string, folders []string, product string) {
	file = strings.ToLower(p.File)
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		folders = append(folders, dir)
	}
	return file, folders, fmt.Sprintf("%s\x00%s\x00%d", p.t.Asset.ID, p.t.Platform, p.SubID)
}

// claim records the names of a product for its job: its file, the folders above it, with a slash, and the product.
// jobID{} means several jobs.
func (p jobProduct) claim(claimed map[string]job.ID) {
	file, folders, product := p.names()
	take := func(name string) {
		me := p.t.ID()
		if other, ok := claimed[name]; ok && other != me {
			me = job.ID{}
		}
		claimed[name] = me
	}
	take(file)
	take(product)
	for _, dir := range folders {
		take(dir + "/")
	}
}

// clashes reports whether another job has claimed the product, its file, its file as a folder, or a folder
// above it as a file.
func (p jobProduct) clashes(claimed map[string]job.ID) bool {
	file, folders, product := p.names()
	return slices.ContainsFunc(append(folders, file, product, file+"/"), func(name string) bool {
		other, ok := claimed[name]
		return ok && other != p.t.ID()
	})
}

// Standing returns the last good products of a job that are in place, by file.
func (s *Set) Standing(t *job.Task) []engine.Product {
	var there []engine.Product
	for _, tr := range s.LastGood(t, s.Traces) {
		for _, p := range tr.Products {
			if o, ok := s.W.Outputs[p.File]; ok && o.Hash == p.Hash {
				there = append(there, p)
			}
		}
	}
	slices.SortFunc(there, func(a, b engine.Product) int { return strings.Compare(a.File, b.File) })
	return there
}
