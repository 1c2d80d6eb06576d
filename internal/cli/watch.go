package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/running/dashboard"
	"github.com/kiln-pipeline/kiln/internal/running/serve"
	"github.com/kiln-pipeline/kiln/internal/running/session"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

type watchFlags struct {
	quiet time.Duration
	poll  time.Duration
	lazy  bool // of kiln serve
}

func newWatchCommand(a *app) *cobra.Command {
	var f watchFlags
	var games gameFlags
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Build, and build again at every change",
		Long: `Build what is out of date, then follow the project's files and build again at every change, until it is
interrupted. An asset that fails keeps its last good products until it is fixed. Other kiln commands in the
project go on working meanwhile, and running games get what changes. kiln serve does the same and shows all
of it in a browser.`,
		GroupID: groupMake,
		Example: `  kiln watch                 follow all files of the project
  kiln watch --poll 2s       look at all files every two seconds: for drives that do not report changes`,
		Args:    atMost(0),
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.watch(cmd.Context(), f, games) },
	}
	f.add(cmd)
	games.add(cmd)
	return cmd
}

func (f *watchFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.DurationVar(&f.quiet, "quiet-time", 0, "how long `TIME` a file must be left alone before it is built (default 25ms)")
	fl.DurationVar(&f.poll, "poll", 0, "check all files every `TIME`, instead of relying on the system's change notifications")
}

func (f *watchFlags) check() error {
	for name, d := range map[string]time.Duration{"quiet-time": f.quiet, "poll": f.poll} {
		if d < 0 {
			return wrongUsage("write a time like 50ms or 2s", "--%s cannot be %v", name, d)
		}
	}
	return nil
}

// openSession opens the project as a session.
func (a *app) openSession(f watchFlags) (*session.Session, error) {
	dir, err := project.Find(a.dir)
	if err != nil {
		return nil, err
	}
	c := session.Config{Build: a.cfg.Project(dir), Platforms: a.platforms, Workers: a.workers, Quiet: f.quiet, Poll: f.poll}
	if f.lazy {
		c.Sooner = func() []control.Asset { return a.usedBefore(dir) }
	}
	return session.Open(c)
}

// usedBefore returns the assets that games used.
func (a *app) usedBefore(dir string) []control.Asset {
	state, platforms := filepath.Join(dir, project.StateFolder), a.platforms
	if len(platforms) == 0 {
		platforms = used.Platforms(state)
	}
	return serve.Used(state, platforms)
}

// watch builds until it is interrupted.
func (a *app) watch(ctx context.Context, f watchFlags, games gameFlags) error {
	s, err := a.openSession(f)
	if err != nil {
		return err
	}
	stop, err := a.answerOthers(s)
	if err != nil {
		return err
	}
	defer stop()
	server, err := a.listenFor(s, &games)
	switch {
	case err != nil && games.listen != serve.DefaultListen:
		return listenError(games.listen, err)
	case err != nil: // another watcher has the usual address; users who want games here as well set another one
		server = nil
		if a.verbose {
			fmt.Fprintf(a.errs, "games cannot connect: %v\n", err)
		}
	case a.verbose || games.listen != serve.DefaultListen:
		if err := a.tellServing(server.Addresses(), games.token); err != nil {
			return err
		}
	}
	teller := newWatchTeller(a, s)
	defer s.Follow(teller.tell)()
	pages := &latePages{server: server, config: dashboard.Config{Editor: dashboard.DefaultEditor, Project: a.open}}
	defer pages.close()
	k := &keys{a: a, s: s, teller: teller}
	if server != nil {
		k.page = func(ctx context.Context) error {
			if err := pages.open(); err != nil {
				return err
			}
			return openBrowser(ctx, pageAddress(server.Addresses()[0], games.token))
		}
	}
	return a.runSession(ctx, s, server, pages, k)
}

// latePages is a dashboard that is made at the first request: until then there is no page, and no event is stored.
type latePages struct {
	server *serve.Server
	config dashboard.Config
	mu     sync.Mutex
	pages  *dashboard.Dashboard
	stop   func()
}

func (l *latePages) open() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages == nil {
		l.pages, l.stop, err = l.server.Dashboard(l.config)
	}
	return err
}

func (l *latePages) close() {
	if l.pages != nil {
		l.stop()
		l.pages.Close()
	}
}

func (l *latePages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	pages := l.pages
	l.mu.Unlock()
	if pages == nil {
		http.Error(w, "press o where kiln watch runs, or start kiln serve", http.StatusNotFound)
		return
	}
	pages.ServeHTTP(w, r)
}

// watchTeller reports the builds of a session, one line each, and new and fixed problems.
type watchTeller struct {
	a       *app
	workers int
	show    *progress
	told    map[string]bool // messages of the last build that came to its end
	partly  map[string]bool // messages of the last build, if it did not
	all     diag.List       // messages of the last build
	wrong   []string        // files with errors that prevented the last build, sorted
	first   bool
	asked   bool   // a user asked for the next build
	keys    string // list of the keys
}

// problems shows the problems of the last build.
func (t *watchTeller) problems() {
	if t.a.tell(t.all); len(t.all) == 0 {
		fmt.Fprintln(t.a.errs, "no problems")
	}
}

func newWatchTeller(a *app, s *session.Session) *watchTeller {
	return &watchTeller{a: a, workers: s.Workers(), told: map[string]bool{}, first: true}
}

