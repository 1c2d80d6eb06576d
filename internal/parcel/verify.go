package parcel

import (
	"errors"
	"fmt"
	"io"

	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Verify holds a parcel to all that can be known of it: the index to the format, its digest to what it holds, each content to its
// CRC and its hash. All that is wrong is in the error, joined.
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
	if _, cycle := loadOrder(items); cycle != nil {
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
