package atlas

import (
	"path"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/processor"
)

// tables writes the frame table of each scale in the requested forms. made are the products of the
// layout.
func (p proc) tables(job processor.Job, made []processor.Product) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	root, err := plans.of(rootOf(job))
	if err != nil {
		return err
	}
	for _, scale := range plans.s.scales() {
		data, err := readHidden(job, made, at("frames", scale))
		if err != nil {
			return err
		}
		t, err := table.Read(data)
		if err != nil {
			return err
		}
		w := tableWriter{job: job, s: plans.s, root: root, t: t, scale: scale}
		if err := w.write(data); err != nil {
			return err
		}
	}
	return nil
}

// tableWriter writes one table.
type tableWriter struct {
	job   processor.Job
	s     *Settings
	root  plan
	t     *table.Table
	scale int
}

func (w *tableWriter) write(binary []byte) error {
	data, extension := binary, table.Extension
	if w.s.Table == "json" {
		var err error
		if data, err = table.WriteJSON(w.t); err != nil {
			return err
		}
		extension = table.JSONExtension
	}
	if err := w.out(w.s.tag(w.scale), table.Type, extension, data); err != nil {
		return err
	}
	for _, export := range w.s.Exports {
		var err error
		switch export {
		case "libgdx":
			err = w.libGDX()
		case "json-hash":
			err = w.packerJSON("hash", table.Hash)
		case "json-array":
			err = w.packerJSON("array", table.Array)
		case "bmfont":
			err = w.bmfont()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// out writes a product that needs the pages.
func (w *tableWriter) out(name, kind, extension string, data []byte) error {
	out := processor.Output{Name: name, Type: kind, Extension: extension}
	for i := range w.t.Pages {
		out.References = append(out.References, processor.Own(w.job, pageName(w.s, w.scale, i), true))
	}
	return w.job.Write(out, data)
}

// name is the name of an export: "libgdx", "0.5x.libgdx".
func (w *tableWriter) name(export string) string {
	if tag := w.s.tag(w.scale); tag != "" {
		return tag + "." + export
	}
	return export
}

func (w *tableWriter) libGDX() error {
	data, err := table.WriteLibGDX(w.t, table.LibGDXOptions{
		Format: "RGBA8888", MinFilter: w.root.minFilter, MagFilter: w.root.magFilter, Repeat: w.root.repeat,
	})
	if err != nil {
		return exportProblem(err)
	}
	return w.out(w.name("libgdx"), typeExport, ".atlas", data)
}

// packerJSON writes one file for each page, as all readers of that form expect.
func (w *tableWriter) packerJSON(word string, form table.PackerJSON) error {
	base := path.Base(strings.TrimSuffix(w.job.Asset().ID, "/"))
	var names, files []string
	for i := range w.t.Pages {
		name := w.name(word)
		if i > 0 {
			name += "-" + strconv.Itoa(i)
		}
		names, files = append(names, name), append(files, base+"."+name+".json")
	}
	for i, name := range names {
		data, err := table.WritePacker(w.t, i, form, files)
		if err != nil {
			return exportProblem(err)
		}
		if err := w.out(name, typeExport, ".json", data); err != nil {
			return err
		}
	}
	return nil
}

func exportProblem(err error) error {
	return &processor.Problem{Code: string(diag.AtlasExport), Text: err.Error(), Hint: "rename the image, or take the export out", Err: err}
}
