// Package tracker reads the headers of tracker modules: MOD, XM, S3M and IT. It does not decode patterns and samples; it
// only compares their positions with the size of the file, which shows whether the file was cut off.
//
// Numbers are little-endian, except in MOD. The formats follow the notes of their authors, and what players agree on:
//
//	MOD   0  title, 20 bytes; 31 samples of 30 bytes each: name, 22 bytes, u16 half the length, ...
//	    950  u8 orders, u8, 128 orders; "M.K." or another mark for the number of channels; patterns of 64 rows of 4 bytes per channel
//	XM    0  "Extended Module: ", title, 20 bytes, 0x1a, tracker, 20 bytes, u16 version, u32 size of the header from here
//	     64  u16 orders, u16 restart, u16 channels, u16 patterns, u16 instruments; then patterns: u32 size of the
//	         header, u8, u16 rows, u16 size
//	S3M   0  title, 28 bytes, 0x1a, u8 16; at 32 u16 orders, u16 instruments, u16 patterns; at 44 "SCRM"; at 64 a byte per channel
//	     96  orders, then the positions of instruments and patterns, u16 each, in units of 16 bytes
//	IT    0  "IMPM", title, 26 bytes; at 32 u16 orders, u16 instruments, u16 samples, u16 patterns; at 64 a byte per channel
//	    192  orders, then the positions of instruments, samples and patterns, u32 each
package tracker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Format is the format of a module.
type Format string

const (
	MOD Format = "mod"
	XM  Format = "xm"
	S3M Format = "s3m"
	IT  Format = "it"
)

// Extensions returns the file name extensions of modules, in lower case and with the dot.
func Extensions() []string { return []string{".mod", ".xm", ".s3m", ".it"} }

// Module is the content of the headers.
type Module struct {
	Format      Format
	Title       string // printable ASCII
	Channels    int
	Orders      int // number of patterns played, one after the other
	Patterns    int // number in the file
	Instruments int // or samples, in formats without instruments
	Cut         bool
}

// ErrFormat is the error for other files.
var ErrFormat = errors.New("not a tracker module")

const (
	maxHeader   = 64 << 10
	maxPatterns = 256
	maxParts    = 4096 // instruments, samples or patterns of S3M and IT
)

// Parse reads a file of the given size.
func Parse(in io.ReaderAt, size int64) (*Module, error) {
	b, err := head(in, min(size, modHeader)) // most files are other sounds
	if err != nil {
		return nil, err
	}
	has := func(at int, mark string) bool { return len(b) >= at+len(mark) && string(b[at:at+len(mark)]) == mark }
	switch {
	case has(0, "Extended Module: "):
		return xm(in, b, size)
	case has(0, "IMPM"):
		if b, err = head(in, min(size, maxHeader)); err != nil {
			return nil, err
		}
		return it(b, size)
	case has(44, "SCRM"):
		if b, err = head(in, min(size, maxHeader)); err != nil {
			return nil, err
		}
		return s3m(b, size)
	case len(b) >= modHeader:
		return mod(b, size)
	}
	return nil, ErrFormat
}

func head(in io.ReaderAt, size int64) ([]byte, error) {
	b := make([]byte, size)
	if n, err := in.ReadAt(b, 0); err != nil && !(err == io.EOF && n == len(b)) {
		return nil, err
	}
	return b, nil
}

// text returns printable ASCII; the code page of other characters is unknown.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s))
}

const (
	modSamples = 31
	modHeader  = 1084
)

// modChannels returns the number of channels for a mark, or 0 for an unknown mark.
func modChannels(mark string) int {
	switch mark {
	case "M.K.", "M!K!", "FLT4", "N.T.", "FEST", "LARD":
		return 4
	case "FLT8", "OCTA", "OKTA", "CD81":
		return 8
	}
	digit := func(c byte) int { return int(c - '0') }
	is := func(c byte) bool { return c >= '0' && c <= '9' }
	switch {
	case is(mark[0]) && mark[1:] == "CHN":
		return digit(mark[0])
	case mark[:3] == "TDZ" && is(mark[3]):
		return digit(mark[3])
	case is(mark[0]) && is(mark[1]) && (mark[2:] == "CH" || mark[2:] == "CN"):
		return 10*digit(mark[0]) + digit(mark[1])
	}
	return 0
}

