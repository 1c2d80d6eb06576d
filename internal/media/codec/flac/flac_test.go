package flac

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// seeker is a file in memory.
type seeker struct {
	b  []byte
	at int64
}

func (s *seeker) Write(p []byte) (int, error) {
	if grow := s.at + int64(len(p)) - int64(len(s.b)); grow > 0 {
		s.b = append(s.b, make([]byte, grow)...)
	}
	copy(s.b[s.at:], p)
	s.at += int64(len(p))
	return len(p), nil
}

func (s *seeker) Seek(to int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		s.at = to
	}
	return s.at, nil
}

func encode(t testing.TB, f Format, o Options, src []int32) []byte {
	t.Helper()
	s := &seeker{b: []byte("before"), at: 6}
	e, err := NewEncoder(s, f, o, int64(len(src)/f.Channels))
	if err != nil {
		t.Fatal(err)
	}
	// In pieces of odd lengths, one of them longer than a frame.
	for k, rest := 1, src; len(rest) > 0; k = k*3 + 1 {
		n := min(k*f.Channels, len(rest))
		if err := e.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if s.at != int64(len(s.b)) || string(s.b[:6]) != "before" {
		t.Fatalf("at byte %d of %d, after %q", s.at, len(s.b), s.b[:6])
	}
	return s.b[6:]
}

func open(data []byte) (*Decoder, error) { return NewDecoder(bytes.NewReader(data), int64(len(data))) }

func must(t testing.TB, data []byte) *Decoder {
	t.Helper()
	d, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func all(t testing.TB, d *Decoder, piece int) (out []int32) {
	t.Helper()
	buf := make([]int32, piece*d.Channels+d.Channels-1)
	for {
		n, err := d.Read(buf)
		out = append(out, buf[:n*d.Channels]...)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tones rise and fade, with a little noise.
func tones(samples int, f Format) []int32 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]int32, samples*f.Channels)
	full := float64(int64(1)<<(f.Bits-1)) - 1
	for i := range samples {
		for c := range f.Channels {
			x := float64(i) / 44100
			fade := math.Exp(-4 * math.Mod(x, 0.5))
			v := 0.3*fade*math.Sin(2*math.Pi*440*x) + 0.2*math.Sin(2*math.Pi*(110+55*float64(c))*x) + 0.003*r.NormFloat64()
			out[i*f.Channels+c] = int32(full * v)
		}
	}
	return out
}

// signals are the kinds of samples.
var signals = map[string]func(r *rand.Rand, full int64, i, c int) int64{
	"silence": func(*rand.Rand, int64, int, int) int64 { return 0 },
	"DC":      func(_ *rand.Rand, full int64, _, c int) int64 { return full - int64(c) },
	"noise":   func(r *rand.Rand, full int64, _, _ int) int64 { return r.Int64N(2*full+2) - full - 1 },
	"soft":    func(r *rand.Rand, _ int64, _, _ int) int64 { return r.Int64N(3) - 1 },
	"square": func(_ *rand.Rand, full int64, i, _ int) int64 {
		if i/50%2 == 0 {
			return full
		}
		return -full - 1
	},
	"opposite": func(_ *rand.Rand, full int64, i, c int) int64 {
		if (i+c)%2 == 0 {
			return full
		}
		return -full - 1
	},
	"clicks": func(r *rand.Rand, full int64, _, _ int) int64 {
		if r.IntN(300) > 0 {
			return 0
		}
		return -full - 1
	},
	"wasted": func(r *rand.Rand, full int64, i, c int) int64 { return (r.Int64N(2*full+2) - full - 1) &^ (7 >> c) },
	"sine": func(_ *rand.Rand, full int64, i, _ int) int64 {
		return int64(float64(full) * math.Sin(float64(i)*0.03))
	},
	"half": func(r *rand.Rand, full int64, i, _ int) int64 {
		if i < 3000 {
			return 0
		}
		return (r.Int64N(2*full+2) - full - 1) / 2
	},
}

// TestRoundTrip checks that sounds of all kinds and formats are restored bit by bit.
func TestRoundTrip(t *testing.T) {
	formats := []Format{{44100, 1, 16, 0x4}, {44100, 2, 16, 3}, {192000, 2, 24, 0x3}, {48000, 8, 24, 0x63f}, {1, 3, 4, 0x7},
		{22050, 2, 8, 0x3}, {1048575, 2, 12, 0x3}, {8000, 2, 20, 0x30}, {96000, 2, 32, 0x3}, {65535, 1, 32, 0x4}, {655350, 5, 17, 0x607}}
	sizes := []int{0, 1, 2, 5, 9, 33, 4096, 4097, 4864}
	for name, signal := range signals {
		for _, f := range formats {
			for _, samples := range sizes {
				r := rand.New(rand.NewPCG(3, uint64(samples)))
				src := make([]int32, samples*f.Channels)
				for i := range src {
					src[i] = int32(signal(r, int64(1)<<(f.Bits-1)-1, i/f.Channels, i%f.Channels))
				}
				d := must(t, encode(t, f, Options{}, src))
				if got := all(t, d, 1000); !slices.Equal(got, src) || d.Format != f || len(d.Warnings) > 0 || d.hashed != int64(samples) {
					t.Errorf("%s: %+v, %d samples: %+v, %d, %q", name, f, samples, d.Format, d.Samples, d.Warnings)
				}
			}
		}
	}
}

// The first example of RFC 9639, appendix D, which is decoded there by hand.
func TestExamples(t *testing.T) {
	for _, c := range []struct {
		hex  string
		want []int32
	}{
		{"664c614380000022100010000000" + "0f00000f0ac442f0000000013e84b41807dc690307586a3dad1a2e0f" + "fff869180000bf0358fd03128baa9a",
			[]int32{25588, 10416}},
	} {
		data, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		d := must(t, data)
		if got := all(t, d, 7); !slices.Equal(got, c.want) || len(d.Warnings) > 0 || d.hashed != d.Samples {
			t.Errorf("%v, %q; want %v", got, d.Warnings, c.want)
		}
	}
}

// TestSeek seeks to samples of a file, with a seek table and without, and checks that it reads no more than needed.
func TestSeek(t *testing.T) {
	f := Format{44100, 2, 16, 3}
	src := tones(150000, f)
	for _, points := range []int{0, 1, 7, 1000} {
		data := encode(t, f, Options{Points: points}, src)
		from := &counter{ReaderAt: bytes.NewReader(data)}
		d, err := NewDecoder(from, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if from.bytes > 1<<18 {
			t.Errorf("%d points: %d bytes of %d are read to open it", points, from.bytes, len(data))
		}
		if points == 7 && len(d.points) != 7 || points == 1000 && len(d.points) != 37 {
			t.Errorf("%d points: %v", points, d.points)
		}
		r := rand.New(rand.NewPCG(5, 6))
		buf := make([]int32, 2*300)
		for range 60 {
			at := r.IntN(150001)
			from.bytes = 0
			if err := d.SeekSample(int64(at)); err != nil {
				t.Fatal(err)
			}
			n, err := d.Read(buf)
			if want := src[2*at : 2*min(at+300, 150000)]; !slices.Equal(buf[:2*n], want) || (err == io.EOF) != (at == 150000) {
				t.Fatalf("%d points: from sample %d on come %d others: %v", points, at, n, err)
			}
			if from.bytes > 1<<19 {
				t.Errorf("%d points: %d bytes of %d are read to find sample %d", points, from.bytes, len(data), at)
			}
		}
		if d.SeekSample(0) != nil || !slices.Equal(all(t, d, 5000), src) || len(d.Warnings) > 0 || d.hashed != 150000 {
			t.Errorf("%d points: not the same from the start: %q", points, d.Warnings)
		}
		if d.SeekSample(150001) == nil || d.SeekSample(-1) == nil {
			t.Error("no error for samples that are not there")
		}
	}
}

type counter struct {
	io.ReaderAt
	bytes int
}

func (c *counter) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, at)
	c.bytes += n
	return n, err
}

