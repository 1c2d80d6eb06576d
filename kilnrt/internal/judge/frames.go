package judge

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Frame is compressed content, made by any program.
type Frame struct {
	Name            string
	Stored, Content []byte
	Dictionary      bool // made with the parcel's dictionary
	Wrong           bool // every reader must refuse it
}

// rawDictionary is a dictionary of raw content.
var rawDictionary = []byte(strings.Repeat("aqu1 bququ2 cququqo ", 9) + "the quick brown fox jumped over the dictionary")

// trainedDictionary also has tables.
func trainedDictionary() ([]byte, error) {
	words := texts(false)["words"]
	o := zstd.BuildDictOptions{ID: 7000, History: words[:2000], Offsets: [3]int{1, 4, 8}, Level: zstd.SpeedDefault}
	for i := 2000; i+300 < len(words); i += 300 {
		o.Contents = append(o.Contents, words[i:i+300])
	}
	return zstd.BuildDict(o)
}

// texts returns contents by name that make encoders use all their methods. With large, some have several blocks.
func texts(large bool) map[string][]byte {
	rng, size := rand.New(rand.NewPCG(3, 4)), 1
	if large {
		size = 4
	}
	made := func(n int, next func() byte) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = next()
		}
		return b
	}
	noise := func(n int) []byte { return made(n, func() byte { return byte(rng.Uint32()) }) }
	letters := func(n int) []byte { return made(n, func() byte { return byte(min(rng.IntN(90), rng.IntN(90))) }) } // few different letters, without repetition
	words := func(n int) []byte {
		var b []byte
		for len(b) < n {
			w := min(rng.IntN(300), rng.IntN(300))
			b = fmt.Appendf(b, "%c%s%d ", 'a'+w%26, strings.Repeat("qu", w%4), w)
		}
		return b[:n]
	}
	join := func(bs ...[]byte) []byte { return bytes.Join(bs, nil) }
	far := noise(900)
	return map[string][]byte{
		"one": {7}, "zeros": make([]byte, 100), "many zeros": make([]byte, size*50000), "noise": noise(size * 500),
		"words": words(size * 6000), "few words": words(700), "letters": letters(size * 3000), "few letters": letters(200),
		"runs":  join(bytes.Repeat([]byte("ab"), 40), bytes.Repeat([]byte("abc"), 40), bytes.Repeat([]byte("abcdefg"), 9), bytes.Repeat([]byte("x"), 99)),
		"far":   join(far, words(300), make([]byte, size*20000), far, words(200)),
		"mixed": join(words(size*3000), letters(size*2000), noise(300), words(size*2000), make([]byte, 999), words(size*10000)),
	}
}

// FrameSet is the frames of one parcel.
type FrameSet struct {
	Frames     []Frame
	Dictionary []byte
}

// FrameSets returns frames of all kinds, with a raw dictionary and with a trained one.
func FrameSets(large bool) ([]FrameSet, error) {
	trained, err := trainedDictionary()
	if err != nil {
		return nil, err
	}
	var sets []FrameSet
	for id, dictionary := range [][]byte{rawDictionary, trained} {
		option := zstd.WithEncoderDictRaw(0, dictionary)
		if id > 0 {
			option = zstd.WithEncoderDict(dictionary)
		}
		frames, err := framesOf(large, option)
		if err != nil {
			return nil, err
		}
		sets = append(sets, FrameSet{frames, dictionary})
	}
	return sets, nil
}

// framesOf returns frames of the encoder at all its levels, with and without a dictionary and a small window, and
// frames made by hand. With large there are many.
func framesOf(large bool, dictionary zstd.EOption) ([]Frame, error) {
	var all []Frame
	contents := texts(large)
	for level := zstd.SpeedFastest; level <= zstd.SpeedBestCompression; level++ {
		for kind := range 3 {
			if !large && (kind == 2) != (level == zstd.SpeedFastest) {
				continue
			}
			options := []zstd.EOption{zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(kind == 2), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1 << 18)}
			switch kind {
			case 1:
				options = append(options, dictionary)
			case 2:
				options = append(options, zstd.WithWindowSize(zstd.MinWindowSize), zstd.WithSingleSegment(false))
			}
			e, err := zstd.NewWriter(nil, options...)
			if err != nil {
				return nil, err
			}
			for _, name := range slices.Sorted(maps.Keys(contents)) {
				f := Frame{Name: fmt.Sprint(name, "/", level, "/", kind), Content: contents[name], Dictionary: kind == 1}
				f.Stored = e.EncodeAll(f.Content, nil)
				all = append(all, f)
			}
		}
	}
	return append(append(all, rightFrames()...), wrongFrames()...), nil
}