func mod(b []byte, size int64) (*Module, error) {
	m := &Module{Format: MOD, Title: text(b[:20]), Channels: modChannels(string(b[1080:1084])), Orders: int(b[950]), Instruments: modSamples}
	if m.Channels == 0 || m.Orders > 128 {
		return nil, ErrFormat
	}
	for _, o := range b[952:1080] { // including orders that are not played: their patterns exist
		m.Patterns = max(m.Patterns, int(o)+1)
	}
	need := int64(modHeader + m.Patterns*m.Channels*64*4)
	for i := range modSamples {
		need += 2 * int64(binary.BigEndian.Uint16(b[20+30*i+22:]))
	}
	m.Cut = size < need
	return m, nil
}

func xm(in io.ReaderAt, b []byte, size int64) (*Module, error) {
	le := binary.LittleEndian
	if len(b) < 80 {
		return nil, fmt.Errorf("XM: a header of %d bytes: %w", len(b), ErrFormat)
	}
	m := &Module{Format: XM, Title: text(b[17:37]), Channels: int(le.Uint16(b[68:])), Orders: int(le.Uint16(b[64:])),
		Patterns: int(le.Uint16(b[70:])), Instruments: int(le.Uint16(b[72:]))}
	if m.Channels < 1 || m.Channels > 128 || m.Orders > 256 || m.Patterns > maxPatterns || m.Instruments > 256 {
		return nil, fmt.Errorf("XM: %d channels, %d orders, %d patterns, %d instruments: %w", m.Channels, m.Orders, m.Patterns, m.Instruments,
			ErrFormat)
	}
	at := 60 + int64(le.Uint32(b[60:]))
	for range m.Patterns {
		var head [9]byte
		if _, err := in.ReadAt(head[:], at); err != nil {
			m.Cut = true
			return m, nil
		}
		at += int64(le.Uint32(head[:])) + int64(le.Uint16(head[7:]))
	}
	m.Cut = at > size || m.Instruments > 0 && at+4 > size
	return m, nil
}

func s3m(b []byte, size int64) (*Module, error) {
	le := binary.LittleEndian
	if len(b) < 96 {
		return nil, fmt.Errorf("S3M: a header of %d bytes: %w", len(b), ErrFormat)
	}
	m := &Module{Format: S3M, Title: text(b[:28]), Orders: int(le.Uint16(b[32:])), Instruments: int(le.Uint16(b[34:])),
		Patterns: int(le.Uint16(b[36:]))}
	for _, c := range b[64:96] {
		if c < 32 { // higher numbers are off, or do not exist
			m.Channels++
		}
	}
	if m.Orders > maxParts || m.Instruments > maxParts || m.Patterns > maxParts {
		return nil, fmt.Errorf("S3M: %d orders, %d instruments, %d patterns: %w", m.Orders, m.Instruments, m.Patterns, ErrFormat)
	}
	places := 96 + m.Orders
	for i := range m.Instruments + m.Patterns {
		at := places + 2*i
		if at+2 > len(b) || int64(le.Uint16(b[at:]))*16 > size {
			m.Cut = true
			break
		}
	}
	m.Orders = played(b[96:min(places, len(b))])
	return m, nil
}

// played returns the number of orders that are patterns: 254 is skipped, and 255 ends the song.
func played(orders []byte) (n int) {
	for _, o := range orders {
		if o < 254 {
			n++
		}
	}
	return n
}

func it(b []byte, size int64) (*Module, error) {
	le := binary.LittleEndian
	if len(b) < 192 {
		return nil, fmt.Errorf("IT: a header of %d bytes: %w", len(b), ErrFormat)
	}
	samples := int(le.Uint16(b[36:]))
	m := &Module{Format: IT, Title: text(b[4:30]), Orders: int(le.Uint16(b[32:])), Instruments: int(le.Uint16(b[34:])),
		Patterns: int(le.Uint16(b[38:]))}
	for _, pan := range b[64:128] {
		if pan < 128 { // higher values are off
			m.Channels++
		}
	}
	if m.Orders > maxParts || m.Instruments > maxParts || samples > maxParts || m.Patterns > maxParts {
		return nil, fmt.Errorf("IT: %d orders, %d instruments, %d samples, %d patterns: %w", m.Orders, m.Instruments, samples, m.Patterns,
			ErrFormat)
	}
	places := 192 + m.Orders
	for i := range m.Instruments + samples + m.Patterns {
		at := places + 4*i
		if at+4 > len(b) || int64(le.Uint32(b[at:])) > size {
			m.Cut = true
			break
		}
	}
	if le.Uint16(b[44:])&4 == 0 { // the song uses samples, without instruments
		m.Instruments = samples
	}
	m.Orders = played(b[192:min(places, len(b))])
	return m, nil
}
