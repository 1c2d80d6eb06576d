package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/treemap"
)

// parcelRow is a parcel.
type parcelRow struct {
	No                     int64
	Name, Platform, File   string
	Size, Products, Budget int64
	Share                  float64 // relative to the largest parcel
	OfBudget               float64
	Over                   bool
	Missing                bool   // the project declares it, but it was not packed
	Since                  *since // nil: no release is known
}

type parcelsBody struct {
	Parcels     []parcelRow
	Missing     int
	Release     *sinceTotal // nil: no release is known
	Unused      []facet
	UnusedBytes int64
	UnusedMore  bool
	UnusedCount int64
}

// maxUnused is how many assets without a parcel are listed.
const maxUnused = 100

func (d *Dashboard) parcelsPage(r *http.Request) (*view, error) {
	ctx := r.Context()
	var body parcelsBody
	var err error
	if body.Parcels, err = d.parcelRows(ctx, "", nil); err != nil {
		return nil, err
	}
	body.Parcels = append(body.Parcels, d.missing(body.Parcels)...)
	if len(body.Parcels) == 0 {
		return &view{Page: "parcels", Title: "Parcels", Body: body}, nil
	}
	slices.SortStableFunc(body.Parcels, func(a, b parcelRow) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range body.Parcels {
		if p.Missing {
			body.Missing++
		}
	}
	if body.Release, err = d.sinceReleases(ctx, body.Parcels); err != nil {
		return nil, err
	}
	body.Unused, err = d.shelf.unused.soon(ctx, d.version, "", d.unused)
	for _, u := range body.Unused {
		body.UnusedBytes += u.Bytes
	}
	body.UnusedCount = int64(len(body.Unused))
	if len(body.Unused) > maxUnused {
		body.Unused, body.UnusedMore = body.Unused[:maxUnused], true
	}
	return &view{Page: "parcels", Title: "Parcels", Body: body}, err
}

func (d *Dashboard) unused(ctx context.Context) (all []facet, err error) {
	rows, err := d.library.question(ctx, "unused", nil, 100_000)
	for _, r := range rows {
		all = append(all, facet{Name: r.text(0), Bytes: r.int(2)})
	}
	return all, err
}

// missing returns the declared parcels that do not exist. They were not packed; the page of problems has the reasons.
func (d *Dashboard) missing(there []parcelRow) (all []parcelRow) {
	if d.cfg.Project == nil {
		return nil
	}
	p, err := d.cfg.Project()
	if err != nil {
		return nil // the page of builds shows the error
	}
	for i := range p.Parcels {
		for _, platform := range p.Platforms {
			has := slices.ContainsFunc(there, func(r parcelRow) bool { return r.Name == p.Parcels[i].Name && r.Platform == platform.Name })
			if !has && p.Parcels[i].On(platform.Name) {
				all = append(all, parcelRow{Name: p.Parcels[i].Name, Platform: platform.Name, Missing: true})
			}
		}
	}
	return all
}

func (d *Dashboard) parcelRows(ctx context.Context, where string, p params) ([]parcelRow, error) {
	rows, err := d.library.ask(ctx, `SELECT k.no, k.name, p.name, k.file, k.size, (SELECT count(*) FROM parcel_product WHERE parcel = k.no)
		FROM parcel k JOIN platform p ON p.no = k.platform `+where+` ORDER BY k.name, p.no`, p, 1000)
	all, budgets := make([]parcelRow, len(rows)), d.budgets()
	most := int64(1)
	for i, r := range rows {
		all[i] = parcelRow{No: r.int(0), Name: r.text(1), Platform: r.text(2), File: r.text(3), Size: r.int(4), Products: r.int(5)}
		most = max(most, all[i].Size)
		all[i].Budget = budgets[all[i].Name]
	}
	for i := range all {
		k := &all[i]
		if k.Share = float64(k.Size) / float64(most); k.Budget > 0 {
			k.OfBudget, k.Over = float64(k.Size)/float64(k.Budget), k.Size > k.Budget
		}
	}
	return all, err
}

type parcelBody struct {
	parcelRow
	Largest []product
	Types   []facet
	Loose   int64         // size of the products as loose files
	Map     template.HTML // of its content
}

// maxLargest is how many products of a parcel are listed.
const maxLargest = 200

func (d *Dashboard) parcelPage(r *http.Request) (*view, error) {
	ctx := r.Context()
	found, err := d.parcelRows(ctx, "WHERE k.name = :name AND p.name = :platform", params{":name": r.PathValue("name"), ":platform": r.PathValue("platform")})
	if err == nil && len(found) == 0 {
		err = notFound{fmt.Sprintf("The last build made no parcel %s for %s.", r.PathValue("name"), r.PathValue("platform"))}
	}
	if err != nil {
		return nil, err
	}
	body := parcelBody{parcelRow: found[0]}
	budget := int64(maxPatched)
	if body.Since, err = d.sinceRelease(ctx, body.parcelRow, &budget); err != nil {
		return nil, err
	}
	no := params{":parcel": body.No}
	body.Largest, err = d.products(ctx, `JOIN parcel_product m ON m.asset = x.asset AND m.sub_id = x.sub_id AND m.parcel = :parcel
		WHERE x.platform = (SELECT platform FROM parcel WHERE no = :parcel) ORDER BY x.size DESC, a.id`, no, maxMapped)
	if err != nil {
		return nil, err
	}
	rows, err := d.library.ask(ctx, `SELECT t.text, count(*), sum(x.size) FROM parcel_product m JOIN product x ON x.asset = m.asset AND x.sub_id = m.sub_id
		LEFT JOIN shared_text t ON t.no = x.type WHERE m.parcel = :parcel AND x.platform = (SELECT platform FROM parcel WHERE no = :parcel) GROUP BY 1 ORDER BY 3 DESC`, no, 40)
	for _, r := range rows {
		body.Types = append(body.Types, facet{Name: r.text(0), Count: r.int(1), Bytes: r.int(2)})
		body.Loose += r.int(2)
	}
	for i := range body.Types {
		body.Types[i].Share = float64(body.Types[i].Bytes) / float64(max(1, body.Types[0].Bytes))
	}
	if err == nil {
		body.Map, err = mapOf(body.Largest, body.Loose)
	}
	body.Largest = body.Largest[:min(len(body.Largest), maxLargest)]
	return &view{Page: "parcel", Title: body.Name + " on " + body.Platform, Body: body}, err
}

// maxMapped is how many products a treemap has, the largest ones; all others are one rectangle.
const maxMapped = 5000

// mapOf draws products, the largest first; total also counts those that are not in the list.
func mapOf(largest []product, total int64) (template.HTML, error) {
	var root treemap.Node
	for _, p := range largest {
		link, err := withQuery(assetPath(p.Asset), "platform", p.Platform, "file", p.File)
		if err != nil {
			return "", err
		}
		root.Add(p.File, treemap.Node{Size: p.Size, Kind: p.Type, Link: link})
		total -= p.Size
	}
	if total > 0 {
		root.Add("all others", treemap.Node{Size: total})
	}
	var b strings.Builder
	err := treemap.Inline(&b, root, treemap.Options{Title: "What fills the parcel, as areas", Width: 1120, Height: 400})
	return template.HTML(b.String()), err // our own package makes it from escaped names
}
