package sound

import "math"

// mixer is a source with other channels, each a weighted sum of the input's channels.
type mixer struct {
	src    Source
	format Format
	rows   [][]float32 // for each channel, the weight of each input channel
	buf    []float32
}

// Mono mixes a sound to one channel.
//
// The weights are those of ITU-R BS.775: left and right are equal, the centre is 3 dB louder, channels at a side or
// behind are 3 dB softer. This is the sum of the channels of [Stereo]. The mix is then scaled so that full scale in all
// channels stays full scale. Two equal channels therefore become one with the same samples, and the mix never clips.
// The caller sets the loudness later. A sound of one channel is not changed.
func Mono(src Source) Source { return mix(src, FrontCentre) }

// Stereo mixes a sound to two channels.
//
// Sounds of more channels are mixed by ITU-R BS.775: the centre, and speakers at a side or behind, have the weight
// 0.7071 in their channel. A speaker behind in the middle has a half in each channel. A channel without a speaker has
// 0.7071 in both. Low frequencies are left out. Both channels are then scaled by one factor, as in [Mono]; for 5.1 that
// is 7.7 dB. A single channel is copied to both, which is twice the power: see [MeterOptions].
func Stereo(src Source) Source { return mix(src, FrontLeft|FrontRight) }

func mix(src Source, mask ChannelMask) Source {
	f := src.Format()
	channels := 1
	if mask != FrontCentre {
		channels = 2
	}
	if f.Channels == channels {
		return src
	}
	m := &mixer{src: src, format: Format{Rate: f.Rate, Channels: channels, Mask: mask}, rows: stereoRows(f)}
	if channels == 1 {
		for i, right := range m.rows[1] {
			m.rows[0][i] += right
		}
		m.rows = m.rows[:1]
	}
	normalise(m.rows)
	return m
}

// stereoRows returns the weights of each channel in left and right.
func stereoRows(f Format) [][]float32 {
	const (
		part   = math.Sqrt2 / 2
		left   = FrontLeft | FrontLeftOfCentre
		right  = FrontRight | FrontRightOfCentre
		leftB  = BackLeft | SideLeft
		rightB = BackRight | SideRight
	)
	rows := [][]float32{make([]float32, f.Channels), make([]float32, f.Channels)}
	for i, s := range f.Speakers() {
		l, r := float32(part), float32(part)
		switch {
		case s == LowFrequency:
			l, r = 0, 0
		case s == BackCentre:
			l, r = 0.5, 0.5
		case s&left != 0:
			l, r = 1, 0
		case s&right != 0:
			l, r = 0, 1
		case s&leftB != 0:
			l, r = part, 0
		case s&rightB != 0:
			l, r = 0, part
		}
		rows[0][i], rows[1][i] = l, r
	}
	return rows
}

// normalise scales the rows so that the largest sum is 1.
func normalise(rows [][]float32) {
	most := 0.0
	for _, row := range rows {
		sum := 0.0
		for _, v := range row {
			sum += float64(v)
		}
		most = max(most, sum)
	}
	if most == 0 {
		return // only low frequencies
	}
	for _, row := range rows {
		for i := range row {
			row[i] = float32(float64(row[i]) / most)
		}
	}
}

func (m *mixer) Format() Format { return m.format }

func (m *mixer) Read(dst []float32) (int, error) {
	in, out := m.src.Format().Channels, m.format.Channels
	frames := min(len(dst)/out, pieceFrames)
	if frames == 0 {
		return 0, errShort
	}
	if len(m.buf) < frames*in {
		m.buf = make([]float32, frames*in)
	}
	n, err := m.src.Read(m.buf[:frames*in])
	for i := range n {
		frame := m.buf[i*in : (i+1)*in]
		for c, row := range m.rows {
			sum := float32(0)
			for k, v := range row {
				sum += float32(v * frame[k])
			}
			dst[i*out+c] = sum
		}
	}
	return n, err
}
