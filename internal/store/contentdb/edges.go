package contentdb

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// EdgeKind is how one thing needs another.
type EdgeKind string

const (
	SourceEdge  EdgeKind = "source"  // a job read a source file, found it missing, or listed a glob
	JobEdge     EdgeKind = "job"     // a job read products of another asset's job
	ProductEdge EdgeKind = "product" // a product needs another asset's product at run time
	ToolEdge    EdgeKind = "tool"    // a job ran a program, or its processor is made of a file
)

// Edge is one dependency. It is listed once for all platforms.
type Edge struct {
	From     string   `json:"from"` // asset id
	To       string   `json:"to"`   // asset id; for source, a path or a pattern; for tool, the program or a path in the project
	Kind     EdgeKind `json:"kind"`
	Required bool     `json:"required"`      // false only for an optional product dependency
	Saw      Kind     `json:"saw,omitempty"` // for source: the kind of observation
}

// Deps returns what an asset needs, sorted. No kinds means all kinds. With all, also what that needs, along the job
// and product dependencies in kinds, with every edge on the way. The asset is given as in Run.
func (r *Reader) Deps(ctx context.Context, asset string, kinds []EdgeKind, all bool) ([]Edge, error) {
	return r.edges(ctx, depsSQL, kinds, all, func() (map[string]any, error) { return r.resolve(argAsset, asset) })
}

// Rdeps returns what needs an asset, a source file or a tool, sorted: the readers of the file (the asset's
// primary source file), and those that need the asset, or what is made by the tool. With all, also those that need them.
func (r *Reader) Rdeps(ctx context.Context, what string, kinds []EdgeKind, all bool) ([]Edge, error) {
	return r.edges(ctx, rdepsSQL, kinds, all, func() (map[string]any, error) {
		asset, err := r.assetNo(what)
		if err != nil {
			return nil, err
		}
		if asset == 0 {
			file, err := r.fileNo(what)
			if err != nil || file != 0 {
				return map[string]any{":asset": nil, ":path": file, ":tool": nil}, err
			}
			is, err := r.isTool(what)
			if err == nil && !is {
				err = r.unknownSource(what)
			}
			return map[string]any{":asset": nil, ":path": 0, ":tool": what}, err
		}
		file, err := r.first("SELECT file FROM asset WHERE no = :no", map[string]any{":no": asset})
		return map[string]any{":asset": asset, ":path": file, ":tool": nil}, err
	})
}

// isTool reports whether a job ran a program of this name, or a processor is made of this file.
func (r *Reader) isTool(name string) (bool, error) {
	if slices.ContainsFunc(r.Code, func(c [2]string) bool { return c[1] == name }) {
		return true, nil
	}
	const sql = "SELECT count(*) FROM observation WHERE kind = 'tool' AND subject IN (:name, '{project}/' || :name)"
	n, err := r.first(sql, map[string]any{":name": name})
	return n > 0, err
}

// reach follows dependencies with UNION, which skips rows that it has already, so cycles end. What a traced program read in the project is
// recorded as {project}/ and the path there.
const depsSQL = `
WITH RECURSIVE counted (no) AS (
  SELECT p.no FROM platform p WHERE :every OR p.name IN (SELECT value FROM json_each(:platforms))
), reach (asset) AS (
  SELECT :asset
  UNION
  SELECT d.on_asset FROM reach r JOIN job_dependency d ON d.asset = r.asset WHERE :all AND :job AND d.platform IN counted
  UNION
  SELECT n.no FROM reach r JOIN product_dependency d ON d.asset = r.asset JOIN asset n ON n.uuid = d.to_uuid
  WHERE :all AND :product AND d.platform IN counted
)
SELECT a.id, n.id, 'job', 1, NULL
FROM reach r JOIN job_dependency d ON d.asset = r.asset JOIN asset a ON a.no = r.asset JOIN asset n ON n.no = d.on_asset
WHERE :job AND d.platform IN counted GROUP BY a.no, n.no
UNION ALL
SELECT a.id, coalesce(n.id, d.to_uuid), 'product', max(d.required), NULL
FROM reach r JOIN product_dependency d ON d.asset = r.asset JOIN asset a ON a.no = r.asset LEFT JOIN asset n ON n.uuid = d.to_uuid
WHERE :product AND d.platform IN counted AND d.to_uuid <> a.uuid GROUP BY a.no, d.to_uuid
UNION ALL
SELECT a.id, coalesce(f.path, o.subject), 'source', 1, o.kind
FROM reach r JOIN observation o ON o.asset = r.asset JOIN asset a ON a.no = r.asset LEFT JOIN source_file f ON f.no = o.file
WHERE :source AND o.platform IN counted AND o.kind IN ('file', 'missing', 'exists', 'glob', 'listing')
GROUP BY a.no, o.kind, f.no, o.subject
UNION
SELECT a.id, iif(o.subject LIKE '{project}/%', substr(o.subject, 11), o.subject), 'tool', 1, NULL
FROM reach r JOIN observation o ON o.asset = r.asset JOIN asset a ON a.no = r.asset WHERE :tools AND o.kind = 'tool' AND o.platform IN counted
UNION
SELECT a.id, json_extract(c.value, '$[1]'), 'tool', 1, NULL
FROM reach r JOIN job j ON j.asset = r.asset JOIN shared_text s ON s.no = j.processor JOIN asset a ON a.no = r.asset
  JOIN json_each(:code) c ON json_extract(c.value, '$[0]') = s.text
WHERE :tools AND j.platform IN counted
ORDER BY 1, 3, 2, 5`

