package tracker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

func parse(t testing.TB, b []byte) *Module {
	t.Helper()
	m, err := Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// song returns a module with a title, and with more patterns, instruments and channels than Silent.
func song(f Format) []byte {
	le := binary.LittleEndian
	b := Silent(f)
	switch f {
	case MOD:
		copy(b, "A \x80 song\x00of old")
		b[950], b[952], b[953], b[954] = 2, 1, 2, 3 // the last one is not played
		copy(b[1080:], "6CHN")
		binary.BigEndian.PutUint16(b[20+22:], 50)
		return append(b[:modHeader], make([]byte, 4*6*64*4+100)...)
	case XM:
		copy(b[17:], "A \x80 song\x00     ")
		le.PutUint16(b[64:], 3)
		le.PutUint16(b[68:], 6)
		le.PutUint16(b[70:], 2)
		le.PutUint16(b[72:], 1)
		le.PutUint16(b[336+7:], 10)
		b = append(b, make([]byte, 10)...)
		second := len(b)
		b = append(b, make([]byte, 9+29)...)
		le.PutUint32(b[second:], 9)
		le.PutUint32(b[second+9:], 29) // the instrument
		return b
	case S3M:
		copy(b, "A \x80 song\x00     ")
		b[66], b[67], b[68], b[69] = 1, 9, 16, 128 // the last one is off
		b[96], b[97] = 0, 254
		return b
	}
	copy(b[4:], "A \x80 song\x00     ")
	for i := range 6 {
		b[64+i] = 32
	}
	return b
}

func TestParse(t *testing.T) {
	for _, want := range []Module{
		{Format: MOD, Title: "A   song", Channels: 6, Orders: 2, Patterns: 4, Instruments: 31},
		{Format: XM, Title: "A   song", Channels: 6, Orders: 3, Patterns: 2, Instruments: 1},
		{Format: S3M, Title: "A   song", Channels: 5, Orders: 1, Patterns: 1},
		{Format: IT, Title: "A   song", Channels: 6, Orders: 1, Patterns: 1},
	} {
		b := song(want.Format)
		if m := parse(t, b); *m != want {
			t.Errorf("%+v, want %+v", *m, want)
		}
		if m := parse(t, Silent(want.Format)); m.Cut || m.Format != want.Format || m.Patterns != 1 || m.Title != "silence" {
			t.Errorf("silence: %+v", *m)
		}
		cut := map[Format]int{MOD: modHeader + 100, XM: 340, S3M: 99, IT: 196}[want.Format]
		if m := parse(t, b[:cut]); !m.Cut || m.Title != want.Title {
			t.Errorf("%s, cut off: %+v", want.Format, *m)
		}
	}
}

func TestChannels(t *testing.T) {
	for mark, want := range map[string]int{
		"M.K.": 4, "M!K!": 4, "8CHN": 8, "CD81": 8, "16CH": 16, "32CN": 32, "TDZ3": 3, "\x00\x00\x00\x00": 0, "ABCD": 0, "xCHN": 0,
	} {
		if got := modChannels(mark); got != want {
			t.Errorf("%q: %d", mark, got)
		}
	}
}

func TestOther(t *testing.T) {
	xmHead := append([]byte("Extended Module: "), make([]byte, 100)...) // no channels
	for name, b := range map[string][]byte{"empty": nil, "text": []byte("module main"), "large": make([]byte, 4000), "short": []byte("IMPM"),
		"no channels": xmHead} {
		if _, err := Parse(bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlayer checks that a player accepts the smallest modules.
func TestPlayer(t *testing.T) {
	player, err := exec.LookPath("openmpt123")
	if err != nil {
		t.Skip("openmpt123 is not installed")
	}
	for _, f := range []Format{MOD, XM, S3M, IT} {
		file := filepath.Join(t.TempDir(), "a."+string(f))
		if err := os.WriteFile(file, Silent(f), 0o666); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(player, "--info", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", f, err, said)
			continue
		}
		get := func(name string) string {
			found := regexp.MustCompile(`(?m)^` + name + `\.*: (.*?)\r?$`).FindSubmatch(said)
			if found == nil {
				return ""
			}
			return string(found[1])
		}
		m := parse(t, Silent(f))
		if get("Title") != m.Title || get("Patterns") != strconv.Itoa(m.Patterns) || get("Orders") != strconv.Itoa(m.Orders) {
			t.Errorf("%+v\n%s", *m, said)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, format := range []Format{MOD, XM, S3M, IT} {
		f.Add(song(format))
		f.Add(Silent(format))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if m.Channels < 0 || m.Channels > 128 || m.Patterns > maxParts || m.Orders > maxParts || len(m.Title) > 30 {
			t.Errorf("%+v", *m)
		}
	})
}
