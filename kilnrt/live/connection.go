package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// outbox has the messages for the watcher. When a connection breaks, the next one sends them, except answers to the old one.
type outbox struct {
	applied  *applied
	used     []uint32
	logs     []logLine
	dropped  int
	requests []request
}

// maxLogs is the number of log lines that are kept while there is no connection.
const maxLogs = 1000

// Connect connects to a watcher, and waits for its list of resources, or until the context ends. The context is only for that: close the
// library with Close.
func Connect(ctx context.Context, o Options) (*Library, error) {
	if o.Address == "" { // the environment's token is for that address only
		o.Address = cmp.Or(os.Getenv("KILN_LIVE_ADDRESS"), DefaultAddress)
		o.Token = cmp.Or(o.Token, os.Getenv("KILN_LIVE_TOKEN"))
	}
	if _, err := o.url("ws", "/live/v1"); err != nil {
		return nil, err
	}
	l := newLibrary(o)
	l.ended.Go(l.stay)
	l.ended.Go(l.stage)
	select {
	case <-l.first:
	case <-ctx.Done():
		l.Close()
		return nil, fmt.Errorf("live: no watcher: %w", ctx.Err())
	}
	l.mu.Lock()
	err := l.refused
	l.mu.Unlock()
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// newLibrary returns a library without a connection.
func newLibrary(o Options) *Library {
	l := &Library{options: o, http: o.HTTP, loaders: map[string]Loader{}, table: newTable(), news: newTable(), ordered: map[key]bool{}, loaded: map[key]*entry{}, ready: map[[32]byte][]byte{},
		failures: map[string][]Message{}, requests: map[int64]chan *fromWatcher{}, first: make(chan struct{}), changed: make(chan struct{}),
		outNews: make(chan struct{}, 1), stageNews: make(chan struct{}, 1)}
	if l.http == nil {
		l.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: fetchers}}
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Close ends the connection. Loaded resources stay; release them at any time.
func (l *Library) Close() {
	l.stop()
	l.ended.Wait()
	l.http.CloseIdleConnections()
}

// Connected reports whether there is a connection to the watcher.
func (l *Library) Connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connected
}

// Log writes a line to the dashboard. level is "debug", "info", "warning" or "error".
func (l *Library) Log(level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.out.logs) >= maxLogs {
		l.out.dropped++
		return
	}
	l.out.logs = append(l.out.logs, logLine{"log", level, text})
	poke(l.outNews)
}

// say reports a Poll to the watcher. Two reports that were not sent yet are merged. The caller holds mu.
func (l *Library) say(a applied) {
	if !l.level {
		return
	}
	if old := l.out.applied; old != nil {
		a.Seq = max(old.Seq, a.Seq) // a report of resources loaded on request has none
		a.Swapped = append(old.Swapped, a.Swapped...)
		a.Refused = append(old.Refused, a.Refused...)
	}
	l.out.applied = &a
	poke(l.outNews)
}

