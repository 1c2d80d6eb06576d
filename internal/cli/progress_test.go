package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/engine"
)

func newTestProgress() *progress {
	start := time.Unix(1000, 0)
	return &progress{workers: 2, start: start, samples: []sample{{start, 0}}, paint: func(_ style, s string) string { return s }, quit: make(chan struct{})}
}

func TestProgressPicture(t *testing.T) {
	p := newTestProgress()
	now := p.start.Add(4 * time.Second)
	if got := p.picture(now, 80, 24); got != nil {
		t.Errorf("nothing runs, and the picture is %q", got)
	}
	p.Planned(40)
	for range 10 {
		p.JobFinished("x", false, 0)
	}
	p.JobFinished("y", true, 0)
	p.JobStarted("models/knight.gltf [pc]")
	p.JobStarted("sprites/tank.png [pc]")
	p.JobSuspended("models/knight.gltf [pc]", []string{"textures/page.png [pc]"}, true)
	p.jobs[0].began, p.jobs[1].began = p.start, p.start.Add(3500*time.Millisecond)
	want := []string{
		"━━━━━───────────────  11 of 40 done, 1 failed, 2.8/s, about 10 s left",
		"   0.5 s  sprites/tank.png [pc]",
		"   4.0 s  knight.gltf [pc] waits for page.png [pc]",
	}
	if d := cmp.Diff(want, p.picture(now, 80, 24)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"━━━━━───────────────  11 of 4…", "   0.5 s  sprites/tank.png […", "   4.0 s  knight.gltf [pc] w…"}, p.picture(now, 30, 24)); d != "" {
		t.Error(d)
	}
	for _, line := range p.picture(now, 20, 24) { // no room for a bar; a line that wraps would be two
		if textWidth(line) >= 20 {
			t.Errorf("%q on 20 columns", line)
		}
	}
	for _, rows := range []int{1, 4} {
		if got := p.picture(now, 80, rows); len(got) > max(1, rows-1) {
			t.Errorf("%d lines on %d rows", len(got), rows)
		}
	}
	p.JobSuspended("models/knight.gltf [pc]", nil, false)
	p.JobFinished("sprites/tank.png [pc]", false, 0)
	if got := p.picture(now, 80, 24)[1]; got != "   4.0 s  models/knight.gltf [pc]" {
		t.Errorf("%q", got)
	}
	for i := range 20 {
		name := string(rune('a'+i)) + ".png [pc]"
		p.JobStarted(name)
		p.jobs[i+1].began = now.Add(-90 * time.Second)
		if i > 1 {
			p.JobSuspended(name, []string{"x", "y"}, true)
		}
	}
	want = []string{
		"━━━━━━──────────────  12 of 40 done, 1 failed, 3.0/s, about 9 s left",
		"   4.0 s  models/knight.gltf [pc]",
		"   1m30s  a.png [pc]",
		"   1m30s  c.png [pc] waits for x and 1 more",
		"   1m30s  d.png [pc] waits for x and 1 more",
		"        16 more wait for others",
	}
	if d := cmp.Diff(want, p.picture(now, 80, 24)); d != "" {
		t.Error(d)
	}
}

// A plain line names what the build hangs on, and no job has been running for less than nothing.
func TestProgressLine(t *testing.T) {
	p := newTestProgress()
	p.Planned(9)
	now := p.start.Add(30 * time.Second)
	p.JobStarted("short.png [pc]")
	p.jobs[0].began = now.Add(time.Millisecond)
	if got := p.headline(now); got != "0 of 9 done" {
		t.Errorf("%q", got)
	}
	if got := p.picture(now, 80, 24)[1]; got != "   0.0 s  short.png [pc]" {
		t.Errorf("%q", got)
	}
	p.JobStarted("waits.gltf [pc]")
	p.JobStarted("huge.png [pc]")
	p.JobSuspended("waits.gltf [pc]", []string{"huge.png [pc]"}, true)
	p.jobs[1].began, p.jobs[2].began = p.start, p.start.Add(5*time.Second)
	if got := p.headline(now); got != "0 of 9 done; huge.png [pc] for 25 s" {
		t.Errorf("%q", got)
	}
}

// The rate is that of the last seconds, so that a slow start does not spoil it.
func TestProgressRate(t *testing.T) {
	p := newTestProgress()
	p.Planned(1000)
	p.JobStarted("slow")
	for s := range 31 {
		if s > 20 {
			p.done += 20
		}
		p.headline(p.start.Add(time.Duration(s) * time.Second))
	}
	if got := p.headline(p.start.Add(30 * time.Second)); got != "200 of 1000 done, 20/s, about 40 s left" {
		t.Errorf("%q", got)
	}
}

// What is on the screen after some pictures: the terminal is a list of lines and a row that the cursor is in.
func TestProgressLeavesNothing(t *testing.T) {
	p := newTestProgress()
	var all strings.Builder
	all.WriteString("before\n")
	for _, lines := range [][]string{{"a", "b", "c"}, {"d"}, {"e", "f"}, nil} {
		all.WriteString(p.redraw(lines))
	}
	if got := screen(t, all.String()+"after\n"); got != "before\nafter\n" {
		t.Errorf("%q", got)
	}
	if got := screen(t, p.redraw([]string{"aaaa", "b"})+p.redraw([]string{"c"})); got != "c\n" {
		t.Errorf("%q", got)
	}
}

