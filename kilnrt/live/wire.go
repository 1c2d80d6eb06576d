package live

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zeebo/blake3"
)

// fromWatcher is any message of the watcher. Its type determines which fields it has.
type fromWatcher struct {
	Type     string `json:"type"`
	Version  int    `json:"version"`
	Project  string `json:"project"`
	Platform string `json:"platform"`
	Epoch    string `json:"epoch"`
	Seq      uint64 `json:"seq"`
	Resumed  bool   `json:"resumed"`
	Beat     int64  `json:"beat"`
	More     bool   `json:"more"`

	Resources json.RawMessage `json:"resources"` // resources, ids or a number, by type
	Removed   []uint32        `json:"removed"`

	Asset    string    `json:"asset"`
	Messages []Message `json:"messages"`
	Request  int64     `json:"request"`
	IDs      []uint32  `json:"ids"`
	Reason   string    `json:"reason"`
}

type resourceLine struct {
	ID    uint32   `json:"id"`
	UUID  string   `json:"uuid"`
	Sub   uint32   `json:"sub"`
	Name  string   `json:"name"`
	Asset string   `json:"asset"`
	Kind  string   `json:"kind"`
	Hash  string   `json:"hash"`
	Size  int64    `json:"size"`
	Needs []uint32 `json:"needs"`
	Uses  []uint32 `json:"uses"`
}

// lines reads the resources of a list or a change.
func (m *fromWatcher) lines(l *Library) ([]*Resource, error) {
	if m.Resources == nil {
		return nil, nil
	}
	var in []resourceLine
	if err := json.Unmarshal(m.Resources, &in); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	out := make([]*Resource, 0, len(in))
	for i := range in {
		w := &in[i]
		r := &Resource{ID: w.ID, SubID: w.Sub, Size: w.Size, Required: len(w.Needs), Optional: len(w.Uses), lib: l, name: w.Name, asset: w.Asset,
			kind: w.Kind, needs: append(w.Needs, w.Uses...)}
		if err := digits(r.UUID[:], strings.ReplaceAll(w.UUID, "-", "")); err != nil {
			return nil, err
		}
		if err := digits(r.Hash[:], w.Hash); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func digits(to []byte, text string) error {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(to) {
		return fmt.Errorf("live: %q is not %d bytes in hexadecimal digits", text, len(to))
	}
	copy(to, b)
	return nil
}

func sum(b []byte) [32]byte { return blake3.Sum256(b) }

// Messages to the watcher.
type (
	hello struct {
		Type     string   `json:"type"`
		Version  int      `json:"version"`
		Game     string   `json:"game,omitempty"`
		Client   string   `json:"client"`
		Platform string   `json:"platform,omitempty"`
		Epoch    string   `json:"epoch,omitempty"`
		Seq      uint64   `json:"seq,omitempty"`
		List     bool     `json:"list"`
		Parcels  []string `json:"parcels,omitempty"`
	}

	kept struct { // the old one was kept, and why
		ID     uint32 `json:"id"`
		Hash   string `json:"hash"`
		Reason string `json:"reason,omitempty"`
	}

	request struct {
		Type    string  `json:"type"`
		Request int64   `json:"request"`
		Name    string  `json:"name,omitempty"`
		ID      *uint32 `json:"id,omitempty"`
	}

	applied struct {
		Type    string   `json:"type"`
		Seq     uint64   `json:"seq"`
		Swapped []uint32 `json:"swapped,omitempty"`
		Refused []kept   `json:"refused,omitempty"`
	}

	used struct {
		Type string   `json:"type"`
		IDs  []uint32 `json:"ids"`
	}

	logLine struct {
		Type  string `json:"type"`
		Level string `json:"level"`
		Text  string `json:"text"`
	}
)
