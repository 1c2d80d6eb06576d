package live

import (
	"encoding/json"
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Limits of the protocol.
const (
	maxMessage  = 16 << 20
	maxHello    = 1 << 20 // bytes of the first message
	maxHave     = 1 << 14 // maximum number of entries in it
	maxNew      = 16      // connections before their hello
	maxEntries  = 1 << 20
	maxParcels  = 1024
	maxName     = 256
	maxLog      = 16 << 10
	logRate     = 200 // lines a second
	maxRequests = 64
	maxGames    = 64

	pageResources = 1000
	pageBytes     = 256 << 10
)

// Messages from games: one struct for all types.
type fromGame struct {
	Type string `json:"type"`

	// hello
	Version  int      `json:"version"`
	Game     string   `json:"game"`
	Client   string   `json:"client"`
	Platform string   `json:"platform"`
	Epoch    string   `json:"epoch"`
	Seq      uint64   `json:"seq"` // also in applied
	List     bool     `json:"list"`
	Parcels  []string `json:"parcels"`
	Have     []have   `json:"have"`

	// request
	Request int64   `json:"request"`
	Name    string  `json:"name"`
	Asset   string  `json:"asset"`
	ID      *uint32 `json:"id"`
	UUID    string  `json:"uuid"`
	Sub     uint32  `json:"sub"`

	// applied
	Swapped []uint32 `json:"swapped"`
	Refused []have   `json:"refused"`

	IDs   []uint32 `json:"ids"` // used
	Level string   `json:"level"`
	Text  string   `json:"text"`
}

// have is a resource that a game has, or refused.
type have struct {
	UUID   string `json:"uuid"`
	Sub    uint32 `json:"sub"`
	ID     uint32 `json:"id"`
	Hash   string `json:"hash"`
	Reason string `json:"reason"`
}

// parse decodes a message and checks the limits.
func parse(data []byte) (*fromGame, error) {
	var m fromGame
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("a message is not what docs/formats/live.md says: %w", err)
	}
	for _, s := range append([]string{m.Game, m.Client, m.Platform, m.Epoch, m.Level, m.UUID}, m.Parcels...) {
		if len(s) > maxName {
			return nil, fmt.Errorf("a name of %d bytes; %d is the limit", len(s), maxName)
		}
	}
	if n := max(len(m.Have), len(m.IDs), len(m.Swapped), len(m.Refused)); n > maxEntries {
		return nil, fmt.Errorf("a list of %d entries; %d is the limit", n, maxEntries)
	}
	if len(m.Parcels) > maxParcels {
		return nil, fmt.Errorf("%d parcels; %d is the limit", len(m.Parcels), maxParcels)
	}
	return &m, nil
}

// Messages to games.
type (
	welcome struct {
		Type      string `json:"type"`
		Version   int    `json:"version"`
		Project   string `json:"project"`
		Platform  string `json:"platform"`
		Epoch     string `json:"epoch"`
		Seq       uint64 `json:"seq"`
		Resumed   bool   `json:"resumed"`
		Resources int    `json:"resources"`
		Beat      int64  `json:"beat"` // in milliseconds
	}

	alive struct {
		Type string `json:"type"`
	}

	// changed is also a page of a list.
	changed struct {
		Type      string         `json:"type"`
		Seq       uint64         `json:"seq"`
		Resources []resourceLine `json:"resources,omitempty"`
		Removed   []uint32       `json:"removed,omitempty"`
		Order     []uint32       `json:"order,omitempty"`
		More      bool           `json:"more,omitempty"`
	}

	resourceLine struct {
		ID    uint32   `json:"id"`
		UUID  string   `json:"uuid"`
		Sub   uint32   `json:"sub"`
		Name  string   `json:"name"`
		Asset string   `json:"asset"`
		Kind  string   `json:"kind"`
		Hash  string   `json:"hash"`
		Size  int64    `json:"size"`
		Needs []uint32 `json:"needs,omitempty"`
		Uses  []uint32 `json:"uses,omitempty"`
	}

	failed struct {
		Type      string    `json:"type"`
		Seq       uint64    `json:"seq"`
		Asset     string    `json:"asset"`
		Messages  diag.List `json:"messages"`
		Resources []uint32  `json:"resources,omitempty"`
	}

	mended struct {
		Type  string `json:"type"`
		Seq   uint64 `json:"seq"`
		Asset string `json:"asset"`
	}

	reply struct {
		Type    string   `json:"type"`
		Request int64    `json:"request"`
		IDs     []uint32 `json:"ids,omitempty"`
		Reason  string   `json:"reason,omitempty"`
	}

	reload struct {
		Type string   `json:"type"`
		IDs  []uint32 `json:"ids,omitempty"`
	}

	refused struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
)

// missingID stands for a needed resource that does not exist: no resource has this number (numbers in kilnrt are below
// it).
const missingID = 1<<32 - 1

// line is the description of a resource for games; what it needs is given by number.
func (r *resource) line(p *platform) resourceLine {
	l := resourceLine{ID: r.id, UUID: r.UUID, Sub: r.Sub, Name: r.name(), Asset: r.Asset, Kind: r.Kind, Hash: r.Hash.String(), Size: r.Size}
	for _, ref := range r.Refs {
		id := uint32(missingID)
		if need := p.resources[ref.Key]; need != nil {
			id = need.id
		}
		if ref.Required {
			l.Needs = append(l.Needs, id)
		} else {
			l.Uses = append(l.Uses, id)
		}
	}
	return l
}

// bytes is its approximate length in a message.
func (l *resourceLine) bytes() int {
	return 220 + len(l.Name) + len(l.Asset) + len(l.Kind) + 11*(len(l.Needs)+len(l.Uses))
}
