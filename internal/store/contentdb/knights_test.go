package contentdb

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/processor"
)

// A small project, made by hand, that has one of everything.

const (
	heroUUID   = "11111111-0000-5000-8000-000000000001"
	uiUUID     = "22222222-0000-5000-8000-000000000002"
	knightUUID = "33333333-0000-5000-8000-000000000003"
	capeUUID   = "44444444-0000-5000-8000-000000000004"
	nobodyUUID = "99999999-0000-5000-8000-000000000009"
)

func content(s string) digest.Hash { return digest.Of([]byte(s)) }

func saw(paths ...string) (all []Observation) {
	for i, p := range paths {
		all = append(all, Observation{Group: i, Kind: SawFile, Subject: p, Hash: content(p)})
	}
	return all
}

func knightsStart(number, after int64) Start {
	return Start{
		Number: number, After: after, Started: time.Date(2026, 11, 21, 9, 4, int(number), 0, time.UTC),
		Project: "knights", Output: "build", Kiln: "0.1.0",
		Roots: []string{"assets", "mods/winter"}, Platforms: []string{"pc", "mobile"},
	}
}

func knightsFiles() (files []File) {
	for i, p := range []string{
		"sprites/hero.png", "sprites/ui/ok.png", "sprites/ui/no.png", "models/knight.gltf", "models/knight.bin",
		"models/cape.png", "data/level.json", "data/world.json", "data/menu.json", "data/old.txt",
	} {
		files = append(files, File{Path: p, Root: i % 2, Size: int64(100 * (i + 1)), Hash: content(p)})
	}
	return append(files, File{Path: "models/knight.lod1.gltf", Missing: true})
}

// both makes the same job for both platforms.
func both(j Job) []Job {
	mobile := j
	j.Platform, mobile.Platform = "pc", "mobile"
	return []Job{j, mobile}
}

func failure(text, cause string) Diagnostic {
	d := Diagnostic{Message: *diag.Errorf(diag.NeedsFailed, diag.Pos{}, "%s", text), Cause: cause}
	if cause == "" {
		d.Message = *diag.Errorf(diag.BadValue, diag.Pos{File: "data/level.json", Line: 3, Column: 5}, "%s", text).
			WithHint("write it").WithNote("required by the schema").WithNote("and by the game")
	}
	return d
}

func knightsAssets() []Asset {
	all := knightsOf()
	for i := range all {
		for k := range all[i].Jobs {
			all[i].Jobs[k].Processor = all[i].Processor
		}
	}
	// The cape has a palette as well, on pc.
	cape := &all[slices.IndexFunc(all, func(a Asset) bool { return a.ID == "models/cape.png" })]
	cape.Processor = "texture, palette"
	cape.Jobs = slices.Insert(cape.Jobs, 1, Job{
		Platform: "pc", Processor: "palette", Built: 2, Seconds: 0.125, Observations: saw("models/cape.png", "models/knight.gltf"), Needs: []string{"sprites/hero.png"},
		Products: []Product{
			{Type: "texture", File: "models/cape.png.tex", Size: 1}, // which the texture has made: left out
			{SubID: 9, Name: "palette", Type: "palette", File: "models/cape.png.palette.pal", Size: 48},
		},
		Diagnostics: []Diagnostic{{Message: *diag.Warningf(diag.BadValue, diag.Pos{File: "models/cape.png"}, "two colours are alike")}},
	})
	return all
}

