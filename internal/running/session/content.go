package session

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// content is the result of all jobs.
type content struct {
	number  int
	known   bool  // a build had a result
	err     error // what stopped the last build as a whole
	jobs    map[jobID]job
	uuids   map[string]string // UUIDs to ids
	failing map[jobID]bool
}

type jobID struct{ platform, asset string }

// job is the outcomes of an asset's jobs and their parts, in order and without duplicates. It is a list, since most
// assets have one job without parts, and a map for each took 20 MB more at 100,000 assets.
type job []report.Outcome

// find returns the index at which the outcome of the same job or part is, or would be inserted.
func (j job) find(o report.Outcome) (int, bool) {
	return slices.BinarySearchFunc(j, o, func(a, b report.Outcome) int {
		return cmp.Or(strings.Compare(a.Processor, b.Processor), strings.Compare(a.Part, b.Part))
	})
}

// with returns the list with an outcome added, or replaced if it is there.
func (j job) with(o report.Outcome) job {
	i, ok := j.find(o)
	if ok {
		j[i] = o
		return j
	}
	return slices.Insert(j, i, o)
}

func (j job) without(o report.Outcome) job {
	if i, ok := j.find(o); ok {
		return slices.Delete(j, i, i+1)
	}
	return j
}

func newContent() *content {
	return &content{jobs: map[jobID]job{}, uuids: map[string]string{}, failing: map[jobID]bool{}}
}

// take adds the outcomes of a build, and adds the differences to the event. With all, the report has all outcomes.
func (c *content) take(e *Ended, all bool) {
	first := c.number == 0
	was := map[jobID]job{}
	if all {
		was, c.jobs, c.uuids = c.jobs, map[jobID]job{}, map[string]string{}
	}
	changed := map[jobID]bool{}
	for id := range was {
		changed[id] = true
	}
	for _, o := range e.Report.Outcomes {
		id := jobID{o.Platform, o.Asset}
		if !changed[id] {
			changed[id] = true
			if old, ok := c.jobs[id]; ok && !all {
				was[id] = slices.Clone(old)
			}
		}
		switch {
		case !o.Gone:
			for _, old := range c.jobs[id] {
				if old.UUID != o.UUID && c.uuids[old.UUID] == o.Asset {
					delete(c.uuids, old.UUID)
				}
			}
			c.jobs[id] = c.jobs[id].with(o)
			c.uuids[o.UUID] = o.Asset
		case c.jobs[id] != nil:
			if c.jobs[id] = c.jobs[id].without(o); len(c.jobs[id]) == 0 {
				delete(c.jobs, id)
			}
		}
	}
	c.number, c.known = e.Number, c.known || !e.Report.Stopped
	for id := range changed {
		if delete(c.failing, id); c.jobs[id].failed() {
			c.failing[id] = true
		}
		c.compare(e, id, was[id], c.jobs[id], first)
	}
	e.Total = len(c.failing)
	slices.SortFunc(e.Products, func(a, b Product) int {
		return cmp.Or(strings.Compare(a.Platform, b.Platform), strings.Compare(a.Asset, b.Asset), cmp.Compare(a.SubID, b.SubID))
	})
	sortFailures(e.Failed)
	sortFailures(e.Mended)
}

// contents returns the products whose contents a build changed. ok is false if the build changed anything else.
func (c *content) contents(outcomes []report.Outcome) (products []Product, ok bool) {
	for _, o := range outcomes {
		id := jobID{o.Platform, o.Asset}
		if o.Gone || o.Failed || c.failing[id] {
			return nil, false
		}
		before := c.jobs[id].products(id)
		for _, p := range o.Products {
			old, ok := before[productID{o.UUID, p.SubID}]
			if !ok {
				return nil, false
			}
			if !sameProduct(&old.Product, &p) {
				products = append(products, Product{Platform: o.Platform, Asset: o.Asset, UUID: o.UUID, Product: p})
			}
		}
	}
	return products, len(products) > 0
}

