package sound

import (
	"io"
	"math"
	"slices"
)

// Basis is what a loudness was measured by.
type Basis uint8

const (
	// Silent: there is no loudness, since nothing is louder than -70 LUFS.
	Silent Basis = iota

	// Integrated: by BS.1770-4, as the mean of blocks of 400 ms, those that are silent or 10 LU below the others left out.
	Integrated

	// Momentary: the sound is shorter than 400 ms, and is measured as one such block, filled up with silence: the most that a
	// meter shows when the sound is played.
	Momentary
)

func (b Basis) String() string { return [...]string{"silent", "integrated", "momentary"}[b] }

// Loudness of a sound by BS.1770-4 and EBU R 128 (Tech 3341, 3342). Loudness in LUFS is -Inf for silence.
type Loudness struct {
	Frames  int64
	Invalid int64 // samples that were no finite number, and were taken as 0

	LUFS  float64 // the loudness of the whole
	Basis Basis   // what LUFS is

	// The largest loudness of 400 ms and of 3 s, at steps of 10 ms. A sound shorter than that is filled up with silence.
	MomentaryMax, ShortTermMax float64

	Range float64 // LRA in LU, by Tech 3342; 0 for sounds shorter than 3 s

	// The largest amplitude, of all channels, those for low frequencies too: of a sample, and of the
	// sound that the samples stand for, between samples too. [Decibels] makes dBFS and dBTP of them.
	SamplePeak, TruePeak float64
}

// MeterOptions say how to measure.
type MeterOptions struct {
	// DualMono: a sound of one channel is played by two speakers, which makes it 3 LU louder.
	DualMono bool
}

// A Meter is a source that measures what is read through it. Samples that are no finite number come out of it as 0; all
// others stay as they are. It keeps 8 bytes per 100 ms: 288 KB an hour.
type Meter struct {
	src     Source
	rate    int64
	filter  weighting
	between peakFilter
	weights []float64
	state   []meterState // one a channel

	frames, invalid int64
	hops            int64                  // whole ones
	recent          [longHops]float64      // weighted sums of squares of the last hops, hop h at h%longHops
	segment         float64                // that of the hops of the current 100 ms
	segments        []float64              // those of all whole 100 ms
	loudest         struct{ m, s float64 } // mean squares
	done            bool
}

type meterState struct {
	weight weightState
	peak   peakState
	sample uint32 // bits of the largest absolute sample
}

// A hop is 10 ms. Hop h begins at frame h*rate/100, rounded down, so that any rate will do.
const (
	hopsPerSecond = 100
	segmentHops   = 10
	shortHops     = 40 // of the window for momentary loudness
	longHops      = 300
	minLUFS       = -70 // the absolute gate
)

// NewMeter makes a meter that reads from a source.
func NewMeter(src Source, o MeterOptions) (*Meter, error) {
	f := src.Format()
	if err := f.Check(); err != nil {
		return nil, err
	}
	m := &Meter{src: src, rate: int64(f.Rate), filter: newWeighting(f.Rate), between: newPeakFilter(f.Rate)}
	m.weights = channelWeights(f, o.DualMono)
	m.state = make([]meterState, f.Channels)
	for i := range m.state {
		m.state[i].peak.samples = make([]float32, peakTaps-1, peakTaps-1+pieceFrames)
	}
	return m, nil
}

// Measure reads a source to its end and returns its loudness.
func Measure(src Source, o MeterOptions) (Loudness, error) {
	m, err := NewMeter(src, o)
	if err != nil {
		return Loudness{}, err
	}
	if err := each(m, func([]float32) {}); err != nil {
		return Loudness{}, err
	}
	return m.Loudness(), nil
}

// Format is that of the source.
func (m *Meter) Format() Format { return m.src.Format() }

// Read reads from the source and measures what it gives.
func (m *Meter) Read(dst []float32) (int, error) {
	n, err := m.src.Read(dst)
	ch := len(m.state)
	for at := 0; at < n; at += pieceFrames {
		m.add(dst[at*ch : min(n, at+pieceFrames)*ch])
	}
	if err == io.EOF && !m.done {
		m.finish()
	}
	return n, err
}

// add measures at most pieceFrames frames.
func (m *Meter) add(samples []float32) {
	for c := range m.state {
		m.split(samples, c)
	}
	n := int64(len(samples) / len(m.state))
	for at := int64(0); at < n; {
		take := min(n-at, m.begin(m.hops+1)-m.frames)
		for c := range m.state {
			if m.weights[c] != 0 {
				st := &m.state[c]
				piece := st.peak.samples[peakTaps-1:]
				m.filter.add(&st.weight, piece[at:at+take])
			}
		}
		at += take
		m.frames += take
		if m.frames == m.begin(m.hops+1) {
			m.hop()
		}
	}
	for c := range m.state {
		st := &m.state[c]
		st.peak.peak = max(st.peak.peak, math.Float32frombits(st.sample))
		m.between.between(&st.peak)
	}
}

// begin is the first frame of a hop.
func (m *Meter) begin(hop int64) int64 { return hop * m.rate / hopsPerSecond }

