package upkeep

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Verified is the result of Verify.
type Verified struct {
	Sources, Products, Blobs int       // numbers of checked ones
	Messages                 diag.List // problems; with fix, the next build repairs all of them

	fix   bool
	known map[digest.Hash]bool // blobs that exist, were removed, or were reported as lost
}

// warn adds a problem. A check says what --fix would do about it, and a repair what it did.
func (v *Verified) warn(code diag.Code, file, text, would, did string) {
	m := diag.Warningf(code, diag.Pos{File: file}, "%s", text)
	if !v.fix {
		did = "`kiln verify --fix` " + would
	}
	v.Messages = append(v.Messages, m.WithHint("%s", did))
}

// strangers finds unknown products in the output folder.
func (v *Verified) strangers(s *Found) {
	found := s.Tree.Strangers(s.Shipped)
	if v.fix {
		v.Messages = append(v.Messages, s.Tree.RemoveStrangers(found)...)
	} else {
		v.Messages = append(v.Messages, found.Messages(s.P.Output)...)
	}
}

func (v *Verified) blobs(ctx context.Context, blobs *cas.Store) error {
	v.known = map[digest.Hash]bool{}
	err := blobs.Walk(func(h digest.Hash, _ fs.FileInfo) error {
		v.Blobs, v.known[h] = v.Blobs+1, true
		if err := blobs.Verify(h); errors.Is(err, cas.ErrDamaged) {
			v.warn(diag.BlobDamaged, blobName(h), "the stored blob is damaged",
				"removes it, and the job that made it runs again", "it was removed; the job that made it runs again")
		} else if err != nil {
			return err
		}
		return ctx.Err()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was built yet, or all blobs were removed
	}
	return err
}

// lost finds missing blobs of products of current traces. If the output is correct, a repair restores the
// blob from it.
func (v *Verified) lost(ctx context.Context, s *Found, blobs *cas.Store) {
	for _, t := range s.Before.Tasks {
		tr := s.TraceByID(t.Key, t.Trace)
		if tr == nil || ctx.Err() != nil {
			continue
		}
		for i := range tr.Products {
			p := &tr.Products[i]
			if v.known[p.Hash] {
				continue
			}
			v.known[p.Hash] = true
			if has, err := blobs.Has(ctx, []digest.Hash{p.Hash}); err == nil && has[0] {
				continue // it is promised
			}
			would, did := "has the job that made it run again", "the job that made it runs again"
			if p.File != "" && blobs.Restore(p.Hash, filepath.Join(s.P.OutputDir(), filepath.FromSlash(p.File))) {
				from := "from " + s.P.Output + "/" + p.File
				would, did = "restores it "+from, "nothing: it was restored "+from
			}
			v.warn(diag.BlobLost, blobName(p.Hash), "a stored blob is not there any more", would, did)
		}
	}
}

func blobName(h digest.Hash) string { return ".kiln/cas/" + h.String()[:2] + "/" + h.String()[2:] }

// products compares outputs with their hashes. Wrong ones get a stat that never matches.
func (v *Verified) products(ctx context.Context, p *workspace.Workspace, outputs []state.Output) {
	in := p.BelowOutput()
	for i := range outputs {
		o := &outputs[i]
		if ctx.Err() != nil {
			return
		}
		v.Products++
		abs := filepath.Join(p.OutputDir(), filepath.FromSlash(o.File))
		h, err := source.HashFile(abs)
		if err == nil && h == o.Hash {
			continue
		}
		what := "the product was changed by somebody else"
		if errors.Is(err, fs.ErrNotExist) {
			what = "the product is missing"
		} else if info, lerr := os.Lstat(abs); v.fix && lerr == nil && info.Mode().IsRegular() && in.Folder(filepath.Dir(abs)) == nil {
			os.Chmod(abs, 0o666) // so that it can be replaced everywhere
		}
		v.warn(diag.ProductWrong, p.Output+"/"+o.File, what, "puts it back", "the next build puts it back")
		o.Stat = source.Stat{}
	}
}

// Shipped compares parcels with their hashes. It returns the records of good ones and of all other files unchanged; a
// damaged one gets no stat.
func (v *Verified) Shipped(ctx context.Context, p *workspace.Workspace, files []state.Shipped) []state.Shipped {
	files = slices.Clone(files)
	for i, f := range files {
		if !f.Made || ctx.Err() != nil || p.ShippedStat(f.File) != f.Stat {
			continue // the next build notices it anyway
		}
		v.Products++
		if err := ship.Verify(p.ShippedPath(f.File)); err != nil {
			v.warn(diag.ProductWrong, f.File, "the parcel is damaged", "packs it again", "the next build packs it again")
			files[i].Stat = source.Stat{}
		}
	}
	return files
}

// wrong reports files that are whole, and not what the last build should have made of its products.
func (v *Verified) wrong(s *Found, files []state.Shipped) []state.Shipped {
	for _, w := range s.Wrong {
		i := slices.IndexFunc(files, func(f state.Shipped) bool { return f.File == w.File })
		if i >= 0 && files[i].Stat == (source.Stat{}) {
			continue // it is damaged
		}
		v.warn(diag.ShippedWrong, w.File,
			"this is not what the products of the last build give: "+w.Why, "writes it again", "the next build writes it again")
		if i >= 0 {
			files[i].Stat = source.Stat{}
		}
	}
	return files
}

// sources compares files whose stat is unchanged with the hash they had.
func (v *Verified) sources(ctx context.Context, p *workspace.Workspace, prev *state.Snapshot) {
	t := prev.Sources
	t.Each(func(root int, path string, f *source.File) {
		if f.Hash.IsZero() || ctx.Err() != nil {
			return
		}
		v.Sources++
		abs := t.Abs(root, path)
		st, _, err := source.StatPath(abs)
		if err != nil || st != f.Stat {
			return // the next build notices it anyway
		}
		if h, err := source.HashFile(abs); err == nil && h != f.Hash {
			name := strings.TrimPrefix(path, "/")
			if root < len(p.Prefixes()) {
				name = p.Prefixes()[root] + name
			}
			const disk = "; a disk or a program that does this needs `kiln build --changed-by hash`"
			v.warn(diag.SourceMissed, name, "the content changed although size, times and inode did not",
				"builds what depends on it"+disk, "the next build reads it"+disk)
			if v.fix {
				f.Stat = source.Stat{} // differs from every file
			}
		}
	})
}

// Verify hashes every source file with a known content, every product and every blob, reads the content database, and
// reports damage that stats did not show. If nothing was ever built, it returns an error that is a message.
//
// Without fix it changes nothing. With fix it has the next build repair everything: it removes damaged blobs, the stats
// of wrong source files and products from the snapshot, a damaged content database, and unknown products. The caller
// holds the lock, and with fix builds afterwards.
func (s *Found) Verify(ctx context.Context, fix bool) (*Verified, error) {
	v := &Verified{Messages: slices.Clone(s.Said), fix: fix}
	blobs, err := cas.OpenReadOnly(s.P.CasDir()), error(nil)
	if fix {
		if blobs, err = cas.Open(s.P.CasDir()); err != nil {
			return nil, err
		}
	}
	if err := v.blobs(ctx, blobs); err != nil {
		return nil, errors.Join(err, blobs.Flush())
	}
	defer blobs.Flush() // what is not recorded is hashed again
	if reason, err := contentdb.Verify(s.P.DatabasePath(), fix); err != nil {
		return nil, err
	} else if reason != "" {
		v.warn(diag.StateDamaged, ".kiln/content.db", reason, "makes a new one", "the next build makes a new one")
	}
	if s.Prev == nil {
		if v.Blobs == 0 && len(v.Messages) == 0 {
			return nil, diag.Errorf(diag.NothingKnown, diag.Pos{}, "nothing was built yet, so there is nothing to verify").
				WithHint("run `kiln build` first")
		}
		return v, nil
	}
	before := len(v.Messages)
	v.products(ctx, s.P, s.Before.Outputs)
	s.P.Promising(blobs)
	v.lost(ctx, s, blobs)
	shipped := v.wrong(s, v.Shipped(ctx, s.P, s.Prev.Shipped))
	v.sources(ctx, s.P, s.Prev)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if fix && len(v.Messages) > before {
		if err := s.record(shipped); err != nil {
			return v, err
		}
	}
	v.strangers(s)
	return v, nil
}

// record writes a snapshot by which the next build repairs what was found.
func (s *Found) record(shipped []state.Shipped) error {
	next, err := s.Prev.Image()
	if err != nil {
		return workspace.RemoveAll(s.P.SnapshotPath())
	}
	next.Outputs, next.Shipped, next.Whole = s.Before.Outputs, shipped, false
	return state.WriteSnapshot(s.P.SnapshotPath(), next)
}
