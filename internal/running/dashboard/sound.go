package dashboard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/preview"
)

// listen sends a product that is a sound as WAV, with its gain applied: browsers play neither QOA
// nor ADPCM.
func (d *Dashboard) listen(w http.ResponseWriter, r *http.Request) {
	p, err := d.productAt(r.Context(), r.PathValue("platform"), r.PathValue("file"))
	if err != nil {
		plainError(w, err)
		return
	}
	data, err := d.read(r.Context(), p, maxPreviewSource)
	if err == nil {
		data, err = preview.Listen(data, 0)
	}
	keep(w, r, p.Hash)
	sendSound(w, r, data, err)
}

// listenSource sends a source file as WAV with a requested loudness: that of the product, so that both can be compared.
func (d *Dashboard) listenSource(w http.ResponseWriter, r *http.Request) {
	file, _, err := d.sourceFile(r, r.PathValue("path"), preview.Sound)
	if err != nil {
		plainError(w, err)
		return
	}
	level, _ := strconv.ParseFloat(r.URL.Query().Get("level"), 64)
	data, err := os.ReadFile(file)
	if err == nil {
		data, err = preview.Listen(data, level)
	}
	w.Header().Set("Cache-Control", "no-cache")
	sendSound(w, r, data, err)
}

func sendSound(w http.ResponseWriter, r *http.Request, wav []byte, err error) {
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		plainError(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", raw)
	w.Header().Set("Content-Type", "audio/wav")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(wav))
}

// aboutSound sends facts about a sound, with its loudness over time, as JSON.
func (d *Dashboard) aboutSound(w http.ResponseWriter, r *http.Request) {
	p, err := d.productAt(r.Context(), r.PathValue("platform"), r.PathValue("file"))
	if err != nil {
		plainError(w, err)
		return
	}
	text, err := d.shelf.pictures.of(r.Context(), "sound "+p.Hash, func() ([]byte, error) {
		data, err := d.read(r.Context(), p, maxPreviewSource)
		if err != nil {
			return nil, err
		}
		s, err := preview.SoundOf(data)
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		plainError(w, err)
		return
	}
	keep(w, r, p.Hash)
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}
