// Farm computes the effect of a cache and a farm for a large studio, by a model, and prints a table:
//
//	go run ./bench/farm
//
// It is a model, not a measurement of Kiln. The assumptions are the fields of studio. Commits are spread over a day,
// most of them in the afternoon. Each changes some assets, whose jobs a desk ran several times while they were edited.
// Runners build the commits in order and store the results. Desks sync at different times, and all of them in the
// morning. A desk has to build the results that it needs and that are not stored yet.
package main

import (
	"container/heap"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"text/tabwriter"
)

// studio has the assumptions.
type studio struct {
	desks, runners, slots int     // slots is the number of jobs at once on a runner
	products              float64 // bytes of all products
	commits               int     // commits per day
	night                 float64 // share of commits between evening and morning, by other studios and machines
	assets                float64 // changed by a commit, on average
	fanout                float64 // jobs that run for a changed asset
	edits                 int     // builds of the same asset before it is committed
	product               float64 // bytes of a product, on average
	seconds               float64 // duration of a job, on average
	syncs                 int     // syncs of a desk per day
	needs                 float64 // share of the changed products that a desk fetches: those of its levels
	link                  float64 // bytes per second of the server
	desk                  float64 // bytes per second of a desk
	keep                  int     // days that results are kept
}

var base = studio{
	desks: 200, runners: 40, slots: 16, products: 5e12, commits: 2000, night: 0.15, assets: 3, fanout: 4, edits: 5, product: 2.5e6, seconds: 6,
	syncs: 4, needs: 0.3, link: 10e9 / 8, desk: 1e9 / 8, keep: 14,
}

const (
	day     = 24 * 3600.0
	morning = 9 * 3600.0
	evening = 19 * 3600.0
)

// outcome is the result for a day.
type outcome struct {
	jobs        int     // of commits
	interactive float64 // jobs that desks run while they edit
	busy        float64 // share of the runners' time in the working day
	wait        float64 // seconds from a commit to its results, for the slowest of 20
	hits        float64 // share of the needs of syncs that is stored
	fetched     float64 // in bytes
	stored      float64 // bytes per day
	held        float64 // in bytes
	sync        float64 // seconds for a desk's sync in the morning
	peak        float64 // share of the server's link in the busiest ten minutes
	desk        float64 // seconds for a rule that changes many jobs: at a desk with four cores, and with the farm
	farm        float64
}

// An edited rule changes many jobs at once.
const (
	manyJobs  = 2000.0
	deskCores = 4.0
)

// moment returns the time of a commit.
func (s *studio) moment(rng *rand.Rand) float64 {
	if rng.Float64() < s.night {
		t := evening + rng.Float64()*(day-evening+morning)
		return math.Mod(t, day)
	}
	for { // most are in the afternoon
		if t := 14.5*3600 + rng.NormFloat64()*2.5*3600; t >= morning && t < evening {
			return t
		}
	}
}

// spread returns a random size or time around a mean, distributed like those of jobs: many small, few large.
func spread(rng *rand.Rand, mean float64) float64 {
	const sigma = 1.2
	return mean * math.Exp(rng.NormFloat64()*sigma-sigma*sigma/2)
}

// free has the times when slots become free.
type free []float64

func (f free) Len() int           { return len(f) }
func (f free) Less(i, j int) bool { return f[i] < f[j] }
func (f free) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *free) Push(x any)        { *f = append(*f, x.(float64)) }
func (f *free) Pop() any          { x := (*f)[len(*f)-1]; *f = (*f)[:len(*f)-1]; return x }

// commit is a commit.
type commit struct {
	at, done float64 // done is the time when its results are stored
	jobs     int
	bytes    float64
}

