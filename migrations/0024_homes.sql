-- Objects of one name that users made with kubectl in two clusters are two workloads. The name of
-- an object that Muster creates is taken in all clusters: queue-manager sees to that.
-- Queue-managers older than this migration run on with it, and refuse the second object.

-- +goose Up
DROP INDEX workloads_live_object;
-- One live workload for each object in Kubernetes. The home is the cluster where a user made it,
-- empty for an object that Muster creates. No index has a column that changes (see 0003).
CREATE UNIQUE INDEX workloads_live_object ON workloads (name, namespace, kind, (coalesce(substring(submitter, '^kubernetes/([^/]*)'), '')));

-- +goose Down
DROP INDEX workloads_live_object;
CREATE UNIQUE INDEX workloads_live_object ON workloads (name, namespace, kind);
