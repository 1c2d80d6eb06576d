package kilnrt_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

func opened(t testing.TB, data []byte) *kilnrt.Parcel {
	t.Helper()
	p, err := kilnrt.OpenReaderAt(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shelf is a library with a loader that records its calls.
type shelf struct {
	*kilnrt.Library
	mu  sync.Mutex
	log []string
}

type thing struct {
	s    *shelf
	text string
}

func (x *thing) Unload() { x.s.note("-" + x.text) }

func (s *shelf) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, text)
}

func (s *shelf) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

func newShelf() *shelf {
	s := &shelf{Library: kilnrt.NewLibrary()}
	s.Register("data", func(l *kilnrt.Loading) (any, error) {
		b, err := l.Resource.Bytes()
		if err != nil {
			return nil, err
		}
		if string(b) == "broken" {
			return nil, errors.New("it is broken")
		}
		text := string(b)
		for _, n := range l.Needs {
			if n.Value == nil {
				text += fmt.Sprintf(" without %d", n.ID)
			} else {
				text += "(" + n.Value.(*thing).text + ")"
			}
		}
		s.note("+" + text)
		return &thing{s, text}, nil
	})
	return s
}

// data returns a resource of the type "data".
func data(id uint32, content string, needs ...uint32) parcel.Resource {
	return resource(id, content, "data", []byte(content), needs...)
}

// TestSharedContent checks that resources with the same bytes are loaded once, if they are of one parcel and one type
// and need nothing.
func TestSharedContent(t *testing.T) {
	s := newShelf()
	s.Register("text", func(l *kilnrt.Loading) (any, error) { s.note("+text"); return nil, nil })
	named := func(id uint32, content string, needs ...uint32) parcel.Resource {
		return resource(id, fmt.Sprint(content, id), "data", []byte(content), needs...)
	}
	s.Mount(opened(t, written(t, parcel.Options{}, named(1, "palette"), named(2, "palette"), named(3, "oak", 1), named(4, "fir", 2),
		named(5, "fir", 2), named(6, "other"), resource(7, "text", "text", []byte("palette")), named(8, ""), named(9, ""))))
	var handles []*kilnrt.Handle
	for id := range uint32(9) {
		h, err := s.Load(id + 1)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	want := []string{"+palette", "+oak(palette)", "+fir(palette)", "+fir(palette)", "+other", "+text", "+", "+"}
	if log := s.take(); !slices.Equal(log, want) {
		t.Errorf("loaded %q", log)
	}
	if handles[0].Value() != handles[1].Value() || handles[3].Value() == handles[4].Value() {
		t.Errorf("%v", handles)
	}
	for _, h := range handles[2:6] {
		h.Release()
	}
	handles[0].Release()
	if log := s.take(); slices.Contains(log, "-palette") {
		t.Errorf("unloaded %q, which another one has", log)
	}
	handles[1].Release()
	if log := s.take(); !slices.Equal(log, []string{"-palette"}) {
		t.Errorf("unloaded %q", log)
	}

	// Another parcel may contain anything, whatever its records claim.
	s.Mount(opened(t, written(t, parcel.Options{}, data(11, "palette"))))
	for _, id := range []uint32{1, 11} {
		if _, err := s.Load(id); err != nil {
			t.Fatal(err)
		}
	}
	if log := s.take(); !slices.Equal(log, []string{"+palette", "+palette"}) {
		t.Errorf("loaded %q", log)
	}
}

func TestLibrary(t *testing.T) {
	s := newShelf()
	knight := data(5, "knight", 2, 1)
	knight.Optional = []uint32{77, 3}
	s.Mount(opened(t, written(t, parcel.Options{}, data(1, "cape"), data(2, "body", 1), data(3, "plume"), knight, data(6, "broken"), data(7, "rider", 5, 6),
		data(8, "lost", 99), resource(9, "odd", "odd", nil))))
	h, err := s.Load(5)
	if err != nil {
		t.Fatal(err)
	}
	whole := "knight(body(cape))(cape) without 77(plume)"
	if got := h.Value().(*thing).text; got != whole {
		t.Errorf("loaded %q", got)
	}
	if log := s.take(); !slices.Equal(log, []string{"+cape", "+body(cape)", "+plume", "+" + whole}) {
		t.Errorf("loaded in the order %q", log)
	}
	body, err := s.LoadName("body")
	if err != nil || body.Value().(*thing).text != "body(cape)" {
		t.Errorf("%v, %v", body, err)
	}
	h.Release()
	h.Release()
	if log := s.take(); !slices.Equal(log, []string{"-" + whole, "-plume"}) {
		t.Errorf("unloaded %q", log)
	}
	for id, want := range map[uint32]error{7: nil, 8: kilnrt.ErrNotFound, 9: kilnrt.ErrNoLoader, 50: kilnrt.ErrNotFound} {
		if h, err := s.Load(id); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%d is loaded: %v, %v", id, h, err)
		}
	}
	s.take()
	body.Release()
	if log := s.take(); !slices.Equal(log, []string{"-body(cape)", "-cape"}) {
		t.Errorf("at last it unloads %q", log)
	}
}

