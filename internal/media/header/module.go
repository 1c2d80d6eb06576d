package header

import (
	"bytes"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/tracker"
)

// Module describes a tracker module.
func Module(_ string, data []byte) (string, error) {
	m, err := tracker.Parse(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	words := []string{strings.ToUpper(string(m.Format)), count(m.Channels, "channel"), count(m.Patterns, "pattern")}
	if m.Title != "" {
		words = append(words, "\""+m.Title+"\"")
	}
	return strings.Join(words, ", "), nil
}