// frames returns the positions of the frames.
func frames(t testing.TB, data []byte) (at []int64) {
	d := must(t, data)
	for next := d.start; next < int64(len(data)); next = d.in.tell() {
		if _, err := d.frame(next); err != nil {
			t.Fatal(err)
		}
		at = append(at, next)
	}
	return at
}

// TestDamage checks that damaged parts, and only these, become silence.
func TestDamage(t *testing.T) {
	f := Format{44100, 2, 16, 3}
	src := tones(6*encodeBlock+100, f)
	good := encode(t, f, Options{}, src)
	at := frames(t, good)
	if len(at) != 7 {
		t.Fatalf("%d frames", len(at))
	}
	silent := func(from, to int) []int32 {
		b := slices.Clone(src)
		clear(b[2*from*encodeBlock : 2*to*encodeBlock])
		return b
	}
	flip := func(frame, behind int) []byte {
		b := slices.Clone(good)
		b[at[frame]+int64(behind)] ^= 0x10
		return b
	}
	info := func(samples byte) []byte {
		b := slices.Clone(good)
		b[8+17], b[8+16], b[8+15] = samples, 0, 0
		return b
	}
	other := slices.Clone(good)
	other[8+20] ^= 1
	short := slices.Clone(src[:2*6*encodeBlock])
	for _, c := range []struct {
		name string
		data []byte
		want []int32
		warn string
	}{
		{"a bit", flip(3, 500), silent(3, 4), "from 12288 to 16383 are silence"},
		{"a bit of the first", flip(0, 500), silent(0, 1), "CRC"},
		{"a head", flip(3, 3), silent(3, 4), "no head"},
		{"frames are not there", slices.Concat(good[:at[2]], good[at[4]:]), silent(2, 4), "begins with sample 16384"},
		{"something between", slices.Concat(good[:at[2]], []byte("\xff\xf8something"), good[at[2]:]), src, "no head"},
		{"a frame comes twice", slices.Concat(good[:at[3]], good[at[2]:]), src, "begins with sample 8192"},
		{"cut off", good[:at[6]+20], short, "cut off"},
		{"the end", flip(6, 60), short, "cut off"},
		{"something appended", append(slices.Clone(good), make([]byte, 200000)...), src, ""},
		{"no number of samples", info(0), src, ""},
		{"too few", info(100), src[:200], "the rest is not read"},
		{"others were meant", other, src, "MD5"},
		{"cut out", slices.Concat(good[:at[0]], good[at[2]:]), src[2*2*encodeBlock:], "cut out"},
	} {
		d, err := open(c.data)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := all(t, d, 777)
		if !slices.Equal(got, c.want) || d.Samples != int64(len(c.want)/2) {
			t.Errorf("%s: not the samples that should be: %d, and %d should", c.name, d.Samples, len(c.want)/2)
		}
		warned := strings.Join(d.Warnings, "; ")
		if !strings.Contains(warned, c.warn) || c.warn == "" && warned != "" {
			t.Errorf("%s: warnings %q, want %q", c.name, warned, c.warn)
		}
		for _, to := range []int{0, len(c.want)/2 - 1, len(c.want) / 4, len(c.want) / 5} {
			if err := d.SeekSample(int64(to)); err != nil || !slices.Equal(all(t, d, 1234), c.want[2*to:]) {
				t.Errorf("%s: not the same from sample %d on: %v", c.name, to, err)
			}
		}
	}
}

