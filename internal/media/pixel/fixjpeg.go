package pixel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// fixJPEG reads a damaged JPEG as libjpeg does, which warns where the standard library stops, and rewrites it with one
// scan:
//
//   - Invalid codes, and codes that run over the end of a block, are used as far as they go.
//   - Where the data ends or a marker comes too early, the block is filled with zeros. The blocks after it, up to the
//     next restart, stay unchanged: grey, or in a progressive JPEG coarse.
//   - At a restart, the markers show what is missing: see restartMark.
//   - Bytes between the segments are skipped.
//
// What is an error in libjpeg is an error here: headers that contradict themselves, tables that are missing or wrong,
// unknown markers. A picture without a single block is an error too. If the data ends in the header of a scan, the
// scans before it are used.
func fixJPEG(data []byte) (fixed []byte, what string, err error) {
	m := &jpegMender{jpegBytes: jpegBytes{data: data}, wrong: -1}
	if err := m.segments(); err != nil {
		return nil, "", err
	}
	if m.read == 0 {
		return nil, "", errors.New("no picture")
	}
	return m.write(), m.what(), nil
}

// jpegBlock has the 64 coefficients of 8 x 8 pixels, in zigzag order. Codes that run over its end are stored in the
// last one.
type jpegBlock [64]int16

func (b *jpegBlock) set(k, v int) { b[min(k, 63)] = int16(v) }

type jpegPart struct { // a component: Y, Cb, Cr, ...
	id, h, v, quantIndex int
	quant                *[64]uint16 // the table at its first scan
	blocks               []jpegBlock
	stride               int
	known                [64]bool // coefficients known to the last bit
	dc                   int      // DC coefficient of the block before
}

type jpegTable struct {
	most   [18]int // the last code of each length
	first  [17]int // index in values of code 0 of each length
	values [256]byte
	dc     bool // usable as a DC table
}

// jpegScan is a scan: the components in order, the coefficients from first to last, and their bits from low on. If more
// is set, the bits above low were in an earlier scan.
type jpegScan struct {
	parts            []*jpegPart
	dc, ac           [4]*jpegTable
	first, last, low int
	more             bool
}

type jpegMender struct {
	jpegBytes
	width, height int
	progressive   bool
	parts         []*jpegPart
	h, v          int // the largest of all components
	across, down  int // number of groups of h x v blocks
	quant         [4]*[64]uint16
	dc, ac        [4]*jpegTable
	restart       int      // groups between restarts, or blocks if there is one component; 0 for none
	kept          [][]byte // the segments that describe the colours
	whole         bool     // everything has been read

	nextRestart int // 0 to 7
	ends        int // length of a run of blocks without further coefficients
	line        int // current row
	read        int // groups read
	wrong       int // row of the first fault
	short       bool
}

// jpegBytes reads bytes, markers and bits. At the end of the data it returns end markers without limit.
type jpegBytes struct {
	data  []byte
	at    int
	mark  byte // a marker that was read and not yet handled; 0 for none
	bits  uint64
	n     int
	empty bool // bits were requested beyond the data
	extra bool // bytes were found that belong to nothing
}

func (r *jpegBytes) next() byte {
	r.at++
	if r.at <= len(r.data) {
		return r.data[r.at-1]
	}
	if (r.at-len(r.data))%2 == 1 {
		return 0xff
	}
	return 0xd9
}

func (r *jpegBytes) word() int { return int(r.next())<<8 | int(r.next()) }

// ended reports whether more was read than there is.
func (r *jpegBytes) ended() bool { return r.at > len(r.data) }

// nextMark searches the next marker.
func (r *jpegBytes) nextMark() {
	for r.mark = 0; r.mark == 0; {
		b := r.next()
		for ; b != 0xff; b = r.next() {
			r.extra = true
		}
		for b == 0xff {
			b = r.next()
		}
		r.extra = r.extra || b == 0
		r.mark = b
	}
}

// take reads up to 16 bits.
func (r *jpegBytes) take(n int) int {
	for r.n < n {
		b := byte(0)
		if r.mark == 0 {
			if b = r.next(); b == 0xff {
				c := r.next()
				for c == 0xff {
					c = r.next()
				}
				r.mark = c
			}
		}
		if r.mark != 0 {
			r.empty, b = true, 0
		}
		r.bits = r.bits<<8 | uint64(b)
		r.n += 8
	}
	r.n -= n
	return int(r.bits>>r.n) & (1<<n - 1)
}

