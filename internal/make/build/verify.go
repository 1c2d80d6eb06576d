package build

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
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Verified is what Verify found.
type Verified struct {
	Sources, Products, Blobs int       // looked at
	Messages                 diag.List // what was wrong; all of it is mended by the next build

	known map[digest.Hash]bool // blobs that are there, were removed, or are told of as lost
}

// Verify hashes every source file whose content is known, every product and every blob, reads the content database, and reports what their
// times did not show. What is wrong is made known to the next build: a wrong source hash is dropped, a damaged blob removed, a damaged
// product forgotten. That nothing was ever built is an error, a message. With fix it removes products of which nothing is known. The caller
// holds the lock, and builds afterwards.
func (p *Project) Verify(ctx context.Context, fix bool) (*Verified, error) {
	v, err := p.verify(ctx, fix)
	var m *diag.Message
	if errors.As(err, &m) && m.Code == diag.ContentDBUnusable {
		m.File = ".kiln/content.db"
	}
	return v, p.ownFiles(err)
}

func (p *Project) verify(ctx context.Context, fix bool) (*Verified, error) {
	s := &session{p: p, req: Request{Reporter: job.Silent{}}}
	if err := s.readSnapshot(); err != nil {
		return nil, err
	}
	v := &Verified{Messages: slices.Clone(s.messages)}
	told := len(s.messages)
	blobs, err := cas.Open(p.casDir())
	if err != nil {
		return nil, err
	}
	if err := v.blobs(ctx, blobs); err != nil {
		return nil, errors.Join(err, blobs.Flush())
	}
	defer blobs.Flush() // what is not written down is hashed again
	if reason, err := contentdb.Verify(p.DatabasePath()); err != nil {
		return nil, err
	} else if reason != "" {
		v.Messages = append(v.Messages, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln/content.db"}, "%s", reason).
			WithHint("the next build makes it again"))
	}
	if s.readBefore(); s.prev == nil {
		v.Messages = append(v.Messages, s.messages[told:]...)
		if v.Blobs == 0 && len(v.Messages) == 0 {
			return nil, diag.Errorf(diag.NothingKnown, diag.Pos{}, "nothing was built yet, so there is nothing to verify").WithHint("run `kiln build` first")
		}
		return v, nil
	}
	before := len(v.Messages)
	v.products(ctx, p, s.before.outputs)
	if err := s.openTraces(true); err != nil {
		return nil, err
	}
	v.lost(ctx, s, blobs)
	shipped := v.shipped(ctx, p, s.prev.Shipped)
	v.sources(ctx, p, s.prev)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(v.Messages) > before {
		next, err := s.prev.Image()
		if err != nil {
			return v, removeAll(p.snapshotPath())
		}
		next.Outputs, next.Shipped, next.Whole = s.before.outputs, shipped, false
		if err := state.WriteSnapshot(p.snapshotPath(), next); err != nil {
			return v, err
		}
	}
	return v, v.strangers(s, fix)
}

// strangers looks for products of which nothing is known.
func (v *Verified) strangers(s *session, fix bool) error {
	if err := s.openTraces(true); err != nil {
		return err
	}
	found := s.strangers()
	if fix {
		v.Messages = append(v.Messages, s.removeStrangers(found)...)
	} else {
		v.Messages = append(v.Messages, found.messages(s.p.Output)...)
	}
	return nil
}

func (v *Verified) blobs(ctx context.Context, blobs *cas.Store) error {
	v.known = map[digest.Hash]bool{}
	return blobs.Walk(func(h digest.Hash, _ fs.FileInfo) error {
		v.Blobs, v.known[h] = v.Blobs+1, true
		if err := blobs.Verify(h); errors.Is(err, cas.ErrDamaged) {
			v.Messages = append(v.Messages, diag.Warningf(diag.BlobDamaged, diag.Pos{File: blobName(h)}, "the stored blob is damaged; it was removed").
				WithHint("the job that made it runs again"))
		} else if err != nil {
			return err
		}
		return ctx.Err()
	})
}

// lost looks for blobs of products that hold and are not there. One whose output is right is made anew of that.
func (v *Verified) lost(ctx context.Context, s *session, blobs *cas.Store) {
	for _, t := range s.before.tasks {
		tr := s.traceByID(t.Key, t.Trace)
		if tr == nil || ctx.Err() != nil {
			continue
		}
		for i := range tr.Products {
			p := &tr.Products[i]
			if v.known[p.Hash] {
				continue
			}
			v.known[p.Hash] = true
			m := diag.Warningf(diag.BlobLost, diag.Pos{File: blobName(p.Hash)}, "a stored blob is not there any more").WithHint("the job that made it runs again")
			if p.File != "" && blobs.Restore(p.Hash, filepath.Join(s.p.OutputDir(), filepath.FromSlash(p.File))) {
				m.Hint = "nothing: it was restored from " + s.p.Output + "/" + p.File
			}
			v.Messages = append(v.Messages, m)
		}
	}
}

func blobName(h digest.Hash) string { return ".kiln/cas/" + h.String()[:2] + "/" + h.String()[2:] }

// products compares outputs with what they should be. Those that are not have no stat from then on, which none is equal to.
func (v *Verified) products(ctx context.Context, p *Project, outputs []state.Output) {
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
		} else {
			os.Chmod(abs, 0o666) // so that it can be replaced everywhere
		}
		v.Messages = append(v.Messages, diag.Warningf(diag.ProductWrong, diag.Pos{File: p.Output + "/" + o.File}, "%s", what).WithHint("the next build puts it back"))
		o.Stat = source.Stat{}
	}
}

// shipped holds parcels to their hashes, and gives those that are good, and all other files, as they were; a damaged one has no stat.
func (v *Verified) shipped(ctx context.Context, p *Project, files []state.Shipped) []state.Shipped {
	files = slices.Clone(files)
	for i, f := range files {
		if !f.Made || ctx.Err() != nil || p.shippedStat(f.File) != f.Stat {
			continue // the next build sees that by itself
		}
		v.Products++
		if err := ship.Verify(p.shippedPath(f.File)); err != nil {
			v.Messages = append(v.Messages, diag.Warningf(diag.ProductWrong, diag.Pos{File: f.File}, "the parcel is damaged").WithHint("the next build makes it again"))
			files[i].Stat = source.Stat{}
		}
	}
	return files
}

// sources compares files whose stat is unchanged with the hash they had.
func (v *Verified) sources(ctx context.Context, p *Project, prev *state.Snapshot) {
	t := prev.Sources
	t.Each(func(root int, path string, f *source.File) {
		if f.Hash.IsZero() || ctx.Err() != nil {
			return
		}
		v.Sources++
		abs := t.Abs(root, path)
		st, _, err := source.StatPath(abs)
		if err != nil || st != f.Stat {
			return // the next build sees that by itself
		}
		if h, err := source.HashFile(abs); err == nil && h != f.Hash {
			name := strings.TrimPrefix(path, "/")
			if root < len(p.prefixes()) {
				name = p.prefixes()[root] + name
			}
			v.Messages = append(v.Messages, diag.Warningf(diag.SourceMissed, diag.Pos{File: name}, "the content changed although size, times and inode did not").
				WithHint("the next build looks at it; a disk or a tool that does this needs `--changed hash`"))
			f.Stat = source.Stat{} // differs from anything
		}
	})
}
