-- The guards against over-commit and over-use judge what a transaction comes to,
-- not the order of its statements: what it gives back it may take again, even
-- where a node has shrunk or quota was lowered since. Queue-managers older than
-- this migration run on with it.

-- +goose Up

-- What was reserved, or used, when the transaction named by had_in began to change
-- the row.
ALTER TABLE node_resources ADD COLUMN had bigint, ADD COLUMN had_in xid8;
ALTER TABLE quota_usage ADD COLUMN had bigint, ADD COLUMN had_in xid8;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_overcommit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.had_in = pg_current_xact_id() AND NEW.reserved <= NEW.had THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'node %/%: % of % would be reserved beside % used, but % is allocatable',
        NEW.cluster, NEW.node, NEW.reserved, NEW.resource, NEW.used, NEW.allocatable
        USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overcommit';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_overuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.had_in = pg_current_xact_id() AND NEW.used <= NEW.had THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '%: % of % of flavor % would be used, but the quota is at most %', NEW.scope, NEW.used, NEW.resource, NEW.flavor, NEW.bound
        USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION charge_reservations() RETURNS trigger LANGUAGE plpgsql AS $$
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
        SET reserved = CASE TG_OP WHEN 'INSERT' THEN n.reserved + d.amount ELSE n.reserved - d.amount END,
            had = CASE WHEN n.had_in = pg_current_xact_id() THEN n.had ELSE n.reserved END, had_in = pg_current_xact_id()
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

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION charge_quota() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked bigint;
    found_rows bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM changed WHERE charges IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    WITH demand AS (
        SELECT s.scope, f.value AS flavor, f.key AS resource, sum(c.pods * (c.requests->>f.key)::bigint) AS amount
        FROM changed c, jsonb_array_elements_text(c.charges->'scopes') s (scope), jsonb_each_text(c.charges->'flavors') f
        WHERE c.charges IS NOT NULL
        GROUP BY 1, 2, 3
        HAVING sum(c.pods * (c.requests->>f.key)::bigint) > 0
    ), charged AS (
        UPDATE quota_usage u
        SET used = CASE TG_OP WHEN 'INSERT' THEN u.used + d.amount ELSE u.used - d.amount END,
            had = CASE WHEN u.had_in = pg_current_xact_id() THEN u.had ELSE u.used END, had_in = pg_current_xact_id()
        FROM demand d
        WHERE u.scope = d.scope AND u.flavor = d.flavor AND u.resource = d.resource
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM demand), (SELECT count(*) FROM charged) INTO asked, found_rows;
    IF asked <> found_rows THEN
        RAISE EXCEPTION 'a reservation is charged to quota that does not exist (% charges, % found)', asked, found_rows
            USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_overcommit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'node %/%: % of % would be reserved beside % used, but % is allocatable',
        NEW.cluster, NEW.node, NEW.reserved, NEW.resource, NEW.used, NEW.allocatable
        USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overcommit';
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_overuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: % of % of flavor % would be used, but the quota is at most %', NEW.scope, NEW.used, NEW.resource, NEW.flavor, NEW.bound
        USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION charge_reservations() RETURNS trigger LANGUAGE plpgsql AS $$
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
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION charge_quota() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked bigint;
    found_rows bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM changed WHERE charges IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    WITH demand AS (
        SELECT s.scope, f.value AS flavor, f.key AS resource, sum(c.pods * (c.requests->>f.key)::bigint) AS amount
        FROM changed c, jsonb_array_elements_text(c.charges->'scopes') s (scope), jsonb_each_text(c.charges->'flavors') f
        WHERE c.charges IS NOT NULL
        GROUP BY 1, 2, 3
        HAVING sum(c.pods * (c.requests->>f.key)::bigint) > 0
    ), charged AS (
        UPDATE quota_usage u
        SET used = CASE TG_OP WHEN 'INSERT' THEN u.used + d.amount ELSE u.used - d.amount END
        FROM demand d
        WHERE u.scope = d.scope AND u.flavor = d.flavor AND u.resource = d.resource
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM demand), (SELECT count(*) FROM charged) INTO asked, found_rows;
    IF asked <> found_rows THEN
        RAISE EXCEPTION 'a reservation is charged to quota that does not exist (% charges, % found)', asked, found_rows
            USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
ALTER TABLE node_resources DROP COLUMN had, DROP COLUMN had_in;
ALTER TABLE quota_usage DROP COLUMN had, DROP COLUMN had_in;
