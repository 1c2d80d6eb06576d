package build

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/processors/gltf"
	"github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/processor"
)

const placeholderProject = `
-- kiln.toml --
[project]
name = "test"

[platforms.pc]
[platforms.pc.texture]
family = "bc"

[[parcels]]
name   = "level"
assets = ["tank.png", "b.txt"]
-- assets/b.txt --
b
-- assets/a.s --
text a
-- assets/cube.gltf --
{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"name":"own"}]}
`

func (p *fixture) picture(name string, size int) {
	p.Helper()
	im := image.NewNRGBA(image.Rect(0, 0, size, size))
	for i := range im.Pix {
		im.Pix[i] = byte(i * i >> 3)
	}
	im.SetNRGBA(0, 0, color.NRGBA{1, 2, 3, 255})
	var b bytes.Buffer
	p.must(png.Encode(&b, im))
	p.write(name, b.String())
}

// shape is a texture file's size and format.
func (p *fixture) shape(name string) (width, height int, format string) {
	p.Helper()
	f, err := ktx2.Decode([]byte(p.read(name)))
	p.must(err)
	return f.Width, f.Height, f.Format.String()
}

// TestPlaceholder: what fails is replaced by what its processor makes of a placeholder, in the format of its platform; it is told of,
// kept out of parcels, never taken for done, and gone when the asset is mended.
func TestPlaceholder(t *testing.T) {
	p := newProject(t, placeholderProject)
	p.procs = append(testProcessors(nil), texture.New(), gltf.New())
	p.picture("assets/tank.png", 16)
	p.build()
	const tank, level = "build/pc/tank.png.ktx2", "build/parcels/pc/level.parcel"
	good, packed := p.read(tank), p.read(level)
	_, _, format := p.shape(tank)

	stand := func(failed int, how results.OnError) built {
		t.Helper()
		b := p.buildWith(Request{OnError: how})
		if b.Failed != failed {
			t.Errorf("failed %d\n%s", b.Failed, b.messages)
		}
		return b
	}
	p.write("assets/tank.png", "no picture")
	p.write("assets/late.png", "none either")
	p.write("assets/a.s", "fail now\n") // has no placeholder, but a last good product
	p.write("assets/new.s", "fail now\n")
	for range 2 { // the second time with nothing to do, and the same to tell
		b := stand(4, results.Placeholders)
		if want := "warning[K0224]: placeholders stand for what failed: late.png, tank.png\n  fix it, and build again; no parcel is packed with them\n"; !strings.Contains(b.messages, want) || b.Placeholders != 2 {
			t.Errorf("%d placeholders: %s", b.Placeholders, b.messages)
		}
		if !strings.Contains(b.messages, "error[K1603]: parcel level [pc] was not packed: tank.png failed") || p.read(level) != packed {
			t.Error("the parcel is not as it was")
		}
		if w, h, f := p.shape(tank); w != 64 || h != 64 || f != format {
			t.Errorf("the placeholder is %d x %d, %s; the texture was %s", w, h, f, format)
		}
	}
	if _, _, f := p.shape("build/pc/late.png.ktx2"); f != format {
		t.Errorf("the placeholder of what was never good is %s", f)
	}
	if p.read("build/pc/a.s.txt") != "a\n" || p.read("build/pc/new.s.txt") != "" {
		t.Error("without a placeholder it is not the last good one, or none")
	}
	if got := p.asked("SELECT asset FROM products JOIN diagnostics USING (asset, platform) WHERE code = 'K0224' ORDER BY asset"); got != "late.png tank.png" {
		t.Errorf("the content database has %q", got)
	}

	b := stand(4, results.PackedPlaceholders)
	r, err := kilnrt.Open(p.path(level))
	p.must(err)
	x, err := r.ByName("tank.png")
	p.must(err)
	content, err := x.Bytes()
	if p.must(err); string(content) != p.read(tank) || strings.Contains(b.messages, "K1603") || strings.Contains(b.messages, "no parcel is packed with them") {
		t.Errorf("it is not in the parcel, which was asked for: %s", b.messages)
	}
	r.Close()

	p.wants("") // without, what failed has no products
	if p.read(tank) != "" || p.asked("SELECT asset FROM diagnostics WHERE code = 'K0224'") != "" {
		t.Error("it stands although nobody asks for it")
	}
	stand(4, results.Placeholders)
	p.picture("assets/tank.png", 16)
	p.picture("assets/late.png", 8)
	p.write("assets/a.s", "text a\n")
	p.remove("assets/new.s")
	if b := stand(0, results.Placeholders); p.read(tank) != good || strings.Contains(b.messages, "K0224") {
		t.Errorf("it is mended, and the texture is another: %s", b.messages)
	}
	p.wants("")

	// A failure after a build that could have been one of few tasks.
	p.write("assets/tank.png", "no picture")
	if b := stand(1, results.Placeholders); b.short || b.Placeholders != 1 {
		t.Errorf("%d placeholders", b.Placeholders)
	}
}

// standing is a team's processor that has a placeholder of its own.
type standing struct{}

func (standing) Info() processor.Info {
	return processor.Info{Name: "standing", Version: 1, Extensions: []string{".stand"},
		Products: []processor.ProductType{{Type: "text", Extension: ".txt"}}}
}

func (standing) Process(_ context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err == nil && string(text) == "broken" {
		err = errors.New("it is broken")
	}
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: "text", Extension: ".txt"}, bytes.ToUpper(text))
}

