package data

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// resolve turns the marked places into references, and replaces their text by what the game should
// read. The list is sorted, so that it does not depend on the order of the source.
func resolve(job processor.Job, s *Settings, places []*place) ([]processor.Reference, error) {
	type target struct {
		uuid  string
		subID uint32
	}
	required := map[target]bool{}
	written := map[*place]string{}
	var errs []error
	for _, p := range places {
		id, err := assetID(job.Asset().Path, p.text())
		if err != nil {
			errs = append(errs, problemAt(diag.DataReference, "", p.value.Pos, `write an asset's id ("sprites/tank.png") or, relative to this file, "./tank.png", or its UUID after "uuid:"; null where there is none`, "asset %s", err))
			continue
		}
		if _, byUUID := processor.UUIDOf(id); byUUID {
			if a, err := job.Find(id); err == nil {
				id = a.ID
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		ref, err := job.Reference(id, p.product, p.required)
		if errors.Is(err, fs.ErrNotExist) {
			hint := ""
			if len(errs) < maxProblems {
				if hint, err = nearest(job, p.text(), id); err != nil {
					return nil, err
				}
			}
			errs = append(errs, problemAt(diag.DataReferenceMissing, "", p.value.Pos, hint, "asset %q does not exist", id))
			continue
		} else if err != nil {
			return nil, err
		}
		t := target{ref.UUID, ref.SubID}
		required[t] = required[t] || p.required
		written[p] = writtenAs(s, id, p.product, ref)
	}
	if len(errs) > 0 {
		return nil, errors.Join(limit(errs)...)
	}
	for _, p := range places { // in order, because one string may be marked twice, for two products
		p.value.V = written[p]
	}
	refs := make([]processor.Reference, 0, len(required))
	for t, need := range required {
		refs = append(refs, processor.Reference{UUID: t.uuid, SubID: t.subID, Required: need})
	}
	slices.SortFunc(refs, func(a, b processor.Reference) int {
		return cmp.Or(strings.Compare(a.UUID, b.UUID), cmp.Compare(a.SubID, b.SubID))
	})
	return refs, nil
}

// assetID is the asset that a text in the data names: by its UUID, relative to the file if it begins with ./ or ../,
// and otherwise by its id, with or without a leading slash.
func assetID(from, text string) (string, error) {
	if !strings.HasPrefix(text, "./") && !strings.HasPrefix(text, "../") {
		from, text = "", strings.TrimPrefix(text, "/")
	}
	id, err := processor.ResolveAsset(from, text)
	if err == nil && strings.HasSuffix(text, "/") {
		id += "/" // a folder
	}
	return id, err
}

// writtenAs is the text in the product: the asset's id or UUID, followed by # and the product's
// name unless it is the main one.
func writtenAs(s *Settings, id, product string, ref processor.Reference) string {
	switch {
	case s.References == "uuid" && product == "":
		return ref.UUID
	case s.References == "uuid":
		return fmt.Sprintf("%s#%08x", ref.UUID, ref.SubID)
	case product == "":
		return id
	}
	return id + "#" + product
}

// nearest suggests an asset for an id that does not exist.
func nearest(job processor.Job, text, id string) (string, error) {
	if _, byUUID := processor.UUIDOf(id); byUUID {
		return "no asset has this UUID; `kiln ls --json` shows which there are", nil
	}
	if text == id {
		beside := path.Join(path.Dir(job.Asset().Path), id)
		if there, err := job.Exists(beside); err != nil {
			return "", err
		} else if there {
			return fmt.Sprintf("it is beside this file: write %q or %q", "./"+id, beside), nil
		}
	}
	named, err := job.Glob(path.Join("**", processor.QuoteGlob(path.Base(id))))
	if err != nil {
		return "", err
	}
	if len(named) == 1 && !strings.HasSuffix(id, "/") { // it may have been moved
		return fmt.Sprintf("did you mean %q?", named[0]), nil
	}
	const otherwise = `correct it, or mark it in the schema only where an asset is named`
	found, err := job.Glob(path.Join(processor.QuoteGlob(path.Dir(strings.TrimSuffix(id, "/"))), "*"))
	if err != nil {
		return "", err
	}
	if hint := diag.DidYouMean(id, found); hint != "" {
		return hint, nil
	}
	return otherwise, nil
}

// maxProblems is how many problems of one file are reported: more usually have the same cause.
const maxProblems = 20

// limit keeps the first problems and reports the number of the others.
func limit(errs []error) []error {
	if len(errs) <= maxProblems {
		return errs
	}
	var p *processor.Problem
	errors.As(errs[maxProblems-1], &p)
	return append(errs[:maxProblems:maxProblems], &processor.Problem{
		Code: p.Code, Path: p.Path,
		Text: fmt.Sprintf("and %d more problems of this kind", len(errs)-maxProblems),
		Hint: "correct the first ones and build again",
	})
}
