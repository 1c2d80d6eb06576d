package flac

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"hash"
	"io"
	"sort"
)

const maxWarnings = 20

// Decoder reads a file.
type Decoder struct {
	Format
	Samples  int64 // of each channel
	Comments []Comment
	Loops    []Loop
	Markers  []Marker
	Warnings []string // in plain words; [Decoder.Read] adds one for each damage

	in     bitReader
	start  int64 // byte of the first frame
	says   int64 // samples according to the head; 0 if the writer did not know
	block  int64 // samples of a frame if all frames have the same
	base   int64 // number of the first sample
	points []point

	reported   int64                // from this byte on it was said what is not read; 0 if nothing was
	next       int64                // next sample to read
	at         int64                // byte of the next frame to decode
	pcm        [MaxChannels][]int64 // samples of the current frame
	first, end int64                // its samples; those from next to first are missing

	md5    [md5.Size]byte
	hash   hash.Hash
	hashed int64 // samples in hash; below 0 if hash is not used
	buf    []byte
}

// point is the position of a frame.
type point struct{ sample, at int64 }

// NewDecoder reads everything in a file except the samples; of these, it reads only the first and the last frame. Errors
// wrap [ErrTruncated], [ErrDamaged] or [ErrUnsupported], or are those of r.
func NewDecoder(r io.ReaderAt, size int64) (*Decoder, error) {
	d := &Decoder{in: bitReader{from: r, size: size}, hash: md5.New()}
	at, err := d.skipTags()
	if err != nil {
		return nil, err
	}
	head, err := d.bytes(at, 4)
	switch {
	case err != nil:
		return nil, err
	case string(head) == "OggS":
		return nil, fmt.Errorf("%q at byte %d: an Ogg file, perhaps with FLAC in it: %w", head, at, ErrUnsupported)
	case string(head) != magic:
		return nil, fmt.Errorf("%q at byte %d, where a FLAC file has %q: %w", head, at, magic, ErrDamaged)
	}
	if err := d.metadata(at + 4); err != nil {
		return nil, err
	}
	if err := d.count(); err != nil {
		return nil, err
	}
	d.loop()
	d.places()
	sort.Slice(d.points, func(i, k int) bool { return d.points[i].sample < d.points[k].sample })
	d.at = d.start
	if d.md5 == [md5.Size]byte{} || d.base > 0 || d.says > 0 && d.says != d.Samples {
		d.hashed = -1
	}
	return d, nil
}

// skipTags skips ID3v2 tags, which some programs write although FLAC does not allow them.
func (d *Decoder) skipTags() (at int64, err error) {
	for {
		if at+10 > d.in.size {
			return at, nil
		}
		b, err := d.bytes(at, 10)
		if err != nil || string(b[:3]) != "ID3" {
			return at, err
		}
		size := int64(b[6]&0x7f)<<21 | int64(b[7]&0x7f)<<14 | int64(b[8]&0x7f)<<7 | int64(b[9]&0x7f)
		if b[5]&0x10 != 0 {
			size += 10 // the header is repeated at the end
		}
		at += 10 + size
	}
}

// warn records a warning. After a maximum of warnings it only counts.
func (d *Decoder) warn(format string, args ...any) {
	switch n := len(d.Warnings); {
	case n < maxWarnings:
		d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
	case n == maxWarnings:
		d.Warnings = append(d.Warnings, "and more of the like")
	}
}

// bytes reads n bytes at a position.
func (d *Decoder) bytes(at int64, n int) ([]byte, error) {
	if at+int64(n) > d.in.size {
		return nil, fmt.Errorf("%d bytes at byte %d: %w", n, at, ErrTruncated)
	}
	b := make([]byte, n)
	switch got, err := d.in.from.ReadAt(b, at); {
	case got == n:
		return b, nil
	case err == nil || err == io.EOF:
		return nil, fmt.Errorf("%d bytes at byte %d: %w", n, at, ErrTruncated)
	default:
		return nil, fmt.Errorf("%d bytes at byte %d: %w", n, at, err)
	}
}

// damage reports whether an error is in the data, and not in reading it.
func damage(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, ErrTruncated) }

