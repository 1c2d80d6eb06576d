package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

const (
	maxProducts   = 400 // listed products of one asset
	maxNeighbours = 150 // on each side of an asset
	maxLines      = 400 // of a text
	maxFrames     = 4000
)

type assetBody struct {
	ID, UUID, Processor, State string
	Source                     string // path of the primary source file or folder, relative to the project
	SourcePath                 string // the same, relative to its root
	SourceSize                 int64
	Folder                     bool
	Crumbs                     []crumb
	View                       string // "", or "deps"

	Jobs     []assetJob
	Runs     []run
	Products []product
	More     bool // there are more products than listed
	Messages []message
	Parcels  []parcelRow

	Shown *shown // content of the preview; nil: there is nothing to show
	Needs []neighbour
	Users []neighbour
	Cut   bool // there are more on one side than listed
}

// assetJob is an asset's job on one platform.
type assetJob struct {
	job
	State    string
	Among    bool      // the asset has several jobs on a platform
	Cache    string    // that it was taken from: folder or server; "" if none, or not known
	Settings []Setting // resolved, without origin
}

// Placeholder reports whether an asset that failed has placeholders on a platform.
func (b *assetBody) Placeholder(platform string) bool {
	return slices.ContainsFunc(b.Messages, func(m message) bool {
		return m.Code == string(diag.PlaceholderMade) && slices.Contains(m.Platforms, platform)
	})
}

// run is the reason why jobs of an asset ran in one build, on all platforms with the same reason.
type run struct {
	Platforms       []string
	State, Reason   string
	Built           int64
	Cache           string // which cache it was taken from: folder or server; "" if none, or not known
	Among           bool
	Processor       string
	Seconds, Memory []string // one for each platform, for display
}

// runsOf merges jobs that differ only by platform.
func runsOf(jobs []assetJob) (all []run) {
	for _, j := range jobs {
		k := slices.IndexFunc(all, func(r run) bool {
			return r.State == j.State && r.Reason == j.Reason && r.Built == j.Built && r.Cache == j.Cache && r.Processor == j.Processor
		})
		if k < 0 {
			r := run{State: j.State, Reason: j.Reason, Built: j.Built, Cache: j.Cache, Among: j.Among, Processor: j.Processor}
			all, k = append(all, r), len(all)
		}
		r := &all[k]
		r.Platforms, r.Seconds = append(r.Platforms, j.Platform), append(r.Seconds, secondsText(j.Seconds))
		if j.Memory > 0 {
			r.Memory = append(r.Memory, bytesText(j.Memory))
		}
	}
	for i := range all {
		all[i].Seconds, all[i].Memory = once(all[i].Seconds), once(all[i].Memory)
	}
	return all
}

// once returns one text if all are equal.
func once(words []string) []string {
	if distinct := slices.Compact(slices.Clone(words)); len(distinct) == 1 {
		return distinct
	}
	return words
}

// shown is the product or source picture in the preview.
type shown struct {
	product
	Address string // of the shown page, without parameters of the view
	Bytes   string // address of the product's bytes; empty for a source

	Listen, About, ListenSource string // addresses for a sound: to play it, its facts, and its source
	Limited                     string // fact sound.limited; two products with the same bytes may differ in it
	Source                      bool
	Look                        preview.Look
	Facts                       *preview.Facts
	Sheet                       *sheet
	Tree                        *preview.Node
	Lines                       []string
	Cut                         bool // the tree or text is longer
	Problem                     string
	Peers                       []product // other products of the asset that can be shown, on the same platform
	Variants                    []product // the same product on other platforms
}

// sheet is an atlas' frame table with its pages.
type sheet struct {
	Pages  []sheetPage
	Frames int
	Cut    bool
}

type sheetPage struct {
	atlas.Page
	Picture string // address; empty: there is no picture of the page
	Frames  []sheetFrame
}

// sheetFrame is a frame with its size on the page.
type sheetFrame struct {
	atlas.Frame
	PageW, PageH int
}

// neighbour is something that an asset needs, or that needs it, in one or several ways.
type neighbour struct {
	Name                 string
	Asset                bool // Name is an asset; otherwise a file or a pattern
	Source, Job, Product bool
	Saw                  string // for a source: "file", "missing", "glob", ...
	Optional             bool   // the game can do without it
}

