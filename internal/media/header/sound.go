package header

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// codecs are display names of codecs. A codec that is not listed is shown by its own name.
var codecs = map[string]string{
	"pcm": "PCM", "adpcm": "IMA ADPCM", "ms-adpcm": "MS ADPCM", "a-law": "A-law", "vorbis": "Vorbis", "opus": "Opus", "flac": "FLAC", "qoa": "QOA", "mp3": "MP3",
}

// Sound describes a sound in any format that Kiln reads.
func Sound(_ string, data []byte) (string, error) {
	f, err := soundfile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	coding := f.Codec
	if name := codecs[coding]; name != "" {
		coding = name
	}
	if f.Bits > 0 && (f.Codec == "pcm" || f.Codec == "float" || f.Codec == "flac") {
		coding += fmt.Sprintf(" of %d bits", f.Bits)
	}
	words := []string{coding, count(f.Format.Channels, "channel"), fmt.Sprintf("%d Hz", f.Format.Rate), fmt.Sprintf("%.3f s",
		f.Seconds())}
	for _, l := range f.Loops {
		words = append(words, fmt.Sprintf("loop %d to %d", l.Begin, l.End))
	}
	if n := len(f.Markers); n > 0 {
		words = append(words, count(n, "marker"))
	}
	if n := f.Notes; n != nil {
		words = append(words, fmt.Sprintf("gain %.2f dB", n.Gain))
	}
	return strings.Join(words, ", "), nil
}