// TestPanic checks that a loader that panics or ends its goroutine is an error for all waiting calls, and that the
// resource can be loaded again.
func TestPanic(t *testing.T) {
	for _, bad := range []func(){func() { panic(errBad) }, runtime.Goexit} {
		s := newShelf()
		s.Mount(opened(t, written(t, parcel.Options{}, resource(1, "one", "bad", []byte("one")), data(2, "two", 1), data(3, "three", 1))))
		begun, more := make(chan struct{}, 1), make(chan struct{})
		s.Register("bad", func(l *kilnrt.Loading) (any, error) {
			begun <- struct{}{}
			<-more
			bad()
			return nil, nil
		})
		errs := make(chan error, 3)
		load := func(id uint32) {
			err := errors.New("it did not return")
			defer func() { errs <- err }()
			_, err = s.Load(id)
		}
		go load(2)
		<-begun
		go load(3)
		go load(1)
		for s.Waiting(1) < 3 {
			runtime.Gosched()
		}
		close(more)
		for range 3 {
			if err := <-errs; err == nil {
				t.Error("it is loaded")
			} else if panicked := (*kilnrt.PanicError)(nil); errors.As(err, &panicked) && (!errors.Is(err, errBad) || !bytes.Contains(panicked.Stack, []byte("TestPanic"))) {
				t.Error(err)
			}
		}
		s.Register("bad", func(*kilnrt.Loading) (any, error) { return &thing{s, "one"}, nil })
		h, err := s.Load(2)
		if err != nil {
			t.Fatal(err)
		}
		h.Release()
		if log := s.take(); !slices.Equal(log, []string{"+two(one)", "-two(one)", "-one"}) {
			t.Errorf("%q", log)
		}
	}
}

var errBad = errors.New("bad")

// TestLayers checks that the topmost parcel counts, also for needs, and that loaded resources do not change.
func TestLayers(t *testing.T) {
	s := newShelf()
	s.Mount(opened(t, written(t, parcel.Options{}, data(1, "cape"), data(2, "body", 1))))
	before, err := s.Load(2)
	if err != nil {
		t.Fatal(err)
	}
	mod := opened(t, written(t, parcel.Options{}, data(1, "red cape"), data(3, "horse", 2)))
	s.Mount(mod)
	after, err := s.Load(3)
	if err != nil {
		t.Fatal(err)
	}
	if got := before.Value().(*thing).text; got != "body(cape)" {
		t.Errorf("what was loaded is now %q", got)
	}
	if r, err := s.Find(1); err != nil || r.Name() != "red cape" {
		t.Errorf("%q, %v", r.Name(), err)
	}
	before.Release()
	after.Release()
	s.Unmount(mod)
	if r, err := s.FindName("cape"); err != nil || r.ID != 1 {
		t.Errorf("%d, %v", r.ID, err)
	}
	if _, err := s.FindName("horse"); !errors.Is(err, kilnrt.ErrNotFound) {
		t.Errorf("the horse is still there: %v", err)
	}
}

// TestCycle mounts two valid parcels whose resources require each other.
func TestCycle(t *testing.T) {
	s := newShelf()
	s.Mount(opened(t, written(t, parcel.Options{}, data(1, "hen", 2))))
	s.Mount(opened(t, written(t, parcel.Options{}, data(2, "egg", 1))))
	if _, err := s.Load(1); !errors.Is(err, kilnrt.ErrCycle) {
		t.Errorf("%v", err)
	}
}

// TestAtOnce loads many resources concurrently. Each is loaded once, and unloaded when all are released.
func TestAtOnce(t *testing.T) {
	s := newShelf()
	var rs []parcel.Resource
	for i := range uint32(40) {
		r := data(i, fmt.Sprint("r", i))
		for k := range i {
			if (i*7+k)%5 == 0 && len(r.Required) < 3 {
				r.Required = append(r.Required, k)
			}
		}
		rs = append(rs, r)
	}
	s.Mount(opened(t, written(t, parcel.Options{}, rs...)))
	var wg sync.WaitGroup
	for g := range uint32(8) {
		wg.Go(func() {
			for i := range uint32(200) {
				h, err := s.Load((i*13 + g*5) % 40)
				if err != nil {
					t.Error(err)
					return
				}
				h.Release()
			}
		})
	}
	wg.Wait()
	loaded := map[string]int{}
	for _, l := range s.take() {
		if l[0] == '+' {
			loaded[l[1:]]++
		} else if loaded[l[1:]]--; loaded[l[1:]] < 0 {
			t.Errorf("%s is unloaded before it is loaded", l[1:])
		}
	}
	for name, n := range loaded {
		if n != 0 {
			t.Errorf("%s is left loaded %d times", name, n)
		}
	}
}

// FuzzParcel checks that no parcel makes a reader panic, and that reading costs no more than the bytes justify. Run it
// with -fuzzminimizetime 1x; otherwise the time is spent on minimizing seeds of 40 KB.
func FuzzParcel(f *testing.F) {
	for _, v := range conformanceSet(f) {
		f.Add(v.data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := kilnrt.OpenReaderAt(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		p.Check()
		l := kilnrt.NewLibrary()
		l.Register("", func(l *kilnrt.Loading) (any, error) { return l.Resource.Bytes() })
		l.Mount(p)
		for i := range min(p.Len(), 100) {
			r, err := p.At(i)
			if err != nil {
				continue
			}
			p.ByUUID(r.UUID, r.SubID)
			p.ByName(r.Name())
			if h, err := l.LoadResource(r); err == nil {
				h.Release()
			}
		}
		p.ByID(12345)
	})
}