// compare adds the differences of one job to the event.
func (c *content) compare(e *Ended, id jobID, was, now job, first bool) {
	before, after := was.products(id), now.products(id)
	if !first {
		for id, p := range after {
			if old, ok := before[id]; !ok || !sameProduct(&old.Product, &p.Product) {
				e.Products = append(e.Products, p)
			}
		}
		for id, p := range before {
			if _, still := after[id]; !still {
				p.Gone = true
				e.Products = append(e.Products, p)
			}
		}
	}
	switch old, fails := was.failure(id), now.failure(id); {
	case fails != nil && (old == nil || text(old.Messages) != text(fails.Messages)):
		e.Failed = append(e.Failed, *fails)
	case old != nil && fails == nil:
		e.Mended = append(e.Mended, *old)
	}
}

func text(l diag.List) string {
	var b strings.Builder
	for _, m := range l {
		b.WriteString(m.String())
	}
	return b.String()
}

func sameProduct(a, b *engine.Product) bool {
	return a.Hash == b.Hash && a.Type == b.Type && a.Name == b.Name && a.File == b.File && slices.Equal(a.References, b.References)
}

func (j job) failed() bool {
	for _, o := range j {
		if o.Failed {
			return true
		}
	}
	return false
}

// productID identifies a product for games.
type productID struct {
	uuid string
	sub  uint32
}

func (j job) products(id jobID) map[productID]Product {
	all := map[productID]Product{}
	for _, o := range j {
		for _, p := range o.Products {
			all[productID{o.UUID, p.SubID}] = Product{Platform: id.platform, Asset: id.asset, UUID: o.UUID, Product: p}
		}
	}
	return all
}

// files returns the outputs with a content, below the output folder.
func (c *content) files(h digest.Hash) (files []string) {
	for _, j := range c.jobs {
		for i := range j {
			for _, p := range j[i].Products {
				if p.Hash == h && p.File != "" {
					files = append(files, p.File)
				}
			}
		}
	}
	return files
}

// failure returns nil for a job that did not fail.
func (j job) failure(id jobID) *Failure {
	if !j.failed() {
		return nil
	}
	f := &Failure{Platform: id.platform, Asset: id.asset}
	for _, o := range j {
		if f.UUID = o.UUID; o.Failed {
			f.Messages = append(f.Messages, o.Messages...)
		}
	}
	return f
}

func sortFailures(all []Failure) {
	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(strings.Compare(a.Platform, b.Platform), strings.Compare(a.Asset, b.Asset))
	})
}

// of returns everything on a platform.
func (c *content) of(platform string) *Content {
	all := &Content{Number: c.number, Known: c.known, Err: c.err}
	for id, j := range c.jobs {
		if id.platform != platform {
			continue
		}
		for _, p := range j.products(id) {
			all.Products = append(all.Products, p)
		}
		if f := j.failure(id); f != nil {
			all.Failures = append(all.Failures, *f)
		}
	}
	slices.SortFunc(all.Products, func(a, b Product) int {
		return cmp.Or(strings.Compare(a.Asset, b.Asset), cmp.Compare(a.SubID, b.SubID))
	})
	sortFailures(all.Failures)
	return all
}

// find returns the job that a name (an id or a UUID) means on a platform. An unknown id may belong to a new asset.
func (c *content) find(platform, name string) jobID {
	if id, ok := c.uuids[name]; ok && c.jobs[jobID{platform, name}] == nil {
		name = id
	}
	return jobID{platform, name}
}

// sorted returns the products by sub id.
func (j job) sorted(id jobID) []Product {
	products := []Product{}
	for _, p := range j.products(id) {
		products = append(products, p)
	}
	slices.SortFunc(products, func(a, b Product) int { return cmp.Compare(a.SubID, b.SubID) })
	return products
}