// number reads a coefficient of n bits. The upper half of the values is positive.
func (r *jpegBytes) number(n int) int {
	if n == 0 {
		return 0
	}
	v := r.take(n)
	if v < 1<<(n-1) {
		v += 1 - 1<<n
	}
	return v
}

// symbol reads a code. It returns 0 for an invalid code.
func (m *jpegMender) symbol(t *jpegTable) int {
	code, n := m.take(1), 1
	for ; code > t.most[n]; n++ {
		code = code<<1 | m.take(1)
	}
	if n > 16 {
		m.fault()
		return 0
	}
	return int(t.values[t.first[n]+code])
}

// fault records the row of the first fault.
func (m *jpegMender) fault() {
	if m.wrong < 0 {
		m.wrong, m.short = m.line, m.mark == 0xd9
	}
}

func (m *jpegMender) what() string {
	all := true
	for _, p := range m.parts {
		all = all && !slices.Contains(p.known[:], false)
	}
	switch {
	case m.progressive && (m.short || m.ended() && !all):
		return "it ends too early; the finest detail is missing"
	case m.short:
		return fmt.Sprintf("it ends too early: from line %d of %d on it is grey", m.wrong, m.height)
	case m.wrong >= 0:
		return fmt.Sprintf("from line %d of %d on, what could not be read is wrong or grey", m.wrong, m.height)
	case m.ended() && !all:
		return "it ends too early; some of its colours are missing"
	case m.ended():
		return "the mark of its end is missing"
	case m.extra:
		return "there are bytes in it that belong to nothing"
	}
	return "" // the standard library can read even less than there is
}

func jpegError(format string, args ...any) error { return fmt.Errorf(format, args...) }

// segments reads the file: 0xff, a marker, u16 size, bytes. The codes of a scan follow its segment.
func (m *jpegMender) segments() error {
	m.at = 2
	for {
		if m.mark == 0 {
			m.nextMark()
		}
		mark, start := m.mark, m.at
		m.mark = 0
		if mark == 0xd9 {
			return nil
		}
		if mark == 0x01 || mark >= 0xd0 && mark <= 0xd7 {
			continue // a marker without data
		}
		size := m.word()
		var err error
		switch {
		case mark == 0xc0 || mark == 0xc1 || mark == 0xc2:
			err = m.frame(size, mark == 0xc2)
		case mark == 0xc4:
			err = m.tables(size)
		case mark == 0xda:
			err = m.scan(size)
		case mark == 0xdb:
			err = m.quants(size)
		case mark == 0xdc || mark >= 0xe0 && mark <= 0xef || mark == 0xfe:
			m.at = start + max(size, 2)
			if (mark == 0xe0 || mark == 0xee) && size >= 2 && m.at <= len(m.data) {
				m.kept = append(m.kept, m.data[start-2:m.at])
			}
		case mark == 0xdd:
			if m.restart = m.word(); size != 4 {
				err = jpegError("restarts of %d bytes", size)
			}
		default:
			err = jpegError("mark %#x", mark)
		}
		if err != nil && m.ended() && m.read > 0 {
			return nil // in the middle of a header, after complete scans
		}
		if err != nil {
			return err
		}
	}
}

// frame reads u8 bits, u16 height, u16 width, u8 number of components, and for each component its id, sampling and
// quantization table.
func (m *jpegMender) frame(size int, progressive bool) error {
	depth := m.next()
	m.height, m.width = m.word(), m.word()
	n := int(m.next())
	if m.parts != nil || depth != 8 || m.height == 0 || m.width == 0 || n != 1 && n != 3 && n != 4 || size != 8+3*n {
		return jpegError("frame of %d x %d", m.width, m.height)
	}
	m.progressive, m.h, m.v = progressive, 1, 1
	for range n {
		p := &jpegPart{id: int(m.next())}
		sampling := int(m.next())
		p.h, p.v, p.quantIndex = sampling>>4, sampling&15, int(m.next())
		if p.h < 1 || p.h > 4 || p.v < 1 || p.v > 4 {
			return jpegError("sampling of %d x %d", p.h, p.v)
		}
		if n == 1 {
			p.h, p.v = 1, 1
		}
		m.h, m.v = max(m.h, p.h), max(m.v, p.v)
		m.parts = append(m.parts, p)
	}
	m.across, m.down = over(m.width, 8*m.h), over(m.height, 8*m.v)
	return nil
}

