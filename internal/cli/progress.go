package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/kiln-pipeline/kiln/internal/engine"
)

// How long progress waits before it shows anything, and then between two updates or two plain lines.
const (
	progressDelay  = 200 * time.Millisecond
	progressFrame  = 100 * time.Millisecond
	progressLine   = 10 * time.Second
	progressWindow = 10 * time.Second // period over which the rate is measured
)

// progress shows what is being built: on a terminal a few lines that are redrawn and removed at the end,
// elsewhere a plain line now and then.
type progress struct {
	w       io.Writer
	fancy   bool
	paint   func(style, string) string
	size    func() (columns, rows int)
	workers int
	quit    chan struct{}
	over    sync.WaitGroup

	screen sync.Mutex // guards the stream and drawn
	drawn  int        // lines on the screen

	mu      sync.Mutex // guards all fields below
	start   time.Time
	planned int
	done    int
	failed  int
	jobs    []*shownJob // in the order in which they began
	samples []sample
}

type shownJob struct {
	name  string
	began time.Time
	waits int
	on    string
	at    string // what it does on another machine; "": it is here
}

// sample is the number of finished jobs at a time.
type sample struct {
	at   time.Time
	done int
}

func (a *app) newProgress(workers int) *progress {
	now := time.Now()
	p := &progress{
		w: a.errs, workers: workers, quit: make(chan struct{}), start: now, samples: []sample{{now, 0}},
		paint: func(s style, text string) string { return a.paint(a.errs, s, text) },
	}
	if a.quiet || a.json {
		return p
	}
	if p.fancy = isTerminal(a.errs) && a.getenv("TERM") != "dumb" && escapes(a.errs); p.fancy {
		p.size = func() (int, int) { return screenSize(a.errs) }
	}
	p.over.Go(p.run)
	return p
}

// screenSize is the size of a terminal.
func screenSize(w io.Writer) (columns, rows int) {
	if e, ok := w.(*elsewhere); ok {
		return e.screen.Columns, e.screen.Rows
	}
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 { // some terminals have no size
			return columns, rows
		}
	}
	return 80, 24
}

func (p *progress) run() {
	every := progressLine
	if p.fancy {
		every = progressFrame
		select {
		case <-p.quit:
			return
		case <-time.After(progressDelay):
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.quit:
			if p.fancy {
				p.above(func() error { return nil })
			}
			return
		case now := <-tick.C:
			p.tick(now)
		}
	}
}

func (p *progress) tick(now time.Time) {
	p.screen.Lock()
	defer p.screen.Unlock()
	if p.fancy {
		columns, rows := p.size()
		io.WriteString(p.w, p.redraw(p.picture(now, columns, rows)))
	} else if s := p.headline(now); s != "" {
		fmt.Fprintln(p.w, s)
	}
}

// above writes permanent output: it removes what is drawn, and draws it again below.
func (p *progress) above(write func() error) error {
	p.screen.Lock()
	defer p.screen.Unlock()
	if p.drawn > 0 {
		io.WriteString(p.w, p.redraw(nil))
	}
	return write()
}

// stop ends the display and removes it from the screen.
func (p *progress) stop() {
	close(p.quit)
	p.over.Wait()
}

// redraw returns the output that replaces the drawn lines: one string, to avoid flickering.
func (p *progress) redraw(lines []string) string {
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", p.drawn)
	}
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\n")
	}
	if p.drawn > len(lines) {
		b.WriteString("\x1b[J")
	}
	p.drawn = len(lines)
	return b.String()
}

// headline is the progress in one line: `12 of 340 done, 1 failed, 34/s, about 9 s left; sky.png [pc] for 14 s`; "" if
// nothing runs. It names a job that has run since the last line, so that users see what takes long.
func (p *progress) headline(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.head(now)
	for _, j := range p.jobs { // in the order in which they began
		if took := now.Sub(j.began); j.waits == 0 && took >= progressLine {
			return s + fmt.Sprintf("; %s for %s", j.name, leftText(took))
		}
	}
	return s
}

func (p *progress) head(now time.Time) string {
	if p.done == 0 && len(p.jobs) == 0 {
		return ""
	}
	s := fmt.Sprintf("%d done", p.done)
	if p.planned > 0 {
		s = fmt.Sprintf("%d of %d done", p.done, max(p.planned, p.done+len(p.jobs)))
	}
	if p.failed > 0 {
		s += fmt.Sprintf(", %d failed", p.failed)
	}
	rate := p.rate(now)
	switch {
	case rate >= 10:
		s += fmt.Sprintf(", %.0f/s", rate)
	case rate > 0:
		s += fmt.Sprintf(", %.1f/s", rate)
	}
	if p.done >= p.planned && len(p.jobs) == 0 {
		return s + "; writing the results" // otherwise the last line would stay for seconds without a reason
	}
	if left := p.planned - p.done; rate > 0 && left > 0 && now.Sub(p.start) > 2*time.Second {
		s += ", about " + leftText(time.Duration(float64(left)/rate*float64(time.Second))) + " left"
	}
	return s
}

