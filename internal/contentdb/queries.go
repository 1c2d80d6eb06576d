package contentdb

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/diag"
)

// Query is a question with a name.
type Query struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // what each argument is: "asset", "product", "path"
	Doc  string   `json:"doc"`
	SQL  string   `json:"sql"`
}

// What the parameters in a Query's SQL stand for.
const (
	argAsset   = "asset"   // :asset
	argProduct = "product" // :asset and :sub_id, or :file and :platform (NULL: any)
	argPath    = "path"    // :file and :platform, :parcel
)

// chosen are the products that an argument means: one on each platform, or that of one file.
const chosen = `WITH chosen AS (
  SELECT asset, platform, sub_id FROM product
  WHERE file = :file AND (:platform IS NULL OR platform = :platform)
  UNION
  SELECT asset, platform, sub_id FROM product WHERE asset = :asset AND sub_id = :sub_id
)
`

// Queries are the named questions.
func Queries() []Query {
	return []Query{
		{"assets", nil, "What source content is part of this project?",
			`SELECT asset, processor, state, products, bytes, path, uuid FROM assets ORDER BY asset`},

		{"asset-files", []string{argAsset}, "Which source files does it read? Also what it looked for and did not find, and what it listed.", `
SELECT DISTINCT coalesce(f.path, o.subject) AS path, o.kind, f.present, f.size,
  (SELECT group_concat(name, ' ') FROM (SELECT DISTINCT p.name FROM observation q JOIN platform p ON p.no = q.platform
    WHERE q.asset = o.asset AND q.kind = o.kind AND q.file IS o.file AND q.subject IS o.subject)) AS platforms
FROM observation o LEFT JOIN source_file f ON f.no = o.file
WHERE o.asset = :asset AND o.kind IN ('file', 'missing', 'exists', 'glob', 'listing')
ORDER BY path, o.kind`},

		{"asset-references", []string{argAsset}, "Which source content does it reference, and how: its job reads products (job), its product needs a product at run time (product), its job reads the other's source file (source)?", `
SELECT needs AS asset, kind, required FROM (
  SELECT DISTINCT n.id AS needs, 'job' AS kind, 1 AS required
  FROM job_dependency d JOIN asset n ON n.no = d.on_asset WHERE d.asset = :asset
  UNION ALL
  SELECT n.id, 'product', max(d.required)
  FROM product_dependency d JOIN asset n ON n.uuid = d.to_uuid WHERE d.asset = :asset AND n.no <> :asset GROUP BY n.no
  UNION ALL
  SELECT DISTINCT n.id, 'source', 1
  FROM observation o JOIN asset n ON n.file = o.file WHERE o.asset = :asset AND n.no <> :asset)
ORDER BY asset, kind`},

		{"referenced-by", []string{argAsset}, "Which source content references it?", `
SELECT asset, kind, required FROM (
  SELECT DISTINCT a.id AS asset, 'job' AS kind, 1 AS required
  FROM job_dependency d JOIN asset a ON a.no = d.asset WHERE d.on_asset = :asset
  UNION ALL
  SELECT a.id, 'product', max(d.required)
  FROM asset n JOIN product_dependency d ON d.to_uuid = n.uuid JOIN asset a ON a.no = d.asset
  WHERE n.no = :asset AND a.no <> :asset GROUP BY a.no
  UNION ALL
  SELECT DISTINCT a.id, 'source', 1
  FROM asset n JOIN observation o ON o.file = n.file JOIN asset a ON a.no = o.asset WHERE n.no = :asset AND a.no <> :asset)
ORDER BY asset, kind`},

		{"asset-products", []string{argAsset}, "Which products come from it, for which platform?", `
SELECT p.name AS platform, x.name, t.text AS type,
  (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file, x.size, nullif(lower(hex(x.hash)), '') AS hash, x.sub_id, s.text AS processor
FROM product x JOIN platform p ON p.no = x.platform LEFT JOIN shared_text t ON t.no = x.type LEFT JOIN shared_text s ON s.no = x.processor
WHERE x.asset = :asset ORDER BY platform, x.name`},

		{"product-files", []string{argProduct}, "Which files hold this product: loose, and in parcels?", chosen + `
SELECT p.name AS platform, 'loose' AS kind, (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file, x.size
FROM chosen c JOIN product x USING (asset, platform, sub_id) JOIN platform p ON p.no = c.platform
UNION ALL
SELECT p.name, 'parcel ' || k.name, (SELECT output FROM project) || '/' || k.file, k.size
FROM chosen c JOIN parcel_product m USING (asset, sub_id) JOIN parcel k ON k.no = m.parcel AND k.platform = c.platform AND k.file <> ''
  JOIN platform p ON p.no = c.platform
ORDER BY platform, kind`},

		{"product-dependencies", []string{argProduct}, "What does this product need at run time, required and optional?", chosen + `
SELECT p.name AS platform, n.id AS asset, y.name, (SELECT output FROM project) || '/' || p.name || '/' || y.file AS file,
  d.required, d.to_uuid AS uuid, d.to_sub_id AS sub_id
FROM chosen c JOIN product_dependency d USING (asset, platform, sub_id) JOIN platform p ON p.no = c.platform
  LEFT JOIN asset n ON n.uuid = d.to_uuid
  LEFT JOIN product y ON y.asset = n.no AND y.platform = d.platform AND y.sub_id = d.to_sub_id
ORDER BY platform, d.required DESC, asset, y.name`},

		{"product-dependents", []string{argProduct}, "Which products need this one at run time, required and optional?", chosen + `
SELECT p.name AS platform, a.id AS asset, x.name, (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file, d.required
FROM chosen c JOIN asset n ON n.no = c.asset
  JOIN product_dependency d ON d.to_uuid = n.uuid AND d.to_sub_id = c.sub_id AND d.platform = c.platform
  JOIN product x ON x.asset = d.asset AND x.platform = d.platform AND x.sub_id = d.sub_id
  JOIN asset a ON a.no = d.asset JOIN platform p ON p.no = d.platform
ORDER BY platform, d.required DESC, asset, x.name`},

		{"file-origin", []string{argPath}, "From which source content is this output file derived: its asset, the assets whose products went into it, and the source files that they read?", `
WITH RECURSIVE made (asset, platform) AS (
  SELECT asset, platform FROM product WHERE file = :file AND (:platform IS NULL OR platform = :platform)
  UNION
  SELECT m.asset, k.platform FROM parcel k JOIN parcel_product m ON m.parcel = k.no WHERE k.file = :parcel
), origin (asset, platform) AS (
  SELECT asset, platform FROM made
  UNION
  SELECT d.on_asset, d.platform FROM origin JOIN job_dependency d USING (asset, platform)
)
SELECT p.name AS platform, a.id AS asset, s.text AS processor, f.path AS source,
  EXISTS (SELECT 1 FROM made m WHERE m.asset = o.asset AND m.platform = o.platform) AS direct
FROM origin o JOIN asset a ON a.no = o.asset JOIN platform p ON p.no = o.platform
  LEFT JOIN shared_text s ON s.no = a.processor
  LEFT JOIN observation b ON b.asset = o.asset AND b.platform = o.platform AND b.kind = 'file'
  LEFT JOIN source_file f ON f.no = b.file
GROUP BY o.platform, o.asset, b.file
ORDER BY platform, direct DESC, asset, source`},

		{"needs-rebuild", []string{argAsset}, "Does it need to be rebuilt, and why? By the records of the last build; `kiln why` looks at the files as they are now.", `
SELECT p.name AS platform,
  CASE WHEN j.asset IS NULL THEN 'yes' WHEN d.why IS NOT NULL THEN 'yes' WHEN j.failed THEN 'when it changes' ELSE 'no' END AS rebuild,
  CASE WHEN j.asset IS NULL THEN 'it was not built for ' || p.name
       WHEN d.why IS NOT NULL THEN d.why
       WHEN j.failed THEN 'it failed in build ' || j.built || coalesce(': ' || (
         SELECT g.text FROM diagnostic g WHERE g.asset = j.asset AND g.platform = j.platform AND g.processor = j.processor AND g.severity = 'error' ORDER BY g.seq LIMIT 1), '')
       WHEN j.built = 0 THEN 'up to date, taken from a cache'
       ELSE 'up to date since build ' || j.built END AS why, s.text AS processor
FROM platform p LEFT JOIN job j ON j.platform = p.no AND j.asset = :asset LEFT JOIN shared_text s ON s.no = j.processor
  LEFT JOIN (
    SELECT o.platform, o.processor, min(o.seq), CASE WHEN o.kind = 'missing' THEN f.path || ' was missing and is there now'
      WHEN f.present = 0 THEN f.path || ' is gone' ELSE f.path || ' has other content' END AS why
    FROM observation o JOIN source_file f ON f.no = o.file
    WHERE o.asset = :asset AND (
      o.kind = 'missing' AND f.present = 1 OR o.kind IN ('file', 'exists') AND f.present = 0 OR o.kind = 'file' AND f.hash <> o.hash)
    GROUP BY o.platform, o.processor) d ON d.platform = p.no AND d.processor = j.processor
ORDER BY platform, processor`},

		{"unused", nil, "Which assets are in no parcel and needed by nothing?", `
SELECT a.id AS asset, s.text AS processor,
  (SELECT coalesce(sum(x.size), 0) FROM product x WHERE x.asset = a.no) AS bytes
FROM asset a LEFT JOIN shared_text s ON s.no = a.processor
WHERE NOT EXISTS (SELECT 1 FROM parcel_product m WHERE m.asset = a.no)
  AND NOT EXISTS (SELECT 1 FROM job_dependency d WHERE d.on_asset = a.no AND d.asset <> a.no)
  AND NOT EXISTS (SELECT 1 FROM product_dependency d WHERE d.to_uuid = a.uuid AND d.asset <> a.no)
  AND NOT EXISTS (SELECT 1 FROM observation o WHERE o.file = a.file AND o.asset <> a.no)
ORDER BY asset`},

		{"largest", nil, "Where do bytes go? The hundred largest products.", `
SELECT x.size, (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file, t.text AS type, a.id AS asset
FROM (SELECT * FROM product ORDER BY size DESC LIMIT 100) x JOIN asset a ON a.no = x.asset
  JOIN platform p ON p.no = x.platform LEFT JOIN shared_text t ON t.no = x.type
ORDER BY x.size DESC, file`},

		{"slowest", nil, "Where do seconds go? The hundred slowest jobs, as they last ran.", `
SELECT j.seconds, a.id AS asset, p.name AS platform, s.text AS processor, j.peak_memory, j.built
FROM (SELECT * FROM job ORDER BY seconds DESC LIMIT 100) j JOIN asset a ON a.no = j.asset
  JOIN platform p ON p.no = j.platform LEFT JOIN shared_text s ON s.no = j.processor
ORDER BY j.seconds DESC, asset, platform`},

		{"failures", nil, "What failed last time, root causes first? fails counts the assets that each drags down.", `
WITH RECURSIVE drag (root, platform, asset) AS (
  SELECT cause, platform, asset FROM diagnostic WHERE cause IS NOT NULL
  UNION
  SELECT g.root, d.platform, d.asset FROM drag g JOIN diagnostic d ON d.cause = g.asset AND d.platform = g.platform
), load AS (
  SELECT root, platform, count(*) AS fails FROM drag WHERE asset <> root GROUP BY root, platform
)
SELECT a.id AS asset, p.name AS platform, d.code, d.file, d.line, d.column, d.text, d.hint,
  coalesce(l.fails, 0) AS fails, c.id AS needs
FROM diagnostic d LEFT JOIN asset a ON a.no = d.asset LEFT JOIN platform p ON p.no = d.platform
  LEFT JOIN asset c ON c.no = d.cause LEFT JOIN load l ON l.root = d.asset AND l.platform = d.platform
WHERE d.severity = 'error'
ORDER BY d.cause IS NOT NULL, fails DESC, asset, platform, d.seq`},
	}
}

