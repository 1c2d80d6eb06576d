package job

import (
	"encoding/binary"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// Numbers that kiln.ids has for products, as jobs see them while they write.

// Numbered takes apart the subject of an observation of SawID: an asset, and the name of its product.
func Numbered(subject string) (asset, product string) {
	asset, product, _ = strings.Cut(subject, "\x00")
	return asset, product
}

// IDs returns the number of a product of an asset, if it has one.
type IDs func(asset, uuid, product string) (id uint32, ok bool)

// idMark ends the value of an observation of SawID, which begins with the number.
const idMark = "resource id"

// Seen is what a job of an asset observes of the number of a product. It is zero if there is none.
func (ids IDs) Seen(a *asset.Asset, product string) (h digest.Hash) {
	if id, ok := ids(a.ID, a.UUID, product); ok {
		binary.LittleEndian.PutUint32(h[:], id)
		copy(h[len(h)-len(idMark):], idMark)
	}
	return h
}

// IDIn is the number in the value of an observation of SawID.
func IDIn(value digest.Hash) (id uint32, ok bool) {
	return binary.LittleEndian.Uint32(value[:]), !value.IsZero()
}

// number is the value of an observation of SawID.
func (w *World) number(subject string) (h digest.Hash) {
	w.AskedIDs.Store(true)
	id, product := Numbered(subject)
	if a := w.Find(id); a != nil {
		h = w.ids().Seen(a, product)
	}
	return h
}

func (j *Job) ResourceID(name string) (uint32, bool) {
	if j.may(name) != nil || j.t.Request() {
		return 0, false
	}
	subject := j.t.Asset.ID + "\x00" + name
	h := j.w.number(subject)
	j.run.See(SawID, subject, h)
	return IDIn(h)
}
