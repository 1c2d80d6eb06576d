package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

type inspectBlobLine struct {
	Type string        `json:"type"`
	Hash string        `json:"hash"`
	File string        `json:"file"` // relative to the project folder
	Size *int64        `json:"size"` // null: there is no such file
	Of   []blobUseLine `json:"of"`   // the products that have or had this content
}

// blobUseLine is a product that has or had a blob as its content.
type blobUseLine struct {
	Asset    string `json:"asset"`
	Platform string `json:"platform"`
	Part     string `json:"part,omitempty"`
	Name     string `json:"name,omitempty"`
	File     string `json:"file,omitempty"` // the output; none: there is no file
	Build    uint64 `json:"build"`
	Current  bool   `json:"current"` // of the last used trace
}

// blob shows a blob, given by its hash, the first digits of that, or its file.
func (x *inspector) blob(name string) (found bool, err error) {
	digits := name
	if file, ok := strings.CutPrefix(filepath.Join(x.p.Dir, filepath.FromSlash(name)), x.p.CasDir()+string(filepath.Separator)); ok {
		digits = strings.ReplaceAll(filepath.ToSlash(file), "/", "")
	}
	digits = strings.ToLower(digits)
	if len(digits) < minKey || len(digits) > 2*len(digest.Hash{}) || strings.Trim(digits, "0123456789abcdef") != "" {
		return false, nil
	}
	uses := map[digest.Hash][]blobUseLine{}
	x.each(func(av *view.AssetView, j *view.JobView) {
		for _, t := range j.Traces {
			for _, p := range t.Products {
				if strings.HasPrefix(p.Hash.String(), digits) {
					use := blobUseLine{av.ID, j.Platform, cmp.Or(j.Part, j.Request), p.Name, "", t.Build, t == j.Last}
					if p.File != "" {
						use.File = x.p.Output + "/" + p.File
					}
					uses[p.Hash] = append(uses[p.Hash], use)
				}
			}
		}
	})
	if h, err := digest.Parse(digits); err == nil && uses[h] == nil { // of no known product
		if _, serr := os.Stat(filepath.Join(x.p.Dir, filepath.FromSlash(x.p.BlobFile(h)))); serr == nil {
			uses[h] = []blobUseLine{}
		}
	}
	switch len(uses) {
	case 0:
		return false, nil
	case 1:
		for h, of := range uses {
			return true, x.showBlob(h, of)
		}
	}
	m := diag.Errorf(diag.NothingKnown, diag.Pos{}, "%d blobs begin with %q", len(uses), digits).WithHint("give more digits")
	var all []string
	for h, of := range uses {
		all = append(all, fmt.Sprintf("%s  %s [%s]", h.Short(), of[0].Asset, of[0].Platform))
	}
	slices.Sort(all)
	for _, line := range all[:min(len(all), 10)] {
		m.WithNote("%s", line)
	}
	return true, m
}

func (x *inspector) showBlob(h digest.Hash, of []blobUseLine) error {
	l := inspectBlobLine{Type: "blob", Hash: h.String(), File: x.p.BlobFile(h), Of: of}
	f, err := x.p.OpenBlob(h)
	if err == nil {
		info, serr := f.Stat()
		if f.Close(); serr == nil {
			size := info.Size()
			l.Size = &size
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	a := x.a
	if a.json {
		return a.emit(l)
	}
	state := "deleted"
	if l.Size != nil {
		state = diag.Size(*l.Size)
	}
	fmt.Fprintf(a.out, "%s  blob, %s\n  %s\n", a.paint(a.out, bold, l.File), state, a.paint(a.out, dim, "hash "+l.Hash))
	if len(of) == 0 {
		fmt.Fprintln(a.out, "  no trace names it: kiln gc deletes it")
	}
	t := a.tableOn(a.out)
	for _, u := range of {
		name := u.Asset
		if u.Part != "" {
			name += " " + u.Part
		}
		when := fmt.Sprintf("in build %d", u.Build)
		if !u.Current {
			when += ", not any more"
		}
		t.row(left("  product of "+name), left(u.Platform), left(cmp.Or(u.File, u.Name)), styled(dim, when))
	}
	return t.write()
}