// over divides and rounds up.
func over(a, b int) int { return (a + b - 1) / b }

// tables reads Huffman tables: u8 class and index, 16 u8 with the number of codes of each length, the symbols.
func (m *jpegMender) tables(size int) error {
	for size -= 2; size > 16; {
		index := m.next()
		t, n := &jpegTable{dc: true}, 0
		var counts [17]int
		for i := 1; i <= 16; i++ {
			counts[i] = int(m.next())
			n += counts[i]
		}
		if size -= 17 + n; n > 256 || size < 0 || index&^0x13 != 0 {
			return jpegError("a table of %d codes", n)
		}
		for i := range n {
			t.values[i] = m.next()
			t.dc = t.dc && t.values[i] < 16
		}
		code, at := 0, 0
		for i := 1; i <= 16; i++ {
			t.first[i], t.most[i] = at-code, -1
			if code += counts[i]; counts[i] > 0 {
				t.most[i] = code - 1
			}
			if at += counts[i]; code >= 1<<i && counts[i] > 0 {
				t = nil // an error only if the table is used
				break
			}
			code <<= 1
		}
		if t != nil {
			t.most[17] = 1 << 20
		}
		if index&0x10 != 0 {
			m.ac[index&3] = t
		} else {
			m.dc[index&3] = t
		}
	}
	if size != 0 {
		return jpegError("%d bytes after the tables", size)
	}
	return nil
}

// quants reads quantization tables: u8 size and index, 64 u8 or u16.
func (m *jpegMender) quants(size int) error {
	for size -= 2; size > 0; {
		index := m.next()
		q := &[64]uint16{}
		for i := range q {
			if q[i] = uint16(m.next()); index>>4 != 0 {
				q[i] = q[i]<<8 | uint16(m.next())
				size--
			}
		}
		size -= 65
		if index&15 > 3 {
			return jpegError("quants %d", index&15)
		}
		m.quant[index&3] = q
	}
	if size != 0 {
		return jpegError("%d bytes after the quants", size)
	}
	return nil
}

// scan reads u8 number of components, and for each its id and tables; then u8 first and u8 last coefficient, u8 high
// and low bit; then the codes.
func (m *jpegMender) scan(size int) error {
	n := int(m.next())
	if m.parts == nil || n < 1 || n > len(m.parts) || size != 6+2*n {
		return jpegError("scan of %d parts", n)
	}
	if m.whole {
		return jpegError("a second scan of all")
	}
	m.whole = n == len(m.parts) && !m.progressive
	s, blocks := jpegScan{}, 0
	for i := range n {
		id, tables := int(m.next()), m.next()
		at := slices.IndexFunc(m.parts, func(p *jpegPart) bool { return p.id == id && !slices.Contains(s.parts, p) })
		if at < 0 || tables&^0x33 != 0 {
			return jpegError("scan of part %d", id)
		}
		p := m.parts[at]
		if p.quant == nil {
			if p.quantIndex > 3 || m.quant[p.quantIndex] == nil {
				return jpegError("no quants for part %d", id)
			}
			p.quant, p.stride = m.quant[p.quantIndex], m.across*p.h
			p.blocks = make([]jpegBlock, p.stride*m.down*p.v)
		}
		s.parts, s.dc[i], s.ac[i] = append(s.parts, p), m.dc[tables>>4], m.ac[tables&3]
		blocks += p.h * p.v
	}
	s.first, s.last = int(m.next()), int(m.next())
	bits := int(m.next())
	s.low, s.more = bits&15, bits>>4 != 0
	if !m.progressive {
		s.first, s.last, s.low, s.more = 0, 63, 0, false
	}
	if n > 1 && blocks > 10 || m.progressive && (s.last > 63 || s.first > s.last || s.first == 0 && s.last > 0 || s.first > 0 && n > 1 ||
		s.low > 13 || s.more && s.low != bits>>4-1) {
		return jpegError("scan of numbers %d to %d", s.first, s.last)
	}
	for i := range n {
		if s.first == 0 && !s.more && (s.dc[i] == nil || !s.dc[i].dc) || s.last > 0 && s.ac[i] == nil {
			return jpegError("no table of codes")
		}
	}
	m.codes(&s)
	return nil
}