// block returns a block of metadata.
func block(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(kind)<<24|uint32(len(body))), body...)
}

func TestMetadata(t *testing.T) {
	f := Format{8000, 1, 16, 0x8}
	src := tones(5000, Format{8000, 1, 16, 0})
	comments := []Comment{{"TITLE", "Zwölf=12"}, {"LOOPSTART", "100"}, {"LoopLength", "4000"}}
	data := encode(t, f, Options{Comments: comments, Points: 3}, src)
	if d := must(t, data); !reflect.DeepEqual(d.Comments[:3], comments) || !slices.Equal(d.Loops, []Loop{{100, 4100}}) || d.Format != f {
		t.Errorf("%+v: %q, loops %v", d.Format, d.Comments, d.Loops)
	}
	cue := make([]byte, 396)
	cue[395] = 3
	track := func(at uint64, number byte, points ...byte) {
		cue = binary.BigEndian.AppendUint64(cue, at)
		cue = append(append(append(cue, number), make([]byte, 26)...), byte(len(points)/2))
		for i := 0; i < len(points); i += 2 {
			cue = append(append(binary.BigEndian.AppendUint64(cue, uint64(points[i])), points[i+1]), 0, 0, 0)
		}
	}
	track(0, 1, 0, 1)
	track(3000, 2, 0, 0, 150, 1)
	track(5000, 170)
	tag := []byte("ID3\x04\x00\x10\x00\x00\x01\x02" + strings.Repeat("x", 130+10))
	more := slices.Concat(block(kindCue, cue), block(6, make([]byte, 70000)), block(2, []byte("riff")))
	parts := slices.Concat(tag, data[:8+infoSize], more, data[8+infoSize:])
	d := must(t, parts)
	if want := []Marker{{"track 1", 0}, {"track 2, point 0", 3000}, {"track 2", 3150}}; !slices.Equal(d.Markers, want) {
		t.Errorf("markers %v, want %v", d.Markers, want)
	}
	if got := all(t, d, 99); !slices.Equal(got, src) || len(d.Warnings) > 0 {
		t.Errorf("%d samples, %q", len(got), d.Warnings)
	}
	for text, want := range map[string]string{
		"LOOPSTART=x": "not a number", "LOOPSTART=5000": "not among 5000", "LOOPEND=5001": "it ends there", "LOOPSTART=-1": "not a number",
		maskName + "=q": "not a number", "odd": "not a name", "X=\xff": "not a name",
	} {
		b := binary.LittleEndian.AppendUint32([]byte("\x00\x00\x00\x00\x01\x00\x00\x00"), uint32(len(text)))
		start := must(t, data).start
		d := must(t, slices.Concat(data[:8+infoSize], block(0x80|kindComments, append(b, text...)), data[start:]))
		if got := strings.Join(d.Warnings, "; "); !strings.Contains(got, want) {
			t.Errorf("%q: warnings %q, want %q", text, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	good := encode(t, Format{44100, 2, 16, 0}, Options{}, make([]int32, 20))
	with := func(at int, v ...byte) []byte {
		b := slices.Clone(good)
		copy(b[at:], v)
		return b
	}
	start := int(must(t, good).start)
	for name, c := range map[string]struct {
		data []byte
		want error
		text string
	}{
		"nothing":          {nil, ErrTruncated, "byte 0"},
		"something":        {make([]byte, 100), ErrDamaged, "fLaC"},
		"Ogg":              {append([]byte("OggS"), good...), ErrUnsupported, "Ogg"},
		"a tag":            {[]byte("ID3\x03\x00\x00\x7f\x00\x00\x00 and more"), ErrTruncated, ""},
		"metadata cut off": {good[:30], ErrTruncated, "34 bytes at byte 8"},
		"no STREAMINFO":    {with(4, 0x01), ErrDamaged, "kind 1"},
		"two":              {slices.Concat(good[:42], good[4:]), ErrDamaged, "kind 0"},
		"rate 0":           {with(18, 0, 0, 2), ErrUnsupported, "0 samples a second"},
		"2 bits":           {with(20, 0x42, 0x10), ErrUnsupported, "2 bits"},
		"no frame":         {good[:start+6], ErrTruncated, "no whole frame"},
		"no frames at all": {append(slices.Clone(good[:start]), make([]byte, 1000)...), ErrTruncated, "no whole frame"},
	} {
		if _, err := open(c.data); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.text)
		}
	}
	// A valid frame with the number 2^30: the file is too short for so many samples.
	far := appendHead(nil, Format{44100, 2, 16, 0}, 1<<30, 10, 1)
	far = append(far, 0, 0, 0, 0, 0, 0)
	far = binary.BigEndian.AppendUint16(far, crc16(0, far))
	first := good[:len(good):len(good)]
	if _, err := open(append(first, far...)); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a frame far away: %v", err)
	}
}

