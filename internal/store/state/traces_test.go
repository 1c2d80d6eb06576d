package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/base/varint"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

func key(name string) engine.Key { return engine.Key(digest.Of([]byte(name))) }

// trace makes one that saw content in a file. Its name tells traces apart in tests.
func trace(name, content string) *engine.Trace {
	return &engine.Trace{
		Fingerprint: digest.Of([]byte("code")), Outcome: engine.Succeeded, Build: 7, Seconds: 0.25, Memory: 1 << 20, Messages: []byte(name),
		Observations: []engine.Observation{{Kind: engine.FirstLeaf, Subject: "file", Value: digest.Of([]byte(content))}},
		Products:     []engine.Product{{Name: name, Type: "texture", File: "pc/x.ktx2", Hash: digest.Of([]byte(name)), Size: 12}},
	}
}

// everything has something in each field.
func everything() *engine.Trace {
	o := engine.Observation{Kind: engine.Content, Joined: true, SubID: 1 << 31, Subject: "a\x00ü", Value: digest.Of([]byte("v"))}
	return &engine.Trace{
		Fingerprint: digest.Of([]byte("f")), Outcome: engine.Cyclic, Observations: []engine.Observation{o, {Kind: engine.Outline, Subject: ""}},
		Products: []engine.Product{
			{SubID: 9, Name: "n", Type: "t", File: "f", Hash: digest.Of([]byte("h")), Size: 1 << 40, Facts: "a=b\n", References: []engine.Reference{
				{UUID: [16]byte{1, 15: 2}, SubID: 3, Required: true}, {SubID: 4},
			}},
			{},
		},
		Messages: []byte("m\x00"), Root: "root", Cycle: []string{"a", "", "b"},
		Why:     &engine.Reason{Cause: engine.InputDiffers, Observation: o, New: digest.Of([]byte("n")), Subject: "s"},
		Seconds: 1e-9, Memory: -1, Build: 1 << 63, Shareable: true, Adopted: true, Worker: "worker-1", Origin: "server",
	}
}

