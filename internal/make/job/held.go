package job

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// What a parcel holds follows from the products of all jobs, so it is known at the end of a build. Jobs that ask see what the last build
// found. If that differs at the end, they run once more, in a second pass.

// ParcelMark begins a pattern that means a parcel: on the command line the assets that it names, in Job.Assets all that it holds.
const ParcelMark = "parcel:"

// Held has the ids of the assets that parcels hold, sorted, by platform and name of a parcel: "pc/level1".
type Held map[string][]string

// ReadHeld reads what the last build recorded. A file that is missing or damaged has nothing: then jobs run once more than needed.
func ReadHeld(file string) Held {
	h := Held{}
	if text, err := disk.ReadText(file, 0); err != nil || json.Unmarshal(text, &h) != nil {
		return Held{}
	}
	return h
}

// Save writes the file, or deletes it if there is nothing to record.
func (h Held) Save(file string) error {
	if len(h) == 0 {
		err := os.Remove(file)
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return disk.Save(file, text)
}

// heldParcel returns the name of the parcel that a pattern means.
func (w *World) heldParcel(pattern string) (name string, ok bool) {
	name, ok = strings.CutPrefix(pattern, ParcelMark)
	return name, ok && w.Find(pattern) == nil
}

// heldBy lists the assets that a parcel holds on a platform, and hashes the list. The hash is zero if there is no such parcel.
func (w *World) heldBy(platform, parcel string) (list []*asset.Asset, h digest.Hash) {
	x := w.parcel(parcel)
	if x == nil {
		return nil, h
	}
	b := digest.Build("parcel")
	if x.On(platform) {
		key := platform + "/" + parcel
		w.mu.Lock()
		w.AskedHeld[key] = true
		w.mu.Unlock()
		for _, id := range w.Held()[key] {
			if a := w.Find(id); a != nil && len(a.On(platform)) > 0 {
				list = append(list, a)
				b.Str("asset", a.ID)
			}
		}
	}
	return list, b.Sum()
}
