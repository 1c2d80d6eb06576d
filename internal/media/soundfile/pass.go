package soundfile

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/mp3"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ogg"
)

// Pass writes the file with the tags replaced: the notes replace tags of the same names, and all else is unchanged. It
// is for Ogg and MP3.
func (f *File) Pass(to io.Writer, n *Notes) error {
	if f.chain != nil {
		return f.chain.pass(to, n)
	}
	tags := n.tags(f.Codec == "opus")
	switch f.Container {
	case Ogg:
		return ogg.Rewrite(to, f.ogg, f.ogg.Serial, f.ogg.Vendor, f.comments(tags))
	case MP3:
		var texts []mp3.Text
		for _, t := range tags {
			if t.name != markerTag { // only one text with each name is allowed
				texts = append(texts, mp3.Text{Name: t.name, Value: t.value})
			}
		}
		if _, err := to.Write(mp3.Retag(f.mp3.Tag, texts)); err != nil {
			return err
		}
		begin := int64(len(f.mp3.Tag))
		_, err := io.Copy(to, io.NewSectionReader(f.in, begin, f.Size-begin))
		return err
	}
	return fmt.Errorf("%s has no tags that can be changed", f.Container)
}

// isGain reports whether a tag has the gain or the peak of a sound.
func isGain(name string) bool {
	return strings.HasPrefix(name, "REPLAYGAIN_") || strings.HasPrefix(name, "R128_")
}

// noted are the names of the tags that notes replace.
var noted = []string{"REPLAYGAIN_TRACK_GAIN", "REPLAYGAIN_TRACK_PEAK", "REPLAYGAIN_ALBUM_GAIN", "REPLAYGAIN_ALBUM_PEAK",
	"R128_TRACK_GAIN", "R128_ALBUM_GAIN",
	"LOOPSTART", "LOOPLENGTH", "LOOPEND", "LOOP_START", "LOOP_LENGTH", "LOOP_END", markerTag}

func (f *File) comments(tags []tag) (all []string) {
	for _, t := range f.Tags {
		name, _, _ := strings.Cut(t, "=")
		known := false
		for _, n := range noted {
			known = known || strings.EqualFold(n, name)
		}
		if !known {
			all = append(all, t)
		}
	}
	for _, t := range tags {
		all = append(all, t.name+"="+t.value)
	}
	return all
}

// Copy writes the file unchanged.
func (f *File) Copy(to io.Writer) error {
	_, err := io.Copy(to, io.NewSectionReader(f.in, 0, f.Size))
	return err
}

// Finish writes an Ogg file that an encoder has just made, so that the same packets always give the same file: its only
// comments are the notes, and its serial number is computed from its packets. The sound begins after lead frames of the
// encoder's input and has the given number of frames.
func (f *File) Finish(to io.Writer, n *Notes, lead, frames int64) error {
	if f.Container != Ogg {
		return fmt.Errorf("%s has no pages that can be written", f.Container)
	}
	serial := fnv.New32a()
	f.ogg.Rewind()
	for {
		p, err := f.ogg.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		serial.Write(p.Data)
	}
	var comments []string
	for _, t := range n.tags(f.Codec == "opus") {
		comments = append(comments, t.name+"="+t.value)
	}
	return ogg.Cut(to, f.ogg, serial.Sum32(), f.ogg.Vendor, comments, f.ogg.Skip+lead, frames)
}