func open(t testing.TB, path string) (*Traces, string) {
	t.Helper()
	tr, why, err := OpenTraces(path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr, why
}

// openWell wants nothing to be wrong.
func openWell(t testing.TB, path string) *Traces {
	t.Helper()
	tr, why := open(t, path)
	if why != "" {
		t.Fatalf("opening says %q", why)
	}
	return tr
}

func add(t testing.TB, tr *Traces, k string, ts ...*engine.Trace) {
	t.Helper()
	for _, x := range ts {
		if err := tr.Add(key(k), x); err != nil {
			t.Fatal(err)
		}
	}
}

func closeIt(t testing.TB, tr *Traces) {
	t.Helper()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
}

// names of the traces of a key, the one used last first.
func names(tr *Traces, k string) string {
	var ns []string
	for _, x := range tr.Traces(key(k)) {
		ns = append(ns, string(x.Messages))
	}
	return strings.Join(ns, " ")
}

func logPath(t testing.TB) string { return filepath.Join(t.TempDir(), "traces") }

func TestTracesRoundTrip(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	want := everything()
	plain := &engine.Trace{Outcome: engine.Failed}
	add(t, tr, "a", want)
	add(t, tr, "b", plain)
	if want.ID == 0 || plain.ID == 0 || want.ID == plain.ID {
		t.Errorf("IDs %d and %d", want.ID, plain.ID)
	}
	for _, readOnly := range []bool{false, true} {
		tr.Close()
		var why string
		var err error
		if tr, why, err = OpenTraces(path, readOnly); err != nil || why != "" {
			t.Fatal(why, err)
		}
		for k, w := range map[string]*engine.Trace{"a": want, "b": plain} {
			if diff := cmp.Diff([]*engine.Trace{w}, tr.Traces(key(k)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", k, diff)
			}
		}
		if tr.LastBuild() != 1<<63 || len(tr.Keys()) != 2 {
			t.Errorf("last build %d, %d keys", tr.LastBuild(), len(tr.Keys()))
		}
	}
	before, _ := os.ReadFile(path)
	add(t, tr, "c", trace("c", "")) // read only: memory alone
	tr.Use(key("c"), tr.Traces(key("c"))[0])
	closeIt(t, tr)
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("a log that was opened to be read was written")
	}
}

func TestReadOnlyOfNothingMakesNothing(t *testing.T) {
	path := logPath(t)
	tr, why, err := OpenTraces(path, true)
	if err != nil || why != "" || len(tr.Keys()) != 0 {
		t.Fatal(why, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a file")
	}
}

func TestOrderSurvives(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	add(t, tr, "k", trace("a", "1"), trace("b", "2"), trace("c", "3"))
	tr.Use(key("k"), tr.Traces(key("k"))[2])
	add(t, tr, "other", trace("x", "1"))
	add(t, tr, "gone", trace("y", "1"), trace("z", "2"))
	if err := tr.Forget(key("gone")); err != nil {
		t.Fatal(err)
	}
	look := func() {
		t.Helper()
		if got := names(tr, "k"); got != "a c b" {
			t.Errorf("traces %s", got)
		}
		if got := names(tr, "gone"); got != "" || len(tr.Keys()) != 2 {
			t.Errorf("forgotten, but: %q, %d keys", got, len(tr.Keys()))
		}
	}
	look()
	closeIt(t, tr)
	tr = openWell(t, path)
	look()
}

func TestKeptTraces(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	var want []string
	for i := range 3 * KeptTraces {
		n := fmt.Sprint(i)
		add(t, tr, "k", trace(n, n))
		want = append([]string{n}, want...)
	}
	for range 2 {
		if got := names(tr, "k"); got != strings.Join(want[:KeptTraces], " ") {
			t.Errorf("kept %s", got)
		}
		live := tr.live
		closeIt(t, tr)
		if tr = openWell(t, path); tr.live != live {
			t.Errorf("%d bytes live, before it was closed %d", tr.live, live)
		}
	}
	// One that holds under the same conditions takes the place of the older.
	add(t, tr, "k", trace("again", want[3]))
	if got := names(tr, "k"); strings.Contains(got, want[3]) || len(strings.Fields(got)) != KeptTraces {
		t.Errorf("kept %s", got)
	}
}

func TestCompaction(t *testing.T) {
	path := logPath(t)
	compactIt := func(t *testing.T, tr *Traces) {
		t.Helper()
		if err := tr.Compact(); err != nil {
			t.Fatal(err)
		}
	}
	tr := openWell(t, path)
	big := strings.Repeat("x", 20_000)
	for i := range 40 {
		for k := range 5 {
			x := trace(fmt.Sprint(i), fmt.Sprint(i%12))
			x.Root = big
			add(t, tr, fmt.Sprint(k), x)
		}
		tr.Use(key("3"), tr.Traces(key("3"))[len(tr.Traces(key("3")))-1])
	}
	want := map[engine.Key][]*engine.Trace{}
	for _, k := range tr.Keys() {
		want[k] = tr.Traces(k)
	}
	size := tr.Size()
	compactIt(t, tr)
	add(t, tr, "0", trace("more", "0")) // goes on
	want[key("0")] = tr.Traces(key("0"))
	find := map[engine.Key]int64{}
	for k := range want {
		find[k] = tr.Head(k)
	}
	mark, last := tr.Mark(), tr.LastBuild()
	closeIt(t, tr)
	chain, ok, err := OpenTracesAt(path, mark, last, func(k engine.Key) int64 { return find[k] })
	if !ok || err != nil {
		t.Fatalf("what was noted after compaction is not of this log: %v", err)
	}
	for k, w := range want {
		if diff := cmp.Diff(w, chain.Traces(k)); diff != "" || chain.Damaged() {
			t.Error(diff)
		}
	}
	closeIt(t, chain)
	tr = openWell(t, path)
	if tr.Size() > size/2 {
		t.Errorf("%d bytes of %d are left", tr.Size(), size)
	}
	if len(tr.Keys()) != 5 {
		t.Errorf("%d keys", len(tr.Keys()))
	}
	for k, w := range want {
		if diff := cmp.Diff(w, tr.Traces(k)); diff != "" {
			t.Error(diff)
		}
	}
	compacted, _ := os.ReadFile(path)
	compactIt(t, tr)
	closeIt(t, tr)
	if again, _ := os.ReadFile(path); !bytes.Equal(compacted, again) {
		t.Error("a log without waste was written again")
	}
}

// small is a log of a few records, and what it tells up to each boundary of records.
func small(t *testing.T) (data []byte, at []int, states []string) {
	path := logPath(t)
	tr := openWell(t, path)
	note := func() { at, states = append(at, int(tr.Size())), append(states, names(tr, "k")+"|"+names(tr, "l")) }
	note()
	add(t, tr, "k", trace("a", "1"))
	note()
	// A trace that takes the place of another one comes after a record that says how long that one was used.
	at, states = append(at, int(tr.Size())+recordHead+keyedHead+16), append(states, states[1])
	add(t, tr, "k", everything())
	note()
	add(t, tr, "l", trace("c", "1"))
	note()
	tr.Use(key("k"), tr.Traces(key("k"))[1])
	note()
	if err := tr.Forget(key("l")); err != nil {
		t.Fatal(err)
	}
	note()
	add(t, tr, "l", trace("d", "1"))
	note()
	closeIt(t, tr)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, at, states
}

// TestDamage cuts a log at every byte, and flips a bit of every byte: what comes before the record that is hit stays.
func TestDamage(t *testing.T) {
	data, at, states := small(t)
	path := logPath(t)
	check := func(what string, damaged []byte, hit int, intact bool) {
		t.Helper()
		if err := os.WriteFile(path, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		if ro, why, err := OpenTraces(path, true); err != nil || (why == "") != intact || strings.Contains(why, "\n") {
			t.Fatalf("%s: read only: %q, %v", what, why, err)
		} else if got := names(ro, "k") + "|" + names(ro, "l"); got != states[hit] {
			t.Fatalf("%s: read only: %q, want %q", what, got, states[hit])
		}
		tr, why := open(t, path)
		if (why == "") != intact {
			t.Fatalf("%s: says %q", what, why)
		}
		if got := names(tr, "k") + "|" + names(tr, "l"); got != states[hit] {
			t.Fatalf("%s: %q, want %q", what, got, states[hit])
		}
		add(t, tr, "new", trace("new", "1"))
		closeIt(t, tr)
		tr = openWell(t, path)
		if got := names(tr, "k") + "|" + names(tr, "l"); got != states[hit] || names(tr, "new") != "new" {
			t.Fatalf("%s: after another one: %q, %q", what, got, names(tr, "new"))
		}
		closeIt(t, tr)
	}
	for i := range data {
		hit, ok := slices.BinarySearch(at, i)
		if !ok {
			hit = max(0, hit-1)
		}
		if ok || i%16 == 0 {
			check(fmt.Sprintf("cut at %d", i), data[:i], hit, ok || i == 0)
		}
		load := func(what string, damaged []byte) {
			t.Helper()
			tr := &Traces{byKey: newIndex(0)}
			good, why := tr.load(damaged)
			if got := names(tr, "k") + "|" + names(tr, "l"); got != states[hit] || why == "" {
				t.Fatalf("%s: %q, want %q; says %q", what, got, states[hit], why)
			}
			if i >= logHead && good != int64(at[hit]) {
				t.Fatalf("%s: %d bytes are good, want %d", what, good, at[hit])
			}
		}
		if !ok && i > 0 {
			load(fmt.Sprintf("cut at %d", i), data[:i])
		}
		for bit := range 8 {
			flipped := slices.Clone(data)
			flipped[i] ^= 1 << bit
			load(fmt.Sprintf("flip of bit %d at %d", bit, i), flipped)
			if i%64 == bit {
				check(fmt.Sprintf("flip of bit %d at %d", bit, i), flipped, hit, false)
			}
		}
	}
}

func TestOtherTraces(t *testing.T) {
	first, err := os.ReadFile("testdata/traces-v1") // three traces, written by the version before there were times
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"x", "a text of some length", string(header(tracesMagic, TracesVersion+1)), string(header(snapshotMagic, 1)), string(first)} {
		path := logPath(t)
		if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		tr, why := open(t, path)
		if why == "" || len(tr.Keys()) != 0 {
			t.Errorf("%q: says %q", data, why)
		}
		if strings.HasPrefix(data, "KILN\x00trc") && why != fmt.Sprintf("the trace log has version %d, not %d; all jobs run again", data[8], TracesVersion) {
			t.Errorf("%q: says %q", data, why)
		}
		add(t, tr, "k", trace("a", "1"))
		closeIt(t, tr)
		if got := names(openWell(t, path), "k"); got != "a" {
			t.Errorf("%q: then has %q", data, got)
		}
	}
}

// A log that cannot be written keeps what it has.
func TestTracesWriteError(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	add(t, tr, "k", trace("a", "1"))
	tr.file.Close()
	if err := tr.Add(key("k"), trace("b", "2")); err == nil {
		t.Error("no error")
	}
	tr.Use(key("k"), tr.Traces(key("k"))[0])
	if err := tr.Forget(key("k")); err == nil {
		t.Error("no error")
	}
	if err := tr.Close(); err == nil {
		t.Error("no error")
	}
	if got := names(openWell(t, path), "k"); got != "a" {
		t.Errorf("has %q", got)
	}
}

// A record that no reader would take must not be written: it would hide all that comes after it.
func TestRecordTooLarge(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	add(t, tr, "k", trace("a", "1"))
	tr.enc.Buf = make([]byte, recordHead+MaxRecord+1)
	if _, err := tr.append(key("k")); err == nil {
		t.Error("no error")
	}
	add(t, tr, "k", trace("c", "3"))
	closeIt(t, tr)
	if got := names(openWell(t, path), "k"); got != "c a" {
		t.Errorf("has %q", got)
	}
}

func TestConcurrentAdd(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			for j := range 50 {
				add(t, tr, fmt.Sprint(j), trace(fmt.Sprint(i), fmt.Sprint(i)))
				tr.Traces(key(fmt.Sprint(j)))
			}
		})
	}
	g.Wait()
	closeIt(t, tr)
	tr = openWell(t, path)
	for _, k := range tr.Keys() {
		if n := len(tr.Traces(k)); n != 8 {
			t.Errorf("%d traces", n)
		}
	}
	if len(tr.Keys()) != 50 {
		t.Errorf("%d keys", len(tr.Keys()))
	}
}

