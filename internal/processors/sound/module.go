package sound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/tracker"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	"github.com/kiln-pipeline/kiln/processor"
)

// module copies a tracker module, with its facts: a game plays it by its notes, so there are no samples to measure or
// to change. It returns false if the file is not a module. A file with the name of a module but other content is copied
// too, because other kinds of files also use .mod.
func module(ctx context.Context, job processor.Job, in processor.File) (is bool, err error) {
	m, err := tracker.Parse(in, in.Size())
	ext := strings.ToLower(path.Ext(job.Asset().Path))
	named := slices.Contains(tracker.Extensions(), ext)
	if errors.Is(err, tracker.ErrFormat) && named {
		head := make([]byte, 16)
		n, _ := in.ReadAt(head, 0)
		if _, sound := soundfile.ContainerOf(head[:n]); sound {
			return false, nil
		}
		job.Warn(processor.Problem{Code: string(diag.SoundMisnamed), Text: fmt.Sprintf("named %s, but it is not a tracker module", ext),
			Hint: "where it is something else, give it another processor, such as copy"})
		m, err = nil, nil
	}
	switch {
	case errors.Is(err, tracker.ErrFormat):
		return false, nil
	case err != nil:
		return false, err
	case m != nil && ext != "."+string(m.Format):
		job.Warn(processor.Problem{Code: string(diag.SoundMisnamed), Text: fmt.Sprintf("named %s, but it is %s", ext, m.Format),
			Hint: "rename it: a game that goes by the name cannot play it"})
	}
	out := processor.Output{Type: Type, Facts: map[string]string{"sound.codec": strings.TrimPrefix(ext, ".")}}
	if m != nil {
		if m.Cut {
			job.Warn(processor.Problem{Code: string(diag.SoundDamaged), Text: "the file is cut off", Hint: "export or download it again"})
		}
		out.Facts = map[string]string{"sound.codec": string(m.Format), "sound.channels": strconv.Itoa(m.Channels),
			"sound.orders": strconv.Itoa(m.Orders), "sound.patterns": strconv.Itoa(m.Patterns), "sound.instruments": strconv.Itoa(m.Instruments)}
		if m.Title != "" {
			out.Facts["sound.title"] = m.Title
		}
	}
	w, err := job.Create(out)
	if err != nil {
		return true, err
	}
	_, err = io.Copy(stopping{w, ctx}, io.NewSectionReader(in, 0, in.Size()))
	return true, errors.Join(err, w.Close())
}
