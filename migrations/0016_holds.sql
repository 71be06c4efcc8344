-- An operator or submitter may hold a waiting workload; the hold outlives the leader.
-- Queue-managers older than this migration run on with it, and admit what is held. They keep
-- what is there, because they do not write the column.

-- +goose Up
ALTER TABLE workloads ADD COLUMN hold jsonb; -- since when, by whom and why it is held

-- +goose Down
ALTER TABLE workloads DROP COLUMN hold;
