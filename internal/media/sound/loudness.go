package sound

import (
	"io"
	"math"
	"slices"
)

// Basis is the method by which a loudness was measured.
type Basis uint8

const (
	// Silent: there is no loudness, because nothing is louder than -70 LUFS.
	Silent Basis = iota

	// Integrated: by BS.1770-4, as the mean of blocks of 400 ms, without those that are silent or 10 LU below the
	// others.
	Integrated

	// Momentary: the sound is shorter than 400 ms. It is measured as one block, padded with silence: the maximum that a
	// meter shows when the sound is played.
	Momentary
)

func (b Basis) String() string { return [...]string{"silent", "integrated", "momentary"}[b] }

// Loudness is the loudness of a sound by BS.1770-4 and EBU R 128 (Tech 3341, 3342). For silence, values in LUFS are
// -Inf.
type Loudness struct {
	Frames  int64
	Invalid int64 // samples that were not finite numbers, and count as 0

	LUFS  float64 // loudness of the whole sound
	Basis Basis   // how LUFS was measured

	// The largest loudness of 400 ms and of 3 s, at steps of 10 ms. A shorter sound is padded with silence.
	MomentaryMax, ShortTermMax float64

	Range float64 // LRA in LU, by Tech 3342; 0 for sounds shorter than 3 s

	// The largest amplitude of all channels, including those for low frequencies: of a sample, and of the signal
	// between samples. [Decibels] converts them to dBFS and dBTP.
	SamplePeak, TruePeak float64
}

// MeterOptions are settings for measuring.
type MeterOptions struct {
	// DualMono: a sound of one channel is played by two speakers, which makes it 3 LU louder.
	DualMono bool
}

// Meter is a source that measures what is read through it. It replaces samples that are not finite numbers by 0, and
// changes no others. It keeps 8 bytes per 100 ms: 288 KB an hour.
type Meter struct {
	src     Source
	rate    int64
	filter  weighting
	between peakFilter
	weights []float64
	state   []meterState // one for each channel

	frames, invalid int64
	hops            int64                  // complete hops
	recent          [longHops]float64      // weighted sums of squares of the last hops; hop h is at h%longHops
	segment         float64                // sum of the hops of the current 100 ms
	segments        []float64              // sums of all complete 100 ms
	loudest         struct{ m, s float64 } // mean squares
	done            bool
}

type meterState struct {
	weight weightState
	peak   peakState
	sample uint32 // bits of the largest absolute sample
}

// A hop is 10 ms. Hop h begins at frame h*rate/100, rounded down, which works for any rate.
const (
	hopsPerSecond = 100
	segmentHops   = 10
	shortHops     = 40 // window of momentary loudness
	longHops      = 300
	minLUFS       = -70 // the absolute gate
)

// NewMeter returns a meter that reads from a source.
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

// Format returns the format of the source.
func (m *Meter) Format() Format { return m.src.Format() }

