-- Indexes, apart from the tables: when everything is written anew they are dropped first and
-- made at the end, which is a sort and not a search for each row.

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