func (d *Dashboard) assetPage(r *http.Request) (*view, error) {
	ctx, id := r.Context(), r.PathValue("id")
	body, no, err := d.assetHead(ctx, id)
	if err != nil {
		return nil, err
	}
	body.View = r.URL.Query().Get("view")
	if err := d.assetJobs(ctx, body, no); err != nil {
		return nil, err
	}
	if body.Messages, err = d.messages(ctx, `d.asset = :asset`, params{":asset": no}, 100); err != nil {
		return nil, err
	}
	if body.View == "deps" {
		err = d.neighbours(ctx, body)
	} else {
		err = d.assetProducts(ctx, body, no, r.URL.Query())
	}
	return &view{Page: "asset", Title: body.ID, Body: body}, err
}

// assetHead finds an asset by its id.
func (d *Dashboard) assetHead(ctx context.Context, id string) (*assetBody, int64, error) {
	rows, err := d.library.ask(ctx, `SELECT a.no, a.id, a.uuid, s.text, r.path, coalesce(f.path, a.folder), a.folder IS NOT NULL, f.size,
			(SELECT CASE WHEN max(failed) THEN 'failed' WHEN a.no`+isHeld+` THEN '`+held+`' WHEN max(built) = `+lastNumber+` THEN 'built'
				WHEN count(*) > 0 THEN '`+upToDate+`' END FROM job WHERE asset = a.no)
		FROM asset a LEFT JOIN shared_text s ON s.no = a.processor LEFT JOIN source_file f ON f.no = a.file LEFT JOIN root r ON r.no = f.root
		WHERE a.id IN (:id, :id || '/')`, params{":id": id}, 1)
	if err == nil && len(rows) == 0 {
		err = notFound{fmt.Sprintf("There is no asset %s in the last finished build.", id)}
	}
	if err != nil {
		return nil, 0, err
	}
	r := rows[0]
	b := &assetBody{ID: r.text(1), UUID: r.text(2), Processor: r.text(3), SourcePath: r.text(5), Folder: r.int(6) == 1, SourceSize: r.int(7), State: r.text(8)}
	b.Source = path.Join(r.text(4), b.SourcePath)
	b.Crumbs = crumbs(dirOf(b.ID))
	if b.State == "" {
		b.State = "not built"
	}
	return b, r.int(0), nil
}

func (d *Dashboard) assetJobs(ctx context.Context, b *assetBody, no int64) error {
	rows, err := d.library.ask(ctx, `SELECT p.name, j.failed, j.built, j.reason, j.seconds, j.peak_memory, st.text, j.built = `+lastNumber+`, pr.text,
			EXISTS (SELECT 1 FROM job_held h WHERE (h.asset, h.platform, h.processor) = (j.asset, j.platform, j.processor)), j.cache
		FROM job j JOIN platform p ON p.no = j.platform LEFT JOIN shared_text st ON st.no = j.settings LEFT JOIN shared_text pr ON pr.no = j.processor
		WHERE j.asset = :asset ORDER BY p.no, pr.text`, params{":asset": no}, 0)
	if err != nil {
		return err
	}
	for _, r := range rows {
		j := assetJob{job: job{b.ID, r.text(0), r.text(8), r.int(1) == 1, r.int(2), r.text(3), r.float(4), r.int(5), 0}, State: upToDate, Among: r.text(8) != b.Processor, Settings: plainSettings(r.text(6))}
		j.Cache = r.text(10)
		switch {
		case j.Failed:
			j.State = "failed"
		case r.int(9) == 1:
			j.State = held
		case r.int(7) == 1:
			j.State = "built"
		}
		b.Jobs = append(b.Jobs, j)
	}
	b.Runs = runsOf(b.Jobs)
	rows, err = d.library.ask(ctx, `SELECT DISTINCT k.no, k.name, p.name, k.file, k.size, 0 FROM parcel_product m JOIN parcel k ON k.no = m.parcel JOIN platform p ON p.no = k.platform
		WHERE m.asset = :asset ORDER BY k.name, p.no`, params{":asset": no}, 50)
	for _, r := range rows {
		b.Parcels = append(b.Parcels, parcelRow{No: r.int(0), Name: r.text(1), Platform: r.text(2), File: r.text(3), Size: r.int(4)})
	}
	return err
}

// plainSettings decodes resolved settings of the database: a JSON object.
func plainSettings(text string) (all []Setting) {
	dec := json.NewDecoder(strings.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return all
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return all
		}
		var short bytes.Buffer
		json.Compact(&short, v)
		all = append(all, Setting{Name: fmt.Sprint(key), Value: short.String()})
	}
	return all
}

