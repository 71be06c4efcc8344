-- When workloads were estimated to start, and what came of it, outlives the queue-manager that
-- estimated. Queue-managers older than this migration run on with it, and forget theirs.

-- +goose Up

-- Estimates of workloads, with the time when each was made. The newest rows stay.
CREATE TABLE estimates (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workload  uuid NOT NULL,
    made      timestamptz NOT NULL,
    queue     text NOT NULL,
    wait      bigint,      -- as it was simulated, in microseconds; NULL where there was no time
    quantiles bigint[],    -- of the wait, in microseconds
    unknown   text,        -- why there was no time
    CHECK ((wait IS NULL) = (quantiles IS NULL)),
    UNIQUE (workload, made)
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON estimates FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- The first estimates of workloads that have started since. The newest rows of each queue stay.
CREATE TABLE estimate_scores (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workload  uuid NOT NULL,
    queue     text NOT NULL,
    made      timestamptz NOT NULL,
    started   timestamptz NOT NULL,
    wait      bigint NOT NULL,
    quantiles bigint[] NOT NULL,
    UNIQUE (workload, made)
);
CREATE INDEX estimate_scores_queue ON estimate_scores (queue, seq);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON estimate_scores FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

GRANT SELECT, INSERT, DELETE ON estimates, estimate_scores TO muster_queue_manager;
GRANT SELECT ON estimates, estimate_scores TO muster_reader;

-- +goose Down
DROP TABLE estimates, estimate_scores;