// split copies the samples of a channel behind the last ones of before, and looks at each.
func (m *Meter) split(samples []float32, channel int) {
	st := &m.state[channel]
	out, peak := st.peak.samples, st.sample
	const infinite = 0x7f800000
	for i := channel; i < len(samples); i += len(m.state) {
		v := samples[i]
		b := math.Float32bits(v) &^ (1 << 31)
		if b >= infinite {
			samples[i], v, b = 0, 0, 0
			m.invalid++
		}
		peak = max(peak, b)
		out = append(out, v)
	}
	st.peak.samples, st.sample = out, peak
}

// hop ends a hop of 10 ms.
func (m *Meter) hop() {
	sum := 0.0
	for c := range m.state {
		sum += float64(m.weights[c] * m.state[c].weight.take())
	}
	m.recent[m.hops%longHops] = sum
	m.hops++
	m.loudest.m = max(m.loudest.m, m.window(shortHops))
	m.loudest.s = max(m.loudest.s, m.window(longHops))
	m.segment += sum
	if m.hops%segmentHops == 0 {
		m.segments = append(m.segments, m.segment)
		m.segment = 0
	}
}

// window is the mean square of the last hops; what lies before the sound is silence.
func (m *Meter) window(hops int64) float64 {
	sum := 0.0
	for h := max(0, m.hops-hops); h < m.hops; h++ {
		sum += m.recent[h%longHops]
	}
	return sum / float64(m.begin(max(m.hops, hops))-m.begin(max(m.hops, hops)-hops))
}

// finish measures what is left when the sound has ended: a begun hop, and values that need samples after the last one.
func (m *Meter) finish() {
	m.done = true
	whole := len(m.segments)
	if m.frames > m.begin(m.hops) {
		m.hop()
		m.segments = m.segments[:whole] // blocks that are not whole do not count
	}
	for c := range m.state {
		st := &m.state[c].peak
		st.samples = append(st.samples, make([]float32, peakTaps-1)...)
		m.between.between(st)
	}
}

// Loudness is what was measured; it is whole once a read has returned io.EOF.
func (m *Meter) Loudness() Loudness {
	l := Loudness{Frames: m.frames, Invalid: m.invalid, LUFS: math.Inf(-1)}
	l.MomentaryMax, l.ShortTermMax = lufs(m.loudest.m), lufs(m.loudest.s)
	for i := range m.state {
		l.SamplePeak = max(l.SamplePeak, float64(math.Float32frombits(m.state[i].sample)))
		l.TruePeak = max(l.TruePeak, float64(m.state[i].peak.peak))
	}
	l.TruePeak = min(l.TruePeak, math.MaxFloat32)

	if m.frames < m.begin(shortHops) {
		if l.MomentaryMax > minLUFS {
			l.Basis, l.LUFS = Momentary, l.MomentaryMax
		}
		return l
	}
	if power := gated(m.powers(shortHops/segmentHops), 0.1); len(power) > 0 {
		l.Basis, l.LUFS = Integrated, lufs(mean(power))
	}
	if power := gated(m.powers(longHops/segmentHops), 0.01); len(power) > 0 {
		slices.Sort(power)
		at := func(part float64) float64 { return lufs(power[int(math.Round(float64(float64(len(power)-1)*part)))]) }
		l.Range = at(0.95) - at(0.10)
	}
	return l
}

// powers are the mean squares of all windows of that many segments, a segment apart.
func (m *Meter) powers(window int) []float64 {
	var out []float64
	for end := window; end <= len(m.segments); end++ {
		out = append(out, m.power(end-window, end))
	}
	return out
}

// power is the mean square of the segments from first to end, of which those before the sound are silent.
func (m *Meter) power(first, end int) float64 {
	sum := 0.0
	for _, s := range m.segments[max(0, first):end] {
		sum += s
	}
	length := int64(end - first)
	end = max(end, int(length))
	return sum / float64(m.begin(int64(end)*segmentHops)-m.begin((int64(end)-length)*segmentHops))
}

// gated leaves out what is silent, then what is not louder than a part of the mean of the rest.
func gated(powers []float64, part float64) []float64 {
	absolute := meanSquare(minLUFS)
	powers = slices.DeleteFunc(powers, func(p float64) bool { return p <= absolute })
	relative := float64(mean(powers) * part)
	return slices.DeleteFunc(powers, func(p float64) bool { return p <= relative })
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// MomentaryCurve is the loudness of the 400 ms up to each whole 100 ms of the sound: the first value is that at 0.1 s.
func (m *Meter) MomentaryCurve() []float32 { return m.curve(shortHops / segmentHops) }

// ShortTermCurve is the loudness of the 3 s up to each whole 100 ms of the sound.
func (m *Meter) ShortTermCurve() []float32 { return m.curve(longHops / segmentHops) }

func (m *Meter) curve(window int) []float32 {
	out := make([]float32, len(m.segments))
	for i := range out {
		out[i] = float32(lufs(m.power(i+1-window, i+1)))
	}
	return out
}
