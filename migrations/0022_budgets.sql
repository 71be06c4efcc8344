-- What queues have used of their budgets, so that a leader goes on from there and need not sum
-- the history of a month. Queue-managers older than this migration run on with it. They have no
-- budgets, and where one leads while budgets or their holds are applied it refuses changes of the
-- configuration (docs/operations.md, Upgrade).

-- +goose Up

CREATE TABLE budget_usage (
    budget text PRIMARY KEY,
    spec   text NOT NULL,             -- of what the use is: queue, namespace, resource
    begins timestamptz NOT NULL,      -- of the period
    upto   timestamptz NOT NULL,      -- until when it is summed
    hours  double precision NOT NULL  -- used since then
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON budget_usage FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

GRANT SELECT, INSERT, UPDATE, DELETE ON budget_usage TO muster_queue_manager;
GRANT SELECT ON budget_usage TO muster_reader;

-- +goose Down
DROP TABLE budget_usage;
