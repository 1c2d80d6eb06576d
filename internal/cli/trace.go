package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

// reporters passes progress on to several reporters.
type reporters []build.Reporter

func (l reporters) Planned(jobs int) {
	for _, r := range l {
		r.Planned(jobs)
	}
}

func (l reporters) JobStarted(job string) {
	for _, r := range l {
		r.JobStarted(job)
	}
}

func (l reporters) JobSuspended(job string, on []string, begins bool) {
	for _, r := range l {
		r.JobSuspended(job, on, begins)
	}
}

func (l reporters) JobFinished(job string, failed bool, took time.Duration) {
	for _, r := range l {
		r.JobFinished(job, failed, took)
	}
}

func (l reporters) JobMoved(job string, at *engine.Remote) {
	for _, r := range l {
		r.JobMoved(job, at)
	}
}

// Spanned passes on what was under way for a job to those that want to know.
func (l reporters) Spanned(s build.Span) {
	for _, r := range l {
		if to, ok := r.(interface{ Spanned(build.Span) }); ok {
			to.Spanned(s)
		}
	}
}

// trace writes when which job ran as a file that chrome://tracing and ui.perfetto.dev show. Jobs that run are in lanes of
// the process "workers", or "other machines", those that are suspended in lanes of the process "waiting", for they hold no worker. Spans
// have a process for each kind of them.
type trace struct {
	file *os.File // nil: not requested

	mu      sync.Mutex // guards all fields below
	start   time.Time
	jobs    map[string]*tracedJob
	running lanes
	waiting lanes
	away    lanes
	events  []traceEvent
	spans   []tracedSpan
}

type tracedSpan struct {
	build.Span
	end time.Time
}

type tracedJob struct {
	begin time.Time // of its current state
	lane  int
	at    *engine.Remote // what is known of it on another machine; nil: it is here
	stage string         // what it does there
	since time.Time      // that
	waits int            // how many of its calls wait
	on    string
}

// traceEvent is a complete event ("X") or metadata ("M") of the Trace Event Format. Times are in microseconds.
type traceEvent struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	PID   int               `json:"pid"`
	TID   int               `json:"tid"`
	Start int64             `json:"ts"`
	Took  int64             `json:"dur,omitempty"`
	Color string            `json:"cname,omitempty"`
	Args  map[string]string `json:"args,omitempty"`
}

// The processes of the trace.
const (
	pidWorkers = 1
	pidWaiting = 2
	pidAway    = 3
	pidSpans   = 4 // the first of them
)

// lanes assigns the lowest free number.
type lanes []bool

func (l *lanes) take() int {
	for i, taken := range *l {
		if !taken {
			(*l)[i] = true
			return i
		}
	}
	*l = append(*l, true)
	return len(*l) - 1
}

func (l lanes) give(i int) { l[i] = false }

// newTrace starts a trace; with an empty name it writes nothing. It does not overwrite a file that is not a trace: if
// --trace is used without a value, the next argument, an asset, would be lost.
func newTrace(name string) (*trace, error) {
	t := &trace{start: time.Now(), jobs: map[string]*tracedJob{}}
	if name == "" {
		return t, nil
	}
	if isOther(name) {
		return nil, wrongUsage("name another file, or remove that one", "--trace %s: the file that is there is not a trace", name)
	}
	var err error
	if t.file, err = os.Create(name); err != nil {
		return nil, wrongUsage("--trace takes the name of the file to write", "--trace %s: the trace cannot be written: %v", name, bareReason(err))
	}
	return t, nil
}

// traceHead is the beginning of a trace.
const traceHead = `{"traceEvents":`

// isOther reports whether a file is something other than a trace.
func isOther(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 { // a killed build leaves an empty one
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return true
	}
	defer f.Close()
	head := make([]byte, len(traceHead))
	n, _ := io.ReadFull(f, head)
	return string(head[:n]) != traceHead
}

func (t *trace) Planned(int) {}

func (t *trace) JobStarted(job string) {
	if t.file == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs[job] = &tracedJob{begin: time.Now(), lane: t.running.take()}
}

// JobMoved moves a job to the lanes of where it runs, and notes what it does there.
func (t *trace) JobMoved(job string, at *engine.Remote) {
	if t.file == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[job]
	if j == nil || j.at == nil && at == nil {
		return
	}
	switch {
	case j.waits > 0:
		j.at = at
	case at == nil:
		t.end(job, j, pidAway, "bad", map[string]string{"then": "ran here"})
		j.at, j.stage = nil, ""
		t.begin(j)
	case j.at == nil:
		t.running.give(j.lane) // it did nothing there yet
		j.at, j.stage = at, at.Stage
		t.begin(j)
	default:
		if j.at = at; at.Stage != j.stage {
			t.staged(j)
			j.stage = at.Stage
		}
	}
}

