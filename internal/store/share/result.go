package share

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/varint"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// ResultKey is the key of the result of a run that made these observations. machine is the system and architecture if
// the result may depend on them, else "".
func ResultKey(hint Key, seen []engine.Observation, machine string) Key {
	b := digest.Build("shared result").Str("hint", hint.String())
	if machine != "" {
		b.Str("machine", machine)
	}
	for i := range seen {
		o := &seen[i]
		b.Str("look", fmt.Sprintf("%d %t %d %s", o.Kind, o.Joined, o.SubID, o.Subject)).Hash("value", o.Value)
	}
	return keyOf("kiln cache result 2\n", b.Sum())
}

// SignedBy is the key under which the result of a key is stored if only signed ones count, and who holds the secret key of this public
// one signs it. Each signer has entries of its own, so nobody without that key stores a result in place of a signed one by accident.
func (k Key) SignedBy(public string) Key {
	return sha256.Sum256(append([]byte("kiln cache signed result 1\n"+public+"\n"), k[:]...))
}

// Product is an output of a run.
type Product struct {
	engine.Product // Hash and Size are not set: the blob has them
	Blob           Blob
}

// Result is the result of any run that makes the observations in its key: nothing in it depends on when or
// where it ran.
type Result struct {
	Fingerprint digest.Hash // of the processor's code
	Outcome     engine.Outcome
	Shareable   bool // see engine.Trace: the run did not ask for the platform
	Products    []Product
	Brought     []Blob // further blobs: bytes of requests that it made
	Messages    []byte
	Root        string
	Cycle       []string
}

// Run describes the run itself; no key depends on it.
type Run struct {
	Seconds float64
	Memory  int64  // peak, bytes; 0: not measured
	Version string // of Kiln
}

// Blobs returns all blobs of a result.
func (r *Result) Blobs() []Blob {
	blobs := make([]Blob, 0, len(r.Products)+len(r.Brought))
	for i := range r.Products {
		blobs = append(blobs, r.Products[i].Blob)
	}
	return append(blobs, r.Brought...)
}

// ID is the hash of everything in a result.
func (r *Result) ID() digest.Hash { return digest.Of(r.canonical()) }

// Encode encodes a result; nil if it is too large to be shared. sign returns a signature of key and id, or nil; it may
// be nil.
func (r *Result) Encode(key Key, run Run, sign func(signed []byte) []byte) []byte {
	e := begin(resultMagic, key)
	all := r.canonical()
	e.Bytes(all)
	var signature []byte
	if sign != nil {
		signature = sign(signedText(key, digest.Of(all)))
	}
	e.Bytes(signature)
	e.Float(run.Seconds)
	e.Int(run.Memory)
	e.Str(run.Version)
	if len(e.Buf)+digest.Size > MaxValue {
		return nil
	}
	return end(e)
}

// signedText is the text that is signed.
func signedText(key Key, id digest.Hash) []byte {
	return []byte("kiln cache result " + key.String() + " " + id.String() + "\n")
}

func (r *Result) canonical() []byte {
	e := &varint.Encoder{}
	e.Raw(r.Fingerprint[:])
	outcome := byte(r.Outcome)
	if r.Shareable {
		outcome |= shareable
	}
	e.Byte(outcome)
	e.Bytes(r.Messages)
	e.Str(r.Root)
	e.Uint(uint64(len(r.Cycle)))
	for _, s := range r.Cycle {
		e.Str(s)
	}
	e.Uint(uint64(len(r.Products)))
	for i := range r.Products {
		encodeProduct(e, &r.Products[i])
	}
	e.Uint(uint64(len(r.Brought)))
	for i := range r.Brought {
		encodeBlob(e, &r.Brought[i])
	}
	return e.Buf
}

func encodeProduct(e *varint.Encoder, p *Product) {
	e.Uint(uint64(p.SubID))
	e.Str(p.Name)
	e.Str(p.Type)
	e.Str(p.File)
	e.Str(p.Extension)
	encodeBlob(e, &p.Blob)
	e.Uint(uint64(len(p.References)))
	for _, r := range p.References {
		e.Raw(r.UUID[:])
		e.Uint(uint64(r.SubID))
		e.Bool(r.Required)
	}
	e.Str(p.Facts)
}

func encodeBlob(e *varint.Encoder, b *Blob) {
	e.Raw(b.Hash[:])
	e.Raw(b.SHA256[:])
	e.Uint(uint64(b.Size))
}

// Minimum sizes of repeated parts, in bytes.
const (
	leastBlob      = 2*digest.Size + 1
	leastProduct   = 7 + leastBlob
	leastReference = 18
)

