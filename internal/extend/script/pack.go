package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/pack"
)

// A script whose images go into an atlas has two functions instead of process(job): pack(job) makes requests with
// job.pack, and write(job, responses) writes products when the atlas is laid out. They are two jobs with separate
// observations: a change of what only pack read does not run write again.

// request is one requested image, without its pixels, and its place in the script.
type request struct {
	frame
	File         string
	Line, Column int
}

type frame struct{ Atlas, Name string }

// requestsProduct is the hidden product with the requests of pack(job), in order, for write. No request's own product
// can have this name: those are ATLAS:FRAME.
const requestsProduct = "requests"

// returnedProduct is the hidden product with the result of pack(job), as JSON, for a write(job, responses, data).
const returnedProduct = "returned"

// Part runs the script's function `pack`.
func (s *Script) Part(ctx context.Context, job processor.Job, name string) error {
	if s.pack == nil || name != pack.Part {
		return fmt.Errorf("%q is not a part of a script", name)
	}
	j := &jobValue{job: job, script: s, asks: true}
	if err := s.run(ctx, j, s.pack); err != nil {
		return err
	}
	list, err := json.Marshal(j.asked)
	if err != nil {
		return err
	}
	if s.data {
		d, err := toDocument(j.returned, 0)
		if err != nil {
			return at(diag.ScriptError, s.pack.Position(), "pack returned what write cannot get: %v", err).
				WithHint("return dicts, lists, strings, numbers, True, False or None")
		}
		if err := job.Write(processor.Output{Name: returnedProduct, Type: returnedProduct, Hidden: true}, document.AppendJSON(nil, &d)); err != nil {
			return err
		}
	}
	return job.Write(processor.Output{Name: requestsProduct, Type: requestsProduct, Hidden: true}, list)
}

// packed runs the script's function `write` with the responses to the requests of `pack`.
func (s *Script) packed(ctx context.Context, j *jobValue) error {
	list, err := left(j.job, requestsProduct)
	if err != nil {
		return err
	}
	var asked []request
	if err := json.Unmarshal(list, &asked); err != nil {
		return err
	}
	answers, err := s.answer(j, asked)
	if err != nil {
		return err
	}
	args := []starlark.Value{starlark.NewList(answers)}
	if s.data {
		text, err := left(j.job, returnedProduct)
		if err != nil {
			return err
		}
		d, err := document.JSON(text)
		if err != nil {
			return err
		}
		count := int64(0)
		args = append(args, fromDocument(&d, &count))
	}
	return s.run(ctx, j, s.write, args...)
}

// left reads a hidden product of the asset's own pack(job).
func left(job processor.Job, name string) ([]byte, error) {
	parts, err := job.Parts(pack.Part)
	if err != nil {
		return nil, err
	}
	for _, p := range parts[0] {
		if p.Name != name {
			continue
		}
		f, err := job.OpenProduct(p)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(f)
	}
	return nil, fmt.Errorf("the part %q made no %s", pack.Part, name)
}

// answer finds the frames; the response for one that the atlas left out is None.
func (s *Script) answer(j *jobValue, asked []request) ([]starlark.Value, error) {
	atlases := map[string]*pack.Frames{}
	var ids []string
	for _, r := range asked {
		if _, known := atlases[r.Atlas]; !known {
			atlases[r.Atlas] = nil
			ids = append(ids, r.Atlas)
		}
	}
	if len(ids) > 1 { // in parallel
		if _, err := j.job.Products(ids...); err != nil {
			return nil, err
		}
	}
	answers := make([]starlark.Value, len(asked))
	for i, r := range asked {
		if atlases[r.Atlas] == nil {
			f, err := pack.Open(j.job, r.Atlas)
			var wrong *pack.NotAtlasError
			if errors.As(err, &wrong) {
				m := diag.Errorf(diag.ScriptError, diag.Pos{File: r.File, Line: r.Line, Column: r.Column}, "job.pack: %v", wrong)
				j.note(m.WithSource(s.sources[r.File], 1))
				return nil, m
			}
			if err != nil {
				return nil, err
			}
			atlases[r.Atlas] = f
		}
		answers[i] = starlark.None
		if at, ok := atlases[r.Atlas].Find(r.Name); ok {
			answers[i] = response(r.frame, at)
		}
	}
	return answers, nil
}

// response is the place of one image.
func response(r frame, at pack.Placed) starlark.Value {
	fields := starlark.StringDict{"atlas": starlark.String(r.Atlas), "name": starlark.String(r.Name)}
	for name, n := range map[string]int{
		"page": at.Page, "x": at.X, "y": at.Y, "width": at.W, "height": at.H, "turned": at.Turned,
		"offset_x": at.OffsetX, "offset_y": at.OffsetY, "source_width": at.SourceW, "source_height": at.SourceH,
		"page_width": at.PageW, "page_height": at.PageH,
	} {
		fields[name] = starlark.MakeInt(n)
	}
	return starlarkstruct.FromStringDict(starlark.String("response"), fields)
}

// pack(atlas, name, image) requests that an image is packed.
func (j *jobValue) pack(c *callArgs) (starlark.Value, error) {
	var r frame
	var m *imageValue
	if err := c.unpack("atlas", &r.Atlas, "name", &r.Name, "image", &m); err != nil {
		return nil, err
	}
	if !j.asks {
		return nil, fmt.Errorf("%s: images are asked for in pack(job), before the atlas is laid out", c.name)
	}
	if r.Atlas == "" || r.Name == "" {
		return nil, fmt.Errorf("%s: an atlas is named by its id, and a frame has a name", c.name)
	}
	if max(len(r.Atlas), len(r.Name)) > maxFrameName {
		return nil, fmt.Errorf("%s: a name has more than %d bytes", c.name, maxFrameName)
	}
	if j.frames[r] {
		return nil, fmt.Errorf("%s: frame %q of %q is asked for twice: give each image a name of its own", c.name, r.Name, r.Atlas)
	}
	if err := take(c.thread, int64(len(m.Pix))); err != nil {
		return nil, err
	}
	if j.frames == nil {
		j.frames = map[frame]bool{}
	}
	j.frames[r] = true
	call := c.thread.CallFrame(1).Pos
	j.asked = append(j.asked, request{r, call.Filename(), int(call.Line), int(call.Col)})
	return starlark.None, jobFailed("", pack.Image(j.job, r.Atlas, r.Name, m.Width, m.Height, m.Pix))
}
