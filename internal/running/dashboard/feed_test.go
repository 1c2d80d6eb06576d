package dashboard

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

func TestFeed(t *testing.T) {
	now := time.Unix(1e9, 0)
	f := NewFeed(2)
	f.now = func() time.Time { return now }
	f.Begin(3, []string{"a.png"})
	f.Planned(10)
	for _, j := range []string{"a.png [pc]", "b/ ▸ page 0 [pc]", "c [x].png [pc]"} {
		f.JobStarted(j)
	}
	f.JobSuspended("b/ ▸ page 0 [pc]", []string{"a.png"}, true)
	f.JobSuspended("b/ ▸ page 0 [pc]", []string{"c.png"}, true) // by two goroutines of one job
	f.JobSuspended("unknown", []string{"x"}, true)
	f.JobSuspended("unknown", nil, false)
	s := f.Status()
	if len(s.Running) != 2 || len(s.Waiting) != 1 || s.Queued() != 7 || s.Waiting[0].Asset() != "b/" || s.Running[1].Asset() != "c [x].png" || s.Left != 0 {
		t.Fatalf("%+v", s)
	}
	f.JobSuspended("b/ ▸ page 0 [pc]", nil, false)
	if s = f.Status(); len(s.Waiting) != 1 {
		t.Errorf("it waits no longer, although it waits for another one: %+v", s)
	}
	f.JobSuspended("b/ ▸ page 0 [pc]", nil, false)
	now = now.Add(4 * time.Second)
	f.JobFinished("a.png [pc]", true, time.Second)
	f.JobFinished("c [x].png [pc]", false, time.Second)
	s = f.Status()
	if len(s.Running) != 1 || len(s.Waiting) != 0 || s.Done != 2 || s.Failed != 1 || s.Recent[0].Asset() != "c [x].png" || s.Left != 16*time.Second { // 8 to do, 2 done in 4 s
		t.Errorf("%+v", s)
	}
	f.Note("polling")
	f.End(diag.Errorf(diag.Internal, diag.Pos{File: "kiln.toml", Line: 3}, "no such key"))
	s = f.Status()
	if s.Building || s.Took != 4*time.Second || len(s.Stopped) != 1 || s.Note != "polling" || len(s.Running) != 0 {
		t.Errorf("%+v", s)
	}
	f.Begin(4, nil)
	if s = f.Status(); s.Stopped != nil || s.Done != 0 || s.Note != "polling" || s.Workers != 2 {
		t.Errorf("%+v", s)
	}
}

// TestRemoteJobs: the page says which jobs are on other machines, what they do there, and what came of it.
func TestRemoteJobs(t *testing.T) {
	p := newProject(t)
	p.write("assets/a.json", "{}")
	p.build()
	cfg := p.config()
	f := NewFeed(2)
	cfg.Feed = f
	s := serve(t, cfg)
	f.Begin(3, nil)
	for _, j := range []string{"here.png [pc]", "done.png [pc]", "there.png [pc]"} {
		f.JobStarted(j)
	}
	f.JobMoved("done.png [pc]", &engine.Remote{Worker: "worker-3", Queued: 1200 * time.Millisecond, Sent: 3_000_000, Fetched: 5000})
	f.JobFinished("done.png [pc]", false, time.Second)
	f.JobMoved("there.png [pc]", &engine.Remote{Stage: "running", Worker: "worker-1", Sent: 7000})
	page, _ := get(t, s, "/", http.StatusOK)
	page = strings.ReplaceAll(page, "\u00a0", " ")
	for _, want := range []string{
		"1 of 2, 1 on other machines", "running on worker-1, 7.0 kB sent", "on worker-3, queued 1.2 s, 3.0 MB sent, 5.0 kB fetched",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	f.JobMoved("there.png [pc]", nil)
	if page, _ = get(t, s, "/", http.StatusOK); strings.Contains(page, "worker-1") || !strings.Contains(page, "2 of 2<") {
		t.Error("the job that came back is still there")
	}
}

// TestStopped: a mistake in the project file is the first of all problems, with its line, on every page that tells of problems.
func TestStopped(t *testing.T) {
	p := newProject(t)
	p.write("assets/broken.json", "{oops}")
	p.build()
	s := serve(t, p.config())
	page, _ := get(t, s, "/", http.StatusOK)
	has(t, page, "<h1>1 problem</h1>")
	toml := "[project]\nname = \"knights\"\nrots = [\"assets\"]\n"
	p.feed.Begin(3, []string{"kiln.toml"})
	p.feed.End(diag.Errorf(diag.UnknownKey, diag.Pos{File: "kiln.toml", Line: 3, Column: 1}, "there is no key %q", "rots").WithHint("did you mean %q?", "roots").WithSource([]byte(toml), 4))
	for _, path := range []string{"/", "/problems"} {
		page, _ := get(t, s, path, http.StatusOK)
		has(t, page, "othing can be built", "kiln.toml:3:1", "<mark>rots</mark>", "did you mean", "Cannot build", `<i class="bad">2</i>`)
	}
	page, _ = get(t, s, "/problems", http.StatusOK)
	if first, second := strings.Index(page, "there is no key"), strings.Index(page, "broken.json"); first < 0 || second < first {
		t.Errorf("the project file is at %d, what it keeps from being built at %d", first, second)
	}
	p.build()
	page, _ = get(t, s, "/", http.StatusOK)
	has(t, page, "<h1>1 problem</h1>", `<a href="/problems"><span class="dot bad"></span>1 problem</a>`)
}

// TestEvents listens as a page does while something is built.
func TestEvents(t *testing.T) {
	p := newProject(t)
	s := serve(t, p.config())
	res, err := s.Client().Get(s.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") != "text/event-stream" || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	until := func(event, data string) {
		t.Helper()
		at := ""
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				at = name
			}
			if at == event && strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), data) {
				return
			}
		}
		t.Fatalf("the stream ended without %s %q: %v", event, data, lines.Err())
	}
	until("now", "Up to date")
	p.feed.Begin(2, []string{`assets/<b>.png`})
	until("now", "assets/&lt;b&gt;.png")
	p.feed.JobStarted("slow.png [pc]")
	until("now", "slow.png [pc]")
	p.feed.End(nil)
	until("pulse", "Watching")
	until("news", "")
	p.feed.GamesChanged()
	until("news", "")
}

// TestEventsWithoutFeed sees builds of another program.
func TestEventsWithoutFeed(t *testing.T) {
	p := newProject(t)
	cfg := p.config()
	cfg.Feed = nil
	s := serve(t, cfg)
	res, err := s.Client().Get(s.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Scan() // retry: the stream is there
	p.write("assets/new.json", `{"new": true}`)
	p.build()
	for lines.Scan() {
		if lines.Text() == "event: news" {
			page, _ := get(t, s, "/content?q=new.json", http.StatusOK)
			has(t, page, "<b>1</b> asset")
			return
		}
	}
	t.Fatal("nothing was told of a build")
}