// assetProducts lists an asset's products and opens the shown one.
func (d *Dashboard) assetProducts(ctx context.Context, b *assetBody, no int64, q url.Values) error {
	var err error
	b.Products, err = d.products(ctx, `WHERE x.asset = :asset ORDER BY p.no, x.sub_id <> 0, x.name`, params{":asset": no}, maxProducts+1)
	if err != nil {
		return err
	}
	if len(b.Products) > maxProducts {
		b.Products, b.More = b.Products[:maxProducts], true
	}
	if b.Shown = d.choose(b, q); b.Shown == nil || b.Shown.Source {
		return nil
	}
	if err := d.open(ctx, b.Shown, b.Products); err != nil {
		b.Shown.Problem = err.Error()
	}
	return nil
}

// choose returns what an address asks to show: a product, the source picture, or else the first product that can be
// shown.
func (d *Dashboard) choose(b *assetBody, q url.Values) *shown {
	visible := slices.DeleteFunc(slices.Clone(b.Products), func(p product) bool { return p.Kind() == preview.None })
	picture := !b.Folder && processors.View(b.SourcePath, "") == preview.Picture
	look := lookOf(q)
	look.Fit = 0
	if picture && (q.Get("show") == "source" || len(visible) == 0) {
		look.Channels = preview.Channels(q.Get("channels"))
		return &shown{Source: true, Address: (&url.URL{Path: "/source/" + b.SourcePath}).String(), Look: look, product: product{File: b.SourcePath}}
	}
	if len(visible) == 0 {
		return nil
	}
	k := max(0, slices.IndexFunc(visible, func(p product) bool { return p.Platform == q.Get("platform") && p.File == q.Get("file") }))
	s := &shown{product: visible[k], Look: look}
	s.Look.Channels = preview.Channels(q.Get("channels"))
	s.Bytes = bytesPath("/product/", s.Platform, s.File, s.Hash)
	s.Address = bytesPath("/picture/", s.Platform, s.File, s.Hash)
	if s.Kind() == preview.Sound {
		s.Listen = bytesPath("/listen/", s.Platform, s.File, s.Hash)
		s.About = bytesPath("/about-sound/", s.Platform, s.File, s.Hash)
		if !b.Folder && processors.View(b.SourcePath, "") == preview.Sound {
			s.ListenSource = (&url.URL{Path: "/listen-source/" + b.SourcePath}).String()
		}
	}
	for _, p := range visible {
		switch {
		case p.Platform == s.Platform:
			s.Peers = append(s.Peers, p)
		case p.Name == s.Name:
			s.Variants = append(s.Variants, p)
		}
	}
	return s
}

// open reads the facts of a product besides its bytes.
func (d *Dashboard) open(ctx context.Context, s *shown, all []product) error {
	switch s.Kind() {
	case preview.Texture:
		data, err := d.read(ctx, s.product, maxPreviewSource)
		if err != nil {
			return err
		}
		f, err := preview.FactsOf(data)
		if err != nil {
			return err
		}
		s.Facts = &f
		s.Look.Level, s.Look.Layer = min(s.Look.Level, f.Levels-1), min(s.Look.Layer, f.Layers-1)
		s.Look.Face, s.Look.Slice = min(s.Look.Face, f.Faces-1), min(s.Look.Slice, max(0, f.Depth>>s.Look.Level-1))
	case preview.Atlas:
		data, err := d.read(ctx, s.product, maxPreviewSource)
		if err != nil {
			return err
		}
		t, err := preview.Frames(s.File, data)
		if err != nil {
			return err
		}
		s.Sheet = sheetOf(s.product, t, all)
	case preview.Sound:
		rows, err := d.library.ask(ctx, `SELECT f.value FROM product_facts f WHERE f.asset = :asset AND f.platform = :platform
			AND f.product IS :name AND f.fact = 'sound.limited'`, params{":asset": s.Asset, ":platform": s.Platform, ":name": s.Name}, 1)
		if err != nil || len(rows) == 0 {
			return err
		}
		s.Limited = rows[0].text(0)
	case preview.Data, preview.Text:
		return d.openText(ctx, s)
	}
	return nil
}