// codes reads the codes of a scan: in groups if there are several components, else in blocks.
func (m *jpegMender) codes(s *jpegScan) {
	across, down, high := m.across, m.down, 8*m.v
	if len(s.parts) == 1 {
		p := s.parts[0]
		across, down, high = over(m.width*p.h, 8*m.h), over(m.height*p.v, 8*m.v), 8*m.v/p.v
	}
	m.nextRestart, m.empty = 0, false
	m.begin()
	for i := range across * down {
		x, y := i%across, i/across
		m.line = min(y*high, m.height-1)
		if m.restart > 0 && i > 0 && i%m.restart == 0 {
			m.restartMark()
		}
		if m.empty && (m.restart == 0 || m.mark >= 0xc0 && m.mark&^7 != 0xd0) {
			break // no data follows
		}
		if m.empty {
			continue
		}
		for j, p := range s.parts {
			h, v := p.h, p.v
			if len(s.parts) == 1 {
				h, v = 1, 1
			}
			for k := range h * v {
				b := &p.blocks[(y*v+k/h)*p.stride+x*h+k%h]
				if s.more {
					m.refine(b, s)
				} else {
					m.block(b, s, p, s.dc[j], s.ac[j])
				}
			}
		}
		if m.empty {
			m.fault()
		} else {
			m.read++
		}
	}
	m.n = 0
	for _, p := range s.parts {
		for k := s.first; k <= s.last; k++ {
			p.known[k] = s.low == 0
		}
	}
}

// begin resets the state, at the start and after a restart.
func (m *jpegMender) begin() {
	m.n, m.ends = 0, 0
	for _, p := range m.parts {
		p.dc = 0
	}
	m.empty = m.empty && m.mark != 0
}

// restartMark searches the next restart marker. An unexpected marker shows what is missing. One of the two before the
// expected one means that older data follows: the search continues. One of the two after it is kept until its turn, as
// is a marker that is not a restart. Any other is treated as the expected one.
func (m *jpegMender) restartMark() {
	if m.mark == 0 {
		m.nextMark()
	}
	for m.mark != 0xd0+byte(m.nextRestart) {
		m.fault()
		if m.mark >= 0xc0 {
			ahead := (int(m.mark) - 0xd0 - m.nextRestart) & 7
			if m.mark < 0xd0 || m.mark > 0xd7 || ahead == 1 || ahead == 2 {
				m.nextRestart = (m.nextRestart + 1) & 7
				m.begin()
				return
			}
			if ahead != 6 && ahead != 7 {
				break
			}
		}
		m.nextMark()
	}
	m.mark = 0
	m.nextRestart = (m.nextRestart + 1) & 7
	m.begin()
}

// block reads the coefficients of a block, or their highest bits if the JPEG is progressive.
func (m *jpegMender) block(b *jpegBlock, s *jpegScan, p *jpegPart, dc, ac *jpegTable) {
	k := s.first
	if k == 0 {
		p.dc += m.number(m.symbol(dc))
		b[0] = int16(p.dc << s.low)
		k = 1
	}
	if k <= s.last && m.ends > 0 {
		m.ends--
		return
	}
	for ; k <= s.last; k++ {
		symbol := m.symbol(ac)
		run, n := symbol>>4, symbol&15
		switch {
		case n > 0:
			k += run
			b.set(k, m.number(n)<<s.low)
		case run == 15:
			k += 15
		case !m.progressive:
			return
		default:
			m.ends = 1<<run + m.take(run) - 1
			return
		}
	}
}

// refine reads one more bit of each coefficient.
func (m *jpegMender) refine(b *jpegBlock, s *jpegScan) {
	bit := int16(1) << s.low
	if s.first == 0 {
		if m.take(1) != 0 {
			b[0] |= bit
		}
		return
	}
	k := s.first
	for ; m.ends == 0 && k <= s.last; k++ {
		symbol := m.symbol(s.ac[0])
		run, n, v := symbol>>4, symbol&15, -bit
		if n == 0 && run < 15 {
			m.ends = 1<<run + m.take(run)
			break
		}
		if n > 1 {
			m.fault()
		}
		if n > 0 && m.take(1) != 0 {
			v = bit
		}
		if k = m.refineUpTo(b, k, s.last, run, bit); n > 0 {
			b.set(k, int(v))
		}
	}
	if m.ends > 0 {
		m.refineUpTo(b, k, s.last, 64, bit)
		m.ends--
	}
}

