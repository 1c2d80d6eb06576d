// Package mp3 reads the container of MP3 sound: the positions of frames, the length of the sound, and which decoded samples
// belong to it. [File.NewReader] decodes layer III.
//
// It follows ISO/IEC 11172-3 and 13818-3 for the head of a frame, the description of the Xing and LAME tag by Gabriel
// Bouvigne (2004), and ID3v2 (2.2 to 2.4), ID3v1 and APEv2 for tags. A file is
//
//	ID3v2 tags
//	a frame without sound, with the Xing, Info or VBRI tag: number of frames, samples that the encoder added
//	frames of 1152 or 576 samples per channel, u32 head: 11 bits set, version, layer, bit rate, sample rate, padding, channels
//	APEv2 and ID3v1 tags
package mp3

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// Extension is the file name extension.
const Extension = ".mp3"

var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
)

// DecoderDelay is the delay of any decoder of layer III in samples.
const DecoderDelay = 529

const (
	maxTag  = 64 << 20 // a tag may contain images
	maxJunk = 1 << 20  // before the first frame
)

// File is the information about a file without decoding.
type File struct {
	Rate, Channels int
	Layer          int
	FrameSamples   int    // per channel
	Audio          int64  // start of the first frame of sound
	AudioEnd       int64  // end of the last frame of sound
	Frames         int64  // of sound
	Skip           int64  // decoded samples per channel before the sound
	Samples        int64  // samples of the sound per channel
	Gapless        bool   // the encoder recorded how many samples it added
	BitRate        int    // mean bits per second
	Tag            []byte // the complete ID3v2 tag
	Texts          []Text
	Warnings       []string

	first Head
	free  int // bytes of a frame of free bit rate without padding; 0: not known
	tries int // how often it was looked for
}

// Text is a text of an ID3v2 TXXX frame, such as LOOPSTART.
type Text struct{ Name, Value string }

// Head is the head of a frame.
type Head struct {
	Rate, Channels, Layer int
	Samples               int // per channel
	Size                  int // bytes, including the head; 0 for a free bit rate
	BitRate               int
	Low                   bool // MPEG-2 or MPEG-2.5
	padding               int  // bytes of Size
	side                  int  // bytes of side information in layer III
	version, index        int  // 0 MPEG-1, 1 MPEG-2, 2 MPEG-2.5; and which of its rates
	mode, extension       int  // of stereo
}

