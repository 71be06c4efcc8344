-- What an eviction loses outlives the leader: the last checkpoint of a workload, and what was
-- learned of starts and of returns after evictions. Queue-managers older than this migration
-- run on with it: they leave both as they are, and a checkpoint of an earlier attempt does not
-- count.

-- +goose Up
ALTER TABLE workloads ADD COLUMN saved jsonb; -- what it has reported about its checkpoints

CREATE TABLE learned (
    queue     text NOT NULL, -- ClusterQueue
    kind      text NOT NULL, -- of workloads
    size      int NOT NULL,  -- the binary digits of the number of their pods
    durations jsonb NOT NULL, -- the means of starts and returns, and of how many
    PRIMARY KEY (queue, kind, size)
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON learned FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

GRANT SELECT, INSERT, UPDATE, DELETE ON learned TO muster_queue_manager;
GRANT SELECT ON learned TO muster_reader;

-- +goose Down
DROP TABLE learned;
ALTER TABLE workloads DROP COLUMN saved;
