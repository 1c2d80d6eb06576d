package contentdb

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// A large project that is as awkward as real ones: tiles and levels that need nine of them, a palette that every level needs, an
// atlas of thousands of pictures, failures that drag others down, two platforms, parcels that hold nearly everything.
const (
	palette = "shared/palette.png"
	picture = "ui/picture%05d.png"
	atlasID = "ui/"
)

// project is what a build hands in.
type project struct {
	files   []File
	assets  []Asset
	parcels []Parcel
}

// large is a project of n assets and a few more, on two platforms.
func large(n int) *project {
	files, assets := many(n)
	link(assets)
	p := &project{files: files, assets: assets}
	p.levels()
	p.picturesIn(n / 20)
	p.failures()
	for i := range p.assets {
		p.assets[i].Jobs[0].Processor = p.assets[i].Processor
		p.assets[i].Jobs = both(p.assets[i].Jobs[0])
	}
	p.packed()
	return p
}

// levels makes every level need the palette, too: every second reads its file, every third needs it at run time, the others read its
// product.
func (p *project) levels() {
	file := File{Path: palette, Size: 77, Hash: content(palette)}
	a := Asset{ID: palette, Path: palette, UUID: "aaaaaaaa-0000-5000-8000-00000000000a", Processor: "texture", Jobs: []Job{{
		Key: content("palette key"), Fingerprint: "texture 3", Built: 1, Seconds: 0.5, Observations: saw(palette),
		Products: []Product{{Type: "texture", File: palette + ".ktx2", Size: 300, Hash: content("palette")}},
	}}}
	for i := 9; i < len(p.assets); i += 10 {
		switch j := &p.assets[i].Jobs[0]; i / 10 % 3 {
		case 0:
			j.Observations = append(j.Observations, Observation{Group: 2, Kind: SawFile, Subject: palette, Hash: file.Hash})
		case 1:
			j.Products[0].References = append(j.Products[0].References, ref(a.UUID, 0))
		default:
			j.Needs = append(j.Needs, palette)
		}
	}
	p.files, p.assets = append(p.files, file), append(p.assets, a)
}

// picturesIn makes an atlas of n pictures, which are no assets.
func (p *project) picturesIn(n int) {
	j := Job{
		Key: content("atlas key"), Fingerprint: "atlas 2", Built: 1, Seconds: 3,
		Observations: []Observation{{Kind: SawGlob, Subject: "ui/**", Hash: content("list")}},
		Products:     []Product{{Type: "atlas", File: "ui.atlas", Size: 1 << 20, Hash: content("atlas")}},
	}
	for i := range n {
		path := fmt.Sprintf(picture, i)
		f := File{Path: path, Size: int64(i), Hash: content(path)}
		p.files = append(p.files, f)
		j.Observations = append(j.Observations, Observation{Group: 1, Kind: SawFile, Subject: path, Hash: f.Hash})
	}
	p.assets = append(p.assets, Asset{ID: atlasID, Path: "ui", Folder: true, UUID: "bbbbbbbb-0000-5000-8000-00000000000b", Processor: "atlas", Jobs: []Job{j}})
}

// failures makes every 997th tile fail, and the levels that read it.
func (p *project) failures() {
	failed := map[string]bool{}
	for i := range p.assets {
		a := &p.assets[i]
		j := &a.Jobs[0]
		cause := ""
		for _, id := range j.Needs {
			if failed[id] && cause == "" {
				cause = id
			}
		}
		d := Diagnostic{Message: *diag.Errorf(diag.ImageDamaged, diag.Pos{File: a.Path}, "broken"), Cause: cause}
		switch {
		case cause != "":
			d.Message = *diag.Errorf(diag.NeedsFailed, diag.Pos{File: a.Path}, "needs %s, which failed", cause)
		case i%997 != 5 || len(j.Needs) > 0 || a.Folder:
			continue
		}
		failed[a.ID] = true
		j.Failed, j.Products, j.Diagnostics = true, nil, []Diagnostic{d}
	}
}

// packed puts all but every eleventh asset into ten parcels a platform.
func (p *project) packed() {
	for _, platform := range []string{"pc", "mobile"} {
		all := make([]Parcel, 10)
		for k := range all {
			all[k] = Parcel{Name: fmt.Sprintf("part%d", k), Platform: platform, File: fmt.Sprintf("parcels/%s/part%d.parcel", platform, k), Size: int64(1000 + k)}
		}
		for i, a := range p.assets {
			if i%11 != 0 && !a.Jobs[0].Failed {
				k := &all[i*len(all)/len(p.assets)]
				k.Products = append(k.Products, ParcelProduct{AssetID: a.ID})
			}
		}
		p.parcels = append(p.parcels, all...)
	}
}

// database writes the project as of build 1.
func (p *project) database(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "content.db")
	db := open(tb, path)
	b := begin(tb, db, Start{Number: 1, Started: time.Unix(0, 0), Project: "large", Output: "build", Roots: []string{"assets"}, Platforms: []string{"pc", "mobile"}})
	b.PutFiles(p.files)
	for _, a := range p.assets {
		b.Put(a)
	}
	b.PutParcels(p.parcels)
	if err := b.Finish(Summary{Seconds: 1, Assets: len(p.assets)}); err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}