const rdepsSQL = `
WITH RECURSIVE counted (no) AS (
  SELECT p.no FROM platform p WHERE :every OR p.name IN (SELECT value FROM json_each(:platforms))
), made (asset) AS (
  SELECT o.asset FROM observation o WHERE :tools AND :tool IS NOT NULL AND o.kind = 'tool'
    AND o.subject IN (:tool, '{project}/' || :tool) AND o.platform IN counted
  UNION
  SELECT j.asset FROM json_each(:code) c JOIN shared_text s ON s.text = json_extract(c.value, '$[0]') JOIN job j ON j.processor = s.no
  WHERE :tools AND json_extract(c.value, '$[1]') = :tool AND j.platform IN counted
), reach (asset) AS (
  SELECT :asset WHERE :asset IS NOT NULL
  UNION
  SELECT o.asset FROM observation o WHERE o.file = :path AND :all AND :source AND o.platform IN counted
  UNION
  SELECT m.asset FROM made m WHERE :all
  UNION
  SELECT d.asset FROM reach r JOIN job_dependency d ON d.on_asset = r.asset WHERE :all AND :job AND d.platform IN counted
  UNION
  SELECT d.asset FROM reach r JOIN asset n ON n.no = r.asset JOIN product_dependency d ON d.to_uuid = n.uuid
  WHERE :all AND :product AND d.platform IN counted
)
SELECT a.id, n.id, 'job', 1, NULL
FROM reach r JOIN job_dependency d ON d.on_asset = r.asset JOIN asset a ON a.no = d.asset JOIN asset n ON n.no = r.asset
WHERE :job AND d.platform IN counted GROUP BY a.no, n.no
UNION ALL
SELECT a.id, n.id, 'product', max(d.required), NULL
FROM reach r JOIN asset n ON n.no = r.asset JOIN product_dependency d ON d.to_uuid = n.uuid JOIN asset a ON a.no = d.asset
WHERE :product AND d.platform IN counted AND a.no <> n.no GROUP BY a.no, n.no
UNION ALL
SELECT a.id, f.path, 'source', 1, o.kind
FROM observation o JOIN asset a ON a.no = o.asset JOIN source_file f ON f.no = o.file
WHERE :source AND o.platform IN counted AND o.file = :path GROUP BY a.no, o.kind
UNION ALL
SELECT a.id, :tool, 'tool', 1, NULL FROM made m JOIN asset a ON a.no = m.asset
ORDER BY 1, 3, 2, 5`

func (r *Reader) edges(ctx context.Context, sql string, kinds []EdgeKind, all bool, resolve func() (map[string]any, error)) ([]Edge, error) {
	wanted := func(k EdgeKind) int64 { return bit(len(kinds) == 0 || slices.Contains(kinds, k)) }
	for _, k := range kinds {
		if names := []string{string(SourceEdge), string(JobEdge), string(ProductEdge), string(ToolEdge)}; !slices.Contains(names, string(k)) {
			m := diag.Errorf(diag.QueryFailed, diag.Pos{}, "there is no kind of dependency %q", k)
			return nil, m.WithHint("kinds are source, job, product and tool")
		}
	}
	code, _ := json.Marshal(append([][2]string{}, r.Code...)) // of strings there is no error
	platforms, _ := json.Marshal(append([]string{}, r.Platforms...))
	var edges []Edge
	err := r.snapshot(ctx, func() error {
		params, err := resolve()
		if err != nil {
			return err
		}
		params[":all"], params[":source"], params[":job"], params[":product"] = bit(all), wanted(SourceEdge), wanted(JobEdge), wanted(ProductEdge)
		params[":tools"], params[":code"] = wanted(ToolEdge), string(code)
		params[":every"], params[":platforms"] = bit(len(r.Platforms) == 0), string(platforms)
		res, err := r.query(sql, params, 0)
		if err != nil {
			return err
		}
		for _, row := range res.Rows {
			e := Edge{From: row[0].(string), To: row[1].(string), Kind: EdgeKind(row[2].(string)), Required: row[3].(int64) != 0}
			if saw, ok := row[4].(string); ok {
				e.Saw = Kind(saw)
			}
			edges = append(edges, e)
		}
		return nil
	})
	return edges, err
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
