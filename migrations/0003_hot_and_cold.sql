-- Hot tables have live rows only and are updated in place; what is finished moves
-- to partitions by time, which are dropped when they are old. Guards run once for
-- each statement, not for each row, and every statement that changes the ledger is
-- fenced by itself.

-- +goose Up

-- Pod sets, once for all workloads that have the same.
CREATE TABLE shapes (
    id       uuid PRIMARY KEY, -- the beginning of the SHA-256 of pod_sets as they were written
    pod_sets jsonb NOT NULL,
    pods     integer NOT NULL
);

-- Manifests as submitted: json keeps the order of keys, jsonb does not. They never
-- change, so they are not in the rows that do.
CREATE TABLE manifests (
    workload uuid PRIMARY KEY,
    manifest json NOT NULL
);

ALTER TABLE workloads ADD COLUMN shape uuid, ADD COLUMN gang integer;
INSERT INTO shapes SELECT DISTINCT md5(pod_sets::text)::uuid, pod_sets,
    (SELECT coalesce(sum((s->>'count')::integer), 0) FROM jsonb_array_elements(pod_sets) s) FROM workloads;
INSERT INTO manifests SELECT id, manifest FROM workloads WHERE phase NOT IN ('succeeded', 'failed', 'cancelled') OR holding;
DROP TRIGGER all_or_nothing ON workloads;
DROP FUNCTION refuse_partial_gang;
UPDATE workloads w SET shape = s.id, gang = s.pods FROM shapes s WHERE s.id = md5(w.pod_sets::text)::uuid;

-- Finished workloads that hold nothing. record is the workload as it is shown.
CREATE TABLE archive (
    id          uuid NOT NULL,
    submission  bigint NOT NULL,
    queue       text NOT NULL,
    namespace   text NOT NULL,
    name        text NOT NULL,
    phase       text NOT NULL CHECK (phase IN ('succeeded', 'failed', 'cancelled')),
    digest      text NOT NULL,
    finished_at timestamptz NOT NULL,
    record      json NOT NULL,
    manifest    json
) PARTITION BY RANGE (finished_at);
CREATE INDEX archive_id ON archive (id);
CREATE INDEX archive_submission ON archive (submission);
CREATE INDEX archive_name ON archive (name);
CREATE TABLE archive_rest PARTITION OF archive DEFAULT;
INSERT INTO archive
    SELECT w.id, w.submission, w.queue, w.namespace, w.name, w.phase, w.digest, coalesce(w.finished_at, now()),
        json_build_object('id', w.id, 'queue', w.queue, 'namespace', w.namespace, 'kind', w.kind, 'name', w.name,
            'priority', w.priority, 'digest', w.digest, 'podSets', w.pod_sets, 'phase', w.phase, 'attempt', w.attempt,
            'cluster', coalesce(w.cluster, ''), 'reason', w.reason, 'life', w.life, 'requeues', w.requeues, 'cancelRequested', w.cancel_requested,
            'times', json_strip_nulls(json_build_object('submitted', w.submitted_at, 'admitted', w.admitted_at,
                'dispatched', w.dispatched_at, 'running', w.running_at, 'finished', w.finished_at))), w.manifest
    FROM workloads w WHERE w.phase IN ('succeeded', 'failed', 'cancelled') AND NOT w.holding;
ALTER TABLE reservations DROP CONSTRAINT reservations_workload_fkey, DROP CONSTRAINT reservations_cluster_node_fkey;
DROP INDEX reservations_node;
DELETE FROM workloads WHERE phase IN ('succeeded', 'failed', 'cancelled') AND NOT holding;

ALTER TABLE workloads
    DROP COLUMN pod_sets, DROP COLUMN manifest, DROP CONSTRAINT workloads_queue_fkey,
    ALTER COLUMN shape SET NOT NULL, ALTER COLUMN gang SET NOT NULL,
    ADD CONSTRAINT live CHECK (phase NOT IN ('succeeded', 'failed', 'cancelled') OR holding);
-- No index has a column that changes in the life of a workload, so that updates
-- stay on their page (HOT) and touch no index.
DROP INDEX workloads_live, workloads_live_object;
CREATE INDEX workloads_order ON workloads (queue, priority DESC, submission);
-- One live workload for each object in Kubernetes.
CREATE UNIQUE INDEX workloads_live_object ON workloads (name, namespace, kind);