// screen interprets the few escape sequences that progress writes.
func screen(t *testing.T, s string) string {
	t.Helper()
	lines, row, col := []string{""}, 0, 0
	for len(s) > 0 {
		switch {
		case strings.HasPrefix(s, "\x1b[K"):
			lines[row], s = lines[row][:col], s[3:]
		case strings.HasPrefix(s, "\x1b[J"):
			lines[row], lines, s = lines[row][:col], lines[:row+1], s[3:]
		case strings.HasPrefix(s, "\x1b["):
			row, s = row-int(s[2]-'0'), s[4:]
		case s[0] == '\r':
			col, s = 0, s[1:]
		case s[0] == '\n':
			if row, col, s = row+1, 0, s[1:]; row == len(lines) {
				lines = append(lines, "")
			}
		default:
			line := lines[row]
			lines[row] = line[:col] + s[:1] + line[min(len(line), col+1):]
			col, s = col+1, s[1:]
		}
	}
	return strings.Join(lines, "\n")
}

func TestProgressElsewhere(t *testing.T) {
	var errs bytes.Buffer
	a := &app{errs: &errs, getenv: func(string) string { return "" }}
	p := a.newProgress(1)
	p.JobStarted("x")
	p.JobFinished("x", false, time.Second)
	p.stop()
	if errs.Len() > 0 {
		t.Errorf("a short build says %q", errs.String())
	}
}

func TestTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	tr, err := newTrace(file)
	if err != nil {
		t.Fatal(err)
	}
	r := reporters{tr}
	r.Planned(3)
	r.JobStarted("model")
	r.JobStarted("other")
	r.JobSuspended("model", []string{"page", "cape"}, true)
	r.JobSuspended("model", []string{"rock"}, true) // from another of its goroutines
	r.JobStarted("page")                            // in the lane that model left
	r.JobFinished("page", true, 0)
	r.JobSuspended("model", nil, false)
	r.JobSuspended("model", nil, false)
	r.JobFinished("model", false, 0)
	r.JobFinished("other", false, 0)
	r.JobStarted("far")
	r.JobMoved("far", &engine.Remote{Stage: "sending"})
	r.JobMoved("far", &engine.Remote{Stage: "running", Worker: "w7"})
	r.JobSuspended("far", []string{"rock"}, true)
	r.JobSuspended("far", nil, false)
	r.JobMoved("far", &engine.Remote{Stage: "fetching", Worker: "w7", Queued: 1500 * time.Microsecond, Sent: 2000})
	r.JobFinished("far", false, 0)
	r.JobStarted("back")
	r.JobMoved("back", nil)
	r.JobMoved("back", &engine.Remote{Stage: "queued"})
	r.JobMoved("back", nil)
	r.JobFinished("back", false, 0)
	if err := tr.close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	var lines, queued []string
	for _, e := range got.TraceEvents {
		if e.Phase == "X" {
			if e.Took < 1 || e.Start < 0 {
				t.Errorf("%+v", e)
			}
			said := e.Args["for"] + e.Args["worker"] + e.Args["then"]
			lines = append(lines, strings.Join([]string{e.Name, string(rune('0' + e.PID)), string(rune('0' + e.TID)), e.Color, said}, " "))
			if e.Name == "far" && e.Args["worker"] != "" {
				queued = append(queued, e.Args["queued"]+" "+e.Args["sent"])
			}
		}
	}
	want := []string{
		"model 1 1  ", "page 1 1 terrible ", "model 2 1 grey page, cape", "model 1 1  ", "other 1 2  ",
		"sending 3 1  ", "running on w7 3 1  ", "far 3 1  w7", "far 2 1 grey rock", "running on w7 3 1  ", "fetching 3 1  ", "far 3 1  w7",
		"queued 3 1  ", "back 3 1 bad ran here", "back 1 1  ",
	}
	if d := cmp.Diff([]string{"0.0 ms 0 B", "1.5 ms 2.0 kB"}, queued); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

func TestShortName(t *testing.T) {
	for job, want := range map[string]string{
		"sprites/tank.png [pc]": "tank.png [pc]",
		"sprites/ui/ [pc]":      "ui/ [pc]",
		"ui/ [pc]":              "ui/ [pc]",
		"sprites/ui/ ▸ atlas ▸ page 1/2 [pc]": "ui/ ▸ atlas ▸ page 1/2 [pc]",
		"sprites/tank.png ▸ mips/2 [pc]":      "tank.png ▸ mips/2 [pc]",
		"sprites/a [b]/tank.png [pc]":         "tank.png [pc]",
		"x":                                   "x",
		"a/b":                                 "b",
	} {
		if got := shortName(job); got != want {
			t.Errorf("%q is %q, not %q", job, got, want)
		}
	}
	p := newTestProgress()
	p.JobStarted("sprites/ui/ [pc]")
	p.JobSuspended("sprites/ui/ [pc]", []string{"sprites/ui/ ▸ page 0 [pc]", "x [pc]"}, true)
	p.jobs[0].began = p.start
	if got, want := p.picture(p.start.Add(time.Second), 80, 24)[1], "   1.0 s  ui/ [pc] waits for ui/ ▸ page 0 [pc] and 1 more"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestProgressAtTheEnd: when all jobs are done, what is left to do has a name.
func TestProgressAtTheEnd(t *testing.T) {
	p := newTestProgress()
	p.Planned(2)
	p.JobStarted("a [pc]")
	p.JobFinished("b [pc]", false, 0)
	now := p.start.Add(time.Second)
	if got := p.headline(now); got != "1 of 2 done, 1.0/s" {
		t.Errorf("%q", got)
	}
	p.JobFinished("a [pc]", false, 0)
	if got := p.headline(now); got != "2 of 2 done, 2.0/s; writing the results" {
		t.Errorf("%q", got)
	}
}