// Run answers a named question. At most limit rows are read; 0 is all of them. Errors for people are
// messages K0216 (no such question, wrong arguments, nothing of that name) and K0219.
func (r *Reader) Run(ctx context.Context, name string, args []string, limit int) (*Result, error) {
	q, err := find(name, args)
	if err != nil {
		return nil, err
	}
	var res *Result
	err = r.snapshot(ctx, func() error {
		params := map[string]any{}
		if len(q.Args) == 1 {
			if params, err = r.resolve(q.Args[0], args[0]); err != nil {
				return err
			}
		}
		res, err = r.query(q.SQL, params, limit)
		return err
	})
	return res, err
}

// find is the question of that name, if the arguments fit it.
func find(name string, args []string) (Query, error) {
	var names []string
	for _, q := range Queries() {
		if q.Name != name {
			names = append(names, q.Name)
			continue
		}
		if len(args) != len(q.Args) {
			usage := strings.ToUpper(strings.Join(append([]string{""}, q.Args...), " "))
			takes := map[int]string{0: "no argument", 1: "one argument"}[len(q.Args)]
			return q, diag.Errorf(diag.QueryFailed, diag.Pos{}, "query %s takes %s and got %d", name, takes, len(args)).
				WithHint("kiln query %s%s", name, usage)
		}
		return q, nil
	}
	m := diag.Errorf(diag.QueryFailed, diag.Pos{}, "there is no query %q", name)
	if hint := diag.DidYouMean(name, names); hint != "" {
		return Query{}, m.WithHint("%s", hint)
	}
	return Query{}, m.WithHint("`kiln query --list` names them")
}

