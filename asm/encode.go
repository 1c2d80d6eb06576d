package main

import (
	"fmt"
	"slices"
	"strings"
)

// V is a register of NEON, 128 bits.
type V int

// A form says which operands an instruction has, and the arrangement of each: for size 2, for example, .4S is full, .2S is half, .2D is the
// full one of the next size.
type form int

const (
	same   form = iota // three registers, all full
	long               // of two halves, or the upper halves if the name ends in 2, to full of the next size
	narrow             // of full of the next size to a half, or to the upper half if the name ends in 2
	one                // a register, full
	zero               // a register, compared with 0
	pairs              // a register, full, to full of the next size
	total              // a register, full, to one lane
)

// An encoding has the instruction without registers and size. A fixed one has the bits of its only size.
type encoding struct {
	form  form
	word  uint32
	fixed bool
}

// encodings are those of the Arm Architecture Reference Manual, chapter C7.
var encodings = map[string]encoding{
	"ADD": {word: 0x4e208400}, "SUB": {word: 0x6e208400}, "MUL": {word: 0x4e209c00}, "ADDP": {word: 0x4e20bc00},
	"CMEQ": {word: 0x6e208c00}, "CMGT": {word: 0x4e203400}, "SMAX": {word: 0x4e206400}, "SMIN": {word: 0x4e206c00},
	"UMAX": {word: 0x6e206400}, "UMIN": {word: 0x6e206c00}, "SQADD": {word: 0x4e200c00}, "SQSUB": {word: 0x4e202c00},
	"UQADD": {word: 0x6e200c00}, "UQSUB": {word: 0x6e202c00}, "URHADD": {word: 0x6e201400}, "UABD": {word: 0x6e207400},
	"USHL": {word: 0x6e204400}, "SSHL": {word: 0x4e204400},
	"ZIP1": {word: 0x4e003800}, "ZIP2": {word: 0x4e007800}, "UZP1": {word: 0x4e001800}, "UZP2": {word: 0x4e005800},
	"TRN1": {word: 0x4e002800}, "TRN2": {word: 0x4e006800},
	"AND": {same, 0x4e201c00, true}, "BIC": {same, 0x4e601c00, true}, "ORR": {same, 0x4ea01c00, true}, "EOR": {same, 0x6e201c00, true},
	"BSL": {same, 0x6e601c00, true}, "BIT": {same, 0x6ea01c00, true}, "BIF": {same, 0x6ee01c00, true},
	"FADD": {same, 0x4e20d400, true}, "FSUB": {same, 0x4ea0d400, true}, "FMUL": {same, 0x6e20dc00, true}, "FDIV": {same, 0x6e20fc00, true},
	"FCMEQ": {same, 0x4e20e400, true}, "FCMGE": {same, 0x6e20e400, true}, "FCMGT": {same, 0x6ea0e400, true}, "FADDP": {same, 0x6e20d400, true},
	"SMULL": {long, 0x0e20c000, false}, "SMULL2": {long, 0x4e20c000, false},
	"UMULL": {long, 0x2e20c000, false}, "UMULL2": {long, 0x6e20c000, false},
	"SQXTN": {narrow, 0x0e214800, false}, "SQXTN2": {narrow, 0x4e214800, false}, "SQXTUN": {narrow, 0x2e212800, false},
	"SQXTUN2": {narrow, 0x6e212800, false}, "UQXTN": {narrow, 0x2e214800, false}, "XTN": {narrow, 0x0e212800, false},
	"ABS": {one, 0x4e20b800, false}, "NEG": {one, 0x6e20b800, false}, "REV64": {one, 0x4e200800, false},
	"NOT": {one, 0x6e205800, true}, "SCVTF": {one, 0x4e21d800, true}, "FCVTZS": {one, 0x4ea1b800, true}, "FSQRT": {one, 0x6ea1f800, true},
	"CMLT": {zero, 0x4e20a800, false}, "UADDLP": {pairs, 0x6e202800, false},
	"ADDV": {total, 0x4e31b800, false},
}

// knownToGo are instructions that Go's assembler has names for, a V and the name here; the others are printed as words.
var knownToGo = strings.Fields("ADD SUB ADDP CMEQ UMAX UMIN ZIP1 ZIP2 UZP1 UZP2 TRN1 TRN2 AND ORR EOR BSL BIT BIF REV64")

var (
	fullNames = []string{"16B", "8H", "4S", "2D"}
	halfNames = []string{"8B", "4H", "2S", "1D"}
	goNames   = []string{"B16", "H8", "S4", "D2"}
	laneNames = []string{"B", "H", "S", "D"}
)

// arrange returns the arrangements of the destination and of the sources.
func (e encoding) arrange(name string, size int) (to, from string) {
	part := halfNames[size]
	if strings.HasSuffix(name, "2") {
		part = fullNames[size]
	}
	switch e.form {
	case long:
		return fullNames[size+1], part
	case narrow:
		return part, fullNames[size+1]
	case pairs:
		return fullNames[size+1], fullNames[size]
	}
	return fullNames[size], fullNames[size]
}

