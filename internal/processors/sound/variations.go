package sound

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// listPart is the part that makes the list of variations. It is a part, so that a new variation does not run the others' jobs again.
const listPart = "variations"

// stem splits the name of a sound without its number: "audio/step_01.wav" is "audio/step" and ".wav". It returns false
// if there is no number.
func stem(file string) (name, ext string, ok bool) {
	ext = path.Ext(file)
	name = strings.TrimSuffix(file, ext)
	bare := strings.TrimRight(name, "0123456789")
	if digits := len(name) - len(bare); digits == 0 || digits > 4 {
		return "", "", false
	}
	name = strings.TrimRight(bare, "_-")
	if name == bare || path.Base(name) == "." || strings.HasSuffix(name, "/") || name == "" {
		return "", "", false
	}
	return name, ext, true
}

// variations asks for the list, if this sound may be one of several.
func variations(job processor.Job) error {
	if _, _, ok := stem(job.Asset().Path); !ok || job.Asset().ID == "" {
		return nil
	}
	_, err := job.Parts(listPart)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a placeholder, whose world is one file
	}
	return err
}

// Part makes the list of variations, if this is the first of them.
func (proc) Part(_ context.Context, job processor.Job, _ string) error {
	self := job.Asset().Path
	name, ext, ok := stem(self)
	if !ok {
		return nil
	}
	files, err := job.Glob(processor.QuoteGlob(name) + "[_-]*[0-9]" + processor.QuoteGlob(ext))
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { n, e, ok := stem(f); return !ok || n != name || e != ext })
	slices.SortFunc(files, byNumber)
	if len(files) < 2 || files[0] != self {
		return nil
	}
	type entry struct {
		Asset string `json:"asset"`
		UUID  string `json:"uuid"`
	}
	list := struct {
		Name       string  `json:"name"`
		Variations []entry `json:"variations"`
	}{Name: path.Base(name)}
	out := processor.Output{Name: listPart, Type: ListType, Extension: ".json"}
	for _, f := range files {
		a, err := job.Find(f)
		if err != nil {
			continue // ignored, or with another name
		}
		ref, err := job.Reference(a.ID, "", true)
		if err != nil {
			return err
		}
		list.Variations = append(list.Variations, entry{a.ID, a.UUID})
		out.References = append(out.References, ref)
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return job.Write(out, append(data, '\n'))
}

// byNumber sorts step_2 before step_10.
func byNumber(a, b string) int {
	x, y := digits(a), digits(b)
	if len(x) != len(y) {
		return len(x) - len(y)
	}
	if x != y {
		return strings.Compare(x, y)
	}
	return strings.Compare(a, b)
}

// digits is the number of a file, without leading zeros.
func digits(file string) string {
	name := strings.TrimSuffix(file, path.Ext(file))
	return strings.TrimLeft(name[len(strings.TrimRight(name, "0123456789")):], "0")
}
