package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// Feed receives the progress of builds, for the pages. It is a build.Reporter between Begin and End. Its methods may be
// called from several goroutines and return at once.
type Feed struct {
	now func() time.Time

	mu      sync.Mutex // guards all fields below
	status  Status
	running []Running
	waiting []Waiting
	recent  []Finished // the last one first
	samples []sample
	changed chan struct{} // closed at the next change
	news    int           // number of changes of the database or the games
}

// Status is the current state.
type Status struct {
	Building              bool
	Number                int       // number of the build in this session
	Cause                 []string  // changed paths
	Began                 time.Time // of the current build, or the last one
	Took                  time.Duration
	Workers               int
	Planned, Done, Failed int           // jobs
	Left                  time.Duration // estimate; 0: unknown
	Running               []Running     // in the order in which they began
	Waiting               []Waiting
	Recent                []Finished
	Note                  string    // about how changes are found
	Stopped               diag.List // why the last build was impossible
}

// Queued is the number of jobs that will run and have not begun.
func (s Status) Queued() int { return max(0, s.Planned-s.Done-len(s.Running)-len(s.Waiting)) }

// Running is a running job.
type Running struct {
	Job   string // "sprites/tank.png [pc]"
	Began time.Time
	At    *engine.Remote // what is known of it on another machine; nil: it is here
}

// Asset is the asset id in the job's name.
func (r Running) Asset() string { return assetOf(r.Job) }

// Waiting is a job that waits for products of others.
type Waiting struct {
	Job   string
	On    []string // not empty
	Began time.Time
	times int
	at    *engine.Remote
}

// Asset is the asset id in the job's name.
func (w Waiting) Asset() string { return assetOf(w.Job) }

// Finished is a job that has run.
type Finished struct {
	Job    string
	Failed bool
	Took   time.Duration
	At     *engine.Remote // of a run on another machine
}

// Remote is how many of the running jobs are on other machines.
func (s Status) Remote() (n int) {
	for _, r := range s.Running {
		if r.At != nil {
			n++
		}
	}
	return n
}

// Local is how many are on this one.
func (s Status) Local() int { return len(s.Running) - s.Remote() }

// Asset is the id in a job's name.
func (f Finished) Asset() string { return assetOf(f.Job) }

// assetOf is the asset in the name of a job: "sprites/ui/ ▸ page 0 [pc]".
func assetOf(job string) string {
	if i := strings.LastIndex(job, " ["); i >= 0 {
		job = job[:i]
	}
	id, _, _ := strings.Cut(job, " ▸ ")
	return id
}

type sample struct {
	at   time.Time
	done int
}

const (
	maxRecent  = 12
	rateWindow = 10 * time.Second // period over which the rate is measured
)

// NewFeed makes a feed for a project that runs this number of jobs at once.
func NewFeed(workers int) *Feed {
	return &Feed{now: time.Now, status: Status{Workers: workers}, changed: make(chan struct{})}
}

// change changes the state and wakes those who wait for that.
func (f *Feed) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.changed)
	f.changed = make(chan struct{})
}

// Begin reports that a build begins, and which changes caused it.
func (f *Feed) Begin(number int, cause []string) {
	f.change(func() {
		f.running, f.waiting, f.recent, f.samples = nil, nil, nil, []sample{{f.now(), 0}}
		f.status = Status{Building: true, Number: number, Cause: cause, Began: f.now(), Workers: f.status.Workers, Note: f.status.Note}
	})
}

// End reports that the build has ended and that the database describes it; err is why there was none, or nil.
func (f *Feed) End(err error) {
	f.change(func() {
		f.running, f.waiting = nil, nil
		f.status.Building, f.status.Took, f.status.Stopped = false, f.now().Sub(f.status.Began), diag.Messages(err, diag.Internal)
		f.news++
	})
}

// GamesChanged reports news about games.
func (f *Feed) GamesChanged() { f.change(func() { f.news++ }) }

// Note sets how changes are found, if that is not the usual way.
func (f *Feed) Note(text string) { f.change(func() { f.status.Note = text }) }

// Planned reports how many jobs will run; more may be added.
func (f *Feed) Planned(jobs int) { f.change(func() { f.status.Planned = jobs }) }

// JobStarted reports that a job runs.
func (f *Feed) JobStarted(job string) {
	f.change(func() { f.running = append(f.running, Running{Job: job, Began: f.now()}) })
}

// JobSuspended reports that a job begins or stops waiting for others.
func (f *Feed) JobSuspended(job string, on []string, begins bool) {
	f.change(func() {
		w := slices.IndexFunc(f.waiting, func(w Waiting) bool { return w.Job == job })
		r := slices.IndexFunc(f.running, func(r Running) bool { return r.Job == job })
		switch {
		case begins && w >= 0:
			f.waiting[w].times++
		case begins && r >= 0 && len(on) > 0:
			f.waiting = append(f.waiting, Waiting{job, on, f.running[r].Began, 1, f.running[r].At})
			f.running = slices.Delete(f.running, r, r+1)
		case !begins && w >= 0:
			if f.waiting[w].times--; f.waiting[w].times == 0 {
				f.running = append(f.running, Running{job, f.waiting[w].Began, f.waiting[w].at})
				f.waiting = slices.Delete(f.waiting, w, w+1)
			}
		}
	})
}

// JobMoved tells that a job goes to another machine, or what is known of it there; nil: it came back.
func (f *Feed) JobMoved(job string, at *engine.Remote) {
	f.change(func() {
		if r := slices.IndexFunc(f.running, func(r Running) bool { return r.Job == job }); r >= 0 {
			f.running[r].At = at
		}
	})
}

