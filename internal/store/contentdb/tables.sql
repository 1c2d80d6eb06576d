-- Tables of the content database. docs/formats/contentdb.md explains each; a change here raises Version.
-- "no" is a number that means something inside this file only; "id" is what people call the thing.

CREATE TABLE project (
  no      INTEGER PRIMARY KEY CHECK (no = 1),
  name    TEXT NOT NULL,
  output  TEXT NOT NULL, -- folder of the products, relative to the project
  kiln    TEXT NOT NULL  -- version of the Kiln that wrote this
);

CREATE TABLE root (
  no   INTEGER PRIMARY KEY, -- from 0; a later root overlays an earlier one
  path TEXT NOT NULL
);

CREATE TABLE platform (
  no   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE build (
  number   INTEGER PRIMARY KEY,
  started  TEXT NOT NULL, -- UTC, 2026-11-21T09:04:00Z
  seconds  REAL,          -- NULL: under way, or it did not finish
  assets   INTEGER,
  jobs     INTEGER,
  built    INTEGER,
  reused   INTEGER,
  failed   INTEGER,
  products INTEGER,
  bytes    INTEGER,
  compared INTEGER,       -- jobs and parts of jobs
  because  TEXT           -- why these were all; NULL: they were not
);

-- What many rows would repeat: processor names, settings, fingerprints, product types.
CREATE TABLE shared_text (
  no   INTEGER PRIMARY KEY,
  text TEXT NOT NULL
);

-- Lists that many assets share: the types of their products, the platforms that they have jobs on.
CREATE TABLE shared_list (
  no   INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE -- with ", " between
);

CREATE TABLE source_file (
  no      INTEGER PRIMARY KEY,
  path    TEXT NOT NULL,
  root    INTEGER,          -- root.no
  present INTEGER NOT NULL, -- 0: a job looked for it and it was not there
  size    INTEGER,
  hash    BLOB
);

CREATE TABLE asset (
  no        INTEGER PRIMARY KEY,
  id        TEXT NOT NULL COLLATE NOCASE,
  uuid      TEXT NOT NULL,
  file      INTEGER,         -- source_file.no of the primary source file; NULL for a folder, and where there is none
  folder    TEXT,            -- path of the folder; NULL for anything else
  processor INTEGER,         -- shared_text.no; several names with commas between
  needed    INTEGER NOT NULL, -- 0: it is in no parcel, and no other asset needs it
  failed    INTEGER NOT NULL, -- 1: a job of it failed. This and what follows is of all its jobs and products together
  built     INTEGER,          -- the last build in which a job of it ran; NULL: it has no jobs
  seconds   REAL,
  products  INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  types     INTEGER,          -- shared_list.no; of its products
  platforms INTEGER           -- shared_list.no
);

CREATE TABLE asset_meta (
  asset INTEGER NOT NULL, -- asset.no
  key   TEXT NOT NULL,
  value TEXT NOT NULL,    -- of a list, one row for each element
  PRIMARY KEY (asset, key, value)
) WITHOUT ROWID;

CREATE TABLE job (
  asset       INTEGER NOT NULL, -- asset.no
  platform    INTEGER NOT NULL, -- platform.no
  processor   INTEGER NOT NULL, -- shared_text.no; an asset may have several
  failed      INTEGER NOT NULL,
  built       INTEGER NOT NULL, -- build.number in which it ran; 0: elsewhere, taken from a cache
  cache       TEXT,             -- that cache: folder or server; NULL if it ran here, or that is not known
  reason      TEXT,             -- why it ran, in words
  seconds     REAL,
  peak_memory INTEGER,          -- bytes
  key         BLOB,
  fingerprint INTEGER,          -- shared_text.no
  settings    INTEGER,          -- shared_text.no, JSON
  PRIMARY KEY (asset, platform, processor)
) WITHOUT ROWID;

CREATE TABLE job_held ( -- the jobs that are up to date only because rules say under ignore that what changed is harmless
  asset     INTEGER NOT NULL, -- job.asset
  platform  INTEGER NOT NULL, -- job.platform
  processor INTEGER NOT NULL, -- job.processor
  PRIMARY KEY (asset, platform, processor)
) WITHOUT ROWID;

CREATE TABLE observation (
  asset     INTEGER NOT NULL, -- job.asset
  platform  INTEGER NOT NULL, -- platform.no
  seq       INTEGER NOT NULL, -- the order in which a job looked, those of one after those of another
  processor INTEGER NOT NULL, -- shared_text.no: whose job it is
  group_no  INTEGER NOT NULL, -- those that it asked for together
  kind      TEXT NOT NULL,
  file      INTEGER,          -- source_file.no for file, missing and exists; else NULL
  subject   TEXT,             -- what it looked at, if no file
  hash      BLOB,             -- of what it saw
  PRIMARY KEY (asset, platform, seq)
) WITHOUT ROWID;

CREATE TABLE job_dependency (
  asset    INTEGER NOT NULL, -- job.asset
  platform INTEGER NOT NULL, -- platform.no
  on_asset INTEGER NOT NULL, -- asset.no: its job on the same platform
  PRIMARY KEY (asset, platform, on_asset)
) WITHOUT ROWID;

CREATE TABLE product (
  asset     INTEGER NOT NULL, -- job.asset
  platform  INTEGER NOT NULL, -- platform.no
  sub_id    INTEGER NOT NULL, -- 0: the main product
  processor INTEGER NOT NULL, -- shared_text.no: that made it
  name      TEXT NOT NULL,    -- '': the main product
  type      INTEGER,          -- shared_text.no
  file      TEXT NOT NULL,    -- path below the platform's output folder
  size      INTEGER NOT NULL,
  hash      BLOB,
  PRIMARY KEY (asset, platform, sub_id)
) WITHOUT ROWID;

CREATE TABLE product_dependency (
  asset     INTEGER NOT NULL, -- product.asset
  platform  INTEGER NOT NULL, -- platform.no
  sub_id    INTEGER NOT NULL, -- product.sub_id
  to_uuid   TEXT NOT NULL,    -- asset.uuid; there may be none
  to_sub_id INTEGER NOT NULL,
  required  INTEGER NOT NULL,
  PRIMARY KEY (asset, platform, sub_id, to_uuid, to_sub_id)
) WITHOUT ROWID;

CREATE TABLE product_fact (
  asset     INTEGER NOT NULL, -- product.asset
  platform  INTEGER NOT NULL, -- product.platform
  sub_id    INTEGER NOT NULL, -- product.sub_id
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (asset, platform, sub_id, name)
) WITHOUT ROWID;

CREATE TABLE diagnostic (
  asset     INTEGER NOT NULL, -- job.asset; 0: of the project as a whole
  platform  INTEGER NOT NULL, -- platform.no; 0: likewise
  seq       INTEGER NOT NULL,
  processor INTEGER NOT NULL, -- shared_text.no; 0: likewise
  severity  TEXT NOT NULL,
  code      TEXT NOT NULL,
  file      TEXT,
  line      INTEGER,
  column    INTEGER,
  length    INTEGER,
  text      TEXT NOT NULL,
  source    TEXT,             -- the line itself, or the part around the column
  source_column INTEGER,      -- of the first character of source; NULL: 1
  hint      TEXT,
  notes     TEXT,             -- JSON list
  count     INTEGER,          -- how many others of its code it stands for, or NULL
  cause     INTEGER,          -- asset.no of "needs X, which failed"
  PRIMARY KEY (asset, platform, seq)
) WITHOUT ROWID;

CREATE TABLE parcel (
  no       INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  platform INTEGER NOT NULL, -- platform.no
  file     TEXT NOT NULL,    -- path below the output folder
  size     INTEGER NOT NULL,
  hash     BLOB
);

CREATE TABLE parcel_product (
  parcel INTEGER NOT NULL, -- parcel.no
  asset  INTEGER NOT NULL, -- asset.no
  sub_id INTEGER NOT NULL, -- product.sub_id, on the parcel's platform
  PRIMARY KEY (parcel, asset, sub_id)
) WITHOUT ROWID;
