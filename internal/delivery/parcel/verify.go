package parcel

import (
	"errors"
	"fmt"
	"io"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Verify checks everything in a parcel: the index against the format, its digest against its contents, each content
// against its CRC and its hash. The error joins all problems.
func Verify(p *kilnrt.Parcel) error {
	if err := p.Check(); err != nil {
		return err
	}
	items, err := itemsOf(p)
	if err != nil {
		return err
	}
	if digestOf(items) != digest.Hash(p.Digest()) {
		err = fmt.Errorf("%w: the digest in its header is not that of what it holds", kilnrt.ErrDamaged)
	}
	if _, cycle := loadOrder(items, nil); cycle != nil {
		err = errors.Join(err, cycle)
	}
	for i := range items {
		err = errors.Join(err, verifyContent(&items[i]))
	}
	return err
}

func verifyContent(it *item) error {
	r, err := it.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", it.Label(), err)
	}
	defer r.Close()
	h, n, err := digest.Reader(io.LimitReader(r, it.Size+1))
	if err != nil {
		return fmt.Errorf("%s: %w", it.Label(), err)
	}
	if n != it.Size || h != it.Hash {
		return changed(it)
	}
	return nil
}

// Difference is one resource that differs between two parcels.
type Difference struct {
	Change           string // "added", "removed" or "changed": content, name, type, UUID or needs
	ID               uint32
	Name             string // from the newer parcel that has it
	OldSize, NewSize int64
}

// Diff returns which resources differ, by id.
func Diff(older, newer *kilnrt.Parcel) ([]Difference, error) {
	was, err := itemsOf(older)
	if err != nil {
		return nil, err
	}
	now, err := itemsOf(newer)
	if err != nil {
		return nil, err
	}
	var list []Difference
	i, k := 0, 0
	for i < len(was) || k < len(now) {
		switch {
		case k == len(now) || i < len(was) && was[i].ID < now[k].ID:
			list = append(list, Difference{"removed", was[i].ID, was[i].Name, was[i].Size, 0})
			i++
		case i == len(was) || was[i].ID > now[k].ID:
			list = append(list, Difference{"added", now[k].ID, now[k].Name, 0, now[k].Size})
			k++
		default:
			if a, b := &was[i], &now[k]; a.Hash != b.Hash || !a.alike(b) {
				list = append(list, Difference{"changed", b.ID, b.Name, a.Size, b.Size})
			}
			i, k = i+1, k+1
		}
	}
	return list, nil
}
