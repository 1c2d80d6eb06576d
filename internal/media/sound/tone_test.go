package sound

import (
	"io"
	"math"
	"testing"
)

// part is a part of a test signal: a sine of 1000 Hz with a peak level in dBFS for each channel, for some seconds.
type part struct {
	seconds float64
	levels  []float64
}

// quiet is the level of silence.
var quiet = math.Inf(-1)

func stereo(level, seconds float64) part { return part{seconds, []float64{level, level}} }

// tones plays parts one after the other.
func tones(rate int, parts ...part) Source {
	t := &toneSource{format: Format{Rate: rate, Channels: len(parts[0].levels)}, parts: parts}
	period := rate / gcd(rate, 1000)
	for i := range period {
		t.sine = append(t.sine, math.Sin(2*math.Pi*1000*float64(i)/float64(rate)))
	}
	return t
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

type toneSource struct {
	format Format
	parts  []part
	sine   []float64
	at     int // frame in the first part
}

func (t *toneSource) Format() Format { return t.format }

func (t *toneSource) Read(dst []float32) (int, error) {
	ch := t.format.Channels
	for len(t.parts) > 0 {
		p := t.parts[0]
		n := min(len(dst)/ch, int(math.Round(p.seconds*float64(t.format.Rate)))-t.at)
		if n == 0 {
			t.parts, t.at = t.parts[1:], 0
			continue
		}
		for c, level := range p.levels {
			amplitude := math.Pow(10, level/20)
			for i := range n {
				dst[i*ch+c] = float32(amplitude * t.sine[(t.at+i)%len(t.sine)])
			}
		}
		t.at += n
		return n, nil
	}
	return 0, io.EOF
}

// noise is a linear congruential generator, evenly distributed from -1 to 1. It always gives the same numbers.
type noise uint64

func (n *noise) next() float64 {
	*n = *n*6364136223846793005 + 1442695040888963407
	return float64(int64(*n)>>11) / (1 << 52)
}

func (n *noise) fill(count int, level float64) []float32 {
	out := make([]float32, count)
	for i := range out {
		out[i] = float32(n.next() * level)
	}
	return out
}

// crumbs returns a source's frames in small reads of changing size.
type crumbs struct {
	Source
	n int
}

func (c *crumbs) Read(dst []float32) (int, error) {
	c.n++
	ch := c.Format().Channels
	return c.Source.Read(dst[:min(len(dst)/ch, 1+c.n*7%97)*ch])
}

func measure(t testing.TB, src Source) Loudness {
	t.Helper()
	l, err := Measure(src, MeterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func within(t *testing.T, what string, got, want, below, above float64) {
	t.Helper()
	if !(got >= want-below && got <= want+above) {
		t.Errorf("%s: %.3f, want %.2f (-%.2f, +%.2f)", what, got, want, below, above)
	}
}
