package build

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/store/share/folder"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi/reapitest"
)

// sharingFolder has the results of projects shared in a folder.
func sharingFolder(t *testing.T, projects ...*fixture) *sharing.Place {
	place := &sharing.Place{Folder: filepath.Join(t.TempDir(), "cache")}
	for _, p := range projects {
		p.place = place
	}
	return place
}

// mirror makes the sources of a project those of another one, and leaves what Kiln made.
func (p *fixture) mirror(from *fixture) {
	p.Helper()
	entries, err := os.ReadDir(p.dir)
	p.must(err)
	for _, e := range entries {
		if name := e.Name(); name != ".kiln" && name != "build" && name != "out" {
			p.remove(name)
		}
	}
	p.must(copyTree(from.dir, p.dir))
}

// TestRandomShared edits a project at random, and builds it and a second checkout of it, which lags behind and is in another folder; both
// share their results. Every build of both is compared with a clean one; the second checkout runs nothing.
func TestRandomShared(t *testing.T) {
	t.Parallel()
	for range 2 {
		rng := randomSource(t)
		r := newRandom(t, rng)
		second := newProject(t, "")
		second.dir = filepath.Join(second.dir, "some", "other name")
		second.mkdir("assets")
		second.procs, second.workers = r.p.procs, 3
		place := sharingFolder(t, r.p, second)
		adopted, emptied := 0, false
		for r.n = range edits() {
			if r.step(); t.Failed() {
				break
			}
			if rng.IntN(3) > 0 {
				continue
			}
			pushed, err := r.p.open().Push(context.Background(), nil) // what builds left that were cancelled
			if err != nil {
				t.Fatal(err)
			}
			second.mirror(r.p)
			second.stages = r.p.stages
			if rng.IntN(4) == 0 {
				r.note("the second checkout knows nothing")
				second.remove(".kiln")
				second.remove("build")
				second.remove("out")
			}
			b := second.build()
			// Once the folder was emptied, bytes that the first checkout never needed, and so never fetched, are nowhere.
			// What the first one holds by ignore, it stores nowhere.
			if adopted += b.FromCache; b.ran != "" && pushed.Held == 0 && (pushed.Lost+pushed.Stale == 0 || !emptied) {
				t.Errorf("the second checkout ran %q; of %d results bytes are nowhere, %d jobs would run in the first; emptied %v",
					b.ran, pushed.Lost, pushed.Stale, emptied)
			}
			if b := second.build0(); b.Built+b.FromCache != 0 {
				t.Errorf("the second checkout built again: %s, %d from the cache", b.ran, b.FromCache)
			}
			if t.Failed() {
				break
			}
			if rng.IntN(10) == 0 { // what the first one holds is not all in there then
				emptied = true
				f, err := folder.Open(place.Folder, 1, false)
				if err == nil {
					_, err = f.Collect(1, func() {})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("after:\n%s", strings.Join(r.log[max(0, len(r.log)-25):], "\n"))
		}
		if adopted == 0 {
			t.Error("nothing came from the cache")
		}
	}
}

// sharedProject has jobs of many kinds: parts, requests, bytes, several products, needs, failures.
const sharedProject = `
-- assets/a.s --
part x 1
read b.txt
text a
-- assets/b.txt --
text b
-- assets/c.s --
request one b.txt
bytes two read b.txt
adopt x b.txt
use b.txt
-- assets/d.s --
fail now
-- assets/e.s --
use d.s
-- assets/f.s --
use g.s
-- assets/g.s --
use f.s
-- assets/h.s --
use a.s
refer b.txt x
warn 1
`

// TestSharedSecond: a second checkout runs nothing, whatever is broken in it, and the first one nothing after an edit in the second.
func TestSharedSecond(t *testing.T) {
	first, second := newProject(t, sharedProject), newProject(t, sharedProject)
	place := sharingFolder(t, first, second)
	a := first.build()
	if a.FromCache != 0 || a.Uploaded == 0 || a.Failed == 0 {
		t.Errorf("%+v", a.Summary)
	}
	b := second.wants("")
	if b.FromCache != a.Built || b.Failed != a.Failed || b.Downloaded == 0 || b.Uploaded != 0 || b.messages != a.messages {
		t.Errorf("%+v", b.Summary)
	}
	if again := second.build(); again.FromCache+again.Built != 0 || again.Downloaded != 0 {
		t.Errorf("%+v", again.Summary)
	}
	second.write("assets/b.txt", "edited")
	b = second.build()
	first.write("assets/b.txt", "edited")
	if a = first.wants(""); a.FromCache != b.Built || b.Built == 0 {
		t.Errorf("%+v, then %+v", b.Summary, a.Summary)
	}
	second.write("assets/b.txt", "text b\n") // of old
	second.write("assets/h.s", "use b.txt\n")
	second.wants("h.s")
	second.place = nil // hidden products that were never fetched have to be made
	second.write("assets/h.s", "use b.txt\nlist a.s\n")
	second.build()
	if usage, err := open(t, place).Usage(func() {}); err != nil || usage.Entries == 0 {
		t.Error(usage, err)
	}
}

// TestSharedPromiseBroken: an earlier result holds because its bytes are said to be in the cache, for a hidden product that is equal, but
// they are not there any more: its job runs.
func TestSharedPromiseBroken(t *testing.T) {
	const request = "bytes say text one\ntext more\n"
	first := newProject(t, "-- assets/a.s --\n"+request)
	place := sharingFolder(t, first)
	first.build()
	second := newProject(t, "-- assets/d.s --\ntext one\n-- assets/e.s --\ntext e\n")
	second.wants("d.s e.s")
	second.write("assets/d.s", "text two\n")
	second.wants("d.s")
	second.remove(".kiln/cas")
	second.place = place
	second.write("assets/a.s", request)
	if b := second.wants(""); b.FromCache == 0 {
		t.Error("nothing came from the cache")
	}
	second.must(os.RemoveAll(place.Folder))
	second.write("assets/d.s", "text one\n")
	second.write("kiln.toml", "[project]\nname = \"another\"\n") // all jobs are looked at
	tell := func(_ *report.JobReport, l diag.List) {
		for _, m := range l {
			t.Errorf("told %v", m)
		}
	}
	if b := second.buildWith(Request{Tell: tell}); !strings.Contains(b.ran, "d.s") {
		t.Errorf("ran %q", b.ran)
	}
}

func open(t *testing.T, place *sharing.Place) *folder.Folder {
	f, err := folder.Open(place.Folder, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSharedCollected: two checkouts build at once while the folder is collected all the time, down to a part of what it holds. What they
// come to is right, and no build of either has to say anything, because what the folder has lost is built.
func TestSharedCollected(t *testing.T) {
	t.Parallel()
	rng := randomSource(t)
	first, second := newProject(t, sharedProject), newProject(t, sharedProject)
	place := sharingFolder(t, first, second)
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			f, err := folder.Open(place.Folder, 1, false)
			if err == nil {
				_, err = f.Collect(int64(n%7)*2000, func() {})
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	for range thorough.Of(10, 60) {
		edit := fmt.Sprint("text ", rng.IntN(20))
		var both sync.WaitGroup
		for _, p := range []*fixture{first, second} {
			p.write("assets/b.txt", edit)
			if rng.IntN(4) == 0 {
				p.remove(".kiln")
				p.remove("build")
			}
			both.Go(func() {
				if b := p.build(); b.warned != "" {
					t.Errorf("warned: %s", b.warned)
				}
			})
		}
		if both.Wait(); t.Failed() {
			break
		}
	}
	close(done)
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

// TestSharedDamage: whatever becomes of a file of the folder, the next build is right.
func TestSharedDamage(t *testing.T) {
	first := newProject(t, sharedProject)
	place := sharingFolder(t, first)
	first.build()
	for what, spoil := range map[string]func(string) error{
		"empty": func(f string) error { return os.Truncate(f, 0) },
		"cut":   func(f string) error { info, _ := os.Stat(f); return os.Truncate(f, info.Size()/2) },
		"zeros": func(f string) error { info, _ := os.Stat(f); return os.WriteFile(f, make([]byte, info.Size()), 0o666) },
		"gone":  os.Remove,
		"other": func(f string) error { return os.WriteFile(f, []byte("something else"), 0o666) },
	} {
		for _, kind := range []string{"entries", "blobs"} {
			files, _ := filepath.Glob(filepath.Join(place.Folder, "v1", kind, "*", "*"))
			if len(files) == 0 {
				t.Fatal("nothing is shared")
			}
			for i, f := range files {
				if i%3 == 0 {
					if err := spoil(f); err != nil {
						t.Fatal(what, err)
					}
				}
			}
			second := newProject(t, sharedProject)
			second.place = place
			second.build()
			third := newProject(t, sharedProject)
			third.place = place
			if b := third.build(); b.ran != "" { // the second one put it right
				t.Errorf("%s %s: the third checkout ran %q", kind, what, b.ran)
			}
		}
	}
}

// TestSharedLies: a server may do what it likes: what is built is right, and no build waits for long.
func TestSharedLies(t *testing.T) {
	first := newProject(t, sharedProject)
	server, err := reapitest.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	first.place = &sharing.Place{Remote: server.Address, WriteRemote: true}
	first.build()
	for lie := reapitest.Honest; lie < reapitest.Lies; lie++ {
		if lie == reapitest.Delays {
			continue // takes as long as a deadline; package reapi tries it with a short one
		}
		t.Run(fmt.Sprint(int(lie)), func(t *testing.T) {
			server.Tell(lie)
			defer server.Tell(reapitest.Honest)
			second := newProject(t, sharedProject)
			second.place = &sharing.Place{Remote: server.Address}
			b := second.build() // compared with a clean one
			if lie == reapitest.Honest && b.ran != "" {
				t.Errorf("ran %q", b.ran)
			}
			second.write("assets/b.txt", fmt.Sprint("edited ", int(lie)))
			second.build()
		})
	}
}

// TestSharedRealServer: a server that others wrote, if there is one.
func TestSharedRealServer(t *testing.T) {
	address := os.Getenv("KILN_TESTBED_CACHE")
	if address == "" {
		t.Skip("no server: go run ./testbed cache -- go test ./internal/make/build -run TestSharedRealServer")
	}
	project := sharedProject + "-- assets/unique.txt --\n" + t.TempDir() + "\n-- assets/large.bin --\n" + strings.Repeat(t.TempDir(), 100_000) + "\n"
	first, second := newProject(t, project), newProject(t, project)
	first.place = &sharing.Place{Remote: address, WriteRemote: true}
	second.place = &sharing.Place{Remote: address}
	a := first.build()
	if b := second.wants(""); b.FromCache != a.Jobs || b.Downloaded < 3_000_000 {
		t.Errorf("%+v", b.Summary)
	}
	for _, x := range first.place.Check(context.Background()) {
		if !x.OK {
			t.Errorf("%+v", x)
		}
	}
}

// TestSharedServerGone: a server that is wiped, or stopped, in the middle of a build costs work and nothing else.
func TestSharedServerGone(t *testing.T) {
	for _, how := range []string{"wiped", "stopped"} {
		for at := range 5 {
			server, err := reapitest.Start("")
			if err != nil {
				t.Fatal(err)
			}
			first, second := newProject(t, sharedProject), newProject(t, sharedProject)
			first.unchecked = true
			first.place = &sharing.Place{Remote: server.Address, WriteRemote: true}
			first.build()
			second.place = &sharing.Place{Remote: server.Address}
			server.After(int64(at*6+1), func() {
				if how == "wiped" {
					server.Wipe()
				} else {
					go server.Stop()
				}
			})
			second.build()
			second.write("assets/b.txt", "edited")
			second.build()
			server.Stop()
		}
	}
}

// TestSharedFolderBesideServer: what the server gave is in this machine's folder, which will do when the server is gone.
func TestSharedFolderBesideServer(t *testing.T) {
	server, err := reapitest.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	first, second, third := newProject(t, sharedProject), newProject(t, sharedProject), newProject(t, sharedProject)
	first.place = &sharing.Place{Remote: server.Address, WriteRemote: true}
	second.place = &sharing.Place{Remote: server.Address, Folder: filepath.Join(t.TempDir(), "copy")}
	third.place = second.place
	first.build()
	second.wants("")
	if from := second.origins(); from[sharing.FromServer] == 0 || from[sharing.FromFolder] > 0 {
		t.Errorf("results came from %v", from)
	}
	server.Stop()
	third.unchecked = true                                  // it is said that the server is gone
	if b := third.build(); b.FromCache < 6 || b.Built > 1 { // but for one whose bytes for a request nobody fetched so far
		t.Errorf("%+v: ran %s", b.Summary, b.ran)
	}
	if from := third.origins(); from[sharing.FromFolder] == 0 || from[sharing.FromServer] > 0 {
		t.Errorf("results came from %v", from)
	}
}

// origins counts the jobs by where their results came from; "" for those that ran here.
func (p *fixture) origins() map[string]int {
	p.Helper()
	v, err := p.open().Look(context.Background(), nil, nil)
	p.must(err)
	from := map[string]int{}
	for i := range v.Assets {
		for _, j := range v.Assets[i].Jobs {
			if j.Last.Adopted != (j.Last.Origin != "") {
				p.Errorf("%s: adopted %v, from %q", v.Assets[i].ID, j.Last.Adopted, j.Last.Origin)
			}
			from[j.Last.Origin]++
		}
	}
	return from
}

// TestSharedGuesses: where many assets are alike, about one question an asset is enough; the others are found as before.
func TestSharedGuesses(t *testing.T) {
	server, err := reapitest.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	const many = 400
	project := sharedProject
	for i := range many {
		project += fmt.Sprintf("-- assets/many/%d.txt --\ntext %d\n", i, i)
	}
	first, second := newProject(t, project), newProject(t, project)
	first.place = &sharing.Place{Remote: server.Address, WriteRemote: true}
	second.place = &sharing.Place{Remote: server.Address}
	first.unchecked = true
	first.build()
	calls := server.Calls()
	second.wants("")
	if n := server.Calls() - calls; n > many*3/2+150 {
		t.Errorf("%d calls", n)
	}
	for i := range many / 2 { // what nobody stored runs, and what others stored comes from the cache
		second.write(fmt.Sprintf("assets/many/%d.txt", 2*i), fmt.Sprint("text edited ", i))
		if i%2 == 0 {
			first.write(fmt.Sprintf("assets/many/%d.txt", 2*i), fmt.Sprint("text edited ", i))
		}
	}
	first.build()
	if b := second.build(); b.Built != many/4 || b.FromCache != many/4 {
		t.Errorf("%+v", b.Summary)
	}
}

// silent is a server that takes connections and says nothing, as far as a client of it sees: so is one behind a firewall.
func silent(t *testing.T) (address string, connections *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			t.Cleanup(func() { c.Close() })
		}
	}()
	return "grpc://" + l.Addr().String(), connections
}

// TestSharedSilentServer: a server that cannot be connected to is waited for once, for a few seconds, and is left alone by the next builds
// of the same process, which say so.
func TestSharedSilentServer(t *testing.T) {
	t.Parallel()
	address, connections := silent(t)
	p := newProject(t, sharedProject)
	p.unchecked = true
	p.place = &sharing.Place{Remote: address, WriteRemote: true}
	start := time.Now()
	b := p.build()
	if took := time.Since(start); took > 12*time.Second || !strings.Contains(b.warned, "it cannot be reached: no connection within 3 s") {
		t.Errorf("%v: %s", took, b.warned)
	}
	before := connections.Load()
	p.write("assets/b.txt", "edited")
	if b := p.build(); connections.Load() != before || !strings.Contains(b.warned, "it cannot be reached") {
		t.Errorf("%d connections: %s", connections.Load()-before, b.warned)
	}

	p.place = &sharing.Place{Remote: address} // as in another process
	p.write("assets/b.txt", "edited again")
	if b := p.build(); !strings.Contains(b.warned, "no connection within 0.5 s") {
		t.Error(b.warned)
	}
	server, err := reapitest.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	p.place = &sharing.Place{Remote: server.Address} // one that answers
	p.write("assets/b.txt", "edited once more")
	if b := p.build(); b.warned != "" {
		t.Error(b.warned)
	}
	p.place = &sharing.Place{Remote: address}
	p.write("assets/b.txt", "edited at last")
	if b := p.build(); !strings.Contains(b.warned, "no connection within 3 s") {
		t.Error(b.warned)
	}
}

// TestSharedSlowServer: a server whose answers take longer than they save is not asked for the rest of the build.
func TestSharedSlowServer(t *testing.T) {
	t.Parallel()
	server, err := reapitest.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	many := sharedProject
	for i := range 300 {
		many += fmt.Sprintf("-- assets/many/%d.txt --\ntext %d\n", i, i)
	}
	first, second := newProject(t, many), newProject(t, many)
	first.unchecked, second.unchecked = true, true
	first.place = &sharing.Place{Remote: server.Address, WriteRemote: true}
	first.build()
	second.place = &sharing.Place{Remote: server.Address, Patience: 2 * time.Second}
	server.Slow(1500 * time.Millisecond)
	calls := server.Calls()
	b := second.build()
	if n := server.Calls() - calls; n > 300 || b.Built == 0 || !strings.Contains(b.warned, "its answers take") {
		t.Errorf("%d calls, %d built: %s", n, b.Built, b.warned)
	}
}

// TestSharedNothingAsked: a build in which nothing changed does not open the cache.
func TestSharedNothingAsked(t *testing.T) {
	server, err := reapitest.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	p := newProject(t, sharedProject)
	p.place = &sharing.Place{Remote: server.Address, WriteRemote: true}
	p.build()
	calls := server.Calls()
	for range 3 {
		p.build0()
	}
	p.touch("assets/b.txt", 5) // another time, the same content
	p.build0()
	if n := server.Calls() - calls; n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestSharedForced: what is asked for with --force runs, and a dry run asks nothing.
func TestSharedForced(t *testing.T) {
	first, second := newProject(t, sharedProject), newProject(t, sharedProject)
	sharingFolder(t, first, second)
	a := first.build()
	if b, err := second.try(context.Background(), Request{DryRun: true}); err != nil || b.FromCache != 0 || b.Built != a.Built {
		t.Errorf("%+v, %v", b.Summary, err)
	}
	second.build()
	if b := second.buildWith(Request{Force: true}); b.Built != a.Built || b.FromCache != 0 {
		t.Errorf("%+v", b.Summary)
	}
	third := newProject(t, sharedProject)
	third.place = first.place
	b, err := third.try(context.Background(), Request{Pull: true})
	if err != nil || b.FromCache != a.Built || b.ran != "" || b.stopped {
		t.Errorf("pulled %+v, ran %q, %v", b.Summary, b.ran, err)
	}
	third.write("assets/b.txt", "edited")
	b, err = third.try(context.Background(), Request{Pull: true})
	if err != nil || b.ran != "" || !b.stopped {
		t.Errorf("pulled %+v, ran %q, %v", b.Summary, b.ran, err)
	}
	third.build()
}
