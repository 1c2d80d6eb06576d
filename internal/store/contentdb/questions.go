package contentdb

// The named questions. With 100,000 assets each takes a few milliseconds, and some tens for an asset that has ten
// thousand users (BenchmarkQuestions; TestAnswers checks the answers). This requires:
//
//  - Rows are reduced by number before names are looked up.
//  - CROSS JOIN where the order of tables matters: SQLite then keeps it. It has no statistics about the number of rows.

// chosen are the products that an argument means: one on each platform, or the product of one file.
const chosen = `WITH chosen AS (
  SELECT asset, platform, sub_id FROM product
  WHERE file = :file AND (:platform IS NULL OR platform = :platform)
  UNION
  SELECT asset, platform, sub_id FROM product WHERE asset = :asset AND sub_id = :sub_id
)
`

// questions in the order of display.
var questions = []Query{
	{"assets", nil, "What source content is part of this project?",
		`SELECT asset, processor, state, products, bytes, path, uuid FROM assets ORDER BY asset`},

	{"asset-files", []string{argAsset}, "Which source files does it read? Also what it looked for and did not find, and what it listed.", `
SELECT coalesce(f.path, o.subject) AS path, o.kind, f.present, f.size, group_concat(p.name, ' ') AS platforms
FROM (SELECT DISTINCT platform, kind, file, subject FROM observation
    WHERE asset = :asset AND kind IN ('file', 'missing', 'exists', 'glob', 'listing') ORDER BY platform) o
  JOIN platform p ON p.no = o.platform LEFT JOIN source_file f ON f.no = o.file
GROUP BY o.kind, o.file, o.subject
ORDER BY path, o.kind`},

	{"asset-references", []string{argAsset}, "Which source content does it reference, and how: its job reads products (job), its product needs a product at run time (product), its job reads the other's source file (source)?", `
SELECT n.id AS asset, r.kind, r.required FROM (
  SELECT DISTINCT on_asset AS no, 'job' AS kind, 1 AS required FROM job_dependency WHERE asset = :asset
  UNION ALL
  SELECT n.no, 'product', max(d.required) FROM product_dependency d JOIN asset n ON n.uuid = d.to_uuid WHERE d.asset = :asset GROUP BY n.no
  UNION ALL
  SELECT DISTINCT n.no, 'source', 1 FROM observation o JOIN asset n ON n.file = o.file WHERE o.asset = :asset) r
  CROSS JOIN asset n ON n.no = r.no
WHERE r.no <> :asset
ORDER BY asset, kind`},

	{"referenced-by", []string{argAsset}, "Which source content references it?", `
SELECT a.id AS asset, r.kind, r.required FROM (
  SELECT DISTINCT asset AS no, 'job' AS kind, 1 AS required FROM job_dependency WHERE on_asset = :asset
  UNION ALL
  SELECT asset, 'product', max(required) FROM product_dependency WHERE to_uuid = (SELECT uuid FROM asset WHERE no = :asset) GROUP BY asset
  UNION ALL
  SELECT DISTINCT asset, 'source', 1 FROM observation WHERE file = (SELECT file FROM asset WHERE no = :asset)) r
  CROSS JOIN asset a ON a.no = r.no
WHERE r.no <> :asset
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
FROM chosen c CROSS JOIN parcel_product m ON m.asset = c.asset AND m.sub_id = c.sub_id
  CROSS JOIN parcel k ON k.no = m.parcel AND k.platform = c.platform AND k.file <> ''
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
WITH RECURSIVE reach (asset, platform, direct) AS (
  SELECT asset, platform, 1 FROM product WHERE file = :file AND (:platform IS NULL OR platform = :platform)
  UNION
  SELECT m.asset, k.platform, 1 FROM parcel k CROSS JOIN parcel_product m ON m.parcel = k.no WHERE k.file = :parcel
  UNION
  SELECT d.on_asset, d.platform, 0 FROM reach JOIN job_dependency d USING (asset, platform)
), origin AS (
  SELECT asset, platform, max(direct) AS direct FROM reach GROUP BY asset, platform
)
SELECT p.name AS platform, a.id AS asset, s.text AS processor, f.path AS source, o.direct
FROM origin o CROSS JOIN asset a ON a.no = o.asset CROSS JOIN platform p ON p.no = o.platform
  LEFT JOIN shared_text s ON s.no = a.processor
  LEFT JOIN observation b ON b.asset = o.asset AND b.platform = o.platform AND b.kind = 'file'
  LEFT JOIN source_file f ON f.no = b.file
GROUP BY o.platform, o.asset, b.file
ORDER BY platform, direct DESC, asset, source`},

	{"needs-rebuild", []string{argAsset}, "Does it need to be rebuilt, and why? This SQL answers by the records of the last build; `kiln query` and `kiln why` compare the files as they are now.", `
SELECT p.name AS platform,
  CASE WHEN j.asset IS NULL THEN 'yes' WHEN d.why IS NOT NULL THEN 'yes' WHEN j.failed THEN 'when it changes' ELSE 'no' END AS rebuild,
  CASE WHEN j.asset IS NULL THEN 'it was not built for ' || p.name
       WHEN d.why IS NOT NULL THEN d.why
       WHEN j.failed THEN 'it failed in build ' || j.built || coalesce(': ' || (
         SELECT g.text FROM diagnostic g WHERE g.asset = j.asset AND g.platform = j.platform AND g.processor = j.processor AND g.severity = 'error' ORDER BY g.seq LIMIT 1), '')
       WHEN j.built = 0 THEN 'up to date, taken from the cache' || coalesce(' ' || j.cache, '')
       ELSE 'up to date since build ' || j.built END AS why, s.text AS processor
FROM platform p LEFT JOIN job j ON j.platform = p.no AND j.asset = :asset LEFT JOIN shared_text s ON s.no = j.processor
  LEFT JOIN (
    SELECT o.platform, o.processor, min(o.seq), CASE WHEN o.kind = 'missing' THEN f.path || ' was missing and is there now'
      WHEN f.present = 0 THEN f.path || ' was removed' ELSE f.path || ' has other content' END AS why
    FROM observation o JOIN source_file f ON f.no = o.file
    WHERE o.asset = :asset AND (
      o.kind = 'missing' AND f.present = 1 OR o.kind IN ('file', 'exists') AND f.present = 0 OR o.kind = 'file' AND f.hash <> o.hash)
    GROUP BY o.platform, o.processor) d ON d.platform = p.no AND d.processor = j.processor
ORDER BY platform, processor`},

	{"unused", nil, "Which assets are in no parcel and needed by nothing?", `
SELECT a.id AS asset, s.text AS processor,
  (SELECT coalesce(sum(x.size), 0) FROM product x WHERE x.asset = a.no) AS bytes
FROM asset a LEFT JOIN shared_text s ON s.no = a.processor
WHERE a.needed = 0 ORDER BY a.id`},

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
  SELECT cause, platform, asset FROM diagnostic WHERE cause IS NOT NULL AND processor <> 0
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

	{"placeholders", nil, "Which products are placeholders, of assets that failed?", `
SELECT a.id AS asset, p.name AS platform, x.name, (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file
FROM diagnostic d JOIN product x ON x.asset = d.asset AND x.platform = d.platform AND x.processor = d.processor
  JOIN asset a ON a.no = d.asset JOIN platform p ON p.no = d.platform
WHERE d.code = 'K0224' ORDER BY asset, platform, x.name`},
}