const last = 1

// block returns a block of a kind: 0 raw, 1 one byte repeated, 2 compressed, 3 reserved. size is the size in its
// header.
func block(kind, size, last int, content ...byte) []byte {
	head := size<<3 | kind<<1 | last
	return append([]byte{byte(head), byte(head >> 8), byte(head >> 16)}, content...)
}

// frame returns a frame with these flags, the fields that follow them, and blocks.
func frame(flags byte, rest ...[]byte) []byte {
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, flags}, bytes.Join(rest, nil)...)
}

// packed returns the content of a compressed block: uncompressed literals and a number of sequences that all have the
// same codes. bits are their extra bits after a leading one, the first sequence highest.
func packed(literals string, sequences int, literalCode, offsetCode, matchCode byte, bits uint64) []byte {
	b := append([]byte{byte(len(literals)<<4 | 1<<2), byte(len(literals) >> 4)}, literals...)
	if b = append(b, byte(sequences)); sequences == 0 {
		return b
	}
	b = append(b, 0b01_01_01_00, literalCode, offsetCode, matchCode)
	for ; bits > 0; bits >>= 8 {
		b = append(b, byte(bits))
	}
	return b
}

func compressed(last int, content []byte) []byte { return block(2, len(content), last, content...) }

func number(n uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, n)[:size] }

// checksum returns the checksum at the end of a frame, taken from an encoder's output.
func checksum(content string) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constants
	}
	b := e.EncodeAll([]byte(content), nil)
	return b[len(b)-4:]
}

const (
	window1K, window8M = "\x00", "\x68"
	oneSegment         = 1 << 5
	checked            = 1 << 2
	bytes8, bytes2     = 3 << 6, 1 << 6 // of the size field
)

func rightFrames() []Frame {
	k, other := []byte(window1K), append([]byte{0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0}, "abc"...)
	right := func(name, content string, stored ...[]byte) Frame {
		return Frame{Name: name, Stored: bytes.Join(stored, nil), Content: []byte(content)}
	}
	abc := frame(oneSegment, []byte{3}, block(0, 3, last, 'a', 'b', 'c'))
	return []Frame{
		right("raw", "abc", abc),
		right("no content", "", frame(oneSegment, []byte{0}, block(0, 0, last))),
		right("raw, repeated, raw", "abccccc!", frame(0, k, block(0, 3, 0, 'a', 'b', 'c'), block(1, 4, 0, 'c'), block(0, 0, 0), block(0, 1, last, '!'))),
		right("sizes", "abcabc", frame(bytes8, []byte(window8M), number(3, 8), block(0, 3, last, 'a', 'b', 'c')), abc),
		right("size of two bytes", strings.Repeat("z", 300), frame(bytes2|oneSegment, number(300-256, 2), block(1, 300, last, 'z'))),
		right("other frames", "abcabc", other, abc, other, other, abc, other),
		right("only another frame", "", other),
		right("checksum", "zzzzzzz", frame(checked, k, block(1, 7, last, 'z'), checksum("zzzzzzz"))),
		right("long checksum", strings.Repeat("z", 1000), frame(checked, k, block(1, 1000, last, 'z'), checksum(strings.Repeat("z", 1000)))),
		right("literals alone", "abc", frame(0, k, compressed(last, packed("abc", 0, 0, 0, 0, 0)))),
		// 4 literals, offset 3 + 1 back (code 2: numbers 4 to 7; 4 is 1 back), match 3 (code 0): twice "c"; then more
		// literals.
		right("back by one", "abccccde", frame(0, k, compressed(last, packed("abcde", 1, 3, 2, 0, 0b1_00)))),
		// Code 1 is number 2 or 3. Without literals these are the third offset, initially 8, and one less than the
		// first. So the offsets are 8, then 7.
		right("repeated offsets", "abcdefghabcefg", frame(0, k, block(0, 8, 0, []byte("abcdefgh")...), compressed(last, packed("", 2, 0, 1, 0, 0b1_0_1)))),
		right("swapped offsets", "abcdefghefgggg", frame(0, k, block(0, 8, 0, []byte("abcdefgh")...), compressed(last, packed("", 2, 0, 0, 0, 1)))),
		right("an offset of nothing", "abbbb", frame(0, k, block(0, 2, 0, 'a', 'b'), compressed(last, packed("", 1, 0, 1, 0, 0b1_1)))),
		right("the same tables again", "abccccdexyzzzz", frame(0, k, compressed(0, packed("abcde", 1, 3, 2, 0, 0b1_00)), compressed(last, again("xyz", 0b11_11_11_00, 0b1_00)))),
		right("long match", "ab"+strings.Repeat("b", 1000), frame(0, k, compressed(last, packed("ab", 1, 2, 2, 45, 0b1_00_000000000|(1000-515))))),
	}
}

