package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

func newParcelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "parcel",
		Short: "Inspect parcels, and make patches between them",
		Long: "Inspect parcels, check them against their hashes, sign them, extract files, and make and apply patches. " +
			"No project is needed, but for order, release and since.",
		GroupID: groupLook,
		Example: "  kiln parcel ls build/parcels/pc/level1.parcel\n  kiln parcel patch old.parcel new.parcel -o update.patch",
		Args:    a.onlyKnownCommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	sub := func(use, short, example string, args cobra.PositionalArgs, run func(args []string) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Example: "  " + example, Args: args, RunE: func(_ *cobra.Command, args []string) error { return run(args) }}
		cmd.AddCommand(c)
		return c
	}
	c := sub("ls FILE...", "List what is in parcels", "kiln parcel ls level1.parcel", atLeastOne("FILE"),
		func(args []string) error { return a.eachParcel(args, a.listParcel) })
	c.Long = "List what is in parcels. With --json, also list the assets, processors and metadata of parcels of the project."
	var dir, out, key string
	c = sub("verify FILE...", "Check parcels against their hashes, and against a key", "kiln parcel verify *.parcel",
		atLeastOne("FILE"), func(args []string) error { return a.verifyParcels(args, key) })
	c.Flags().StringVar(&key, "key", "", "they must be signed by `KEY`, a public key of minisign or a file with it")
	c = sub("extract FILE [NAME|ID...]", "Write resources as files", "kiln parcel extract level1.parcel -o level1", atLeastOne("FILE"), func(args []string) error {
		return a.extract(args[0], args[1:], dir)
	})
	c.Flags().StringVarP(&dir, "output", "o", ".", "write below `DIR`")
	sub("diff OLD NEW", "Show which resources differ", "kiln parcel diff old.parcel new.parcel",
		exactly("OLD", "NEW"), func(args []string) error { return a.diffParcels(args[0], args[1]) })
	c = sub("patch OLD NEW", "Make a patch from one parcel to another", "kiln parcel patch old.parcel new.parcel -o update.patch", exactly("OLD", "NEW"), func(args []string) error {
		if out == "" {
			return wrongUsage("name the patch with -o", "kiln parcel patch needs -o FILE")
		}
		return parcel.MakePatchFile(out, args[0], args[1])
	})
	c.Flags().StringVarP(&out, "output", "o", "", "write the patch to `FILE`")
	c = sub("apply OLD PATCH", "Apply a patch to a parcel", "kiln parcel apply old.parcel update.patch -o new.parcel", exactly("OLD", "PATCH"), func(args []string) error {
		if out == "" {
			return wrongUsage("name the new parcel with -o; it may be OLD", "kiln parcel apply needs -o FILE")
		}
		err := parcel.ApplyPatchFile(out, args[0], args[1])
		if errors.Is(err, parcel.ErrPatch) {
			return diag.Errorf(diag.PatchWrong, diag.Pos{File: args[1]}, "%v", err).
				WithHint("nothing was written; make the patch again from the parcel that it will be applied to")
		}
		return err
	})
	c.Flags().StringVarP(&out, "output", "o", "", "write the new parcel to `FILE`")
	cmd.AddCommand(a.newParcelTreemapCommand(), a.newParcelOrderCommand(), a.newParcelReleaseCommand(), a.newParcelSinceCommand(), a.newParcelSignCommand(), a.newParcelDigestCommand())
	return cmd
}

// damagedParcel describes what is wrong with a parcel.
func damagedParcel(path string, err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return err
	}
	if errors.Is(err, io.EOF) {
		return diag.Errorf(diag.ParcelDamaged, diag.Pos{File: path}, "the file ends before a parcel's header does").
			WithHint("it is not a parcel, or was cut off: pack it again, or fetch it again")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), path+": "), "kilnrt: ", "")
	return diag.Errorf(diag.ParcelDamaged, diag.Pos{File: path}, "%s", text).WithHint("pack it again, or fetch it again")
}

func withParcel(path string, use func(*kilnrt.Parcel) error) error {
	p, err := kilnrt.Open(path)
	if err != nil {
		return damagedParcel(path, err)
	}
	defer p.Close()
	return use(p)
}