// count determines the number of samples.
func (d *Decoder) count() error {
	if d.start == d.in.size {
		if d.says > 0 {
			d.warn("the head says %d samples, and there are none: the file is cut off", d.says)
		}
		return nil
	}
	h, err := d.frame(d.start)
	switch {
	case err == nil:
		d.firstFrame(h)
	case !damage(err):
		return err
	}
	last, end, after, err := d.last()
	if err == nil && end > 0 {
		err = d.unread(after)
	}
	if err != nil {
		return err
	}
	// If all samples are the same, few bytes can have many samples, but at most this number.
	most := (d.in.size - d.start) / 10 * maxBlock
	switch {
	case end == 0:
		return fmt.Errorf("no whole frame from byte %d on: %w", d.start, ErrTruncated)
	case last > most:
		return fmt.Errorf("a frame says that its first sample is %d, and there are at most %d in that number of bytes: %w", last, most, ErrDamaged)
	case d.says > 0 && end > d.says:
		d.warn("the head says %d samples, and frames have %d: the rest is not read", d.says, end)
		end = d.says
	case end < d.says:
		d.warn("the head says %d samples, and whole frames have %d: the file is cut off", d.says, end)
	}
	d.Samples = end
	return nil
}

// firstFrame derives the meaning of frame numbers from the first frame. A file that was cut out of another one does not
// begin with 0.
func (d *Decoder) firstFrame(h head) {
	if !h.varies && (h.number == 0 || d.block < int64(h.block)) {
		d.block = int64(h.block)
	}
	if d.base = d.sample(h); d.base > 0 {
		d.warn("the first frame, at byte %d, says that it begins with sample %d: the file was cut out of a longer one", d.start, d.base)
	}
}

// sample returns the first sample of a frame.
func (d *Decoder) sample(h head) int64 {
	if h.varies {
		return h.number - d.base
	}
	return h.number*d.block - d.base
}

// last returns the first sample and the end of the last complete frame, and its last byte; or 0, 0.
func (d *Decoder) last() (first, end, after int64, err error) {
	const piece = 1 << 16
	for to := d.in.size; to > d.start; to -= piece {
		from := max(to-piece, d.start)
		b, err := d.bytes(from, int(min(to+headSize, d.in.size)-from))
		if err != nil {
			return 0, 0, 0, err
		}
		for i := int(to - from - 1); i >= 0; i-- {
			if _, ok := d.parseHead(b[i:min(i+headSize, len(b))]); !ok {
				continue
			}
			h, err := d.frame(from + int64(i))
			if first := d.sample(h); err == nil && first >= 0 {
				return first, first + int64(h.block), d.in.tell(), nil
			}
			if err != nil && !damage(err) {
				return 0, 0, 0, err
			}
		}
	}
	return 0, 0, 0, nil
}

// find decodes the first frame between the bytes from and before whose first sample is at least sample. It returns the
// frame's position, or -1.
func (d *Decoder) find(from, before, sample int64) (h head, at int64, err error) {
	const piece = 1 << 12
	for ; from < before; from += piece {
		n := min(from+piece+headSize, d.in.size) - from
		b, err := d.bytes(from, int(n))
		if err != nil {
			return h, 0, err
		}
		for i := 0; i < int(min(before-from, piece)); {
			next := bytes.IndexByte(b[i:], 0xff)
			if next < 0 {
				break
			}
			i += next
			if i >= int(min(before-from, piece)) {
				break
			}
			if _, ok := d.parseHead(b[i:min(i+headSize, len(b))]); ok {
				h, err := d.frame(from + int64(i))
				if first := d.sample(h); err == nil && first >= sample && first < d.Samples {
					return h, from + int64(i), nil
				}
				if err != nil && !damage(err) {
					return h, 0, err
				}
			}
			i++
		}
	}
	return h, -1, nil
}

// SeekSample moves to a sample. The next [Decoder.Read] starts there.
func (d *Decoder) SeekSample(sample int64) error {
	if sample < 0 || sample > d.Samples {
		return fmt.Errorf("no sample %d: there are %d", sample, d.Samples)
	}
	d.next = sample
	if sample == d.Samples || sample >= d.first && sample < d.end {
		return nil
	}
	d.at, d.first, d.end = d.start, 0, 0
	// The last frame that begins at or before the sample starts at low.at or between low.at and high.at.
	low, high := point{0, d.start}, point{d.Samples, d.in.size}
	if err := d.look(sample, &low, &high); err != nil {
		return err
	}
	for high.at-low.at > bufferSize {
		middle := low.at + (high.at-low.at)/2
		h, at, err := d.find(middle, high.at, low.sample)
		switch {
		case err != nil:
			return err
		case at < 0:
			high.at = middle
		case d.sample(h) <= sample:
			low = point{d.sample(h), at}
		default:
			high = point{d.sample(h), middle}
		}
	}
	d.at, d.first, d.end = low.at, low.sample, low.sample
	return nil
}

