package session

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/make/control"
)

// TestSavedDuringBuild: an asset that is saved while a build is under way and wanted at once is found when the jobs that run then have
// ended, be that the first build or a later one. The rest is built after it.
func TestSavedDuringBuild(t *testing.T) {
	told(t)
	files := map[string]string{}
	for i := range 6 {
		files[fmt.Sprintf("assets/first/%d.t", i)] = "BLOCK\n"
		files[fmt.Sprintf("later/%d.t", i)] = "BLOCK\n"
	}
	s := set(t, files).start(Config{})
	s.s.leastBuild = time.Hour // no build is halted for another reason
	for _, folder := range []string{"first", "later"} {
		if folder == "later" {
			if err := os.Rename(s.path("later"), s.path("assets/later")); err != nil {
				t.Fatal(err)
			}
		}
		name := folder + ".t"
		running := []string{<-s.gates.in, <-s.gates.in} // both workers are busy
		s.write("assets/"+name, "new")
		found := make(chan error, 1)
		go func() {
			ps, err := s.s.Want(t.Context(), "pc", name)
			if err == nil && names(ps) != name {
				err = fmt.Errorf("got %s", names(ps))
			}
			found <- err
		}()
		s.halted()
		for _, id := range running {
			close(s.gates.gate(id))
		}
		if err := <-found; err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			if id := fmt.Sprintf("%s/%d.t", folder, i); !slices.Contains(running, id) {
				close(s.gates.gate(id))
			}
		}
		s.until("all is built", func(e Ended) bool { return e.Report != nil && !e.Report.Stopped })
		for len(s.gates.in) > 0 {
			<-s.gates.in
		}
	}
	s.compareWithClean()
}

// TestWantedAsABuildBegins: who wants an asset just when a build begins waits for the asset's job in that build, and not for all of it.
func TestWantedAsABuildBegins(t *testing.T) {
	told(t)
	s := set(t, map[string]string{"assets/first.t": "x"}).start(Config{})
	s.next()
	for i := range 6 {
		s.write(fmt.Sprintf("assets/%d.t", i), "BLOCK\n")
	}
	s.write("assets/wanted.t", "new")
	found, built := make(chan error, 1), make(chan error, 1)
	go func() {
		built <- s.s.Turn(t.Context(), func(turn *Turn) {
			go func() {
				_, err := s.s.Want(t.Context(), "pc", "wanted.t")
				found <- err
			}()
			for !s.asked() {
				time.Sleep(time.Millisecond)
			}
			if _, err := turn.Build(t.Context(), turn.r.request()); err != nil {
				t.Error(err)
			}
		})
	}()
	running := []string{<-s.gates.in, <-s.gates.in} // both workers are busy
	for _, id := range running {
		close(s.gates.gate(id))
	}
	select {
	case err := <-found:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it waited for the whole build")
	}
	for i := range 6 {
		if id := fmt.Sprintf("%d.t", i); !slices.Contains(running, id) {
			close(s.gates.gate(id))
		}
	}
	if err := <-built; err != nil {
		t.Error(err)
	}
}

// asked tells whether somebody waits for a turn.
func (t *stage) asked() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return len(t.s.asked) > 0
}

// TestSooner: what a session is told to build sooner goes before the rest, in that order, and after what somebody waits for.
func TestSooner(t *testing.T) {
	files := map[string]string{"assets/0.t": "BLOCK\n"}
	for i := 1; i < 8; i++ {
		files[fmt.Sprintf("assets/%d.t", i)] = "x"
	}
	files["assets/6.t"] = "NEED 2.t\n"
	s := set(t, files).start(Config{Workers: 1, Sooner: func() []control.Asset {
		return []control.Asset{{Platform: "pc", Name: "0.t"}, {Platform: "pc", Name: "6.t"}, {Platform: "none", Name: "7.t"},
			{Platform: "pc", Name: "gone.t"}, {Platform: "pc", Name: "4.t"}}
	}})
	<-s.gates.in
	close(s.gates.gate("0.t"))
	s.next()
	if ran := strings.Join(s.ran, " "); ran != "0.t [pc] 2.t [pc] 6.t [pc] 4.t [pc] 1.t [pc] 3.t [pc] 5.t [pc] 7.t [pc]" {
		t.Errorf("ran %s", ran)
	}
}