// record frames a payload.
func record(payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return append(b, payload...)
}

// FuzzTraces reads bytes as a log, and as the payload of one record whose checksum is right.
func FuzzTraces(f *testing.F) {
	path := filepath.Join(f.TempDir(), "traces")
	tr, _, err := OpenTraces(path, false)
	if err != nil {
		f.Fatal(err)
	}
	for _, x := range []*engine.Trace{everything(), trace("a", "1"), trace("b", "2")} {
		if err := tr.Add(key("k"), x); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(tr.enc.Buf[recordHead:]))
	}
	tr.Use(key("k"), tr.Traces(key("k"))[1])
	f.Add(bytes.Clone(tr.enc.Buf[recordHead:]))
	tr.Close()
	log, _ := os.ReadFile(path)
	f.Add(log)
	f.Add([]byte{recordForget})
	f.Fuzz(func(t *testing.T, data []byte) {
		headed := logHeader(1)
		for _, in := range [][]byte{data, slices.Concat(headed, data), slices.Concat(headed, record(data)), slices.Concat(headed, record(data), record(data))} {
			tr := &Traces{byKey: newIndex(0)}
			good, why := tr.load(in)
			if good < 0 || good > int64(len(in)) || why == "" && good != int64(len(in)) {
				t.Fatalf("%d of %d bytes are good: %q", good, len(in), why)
			}
			consistent(t, tr, good)
		}
	})
}

