-- A queue that moves to another cohort takes the charges of its gangs along: quota is
-- charged to the cohorts that a queue is in now, as decisions count it. Queue-managers
-- older than this migration run on with it, and leave the charges where they are.

-- +goose Up

-- Of a reservation only the number of pods may change, and the scopes that it is
-- charged to.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'reservations'
        AND to_jsonb(NEW) - 'pods' #- '{charges,scopes}' = to_jsonb(OLD) - 'pods' #- '{charges,scopes}' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of % are never updated', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd

-- What a gang used in its former scopes it may use in the new ones, even beyond their
-- bounds: the configuration has changed, not the gang.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION charge_quota_resized() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked bigint;
    found_rows bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM changed WHERE charges IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    WITH part AS (
        SELECT s.scope, f.value AS flavor, f.key AS resource, c.pods * (c.requests->>f.key)::bigint AS amount,
            CASE WHEN c.charges <> o.charges THEN o.pods * (o.requests->>f.key)::bigint ELSE 0 END AS moved
        FROM changed c JOIN old o USING (workload, pod_set, node),
            jsonb_array_elements_text(c.charges->'scopes') s (scope), jsonb_each_text(c.charges->'flavors') f
        UNION ALL
        SELECT s.scope, f.value, f.key, -o.pods * (o.requests->>f.key)::bigint,
            CASE WHEN c.charges <> o.charges THEN -o.pods * (o.requests->>f.key)::bigint ELSE 0 END
        FROM changed c JOIN old o USING (workload, pod_set, node),
            jsonb_array_elements_text(o.charges->'scopes') s (scope), jsonb_each_text(o.charges->'flavors') f
    ), demand AS (
        SELECT scope, flavor, resource, sum(amount) AS amount, greatest(sum(moved), 0) AS moved
        FROM part GROUP BY 1, 2, 3 HAVING sum(amount) <> 0
    ), charged AS (
        UPDATE quota_usage u
        SET used = u.used + d.amount,
            had = CASE WHEN u.had_in = pg_current_xact_id() THEN u.had ELSE u.used END + d.moved, had_in = pg_current_xact_id()
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

-- CREATE OR REPLACE forgets the search path of a function (see 0011).
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_class c ON c.oid = 'leader'::regclass AND c.relnamespace = p.pronamespace
        WHERE p.proowner = c.relowner AND p.proname IN ('refuse_update', 'charge_quota_resized') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s, pg_temp', f, current_setting('search_path'));
    END LOOP;
END $$;
-- +goose StatementEnd

GRANT UPDATE (charges) ON reservations TO muster_queue_manager;

-- +goose Down
REVOKE UPDATE (charges) ON reservations FROM muster_queue_manager;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION charge_quota_resized() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE quota_usage u SET used = u.used + d.amount
    FROM (
        SELECT s.scope, f.value AS flavor, f.key AS resource, sum((c.pods - o.pods) * (c.requests->>f.key)::bigint) AS amount
        FROM changed c JOIN old o USING (workload, pod_set, node),
            jsonb_array_elements_text(c.charges->'scopes') s (scope), jsonb_each_text(c.charges->'flavors') f
        WHERE c.charges IS NOT NULL
        GROUP BY 1, 2, 3
    ) d
    WHERE u.scope = d.scope AND u.flavor = d.flavor AND u.resource = d.resource AND d.amount <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'reservations' AND to_jsonb(NEW) - 'pods' = to_jsonb(OLD) - 'pods' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of % are never updated', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_class c ON c.oid = 'leader'::regclass AND c.relnamespace = p.pronamespace
        WHERE p.proowner = c.relowner AND p.proname IN ('refuse_update', 'charge_quota_resized') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s, pg_temp', f, current_setting('search_path'));
    END LOOP;
END $$;
-- +goose StatementEnd