func knightsOf() []Asset {
	texture := func(id string, size int64) []Product {
		return []Product{{Type: "texture", File: id + ".ktx2", Size: size, Hash: content(id + ".ktx2")}}
	}
	knightLooked := append(saw("models/knight.gltf", "models/knight.bin", "models/cape.png"),
		Observation{Group: 3, Kind: SawMissing, Subject: "models/knight.lod1.gltf"},
		Observation{Group: 4, Kind: SawProduct, Subject: "sprites/hero.png", Hash: content("sprites/hero.png.ktx2")},
		Observation{Group: 5, Kind: SawEnv, Subject: "LANG"})
	return []Asset{
		{ID: "sprites/hero.png", UUID: heroUUID, Path: "sprites/hero.png", Processor: "texture", Jobs: both(Job{
			Key: content("hero"), Settings: `{"mips":true}`, Fingerprint: "texture 1", Built: 1, Reason: "it was never built", Seconds: 0.25,
			PeakMemory: 1 << 20, Observations: saw("sprites/hero.png"), Products: texture("sprites/hero.png", 4000)})},
		{ID: "sprites/ui/", UUID: uiUUID, Path: "sprites/ui", Folder: true, Processor: "atlas", Jobs: both(Job{
			Built: 2, Reason: "sprites/ui/no.png is new", Seconds: 1.5,
			Observations: append([]Observation{{Kind: SawGlob, Subject: "sprites/ui/*.png", Hash: content("no,ok")}},
				saw("sprites/ui/no.png", "sprites/ui/ok.png")...),
			Products: []Product{
				{Type: "atlas", File: "sprites/ui.atlas", Size: 300, Facts: []Fact{{"atlas.frames", "12"}, {"atlas.pages", "1"}}, References: []processor.Reference{{UUID: uiUUID, SubID: 7, Required: true}}},
				{SubID: 7, Name: "page0", Type: "texture", File: "sprites/ui.page0.ktx2", Size: 9000},
			}})},
		{ID: "models/knight.gltf", UUID: knightUUID, Path: "models/knight.gltf", Processor: "gltf", Jobs: []Job{{
			Platform: "pc", Built: 2, Seconds: 0.5, Observations: knightLooked, Needs: []string{"sprites/hero.png"},
			Products: []Product{{Type: "model", File: "models/knight.gltf.glb", Size: 7000, References: []processor.Reference{
				{UUID: heroUUID, Required: true}, {UUID: uiUUID, SubID: 7}, {UUID: nobodyUUID}}}},
			Diagnostics: []Diagnostic{{Message: *diag.Warningf(diag.BadValue, diag.Pos{File: "models/knight.gltf", Line: 9}, "no normals")}},
		}}},
		{ID: "models/cape.png", UUID: capeUUID, Path: "models/cape.png", Processor: "texture", Jobs: both(Job{
			Built: 0, Observations: saw("models/cape.png"), Products: texture("models/cape.png", 2000)})},
		{ID: "data/level.json", UUID: "55555555-0000-5000-8000-000000000005", Path: "data/level.json", Processor: "data", Jobs: []Job{{
			Platform: "pc", Failed: true, Built: 2, Seconds: 0.01, Observations: saw("data/level.json"),
			Diagnostics: []Diagnostic{failure(`"size" is missing`, "")}}}},
		{ID: "data/world.json", UUID: "66666666-0000-5000-8000-000000000006", Path: "data/world.json", Processor: "data", Jobs: []Job{{
			Platform: "pc", Failed: true, Built: 2, Observations: saw("data/world.json"), Needs: []string{"data/level.json"},
			Diagnostics: []Diagnostic{failure("needs data/level.json, which failed", "data/level.json")}}}},
		{ID: "data/menu.json", UUID: "77777777-0000-5000-8000-000000000007", Path: "data/menu.json", Processor: "data", Jobs: []Job{{
			Platform: "pc", Failed: true, Built: 2, Observations: saw("data/menu.json"), Needs: []string{"data/world.json"},
			Diagnostics: []Diagnostic{failure("needs data/world.json, which failed", "data/world.json")}}}},
		{ID: "data/old.txt", UUID: "88888888-0000-5000-8000-000000000008", Path: "data/old.txt", Processor: "copy", Jobs: both(Job{
			Built: 1, Observations: saw("data/old.txt"), Products: []Product{{Type: "file", File: "data/old.txt", Size: 50}}})},
	}
}

func knightsParcels() []Parcel {
	return []Parcel{{Name: "main", Platform: "pc", File: "parcels/pc/main.parcel", Size: 12000, Products: []ParcelProduct{
		{AssetID: "models/knight.gltf"}, {AssetID: "sprites/hero.png"}, {AssetID: "sprites/ui/", SubID: 7}}}}
}

// open opens a file for writing and closes it at the end of the test.
func open(t testing.TB, path string) *DB {
	t.Helper()
	db, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func begin(t testing.TB, db *DB, s Start) *Build {
	t.Helper()
	b, err := db.Begin(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func finish(t testing.TB, b *Build) {
	t.Helper()
	if err := b.Finish(Summary{Seconds: 1.25, Assets: 8, Jobs: 12}); err != nil {
		t.Fatal(err)
	}
}

// knights writes the project as of build 2.
func knights(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "content.db")
	writeKnights(t, path)
	return path
}

// writeKnights writes two builds of the knights to a file that is not there.
func writeKnights(t testing.TB, path string) {
	t.Helper()
	db := open(t, path)
	finish(t, begin(t, db, knightsStart(1, 0)))
	b := begin(t, db, knightsStart(2, 1))
	b.PutFiles(knightsFiles())
	for _, a := range knightsAssets() {
		b.Put(a)
	}
	b.PutParcels(knightsParcels())
	finish(t, b)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func reader(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func ref(uuid string, subID uint32) processor.Reference {
	return processor.Reference{UUID: uuid, SubID: subID, Required: true}
}
