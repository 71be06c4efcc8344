-- A selector by labels reads the labels of a workload, and not its manifest. The database
-- writes them, so queue-managers older than this migration run on with it. It blocks them for
-- moments only: rows that are there get their labels in steps, each a transaction of its own.

-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE manifests ADD COLUMN IF NOT EXISTS labels jsonb;
ALTER TABLE archive ADD COLUMN IF NOT EXISTS labels jsonb;

-- The labels of a manifest as texts; of several objects those of the first. What no selector
-- can name is left out.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION labels_of(manifest json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found json;
BEGIN
    found := coalesce(manifest #> '{metadata,labels}', manifest #> '{items,0,object,metadata,labels}');
    IF json_typeof(found) = 'object' THEN
        RETURN coalesce((SELECT jsonb_object_agg(key, value) FROM json_each_text(found)
            WHERE value IS NOT NULL AND length(key) <= 317 AND length(value) <= 63), '{}');
    END IF;
    RETURN '{}';
EXCEPTION WHEN untranslatable_character THEN
    RETURN '{}'; -- a text of Postgres has no character of number 0
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION note_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.labels := labels_of(NEW.manifest);
    RETURN NEW;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_class c ON c.oid = 'leader'::regclass AND c.relnamespace = p.pronamespace
        WHERE p.proowner = c.relowner AND p.proname = 'note_labels' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s, pg_temp', f, current_setting('search_path'));
    END LOOP;
END $$;
-- +goose StatementEnd
DROP TRIGGER IF EXISTS labelled ON manifests;
CREATE TRIGGER labelled BEFORE INSERT ON manifests FOR EACH ROW EXECUTE FUNCTION note_labels();
DROP TRIGGER IF EXISTS labelled ON archive;
CREATE TRIGGER labelled BEFORE INSERT ON archive FOR EACH ROW EXECUTE FUNCTION note_labels();

-- +goose StatementBegin
DO $$
DECLARE
    behind uuid := '00000000-0000-0000-0000-000000000000';
    upto uuid;
BEGIN
    LOOP
        PERFORM assert_leader((SELECT epoch FROM leader)); -- for this step
        SELECT workload INTO upto FROM (SELECT workload FROM manifests WHERE workload > behind ORDER BY workload LIMIT 2000) s
            ORDER BY workload DESC LIMIT 1;
        EXIT WHEN upto IS NULL;
        UPDATE manifests SET labels = labels_of(manifest) WHERE workload > behind AND workload <= upto AND labels IS NULL;
        behind := upto;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
DECLARE
    behind bigint := -1;
    upto bigint;
BEGIN
    LOOP
        PERFORM assert_leader((SELECT epoch FROM leader));
        SELECT max(submission) INTO upto FROM (SELECT submission FROM archive WHERE submission > behind ORDER BY submission LIMIT 2000) s;
        EXIT WHEN upto IS NULL;
        UPDATE archive SET labels = labels_of(manifest) WHERE submission > behind AND submission <= upto AND labels IS NULL;
        behind := upto;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- A partition at a time, each a transaction of its own: the one of today is written to.
CREATE INDEX IF NOT EXISTS archive_labels ON ONLY archive USING gin (labels);
-- +goose StatementBegin
DO $$
DECLARE
    part record;
BEGIN
    FOR part IN SELECT c.oid::regclass AS name, c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'archive'::regclass ORDER BY c.relname LOOP
        IF NOT EXISTS (SELECT FROM pg_index x JOIN pg_inherits i ON i.inhrelid = x.indexrelid
            WHERE x.indrelid = part.name AND i.inhparent = 'archive_labels'::regclass) THEN
            EXECUTE format('CREATE INDEX %I ON %s USING gin (labels)', part.relname || '_labels_idx', part.name);
            EXECUTE format('ALTER INDEX archive_labels ATTACH PARTITION %I', part.relname || '_labels_idx');
        END IF;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX archive_labels;
DROP TRIGGER labelled ON archive;
DROP TRIGGER labelled ON manifests;
DROP FUNCTION note_labels;
DROP FUNCTION labels_of;
ALTER TABLE archive DROP COLUMN labels;
ALTER TABLE manifests DROP COLUMN labels;