// again returns a block with one sequence, with the tables that modes selects.
func again(literals string, modes, bits byte) []byte {
	return append(append([]byte{byte(len(literals) << 3)}, literals...), 1, modes, bits)
}

func wrongFrames() []Frame {
	k := []byte(window1K)
	abc := block(0, 3, last, 'a', 'b', 'c')
	good := packed("abcde", 1, 3, 2, 0, 0b1_00)
	wrong := func(name string, stored ...[]byte) Frame {
		return Frame{Name: "wrong: " + name, Stored: bytes.Join(stored, nil), Content: []byte("abccccde"), Wrong: true}
	}
	abccccde := frame(0, k, compressed(last, good))
	return []Frame{
		wrong("cut", abccccde[:len(abccccde)-1]),
		wrong("more", abccccde, []byte("!")),
		wrong("half another frame", abccccde, []byte{0x50, 0x2a, 0x4d, 0x18, 9, 0, 0, 0, 1}),
		wrong("more frames", abccccde, abccccde),
		wrong("magic", []byte("\x27"), abccccde[1:]),
		wrong("reserved flag", frame(1<<3, k, compressed(last, good))),
		wrong("window", frame(0, []byte("\x69"), compressed(last, good))),
		wrong("window of all", frame(0, []byte("\xff"), compressed(last, good))),
		wrong("segment of 8 MiB and one", frame(2<<6|oneSegment, number(8<<20+1, 4), compressed(last, good))),
		wrong("size", frame(oneSegment, []byte{9}, compressed(last, good))),
		wrong("checksum", frame(checked, k, compressed(last, good), []byte("abcd"))),
		wrong("dictionary", frame(1, k, []byte{5}, compressed(last, good))),
		wrong("kind of block", frame(0, k, compressed(0, good), block(3, 0, last))),
		wrong("no last block", frame(0, k, compressed(0, good))),
		wrong("block above the window", frame(0, k, block(1, 1025, last, 'z'))),
		wrong("block of one byte", frame(0, k, compressed(0, good), block(2, 1, last, 0))),
		wrong("too much", frame(0, k, block(1, 9, last, 'z'))),
		wrong("too little", frame(0, k, abc)),
		wrong("literals that are not there", frame(0, k, compressed(last, []byte{0xf8, 'a', 0}))),
		wrong("letters without codes", frame(0, k, compressed(last, []byte{0b0011_00_11, 1 << 6, 0, 1, 0}))),
		wrong("tables that were not there", frame(0, k, block(0, 5, 0, []byte("abcde")...), compressed(last, again("", 0b11_11_11_00, 1)))),
		wrong("reserved modes", frame(0, k, block(0, 5, 0, []byte("abcde")...), compressed(last, again("", 1, 1)))),
		wrong("a code of literals", frame(0, k, compressed(last, packed("abcde", 1, 36, 2, 0, 0b1_00)))),
		wrong("a code of offsets", frame(0, k, compressed(last, packed("abcde", 1, 3, 32, 0, 1<<40)))),
		wrong("a code of matches", frame(0, k, compressed(last, packed("abcde", 1, 3, 2, 53, 0b1_00)))),
		wrong("before the beginning", frame(0, k, compressed(last, packed("abcde", 1, 3, 2, 0, 0b1_11)))),
		wrong("a far offset", frame(0, k, compressed(last, packed("abcde", 1, 3, 31, 0, 1<<31)))),
		wrong("bits left", frame(0, k, compressed(last, packed("abcde", 1, 3, 2, 0, 0b1_00_0)))),
		wrong("bits missing", frame(0, k, compressed(last, packed("abcde", 1, 3, 2, 0, 0b1_0)))),
		wrong("no bits", frame(0, k, compressed(last, packed("abcde", 1, 3, 2, 0, 0)))),
		wrong("no literals left", frame(0, k, compressed(last, packed("ab", 1, 3, 2, 0, 0b1_00)))),
		wrong("something behind literals alone", frame(0, k, compressed(last, append(packed("abccccde", 0, 0, 0, 0, 0), 0)))),
	}
}

