package atlas

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
)

// read merges a pack.json into a plan, if there is one: the settings of libGDX's TexturePacker, in its relaxed JSON.
// Settings that it does not have are unchanged.
func (p *plans) read(file string, base plan) (plan, error) {
	data, err := p.job.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return base, nil
	}
	if err != nil {
		return base, err
	}
	v, err := document.RelaxedJSON(data)
	if err != nil {
		p.errors = append(p.errors, packFileProblem(file, err))
		return base, nil
	}
	object, ok := v.V.(document.Object)
	if !ok {
		p.errors = append(p.errors, &processor.Problem{Code: string(diag.AtlasPackFile), Path: file, Line: 1,
			Text: "it holds no settings", Hint: "write { maxWidth: 1024 }, or delete the file"})
		return base, nil
	}
	r := packReader{plans: p, file: file, plan: base, root: path.Dir(file) == rootOf(p.job)}
	for _, m := range object {
		r.member(m)
	}
	r.finish()
	return r.plan, nil
}

func packFileProblem(file string, err error) *processor.Problem {
	problem := &processor.Problem{Code: string(diag.AtlasPackFile), Path: file, Text: err.Error(), Err: err, Hint: "correct it, or set pack_json = false to leave it alone"}
	var e *document.Error
	if errors.As(err, &e) {
		problem.Text, problem.Line, problem.Column, problem.Length = e.Text, int(e.Pos.Line), int(e.Pos.Column), int(e.Pos.Length)
	}
	return problem
}

// packReader reads the members of one pack.json.
type packReader struct {
	plans *plans
	file  string
	plan

	edge, duplicate bool // edgePadding, duplicatePadding
	edgeSaid        bool
	root            bool // the file is in the folder of the atlas: settings for the whole atlas apply too
}

// harmless are settings of libGDX that have no effect here, or none on what is in the atlas.
const harmless = " atlasExtension bleed bleedIterations combineSubdirectories debug fast grid jpegQuality legacyOutput limitMemory outputFormat prettyPrint scaleResampling silent "

func (r *packReader) member(m document.Member) {
	bools := map[string]*bool{
		"pot": &r.powerOfTwo, "square": &r.square, "rotation": &r.rotate, "stripWhitespaceX": &r.trimX, "stripWhitespaceY": &r.trimY,
		"ignoreBlankImages": &r.dropBlank, "useIndexes": &r.numbers, "flattenPaths": &r.flatten, "ignore": &r.ignore, "alias": &r.aliases,
		"edgePadding": &r.edge, "duplicatePadding": &r.duplicate,
	}
	ints := map[string]*int{
		"maxWidth": &r.max.W, "maxHeight": &r.max.H, "minWidth": &r.min.W, "minHeight": &r.min.H,
		"paddingX": &r.padding.W, "paddingY": &r.padding.H, "alphaThreshold": &r.trimAlpha,
	}
	texts := map[string]*string{"filterMin": &r.minFilter, "filterMag": &r.magFilter}
	r.edgeSaid = r.edgeSaid || m.Key == "edgePadding"
	ok := true
	switch {
	case bools[m.Key] != nil:
		var v bool
		if v, ok = m.Value.V.(bool); ok {
			*bools[m.Key] = v
		}
	case ints[m.Key] != nil:
		var v int64
		if v, ok = m.Value.V.(int64); ok {
			ok = v >= 0 && v <= 16384
			*ints[m.Key] = int(min(max(v, 0), 16384))
		}
	case texts[m.Key] != nil:
		var v string
		if v, ok = m.Value.V.(string); ok {
			*texts[m.Key] = v
		}
	case m.Key == "multipleOfFour":
		var v bool
		if v, ok = m.Value.V.(bool); ok {
			r.multiple = 1
			if v {
				r.multiple = 4
			}
		}
	case m.Key == "wrapX" || m.Key == "wrapY":
		r.wrap(m)
	case r.root && m.Key == "premultiplyAlpha":
		var v bool
		if v, ok = m.Value.V.(bool); ok {
			r.plans.s.Premultiply = v
		}
	case r.root && m.Key == "scale":
		ok = r.scale(m.Value)
	case m.Key == "format" && (m.Value.V == any("RGBA8888") || m.Value.V == any("RGB888")):
	case !strings.Contains(harmless, " "+m.Key+" "):
		r.unknown(m)
	}
	if !ok {
		r.plans.errors = append(r.plans.errors, &processor.Problem{
			Code: string(diag.AtlasPackFile), Path: r.file, Line: int(m.Value.Line), Column: int(m.Value.Column), Length: int(m.Value.Length),
			Text: fmt.Sprintf("%s cannot be %v", m.Key, m.Value.Plain()), Hint: "numbers are 0 to 16384, switches true or false",
		})
	}
}

// scale reads a number or a list of numbers.
func (r *packReader) scale(v document.Value) bool {
	list, ok := v.V.([]document.Value)
	if !ok {
		list = []document.Value{v}
	}
	var scales []float64
	for _, x := range list {
		n, isFloat := x.V.(float64)
		if i, isInt := x.V.(int64); isInt {
			n, isFloat = float64(i), true
		}
		if !isFloat || n < 0.001 || n > 16 {
			return false
		}
		scales = append(scales, n)
	}
	if len(scales) > 0 {
		r.plans.s.Scale = scales
	}
	return true
}

// wrap combines "Repeat" of one direction with the other direction's.
func (r *packReader) wrap(m document.Member) {
	axis := strings.ToLower(m.Key[4:])
	has := strings.Contains(r.repeat, axis)
	if repeat := m.Value.V == any("Repeat"); repeat == has {
		return
	}
	letters := strings.Split(strings.TrimPrefix(r.repeat, "none"), "")
	if has {
		letters = slices.DeleteFunc(letters, func(l string) bool { return l == axis })
	} else {
		letters = append(letters, axis)
	}
	slices.Sort(letters)
	if r.repeat = strings.Join(letters, ""); r.repeat == "" {
		r.repeat = "none"
	}
}

// unknown warns about an unsupported setting, with the corresponding one of a rule if there is one.
func (r *packReader) unknown(m document.Member) {
	hint := "take it out, or leave it to libGDX's own packer"
	if inRule := map[string]string{
		"scale": "scale = [1, 0.5]", "format": `format = "rgba8"`, "premultiplyAlpha": "premultiply = true",
	}[m.Key]; inRule != "" {
		hint = "say " + inRule + " in a rule for the folder: it is one for the whole atlas"
	}
	r.plans.warned = append(r.plans.warned, processor.Problem{
		Code: string(diag.AtlasPackSetting), Path: r.file, Line: int(m.KeyPos.Line), Column: int(m.KeyPos.Column), Length: int(m.KeyPos.Length),
		Text: fmt.Sprintf("setting %q of libGDX is not understood and makes no difference", m.Key), Hint: hint,
	})
}

// finish converts edgePadding and duplicatePadding of libGDX: whether there is padding along the edges of pages too,
// and whether it is filled with copies of the edge pixels.
func (r *packReader) finish() {
	if r.duplicate {
		// Half of the padding belongs to each neighbour.
		r.extrude = min(r.padding.W, r.padding.H) / 2
		r.padding.W -= 2 * r.extrude
		r.padding.H -= 2 * r.extrude
	}
	if r.edgeSaid {
		r.border.W, r.border.H = 0, 0
		if r.edge {
			r.border = r.padding
		}
	}
}
