package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/kiln-pipeline/kiln/internal/treemap"
)

// parcelRow is a parcel.
type parcelRow struct {
	No                     int64
	Name, Platform, File   string
	Size, Products, Budget int64
	Share                  float64 // of the largest parcel
	OfBudget               float64
	Over                   bool
}

type parcelsBody struct {
	Parcels     []parcelRow
	Unused      []facet
	UnusedBytes int64
	UnusedMore  bool
	UnusedCount int64
}

// maxUnused is how many assets in no parcel are listed.
const maxUnused = 100

func (d *Dashboard) parcelsPage(r *http.Request) (*view, error) {
	ctx := r.Context()
	var body parcelsBody
	var err error
	if body.Parcels, err = d.parcelRows(ctx, "", nil); err != nil {
		return nil, err
	}
	if len(body.Parcels) == 0 {
		return &view{Page: "parcels", Title: "Parcels", Body: body}, nil
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
	Loose   int64    // bytes of the products as loose files
	Since   *release // nil: no release is known
}

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
	if body.Since, err = d.sinceRelease(ctx, body.parcelRow); err != nil {
		return nil, err
	}
	no := params{":parcel": body.No}
	body.Largest, err = d.products(ctx, `JOIN parcel_product m ON m.asset = x.asset AND m.sub_id = x.sub_id AND m.parcel = :parcel
		WHERE x.platform = (SELECT platform FROM parcel WHERE no = :parcel) ORDER BY x.size DESC, a.id`, no, 200)
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
	return &view{Page: "parcel", Title: body.Name + " on " + body.Platform, Body: body}, err
}

// maxMapped is how many products a treemap is made of; what is smaller than the largest of these has less than a pixel.
const maxMapped = 20_000

// treemap draws what fills a parcel. It is a document of its own, with styles of its own, in a frame on the parcel's page.
func (d *Dashboard) treemap(w http.ResponseWriter, r *http.Request) {
	found, err := d.products(r.Context(), `JOIN parcel_product m ON m.asset = x.asset AND m.sub_id = x.sub_id JOIN parcel k ON k.no = m.parcel AND k.platform = x.platform
		WHERE k.name = :name AND p.name = :platform ORDER BY x.size DESC, a.id`, params{":name": r.PathValue("name"), ":platform": r.PathValue("platform")}, maxMapped)
	if err == nil && len(found) == 0 {
		err = notFound{"There is no such parcel, or nothing in it."}
	}
	if err != nil {
		plainError(w, err)
		return
	}
	var root treemap.Node
	for _, p := range found {
		root.Add(p.File, treemap.Node{Name: base(p.File), Size: p.Size, Kind: p.Type})
	}
	var b bytes.Buffer
	if err := treemap.HTML(&b, root, treemap.Options{Title: "As loose files", Width: 1040, Height: 420}); err != nil {
		plainError(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(b.Bytes())
}
