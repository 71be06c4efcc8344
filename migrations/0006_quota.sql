-- Quota: the policy as configured, the flavors that workloads have, and a ledger of
-- what is used of each quota, which refuses over-use. Queue-managers of before this
-- migration run on with it: what they reserve is charged to no quota.

-- +goose Up
ALTER TABLE queues DROP CONSTRAINT queues_strategy_check,
    ADD CONSTRAINT queues_strategy_check CHECK (strategy IN ('StrictFIFO', 'BestEffortFIFO', 'Backfill'));

-- Quota, cohorts and the rest of the policy, as configured: only the code
-- interprets it.
CREATE TABLE policy (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    config   jsonb NOT NULL
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON policy FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- The quota ledger: one row for each ClusterQueue and each cohort above it, and each
-- flavor and resource. bound is the most that may ever be used by all below it:
-- nominal quota, borrowing and lending considered. What may be used at the moment
-- is the decision's to know; this is the bound that no decision can pass.
CREATE TABLE quota_usage (
    scope    text NOT NULL, -- "clusterQueue NAME" or "cohort NAME"
    flavor   text NOT NULL,
    resource text NOT NULL,
    bound    bigint NOT NULL CHECK (bound >= 0),
    used     bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
    PRIMARY KEY (scope, flavor, resource)
);
ALTER TABLE quota_usage SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON quota_usage FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- It may be more than that when quota was taken away, but then not grow.
-- +goose StatementBegin
CREATE FUNCTION refuse_overuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: % of % of flavor % would be used, but the quota is at most %', NEW.scope, NEW.used, NEW.resource, NEW.flavor, NEW.bound
        USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
END $$;
-- +goose StatementEnd
CREATE TRIGGER no_overuse BEFORE UPDATE OF used ON quota_usage FOR EACH ROW
    WHEN (NEW.used > OLD.used AND NEW.used > NEW.bound) EXECUTE FUNCTION refuse_overuse();

-- The flavors of the current attempt, as a list of pod sets; null without quota.
ALTER TABLE workloads ADD COLUMN flavors jsonb;

-- What a reservation is charged to: {"scopes": [...], "flavors": {resource: flavor}};
-- null without quota.
ALTER TABLE reservations ADD COLUMN charges jsonb;

-- The quota ledger follows the reservations by itself. Quota that is not configured
-- has no row to follow on, which is refused.
-- +goose StatementBegin
CREATE FUNCTION charge_quota() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER quota_added AFTER INSERT ON reservations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION charge_quota();
CREATE TRIGGER quota_removed AFTER DELETE ON reservations REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION charge_quota();

-- +goose StatementBegin
CREATE FUNCTION charge_quota_resized() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER quota_resized AFTER UPDATE ON reservations REFERENCING OLD TABLE AS old NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION charge_quota_resized();

-- +goose Down
DROP TRIGGER quota_added ON reservations;
DROP TRIGGER quota_removed ON reservations;
DROP TRIGGER quota_resized ON reservations;
DROP FUNCTION charge_quota, charge_quota_resized;
ALTER TABLE reservations DROP COLUMN charges;
ALTER TABLE workloads DROP COLUMN flavors;
DROP TABLE quota_usage, policy;
DROP FUNCTION refuse_overuse;