func (d *Dashboard) openText(ctx context.Context, s *shown) error {
	data, err := d.read(ctx, s.product, maxPreviewSource)
	if err != nil {
		return err
	}
	if s.Kind() == preview.Data && s.Size <= maxData {
		if v, err := processors.Parse(s.File, data); err == nil {
			root, more := preview.Tree(v)
			s.Tree, s.Cut = &root, more
			return nil
		}
	}
	lines, more, ok := preview.Lines(data, maxLines)
	if !ok {
		return errors.New("this is not text")
	}
	s.Lines, s.Cut = lines, more
	return nil
}

// sheetOf assigns the frames of a table to their pages.
func sheetOf(table product, t *atlas.Table, all []product) *sheet {
	sh := &sheet{Frames: len(t.Frames), Cut: len(t.Frames) > maxFrames}
	for _, p := range t.Pages {
		page := sheetPage{Page: p}
		file := path.Join(path.Dir(table.File), p.File)
		for _, x := range all {
			if x.Platform == table.Platform && x.File == file {
				page.Picture = bytesPath("/picture/", x.Platform, x.File, x.Hash)
			}
		}
		sh.Pages = append(sh.Pages, page)
	}
	for _, f := range t.Frames[:min(len(t.Frames), maxFrames)] {
		if f.Page < len(sh.Pages) {
			w, h := f.OnPage()
			sh.Pages[f.Page].Frames = append(sh.Pages[f.Page].Frames, sheetFrame{f, w, h})
		}
	}
	return sh
}

// neighbours finds what an asset needs and what needs it.
func (d *Dashboard) neighbours(ctx context.Context, b *assetBody) error {
	args := []string{b.ID}
	files, err := d.library.question(ctx, "asset-files", args, maxNeighbours+1)
	if err != nil {
		return err
	}
	needs, err := d.library.question(ctx, "asset-references", args, maxNeighbours+1)
	if err != nil {
		return err
	}
	users, err := d.library.question(ctx, "referenced-by", args, maxNeighbours+1)
	if err != nil {
		return err
	}
	b.Needs, b.Users = joined(needs), joined(users)
	for _, r := range files {
		k := slices.IndexFunc(b.Needs, func(n neighbour) bool { return n.Asset && n.Source && n.Name == r.text(0) })
		if k < 0 {
			b.Needs = append(b.Needs, neighbour{Name: r.text(0), Source: true, Saw: r.text(1)})
		}
	}
	b.Cut = len(files) > maxNeighbours || len(needs) > maxNeighbours || len(users) > maxNeighbours
	return nil
}

// joined merges the ways in which an asset is needed: rows of asset, kind, required.
func joined(rows []row) (all []neighbour) {
	for _, r := range rows {
		k := slices.IndexFunc(all, func(n neighbour) bool { return n.Name == r.text(0) })
		if k < 0 {
			all, k = append(all, neighbour{Name: r.text(0), Asset: true}), len(all)
		}
		n := &all[k]
		switch r.text(1) {
		case "source":
			n.Source = true
		case "job":
			n.Job = true
		case "product":
			n.Product, n.Optional = true, r.int(2) == 0
		}
	}
	return all
}

type fileBody struct {
	Path, Source string
	Present      bool
	Size         int64
	Hash         string
	Crumbs       []crumb
	Users        []neighbour
	Cut          bool
}

// filePage is about a source file that may not be an asset, or does not exist: which jobs observed
// it.
func (d *Dashboard) filePage(r *http.Request) (*view, error) {
	ctx, file := r.Context(), r.PathValue("path")
	rows, err := d.library.ask(ctx, `SELECT f.no, f.path, r.path, f.present, f.size, lower(hex(f.hash)) FROM source_file f LEFT JOIN root r ON r.no = f.root WHERE f.path = :path`, params{":path": file}, 1)
	if err == nil && len(rows) == 0 {
		err = notFound{"No job looked at a source file " + file + "."}
	}
	if err != nil {
		return nil, err
	}
	f := rows[0]
	body := fileBody{Path: file, Source: path.Join(f.text(2), file), Present: f.int(3) == 1, Size: f.int(4), Hash: f.text(5), Crumbs: crumbs(dirOf(file))}
	rows, err = d.library.ask(ctx, `SELECT DISTINCT a.id, o.kind FROM observation o JOIN asset a ON a.no = o.asset WHERE o.file = :file ORDER BY a.id`, params{":file": f.int(0)}, maxNeighbours+1)
	for _, u := range rows {
		body.Users = append(body.Users, neighbour{Name: u.text(0), Source: true, Saw: u.text(1), Asset: true})
	}
	body.Cut = len(rows) > maxNeighbours
	return &view{Page: "file", Title: file, Body: body}, err
}