// op prints an instruction: size is 0 for bytes to 3 for double words of 64 bits; sources are one or two.
func (t *translator) op(name string, size int, d V, sources ...V) {
	e, ok := encodings[name]
	if !ok {
		panic("no encoding of " + name)
	}
	t.wrote(d)
	n, m := sources[0], V(0)
	if len(sources) > 1 {
		m = sources[1]
	}
	if slices.Contains(knownToGo, name) {
		a := goNames[size]
		if len(sources) > 1 {
			t.print("V%s V%d.%s, V%d.%s, V%d.%s", name, m, a, n, a, d, a)
		} else {
			t.print("V%s V%d.%s, V%d.%s", name, n, a, d, a)
		}
		return
	}
	word := e.word | uint32(m)<<16 | uint32(n)<<5 | uint32(d)
	if !e.fixed {
		word |= uint32(size) << 22
	}
	to, from := e.arrange(name, size)
	text := fmt.Sprintf("%s V%d.%s, V%d.%s", name, d, to, n, from)
	switch {
	case len(sources) > 1:
		text += fmt.Sprintf(", V%d.%s", m, from)
	case e.form == zero:
		text += ", #0"
	case e.form == total:
		text = fmt.Sprintf("%s %s%d, V%d.%s", name, laneNames[size], d, n, from)
	}
	t.word(word, text)
}

func (t *translator) word(word uint32, text string) { t.print("WORD $%#08x // %s", word, text) }

// shift prints a shift by a constant: SHL, USHR, SSHR, or SSHLL and USHLL by 0, which widen. All bits may be shifted out.
func (t *translator) shift(name string, size int, d, n V, by int) {
	bits := 8 << size
	switch {
	case by >= bits && name != "SSHR":
		t.fill(d, 0)
		return
	case by == 0 && !strings.Contains(name, "LL"):
		t.move(d, n)
		return
	}
	t.wrote(d)
	by = min(by, bits)
	word, at := map[string]uint32{"SHL": 0x4f005400, "USHR": 0x6f000400, "SSHR": 0x4f000400, "SSHLL": 0x0f00a400, "SSHLL2": 0x4f00a400,
		"USHLL": 0x2f00a400, "USHLL2": 0x6f00a400}[name], bits+by
	if strings.HasSuffix(name, "SHR") {
		at = 2*bits - by
	}
	to, from := fullNames[size], fullNames[size]
	if strings.Contains(name, "LL") {
		to, from = encoding{form: long}.arrange(name, size)
	}
	t.word(word|uint32(at)<<16|uint32(n)<<5|uint32(d), fmt.Sprintf("%s V%d.%s, V%d.%s, #%d", name, d, to, n, from, by))
}

// fill sets all bytes of a register.
func (t *translator) fill(d V, value int) {
	t.wrote(d)
	t.print("VMOVI $%d, V%d.B16", value, d)
}

// fillLanes sets double words of 32 bits to a value of 8 bits, shifted.
func (t *translator) fillLanes(d V, value, shift int) {
	t.wrote(d)
	imm := uint32(value)
	t.word(0x4f000400|imm>>5<<16|imm&31<<5|uint32(shift/8)<<13|uint32(d), fmt.Sprintf("MOVI V%d.4S, #%d, LSL #%d", d, value, shift))
}

// clear clears some bits of all bytes, by one instruction for the lower bytes of words, and one for the upper ones.
func (t *translator) clear(d V, bits int) {
	for _, shift := range []int{0, 8} {
		t.wrote(d)
		imm := uint32(bits)
		t.word(0x6f009400|imm>>5<<16|imm&31<<5|uint32(shift/8)<<13|uint32(d), fmt.Sprintf("BIC V%d.8H, #%d, LSL #%d", d, bits, shift))
	}
}

// move copies a register.
func (t *translator) move(d, n V) {
	if d != n {
		t.op("ORR", 0, d, n, n)
	}
}

// insert copies a lane; n of -1 is zeros.
func (t *translator) insert(size int, d V, to int, n V, from int) {
	t.wrote(d)
	if n < 0 {
		t.print("VMOV ZR, V%d.%s[%d]", d, laneNames[size], to)
		return
	}
	t.print("VMOV V%d.%s[%d], V%d.%s[%d]", n, laneNames[size], from, d, laneNames[size], to)
}

// spread copies a lane to all lanes.
func (t *translator) spread(size int, d, n V, lane int) {
	t.wrote(d)
	t.print("VDUP V%d.%s[%d], V%d.%s", n, laneNames[size], lane, d, goNames[size])
}

// extract copies 16 bytes of the 32 of n and m.
func (t *translator) extract(d, n, m V, at int) {
	if at == 0 {
		t.move(d, n)
		return
	}
	t.wrote(d)
	t.print("VEXT $%d, V%d.B16, V%d.B16, V%d.B16", at, m, n, d)
}

// lookup takes bytes of one register, or of two in sequence; an index beyond them gives 0.
func (t *translator) lookup(d, index, from V, registers int) {
	t.wrote(d)
	table := []string{fmt.Sprintf("V%d.B16", from), fmt.Sprintf("V%d.B16", from+1)}[:registers]
	t.print("VTBL V%d.B16, [%s], V%d.B16", index, strings.Join(table, ", "), d)
}