// refineUpTo refines coefficients that are not 0. It returns the position after skip coefficients that are 0.
func (m *jpegMender) refineUpTo(b *jpegBlock, k, last, skip int, bit int16) int {
	for ; k <= last; k++ {
		switch {
		case b[k] == 0:
			if skip--; skip < 0 {
				return k
			}
		case m.take(1) == 0 || b[k]&bit != 0:
		case b[k] > 0:
			b[k] += bit
		default:
			b[k] -= bit
		}
	}
	return k
}

// write writes a JPEG with one scan. Its Huffman codes are as simple as possible: symbol i is the 8-bit code i, except
// 255, because a code of all ones is not allowed.
func (m *jpegMender) write() []byte {
	out := []byte{0xff, 0xd8}
	for _, k := range m.kept {
		out = append(out, k...)
	}
	segment := func(mark byte, body ...byte) {
		out = append(binary.BigEndian.AppendUint16(append(out, 0xff, mark), uint16(2+len(body))), body...)
	}
	frame := []byte{8, byte(m.height >> 8), byte(m.height), byte(m.width >> 8), byte(m.width), byte(len(m.parts))}
	scan := []byte{byte(len(m.parts))}
	for i, p := range m.parts {
		quant := []byte{0x10 | byte(i)}
		for k := range 64 {
			v := uint16(1)
			if p.quant != nil {
				v = p.quant[k]
			}
			quant = binary.BigEndian.AppendUint16(quant, v)
		}
		segment(0xdb, quant...)
		frame = append(frame, byte(p.id), byte(p.h<<4|p.v), byte(i))
		scan = append(scan, byte(p.id), 0)
		p.dc = 0
	}
	segment(0xc1, frame...)
	table := make([]byte, 17, 17+256)
	table[8], table[9] = 255, 1
	for i := range 256 {
		table = append(table, byte(i))
	}
	segment(0xc4, table...)
	table[0] = 0x10
	segment(0xc4, table...)
	segment(0xda, append(scan, 0, 63, 0)...)
	w := jpegWriter{out: out}
	for i := range m.across * m.down {
		x, y := i%m.across, i/m.across
		for _, p := range m.parts {
			for k := range p.h * p.v {
				b := &jpegBlock{}
				if p.blocks != nil {
					b = &p.blocks[(y*p.v+k/p.h)*p.stride+x*p.h+k%p.h]
				}
				w.block(b, p)
			}
		}
	}
	w.put(0x7f, 7)
	return append(w.out, 0xff, 0xd9)
}

type jpegWriter struct {
	out  []byte
	bits uint64
	n    int
}

func (w *jpegWriter) put(v, n int) {
	w.bits = w.bits<<n | uint64(v)
	for w.n += n; w.n >= 8; {
		w.n -= 8
		b := byte(w.bits >> w.n)
		if w.out = append(w.out, b); b == 0xff {
			w.out = append(w.out, 0)
		}
	}
}

// number writes a run of zeros and a coefficient.
func (w *jpegWriter) number(run, v int) {
	n, low := 0, v
	if v < 0 {
		low = v - 1
	}
	for u := max(v, -v); u > 0; u >>= 1 {
		n++
	}
	if symbol := run<<4 | n; symbol < 255 {
		w.put(symbol, 8)
	} else {
		w.put(0x1fe, 9)
	}
	w.put(low&(1<<n-1), n)
}

func (w *jpegWriter) block(b *jpegBlock, p *jpegPart) {
	w.number(0, int(b[0])-p.dc)
	p.dc = int(b[0])
	run := 0
	for k := 1; k < 64; k++ {
		if b[k] == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			w.put(0xf0, 8)
		}
		w.number(run, max(int(b[k]), -32767))
		run = 0
	}
	if run > 0 {
		w.put(0, 8)
	}
}