// look finds the nearest points around a sample in the seek table, and checks them.
func (d *Decoder) look(sample int64, low, high *point) error {
	next := sort.Search(len(d.points), func(i int) bool { return d.points[i].sample > sample })
	for _, p := range d.points[max(next-1, 0):min(next+1, len(d.points))] {
		h, err := d.frame(d.start + p.at)
		switch first := d.sample(h); {
		case err != nil && !damage(err):
			return err
		case err != nil || d.start+p.at <= low.at || d.start+p.at >= high.at:
		case first >= low.sample && first <= sample:
			*low = point{first, d.start + p.at}
		case first > sample && first <= high.sample:
			*high = point{first, d.start + p.at}
		}
	}
	return nil
}

// Read reads samples into dst, interleaved, and returns their number for each channel. They are integers of [Format].Bits
// bits. At the end it returns io.EOF. Other errors come with the samples before the error.
func (d *Decoder) Read(dst []int32) (samples int, err error) {
	if d.next == d.Samples {
		return 0, io.EOF
	}
	if len(dst) < d.Channels {
		return 0, io.ErrShortBuffer
	}
	for len(dst) >= d.Channels && d.next < d.Samples {
		if d.next >= d.end {
			if err := d.load(); err != nil {
				return samples, err
			}
			continue
		}
		room := int64(len(dst) / d.Channels)
		var n int
		if d.next < d.first {
			n = int(min(room, d.first-d.next))
			clear(dst[:n*d.Channels])
		} else {
			n = int(min(room, d.end-d.next))
			d.interleave(dst, int(d.next-d.first), n)
		}
		dst = dst[n*d.Channels:]
		samples += n
		d.next += int64(n)
	}
	return samples, nil
}

func (d *Decoder) interleave(dst []int32, skip, n int) {
	if d.Channels == 2 {
		dst = dst[:2*n]
		a, b := d.pcm[0][skip:skip+n], d.pcm[1][skip:skip+n]
		for i, v := range a {
			dst[2*i], dst[2*i+1] = int32(v), int32(b[i])
		}
		return
	}
	for c := range d.Channels {
		for i, v := range d.pcm[c][skip : skip+n] {
			dst[i*d.Channels+c] = int32(v)
		}
	}
}

// load decodes the next frame. If it is damaged, it searches for the next valid one.
func (d *Decoder) load() error {
	was, begin := d.end, d.at
	d.first = d.end
	h, err := d.frame(begin)
	if err != nil && !damage(err) {
		return err
	}
	if first := d.sample(h); err == nil && first != was {
		err = fmt.Errorf("it says that it begins with sample %d", first)
		if first < was || first >= d.Samples {
			err = fmt.Errorf("%w: %w", err, ErrDamaged)
		}
	}
	if err != nil && damage(err) {
		if err := d.changes(begin); err != nil {
			return err
		}
		why := err
		if h, d.at, err = d.find(begin+1, d.in.size, was); err != nil {
			return err
		}
		err = why
	}
	if d.at < 0 {
		d.at, d.first, d.end = d.in.size, d.Samples, d.Samples
	} else {
		d.at = d.in.tell()
		d.first = d.sample(h)
		d.end = min(d.first+int64(h.block), d.Samples)
		if d.end == d.Samples {
			if err := d.unread(d.at); err != nil {
				return err
			}
		}
	}
	if err != nil {
		d.warn("the frame at byte %d, where sample %d should be: %v; samples from %d to %d are silence", begin, was, err, was, d.first-1)
	}
	d.sum()
	return nil
}

// sum adds the frame to the MD5 if all frames before it were added.
func (d *Decoder) sum() {
	if d.hashed != d.first || d.hashed == d.end {
		return
	}
	bytes := (d.Bits + 7) / 8
	d.buf = d.buf[:0]
	for i := range int(d.end - d.first) {
		for c := range d.Channels {
			v := d.pcm[c][i]
			switch bytes {
			case 1:
				d.buf = append(d.buf, byte(v))
			case 2:
				d.buf = append(d.buf, byte(v), byte(v>>8))
			case 3:
				d.buf = append(d.buf, byte(v), byte(v>>8), byte(v>>16))
			default:
				d.buf = append(d.buf, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
			}
		}
	}
	d.hash.Write(d.buf)
	if d.hashed = d.end; d.hashed == d.Samples && !bytes16(d.hash.Sum(nil), d.md5) {
		d.warn("the MD5 of the samples is %x, but the file has %x: the samples are damaged", d.hash.Sum(nil), d.md5)
	}
}

func bytes16(a []byte, b [md5.Size]byte) bool { return bytes.Equal(a, b[:]) }
