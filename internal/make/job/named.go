package job

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/processor"
)

// Settings that rules give to a request by its name.

// named identifies a request by the platform, asset and processor that make it, and its name. Its text is a subject of SawNamed.
type named struct{ platform, asset, processor, name string }

func (n named) String() string {
	return n.platform + "\x00" + n.asset + "\x00" + n.processor + "\x00" + n.name
}

func parseNamed(text string) (n named) {
	n.platform, text, _ = strings.Cut(text, "\x00")
	n.asset, text, _ = strings.Cut(text, "\x00")
	n.processor, n.name, _ = strings.Cut(text, "\x00")
	return n
}

// NamedText is a subject of SawNamed for display: knight.glb#cape.
func NamedText(subject string) string {
	n := parseNamed(subject)
	return n.asset + asset.NameMark + n.name
}

// named returns the settings that rules give to a request, and their hash. The error says what is wrong with them.
func (w *World) named(n named) (*settings.Table, digest.Hash, error) {
	a, p := w.Find(n.asset), w.procs[n.processor]
	if a == nil || p == nil || w.Named == nil {
		return nil, digest.Hash{}, nil
	}
	t, l := w.Named.Settings(a, n.platform, p.Info, n.name)
	if t == nil {
		return nil, digest.Hash{}, nil
	}
	b := digest.Build("named").Str("settings", t.JSON())
	if len(l) == 0 {
		return t, b.Sum(), nil
	}
	text := fmt.Sprintf("the request %q: %s: %s", n.name, l[0].Pos, l[0].Text)
	if l[0].Hint != "" {
		text += "; " + l[0].Hint
	}
	return t, b.Str("wrong", text).Sum(), errors.New(text)
}

// layNamed merges the settings that rules give to a request into those that the job gives. For requests made by a
// request there are none, because rules can name only assets.
func (j *Job) layNamed(r *processor.Request, given []byte) ([]byte, error) {
	if j.t.Request() {
		return given, nil
	}
	n := named{j.t.Platform, j.t.Asset.ID, r.Processor, r.Name}
	over, h, err := j.w.named(n)
	j.run.See(SawNamed, n.String(), h)
	if over == nil || err != nil {
		return given, err
	}
	under, err := settings.FromJSON(given)
	if err != nil {
		return nil, fmt.Errorf("settings of a request to %q: %w", r.Processor, err)
	}
	return []byte(settings.Merge(under, over).JSON()), nil
}