// staged closes what a job does on another machine, as a span below that of the job.
func (t *trace) staged(j *tracedJob) {
	now := time.Now()
	if j.stage != "" {
		t.events = append(t.events, traceEvent{
			Name: whereText(&engine.Remote{Stage: j.stage, Worker: j.at.Worker}), Phase: "X", PID: pidAway, TID: j.lane + 1,
			Start: j.since.Sub(t.start).Microseconds(), Took: max(1, now.Sub(j.since).Microseconds()),
		})
	}
	j.since = now
}

// remoteArgs is what a trace says of a job on another machine.
func remoteArgs(at *engine.Remote) map[string]string {
	milliseconds := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }
	args := map[string]string{
		"worker": at.Worker, "queued": milliseconds(at.Queued), "ran": milliseconds(at.Ran), "sent": diag.Size(at.Sent),
		"fetched": diag.Size(at.Fetched), "rounds": fmt.Sprint(at.Rounds),
	}
	if at.Cached {
		args["cached"] = "the server had the result of an equal job"
	}
	return args
}

// begin assigns a lane to a job.
func (t *trace) begin(j *tracedJob) {
	if j.begin = time.Now(); j.at != nil {
		j.lane, j.since = t.away.take(), j.begin
	} else {
		j.lane = t.running.take()
	}
}

// pid is the process of the machine where a job runs.
func (j *tracedJob) pid() int {
	if j.at != nil {
		return pidAway
	}
	return pidWorkers
}

func (t *trace) JobSuspended(job string, on []string, begins bool) {
	if t.file == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[job]
	switch {
	case j == nil:
	case begins:
		if j.waits++; j.waits == 1 {
			t.end(job, j, j.pid(), "", nil)
			j.lane, j.on = t.waiting.take(), strings.Join(on, ", ")
		}
	default:
		if j.waits--; j.waits == 0 {
			t.end(job, j, pidWaiting, "grey", map[string]string{"for": j.on})
			t.begin(j)
		}
	}
}

func (t *trace) JobFinished(job string, failed bool, _ time.Duration) {
	if t.file == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[job]
	if j == nil {
		return
	}
	delete(t.jobs, job)
	pid, color := j.pid(), ""
	if j.waits > 0 {
		pid = pidWaiting
	}
	if failed {
		color = "terrible"
	}
	t.end(job, j, pid, color, nil)
}

// end writes the event of a job's current state, and frees its lane.
func (t *trace) end(name string, j *tracedJob, pid int, color string, args map[string]string) {
	now := time.Now()
	if pid == pidAway {
		if t.staged(j); args == nil {
			args = remoteArgs(j.at)
		}
	}
	t.events = append(t.events, traceEvent{
		Name: name, Phase: "X", PID: pid, TID: j.lane + 1, Color: color, Args: args,
		Start: j.begin.Sub(t.start).Microseconds(), Took: max(1, now.Sub(j.begin).Microseconds()),
	})
	j.begin = now
	map[int]lanes{pidWorkers: t.running, pidWaiting: t.waiting, pidAway: t.away}[pid].give(j.lane)
}

// Spanned notes a span that ends now.
func (t *trace) Spanned(s build.Span) {
	if t.file == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, tracedSpan{s, time.Now()})
}

// spanEvents gives the spans lanes, as few as will do, and the processes of these their names.
func (t *trace) spanEvents() (events []traceEvent) {
	slices.SortStableFunc(t.spans, func(a, b tracedSpan) int {
		return cmp.Or(strings.Compare(a.Lanes, b.Lanes), a.Begin.Compare(b.Begin))
	})
	pid, lanes, free := pidSpans-1, "", []time.Time(nil) // from when on each lane is free
	for _, s := range t.spans {
		if s.Lanes != lanes {
			pid, lanes, free = pid+1, s.Lanes, nil
			events = append(events, processName(pid, lanes))
		}
		lane := slices.IndexFunc(free, func(from time.Time) bool { return !s.Begin.Before(from) })
		if lane < 0 {
			lane, free = len(free), append(free, time.Time{})
		}
		free[lane] = s.end
		events = append(events, traceEvent{
			Name: s.Name, Phase: "X", PID: pid, TID: lane + 1, Args: map[string]string{"bytes": strconv.FormatInt(s.Bytes, 10), "what": s.Note},
			Start: s.Begin.Sub(t.start).Microseconds(), Took: max(1, s.end.Sub(s.Begin).Microseconds()),
		})
	}
	return events
}

func processName(pid int, name string) traceEvent {
	return traceEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]string{"name": name}}
}

// close writes the file.
func (t *trace) close() error {
	if t.file == nil {
		return nil
	}
	defer t.file.Close()
	events := []traceEvent{processName(pidWorkers, "workers"), processName(pidWaiting, "waiting for other jobs")}
	if t.away != nil {
		events = append(events, processName(pidAway, "other machines"))
	}
	events = append(append(events, t.events...), t.spanEvents()...)
	w := bufio.NewWriter(t.file)
	err := json.NewEncoder(w).Encode(struct {
		Events []traceEvent `json:"traceEvents"`
		Unit   string       `json:"displayTimeUnit"`
	}{events, "ms"})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return t.file.Close()
}