func consistent(t *testing.T, tr *Traces, size int64) {
	t.Helper()
	var memory int64
	for v := range tr.byKey.All() {
		k, xs := v.key, v.traces()
		if len(xs) > KeptTraces || v.more != nil && len(xs) != len(v.more.used) {
			t.Fatalf("%d traces, %v", len(xs), v.more)
		}
		for _, x := range xs {
			if x.Outcome < engine.Succeeded || x.Outcome > engine.Cyclic || x.Outcome == engine.Cyclic && len(x.Cycle) == 0 {
				t.Fatalf("outcome %d, ring %q", x.Outcome, x.Cycle)
			}
			memory += int64(cap(x.Observations)*64 + cap(x.Products)*128 + cap(x.Cycle)*16)
			for i := range x.Products {
				memory += int64(cap(x.Products[i].References) * 24)
			}
			// What was read can be written, and read again.
			var e varint.Encoder
			encodeTrace(&e, x)
			d := varint.Decoder{Buf: e.Buf}
			again, _ := decodeTrace(&d, &slabs{})
			if again.ID = x.ID; d.Err != nil || !cmp.Equal(x, again) {
				// NaN is not a number that is equal to itself.
				if x.Seconds == x.Seconds {
					t.Fatalf("%v: %v", d.Err, cmp.Diff(x, again))
				}
			}
			if !slices.Contains(tr.Traces(k), x) {
				t.Fatal("a trace is not found")
			}
		}
	}
	if memory > 16*size {
		t.Fatalf("%d bytes for %d", memory, size)
	}
}

