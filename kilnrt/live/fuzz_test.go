package live

import (
	"encoding/json"
	"testing"
)

// FuzzHeard handles any two messages of a watcher.
func FuzzHeard(f *testing.F) {
	line := `{"id":1,"uuid":"00000000-0000-0000-0000-000000000000","sub":0,"name":"a","asset":"a","kind":"t","hash":"` +
		"0000000000000000000000000000000000000000000000000000000000000000" + `","size":1,"needs":[1,4294967295],"uses":[2]}`
	for _, m := range []string{
		`{"type":"welcome","version":1,"epoch":"e","seq":1,"resumed":true,"resources":1}`,
		`{"type":"list","seq":1,"resources":[` + line + `]}`, `{"type":"changed","seq":2,"resources":[` + line + `],"removed":[1,7],"more":true}`,
		`{"type":"failed","asset":"a","messages":[{"code":"K0201"}],"resources":[1]}`, `{"type":"mended","asset":"a"}`,
		`{"type":"reply","request":1,"reason":"no"}`, `{"type":"reload","ids":[1]}`, `{"type":"refused","reason":"no"}`,
	} {
		f.Add([]byte(m), []byte(`{"type":"list","seq":1,"resources":[`+line+`]}`))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		l := newLibrary(Options{})
		defer l.stop()
		var page *change
		for _, data := range [][]byte{first, second} {
			var m fromWatcher
			if json.Unmarshal(data, &m) != nil {
				return
			}
			var err error
			if page, err = l.heard(&m, page); err != nil {
				return
			}
		}
		for id, r := range l.table.byID {
			if r.ID != id || l.table.byKey[key{r.UUID, r.SubID}] == nil {
				t.Errorf("resource %d is found by %d", r.ID, id)
			}
		}
		l.Poll()
	})
}
