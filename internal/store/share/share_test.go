package share_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/sharetest"
)

func look(kind engine.Kind, subject, value string) engine.Observation {
	return engine.Observation{Kind: kind, Subject: subject, Value: digest.Of([]byte(value))}
}

func result() *share.Result {
	return &share.Result{
		Fingerprint: digest.Of([]byte("code")), Outcome: engine.Succeeded, Shareable: true, Messages: []byte("[]"),
		Products: []share.Product{
			{Product: engine.Product{SubID: 1 << 31, Name: "n", Type: "t", File: "pc/a.ktx2", References: []engine.Reference{
				{UUID: [16]byte{1}, SubID: 7, Required: true}, {},
			}}, Blob: sharetest.BlobOf([]byte("x"))},
			{Product: engine.Product{Type: "t", Extension: ".png"}, Blob: sharetest.BlobOf(nil)},
		},
		Brought: []share.Blob{sharetest.BlobOf([]byte("y"))},
	}
}

func TestResult(t *testing.T) {
	key, other := sharetest.KeyOf("a"), sharetest.KeyOf("b")
	want, run := result(), share.Run{Seconds: 1.5, Memory: 7}
	value := want.Encode(key, run, nil)
	got, ran, err := share.DecodeResult(key, want.Fingerprint, value, nil)
	if err != nil || ran != run || got.ID() != want.ID() {
		t.Fatal(ran, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := share.DecodeResult(other, want.Fingerprint, value, nil); err == nil {
		t.Error("the result of another key is taken")
	}
	if _, _, err := share.DecodeResult(key, digest.Hash{}, value, nil); err == nil {
		t.Error("the result of other code is taken")
	}
	for i := range value {
		bad := bytes.Clone(value)
		bad[i] ^= 0x10
		if _, _, err := share.DecodeResult(key, want.Fingerprint, bad, nil); err == nil {
			t.Errorf("a flipped bit in byte %d is taken", i)
		}
		if _, _, err := share.DecodeResult(key, want.Fingerprint, value[:i], nil); err == nil {
			t.Errorf("%d bytes of %d are taken", i, len(value))
		}
	}
}

// TestUnsound: well-formed results that no run comes to are refused.
func TestUnsound(t *testing.T) {
	key := sharetest.KeyOf("a")
	for name, spoil := range map[string]func(*share.Result){
		"no outcome":               func(r *share.Result) { r.Outcome = 0 },
		"unknown outcome":          func(r *share.Result) { r.Outcome = 9 },
		"failed, with products":    func(r *share.Result) { r.Outcome = engine.Failed },
		"succeeded, with a root":   func(r *share.Result) { r.Root = "x" },
		"a ring that is none":      func(r *share.Result) { r.Outcome, r.Products = engine.Cyclic, nil },
		"a file above":             func(r *share.Result) { r.Products[0].File = "pc/../../x" },
		"an absolute file":         func(r *share.Result) { r.Products[0].File = "/etc/x" },
		"a file without platform":  func(r *share.Result) { r.Products[0].File = "x" },
		"a file with a backslash":  func(r *share.Result) { r.Products[0].File = `pc\..\x` },
		"a file with an empty one": func(r *share.Result) { r.Products[0].File = "pc//x" },
		"a zero byte":              func(r *share.Result) { r.Products[0].Name = "a\x00b" },
	} {
		r := result()
		spoil(r)
		if _, _, err := share.DecodeResult(key, r.Fingerprint, r.Encode(key, share.Run{}, nil), nil); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestSigned(t *testing.T) {
	key, r := sharetest.KeyOf("a"), result()
	var said []byte
	value := r.Encode(key, share.Run{}, func(text []byte) []byte { said = text; return []byte("signed") })
	verify := func(text, signature []byte) bool { return bytes.Equal(text, said) && string(signature) == "signed" }
	if _, _, err := share.DecodeResult(key, r.Fingerprint, value, verify); err != nil {
		t.Error(err)
	}
	if _, _, err := share.DecodeResult(key, r.Fingerprint, r.Encode(key, share.Run{}, nil), verify); err == nil {
		t.Error("a result without a signature is taken")
	}
}

// TestResultKey: everything that a run looked at, and what it saw, is in the key.
func TestResultKey(t *testing.T) {
	hint := share.HintKey(digest.Of([]byte("task")))
	base := func() []engine.Observation { return []engine.Observation{look(16, "a", "1"), look(2, "b", "2")} }
	keys := map[share.Key]string{}
	add := func(name string, k share.Key) {
		if other, there := keys[k]; there {
			t.Errorf("%s and %s have one key", name, other)
		}
		keys[k] = name
	}
	add("base", share.ResultKey(hint, base(), ""))
	for name, change := range map[string]func(o []engine.Observation){
		"value": func(o []engine.Observation) { o[0].Value = digest.Hash{} }, "kind": func(o []engine.Observation) { o[0].Kind = 17 },
		"joined": func(o []engine.Observation) { o[1].Joined = true }, "sub id": func(o []engine.Observation) { o[1].SubID = 5 },
		"subject": func(o []engine.Observation) { o[1].Subject = "c" },
	} {
		o := base()
		change(o)
		add(name, share.ResultKey(hint, o, ""))
	}
	add("machine", share.ResultKey(hint, base(), "linux/amd64"))
	add("fewer", share.ResultKey(hint, base()[:1], ""))
	add("task", share.ResultKey(share.HintKey(digest.Of([]byte("other"))), base(), ""))
}

func TestHint(t *testing.T) {
	key := sharetest.KeyOf("a")
	h := &share.Hint{}
	leaf := func(v string) []engine.Observation { return []engine.Observation{look(16, "a.png", v)} }
	asks := func(v string) []engine.Observation {
		content := engine.Observation{Kind: engine.Content, SubID: 3, Subject: "pc\x00b"}
		return []engine.Observation{look(16, "a.gltf", v), look(engine.Outline, "pc\x00b", v), content}
	}
	for i := range 40 {
		h.Add(leaf(fmt.Sprint(i)))
		h.Add(asks(fmt.Sprint(i)))
	}
	if len(h.Lists) != 2 || len(h.Lists[0].Seen) != share.MaxSeen || len(h.Lists[1].Seen) != 1 {
		t.Fatalf("%d lists, %d, %d", len(h.Lists), len(h.Lists[0].Seen), len(h.Lists[1].Seen))
	}
	if h.Add(asks("39")) || !h.Add(leaf("39")) {
		t.Error("only what is new changes a hint")
	}
	got, err := share.DecodeHint(key, h.Encode(key))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, got); diff != "" {
		t.Error(diff)
	}
	for i := range 40 {
		h.Add([]engine.Observation{look(16, fmt.Sprint(i), "")})
	}
	if len(h.Lists) != share.MaxLists || h.Lists[0].Observations[0].Subject != "39" {
		t.Error(len(h.Lists))
	}
	if _, err := share.DecodeHint(sharetest.KeyOf("b"), h.Encode(key)); err == nil {
		t.Error("the hint of another key is taken")
	}
}

// TestHintLimit: of what is too much the oldest is left out, and what is too much by itself is not shared.
func TestHintLimit(t *testing.T) {
	key := sharetest.KeyOf("a")
	wide := func(n, from int) (run []engine.Observation) {
		for i := range n {
			run = append(run, look(engine.Outline, fmt.Sprintf("pc\x00some/folder/asset-%d", i), fmt.Sprint(i+from)))
		}
		return run
	}
	h := &share.Hint{}
	for i := range 16 {
		h.Add(wide(5000, i))
	}
	value := h.Encode(key)
	got, err := share.DecodeHint(key, value)
	if err != nil || len(value) > share.MaxValue || len(got.Lists) != 1 || !slices.Equal(got.Lists[0].Seen[0], h.Lists[0].Seen[0]) {
		t.Fatal(len(value), err)
	}
	h = &share.Hint{}
	h.Add(wide(200_000, 0))
	if value := h.Encode(key); value != nil {
		t.Error(len(value))
	}
}

func FuzzResult(f *testing.F) {
	key := sharetest.KeyOf("a")
	r := result()
	f.Add(r.Encode(key, share.Run{Seconds: 1}, nil))
	f.Add([]byte("KILN\x00res\x02"))
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, v := range [][]byte{value, sealed("KILN\x00res\x02", key, value)} {
			if r, run, err := share.DecodeResult(key, r.Fingerprint, v, nil); err == nil {
				again, _, err := share.DecodeResult(key, r.Fingerprint, r.Encode(key, run, nil), nil)
				if err != nil || again.ID() != r.ID() {
					t.Errorf("not the same when it is written again: %v", err)
				}
			}
		}
	})
}

func FuzzHint(f *testing.F) {
	key := sharetest.KeyOf("a")
	h := &share.Hint{}
	h.Add([]engine.Observation{look(16, "a", "1"), look(1, "b", "2")})
	value := h.Encode(key)
	f.Add(value)
	f.Add(value[9+32 : len(value)-32])
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, v := range [][]byte{value, sealed("KILN\x00hnt\x01", key, value)} {
			if h, err := share.DecodeHint(key, v); err == nil {
				again, err := share.DecodeHint(key, h.Encode(key))
				if err != nil || len(again.Lists) > len(h.Lists) {
					t.Errorf("not the same when it is written again: %v", err)
				}
			}
		}
	})
}

// sealed is an entry with any payload.
func sealed(magic string, key share.Key, payload []byte) []byte {
	b := append(append([]byte(magic), key[:]...), payload...)
	sum := digest.Of(b)
	return append(b, sum[:]...)
}
