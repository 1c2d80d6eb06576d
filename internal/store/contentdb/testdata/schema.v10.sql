


CREATE TABLE project (
  no      INTEGER PRIMARY KEY CHECK (no = 1),
  name    TEXT NOT NULL,
  output  TEXT NOT NULL,
  kiln    TEXT NOT NULL
);

CREATE TABLE root (
  no   INTEGER PRIMARY KEY,
  path TEXT NOT NULL
);

CREATE TABLE platform (
  no   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE build (
  number   INTEGER PRIMARY KEY,
  started  TEXT NOT NULL,
  seconds  REAL,
  assets   INTEGER,
  jobs     INTEGER,
  built    INTEGER,
  reused   INTEGER,
  failed   INTEGER,
  products INTEGER,
  bytes    INTEGER,
  compared INTEGER,
  because  TEXT
);


CREATE TABLE shared_text (
  no   INTEGER PRIMARY KEY,
  text TEXT NOT NULL
);


CREATE TABLE shared_list (
  no   INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
);

CREATE TABLE source_file (
  no      INTEGER PRIMARY KEY,
  path    TEXT NOT NULL,
  root    INTEGER,
  present INTEGER NOT NULL,
  size    INTEGER,
  hash    BLOB
);

CREATE TABLE asset (
  no        INTEGER PRIMARY KEY,
  id        TEXT NOT NULL COLLATE NOCASE,
  uuid      TEXT NOT NULL,
  file      INTEGER,
  folder    TEXT,
  processor INTEGER,
  needed    INTEGER NOT NULL,
  failed    INTEGER NOT NULL,
  built     INTEGER,
  seconds   REAL,
  products  INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  types     INTEGER,
  platforms INTEGER
);

CREATE TABLE asset_meta (
  asset INTEGER NOT NULL,
  key   TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (asset, key, value)
) WITHOUT ROWID;

CREATE TABLE job (
  asset       INTEGER NOT NULL,
  platform    INTEGER NOT NULL,
  processor   INTEGER NOT NULL,
  failed      INTEGER NOT NULL,
  built       INTEGER NOT NULL,
  cache       TEXT,
  reason      TEXT,
  seconds     REAL,
  peak_memory INTEGER,
  key         BLOB,
  fingerprint INTEGER,
  settings    INTEGER,
  PRIMARY KEY (asset, platform, processor)
) WITHOUT ROWID;

CREATE TABLE job_held (
  asset     INTEGER NOT NULL,
  platform  INTEGER NOT NULL,
  processor INTEGER NOT NULL,
  PRIMARY KEY (asset, platform, processor)
) WITHOUT ROWID;

CREATE TABLE observation (
  asset     INTEGER NOT NULL,
  platform  INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  processor INTEGER NOT NULL,
  group_no  INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  file      INTEGER,
  subject   TEXT,
  hash      BLOB,
  PRIMARY KEY (asset, platform, seq)
) WITHOUT ROWID;

CREATE TABLE job_dependency (
  asset    INTEGER NOT NULL,
  platform INTEGER NOT NULL,
  on_asset INTEGER NOT NULL,
  PRIMARY KEY (asset, platform, on_asset)
) WITHOUT ROWID;

CREATE TABLE product (
  asset     INTEGER NOT NULL,
  platform  INTEGER NOT NULL,
  sub_id    INTEGER NOT NULL,
  processor INTEGER NOT NULL,
  name      TEXT NOT NULL,
  type      INTEGER,
  file      TEXT NOT NULL,
  size      INTEGER NOT NULL,
  hash      BLOB,
  PRIMARY KEY (asset, platform, sub_id)
) WITHOUT ROWID;

CREATE TABLE product_dependency (
  asset     INTEGER NOT NULL,
  platform  INTEGER NOT NULL,
  sub_id    INTEGER NOT NULL,
  to_uuid   TEXT NOT NULL,
  to_sub_id INTEGER NOT NULL,
  required  INTEGER NOT NULL,
  PRIMARY KEY (asset, platform, sub_id, to_uuid, to_sub_id)
) WITHOUT ROWID;

CREATE TABLE product_fact (
  asset     INTEGER NOT NULL,
  platform  INTEGER NOT NULL,
  sub_id    INTEGER NOT NULL,
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (asset, platform, sub_id, name)
) WITHOUT ROWID;

CREATE TABLE diagnostic (
  asset     INTEGER NOT NULL,
  platform  INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  processor INTEGER NOT NULL,
  severity  TEXT NOT NULL,
  code      TEXT NOT NULL,
  file      TEXT,
  line      INTEGER,
  column    INTEGER,
  length    INTEGER,
  text      TEXT NOT NULL,
  source    TEXT,
  source_column INTEGER,
  hint      TEXT,
  notes     TEXT,
  count     INTEGER,
  cause     INTEGER,
  PRIMARY KEY (asset, platform, seq)
) WITHOUT ROWID;

CREATE TABLE parcel (
  no       INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  platform INTEGER NOT NULL,
  file     TEXT NOT NULL,
  size     INTEGER NOT NULL,
  hash     BLOB
);

CREATE TABLE parcel_product (
  parcel INTEGER NOT NULL,
  asset  INTEGER NOT NULL,
  sub_id INTEGER NOT NULL,
  PRIMARY KEY (parcel, asset, sub_id)
) WITHOUT ROWID;



CREATE UNIQUE INDEX shared_text_text ON shared_text (text);
CREATE UNIQUE INDEX source_file_path ON source_file (path);
CREATE INDEX source_file_missing ON source_file (no) WHERE present = 0;
CREATE INDEX asset_list ON asset (id, failed, built, processor, types, platforms, bytes, seconds);
CREATE INDEX asset_kind ON asset (processor, types, platforms, failed, built);
CREATE INDEX asset_uuid ON asset (uuid);
CREATE INDEX asset_file ON asset (file) WHERE file IS NOT NULL;
CREATE INDEX asset_unused ON asset (id) WHERE needed = 0;
CREATE INDEX asset_folder ON asset (folder) WHERE folder IS NOT NULL;
CREATE INDEX asset_meta_key ON asset_meta (key, value);
CREATE INDEX job_failed ON job (asset, platform) WHERE failed = 1;
CREATE INDEX job_seconds ON job (seconds);
CREATE INDEX observation_file ON observation (file) WHERE file IS NOT NULL;
CREATE INDEX job_dependency_on ON job_dependency (on_asset);
CREATE INDEX product_file ON product (file);
CREATE INDEX product_size ON product (size);
CREATE INDEX product_dependency_to ON product_dependency (to_uuid, to_sub_id, required);
CREATE INDEX diagnostic_cause ON diagnostic (cause) WHERE cause IS NOT NULL;
CREATE INDEX parcel_file ON parcel (file);
CREATE INDEX parcel_product_asset ON parcel_product (asset);


CREATE VIEW files AS
SELECT f.path, r.path AS root, f.present, f.size, nullif(lower(hex(f.hash)), '') AS hash
FROM source_file f LEFT JOIN root r ON r.no = f.root;

CREATE VIEW jobs AS
SELECT a.id AS asset, p.name AS platform, proc.text AS processor,
  CASE WHEN j.failed THEN 'failed'
       WHEN EXISTS (SELECT 1 FROM job_held h WHERE h.asset = j.asset AND h.platform = j.platform AND h.processor = j.processor) THEN 'held by ignore'
       WHEN j.built = (SELECT max(number) FROM build WHERE seconds IS NOT NULL) THEN 'built'
       ELSE 'up to date' END AS state,
  j.built, j.cache, j.reason, j.seconds, j.peak_memory,
  nullif(lower(hex(j.key)), '') AS key, fp.text AS fingerprint, st.text AS settings
FROM job j JOIN asset a ON a.no = j.asset JOIN platform p ON p.no = j.platform
  LEFT JOIN shared_text proc ON proc.no = j.processor
  LEFT JOIN shared_text fp ON fp.no = j.fingerprint
  LEFT JOIN shared_text st ON st.no = j.settings;

CREATE VIEW assets AS
SELECT a.id AS asset, a.uuid, coalesce(f.path, a.folder) AS path, a.folder IS NOT NULL AS folder,
  proc.text AS processor,
  CASE WHEN a.failed THEN 'failed'
       WHEN EXISTS (SELECT 1 FROM job_held h WHERE h.asset = a.no) THEN 'held by ignore'
       WHEN a.built = (SELECT max(number) FROM build WHERE seconds IS NOT NULL) THEN 'built'
       WHEN a.built IS NULL THEN 'not built' ELSE 'up to date' END AS state,
  a.products, a.bytes, a.seconds, a.needed, t.text AS types, p.text AS platforms
FROM asset a LEFT JOIN source_file f ON f.no = a.file
  LEFT JOIN shared_text proc ON proc.no = a.processor
  LEFT JOIN shared_list t ON t.no = a.types LEFT JOIN shared_list p ON p.no = a.platforms;

CREATE VIEW asset_metas AS
SELECT a.id AS asset, m.key, m.value
FROM asset_meta m JOIN asset a ON a.no = m.asset;

CREATE VIEW observations AS
SELECT a.id AS asset, p.name AS platform, o.seq, o.group_no, o.kind,
  coalesce(f.path, o.subject) AS subject, nullif(lower(hex(o.hash)), '') AS hash, proc.text AS processor
FROM observation o JOIN asset a ON a.no = o.asset JOIN platform p ON p.no = o.platform
  LEFT JOIN shared_text proc ON proc.no = o.processor
  LEFT JOIN source_file f ON f.no = o.file;

CREATE VIEW products AS
SELECT a.id AS asset, p.name AS platform, x.name, t.text AS type,
  (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file,
  x.size, nullif(lower(hex(x.hash)), '') AS hash, a.uuid, x.sub_id, proc.text AS processor
FROM product x JOIN asset a ON a.no = x.asset JOIN platform p ON p.no = x.platform
  LEFT JOIN shared_text t ON t.no = x.type
  LEFT JOIN shared_text proc ON proc.no = x.processor;

CREATE VIEW product_facts AS
SELECT a.id AS asset, p.name AS platform, x.name AS product,
  (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file, f.name AS fact, f.value
FROM product_fact f JOIN product x USING (asset, platform, sub_id) JOIN asset a ON a.no = f.asset JOIN platform p ON p.no = f.platform;

CREATE VIEW job_dependencies AS
SELECT a.id AS asset, p.name AS platform, n.id AS needs
FROM job_dependency d JOIN asset a ON a.no = d.asset JOIN platform p ON p.no = d.platform
  JOIN asset n ON n.no = d.on_asset;

CREATE VIEW product_dependencies AS
SELECT a.id AS asset, p.name AS platform, x.name,
  (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file, d.required,
  n.id AS needs, y.name AS needs_name, (SELECT output FROM project) || '/' || p.name || '/' || y.file AS needs_file,
  d.to_uuid AS needs_uuid, d.to_sub_id AS needs_sub_id
FROM product_dependency d JOIN asset a ON a.no = d.asset JOIN platform p ON p.no = d.platform
  JOIN product x ON x.asset = d.asset AND x.platform = d.platform AND x.sub_id = d.sub_id
  LEFT JOIN asset n ON n.uuid = d.to_uuid
  LEFT JOIN product y ON y.asset = n.no AND y.platform = d.platform AND y.sub_id = d.to_sub_id;


CREATE VIEW asset_references AS
SELECT DISTINCT a.id AS asset, n.id AS needs, 'job' AS kind, 1 AS required
FROM job_dependency d JOIN asset a ON a.no = d.asset JOIN asset n ON n.no = d.on_asset
UNION ALL
SELECT a.id, n.id, 'product', max(d.required)
FROM product_dependency d JOIN asset a ON a.no = d.asset JOIN asset n ON n.uuid = d.to_uuid
WHERE n.no <> a.no GROUP BY a.id, n.id
UNION ALL
SELECT DISTINCT a.id, n.id, 'source', 1
FROM observation o JOIN asset a ON a.no = o.asset JOIN asset n ON n.file = o.file
WHERE n.no <> a.no;

CREATE VIEW diagnostics AS
SELECT a.id AS asset, p.name AS platform, d.severity, d.code, d.file, d.line, d.column, d.text, d.hint, d.notes,
  c.id AS cause, proc.text AS processor
FROM diagnostic d LEFT JOIN asset a ON a.no = d.asset LEFT JOIN platform p ON p.no = d.platform
  LEFT JOIN asset c ON c.no = d.cause
  LEFT JOIN shared_text proc ON proc.no = d.processor;

CREATE VIEW parcels AS
SELECT c.name AS parcel, p.name AS platform, (SELECT output FROM project) || '/' || c.file AS file, c.size,
  nullif(lower(hex(c.hash)), '') AS hash, (SELECT count(*) FROM parcel_product x WHERE x.parcel = c.no) AS products
FROM parcel c JOIN platform p ON p.no = c.platform;

CREATE VIEW parcel_products AS
SELECT c.name AS parcel, p.name AS platform, a.id AS asset, x.name,
  (SELECT output FROM project) || '/' || p.name || '/' || x.file AS file, x.size
FROM parcel_product m JOIN parcel c ON c.no = m.parcel JOIN platform p ON p.no = c.platform
  JOIN asset a ON a.no = m.asset
  LEFT JOIN product x ON x.asset = m.asset AND x.platform = c.platform AND x.sub_id = m.sub_id;
