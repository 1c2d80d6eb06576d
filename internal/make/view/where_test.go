package view

import (
	"testing"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

func TestWhere(t *testing.T) {
	v := &AssetView{Asset: &asset.Asset{ID: "a", Path: "a.png", Meta: []project.Metadata{
		{Key: "done", Value: true}, {Key: "note", Value: "it's"}, {Key: "size", Value: 1.5}, {Key: "status", Value: "final"},
		{Key: "tags", Value: []any{"boss", "level 1"}},
	}}, Jobs: []JobView{{Platform: "pc", Processor: "texture", State: UpToDate}, {Platform: "mobile", Processor: "texture", State: Stale}}}
	for _, x := range []struct {
		text string
		want bool
	}{
		{`meta.status = "final"`, true},
		{`meta.status != "final"`, false},
		{`meta.status=='final'`, true},
		{`meta.missing != final`, true},
		{`meta.missing = ""`, false},
		{`meta.tags = boss`, true},
		{`meta.tags = "level 1"`, true},
		{`meta.tags != boss`, false},
		{`meta.done = true and meta.size = 1.5`, true},
		{`meta.note = "it's"`, true},
		{`state = stale`, true},
		{`state = "up to date" and platform = mobile`, true},
		{`processor != texture`, false},
		{`id = b or path = a.png and processor = texture`, true},
		{`id = a and path = b or processor = sound`, false},
	} {
		has, err := Where(x.text)
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
		} else if has(v) != x.want {
			t.Errorf("%s: %v", x.text, !x.want)
		}
	}
	for _, text := range []string{``, `meta.a`, `meta.a =`, `color = red`, `meta.a < 3`, `meta.a = "x`, `id = a and`, `id = a id = b`, `"id" = a`, `id = a but id = b`, `state = faild`} {
		if _, err := Where(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func FuzzWhere(f *testing.F) {
	f.Add(`meta.a = "b" and id != 'c' or state == stale`)
	v := &AssetView{Asset: &asset.Asset{ID: "a"}}
	f.Fuzz(func(t *testing.T, text string) {
		if has, err := Where(text); err == nil {
			has(v)
		}
	})
}
