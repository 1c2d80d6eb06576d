package contentdb

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/store/used"
)

// loaded reads which assets games have loaded, by UUID, from the files beside the database that a watcher
// writes. Builds cannot know this, so it is in no table. A file that cannot be read counts as empty.
func (r *Reader) loaded() map[string]bool {
	all := map[string]bool{}
	for _, file := range used.Files(filepath.Dir(r.path)) {
		used.Each(file, func(k used.Key, _ bool) { all[k.UUID] = true }) // as far as it can be read
	}
	return all
}

// runUnused answers `unused`, without assets that games have loaded: nothing in the project refers to them, but the
// game's code does.
func (r *Reader) runUnused(ctx context.Context, loaded map[string]bool, limit int) (*Result, error) {
	res, err := r.run(ctx, "unused", nil, 0)
	if err != nil {
		return nil, err
	}
	ids, err := r.RunSQL(ctx, "SELECT id, uuid FROM asset WHERE needed = 0", 0)
	if err != nil {
		return nil, err
	}
	known := map[any]bool{}
	for _, row := range ids.Rows {
		uuid, _ := row[1].(string)
		known[row[0]] = loaded[uuid]
	}
	kept := res.Rows[:0]
	for _, row := range res.Rows {
		if !known[row[0]] {
			kept = append(kept, row)
		}
	}
	if res.Rows = kept; limit > 0 && len(kept) > limit {
		res.Rows, res.More = kept[:limit], true
	}
	return res, nil
}

// Resource is a product that a game can load.
type Resource struct {
	Name     string // the asset's id, with # and the product's name unless it is the main one
	UUID     string // of the asset
	SubID    uint32
	Platform string
	Parcel   string // that has it; "": none

	Asset, Processor string          // this and what follows: of Packed
	Hash             string          // of the content, in hexadecimal
	Facts            json.RawMessage // an object: what the processor says of it
	Meta             json.RawMessage // an object of lists: what rules say of the asset
}

// Resources returns all products, once for each parcel that has them.
func (r *Reader) Resources(ctx context.Context) ([]Resource, error) {
	res, err := r.RunSQL(ctx, `
SELECT CASE x.name WHEN '' THEN a.id ELSE a.id || '#' || x.name END, a.uuid, x.sub_id, p.name, coalesce(k.name, '')
FROM product x JOIN asset a ON a.no = x.asset JOIN platform p ON p.no = x.platform
  LEFT JOIN parcel_product m ON m.asset = x.asset AND m.sub_id = x.sub_id AND m.parcel IN (SELECT no FROM parcel WHERE platform = x.platform)
  LEFT JOIN parcel k ON k.no = m.parcel`, 0)
	if err != nil {
		return nil, err
	}
	list := make([]Resource, len(res.Rows))
	for i, row := range res.Rows {
		text := func(k int) string { s, _ := row[k].(string); return s }
		sub, _ := row[2].(int64)
		list[i] = Resource{Name: text(0), UUID: text(1), SubID: uint32(sub), Platform: text(3), Parcel: text(4)}
	}
	return list, nil
}

// Lost returns the assets, by id, whose products are not known: those that failed, and those that were not built yet.
func (r *Reader) Lost(ctx context.Context) (map[string]bool, error) {
	res, err := r.RunSQL(ctx, "SELECT id FROM asset WHERE failed OR built IS NULL", 0)
	if err != nil {
		return nil, err
	}
	lost := make(map[string]bool, len(res.Rows))
	for _, row := range res.Rows {
		if id, ok := row[0].(string); ok {
			lost[id] = true
		}
	}
	return lost, nil
}

// Packed are the products of a parcel, whose file is relative to the output folder, with all that is known of them; none if there is no
// such parcel.
func (r *Reader) Packed(ctx context.Context, file string) ([]Resource, error) {
	res, err := r.Ask(ctx, `
SELECT a.uuid, x.sub_id, a.id, coalesce(t.text, ''), lower(hex(x.hash)),
  (SELECT json_group_object(name, value) FROM product_fact f WHERE f.asset = x.asset AND f.platform = x.platform AND f.sub_id = x.sub_id),
  (SELECT json_group_object(key, json(list)) FROM
    (SELECT key, json_group_array(value) AS list FROM asset_meta m WHERE m.asset = x.asset GROUP BY key))
FROM parcel k JOIN parcel_product p ON p.parcel = k.no
  JOIN product x ON x.asset = p.asset AND x.platform = k.platform AND x.sub_id = p.sub_id
  JOIN asset a ON a.no = x.asset LEFT JOIN shared_text t ON t.no = x.processor
WHERE k.file = :file`, map[string]any{":file": file}, 0)
	if err != nil {
		return nil, err
	}
	list := make([]Resource, len(res.Rows))
	for i, row := range res.Rows {
		text := func(k int) string { s, _ := row[k].(string); return s }
		sub, _ := row[1].(int64)
		list[i] = Resource{
			UUID: text(0), SubID: uint32(sub), Asset: text(2), Processor: text(3), Hash: text(4),
			Facts: json.RawMessage(text(5)), Meta: json.RawMessage(text(6)),
		}
	}
	return list, nil
}
