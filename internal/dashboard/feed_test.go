package dashboard

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"
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
	f.End("kiln.toml:3: no such key")
	s = f.Status()
	if s.Building || s.Took != 4*time.Second || s.Stopped == "" || s.Note != "polling" || len(s.Running) != 0 {
		t.Errorf("%+v", s)
	}
	f.Begin(4, nil)
	if s = f.Status(); s.Stopped != "" || s.Done != 0 || s.Note != "polling" || s.Workers != 2 {
		t.Errorf("%+v", s)
	}
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
	p.feed.End("")
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