// resolve turns an argument into the parameters of a question.
func (r *Reader) resolve(kind, arg string) (map[string]any, error) {
	switch kind {
	case argAsset:
		no, err := r.assetNo(arg)
		if err == nil && no == 0 {
			err = r.unknownAsset(arg)
		}
		return map[string]any{":asset": no}, err
	case argProduct:
		return r.resolveProduct(arg)
	default:
		params, err := r.resolveFile(arg)
		if err != nil || params != nil {
			return params, err
		}
		return nil, r.unknownFile(arg)
	}
}

// resolveProduct takes uuid:subid or an output file.
func (r *Reader) resolveProduct(arg string) (map[string]any, error) {
	if uuid, sub, ok := strings.Cut(arg, ":"); ok && len(uuid) == 36 {
		var subID uint32
		if n, err := fmt.Sscan(sub, &subID); n == 1 && err == nil {
			no, err := r.first("SELECT x.asset FROM asset a JOIN product x ON x.asset = a.no WHERE a.uuid = :arg AND x.sub_id = :sub",
				map[string]any{":arg": strings.ToLower(uuid), ":sub": int64(subID)})
			if err == nil && no == 0 {
				err = diag.Errorf(diag.QueryFailed, diag.Pos{}, "no product has the id %s", arg).
					WithHint("`kiln query asset-products ASSET` shows ids")
			}
			return map[string]any{":asset": no, ":sub_id": int64(subID), ":file": nil, ":platform": nil}, err
		}
	}
	params, err := r.resolveFile(arg)
	if err != nil {
		return nil, err
	}
	if params == nil || params[":parcel"] != nil {
		return nil, r.unknownFile(arg)
	}
	return params, nil
}
