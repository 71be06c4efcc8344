-- The ledger: queues, workloads, nodes and reservations, with guards that refuse
-- what must never be, whatever the code above does.

-- +goose Up

-- The queue-manager that may write. Every transaction locks this row and compares
-- the epoch with its own, so a leader that was replaced can change nothing.
CREATE TABLE leader (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL,
    holder   text NOT NULL,
    since    timestamptz NOT NULL
);
INSERT INTO leader (epoch, holder, since) VALUES (0, 'nobody', now());

-- Every transaction that writes calls this first: it holds a successor off until
-- the end of the transaction, so what the successor then reads is complete.
-- +goose StatementBegin
CREATE FUNCTION assert_leader(mine bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    current bigint;
BEGIN
    SELECT epoch INTO STRICT current FROM leader FOR SHARE;
    IF current <> mine THEN
        RAISE EXCEPTION 'epoch % is over, the leader is of epoch %', mine, current USING ERRCODE = 'MUFEN';
    END IF;
END $$;
-- +goose StatementEnd

CREATE TABLE queues (
    name       text PRIMARY KEY,
    namespaces text[] NOT NULL CHECK (cardinality(namespaces) > 0), -- the first one is the default
    strategy   text NOT NULL CHECK (strategy IN ('StrictFIFO', 'BestEffortFIFO'))
);

CREATE TABLE workloads (
    id               uuid PRIMARY KEY,
    submission       bigint NOT NULL UNIQUE, -- the order of submission; kept by evicted workloads
    queue            text NOT NULL REFERENCES queues,
    namespace        text NOT NULL,
    kind             text NOT NULL,
    name             text NOT NULL,
    priority         integer NOT NULL,
    digest           text NOT NULL,
    pod_sets         jsonb NOT NULL,
    manifest         json NOT NULL, -- as submitted: json keeps the order of keys, jsonb does not
    phase            text NOT NULL CHECK (phase IN ('queued', 'admitted', 'dispatched', 'running',
                         'evicting', 'cancelling', 'succeeded', 'failed', 'cancelled')),
    attempt          integer NOT NULL CHECK (attempt >= 1),
    cluster          text, -- of the current attempt
    holding          boolean NOT NULL, -- pods of it may hold capacity
    cancel_requested boolean NOT NULL,
    reason           jsonb,
    submitted_at     timestamptz NOT NULL,
    admitted_at      timestamptz,
    dispatched_at    timestamptz,
    running_at       timestamptz,
    finished_at      timestamptz,
    CHECK ((phase IN ('admitted', 'dispatched', 'running', 'evicting', 'cancelling')) <= holding),
    CHECK (phase <> 'queued' OR NOT holding),
    CHECK (NOT holding OR cluster IS NOT NULL)
);
-- What still matters: small, however many workloads have finished.
CREATE INDEX workloads_live ON workloads (queue, priority DESC, submission)
    WHERE phase NOT IN ('succeeded', 'failed', 'cancelled') OR holding;
-- One live workload for each object in Kubernetes.
CREATE UNIQUE INDEX workloads_live_object ON workloads (namespace, kind, name)
    WHERE phase NOT IN ('succeeded', 'failed', 'cancelled') OR holding;

CREATE TABLE nodes (
    cluster  text NOT NULL,
    name     text NOT NULL,
    session  bigint NOT NULL, -- version of the observation, see event.Version
    seq      bigint NOT NULL,
    present  boolean NOT NULL, -- false: gone, but reservations remain
    observed jsonb NOT NULL,
    PRIMARY KEY (cluster, name)
);

-- The node ledger. used is what pods outside any reservation take.
CREATE TABLE node_resources (
    cluster     text NOT NULL,
    node        text NOT NULL,
    resource    text NOT NULL,
    allocatable bigint NOT NULL,
    used        bigint NOT NULL,
    reserved    bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    PRIMARY KEY (cluster, node, resource),
    FOREIGN KEY (cluster, node) REFERENCES nodes (cluster, name)
);

-- A row for each pod set of a gang on each of its nodes; all rows of a gang come
-- and go in one statement.
CREATE TABLE reservations (
    workload uuid NOT NULL REFERENCES workloads,
    attempt  integer NOT NULL,
    cluster  text NOT NULL,
    node     text NOT NULL,
    pod_set  text NOT NULL,
    pods     integer NOT NULL CHECK (pods > 0),
    hostname text NOT NULL,
    requests jsonb NOT NULL, -- of one pod
    PRIMARY KEY (workload, pod_set, node),
    FOREIGN KEY (cluster, node) REFERENCES nodes (cluster, name)
);
CREATE INDEX reservations_node ON reservations (cluster, node);

-- No over-commit: what is reserved may only grow within what is left. It may be
-- more than that when a node shrank or foreign pods came, but then not grow.
-- +goose StatementBegin
CREATE FUNCTION refuse_overcommit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reserved > OLD.reserved AND NEW.reserved + NEW.used > NEW.allocatable THEN
        RAISE EXCEPTION 'node %/%: % of % would be reserved beside % used, but % is allocatable',
            NEW.cluster, NEW.node, NEW.reserved, NEW.resource, NEW.used, NEW.allocatable
            USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overcommit';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER no_overcommit BEFORE UPDATE OF reserved ON node_resources
    FOR EACH ROW WHEN (NEW.reserved > OLD.reserved) EXECUTE FUNCTION refuse_overcommit();

-- The ledger follows the reservations by itself. A resource that the node does
-- not have has no row to follow on, which is refused.
-- +goose StatementBegin
CREATE FUNCTION charge_reservations() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked bigint;
    found_rows bigint;
BEGIN
    WITH demand AS (
        SELECT c.cluster, c.node, r.key AS resource, sum(c.pods * r.value::bigint) AS amount
        FROM changed c, jsonb_each_text(c.requests) r
        GROUP BY c.cluster, c.node, r.key
        HAVING sum(c.pods * r.value::bigint) > 0
    ), charged AS (
        UPDATE node_resources n
        SET reserved = CASE TG_OP WHEN 'INSERT' THEN n.reserved + d.amount ELSE n.reserved - d.amount END
        FROM demand d
        WHERE n.cluster = d.cluster AND n.node = d.node AND n.resource = d.resource
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM demand), (SELECT count(*) FROM charged) INTO asked, found_rows;
    IF asked <> found_rows THEN
        RAISE EXCEPTION 'a reservation asks for a resource that its node does not have (% asked, % found)', asked, found_rows
            USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overcommit';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER charge_added AFTER INSERT ON reservations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION charge_reservations();
CREATE TRIGGER charge_removed AFTER DELETE ON reservations REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION charge_reservations();

-- Reservations are made and freed, never changed.
-- +goose StatementBegin
CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never updated', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reservations_are_facts BEFORE UPDATE ON reservations
    FOR EACH ROW EXECUTE FUNCTION refuse_update();

-- All or nothing: at commit, a workload that holds capacity as a started gang has
-- a node for every pod, and a queued one has none.
-- +goose StatementBegin
CREATE FUNCTION refuse_partial_gang() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    now_phase text;
    gang bigint;
    placed bigint;
BEGIN
    SELECT w.phase, (SELECT coalesce(sum((s->>'count')::bigint), 0) FROM jsonb_array_elements(w.pod_sets) s)
    INTO now_phase, gang FROM workloads w WHERE w.id = NEW.id;
    SELECT coalesce(sum(pods), 0) INTO placed FROM reservations r WHERE r.workload = NEW.id;
    IF now_phase = 'queued' AND placed <> 0
       OR now_phase IN ('admitted', 'dispatched', 'running', 'evicting', 'cancelling') AND placed <> gang THEN
        RAISE EXCEPTION 'workload % is % with % of % pods placed', NEW.id, now_phase, placed, gang
            USING ERRCODE = 'check_violation', CONSTRAINT = 'all_or_nothing';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER all_or_nothing AFTER INSERT OR UPDATE OF phase ON workloads
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_partial_gang();

-- Messages that leave after the commit that wrote them, in this order; deleted
-- when NATS has them.
CREATE TABLE outbox (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id text NOT NULL,
    subject  text NOT NULL,
    ttl      interval NOT NULL,
    message  bytea NOT NULL
);

-- What happened to each workload.
CREATE TABLE history (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workload uuid NOT NULL,
    at       timestamptz NOT NULL,
    epoch    bigint NOT NULL,
    phase    text NOT NULL,
    attempt  integer NOT NULL,
    reason   jsonb
);
CREATE INDEX history_workload ON history (workload, seq);

-- +goose Down
DROP TABLE history, outbox, reservations, node_resources, nodes, workloads, queues, leader;
DROP FUNCTION assert_leader, refuse_overcommit, charge_reservations, refuse_update, refuse_partial_gang;