func TestEncoderRefuses(t *testing.T) {
	ok := Format{44100, 2, 16, 0}
	for name, c := range map[string]struct {
		f       Format
		o       Options
		samples int64
		want    error
	}{
		"channels":       {Format{44100, 9, 16, 0}, Options{}, 1, ErrUnsupported},
		"rate":           {Format{1 << 20, 2, 16, 0}, Options{}, 1, ErrUnsupported},
		"bits":           {Format{44100, 2, 33, 0}, Options{}, 1, ErrUnsupported},
		"samples":        {ok, Options{}, 1 << 36, ErrTooLarge},
		"a table":        {ok, Options{Points: 1}, -1, ErrUnsupported},
		"a name":         {ok, Options{Comments: []Comment{{"A=B", ""}}}, 1, ErrUnsupported},
		"no name":        {ok, Options{Comments: []Comment{{"", "x"}}}, 1, ErrUnsupported},
		"a value":        {ok, Options{Comments: []Comment{{"A", "\xff"}}}, 1, ErrUnsupported},
		"a long comment": {ok, Options{Comments: []Comment{{"A", strings.Repeat("x", 1<<24)}}}, 1, ErrTooLarge},
	} {
		if _, err := NewEncoder(&seeker{}, c.f, c.o, c.samples); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	e, err := NewEncoder(&seeker{}, ok, Options{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write([]int32{1}); err == nil {
		t.Error("half a sample is taken")
	}
	if err := e.Write([]int32{1, 32768}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("17 bits: %v", err)
	}
	if err := e.Write(make([]int32, 6)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more samples than were promised: %v", err)
	}
	if err := e.Close(); !errors.Is(err, ErrTruncated) {
		t.Errorf("fewer samples than were promised: %v", err)
	}
	s := &seeker{}
	if e, err = NewEncoder(s, ok, Options{}, -1); err != nil || e.Write(make([]int32, 6)) != nil || e.Close() != nil {
		t.Fatal(err)
	}
	if d := must(t, s.b); d.Samples != 3 || d.says != 3 {
		t.Errorf("%d samples, %d in the head, want 3", d.Samples, d.says)
	}
}

// TestVaries reads frames of different sizes, with kinds of subframes that the encoder does not write.
func TestVaries(t *testing.T) {
	f := Format{44100, 1, 16, 4}
	src := tones(6000, f)
	data := encode(t, f, Options{}, src)
	start := must(t, data).start
	data = data[:start:start]
	data[8+0], data[8+1], data[8+2], data[8+3] = 0, 16, 0x10, 0
	at := 0
	for i, n := range []int{4096, 16, 192, 1000, 576, 120} {
		x := src[at : at+n]
		var w bitWriter
		w.b = appendHead(nil, f, int64(at), n, 0)
		w.b[1] |= 1
		w.b[len(w.b)-1] = crc8(w.b[:len(w.b)-1])
		w.write(fixed, 7)
		w.write(0, 1)
		// Parameters of 4 or 5 bits, and parts with plain samples.
		wide := uint(i & 1)
		w.write(uint64(wide), 2)
		w.write(2, 4)
		for p := range 4 {
			part := x[p*n/4 : (p+1)*n/4]
			if p&1 == 0 {
				w.write(1<<(4+wide)-1, 4+wide)
				w.write(16, 5)
				for _, v := range part {
					w.write(uint64(v), 16)
				}
				continue
			}
			w.write(9, 4+wide)
			for _, v := range part {
				u := uint64(uint32(v<<1) ^ uint32(v>>31))
				w.unary(u >> 9)
				w.write(u, 9)
			}
		}
		w.align()
		data = append(data, binary.BigEndian.AppendUint16(w.b, crc16(0, w.b))...)
		at += n
	}
	d := must(t, data)
	if got := all(t, d, 100); !slices.Equal(got, src) || d.hashed != 6000 || len(d.Warnings) > 0 {
		t.Errorf("%d samples, %q", len(got), d.Warnings)
	}
	for _, to := range []int{4100, 0, 5999, 4096, 4200} {
		if err := d.SeekSample(int64(to)); err != nil || !slices.Equal(all(t, d, 77), src[to:]) {
			t.Errorf("not the same from %d on: %v", to, err)
		}
	}
}

// A predictor of a high order with its own weights, which this package's encoder does not write.
func TestLongOrder(t *testing.T) {
	f := Format{44100, 1, 24, 4}
	src := tones(500, f)
	data := encode(t, f, Options{}, src)
	start := must(t, data).start
	var w bitWriter
	w.b = appendHead(nil, f, 0, 500, 0)
	w.write(linear+31, 7)
	w.write(0, 1)
	for _, v := range src[:32] {
		w.write(uint64(v), 24)
	}
	w.write(14, 4)
	w.write(13, 5)
	r := rand.New(rand.NewPCG(1, 1))
	weights := make([]int64, 32)
	for i := range weights {
		weights[i] = r.Int64N(1<<10) - 1<<9
		w.write(uint64(weights[i]), 15)
	}
	w.write(1, 2)
	w.write(0, 4)
	w.write(17, 5)
	for i := 32; i < 500; i++ {
		sum := int64(0)
		for j, v := range weights {
			sum += v * int64(src[i-1-j])
		}
		e := int64(src[i]) - sum>>13
		u := uint64(e<<1 ^ e>>63)
		w.unary(u >> 17)
		w.write(u, 17)
	}
	w.align()
	d := must(t, append(data[:start:start], binary.BigEndian.AppendUint16(w.b, crc16(0, w.b))...))
	if got := all(t, d, 100); !slices.Equal(got, src) || d.hashed != 500 || len(d.Warnings) > 0 {
		t.Errorf("%d samples, %q", len(got), d.Warnings)
	}
}

// TestSameOnEveryMachine compares digests of the output. A change of the encoder changes them; another processor must not.
func TestSameOnEveryMachine(t *testing.T) {
	for _, c := range []struct {
		f    Format
		want string
	}{
		{Format{44100, 2, 16, 0}, "948d3032b6066f25"},
		{Format{96000, 2, 24, 0}, "c56d4a7015d705ed"},
		{Format{48000, 1, 12, 0}, "736336ebb643907a"},
	} {
		data := encode(t, c.f, Options{}, waves(30000, c.f))
		if d := must(t, data); d.Samples != 30000 || int(data[d.start+6])>>1&^7 != linear {
			t.Errorf("%+v: the first frame begins with %x, and not with weights of its own", c.f, data[d.start:][:8])
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:8]); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
}

// waves are resonating noise of varying loudness, computed with integers so that they are the same on every machine.
func waves(samples int, f Format) []int32 {
	r := rand.New(rand.NewPCG(7, 8))
	out := make([]int32, samples*f.Channels)
	var before [MaxChannels][2]int
	for i := range out {
		b := &before[i%f.Channels]
		v := (120*b[0]-62*b[1])/64 + (r.IntN(65)-32)*(i%9000)/9000
		b[0], b[1] = v, b[0]
		out[i] = int32(min(max(v, -2048), 2047)) << (f.Bits - 4) >> 8
	}
	return out
}

// small returns a file that uses every feature of the encoder.
func small(t testing.TB) []byte {
	f := Format{8000, 2, 8, 0}
	src := waves(300, f)
	clear(src[200:240])
	return encode(t, f, Options{Points: 1, Comments: []Comment{{"LOOPSTART", "5"}}}, src)
}

// A file that is cut off anywhere, or has any byte changed, is read or gives an error.
func TestHostile(t *testing.T) {
	good := small(t)
	want := all(t, must(t, good), 100)
	for n := range good {
		if d := try(t, good[:n]); d != nil && len(d.Warnings) == 0 {
			t.Errorf("cut to %d of %d bytes, and no warning", n, len(good))
		}
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			changed := slices.Clone(good)
			changed[n] = v
			d := try(t, changed)
			if n > 42+22+40 && d != nil && v != good[n] && len(d.Warnings) == 0 && slices.Equal(all(t, must(t, changed), 9), want) {
				t.Errorf("byte %d is %02x, not %02x, and no warning", n, v, good[n])
			}
		}
	}
}

func try(t testing.TB, data []byte) *Decoder {
	d, err := open(data)
	if err != nil {
		if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("error of no kind: %v", err)
		}
		return nil
	}
	if d.Samples > int64(len(data))*maxBlock {
		t.Fatalf("%d samples in %d bytes", d.Samples, len(data))
	}
	count := func() (n int64) {
		buf := make([]int32, 5000*d.Channels)
		for {
			k, err := d.Read(buf)
			n += int64(k)
			if err == io.EOF {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := count(); n != d.Samples {
		t.Fatalf("%d samples, and %d are said", n, d.Samples)
	}
	half := d.Samples / 2
	if err := d.SeekSample(half); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != d.Samples-half {
		t.Fatalf("%d samples from %d of %d on", n, half, d.Samples)
	}
	for _, l := range d.Loops {
		if l.Begin < 0 || l.Begin >= l.End || l.End > d.Samples {
			t.Fatalf("loop %+v of %d samples", l, d.Samples)
		}
	}
	for _, m := range d.Markers {
		if m.Sample < 0 || m.Sample > d.Samples {
			t.Fatalf("marker %+v of %d samples", m, d.Samples)
		}
	}
	return d
}

func FuzzDecoder(f *testing.F) {
	f.Add(small(f))
	f.Add(encode(f, Format{96000, 2, 24, 0}, Options{}, waves(100, Format{96000, 2, 24, 0})))
	f.Add(encode(f, Format{44100, 8, 32, 0}, Options{}, make([]int32, 8*50)))
	f.Fuzz(func(t *testing.T, data []byte) { try(t, data) })
}

// FuzzRoundTrip encodes samples of any values.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00 and more of this"), uint8(15), uint8(1), uint16(3))
	f.Add(bytes.Repeat([]byte{0xff, 0x7f, 0xff, 0x80, 3}, 100), uint8(31), uint8(1), uint16(70))
	f.Add(bytes.Repeat([]byte{1, 0, 0, 0}, 100), uint8(23), uint8(7), uint16(9))
	f.Fuzz(func(t *testing.T, data []byte, bits, channels uint8, times uint16) {
		format := Format{44100, int(channels)%MaxChannels + 1, MinBits + int(bits)%(MaxBits-MinBits+1), 0}
		var src []int32
		for ; len(data) >= 4; data = data[4:] {
			src = append(src, int32(binary.LittleEndian.Uint32(data))>>(32-format.Bits))
		}
		once := src
		for range times % 100 {
			if len(src) < 20000 {
				src = append(src, once...)
			}
		}
		src = src[:len(src)/format.Channels*format.Channels]
		d := must(t, encode(t, format, Options{Points: int(times) % 3}, src))
		if got := all(t, d, 500); !slices.Equal(got, src) || len(d.Warnings) > 0 || d.hashed != d.Samples {
			t.Fatalf("%+v: %d samples of %d, %q", format, d.Samples, len(src)/format.Channels, d.Warnings)
		}
	})
}

func BenchmarkMinute(b *testing.B) {
	f := Format{44100, 2, 16, 3}
	src := tones(60*f.Rate, f)
	data := encode(b, f, Options{}, src)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			encode(b, f, Options{}, src)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			all(b, must(b, data), 5000)
		}
	})
}