// JobFinished tells that a job has run.
func (f *Feed) JobFinished(job string, failed bool, took time.Duration) {
	f.change(func() {
		var at *engine.Remote
		if r := slices.IndexFunc(f.running, func(r Running) bool { return r.Job == job }); r >= 0 {
			at = f.running[r].At
			f.running = slices.Delete(f.running, r, r+1)
		}
		f.waiting = slices.DeleteFunc(f.waiting, func(w Waiting) bool { return w.Job == job })
		f.recent = slices.Insert(f.recent, 0, Finished{job, failed, took, at})
		f.recent = f.recent[:min(len(f.recent), maxRecent)]
		f.status.Done++
		if failed {
			f.status.Failed++
		}
	})
}

// Status returns the current state.
func (f *Feed) Status() Status {
	s, _, _ := f.look()
	return s
}

// look returns the current state, the number of changes, and a channel that is closed at the next change.
func (f *Feed) look() (Status, int, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.Running, s.Waiting, s.Recent = slices.Clone(f.running), slices.Clone(f.waiting), slices.Clone(f.recent)
	s.Planned = max(s.Planned, s.Done+len(s.Running)+len(s.Waiting))
	if s.Building {
		s.Left = f.left(s)
	}
	return s, f.news, f.changed
}

// left estimates the remaining time from the recent rate. The lock is held.
func (f *Feed) left(s Status) time.Duration {
	now := f.now()
	f.samples = append(f.samples, sample{now, s.Done})
	for len(f.samples) > 1 && now.Sub(f.samples[1].at) >= rateWindow {
		f.samples = f.samples[1:]
	}
	from := f.samples[0]
	did, took := s.Done-from.done, now.Sub(from.at)
	if did <= 0 || now.Sub(s.Began) < 2*time.Second {
		return 0
	}
	return time.Duration(float64(s.Planned-s.Done) / float64(did) * float64(took))
}

// nowPanel is the part of pages that shows the current state.
type nowPanel struct {
	Status
	Live     bool
	Problems int64 // root causes
}

func (d *Dashboard) nowPanel(ctx context.Context) nowPanel {
	n := nowPanel{Live: d.cfg.Feed != nil}
	if n.Live {
		n.Status = d.cfg.Feed.Status()
	}
	if !n.Building {
		n.Problems, _ = d.problems(ctx) // without a database there are none
	}
	return n
}

const (
	eventEvery = 120 * time.Millisecond // minimum interval between two events
	eventPoll  = 700 * time.Millisecond // without a feed, the interval at which the database is checked for a new build
	eventAlive = 15 * time.Second       // keeps proxies and browsers from closing the stream
)

// events sends the current state to a page: "now" is the whole panel, "pulse" the line at the top of every page, and
// "news" means that the page may have changed, because the database describes another build or a game did something.
// The address contains the state of the page, so that nothing is missed between the page and its stream.
func (d *Dashboard) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	seen := r.URL.Query().Get("since")
	if seen == "" {
		seen = d.asOf(r.Context())
	}
	fmt.Fprint(w, "retry: 1000\n\n")
	if out.Flush() != nil {
		return
	}
	if d.cfg.Feed == nil {
		d.pollEvents(r.Context(), w, out, seen)
	} else {
		d.feedEvents(r.Context(), w, out, seen)
	}
}

// asOf identifies a state of the pages.
func (d *Dashboard) asOf(ctx context.Context) string {
	if d.cfg.Feed != nil {
		_, news, _ := d.cfg.Feed.look()
		return fmt.Sprint(d.stamp, " ", news)
	}
	v, _ := d.version(ctx) // empty without a database
	return v
}

// feedEvents sends events until the client disconnects.
func (d *Dashboard) feedEvents(ctx context.Context, w http.ResponseWriter, out *http.ResponseController, seen string) {
	for {
		_, _, changed := d.cfg.Feed.look()
		err := d.sendNow(ctx, w)
		if now := d.asOf(ctx); err == nil && now != seen {
			seen, err = now, d.send(w, "news", now)
		}
		if err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(eventAlive):
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(eventEvery):
		}
	}
}

// sendNow sends the panel as HTML, so that only one template renders it.
func (d *Dashboard) sendNow(ctx context.Context, w http.ResponseWriter) error {
	now := d.nowPanel(ctx)
	for _, name := range []string{"now", "pulse"} {
		var b bytes.Buffer
		if err := d.pages["builds"].ExecuteTemplate(&b, name, now); err != nil {
			return err
		}
		if err := d.send(w, name, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// pollEvents checks the database for a new build, until the client disconnects.
func (d *Dashboard) pollEvents(ctx context.Context, w http.ResponseWriter, out *http.ResponseController, seen string) {
	told := d.now()
	for {
		var err error
		if now := d.asOf(ctx); now != "" && now != seen {
			seen, told, err = now, d.now(), d.send(w, "news", now)
		} else if d.now().Sub(told) > eventAlive {
			told, err = d.now(), d.send(w, "alive", "")
		}
		if err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(eventPoll):
		}
	}
}

// send writes one event. Each line of its data is sent separately (HTML Living Standard, 9.2.5).
func (d *Dashboard) send(w http.ResponseWriter, event, data string) error {
	var b strings.Builder
	b.WriteString("event: " + event + "\n")
	for line := range strings.SplitSeq(data, "\n") {
		if strings.TrimSpace(line) != "" || data == "" {
			b.WriteString("data: " + line + "\n")
		}
	}
	_, err := w.Write([]byte(b.String() + "\n"))
	return err
}
