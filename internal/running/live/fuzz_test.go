package live

import (
	"context"
	"io"
	"io/fs"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// nothing is content that there is none of.
type nothing struct{}

func (nothing) Open(digest.Hash) (io.ReadSeekCloser, error) { return nil, fs.ErrNotExist }
func (nothing) Want(context.Context, string, string) error  { return fs.ErrNotExist }

// FuzzHeard takes any message of a game that has said hello.
func FuzzHeard(f *testing.F) {
	for _, m := range []string{
		`{"type":"request","request":1,"name":"a#b"}`, `{"type":"request","request":2,"id":0}`, `{"type":"request","uuid":"x","sub":1}`,
		`{"type":"applied","seq":18446744073709551615,"swapped":[0],"refused":[{"id":0,"hash":"","reason":"no"}]}`,
		`{"type":"used","ids":[0,1,1,4294967295]}`, `{"type":"log","level":"info","text":"x"}`, `{"type":"hello"}`, `[]`, `{"type":1}`,
	} {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := NewHub(Options{Platforms: []string{"pc"}, Content: nothing{}})
		if err := h.Update(map[string]*Update{"pc": {Whole: true, Products: []Product{{Key: Key{UUID: "u"}, Asset: "a"}}}}); err != nil {
			t.Fatal(err)
		}
		g := &game{hub: h, platform: "pc", news: make(chan struct{}, 1), isLoaded: map[uint32]bool{}, refused: map[uint32]string{}}
		h.games[g] = true
		m, err := parse(data)
		if err != nil {
			return
		}
		if m.Type == "request" {
			h.want(t.Context(), g, m)
		} else {
			g.heard(t.Context(), m)
		}
		g.have = m.Have
		g.everything(h.platforms[0])
		if n := len(h.Games()[0].Loaded); n > 1 {
			t.Errorf("it loaded %d of 1 resource", n)
		}
	})
}