// leftText is a rounded estimate for display.
func leftText(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", max(1, int(d.Seconds())))
	}
	return secondsText(d.Seconds())
}

// rate is the recent number of jobs a second.
func (p *progress) rate(now time.Time) float64 {
	p.samples = append(p.samples, sample{now, p.done})
	for len(p.samples) > 1 && now.Sub(p.samples[1].at) >= progressWindow {
		p.samples = p.samples[1:]
	}
	from := p.samples[0]
	if took := now.Sub(from.at).Seconds(); took > 0 {
		return float64(p.done-from.done) / took
	}
	return 0
}

// picture returns the lines for a terminal of this size.
func (p *progress) picture(now time.Time, columns, rows int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	head := p.head(now)
	if head == "" {
		return nil
	}
	lines := []string{cut(head, columns-1)}
	if columns >= barWidth+8 { // a line that wraps would be counted as one, and not be removed
		lines[0] = p.bar() + cut(head, columns-barWidth-2)
	}
	room := max(rows-3, 0)
	waiting := 0
	for _, j := range p.jobs {
		switch {
		case j.waits > 0:
			waiting++
		case len(lines) <= min(room, p.workers):
			lines = append(lines, p.jobLine(j, now, columns-1))
		}
	}
	shown := min(waiting, maxWaiting, max(room-len(lines), 0))
	if shown < waiting {
		shown--
	}
	left := shown
	for _, j := range p.jobs {
		if j.waits > 0 && left > 0 {
			lines = append(lines, p.jobLine(j, now, columns-1))
			left--
		}
	}
	if shown >= 0 && shown < waiting {
		lines = append(lines, p.paint(dim, cut(fmt.Sprintf("%10d more wait for others", waiting-shown), columns-1)))
	}
	return lines
}

// maxWaiting is how many lines suspended jobs get: running ones are more important.
const maxWaiting = 3

func (p *progress) jobLine(j *shownJob, now time.Time, columns int) string {
	took := fmt.Sprintf("%6.1f s  ", max(0, now.Sub(j.began).Seconds())) // it may have begun after the tick of this update
	if now.Sub(j.began) >= time.Minute {
		took = fmt.Sprintf("%8s  ", now.Sub(j.began).Truncate(time.Second))
	}
	if j.waits > 0 {
		return p.paint(dim, took+cut(shortName(j.name)+" waits for "+j.on, columns-len(took)))
	}
	name := j.name
	if j.at != "" {
		name = shortName(name) + ", " + j.at
	}
	return p.paint(dim, took) + cut(name, columns-len(took))
}

// shortName is a job's name without the folders of its asset. A folder asset stays, with its slash.
func shortName(job string) string {
	asset, _, _ := strings.Cut(job, " ▸ ")
	if i := strings.LastIndex(asset, " ["); i >= 0 {
		asset = asset[:i]
	}
	return job[strings.LastIndexByte(strings.TrimSuffix(asset, "/"), '/')+1:]
}

const barWidth = 20

func (p *progress) bar() string {
	if p.planned == 0 {
		return ""
	}
	full := min(barWidth, p.done*barWidth/max(p.planned, p.done+len(p.jobs)))
	return p.paint(green, strings.Repeat("━", full)) + p.paint(dim, strings.Repeat("─", barWidth-full)) + "  "
}

// cut shortens a text to a number of terminal cells.
func cut(s string, columns int) string {
	if textWidth(s) <= columns {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && textWidth(string(r)) > columns-1 {
		r = r[:len(r)-1]
	}
	if columns < 1 {
		return ""
	}
	return string(r) + "…"
}

func (p *progress) Planned(jobs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned = jobs
}

func (p *progress) JobStarted(job string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = append(p.jobs, &shownJob{name: job, began: time.Now()})
}

func (p *progress) JobSuspended(job string, on []string, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		switch {
		case j.name != job:
		case begins:
			j.waits++
			j.on = shortName(on[0])
			if len(on) > 1 {
				j.on += fmt.Sprintf(" and %d more", len(on)-1)
			}
		default:
			j.waits--
		}
	}
}

func (p *progress) JobMoved(job string, at *engine.Remote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		if j.name == job {
			j.at = whereText(at)
		}
	}
}

// whereText says where a job is that is on another machine.
func whereText(at *engine.Remote) string {
	switch {
	case at == nil:
		return ""
	case at.Worker != "" && at.Stage == "running":
		return at.Stage + " on " + at.Worker
	}
	return at.Stage
}

func (p *progress) JobFinished(job string, failed bool, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = slices.DeleteFunc(p.jobs, func(j *shownJob) bool { return j.name == job })
	p.done++
	if failed {
		p.failed++
	}
}
