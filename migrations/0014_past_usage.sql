-- What ClusterQueues used in the past, which fair sharing counts, outlives the leader.
-- Queue-managers older than this migration run on with it, and begin at nothing.

-- +goose Up

-- The decayed use of a queue, as it was when its use changed last; a leader carries it on.
CREATE TABLE past_usage (
    queue   text PRIMARY KEY,
    history jsonb NOT NULL -- when, and how much of each resource
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON past_usage FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

GRANT SELECT, INSERT, UPDATE, DELETE ON past_usage TO muster_queue_manager;
GRANT SELECT ON past_usage TO muster_reader;

-- +goose Down
DROP TABLE past_usage;