// nowUsed notes the first load of a resource. The caller holds mu.
func (l *Library) nowUsed(r *Resource, k key) {
	if !l.ordered[k] {
		l.ordered[k] = true
		l.order = append(l.order, k)
	}
	if l.level { // else sayUsed reports it, with the number that it has then
		l.out.used = append(l.out.used, r.ID)
		poke(l.outNews)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *Library) notify(e Event) {
	if l.options.Notify != nil {
		l.options.Notify(e)
	}
}

// stay keeps a connection as long as the library is open and the watcher accepts it.
func (l *Library) stay() {
	wait := retryFirst
	for l.ctx.Err() == nil {
		began := time.Now()
		err := l.converse()
		l.mu.Lock()
		was := l.connected
		l.connected = false
		for _, c := range l.requests {
			close(c)
		}
		clear(l.requests)
		if errors.Is(err, ErrRefused) {
			l.refused = err
			l.begun()
		}
		l.mu.Unlock()
		if l.ctx.Err() != nil {
			return
		}
		if was {
			l.notify(Disconnected{err})
		}
		if errors.Is(err, ErrRefused) {
			return
		}
		if time.Since(began) > retryMost {
			wait = retryFirst
		}
		select {
		case <-l.ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

// begun lets Connect return. The caller holds mu.
func (l *Library) begun() {
	select {
	case <-l.first:
	default:
		close(l.first)
	}
}

// converse connects, and handles messages of the watcher until the connection ends.
func (l *Library) converse() error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	address, err := l.options.url("ws", "/live/v1")
	if err != nil {
		return err
	}
	o := &websocket.DialOptions{HTTPClient: l.http, Subprotocols: []string{"kiln.live.v1"}, HTTPHeader: http.Header{}}
	if l.options.Token != "" {
		o.HTTPHeader.Set("Authorization", "Bearer "+l.options.Token)
	}
	limit := l.options.patience() // until the welcome
	dialling, dialled := context.WithTimeout(ctx, limit)
	conn, resp, err := websocket.Dial(dialling, address, o)
	dialled()
	if err != nil {
		if resp != nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized) {
			return fmt.Errorf("%w: %s", ErrRefused, resp.Status)
		}
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage)
	if err := send(ctx, conn, l.hello()); err != nil {
		return err
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	var page *change
	for started := false; ; {
		data, err := receive(ctx, conn, limit)
		if err != nil {
			return err
		}
		var m fromWatcher
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("live: %w", err)
		}
		if page, err = l.heard(&m, page); err != nil {
			return err
		}
		if m.Type == "welcome" && !started {
			started, limit = true, l.options.silence(m.Beat)
			writing.Go(func() { l.write(ctx, conn) })
		}
	}
}

// silence is how long a watcher may be silent that gives a sign of life so often; 0: for ever.
func (o *Options) silence(beat int64) time.Duration {
	if beat <= 0 || beat > maxBeat {
		return 0
	}
	return max(o.patience(), 2*time.Duration(beat)*time.Millisecond)
}

// receive waits for a message; limit 0: for ever.
func receive(ctx context.Context, conn *websocket.Conn, limit time.Duration) ([]byte, error) {
	if limit > 0 {
		in, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = in
	}
	_, data, err := conn.Read(ctx)
	return data, err
}

func send(ctx context.Context, conn *websocket.Conn, m any) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, data)
}

func (l *Library) hello() hello {
	l.mu.Lock()
	defer l.mu.Unlock()
	return hello{Type: "hello", Version: Version, Game: l.options.Game, Client: "kilnrt/live", Platform: l.options.Platform, Epoch: l.epoch, Seq: l.seq,
		List: true, Parcels: l.options.Parcels}
}