// Intact reports whether a value is undamaged, the entry of a key that has a result, and signed as verify wants it.
func Intact(key Key, value []byte, verify func(signed, signature []byte) bool) bool {
	d, err := open(resultMagic, key, value)
	if err != nil {
		return false
	}
	all, signature := d.Bytes(), d.Bytes()
	return d.Err == nil && verify(signedText(key, digest.Of(all)), signature)
}

// DecodeResult decodes the result of a key, made by code with this fingerprint. verify reports whether a
// signature is valid; it may be nil.
func DecodeResult(key Key, fingerprint digest.Hash, value []byte, verify func(signed, signature []byte) bool) (*Result, Run, error) {
	d, err := open(resultMagic, key, value)
	if err != nil {
		return nil, Run{}, err
	}
	all, signature := d.Bytes(), d.Bytes()
	run := Run{d.Float(), d.Int(), d.Str()}
	if err := closed(d); err != nil {
		return nil, Run{}, err
	}
	if verify != nil && !verify(signedText(key, digest.Of(all)), signature) {
		return nil, Run{}, fmt.Errorf("%w: its signature is missing or wrong", errBad)
	}
	if run.Memory < 0 || !(run.Seconds >= 0 && run.Seconds < math.MaxInt32) || len(run.Version) > mostVersion || !isText(run.Version) {
		run = Run{}
	}
	d = &varint.Decoder{Buf: all}
	r := decodeResult(d)
	if err := closed(d); err != nil || !r.sound() || r.Fingerprint != fingerprint {
		return nil, Run{}, errBad
	}
	return r, run, nil
}

const mostVersion = 100

func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// shareable is added to the outcome of a run that did not ask for the platform.
const shareable = 0x80

func decodeResult(d *varint.Decoder) *Result {
	r := &Result{Fingerprint: d.Hash()}
	outcome := d.Byte()
	r.Outcome, r.Shareable = engine.Outcome(outcome&^shareable), outcome&shareable != 0
	if b := d.Bytes(); len(b) > 0 {
		r.Messages = b
	}
	r.Root = d.Str()
	if n := d.Count(1); n > 0 {
		r.Cycle = make([]string, n)
	}
	for i := range r.Cycle {
		r.Cycle[i] = d.Str()
	}
	if n := d.Count(leastProduct); n > 0 {
		r.Products = make([]Product, n)
	}
	for i := range r.Products {
		decodeProduct(d, &r.Products[i])
	}
	if n := d.Count(leastBlob); n > 0 {
		r.Brought = make([]Blob, n)
	}
	for i := range r.Brought {
		r.Brought[i] = decodeBlob(d)
	}
	return r
}

func decodeProduct(d *varint.Decoder, p *Product) {
	p.SubID, p.Name, p.Type, p.File, p.Extension, p.Blob = d.Uint32(), d.Str(), d.Str(), d.Str(), d.Str(), decodeBlob(d)
	if n := d.Count(leastReference); n > 0 {
		p.References = make([]engine.Reference, n)
	}
	for i := range p.References {
		r := &p.References[i]
		d.Fill(r.UUID[:])
		r.SubID, r.Required = d.Uint32(), d.Bool()
	}
	p.Facts = d.Str()
}

func decodeBlob(d *varint.Decoder) (b Blob) {
	d.Fill(b.Hash[:])
	d.Fill(b.SHA256[:])
	size := d.Uint()
	if size > math.MaxInt64 {
		d.Fail()
	}
	b.Size = int64(size)
	return b
}

// sound reports whether a run can have this result, and whether all its files are inside an output folder. So a forged
// result can only harm the products that it claims to be.
func (r *Result) sound() bool {
	switch r.Outcome {
	case engine.Succeeded:
		if r.Root != "" || len(r.Cycle) > 0 {
			return false
		}
	case engine.Failed, engine.NeedsFailed:
		if len(r.Products) > 0 || len(r.Cycle) > 0 {
			return false
		}
	case engine.Cyclic:
		if len(r.Products) > 0 || len(r.Cycle) == 0 {
			return false
		}
	default:
		return false
	}
	for i := range r.Products {
		if p := &r.Products[i]; p.File != "" && (!safePath(p.File) || p.Extension != "") || strings.Contains(p.Name+p.Type+p.Extension, "\x00") {
			return false
		}
	}
	return true
}

// safePath reports whether a relative path leads to a file below its folder, on every system.
func safePath(file string) bool {
	if strings.ContainsAny(file, "\\\x00") || !strings.Contains(file, "/") {
		return false
	}
	for part := range strings.SplitSeq(file, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}