ALTER TABLE workloads SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE nodes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1);
ALTER TABLE node_resources SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE reservations SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);

-- A command is kept without its manifest, which is added when it leaves.
ALTER TABLE outbox ADD COLUMN manifest_of uuid;

-- Each commit of the ledger, in order, with what it touched: for standbys, which
-- follow it. The key refuses a commit that was decided on an old version. Old rows
-- are removed; a standby that needs one reads everything anew.
CREATE TABLE commits (
    version   bigint PRIMARY KEY,
    epoch     bigint NOT NULL,
    at        timestamptz NOT NULL DEFAULT now(),
    workloads uuid[] NOT NULL,
    clusters  text[] NOT NULL, -- of nodes
    nodes     text[] NOT NULL
);
ALTER TABLE commits SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
INSERT INTO commits (version, epoch, workloads, clusters, nodes) SELECT 1, epoch, '{}', '{}', '{}' FROM leader;

-- What happened to each workload, now in partitions.
ALTER TABLE history RENAME TO history_before;
ALTER INDEX history_workload RENAME TO history_before_workload;
CREATE SEQUENCE history_order;
CREATE TABLE history (
    seq      bigint NOT NULL DEFAULT nextval('history_order'),
    workload uuid NOT NULL,
    at       timestamptz NOT NULL,
    epoch    bigint NOT NULL,
    version  bigint NOT NULL,      -- of the commit
    phase    text NOT NULL,
    attempt  integer NOT NULL,
    cluster  text,
    reason   jsonb,
    event_id text                  -- of the event that told it
) PARTITION BY RANGE (at);
CREATE INDEX history_seq ON history (seq);
CREATE INDEX history_workload ON history (workload, seq);
CREATE TABLE history_rest PARTITION OF history DEFAULT;
INSERT INTO history (workload, at, epoch, version, phase, attempt, reason)
    SELECT workload, at, epoch, 1, phase, attempt, reason FROM history_before ORDER BY seq;
DROP TABLE history_before;

-- The leader takes a number from it now and then: who sees that the number does not
-- grow knows that the leader hangs. A sequence leaves nothing to vacuum.
CREATE SEQUENCE leader_beat;