// Write writes a parcel whose resources are stored as these frames, valid or not. Ids begin at 0.
func (s *FrameSet) Write(path string) error {
	frames := s.Frames
	var rs []parcel.Resource
	for i := range frames {
		rs = append(rs, Resource(uint32(i), frames[i].Name, "data", string(frames[i].Stored), nil, nil))
	}
	if err := parcel.Write(path, rs, parcel.Options{Dictionary: s.Dictionary}); err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	h, err := kilnrt.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	for i := range frames {
		f := &frames[i]
		at, _ := page(b, h, i/kilnrt.PageSize)
		record := b[at+i%kilnrt.PageSize*kilnrt.RecordSize:]
		if len(f.Stored) == 0 {
			continue
		}
		record[26] = 1
		if f.Dictionary {
			record[26] = 2
		}
		binary.LittleEndian.PutUint64(record[48:], uint64(len(f.Content)))
		hash := digest.Of(f.Content)
		copy(record[64:], hash[:])
	}
	Mend(b)
	return os.WriteFile(path, b, 0o600)
}

// damaged returns n frames with changed bits, truncated, or with a wrong size.
func (s *FrameSet) damaged(n int, seed uint64) FrameSet {
	rng, frames := rand.New(rand.NewPCG(seed, 5)), s.Frames
	var all []Frame
	for i := range n {
		f := frames[rng.IntN(len(frames))]
		f.Name = fmt.Sprint(i, " of ", f.Name)
		f.Stored = bytes.Clone(f.Stored)
		for range 1 + rng.IntN(3) {
			if len(f.Stored) == 0 {
				break
			}
			at := rng.IntN(len(f.Stored))
			if rng.IntN(2) == 0 {
				at = rng.IntN(min(len(f.Stored), 40)) // headers and tables are there
			}
			f.Stored[at] = []byte{f.Stored[at] ^ 1<<rng.IntN(8), 0, 0xff, byte(rng.Uint32()), f.Stored[at] + 1}[rng.IntN(5)]
		}
		if rng.IntN(20) == 0 {
			f.Stored = f.Stored[:rng.IntN(len(f.Stored)+1)]
		}
		if rng.IntN(10) == 0 {
			f.Content = f.Content[:rng.IntN(len(f.Content)+1)]
		}
		all = append(all, f)
	}
	return FrameSet{all, s.Dictionary}
}

// FrameCases returns a parcel of all frames, and parcels with as many damaged ones as runs says (600 if it is empty),
// with their judgements by the Go reader.
func FrameCases(scratch, runs string) ([]Case, error) {
	sets, err := FrameSets(true)
	if err != nil {
		return nil, err
	}
	few, err := FrameSets(false)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(cmp.Or(runs, "600"))
	if err != nil {
		return nil, err
	}
	for seed := uint64(0); n > 0; n -= 300 {
		sets = append(sets, few[seed%2].damaged(min(n, 300), seed))
		seed++
	}
	var cases []Case
	for i, set := range sets {
		path := filepath.Join(scratch, fmt.Sprintf("frames%d.parcel", i))
		if err := set.Write(path); err != nil {
			return nil, err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		queries := []string{"find id=0"}
		c, err := newCase(path, scratch, queries, Parcel(b, queries))
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}