// TestTracesAt adds, uses and forgets traces at random, and wants a log that is read key by key to tell the same as one that is read whole.
func TestTracesAt(t *testing.T) {
	seed := thorough.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	path := logPath(t)
	heads := map[engine.Key]int64{}
	find := func(k engine.Key) int64 { return heads[k] }
	tr := openWell(t, path)
	for round := range 40 {
		touched := map[string]bool{}
		for range 1 + rng.IntN(8) {
			k := fmt.Sprint(rng.IntN(6))
			touched[k] = true
			switch n := len(tr.Traces(key(k))); {
			case n > 1 && rng.IntN(3) == 0:
				tr.Use(key(k), tr.Traces(key(k))[rng.IntN(n)])
			case rng.IntN(12) == 0:
				if err := tr.Forget(key(k)); err != nil {
					t.Fatal(err)
				}
			default:
				add(t, tr, k, trace(fmt.Sprint(rng.IntN(12)), fmt.Sprint(rng.IntN(12))))
			}
		}
		for k := range touched {
			heads[key(k)] = tr.Head(key(k))
		}
		mark, last := tr.Mark(), tr.LastBuild()
		closeIt(t, tr)
		whole, why, err := OpenTraces(path, true)
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		if got := (Mark{whole.made, whole.size, whole.live}); round%2 == 0 && got.Live != mark.Live {
			t.Fatalf("round %d: %d bytes live, but %d by the mark", round, got.Live, mark.Live)
		}
		var ok bool
		if tr, ok, err = OpenTracesAt(path, mark, last, find); !ok || err != nil {
			t.Fatalf("round %d: %t, %v", round, ok, err)
		}
		for i := range 6 {
			k := key(fmt.Sprint(i))
			if diff := cmp.Diff(whole.Traces(k), tr.Traces(k), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("round %d, key %d (-whole +by key):\n%s", round, i, diff)
			}
		}
		if tr.Damaged() {
			t.Fatal("said to be damaged")
		}
	}
	closeIt(t, tr)
}

// TestTracesAtAnother opens a log that is not what it was.
func TestTracesAtAnother(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	add(t, tr, "k", trace("a", "1"))
	mark, head := tr.Mark(), tr.Head(key("k"))
	closeIt(t, tr)
	find := func(engine.Key) int64 { return head }
	data, _ := os.ReadFile(path)
	for what, d := range map[string][]byte{
		"longer": append(slices.Clone(data), 0), "shorter": data[:len(data)-1], "begun at another time": slices.Concat(logHeader(mark.Made+1), data[logHead:]), "empty": nil,
	} {
		if err := os.WriteFile(path, d, 0o666); err != nil {
			t.Fatal(err)
		}
		if tr, ok, err := OpenTracesAt(path, mark, 1, find); ok || tr != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A record that is damaged, another key's, or one that points at itself, makes that the key has no traces.
	for i := logHead; i < len(data); i++ {
		flipped := slices.Clone(data)
		flipped[i] ^= 4
		if err := os.WriteFile(path, flipped, 0o666); err != nil {
			t.Fatal(err)
		}
		tr, ok, err := OpenTracesAt(path, mark, 1, find)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if got := tr.Traces(key("k")); len(got) > 0 || !tr.Damaged() {
			t.Fatalf("byte %d: %d traces, damaged %t", i, len(got), tr.Damaged())
		}
		tr.file.Close()
	}
	for _, at := range []int64{1, logHead + 1, mark.Size - 4, mark.Size, mark.Size + 1, -1} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		tr, ok, err := OpenTracesAt(path, mark, 1, func(engine.Key) int64 { return at })
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if got := tr.Traces(key("k")); len(got) > 0 || !tr.Damaged() {
			t.Errorf("at %d: %d traces", at, len(got))
		}
		tr.file.Close()
	}
}

// The last trace that succeeded stays although many that failed are newer.
func TestLastGoodStays(t *testing.T) {
	path := logPath(t)
	tr := openWell(t, path)
	add(t, tr, "k", trace("older", "0"))
	add(t, tr, "k", trace("good", "1"))
	for i := range 2 * KeptTraces {
		bad := trace(fmt.Sprint("bad", i), fmt.Sprint("b", i))
		bad.Outcome, bad.Products = engine.Failed, nil
		add(t, tr, "k", bad)
	}
	want := names(tr, "k")
	if all := tr.Traces(key("k")); len(all) != KeptTraces || all[KeptTraces-1].Outcome != engine.Succeeded || !strings.HasSuffix(want, " good") {
		t.Errorf("kept %q", want)
	}
	closeIt(t, tr)
	if got := names(openWell(t, path), "k"); got != want {
		t.Errorf("read %q, not %q", got, want)
	}
}
