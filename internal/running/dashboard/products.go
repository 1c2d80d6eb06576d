package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

const (
	maxPreviewSource = 128 << 20 // maximum size of a file of which a picture is made, in bytes
	maxThumbSource   = 16 << 20  // the same for a small picture in a list
	maxData          = 2 << 20   // the same for data that is shown as a tree
)

// product is a row of table product.
type product struct {
	Asset, Platform, Name, Type, File string
	Size                              int64
	Hash                              string
	Share                             float64 // relative to the largest on the page
}

// Kind is how the product is shown.
func (p product) Kind() preview.Kind { return processors.View(p.File, p.Type) }

// products queries products; where is the rest of the query.
func (d *Dashboard) products(ctx context.Context, where string, p params, limit int) ([]product, error) {
	rows, err := d.library.ask(ctx, `SELECT a.id, p.name, x.name, t.text, x.file, x.size, lower(hex(x.hash))
		FROM product x JOIN asset a ON a.no = x.asset JOIN platform p ON p.no = x.platform LEFT JOIN shared_text t ON t.no = x.type `+where, p, limit)
	all := make([]product, len(rows))
	most := int64(1)
	for i, r := range rows {
		all[i] = product{r.text(0), r.text(1), r.text(2), r.text(3), r.text(4), r.int(5), r.text(6), 0}
		most = max(most, all[i].Size)
	}
	for i := range all {
		all[i].Share = float64(all[i].Size) / float64(most)
	}
	return all, err
}

// productAt returns the product with a path below the output folder.
func (d *Dashboard) productAt(ctx context.Context, platform, file string) (product, error) {
	found, err := d.products(ctx, `WHERE x.file = :file AND p.name = :platform`, params{":file": file, ":platform": platform}, 1)
	if err == nil && len(found) == 0 {
		err = notFound{fmt.Sprintf("The last build made no %s for %s.", file, platform)}
	}
	if err != nil {
		return product{}, err
	}
	return found[0], nil
}

// blob opens a product's bytes, which have been checked.
func (d *Dashboard) blob(ctx context.Context, p product) (io.ReadSeekCloser, error) {
	h, err := digest.Parse(p.Hash)
	if err != nil {
		return nil, err
	}
	f, err := d.cfg.Blobs.Open(ctx, h)
	if cas.Lost(err) {
		return nil, notFound{fmt.Sprintf("%s is no longer in the cache; the next build makes it again.", p.File)}
	}
	return f, err
}

// read reads a product's bytes, if there are at most this many.
func (d *Dashboard) read(ctx context.Context, p product, most int64) ([]byte, error) {
	if p.Size > most {
		return nil, fmt.Errorf("%s has %s; it is too large to be shown", p.File, bytesText(p.Size))
	}
	f, err := d.blob(ctx, p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// raw is the policy for a project's own bytes: our pages may show them, but they cannot do anything themselves.
const raw = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// keep sets how long a browser may cache an answer: permanently if the address contains the hash of the
// content.
func keep(w http.ResponseWriter, r *http.Request, hash string) {
	if h := r.URL.Query().Get("h"); h != "" && len(hash) >= len(h) && hash[:len(h)] == h {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
}

// productBytes sends a product's bytes, or the requested range.
func (d *Dashboard) productBytes(w http.ResponseWriter, r *http.Request) {
	p, err := d.productAt(r.Context(), r.PathValue("platform"), r.PathValue("file"))
	if err != nil {
		plainError(w, err)
		return
	}
	f, err := d.blob(r.Context(), p)
	if err != nil {
		plainError(w, err)
		return
	}
	defer f.Close()
	keep(w, r, p.Hash)
	w.Header().Set("Content-Security-Policy", raw)
	w.Header().Set("Content-Type", processors.Media(p.File))
	w.Header().Set("ETag", `"`+p.Hash+`"`)
	http.ServeContent(w, r, "", time.Time{}, f)
}

// productPicture sends the requested view of a texture as PNG.
func (d *Dashboard) productPicture(w http.ResponseWriter, r *http.Request) {
	p, err := d.productAt(r.Context(), r.PathValue("platform"), r.PathValue("file"))
	if err != nil {
		plainError(w, err)
		return
	}
	keep(w, r, p.Hash)
	d.sendPicture(w, r, p.Hash, func(l preview.Look) (*pixel.Image, error) {
		data, err := d.read(r.Context(), p, maxPreviewSource)
		if err != nil {
			return nil, err
		}
		return preview.Image(p.File, data, l)
	})
}

// sourcePicture sends a source picture as PNG.
func (d *Dashboard) sourcePicture(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	file, hash, err := d.sourceFile(r, name, preview.Picture)
	if err != nil {
		plainError(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	d.sendPicture(w, r, "source "+hash, func(l preview.Look) (*pixel.Image, error) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return preview.Image(name, data, l)
	})
}

// sourceFile finds a source file that can be shown, and the hash of its content in the last build.
func (d *Dashboard) sourceFile(r *http.Request, name string, kind preview.Kind) (file, hash string, err error) {
	const question = `SELECT r.path, f.size, lower(hex(f.hash)) FROM source_file f JOIN root r ON r.no = f.root
		WHERE f.path = :path AND f.present = 1`
	rows, err := d.library.ask(r.Context(), question, params{":path": name}, 1)
	switch {
	case err != nil:
		return "", "", err
	case len(rows) == 0:
		return "", "", notFound{"There is no source file " + name + "."}
	case processors.View(name, "") != kind || rows[0].int(1) > maxPreviewSource:
		return "", "", notFound{name + " is no " + string(kind) + ", or too large for one."}
	}
	return filepath.Join(d.cfg.Dir, filepath.FromSlash(rows[0].text(0)), filepath.FromSlash(name)), rows[0].text(2), nil
}

// sendPicture sends a picture that is cached by name and view.
func (d *Dashboard) sendPicture(w http.ResponseWriter, r *http.Request, name string, decode func(preview.Look) (*pixel.Image, error)) {
	l := lookOf(r.URL.Query())
	png, err := d.shelf.pictures.of(r.Context(), fmt.Sprint(name, l), func() ([]byte, error) {
		img, err := decode(l)
		if err != nil {
			return nil, err
		}
		return preview.PNG(img)
	})
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		plainError(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", raw)
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Content-Length", strconv.Itoa(len(png)))
	w.Write(png)
}

func lookOf(q url.Values) preview.Look {
	n := func(name string) int {
		v, _ := strconv.Atoi(q.Get(name))
		return max(0, min(v, 1<<16))
	}
	return preview.Look{Level: n("level"), Layer: n("layer"), Face: n("face"), Slice: n("slice"), Channels: preview.Channels(q.Get("show")), Fit: n("fit")}
}

// plainError sends an error as text, where no page was requested.
func plainError(w http.ResponseWriter, err error) {
	var none notFound
	status := http.StatusUnprocessableEntity
	if errors.As(err, &none) {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}
