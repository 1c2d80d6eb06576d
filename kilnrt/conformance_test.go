package kilnrt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/kilnrt/internal/judge"
)

var update = flag.Bool("update", false, "write the conformance set anew")

const conformance = "testdata/conformance"

// TestConformance checks the conformance set, which is made from the page of the format. A broken parcel is a good one
// with changed bytes, as its name says. The begin of the expected judgement is written beside it. The other readers of
// this repository are tested with the same files.
func TestConformance(t *testing.T) {
	made := conformanceSet(t)
	if *update {
		old, _ := filepath.Glob(conformance + "/*")
		for _, f := range old {
			os.Remove(f)
		}
		os.MkdirAll(conformance, 0o755)
		for _, c := range made {
			os.WriteFile(filepath.Join(conformance, c.name+".parcel"), c.data, 0o644)
			os.WriteFile(filepath.Join(conformance, c.name+".txt"), []byte(judged(c.data, false)), 0o644)
		}
	}
	for _, c := range made {
		data, err := os.ReadFile(filepath.Join(conformance, c.name+".parcel"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, c.data) {
			t.Errorf("%s: the parcel in %s is not the one that is made", c.name, conformance)
		}
		want, err := os.ReadFile(filepath.Join(conformance, c.name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(want), c.begins) {
			t.Errorf("%s: the judgement does not begin with %q:\n%s", c.name, c.begins, want)
		}
		if strings.Count(withoutLoads.ReplaceAllString(string(want), ""), " error") != c.errors {
			t.Errorf("%s: there are not %d errors in the judgement:\n%s", c.name, c.errors, want)
		}
		for _, mapped := range []bool{false, true} {
			if got := judged(data, mapped); got != string(want) {
				t.Errorf("%s, mapped %v: is judged\n%s\nnot\n%s", c.name, mapped, got, want)
			}
		}
	}
}

// withoutLoads removes the lines about resources that can be loaded: judge.Orders tests these.
var withoutLoads = regexp.MustCompile(`(?m)^load .*\n`)

// verdict is a parcel of the set, with the part of its judgement that is known without a reader.
type verdict struct {
	name   string
	data   []byte
	begins string
	errors int
}

const (
	refused = "open error\n"
	checked = "open ok\ncheck ok\n"
	wrong   = "open ok\ncheck error\n"
)

func resource(id uint32, name, typ string, content []byte, needs ...uint32) parcel.Resource {
	r := parcel.Resource{ID: id, Name: name, Type: typ, Required: needs, Size: int64(len(content)), Hash: digest.Of(content)}
	uuid := digest.Of([]byte(fmt.Sprint(id)))
	copy(r.UUID[:], uuid[:])
	r.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return r
}

func written(t testing.TB, o parcel.Options, rs ...parcel.Resource) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p")
	if err := parcel.Write(path, rs, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// goodParcels returns the valid parcels of the set.
func goodParcels(t testing.TB) []verdict {
	text := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog, "), 100)
	knight := resource(7, "characters/knight.glb", "model", []byte("a knight"), 3, 90000)
	knight.Optional = []uint32{1, 4000000000}
	cape := resource(3, "characters/cape.png", "texture", bytes.Repeat([]byte{1, 2, 3}, 2000))
	cape.Align = 4096
	second := resource(90000, "", "texture", bytes.Repeat([]byte{1, 2, 3}, 2000))
	second.UUID, second.SubID = cape.UUID, 17
	odd := resource(1, "n\u00e4me \u2713.txt", "text", text)
	odd.Compress = true
	empty := resource(0, "empty", "data", nil)
	kinds := []parcel.Resource{knight, cape, second, odd, empty}

	var many []parcel.Resource
	for i := range uint32(200) {
		many = append(many, resource(i*i, fmt.Sprintf("many/%d", i), "data", []byte(fmt.Sprint(i%50))))
	}
	packed := resource(5, "packed", "data", text)
	packed.Compress = true
	dict := parcel.Options{Dictionary: bytes.Repeat([]byte("jumps over the lazy dog, the quick brown fox "), 4)}

	// The castle requires walls and a gate. Both have the banner as an optional need, and the banner has the castle.
	// The gate has two more optional needs: a resource that does not exist, and one that requires the castle.
	castle, walls, gate, banner := resource(10, "castle", "level", []byte("castle"), 12, 11), resource(11, "walls", "model", []byte("walls")),
		resource(12, "gate", "model", []byte("gate")), resource(13, "banner", "texture", []byte("banner"))
	moat := resource(14, "moat", "model", []byte("moat"), 11, 10)
	walls.Optional, gate.Optional, banner.Optional = []uint32{13}, []uint32{99, 14, 13}, []uint32{10}
	lost := resource(15, "lost", "model", []byte("lost"), 13, 98)
	order := []parcel.Resource{castle, walls, gate, banner, moat, lost}

	path := filepath.Join(t.TempDir(), "appended")
	for _, rs := range [][]parcel.Resource{many, append(slices.Clone(many[:199]), resource(199*199, "many/199", "data", []byte("changed")))} {
		if _, err := parcel.Update(path, rs, parcel.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	appended, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := keys(t)
	signed, _ := signedKinds(t, key)
	return []verdict{
		{"good-empty", written(t, parcel.Options{}), checked, 0},
		{"good-kinds", written(t, parcel.Options{}, kinds...), checked, 0},
		{"good-many", written(t, parcel.Options{}, many...), checked, 0},
		{"good-dictionary", written(t, dict, packed), checked, 0},
		{"good-appended", appended, checked, 0},
		{"good-order", written(t, parcel.Options{}, order...), checked, 0},
		{"good-tail", append(slices.Clone(appended), "left from a change that was cut short"...), checked, 0},
		{"good-signed", signed, checked, 0},
	}
}

// editor changes the bytes of a parcel.
type editor []byte

func (e editor) section(i int) []byte {
	at := binary.LittleEndian.Uint64(e[64+24*i:])
	return e[at : at+binary.LittleEndian.Uint64(e[72+24*i:])]
}

// record returns one of the first 64 records.
func (e editor) record(i int) []byte {
	at := binary.LittleEndian.Uint64(e.section(kilnrt.SectionDirectory)) + 128*uint64(i)
	return e[at : at+128]
}

// fix corrects the CRCs of slot 0 and of the index. If page is set, it also corrects that of the first page of
// records.
func (e editor) fix(page bool) {
	le := binary.LittleEndian
	if page {
		n := min(64, int(le.Uint32(e[40:])))
		at := le.Uint64(e.section(kilnrt.SectionDirectory))
		le.PutUint32(e.section(kilnrt.SectionDirectory)[8:], crc32.ChecksumIEEE(e[at:at+128*uint64(n)]))
		for i := range kilnrt.Sections {
			le.PutUint32(e[80+24*i:], crc32.ChecksumIEEE(e.section(i)))
		}
	}
	e.seal(0)
}

func (e editor) seal(slot int) {
	s := e[slot*kilnrt.SlotPitch:][:kilnrt.SlotSize]
	binary.LittleEndian.PutUint32(s[508:], crc32.ChecksumIEEE(s[:508]))
}

// conformanceSet returns all parcels of the set. The broken ones are made from good-kinds, which has these records: 0
// is empty, 1 compressed, 3 a texture aligned to 4096, 7 a model with needs, 90000 without a name and with the content
// of 3.
func conformanceSet(t testing.TB) []verdict {
	le := binary.LittleEndian
	set := goodParcels(t)
	kinds, appended, dict, order := set[1].data, set[4].data, set[3].data, set[5].data
	edit := func(name, begins string, errors int, from []byte, change func(e editor)) {
		e := editor(slices.Clone(from))
		change(e)
		set = append(set, verdict{name, e, begins, errors})
	}
	header := func(name string, at int, v uint64, size int) {
		edit("header-"+name, refused, 1, kinds, func(e editor) {
			var b [8]byte
			le.PutUint64(b[:], v)
			copy(e[at:at+size], b[:])
			e.seal(0)
		})
	}
	record := func(name string, i, at int, v uint64, size int) {
		edit("record-"+name, wrong, 2, kinds, func(e editor) {
			var b [8]byte
			le.PutUint64(b[:], v)
			copy(e.record(i)[at:at+size], b[:])
			e.fix(true)
		})
	}
	end := le.Uint64(kinds[24:])

	frames, err := judge.FrameSets(false)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"zstd", "zstd-trained"} {
		path, wrong := filepath.Join(t.TempDir(), "p"), 0
		if err := frames[i].Write(path); err != nil {
			t.Fatal(err)
		}
		for _, f := range frames[i].Frames {
			if f.Wrong {
				wrong++
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, verdict{name, data, checked, wrong})
	}
	set = append(set, verdict{"file-nothing", nil, refused, 1}, verdict{"file-short", kinds[:8191], refused, 1},
		verdict{"file-cut", kinds[:len(kinds)-1], refused, 1}, verdict{"file-zeros", make([]byte, 10000), refused, 1})
	edit("file-magic", refused, 1, kinds, func(e editor) { e[1] = 'k'; e.seal(0) })
	edit("file-crc", refused, 1, kinds, func(e editor) { e[508]++ })
	// The newer slot is torn, so the older one counts. Its pages and payloads still exist.
	edit("slots-torn", checked, 0, appended, func(e editor) { e[4096+100]++ })
	edit("slots-older-torn", checked, 0, appended, func(e editor) { e[100]++ })
	edit("slots-newer-version", refused, 1, appended, func(e editor) { e[4096+8] = 2; e.seal(1) })
	edit("slots-newer-end", refused, 1, appended, func(e editor) { le.PutUint64(e[4096+24:], 1<<40); e.seal(1) })

	header("version", 8, 2, 4)
	header("flag", 12, 1, 4)
	edit("header-flag-upper", checked, 0, kinds, func(e editor) { e[14] = 1; e.seal(0) })
	header("end-small", 24, 8191, 8)
	header("end-large", 24, end+1, 8)
	header("end-huge", 24, 1<<64-1, 8)
	header("count-large", 40, 1<<24+1, 4)
	header("count-wrong", 40, 65, 4)
	header("count-huge", 40, 1<<32-1, 4)
	header("bits-0", 44, 0, 4)
	header("bits-27", 44, 27, 4)
	header("bits-32", 44, 32, 4)
	header("bits-small", 44, 2, 4)
	header("types-more", 48, 5, 4)
	header("types-less", 48, 2, 4)
	header("types-huge", 48, 1<<32-1, 4)
	header("section-low", 64, 4096, 8)
	header("section-odd", 64, le.Uint64(kinds[64:])+8, 8)
	header("section-overflow", 64+24*5, 1<<64-16, 8)
	header("section-size", 72+24*5, 1<<40, 8)
	header("needs-odd", 72+24*6, 7, 8)
	header("dictionary-large", 72+24*7, 1<<20+1, 8)
	header("empty-somewhere", 64+24*8, 8192, 8)
	edit("types-length-0", refused, 1, kinds, func(e editor) { e.section(4)[0] = 0; e.fix(true) })
	edit("types-length-long", refused, 1, kinds, func(e editor) { e.section(4)[0] = 255; e.fix(true) })

	record("type", 3, 24, 4, 2)
	record("codec", 3, 26, 3, 1)
	record("codec-dictionary", 1, 26, 2, 1)
	record("align-small", 3, 27, 3, 1)
	record("align-large", 3, 27, 13, 1)
	record("offset-low", 3, 32, 4096, 8)
	record("offset-high", 3, 32, end-4, 8)
	record("offset-overflow", 3, 32, 1<<64-8, 8)
	record("offset-unaligned", 2, 32, le.Uint64(editor(kinds).record(2)[32:])+16, 8)
	record("stored-overflow", 3, 40, 1<<64-1, 8)
	record("empty-offset", 0, 32, 8192, 8)
	record("empty-crc", 0, 28, 1, 4)
	record("size", 3, 48, 9, 8)
	record("size-compressed", 1, 48, 1<<28+1, 8)
	record("name", 3, 56, 1<<32-1, 4)
	record("name-long", 3, 60, 4097, 4)
	record("needs", 3, 96, 1<<32-1, 4)
	record("needs-many", 3, 104, 1<<32-1, 4)
	edit("record-zeros", wrong, 1, kinds, func(e editor) { e.record(3)[127] = 1; e.fix(true) })
	edit("record-order", wrong, 1, kinds, func(e editor) { le.PutUint32(e.record(2), 8); e.fix(true) })
	edit("record-crc", wrong, 1, kinds, func(e editor) { e.record(3)[64]++; e.fix(false) })

	edit("content", checked, 1, kinds, func(e editor) { e[le.Uint64(e.record(3)[32:])]++ })
	edit("content-crc", checked, 1, kinds, func(e editor) { e.record(3)[28]++; e.fix(true) })
	edit("content-size-more", checked, 1, kinds, func(e editor) { e.record(1)[48]++; e.fix(true) })
	edit("content-size-huge", checked, 1, kinds, func(e editor) { le.PutUint64(e.record(1)[48:], 1<<28); e.fix(true) })
	edit("content-size-less", checked, 1, kinds, func(e editor) { e.record(1)[48]--; e.fix(true) })
	edit("content-no-frame", checked, 1, kinds, func(e editor) {
		r := e.record(1)
		b := e[le.Uint64(r[32:]):][:le.Uint64(r[40:])]
		b[0]++
		le.PutUint32(r[28:], crc32.ChecksumIEEE(b))
		e.fix(true)
	})
	edit("content-other-dictionary", checked, 1, dict, func(e editor) { e.record(0)[26] = 1; e.fix(true) })

	edit("needs-circle", checked, 0, order, func(e editor) { le.PutUint32(e.section(6), 14); e.fix(true) }) // the castle requires the moat
	edit("needs-itself", checked, 0, kinds, func(e editor) { le.PutUint32(e.section(6), 7); e.fix(true) })
	edit("page-overflow", wrong, 6, kinds, func(e editor) { le.PutUint64(e.section(0), 1<<64-16); e.mend0() })
	edit("page-low", wrong, 6, kinds, func(e editor) { le.PutUint64(e.section(0), 4096); e.mend0() })
	edit("page-odd", wrong, 6, kinds, func(e editor) { e.section(0)[0] += 8; e.mend0() })
	edit("texts-crc", wrong, 1, kinds, func(e editor) { le.PutUint32(e[80+24*5:], 1); e.seal(0) })
	edit("name-no-text", wrong, 1, kinds, func(e editor) { e.section(5)[0] = 0xff; e.fix(true) })
	edit("table-full", wrong, 1, kinds, func(e editor) { e.fill(1, 1); e.fix(true) })
	edit("table-astray", wrong, 6, kinds, func(e editor) { e.fill(1, 99); e.fix(true) })
	return set
}

// mend0 corrects the CRC of the directory, wherever it points.
func (e editor) mend0() {
	binary.LittleEndian.PutUint32(e[80:], crc32.ChecksumIEEE(e.section(0)))
	e.seal(0)
}

// fill makes all entries of a table point to one record.
func (e editor) fill(section int, index1 uint32) {
	b := e.section(section)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint32(b[i+4:], index1)
	}
}

// judged returns the judgement that docs/formats/parcel.md describes. mapped selects a mapped file, else bytes in
// memory.
func judged(data []byte, mapped bool) string {
	p, err := kilnrt.OpenReaderAt(bytes.NewReader(data), int64(len(data)))
	if mapped {
		dir, derr := os.MkdirTemp("", "kilnrt")
		if derr != nil {
			return derr.Error()
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "p")
		os.WriteFile(path, data, 0o644)
		p, err = kilnrt.Open(path)
	}
	if err != nil {
		return refused
	}
	defer p.Close()
	var queries []string
	for i := range min(p.Len(), 8) {
		r, err := p.At(i)
		if err != nil {
			continue
		}
		queries = append(queries, fmt.Sprintf("find id=%d", r.ID), fmt.Sprintf("load id=%d", r.ID), fmt.Sprintf("find uuid=%x sub=%d", r.UUID, r.SubID))
		if name := r.Name(); name != "" && utf8.ValidString(name) {
			queries = append(queries, fmt.Sprintf("find name=%q", name))
		}
	}
	return judge.Opened(p, append(queries, "find id=4294967294", "find uuid=00000000000000000000000000000000 sub=5", `find name="absent"`))
}

// TestOrder checks what is loaded, and in which order. The other readers are tested with the same cases.
func TestOrder(t *testing.T) {
	for _, c := range judge.Orders() {
		if strings.Contains(strings.Join(c.Layers, " "), ";") && strings.Count(c.Ask, "?") <= strings.Count(c.Ask, " ") {
			continue // without optional needs: Go has no such order
		}
		args, err := c.Arguments(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cut := slices.Index(args, "--")
		lib, layers := kilnrt.NewLibrary(), map[*kilnrt.Parcel]int{}
		for i, path := range args[1:cut] {
			p, err := kilnrt.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			lib.Mount(p)
			layers[p] = i
		}
		known := map[uint32]bool{}
		var lines []string
		for _, ask := range args[cut+1:] {
			id, _ := strconv.Atoi(strings.TrimPrefix(ask, "?"))
			rs, err := lib.Order(uint32(id))
			line := ""
			if errors.Is(err, kilnrt.ErrNotFound) {
				line = " error missing"
			} else if err != nil {
				line = " error circle"
			}
			for _, r := range rs {
				if !known[r.ID] {
					line += fmt.Sprintf(" %d@%d", r.ID, layers[r.Parcel()])
				}
				known[r.ID] = true
			}
			lines = append(lines, line)
		}
		if got := strings.Join(lines, "\n"); got != c.Want {
			t.Errorf("%s: %q, not %q", c.Name, got, c.Want)
		}
	}
}