// write sends the outbox.
func (l *Library) write(ctx context.Context, conn *websocket.Conn) {
	for {
		for _, m := range l.take() {
			if send(ctx, conn, m) != nil {
				conn.CloseNow()
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-l.outNews:
		}
	}
}

// take empties the outbox.
func (l *Library) take() (all []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.out
	l.out = outbox{}
	for _, r := range o.requests {
		all = append(all, r)
	}
	if o.applied != nil {
		all = append(all, o.applied)
	}
	if len(o.used) > 0 {
		all = append(all, used{"used", o.used})
	}
	for _, line := range o.logs {
		all = append(all, line)
	}
	if o.dropped > 0 {
		all = append(all, logLine{"log", "warning", fmt.Sprintf("%d lines were dropped while there was no watcher", o.dropped)})
	}
	return all
}

// heard handles a message. page is the pages of a list or change received so far.
func (l *Library) heard(m *fromWatcher, page *change) (*change, error) {
	switch m.Type {
	case "welcome":
		l.welcomed(m)
	case "list", "changed":
		if page == nil {
			page = newChange()
		}
		lines, err := m.lines(l)
		if err != nil {
			return nil, err
		}
		for _, r := range lines {
			page.resources[r.ID] = r
		}
		if len(page.resources) > maxResources {
			return nil, fmt.Errorf("live: more than %d resources", maxResources)
		}
		for _, id := range m.Removed {
			page.resources[id] = nil
		}
		if m.More {
			return page, nil
		}
		page.seq, page.whole = m.Seq, m.Type == "list"
		l.told(page)
		return nil, nil
	case "failed":
		l.mu.Lock()
		l.failures[m.Asset] = m.Messages
		l.mu.Unlock()
		l.notify(Failed{m.Asset, m.Messages})
	case "mended":
		l.mu.Lock()
		delete(l.failures, m.Asset)
		l.mu.Unlock()
		l.notify(Mended{m.Asset})
	case "reply":
		l.mu.Lock()
		if c := l.requests[m.Request]; c != nil {
			delete(l.requests, m.Request)
			c <- m
		}
		l.mu.Unlock()
	case "reload":
		c := newChange()
		c.reloadAll = len(m.IDs) == 0
		for _, id := range m.IDs {
			c.reload[id] = true
		}
		l.told(c)
	case "refused":
		return nil, fmt.Errorf("%w: %s", ErrRefused, m.Reason)
	}
	return page, nil
}

func (l *Library) welcomed(m *fromWatcher) {
	l.mu.Lock()
	l.connected, l.coming, l.level = true, m.Epoch, m.Resumed
	l.out.used = nil
	if !m.Resumed {
		l.out.applied = nil // of other numbers
		clear(l.failures)
	}
	if m.Resumed {
		l.sayUsed()
	}
	l.mu.Unlock()
	poke(l.stageNews)
	l.notify(Connected{m.Project, m.Platform, m.Resumed})
}

// sayUsed reports the loaded resources to a watcher that does not know them. The caller holds mu.
func (l *Library) sayUsed() {
	l.out.used = nil
	for _, k := range l.order {
		if r := l.news.byKey[k]; r != nil {
			l.out.used = append(l.out.used, r.ID)
		}
	}
	poke(l.outNews)
}

// told handles a complete change. If nothing is loaded, there is nothing to wait for.
func (l *Library) told(c *change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.seq > 0 || c.whole { // only now: half a list cannot be resumed
		l.epoch, l.seq, l.level = l.coming, c.seq, true
	}
	c.apply(l.news)
	if len(l.loaded) == 0 && l.incoming == nil && l.fetching == nil && l.arrived == nil {
		c.apply(l.table)
		l.say(applied{Type: "applied", Seq: c.seq})
	} else {
		l.incoming = l.incoming.then(c)
	}
	if c.whole {
		l.sayUsed()
		l.begun()
	}
	close(l.changed)
	l.changed = make(chan struct{})
	poke(l.stageNews)
}

// ask has the watcher build the asset of a resource, which is named by one of the fields, and waits for its answer. The
// resource is then in the newest table.
func (l *Library) ask(r request) error {
	c := make(chan *fromWatcher, 1)
	l.mu.Lock()
	if !l.connected {
		l.mu.Unlock()
		return errors.New("there is no watcher to ask for it")
	}
	l.asked++
	l.requests[l.asked] = c
	r.Type, r.Request = "request", l.asked
	l.out.requests = append(l.out.requests, r)
	l.mu.Unlock()
	poke(l.outNews)
	select {
	case m := <-c:
		if m == nil {
			return errors.New("the connection broke while the watcher built it")
		}
		if m.Reason != "" {
			return errors.New(m.Reason)
		}
		return nil
	case <-l.ctx.Done():
		return ErrClosed
	}
}

// fetchers is the number of contents that are fetched at once.
const fetchers = 4

// stage fetches the contents of changes for the next Poll, and then makes them available to it.
func (l *Library) stage() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.stageNews:
		}
		l.mu.Lock()
		c := l.incoming
		if c == nil {
			l.mu.Unlock()
			continue
		}
		l.incoming, l.fetching = nil, c
		pl := newPlan(l, l.news, l.arrived.then(c))
		pl.addLoaded()
		have := maps.Clone(l.ready)
		l.mu.Unlock()

		err := l.fetchAll(pl.contents(), have)

		l.mu.Lock()
		l.fetching = nil
		if err == nil {
			l.arrived, l.ready = l.arrived.then(c), have // only this goroutine adds to arrived; an earlier change may have been applied
		} else if more := l.incoming; more != nil { // wait for the change that replaced it, or for the watcher to come back
			l.incoming = c.then(more)
		} else {
			l.incoming = c
		}
		again := err == nil && l.incoming != nil
		l.mu.Unlock()
		if again {
			poke(l.stageNews)
		}
		if err != nil {
			time.AfterFunc(retryMost, func() { poke(l.stageNews) })
			continue
		}
		l.notify(Arrived{})
	}
}

// fetchAll fetches the contents of resources that are not in have, and adds them to it.
func (l *Library) fetchAll(want []*Resource, have map[[32]byte][]byte) error {
	var missing []*Resource
	for _, r := range want {
		if _, ok := have[r.Hash]; !ok {
			have[r.Hash] = nil
			missing = append(missing, r)
		}
	}
	got := make([][]byte, len(missing))
	errs := make([]error, len(missing))
	var running sync.WaitGroup
	slots := make(chan struct{}, fetchers)
	for i, r := range missing {
		slots <- struct{}{}
		running.Go(func() {
			got[i], errs[i] = l.fetch(r.Hash, r.Size)
			<-slots
		})
	}
	running.Wait()
	for i, r := range missing {
		have[r.Hash] = got[i]
	}
	return errors.Join(errs...)
}