-- Every transaction that writes calls this first. It holds a successor off until
-- the end of the transaction, so what the successor then reads is complete, and
-- lets the statements of this transaction pass their own comparison.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION assert_leader(mine bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    current bigint;
BEGIN
    SELECT epoch INTO STRICT current FROM leader FOR SHARE;
    IF current <> mine THEN
        RAISE EXCEPTION 'epoch % is over, the leader is of epoch %', mine, current USING ERRCODE = 'MUFEN';
    END IF;
    PERFORM set_config('muster.epoch', mine::text, true);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION refuse_unfenced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('muster.epoch', true) IS DISTINCT FROM (SELECT epoch::text FROM leader) THEN
        RAISE EXCEPTION '% of % is not the leader''s: its transaction has epoch %, which is not the present one',
            TG_OP, TG_TABLE_NAME, coalesce(nullif(current_setting('muster.epoch', true), ''), '(none)') USING ERRCODE = 'MUFEN';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON queues FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON shapes FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON workloads FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON manifests FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON archive FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON nodes FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON node_resources FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON reservations FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON outbox FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON commits FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON history FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- No over-commit, as before, but the function is only called to say no.
DROP TRIGGER no_overcommit ON node_resources;
CREATE TRIGGER no_overcommit BEFORE UPDATE OF reserved ON node_resources FOR EACH ROW
    WHEN (NEW.reserved > OLD.reserved AND NEW.reserved + NEW.used > NEW.allocatable) EXECUTE FUNCTION refuse_overcommit();

-- A node stays while something is reserved on it.
-- +goose StatementBegin
CREATE FUNCTION refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'node %/%: % of % is reserved', OLD.cluster, OLD.node, OLD.reserved, OLD.resource
        USING ERRCODE = 'check_violation', CONSTRAINT = 'node_in_use';
END $$;
-- +goose StatementEnd
CREATE TRIGGER node_in_use BEFORE DELETE ON node_resources FOR EACH ROW WHEN (OLD.reserved > 0) EXECUTE FUNCTION refuse_delete();

-- All or nothing: after each statement, a workload that holds capacity has a node
-- for every pod of its shape, and any other has none. So a workload's phase and its
-- reservations change in one statement. Its queue exists.
-- +goose StatementBegin
CREATE FUNCTION refuse_partial_gangs() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    wrong record;
BEGIN
    SELECT c.id, c.queue, c.phase, c.gang, s.pods, q.name IS NULL AS no_queue,
        (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.id) AS placed
    INTO wrong
    FROM changed c LEFT JOIN shapes s ON s.id = c.shape LEFT JOIN queues q ON q.name = c.queue
    WHERE q.name IS NULL OR s.pods IS DISTINCT FROM c.gang OR
        (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.id) <> CASE WHEN c.holding THEN c.gang ELSE 0 END
    LIMIT 1;
    IF wrong.no_queue THEN
        RAISE EXCEPTION 'workload % names queue %, which does not exist', wrong.id, wrong.queue
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'workloads_queue';
    ELSIF wrong.id IS NOT NULL THEN
        RAISE EXCEPTION 'workload % is % with % of % pods placed (% in its shape)', wrong.id, wrong.phase, wrong.placed, wrong.gang, wrong.pods
            USING ERRCODE = 'check_violation', CONSTRAINT = 'all_or_nothing';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER all_or_nothing_added AFTER INSERT ON workloads REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_partial_gangs();
CREATE TRIGGER all_or_nothing_changed AFTER UPDATE ON workloads REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_partial_gangs();

-- The same, seen from the reservations and from workloads that go.
-- +goose StatementBegin
CREATE FUNCTION refuse_ownerless() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    wrong record;
BEGIN
    IF TG_TABLE_NAME = 'workloads' THEN
        SELECT r.workload, 0 AS gang, r.pods AS placed INTO wrong FROM changed c JOIN reservations r ON r.workload = c.id LIMIT 1;
    ELSE
        SELECT c.workload, w.gang, (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.workload) AS placed
        INTO wrong
        FROM (SELECT DISTINCT workload FROM changed) c LEFT JOIN workloads w ON w.id = c.workload
        WHERE (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.workload)
            <> CASE WHEN w.holding THEN w.gang ELSE 0 END
        LIMIT 1;
    END IF;
    IF wrong.workload IS NOT NULL THEN
        RAISE EXCEPTION 'workload % has % pods placed, which is neither none nor its gang of %', wrong.workload, wrong.placed, wrong.gang
            USING ERRCODE = 'check_violation', CONSTRAINT = 'all_or_nothing';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER owned_added AFTER INSERT ON reservations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_ownerless();
CREATE TRIGGER owned_removed AFTER DELETE ON reservations REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_ownerless();
CREATE TRIGGER owned AFTER DELETE ON workloads REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_ownerless();

-- Makes the partitions of the next days and drops those that ended before the
-- given age. A partition has one day, in UTC.
-- +goose StatementBegin
CREATE FUNCTION keep_partitions(mine bigint, days_ahead integer, keep_history interval, keep_archive interval)
RETURNS TABLE (made integer, dropped integer) LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET lock_timeout = '500ms' AS $$ -- who reads for long must not make the writers wait behind us
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    parent text;
    part record;
    day date;
    keep interval;
    ended timestamptz;
BEGIN
    PERFORM assert_leader(mine);
    made := 0;
    dropped := 0;
    FOREACH parent IN ARRAY ARRAY['archive', 'history'] LOOP
        keep := CASE parent WHEN 'archive' THEN keep_archive ELSE keep_history END;
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
            ended := (to_date(right(part.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC';
            IF ended < now() - keep THEN
                EXECUTE format('DROP TABLE %I', part.relname);
                dropped := dropped + 1;
            END IF;
        END LOOP;
    END LOOP;
    DELETE FROM archive_rest WHERE finished_at < now() - keep_archive;
    DELETE FROM history_rest WHERE at < now() - keep_history;
    RETURN NEXT;
END $$;
-- +goose StatementEnd

-- +goose Down
-- The way back is a restored backup: what is finished has left the table that the
-- first version of the schema keeps it in.
-- +goose StatementBegin
DO $$ BEGIN RAISE EXCEPTION 'there is no way back from 0003 but a backup'; END $$;
-- +goose StatementEnd