func (a *app) eachParcel(paths []string, use func(path string, p *kilnrt.Parcel) error) error {
	for _, path := range paths {
		if err := withParcel(path, func(p *kilnrt.Parcel) error { return use(path, p) }); err != nil {
			return err
		}
	}
	return nil
}

type resourceLine struct {
	Type     string   `json:"type"`
	Parcel   string   `json:"parcel"`
	ID       uint32   `json:"id"`
	UUID     string   `json:"uuid"`
	SubID    uint32   `json:"sub_id"`
	Name     string   `json:"name"` // empty if it has no name
	Kind     string   `json:"product_type"`
	Size     int64    `json:"size"`
	Offset   int64    `json:"offset"` // of the stored bytes, in the file
	Stored   int64    `json:"stored"`
	Codec    string   `json:"codec"` // "none", "zstd", "zstd-dictionary"
	Align    int      `json:"align"` // bytes
	Hash     string   `json:"hash"`
	SameAs   *uint32  `json:"same_as"` // the first resource at the same position; null: this is the first
	Required []uint32 `json:"required"`
	Optional []uint32 `json:"optional"`

	Asset     string          `json:"asset,omitempty"` // this and the rest: if the last build of the project made this product, and packed it
	Processor string          `json:"processor,omitempty"`
	Facts     json.RawMessage `json:"facts,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
}

func newResourceLine(path string, r *kilnrt.Resource) resourceLine {
	l := resourceLine{
		Type: "resource", Parcel: path, ID: r.ID, UUID: uuid.UUID(r.UUID).String(), SubID: r.SubID, Name: r.Name(), Kind: r.Type(),
		Size: r.Size, Offset: r.Offset, Stored: r.Stored, Codec: [...]string{"none", "zstd", "zstd-dictionary"}[r.Codec], Align: r.Align, Hash: hex.EncodeToString(r.Hash[:]), Required: []uint32{}, Optional: []uint32{},
	}
	for i := range r.Required + r.Optional {
		if i < r.Required {
			l.Required = append(l.Required, r.Need(i))
		} else {
			l.Optional = append(l.Optional, r.Need(i))
		}
	}
	return l
}

func (a *app) listParcel(path string, p *kilnrt.Parcel) error {
	t := a.table()
	t.header("ID", "NAME", "TYPE", "SIZE", "STORED")
	first := map[int64]uint32{} // resource by where it lies
	made := a.packed(path)
	for i := range p.Len() {
		r, err := p.At(i)
		if err != nil {
			return damagedParcel(path, err)
		}
		l, stored := newResourceLine(path, &r), diag.Size(r.Stored)
		if id, shares := first[r.Offset]; shares && r.Stored > 0 {
			l.SameAs, stored = &id, fmt.Sprintf("in %d", id)
		} else {
			first[r.Offset] = r.ID
		}
		if a.json {
			if x := made[resourceKey{l.UUID, l.SubID}]; x.Hash == l.Hash {
				l.Asset, l.Processor, l.Facts, l.Meta = x.Asset, x.Processor, x.Facts, x.Meta
			}
			if err := a.emit(l); err != nil {
				return err
			}
			continue
		}
		t.row(right(strconv.Itoa(int(r.ID))), left(oneLine(r.Name())), left(oneLine(r.Type())), right(diag.Size(r.Size)), right(stored))
	}
	if a.json {
		return nil
	}
	if err := t.write(); err != nil {
		return err
	}
	h := p.Header()
	_, err := fmt.Fprintf(a.errs, "%s: %s, %s, %s of it waste, generation %d\n", path, count(p.Len(), "resource", "resources"),
		diag.Size(h.End), diag.Size(h.Waste), h.Generation)
	return err
}

// resourceKey names a resource by its asset and product.
type resourceKey struct {
	uuid string
	sub  uint32
}

// packed is what the project's last build knows of the products in one of its parcels. It is empty if the file is none, or nothing is
// known: a parcel can be listed without a project.
func (a *app) packed(path string) map[resourceKey]contentdb.Resource {
	made := map[resourceKey]contentdb.Resource{}
	if !a.json {
		return made
	}
	p, err := a.open()
	if err != nil {
		return made
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return made
	}
	below, err := filepath.Rel(p.OutputDir(), file)
	if err != nil || !filepath.IsLocal(below) {
		return made
	}
	db, err := openDatabase(p)
	if err != nil {
		return made
	}
	defer db.Close()
	list, _ := db.Packed(context.Background(), filepath.ToSlash(below))
	for _, x := range list {
		made[resourceKey{x.UUID, x.SubID}] = x
	}
	return made
}

func (a *app) verifyParcels(paths []string, by string) error {
	key, err := publicKey(by)
	if err != nil {
		return err
	}
	var bad diag.List
	for _, path := range paths {
		err := withParcel(path, func(p *kilnrt.Parcel) error {
			if err := signedBy(path, p, key); err != nil {
				return err
			}
			if err := parcel.Verify(p); err != nil {
				return damagedParcel(path, err)
			}
			return nil
		})
		var m *diag.Message
		switch {
		case errors.As(err, &m):
			bad = append(bad, m)
		case err != nil:
			return err
		case !a.quiet && !a.json:
			fmt.Fprintf(a.out, "%s is good%s\n", path, map[bool]string{true: ", and signed by this key"}[key != nil])
		}
	}
	if len(bad) == 0 {
		return nil
	}
	a.tell(bad)
	return exitFailed
}

// extract writes resources below dir, under their names, or their ids if they have none. A name that leads out of dir
// is refused.
func (a *app) extract(path string, which []string, dir string) error {
	return withParcel(path, func(p *kilnrt.Parcel) error {
		done := map[string]bool{}
		for i := range p.Len() {
			r, err := p.At(i)
			if err != nil {
				return damagedParcel(path, err)
			}
			id, name := strconv.Itoa(int(r.ID)), r.Name()
			done[id], done[name] = true, true
			if len(which) > 0 && !slices.Contains(which, id) && !(name != "" && slices.Contains(which, name)) {
				continue
			}
			if name == "" {
				name = id
			}
			file := filepath.FromSlash(name)
			// Main product of a folder: the others are sprites/ui/#page-1, so the name without the slash is a folder here.
			if strings.HasSuffix(name, "/") {
				file += "#"
			}
			if !filepath.IsLocal(file) {
				return damagedParcel(path, fmt.Errorf("resource %d is named %q, which is not a path below a folder", r.ID, name))
			}
			if err := extractTo(filepath.Join(dir, file), &r); err != nil {
				return damagedParcel(path, err)
			}
		}
		for _, w := range which {
			if !done[w] {
				return diag.Errorf(diag.NothingKnown, diag.Pos{File: path}, "there is no resource %q", w).WithHint("`kiln parcel ls %s` lists them", path)
			}
		}
		return nil
	})
}

// extractTo writes a resource, and removes an incomplete file again.
func extractTo(file string, r *kilnrt.Resource) (err error) {
	content, err := r.Reader()
	if err != nil {
		return err
	}
	defer content.Close()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(file)
	}
	return err
}

type parcelDiffLine struct {
	Type    string `json:"type"`
	Change  string `json:"change"` // "added", "removed", "changed"
	ID      uint32 `json:"id"`
	Name    string `json:"name,omitempty"`
	OldSize int64  `json:"old_size"`
	NewSize int64  `json:"new_size"`
}

func (a *app) diffParcels(older, newer string) error {
	return withParcel(older, func(o *kilnrt.Parcel) error {
		return withParcel(newer, func(n *kilnrt.Parcel) error {
			list, err := parcel.Diff(o, n)
			if err != nil {
				return damagedParcel(older+" or "+newer, err)
			}
			t := a.table()
			for _, d := range list {
				if a.json {
					if err := a.emit(parcelDiffLine{"resource_difference", d.Change, d.ID, d.Name, d.OldSize, d.NewSize}); err != nil {
						return err
					}
					continue
				}
				t.row(left(d.Change), right(strconv.Itoa(int(d.ID))), left(oneLine(d.Name)), right(diag.Size(d.OldSize)), right(diag.Size(d.NewSize)))
			}
			return t.write()
		})
	})
}
