package live

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Path is the prefix of the paths that a Handler answers.
const Path = "/live/"

// Handler answers games: /live/v1 and /live/v1/blob/HASH. Wrap it in a Guard, with access Games.
func (h *Hub) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live/v1", h.connect)
	mux.HandleFunc("GET /live/v1/blob/{hash}", h.blob)
	return mux
}

// blob serves content by its hash. It never changes, so clients may cache it.
func (h *Hub) blob(w http.ResponseWriter, r *http.Request) {
	hash, err := digest.Parse(r.PathValue("hash"))
	if err != nil {
		http.Error(w, "that is not a hash: 64 hexadecimal digits", http.StatusBadRequest)
		return
	}
	f, err := h.content.Open(hash)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "nobody has this content any more", http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, "the content cannot be read", http.StatusInternalServerError)
		return
	}
	defer f.Close()
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("ETag", `"`+hash.String()+`"`)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// assetPart is the asset's id in a resource's name.
func assetPart(name string) string {
	id, _, _ := strings.Cut(name, "#")
	return id
}

// differs returns the news for a game that has exactly these resources: which have changed, and which were removed.
func (p *platform) differs(has []have) news {
	touched := map[Key]uint32{}
	for _, x := range has {
		k := Key{strings.ToLower(x.UUID), x.Sub}
		if r := p.resources[k]; r == nil {
			touched[k] = x.ID
		} else if r.Hash.String() != strings.ToLower(x.Hash) {
			touched[k] = r.id
		}
	}
	return p.tell(touched)
}