func (standing) Placeholder(file string) []byte {
	if file == "none.stand" {
		return nil
	}
	return []byte("in place of " + file)
}

// TestPlaceholderOfProcessor: a processor's own placeholder is made into products as a source file would be.
func TestPlaceholderOfProcessor(t *testing.T) {
	p := newProject(t, "-- kiln.toml --\n[project]\nname = \"test\"\n")
	p.procs = append(testProcessors(nil), standing{})
	p.write("assets/a.stand", "broken")
	p.write("assets/none.stand", "broken")
	if b := p.buildWith(Request{OnError: results.Placeholders}); b.Failed != 2 || b.Placeholders != 1 {
		t.Errorf("failed %d, placeholders %d\n%s", b.Failed, b.Placeholders, b.messages)
	}
	if got := p.read("build/pc/a.stand.txt"); got != "IN PLACE OF A.STAND" {
		t.Errorf("the product is %q", got)
	}
	if got := p.read("build/pc/none.stand.txt"); got != "" {
		t.Errorf("without a placeholder there is %q", got)
	}
}

// TestPlaceholdersStayInParcel: of a parcel that cannot be packed it is said once for all platforms on which it is the same, and in the
// content database for each; as long as it has placeholders in it, that is told, too.
func TestPlaceholdersStayInParcel(t *testing.T) {
	p := newProject(t, placeholderProject)
	p.procs = append(testProcessors(nil), texture.New(), gltf.New())
	p.write("kiln.toml", p.read("kiln.toml")+"[platforms.mobile]\n[platforms.web]\n")
	p.write("assets/tank.png", "no picture")
	said := func(req Request, want string) {
		t.Helper()
		b := p.buildWith(req)
		var got []string
		for line := range strings.Lines(b.messages) {
			if strings.Contains(line, "K1603") || strings.Contains(line, "K1614") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(got, "\n"); got != strings.TrimSpace(want) {
			t.Errorf("it says\n%s\nwant\n%s", got, want)
		}
	}
	listed := func(platform, want string) {
		t.Helper()
		l, err := ship.ReadList(p.path("build/parcels/" + platform + "/parcels.json"))
		p.must(err)
		var got []string
		for _, e := range l.Parcels {
			got = append(got, e.Name+":"+strings.Join(e.Placeholders, ","))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("the list of %s has %q, want %q", platform, got, want)
		}
	}
	said(Request{}, `
kiln.toml:8:3: error[K1603]: parcel level [pc, mobile, web] was not packed: tank.png failed`)
	said(Request{OnError: results.PackedPlaceholders, Platforms: []string{"pc", "mobile"}}, "")
	listed("pc", "level:tank.png")
	listed("mobile", "level:tank.png")
	listed("web", "")
	for range 2 {
		said(Request{OnError: results.Placeholders}, `
kiln.toml:8:3: error[K1603]: parcel level [pc, mobile, web] was not packed: tank.png failed
warning[K1614]: parcel level [pc, mobile] still has the placeholders in it with which it was packed: of tank.png`)
	}
	said(Request{}, `
kiln.toml:8:3: error[K1603]: parcel level [pc, mobile, web] was not packed: tank.png failed
warning[K1614]: parcel level [pc, mobile] still has the placeholders in it with which it was packed: of tank.png`)
	listed("mobile", "level:tank.png")
	if got := p.asked("SELECT p.name || ':' || d.text FROM diagnostic d JOIN platform p ON p.no = d.platform WHERE d.code = 'K1603' ORDER BY p.name"); got !=
		"mobile:parcel level [mobile] was not packed: tank.png failed pc:parcel level [pc] was not packed: tank.png failed web:parcel level [web] was not packed: tank.png failed" {
		t.Errorf("the content database has %q", got)
	}
	p.picture("assets/tank.png", 16)
	said(Request{}, "")
	listed("pc", "level:")
	p.write("assets/tank.png", "no picture")
	said(Request{}, `
kiln.toml:8:3: error[K1603]: parcel level [pc, mobile, web] was not packed: tank.png failed`)
}

// TestPlaceholderModel: a model that is broken is a cube.
func TestPlaceholderModel(t *testing.T) {
	p := newProject(t, placeholderProject)
	p.procs = append(testProcessors(nil), texture.New(), gltf.New())
	p.picture("assets/tank.png", 16)
	p.build()
	before := outputFiles(p.dir, "build")
	p.write("assets/cube.gltf", "{")
	if b := p.buildWith(Request{OnError: results.Placeholders}); b.Failed != 1 || b.Placeholders != 1 {
		t.Fatalf("%d placeholders: %s", b.Placeholders, b.messages)
	}
	after := outputFiles(p.dir, "build")
	if len(before) != len(after) {
		t.Errorf("%v, before %v", names(after), names(before))
	}
	for f, b := range after {
		if strings.HasPrefix(f, "pc/cube") && (b == before[f] || !strings.Contains(b, "placeholder")) {
			t.Errorf("%s is no placeholder", f)
		}
	}
}

// asked is the first column of an answer of the content database.
func (p *fixture) asked(sql string) string {
	p.Helper()
	db, err := contentdb.OpenReadOnly(p.path(".kiln/content.db"))
	p.must(err)
	defer db.Close()
	res, err := db.RunSQL(p.Context(), sql, 0)
	p.must(err)
	var all []string
	for _, row := range res.Rows {
		all = append(all, row[0].(string))
	}
	return strings.Join(all, " ")
}