var bitRates = [2][3][15]int{ // kbit/s; MPEG-1, MPEG-2; layers I to III
	{
		{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
		{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	}, {
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
	},
}

// ParseHead parses the first four bytes of a frame.
func ParseHead(b []byte) (h Head, ok bool) {
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return h, false
	}
	version, layer, rate, bits := b[1]>>3&3, b[1]>>1&3, b[2]>>2&3, b[2]>>4
	if version == 1 || layer == 0 || rate == 3 || bits == 15 || b[3]&3 == 2 {
		return h, false
	}
	h.Layer = 4 - int(layer)
	low := 0
	if version != 3 {
		low = 1
	}
	h.Low, h.version, h.index = low == 1, []int{2, 0, 1, 0}[version], int(rate)
	h.mode, h.extension = int(b[3]>>6), int(b[3]>>4&3)
	h.Rate = []int{44100, 48000, 32000}[rate] >> h.version
	h.Channels = 2
	if b[3]>>6 == 3 {
		h.Channels = 1
	}
	h.BitRate = bitRates[low][h.Layer-1][bits] * 1000
	padding := int(b[2] >> 1 & 1)
	h.padding = padding
	switch h.Layer {
	case 1:
		h.Samples = 384
		h.Size = (12*h.BitRate/h.Rate + padding) * 4
	case 2:
		h.Samples = 1152
		h.Size = 144*h.BitRate/h.Rate + padding
	default:
		h.Samples = 1152 >> low
		h.Size = (144>>low)*h.BitRate/h.Rate + padding
		h.side = [2][2]int{{17, 32}, {9, 17}}[low][h.Channels-1]
	}
	if h.BitRate == 0 {
		h.Size = 0
	}
	return h, true
}

// like reports whether two frames can belong to the same stream.
func (h Head) like(o Head) bool {
	return h.Rate == o.Rate && h.Layer == o.Layer && h.Samples == o.Samples
}

// window reads a file sequentially in large pieces.
type window struct {
	in   io.ReaderAt
	size int64
	at   int64
	buf  []byte
	err  error
}

// bytes returns up to n bytes at a position; fewer at the end.
func (w *window) bytes(at int64, n int) []byte {
	const piece = 64 << 10
	if at < w.at || at+int64(n) > w.at+int64(len(w.buf)) {
		want := min(max(int64(n), piece), max(w.size-at, 0))
		if int64(cap(w.buf)) < want {
			w.buf = make([]byte, want)
		}
		w.buf, w.at = w.buf[:want], at
		got, err := w.in.ReadAt(w.buf, at)
		if err != nil && err != io.EOF && w.err == nil {
			w.err = err
		}
		w.buf = w.buf[:got]
	}
	b := w.buf[at-w.at:]
	return b[:min(n, len(b))]
}

// Read reads a file, with the heads of all frames.
func Read(in io.ReaderAt, size int64) (*File, error) {
	f := &File{}
	w := &window{in: in, size: size}
	begin := f.tags(w)
	end := tail(w, size)
	first, at, err := f.sync(w, begin, end)
	if err != nil {
		return nil, err
	}
	if at > begin {
		f.warn("%d bytes before the first frame are not read", at-begin)
	}
	f.Rate, f.Channels, f.Layer, f.FrameSamples = first.Rate, first.Channels, first.Layer, first.Samples
	var lame lame
	if info := w.bytes(at, first.Size); lame.read(info, first) {
		at += int64(first.Size)
	}
	f.Audio = at
	f.first = first
	bytes, err := f.count(w, at, end)
	if err == nil {
		err = w.err
	}
	if err != nil {
		return nil, err
	}
	if f.Frames == 0 {
		return nil, fmt.Errorf("no sound in the file: %w", ErrTruncated)
	}
	f.BitRate = int(bytes * 8 * int64(f.Rate) / (f.Frames * int64(f.FrameSamples)))
	f.length(lame)
	return f, nil
}

// count counts the frames from a position on, and returns the number of their bytes. What are no frames in between is
// skipped; sound of another rate is an error, since it would be lost.
func (f *File) count(w *window, at, end int64) (bytes int64, err error) {
	for {
		h, where, err := f.next(w, at, end)
		if err != nil {
			return 0, err
		}
		if where < 0 {
			break
		}
		if where > at {
			f.warn("%d bytes from %d on are not a frame of MP3", where-at, at)
		}
		if where+int64(h.Size) > end {
			f.warn("the last frame is cut off")
			at = where
			break
		}
		at = where + int64(h.Size)
		bytes += int64(h.Size)
		f.Channels = max(f.Channels, h.Channels) // a decoder gives both channels the sound of one
		f.Frames++
	}
	f.AudioEnd = at
	return bytes, nil
}

// next returns the head of the next frame at or after a position, and where it is; below 0 if there is none.
func (f *File) next(w *window, at, end int64) (h Head, where int64, err error) {
	if at >= end {
		return h, -1, nil
	}
	h, ok := f.head(w, at)
	if ok && h.like(f.first) {
		return h, at, nil
	}
	where, found, err := f.resume(w, f.first, at, end)
	if err != nil {
		return h, -1, err
	}
	if !found {
		f.unread(w, at, end)
		return h, -1, nil
	}
	h, _ = f.head(w, where)
	return h, where, nil
}

// head is ParseHead, with the size of a frame of free bit rate, which is that of the others but for padding.
func (f *File) head(w *window, at int64) (h Head, ok bool) {
	h, ok = ParseHead(w.bytes(at, 4))
	if ok && h.BitRate == 0 && f.free > 0 {
		h.Size = f.free + h.padding
	}
	return h, ok && h.Size > 0
}

// maxFree is the largest size of a frame of free bit rate that is looked for: four times that of 320 kbit/s.
const maxFree = 4 * 1441

// maxTries is how many heads are tried: what is no sound may have many that look like those of free bit rate.
const maxTries = 1000

// freeHead returns the head of a frame of free bit rate at a position. Its size is the distance to the next frame, if there is another
// after that, or the end.
func (f *File) freeHead(w *window, at, end int64) (h Head, ok bool) {
	if f.free > 0 {
		return f.head(w, at)
	}
	h, _ = ParseHead(w.bytes(at, 4))
	if f.tries++; h.Layer != 3 || f.tries > maxTries {
		return h, false
	}
	b := w.bytes(at, 2*maxFree+4)
	same := func(n int) (int, bool) {
		if n+4 > len(b) {
			return 0, false
		}
		o, ok := ParseHead(b[n:])
		return o.padding, ok && b[n+1] == b[1] && b[n+2]&^3 == b[2]&^3 && o.Channels == h.Channels
	}
	for n := 4 + h.side; n <= maxFree && n+4 <= len(b); n++ {
		padding, ok := same(n)
		if !ok {
			continue
		}
		size := n - h.padding
		second := n + size + padding
		if _, ok := same(second); ok || at+int64(second) == end {
			f.free, h.Size = size, n
			return h, true
		}
	}
	return h, false
}

// Reader decodes a file.
type Reader struct {
	f      *File
	w      window
	d      *Decoder
	at     int64
	buf    []float32
	left   []float32 // what was decoded and not read
	over   bool
	damage error
}

// NewReader returns a reader that begins with the first frame. It gives all that a decoder does: the sound begins after Skip samples.
func (f *File) NewReader(in io.ReaderAt) *Reader {
	return &Reader{f: f, w: window{in: in, size: f.AudioEnd}, d: NewDecoder(), at: f.Audio, buf: make([]float32, 1152*f.Channels)}
}

// Damage is the first damage that was found in a frame, or nil. There is silence in place of what could not be decoded.
func (r *Reader) Damage() error { return r.damage }

// Read reads interleaved samples, and returns their number per channel. After the last frame comes what is left in the decoder.
func (r *Reader) Read(dst []float32) (int, error) {
	for len(r.left) == 0 {
		if err := r.decode(); err != nil {
			return 0, err
		}
	}
	n := copy(dst[:len(dst)/r.f.Channels*r.f.Channels], r.left)
	r.left = r.left[n:]
	return n / r.f.Channels, nil
}

// decode decodes the next frame.
func (r *Reader) decode() error {
	if r.over {
		return io.EOF
	}
	h, where, err := r.f.next(&r.w, r.at, r.f.AudioEnd)
	switch {
	case err != nil:
		return err
	case where < 0:
		r.over = true
		r.left = r.buf[:r.d.Flush(r.buf, r.f.Channels)*r.f.Channels]
		return r.w.err
	}
	frame := r.w.bytes(where, h.Size)
	if r.w.err != nil {
		return r.w.err
	}
	r.at = where + int64(h.Size)
	out := r.buf[:h.Samples*r.f.Channels]
	if _, err := r.d.Decode(out, frame); err != nil && r.damage == nil {
		r.damage = fmt.Errorf("frame at byte %d: %w", where, err)
	}
	if h.Channels < r.f.Channels { // both channels get the sound of one
		for i := h.Samples - 1; i >= 0; i-- {
			out[2*i], out[2*i+1] = out[i], out[i]
		}
	}
	r.left = out
	return nil
}

// resume finds the next frame that belongs to the first.
func (f *File) resume(w *window, first Head, at, end int64) (where int64, found bool, err error) {
	for from := at; from < min(end, at+maxJunk); from = where + 1 {
		var h Head
		if h, where, err = f.sync(w, from, end); err != nil {
			return 0, false, w.err // there is none, or it is of a kind that is not supported
		}
		switch {
		case h.like(first):
			return where, true, nil
		case series(w, where, end) >= sure:
			return 0, false, fmt.Errorf("from byte %d on the sound has %d Hz in place of %d: %w", where, h.Rate, first.Rate, ErrUnsupported)
		}
	}
	return 0, false, nil
}

// sure is the number of frames in a row that are not there by chance.
const sure = 4

// series returns how many frames that are alike follow one another, up to sure.
func series(w *window, at, end int64) (n int) {
	first, ok := ParseHead(w.bytes(at, 4))
	for h := first; ok && h.like(first) && h.Size > 0 && n < sure && at+int64(h.Size) <= end; n++ {
		at += int64(h.Size)
		h, ok = ParseHead(w.bytes(at, 4))
	}
	return n
}

// Begins reports whether frames begin within the first 64 KiB of a file, whatever comes before them.
func Begins(in io.ReaderAt, size int64) bool {
	const most = 64 << 10
	w := &window{in: in, size: size}
	for at := int64(0); at < min(size, most); at++ {
		if h, ok := ParseHead(w.bytes(at, 4)); ok && h.Layer == 3 && series(w, at, size) >= sure {
			return true
		}
	}
	return false
}

// unread warns of what follows the last frame, if it is not a tag or padding.
func (f *File) unread(w *window, at, end int64) {
	head := string(w.bytes(at, 8))
	for _, tag := range []string{"ID3", "TAG", "APETAGEX", "LYRICSBE"} {
		if strings.HasPrefix(head, tag) {
			return
		}
	}
	for i := at; i < end; i += 4096 {
		if b := w.bytes(i, int(min(4096, end-i))); len(bytes.Trim(b, "\x00")) > 0 {
			f.warn("%d bytes after the last frame are not read", end-at)
			return
		}
	}
}

func (f *File) length(l lame) {
	all := f.Frames * int64(f.FrameSamples)
	f.Samples = all
	if l.frames > 0 && l.frames != f.Frames {
		f.warn("the file says %d frames, and %d are there", l.frames, f.Frames)
	}
	if !l.gapless || l.frames > f.Frames {
		return
	}
	if n := all - l.before - l.after; n > 0 {
		f.Gapless, f.Skip, f.Samples = true, l.before+DecoderDelay, n
	} else {
		f.warn("the encoder says that it added %d and %d samples, and %d are there: nothing is cut off", l.before, l.after, all)
	}
}

func (f *File) warn(format string, args ...any) {
	if len(f.Warnings) < 20 {
		f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
	}
}

// sync finds the first frame at or after a position that is followed by another frame or the end.
func (f *File) sync(w *window, at, end int64) (Head, int64, error) {
	for stop := min(end, at+maxJunk); at < stop; at++ {
		b := w.bytes(at, 4)
		if len(b) < 4 {
			break
		}
		h, ok := ParseHead(b)
		if !ok {
			continue
		}
		if h.Size == 0 {
			if h, ok = f.freeHead(w, at, end); !ok {
				continue
			}
		}
		next := at + int64(h.Size)
		if next+4 > end {
			if next == end {
				return h, at, nil
			}
			continue
		}
		if n, ok := ParseHead(w.bytes(next, 4)); ok && n.like(h) && (n.BitRate > 0) == (h.BitRate > 0) {
			return h, at, nil
		}
	}
	if w.err != nil {
		return Head{}, 0, w.err
	}
	return Head{}, at, fmt.Errorf("no frame of MP3 in the file: %w", ErrDamaged)
}

// lame is the information in the first frame, if that has no sound.
type lame struct {
	frames        int64
	gapless       bool
	before, after int64 // number of samples that the encoder added
}

// read reads the tag after the side information: "Xing" or "Info", u32 flags, then for each flag u32 frames, u32 bytes, 100
// bytes, u32 quality; then 21 bytes, 12 bits samples before the sound, 12 bits after it. Numbers are big-endian.
func (l *lame) read(b []byte, h Head) bool {
	be := binary.BigEndian
	if len(b) >= 36+18 && string(b[36:40]) == "VBRI" {
		l.frames = int64(be.Uint32(b[36+14:]))
		return true
	}
	if h.Layer != 3 {
		return false
	}
	at := 4 + h.side
	if b[1]&1 == 0 && len(b) > at+2+4 { // it has a checksum
		if id := string(b[at+2 : at+6]); id == "Xing" || id == "Info" {
			at += 2
		}
	}
	if len(b) < at+8 {
		return false
	}
	if id := string(b[at : at+4]); id != "Xing" && id != "Info" {
		return false
	}
	flags := be.Uint32(b[at+4:])
	at += 8
	for _, part := range []struct {
		flag uint32
		size int
	}{{1, 4}, {2, 4}, {4, 100}, {8, 4}} {
		if flags&part.flag == 0 {
			continue
		}
		if len(b) < at+part.size {
			return true
		}
		if part.flag == 1 {
			l.frames = int64(be.Uint32(b[at:]))
		}
		at += part.size
	}
	if len(b) < at+24 || b[at] == 0 { // without the name of an encoder
		return true
	}
	l.gapless = true
	l.before, l.after = int64(b[at+21])<<4|int64(b[at+22])>>4, int64(b[at+22]&15)<<8|int64(b[at+23])
	return true
}

// tail returns the start of the tags after the frames.
func tail(w *window, size int64) int64 {
	if size >= 128 && string(w.bytes(size-128, 3)) == "TAG" {
		size -= 128
	}
	if b := w.bytes(size-32, 32); size >= 32 && len(b) == 32 && string(b[:8]) == "APETAGEX" {
		n := int64(binary.LittleEndian.Uint32(b[12:]))
		if binary.LittleEndian.Uint32(b[20:])&(1<<31) != 0 {
			n += 32
		}
		if n <= size {
			size -= n
		}
	}
	return size
}

// tags reads ID3v2 tags, and returns their end.
//
//	0  "ID3", u8 version, u8 revision, u8 flags: 0x80 unsynchronised, 0x40 extended, 0x10 with a footer
//	6  u32 size, 7 bits per byte, of frames: 4 letters, u32 size, u16 flags, body
func (f *File) tags(w *window) (at int64) {
	for {
		h := w.bytes(at, 10)
		if len(h) < 10 || string(h[:3]) != "ID3" || h[3] == 0xff {
			return at
		}
		size, version, flags := synchsafe(h[6:]), h[3], h[5]
		n := int64(size) + 10
		if flags&0x10 != 0 {
			n += 10
		}
		if n > w.size-at || n > maxTag {
			f.warn("the ID3 tag says %d bytes, and there are %d", n, w.size-at)
			return at + 10
		}
		if f.Tag == nil {
			f.Tag = bytes.Clone(w.bytes(at, int(n)))
			if flags&0xc0 == 0 && (version == 3 || version == 4) {
				f.texts(f.Tag[10:10+size], version)
			}
		}
		at += n
	}
}

func synchsafe(b []byte) int {
	return int(b[0]&0x7f)<<21 | int(b[1]&0x7f)<<14 | int(b[2]&0x7f)<<7 | int(b[3]&0x7f)
}

func (f *File) texts(b []byte, version byte) {
	for len(b) >= 10 && b[0] != 0 {
		n := synchsafe(b[4:])
		if version == 3 {
			n = int(binary.BigEndian.Uint32(b[4:]))
		}
		if n < 0 || n > len(b)-10 {
			return
		}
		body := b[10 : 10+n]
		if string(b[:4]) == "TXXX" && n > 1 && len(f.Texts) < 256 {
			if name, value, ok := strings.Cut(text(body[0], body[1:]), "\x00"); ok {
				f.Texts = append(f.Texts, Text{name, strings.TrimRight(value, "\x00")})
			}
		}
		b = b[10+n:]
	}
}

// text decodes a text: encoding 0 is Latin-1, 1 UTF-16 with a byte order mark, 2 UTF-16 big-endian, 3 UTF-8.
func text(encoding byte, b []byte) string {
	switch encoding {
	case 0:
		r := make([]rune, len(b))
		for i, c := range b {
			r[i] = rune(c)
		}
		return string(r)
	case 1, 2:
		var order binary.ByteOrder = binary.BigEndian
		var units []uint16
		for ; len(b) >= 2; b = b[2:] {
			u := order.Uint16(b)
			switch {
			case encoding == 1 && u == 0xfffe:
				order = binary.LittleEndian
			case encoding == 1 && u == 0xfeff:
			default:
				units = append(units, u)
			}
		}
		return string(utf16.Decode(units))
	}
	return string(b)
}

// Retag returns an ID3v2.4 tag with texts and the frames of an old tag of version 3 or 4. Frames of other tags are not kept.
func Retag(old []byte, texts []Text) []byte {
	var body []byte
	if len(old) >= 10 && (old[3] == 3 || old[3] == 4) && old[5] == 0 {
		for b := old[10:]; len(b) >= 10 && b[0] != 0; {
			n := synchsafe(b[4:])
			if old[3] == 3 {
				n = int(min(binary.BigEndian.Uint32(b[4:]), maxTag))
			}
			if n > len(b)-10 || old[3] == 3 && b[9] != 0 { // compressed or encrypted: version 4 has another form for these
				break
			}
			if string(b[:4]) != "TXXX" || !replaced(b[10:10+n], texts) {
				body = append(appendSynchsafe(append(body, b[:4]...), n), b[8], b[9])
				body = append(body, b[10:10+n]...)
			}
			b = b[10+n:]
		}
	}
	for _, t := range texts {
		data := append(append(append([]byte{3}, t.Name...), 0), t.Value...)
		body = append(body, "TXXX"...)
		body = append(appendSynchsafe(body, len(data)), 0, 0)
		body = append(body, data...)
	}
	b := appendSynchsafe([]byte("ID3\x04\x00\x00"), len(body))
	return append(b, body...)
}

func replaced(body []byte, texts []Text) bool {
	if len(body) < 2 {
		return false
	}
	name, _, _ := strings.Cut(text(body[0], body[1:]), "\x00")
	for _, t := range texts {
		if strings.EqualFold(t.Name, name) {
			return true
		}
	}
	return false
}

func appendSynchsafe(b []byte, n int) []byte {
	return append(b, byte(n>>21&0x7f), byte(n>>14&0x7f), byte(n>>7&0x7f), byte(n&0x7f))
}
