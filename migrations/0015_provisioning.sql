-- A waiting workload may have a request for nodes; its number outlives the leader.
-- Queue-managers older than this migration run on with it, and ask for no nodes. They keep
-- what is there, because they do not write the column.

-- +goose Up
ALTER TABLE workloads ADD COLUMN provisioning jsonb; -- the last request for nodes

-- +goose Down
ALTER TABLE workloads DROP COLUMN provisioning;