// Read reads from the source and measures the samples.
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
	m.separate(samples)
	n := int64(len(samples) / len(m.state))
	for at := int64(0); at < n; {
		take := min(n-at, m.begin(m.hops+1)-m.frames)
		m.weigh(at, at+take)
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

// weigh filters the frames from begin to before end of the current piece, two channels at a time.
func (m *Meter) weigh(begin, end int64) {
	other := -1 // the first channel of a pair
	piece := func(c int) []float32 { return m.state[c].peak.samples[peakTaps-1:][begin:end] }
	for c := range m.state {
		switch {
		case m.weights[c] == 0:
		case other < 0:
			other = c
		default:
			m.filter.addPair(&m.state[other].weight, &m.state[c].weight, piece(other), piece(c))
			other = -1
		}
	}
	if other >= 0 {
		m.filter.add(&m.state[other].weight, piece(other))
	}
}

// begin returns the first frame of a hop.
func (m *Meter) begin(hop int64) int64 { return hop * m.rate / hopsPerSecond }

// separate appends the samples of each channel to those kept from before, and checks them.
func (m *Meter) separate(samples []float32) {
	n := len(samples) / len(m.state)
	if lanes && n >= 8 && len(m.state) <= 2 && m.separateLanes(samples, n) {
		return
	}
	for c := range m.state {
		m.split(samples, c)
	}
}

const infinite = 0x7f800000 // bits of the least number that is not finite

// separateLanes is separate for one channel or two. It returns false if a sample is not a finite number.
func (m *Meter) separateLanes(samples []float32, n int) bool {
	var to [2][]float32
	for c := range m.state {
		s := m.state[c].peak.samples
		to[c] = s[len(s) : len(s)+n]
	}
	if len(m.state) == 1 {
		copy(to[0], samples)
	} else {
		whole := n / 8 * 8
		deinterleave(&to[0][0], &to[1][0], &samples[0], whole)
		for i := whole; i < n; i++ {
			to[0][i], to[1][i] = samples[2*i], samples[2*i+1]
		}
	}
	for c := range m.state {
		peak := largest(&to[c][0], n)
		if peak >= infinite {
			return false
		}
		m.state[c].sample = max(m.state[c].sample, peak)
	}
	for c := range m.state {
		st := &m.state[c].peak
		st.samples = st.samples[:len(st.samples)+n]
	}
	return true
}

// split is separate for one channel.
func (m *Meter) split(samples []float32, channel int) {
	st := &m.state[channel]
	kept, step, peak := len(st.peak.samples), len(m.state), st.sample
	st.peak.samples = st.peak.samples[:kept+len(samples)/step]
	for i := range st.peak.samples[kept:] {
		at := i*step + channel
		v := samples[at]
		b := math.Float32bits(v) &^ (1 << 31)
		if b >= infinite {
			samples[at], v, b = 0, 0, 0
			m.invalid++
		}
		peak = max(peak, b)
		st.peak.samples[kept+i] = v
	}
	st.sample = peak
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

// window returns the mean square of the last hops. Before the sound there is silence.
func (m *Meter) window(hops int64) float64 {
	sum := 0.0
	for h := max(0, m.hops-hops); h < m.hops; h++ {
		sum += m.recent[h%longHops]
	}
	return sum / float64(m.begin(max(m.hops, hops))-m.begin(max(m.hops, hops)-hops))
}

// finish measures the rest at the end of the sound: an incomplete hop, and values that need samples after the last one.
func (m *Meter) finish() {
	m.done = true
	whole := len(m.segments)
	if m.frames > m.begin(m.hops) {
		m.hop()
		m.segments = m.segments[:whole] // incomplete blocks do not count
	}
	for c := range m.state {
		st := &m.state[c].peak
		st.samples = append(st.samples, make([]float32, peakTaps-1)...)
		m.between.between(st)
	}
}

// Loudness returns the measurement. It is complete after Read has returned io.EOF.
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

// powers returns the mean squares of all windows of that many segments, at steps of one segment.
func (m *Meter) powers(window int) []float64 {
	var out []float64
	for end := window; end <= len(m.segments); end++ {
		out = append(out, m.power(end-window, end))
	}
	return out
}

// power returns the mean square of the segments from first to before end. Segments before the sound are silent.
func (m *Meter) power(first, end int) float64 {
	sum := 0.0
	for _, s := range m.segments[max(0, first):end] {
		sum += s
	}
	length := int64(end - first)
	end = max(end, int(length))
	return sum / float64(m.begin(int64(end)*segmentHops)-m.begin((int64(end)-length)*segmentHops))
}

// gated removes silent windows, then windows that are not louder than a part of the mean of the rest.
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

// MomentaryCurve returns the loudness of the 400 ms before each whole 100 ms of the sound. The first value is at 0.1 s.
func (m *Meter) MomentaryCurve() []float32 { return m.curve(shortHops / segmentHops) }

// ShortTermCurve returns the loudness of the 3 s before each whole 100 ms of the sound.
func (m *Meter) ShortTermCurve() []float32 { return m.curve(longHops / segmentHops) }

func (m *Meter) curve(window int) []float32 {
	out := make([]float32, len(m.segments))
	for i := range out {
		out[i] = float32(lufs(m.power(i+1-window, i+1)))
	}
	return out
}
