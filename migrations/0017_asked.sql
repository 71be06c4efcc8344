-- A request that NATS delivers again must not undo a later one of its kind, so the last ones
-- are kept with the workload. Queue-managers older than this migration run on with it. They
-- keep what is there, because they do not write the column.

-- +goose Up
ALTER TABLE workloads ADD COLUMN asked jsonb; -- the last requests, by kind: number in the stream, and when NATS stored it

-- +goose Down
ALTER TABLE workloads DROP COLUMN asked;
