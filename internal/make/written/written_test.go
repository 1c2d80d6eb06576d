package written

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// sample has every field set.
func sample() (*Job, *Log) {
	c := Content{SHA256: sha256.Sum256([]byte("a")), Size: 1}
	p := processor.Product{
		AssetID: "a.png", UUID: "u", Name: "n", SubID: 7, Type: "texture", File: "a.ktx2", Extension: ".ktx2", Processor: "texture", Part: "p",
		Platform: "web",
	}
	out := &processor.Output{
		Name: "n", Type: "t", Extension: ".e", References: []processor.Reference{{UUID: "u", SubID: 1, Required: true}},
		Facts: map[string]string{"b": "2", "a": "1"}, Hidden: true,
	}
	calls := []Call{
		{Kind: Open, Names: []string{"a.png"}},
		{Kind: Request, Requests: []Asked{{Processor: "texture", Name: "n", Settings: "{}", Path: "p", Product: &p, Bytes: &c, Extension: ".png"}}},
		{Kind: Reference, Names: []string{"a", "b"}, Yes: true},
		{Kind: Read, Product: &p},
		{Kind: Assets, Names: []string{"**"}},
		{Kind: Try, Names: []string{"a", "web", "texture"}},
		{Kind: Tool, Names: []string{"cp"}},
		{Kind: Needed},
		{Kind: Create, Output: out, Content: c},
		{Kind: Warn, Problem: &processor.Problem{Code: "c", Path: "p", Line: 1, Column: 2, Length: 3, Text: "t", Hint: "h"}},
		{Kind: Memory, Number: 5},
	}
	j := &Job{
		Version: "1.2", Kiln: digest.Of([]byte("k")), Processor: "texture", Part: "p", Platform: "pc", Settings: "x = 1\n", Inputs: []string{"*.h"},
		Project: &Folders{Roots: []string{"a"}, Scratch: "t", Built: []string{"b"}, State: []string{"s"}, Shipped: []string{"i"}},
		Own: &Own{Script: "s", Wasm: "w", Program: &Program{
			Args: []string{"p", "{in}"}, Env: []string{"V"}, Output: ".o", Outputs: []Named{{"x", ".x"}}, Network: true,
			Settings: []Named{{"s", "int64"}}, Traced: true,
		}, Folder: true, Version: 3, Extensions: []string{".a"}, Timeout: time.Second, Memory: 9},
		Asset: processor.Asset{ID: "a.png", UUID: "u", Path: "a.png", Folder: true, Made: true},
		Answers: map[string]Answer{
			calls[0].Key(): {Missing: "m", Content: c, Yes: true, Names: []string{"x"}, Asset: processor.Asset{ID: "b"}, Products: [][]processor.Product{{p}, nil}},
			calls[1].Key(): {},
		},
	}
	return j, &Log{Outcome: Local, Reason: "because", Calls: calls}
}

func TestRoundTrip(t *testing.T) {
	j, l := sample()
	j2, err := DecodeJob(j.Encode())
	if err != nil || cmp.Diff(j, j2) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(j, j2))
	}
	l2, err := DecodeLog(l.Encode())
	if err != nil || cmp.Diff(l, l2) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(l, l2))
	}
	for key := range j.Answers {
		if c, err := Question(key); err != nil || c.Key() != key {
			t.Errorf("%+v, %v", c, err)
		}
		if _, err := Question(key + "x"); err == nil {
			t.Error("a key with more at its end")
		}
	}
	for i, call := range l.Calls { // equal questions, and only they, have equal keys
		for k, other := range l.Calls {
			if (call.Key() == other.Key()) != (i == k) {
				t.Errorf("keys of %d and %d", i, k)
			}
		}
	}
}

// Files of another version say so, whatever follows.
func TestOtherVersion(t *testing.T) {
	j, l := sample()
	job, log := j.Encode(), l.Encode()
	job[len(jobMagic)-1]++
	log[len(logMagic)-1]--
	_, err := DecodeJob(job)
	_, err2 := DecodeLog(log[:len(logMagic)])
	if err != ErrOther || err2 != ErrOther {
		t.Error(err, err2)
	}
	if _, err := DecodeJob(log); err != ErrFormat {
		t.Errorf("a log that is read as a job: %v", err)
	}
}

// Whatever is cut off or changed is found.
func TestDamage(t *testing.T) {
	j, l := sample()
	for _, good := range [][]byte{j.Encode(), l.Encode()} {
		for i := range good {
			for _, bad := range [][]byte{good[:i], append(bytes.Clone(good[:i]), append([]byte{good[i] ^ 1}, good[i+1:]...)...)} {
				_, err := DecodeJob(bad)
				_, err2 := DecodeLog(bad)
				if err == nil || err2 == nil {
					t.Fatalf("byte %d: not found", i)
				}
			}
		}
	}
	l.Calls = append(l.Calls, Call{Kind: Open}) // without its name
	if _, err := DecodeLog(l.Encode()); err == nil {
		t.Error("a call that lacks something was taken")
	}
}

// What is decoded is encoded to the same bytes. The fuzzer gives the bytes without magic and checksum.
func FuzzDecode(f *testing.F) {
	j, l := sample()
	for _, e := range [][]byte{j.Encode(), l.Encode()} {
		f.Add(e[len(jobMagic) : len(e)-digest.Size])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := func(magic string) []byte {
			return begin(magic + string(body)).end()
		}
		if j, err := DecodeJob(whole(jobMagic)); err == nil && !bytes.Equal(j.Encode(), whole(jobMagic)) {
			t.Error("another job")
		}
		if l, err := DecodeLog(whole(logMagic)); err == nil && !bytes.Equal(l.Encode(), whole(logMagic)) {
			t.Error("another log")
		}
	})
}
