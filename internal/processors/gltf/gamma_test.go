package gltf

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/png"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// ruled is a job with one file, and rules for it.
type ruled struct {
	processor.Job
	data    []byte
	options texture.Options
}

func (j ruled) ReadFile(string) ([]byte, error) { return j.data, nil }

func (j ruled) AssetSettings(string, string) (any, map[string]any, error) {
	return &j.options, nil, nil
}

// TestByGamma: the colours of a file's own texture are converted by its gamma, unless a rule turns that off.
func TestByGamma(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	plain := b.Bytes()
	body := []byte("gAMA\x00\x01\x86\xa0") // 1: light
	linear := append(bytes.Clone(plain[:33]), "\x00\x00\x00\x04"...)
	linear = append(binary.BigEndian.AppendUint32(append(linear, body...), crc32.ChecksumIEEE(body)), plain[33:]...)
	on, off := texture.Defaults(), texture.Defaults()
	off.Gamma = false
	for _, tt := range []struct {
		file string
		job  ruled
		want bool
	}{
		{"a.png", ruled{nil, linear, on}, true}, {"a.png", ruled{nil, linear, off}, false}, {"a.png", ruled{nil, plain, on}, false},
		{"a.ktx2", ruled{nil, linear, on}, false},
	} {
		if got, err := byGamma(tt.job, tt.file); got != tt.want || err != nil {
			t.Errorf("%s, gamma %v: %v, %v", tt.file, tt.job.options.Gamma, got, err)
		}
	}
}
