package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"time"

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

// JobMoved passes on where a job runs to the reporters that want it.
func (l reporters) JobMoved(job string, away bool) {
	for _, r := range l {
		if m, ok := r.(interface{ JobMoved(job string, away bool) }); ok {
			m.JobMoved(job, away)
		}
	}
}

// trace writes when each job ran as a file for chrome://tracing and ui.perfetto.dev. Running jobs are in lanes of the
// process "workers" or "other machines", suspended ones in lanes of the process "waiting", because they hold no worker.
type trace struct {
	file *os.File // nil: not requested

	mu      sync.Mutex // guards all fields below
	start   time.Time
	jobs    map[string]*tracedJob
	running lanes
	waiting lanes
	away    lanes
	events  []traceEvent
}

type tracedJob struct {
	begin time.Time // of its current state
	lane  int
	away  bool // on another machine
	waits int  // number of its calls that wait
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

// JobMoved moves a job to the lanes of the machine where it runs.
func (t *trace) JobMoved(job string, away bool) {
	if t.file == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[job]
	if j == nil || j.away == away {
		return
	}
	if away {
		t.running.give(j.lane) // it has not run there yet
	} else {
		t.end(job, j, pidAway, "bad", map[string]string{"then": "ran here"})
	}
	j.away = away
	t.begin(j)
}

// begin assigns a lane to a job.
func (t *trace) begin(j *tracedJob) {
	if j.begin = time.Now(); j.away {
		j.lane = t.away.take()
	} else {
		j.lane = t.running.take()
	}
}

// pid is the process of the machine where a job runs.
func (j *tracedJob) pid() int {
	if j.away {
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
	t.events = append(t.events, traceEvent{
		Name: name, Phase: "X", PID: pid, TID: j.lane + 1, Color: color, Args: args,
		Start: j.begin.Sub(t.start).Microseconds(), Took: max(1, now.Sub(j.begin).Microseconds()),
	})
	j.begin = now
	map[int]lanes{pidWorkers: t.running, pidWaiting: t.waiting, pidAway: t.away}[pid].give(j.lane)
}

// close writes the file.
func (t *trace) close() error {
	if t.file == nil {
		return nil
	}
	defer t.file.Close()
	name := func(pid int, name string) traceEvent {
		return traceEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]string{"name": name}}
	}
	events := []traceEvent{name(pidWorkers, "workers"), name(pidWaiting, "waiting for other jobs")}
	if t.away != nil {
		events = append(events, name(pidAway, "other machines"))
	}
	events = append(events, t.events...)
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