// run computes a day.
func (s *studio) run(seed uint64) (o outcome) {
	rng := rand.New(rand.NewPCG(seed, 1))
	commits := make([]commit, s.commits)
	for i := range commits {
		commits[i].at = s.moment(rng)
	}
	slices.SortFunc(commits, func(a, b commit) int { return int(math.Copysign(1, a.at-b.at)) })
	slots := make(free, s.runners*s.slots)
	var waits []float64
	worked := 0.0
	for i := range commits {
		c := &commits[i]
		for range max(1, int(spread(rng, s.assets*s.fanout)+0.5)) {
			took := spread(rng, s.seconds)
			start := max(heap.Pop(&slots).(float64), c.at)
			heap.Push(&slots, start+took)
			c.done = max(c.done, start+took)
			c.jobs++
			c.bytes += spread(rng, s.product)
			if c.at >= morning && c.at < evening {
				worked += took
			}
		}
		o.jobs += c.jobs
		o.stored += c.bytes
		waits = append(waits, c.done-c.at)
	}
	slices.Sort(waits)
	o.wait = waits[len(waits)*19/20]
	o.busy = worked / (float64(s.runners*s.slots) * (evening - morning))
	o.interactive = float64(o.jobs * s.edits)
	o.held = s.products + o.stored*float64(s.keep)
	s.syncAll(rng, commits, &o)
	o.desk = manyJobs * s.seconds / deskCores
	o.farm = manyJobs * s.seconds / (deskCores + float64(s.runners*s.slots)*(1-o.busy))
	return o
}

// syncAll simulates the syncs of all desks: each once in the morning, within half an hour, and at other times.
func (s *studio) syncAll(rng *rand.Rand, commits []commit, o *outcome) {
	buckets := make([]float64, int(day/600)+1)
	need, there := 0.0, 0.0
	overnight := 0.0
	for d := range s.desks {
		at := morning + rng.Float64()*1800
		last := evening - day
		for n := range s.syncs {
			if n > 0 {
				at += (evening - at) / float64(s.syncs-n) * (0.5 + rng.Float64()/2)
			}
			got := 0.0
			for i := range commits {
				c := &commits[i]
				when := c.at
				if when >= evening {
					when -= day // the evening before
				}
				if when < last || when >= at {
					continue
				}
				need += s.needs * float64(c.jobs)
				if c.done-(c.at-when) < at {
					there += s.needs * float64(c.jobs)
					got += s.needs * c.bytes
				}
			}
			o.fetched += got
			buckets[int(at/600)] += got
			if last = at; n == 0 && d == 0 {
				overnight = got
			}
		}
	}
	o.hits = there / need
	o.peak = slices.Max(buckets) / (600 * s.link)
	together := float64(s.desks) / 3 // desks that sync in the busiest ten minutes
	o.sync = max(overnight/s.desk, overnight*together/s.link)
}

// table prints a column for each studio.
func table(w io.Writer, names []string, list []studio) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := []struct {
		name string
		cell func(s *studio, o *outcome) string
	}{
		{"desks", func(s *studio, _ *outcome) string { return fmt.Sprint(s.desks) }},
		{"runners of 16 slots", func(s *studio, _ *outcome) string { return fmt.Sprint(s.runners) }},
		{"commits a day", func(s *studio, _ *outcome) string { return fmt.Sprint(s.commits) }},
		{"jobs of commits", func(_ *studio, o *outcome) string { return fmt.Sprint(o.jobs) }},
		{"jobs of edits at desks", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.0f", o.interactive) }},
		{"runners busy in the day", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.0f%%", 100*o.busy) }},
		{"commit to results, 95%", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.0f s", o.wait) }},
		{"hits of syncs", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.1f%%", 100*o.hits) }},
		{"fetched by desks a day", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.1f TB", o.fetched/1e12) }},
		{"stored a day", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.0f GB", o.stored/1e9) }},
		{"held", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.1f TB", o.held/1e12) }},
		{"a morning's sync", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.0f s", o.sync) }},
		{"server's link, busiest ten minutes", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.0f%%", 100*o.peak) }},
		{"a rule of 2,000 jobs at a desk of four cores", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.1f s", o.desk) }},
		{"the same with a farm", func(_ *studio, o *outcome) string { return fmt.Sprintf("%.1f s", o.farm) }},
	}
	outcomes := make([]outcome, len(list))
	for i := range list {
		outcomes[i] = list[i].run(1)
	}
	fmt.Fprint(t, "\t")
	for _, n := range names {
		fmt.Fprintf(t, "%s\t", n)
	}
	fmt.Fprintln(t)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t", r.name)
		for i := range list {
			fmt.Fprintf(t, "%s\t", r.cell(&list[i], &outcomes[i]))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func main() {
	fewer, more, large := base, base, base
	fewer.runners = 2
	more.commits *= 10
	large.product *= 10
	err := table(os.Stdout, []string{"as assumed", "2 runners", "10x commits", "10x bytes"}, []studio{base, fewer, more, large})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