func (t *watchTeller) tell(e session.Event) {
	switch e := e.(type) {
	case session.Began:
		t.show = t.a.newProgress(t.workers)
	case session.Planned:
		t.show.Planned(e.Jobs)
	case session.JobStarted:
		t.show.JobStarted(e.Job)
	case session.JobSuspended:
		t.show.JobSuspended(e.Job, e.On, e.Begins)
	case session.JobMoved:
		t.show.JobMoved(e.Job, e.At)
	case session.JobFinished:
		t.show.JobFinished(e.Job, e.Failed, e.Took)
	case session.Ended:
		t.show.stop()
		t.ended(&e)
	case session.Noted:
		t.a.tell(diag.List{e.Message})
	}
}

// ended reports a build: messages that the build before did not have, and a line if anything changed.
func (t *watchTeller) ended(e *session.Ended) {
	var all diag.List
	if e.Err != nil {
		all = diag.Messages(e.Err, codeOf(e.Err))
	}
	if e.Report != nil {
		all = append(all, e.Report.Messages...)
	}
	fresh := t.fresh(all, e.Report != nil && !e.Report.Stopped)
	t.all = all
	t.a.tell(fresh)
	fixed := t.readable(e) + t.mended(e)
	if e.Report != nil && (t.first || t.asked || t.a.verbose || len(fresh)+fixed+len(e.Products)+e.Report.Summary.Built > 0) {
		t.line(e)
	}
	if t.first && !t.a.quiet && !t.a.json {
		fmt.Fprintln(t.a.errs, "watching; "+cmp.Or(t.keys, "Ctrl-C ends it"))
	}
	t.first, t.asked = false, false
}

// fresh returns the messages that were not shown before, and remembers them. A whole build has all messages that stand: what it
// does not repeat was fixed. A build that could not begin, or was stopped, has not.
func (t *watchTeller) fresh(all diag.List, whole bool) (fresh diag.List) {
	now, times := map[string]bool{}, map[string]int{}
	for _, m := range all {
		text := t.same(m)
		times[text]++
		k := fmt.Sprintf("%d %s", times[text], text)
		if now[k] = true; !t.told[k] && !t.partly[k] {
			fresh = append(fresh, m)
		}
	}
	if t.partly = now; whole {
		t.told, t.partly = now, nil
	}
	return fresh
}

// same is equal for messages that are shown once. A warning is not another one because the lines above it changed; with --json it
// is, since whoever marks its place in an editor has to know.
func (t *watchTeller) same(m *diag.Message) string {
	if m.Severity == diag.Error || t.a.json {
		return m.String()
	}
	without := *m
	without.Pos.Line, without.Pos.Column = 0, 0
	return without.String() + m.Line
}

// readable reports files (kiln.toml, rules and scripts) whose errors were fixed, so that builds are possible
// again, and returns their number.
func (t *watchTeller) readable(e *session.Ended) (files int) {
	var wrong []string
	if e.Err != nil {
		for _, m := range diag.Messages(e.Err, codeOf(e.Err)) {
			if m.File != "" && m.Severity == diag.Error {
				wrong = append(wrong, m.File)
			}
		}
	}
	slices.Sort(wrong)
	for _, f := range slices.Compact(t.wrong) {
		if _, still := slices.BinarySearch(wrong, f); still {
			continue
		}
		if files++; t.a.json {
			t.a.emit(mendedLine{"mended", f, ""})
		} else {
			fmt.Fprintf(t.a.errs, "%s: %s\n", t.a.paint(t.a.errs, green, "fixed"), oneLine(f))
		}
	}
	t.wrong = wrong
	return files
}

func (t *watchTeller) mended(e *session.Ended) (jobs int) {
	last := ""
	for _, f := range e.Mended {
		if t.a.json {
			t.a.emit(mendedLine{"mended", f.Asset, f.Platform})
		} else if f.Asset != last && !t.first {
			fmt.Fprintf(t.a.errs, "%s: %s\n", t.a.paint(t.a.errs, green, "fixed"), oneLine(f.Asset))
		}
		last = f.Asset
	}
	return len(e.Mended)
}

type mendedLine struct {
	Type     string `json:"type"`
	Asset    string `json:"asset"`
	Platform string `json:"platform"`
}

// mostNames is how many changed files are named in the line of a build.
const mostNames = 3

func (t *watchTeller) line(e *session.Ended) {
	a, sum := t.a, e.Report.Summary
	if a.json {
		for i := range e.Products {
			p := &e.Products[i]
			a.emit(changedLine{"changed", p.Asset, p.Platform, p.Name, p.Product.Type, strings.TrimPrefix(p.File, p.Platform+"/"), p.Hash.String(), p.Size, p.Gone})
		}
		a.emit(changeLine{newSummaryLine(sum, 0), e.Number, append([]string{}, e.Paths...)})
		return
	}
	text := ""
	if n := len(e.Paths); n > 0 {
		names := make([]string, min(n, mostNames))
		for i := range names {
			names[i] = oneLine(e.Paths[i])
		}
		if text = ": " + strings.Join(names, ", "); n > mostNames {
			text += fmt.Sprintf(" and %d more", n-mostNames)
		}
	}
	fmt.Fprintln(a.errs, a.summaryText(&sum)+text)
}

type changeLine struct {
	summaryLine
	Number int      `json:"number"`
	Paths  []string `json:"paths"`
}

type changedLine struct {
	Type     string `json:"type"`
	Asset    string `json:"asset"`
	Platform string `json:"platform"`
	Name     string `json:"name,omitempty"`
	Kind     string `json:"kind"`
	File     string `json:"file"`
	Hash     string `json:"hash"`
	Size     int64  `json:"size"`
	Gone     bool   `json:"gone,omitempty"`
}