// TestFormatChanges: frames of another format, and other files, are errors; the sound there would be lost without a word.
func TestFormatChanges(t *testing.T) {
	was := Format{Rate: 44100, Channels: 2, Bits: 16}
	first := encode(t, was, Options{}, tones(9000, was))
	body := func(f Format) []byte {
		data := encode(t, f, Options{}, tones(9000, f))
		return data[frames(t, data)[0]:]
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"rate", slices.Concat(first, body(Format{Rate: 48000, Channels: 2, Bits: 16})),
			"the format is 48000 Hz, 2 x 16 bits, before it 44100 Hz, 2 x 16 bits"},
		{"channels", slices.Concat(first, body(Format{Rate: 44100, Channels: 1, Bits: 16})), "the format is 44100 Hz, 1 x 16 bits"},
		{"bits, and back", slices.Concat(first, body(Format{Rate: 44100, Channels: 2, Bits: 24}), body(was)), "24 bits"},
		{"another file", slices.Concat(first, first), "another FLAC file begins at byte"},
	} {
		d, err := open(c.data)
		if err == nil {
			out := make([]int32, 2048)
			for err == nil {
				_, err = d.Read(out)
			}
		}
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for after, want := range map[string]string{
		"some junk":                      "9 bytes after the last whole frame are not read",
		"TAG" + strings.Repeat("a", 125): "",
		strings.Repeat("\x00", 5000):     "",
	} {
		if d := must(t, append(slices.Clone(first), after...)); strings.Join(d.Warnings, ";") != want {
			t.Errorf("%.9q: %q", after, d.Warnings)
		}
	}
}
