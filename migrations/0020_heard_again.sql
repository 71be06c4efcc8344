-- The deadlines of a gang begin again when its cluster is heard after a silence, also for the
-- terms after that. Queue-managers older than this migration run on with it: they leave the
-- column as it is, and a time of an earlier attempt moves no deadline.

-- +goose Up
ALTER TABLE workloads ADD COLUMN heard_again timestamptz; -- when its cluster was heard again

-- +goose Down
ALTER TABLE workloads DROP COLUMN heard_again;
