package doctor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

// Place is a folder that Kiln writes to.
type Place struct {
	Folder   string `json:"folder"` // relative to the project
	Writable bool   `json:"writable"`
	Free     int64  `json:"free"`            // in bytes; -1 if unknown
	Links    string `json:"links,omitempty"` // only for the output folder: how products get there
}

// Helper is a cache for the project's results, or a farm that runs its jobs.
type Helper struct {
	Type string   `json:"type"` // cache or farm
	Name string   `json:"name"`
	OK   bool     `json:"ok"`
	Says []string `json:"says"` // its properties
}

// Below these amounts of free disk space, in bytes, a message is shown.
const (
	scarce = 1 << 30
	none   = 64 << 20
)

// places checks the output folder and Kiln's own folder.
func (r *Report) places(p *build.Project) {
	state := filepath.Join(p.Dir, project.StateFolder)
	for _, pl := range []struct{ shown, dir string }{{project.StateFolder, state}, {p.Output, p.OutputDir()}} {
		place := Place{Folder: pl.shown, Writable: true, Free: -1}
		if pl.dir == p.OutputDir() {
			if m := project.LinkMessage(p.Dir, p.CheckOutput()); m != nil { // a file made there to test it would be elsewhere
				place.Writable = false
				r.add(m)
				r.Places = append(r.Places, place)
				continue
			}
		}
		dir := existing(pl.dir)
		if free, err := freeSpace(dir); err == nil {
			place.Free = free
		}
		file, err := probe(dir)
		hint := "check its permissions and what it lies on"
		if info, serr := os.Stat(pl.dir); serr == nil && !info.IsDir() {
			err, hint = errors.New("a file is in its place"), "move it away"
		}
		if err != nil {
			place.Writable = false
			r.add(diag.Errorf(diag.FolderUnwritable, diag.Pos{File: pl.shown}, "the folder cannot be written to: %v", cause(err)).
				WithHint("%s", hint))
		}
		if pl.dir == p.OutputDir() && place.Writable {
			place.Links = links(existing(state), dir)
		}
		if file != "" {
			os.Remove(file)
		}
		r.Places = append(r.Places, place)
		r.space(&place)
	}
}

// leads reports links in the project through which a build would write elsewhere.
func (r *Report) leads(p *build.Project) {
	add := func(err error) {
		if m := project.LinkMessage(p.Dir, err); m != nil {
			r.add(m)
		}
	}
	for _, file := range append(p.ShippedOutside(), p.Orders()...) {
		add(p.Bounds(file).File(p.ShippedPath(file)))
	}
	if p.CheckOutput() != nil {
		return // places has reported it
	}
	in := p.BelowOutput()
	filepath.WalkDir(in.Root(), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			add(in.File(path))
		}
		return nil
	})
}

func (r *Report) space(place *Place) {
	at := diag.Pos{File: place.Folder}
	switch {
	case place.Free < 0 || place.Free >= scarce:
	case place.Free < none:
		r.add(diag.Errorf(diag.DiskLow, at, "the disk has only %s left", diag.Size(place.Free)).WithHint("make room before you build"))
	default:
		r.add(diag.Warningf(diag.DiskLow, at, "the disk has only %s left", diag.Size(place.Free)).
			WithHint("make room; `kiln clean` removes the output"))
	}
}

// existing returns dir, or the nearest folder above it that exists.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// probe makes a small file. The caller removes it.
func probe(dir string) (string, error) {
	f, err := os.CreateTemp(dir, ".kiln-doctor-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString("kiln doctor was here")
	return f.Name(), errors.Join(err, f.Close())
}

// links returns how a blob of the state folder becomes an output: "reflink", "hard link" or "copy".
func links(state, output string) string {
	src, err := probe(state)
	if err != nil {
		return ""
	}
	defer os.Remove(src)
	dst := filepath.Join(output, filepath.Base(src)+"-link")
	defer os.Remove(dst)
	if cloneFile(src, dst) == nil {
		return "reflink"
	}
	os.Remove(dst)
	if os.Link(src, dst) == nil {
		return "hard link"
	}
	return "copy"
}

func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// caches checks the caches of the project.
func (r *Report) caches(ctx context.Context, p *build.Project) {
	place := p.CachePlace()
	if place == nil {
		return
	}
	for _, c := range place.Check(ctx) {
		r.Helpers = append(r.Helpers, Helper{"cache", c.Name, c.OK, c.Says})
		if !c.OK {
			r.add(diag.Warningf(diag.CacheFails, diag.Pos{}, "%s: %s", c.Name, c.Wrong).
				WithHint("builds do without it; `kiln cache check` tries it again"))
		}
	}
}

// farm checks the server whose workers run jobs.
func (r *Report) farm(ctx context.Context, p *build.Project) {
	f := p.Farm()
	if f == nil {
		return
	}
	defer f.Close()
	place := f.Place()
	says, reached, err := f.Check(ctx)
	r.Helpers = append(r.Helpers, Helper{"farm", "the farm " + place.Remote, err == nil, says})
	var m *diag.Message
	switch {
	case errors.As(err, &m):
		r.add(m)
	case !reached && err != nil:
		r.add(diag.Warningf(diag.FarmFails, diag.Pos{}, "the farm %s: %s", place.Remote, err).
			WithHint("builds do without it; the address comes from %s", place.Origin))
	case err != nil:
		m := diag.Warningf(diag.FarmFails, diag.Pos{}, "the farm %s: no worker ran a job: %s", place.Remote, err).
			WithHint("builds do without it; a worker has to have these properties, and run the kiln that [execution] names")
		for _, name := range slices.Sorted(maps.Keys(place.Properties)) {
			m.WithNote("%s = %q", name, place.Properties[name])
		}
		r.add(m)
	}
}
