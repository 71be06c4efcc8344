-- What was decided, with all that it was decided on: enough to decide it again and
-- compare. Queue-managers of before this migration run on with it, and record
-- nothing; what was decided after that begins with a base of its own.

-- +goose Up

-- The inputs of each commit, in order, and its outcome; package journal writes and
-- reads both, compressed. The plan is in the outcome: who was admitted where, who
-- was evicted, and the reasons of all others that changed.
CREATE TABLE decisions (
    epoch   bigint NOT NULL,
    number  bigint NOT NULL,      -- within the epoch, from 0
    version bigint NOT NULL,      -- of the ledger, after it; it was decided on the one before
    at      timestamptz NOT NULL,
    inputs  bytea NOT NULL,
    outcome bytea NOT NULL
) PARTITION BY RANGE (at);
ALTER TABLE decisions ALTER COLUMN inputs SET STORAGE EXTERNAL, ALTER COLUMN outcome SET STORAGE EXTERNAL;
CREATE INDEX decisions_order ON decisions (epoch, number);
CREATE TABLE decisions_rest PARTITION OF decisions DEFAULT;

-- The live workloads and nodes at the begin of an epoch, in parts, compressed: what
-- decisions are replayed from. All parts of a base come with one commit.
CREATE TABLE bases (
    epoch   bigint NOT NULL,
    part    integer NOT NULL,     -- from 0
    version bigint NOT NULL,      -- of the ledger
    at      timestamptz NOT NULL,
    content bytea NOT NULL
) PARTITION BY RANGE (at);
ALTER TABLE bases ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX bases_order ON bases (epoch, part);
CREATE TABLE bases_rest PARTITION OF bases DEFAULT;

CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON decisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON bases FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- Makes the partitions of one table for the next days and drops those that ended
-- before the given age. keep_partitions stays for queue-managers of before.
-- +goose StatementBegin
CREATE FUNCTION keep_partitions_of(mine bigint, parent text, days_ahead integer, keep interval)
RETURNS TABLE (made integer, dropped integer) LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET lock_timeout = '500ms' AS $$ -- who reads for long must not make the writers wait behind us
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    moment text := CASE parent WHEN 'archive' THEN 'finished_at' WHEN 'history' THEN 'at' WHEN 'decisions' THEN 'at' WHEN 'bases' THEN 'at' END;
    part record;
    day date;
BEGIN
    PERFORM assert_leader(mine);
    IF moment IS NULL THEN
        RAISE EXCEPTION 'table % has no partitions to keep', parent;
    END IF;
    made := 0;
    dropped := 0;
    FOR day IN SELECT d::date FROM generate_series(today, today + days_ahead, '1 day') d LOOP
        CONTINUE WHEN to_regclass(format('%I', parent || to_char(day, '_YYYYMMDD'))) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', parent || to_char(day, '_YYYYMMDD'),
                parent, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        EXCEPTION WHEN check_violation THEN
            NULL; -- rows of that day are in the rest already, and stay there
        END;
    END LOOP;
    FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent::regclass AND c.relname ~ '_[0-9]{8}$' LOOP
        IF (to_date(right(part.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' < now() - keep THEN
            EXECUTE format('DROP TABLE %I', part.relname);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE %I < now() - $1', parent || '_rest', moment) USING keep;
    RETURN NEXT;
END $$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION keep_partitions_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_partitions_of TO muster_queue_manager;
-- The inputs have manifests in them: they are not for muster_reader.
GRANT SELECT, INSERT ON decisions, bases TO muster_queue_manager;

-- +goose Down
DROP FUNCTION keep_partitions_of;
DROP TABLE bases, decisions;
