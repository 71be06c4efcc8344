-- Objects that configure queues and were applied at run time, and how they came
-- about. Queue-managers of before this migration run on with it: they know the
-- queues file only, until one of after it leads.

-- +goose Up

-- Kueue's manifests, as they count beside the queues file.
CREATE TABLE applied (
    kind      text NOT NULL,
    namespace text NOT NULL, -- empty but for a LocalQueue
    name      text NOT NULL,
    origin    text NOT NULL, -- the cluster that has the object; empty when it was applied
    manifest  json NOT NULL, -- the very text, to tell whether it is the same
    version   bigint NOT NULL, -- of the ledger that changed it last
    PRIMARY KEY (kind, namespace, name)
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON applied FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- Each change, for people who ask why something was decided: what was applied and
-- deleted, at which version of the ledger.
CREATE TABLE applied_changes (
    version bigint PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    epoch   bigint NOT NULL,
    origin  text NOT NULL,
    written jsonb NOT NULL, -- manifests
    removed jsonb NOT NULL  -- kinds, namespaces and names
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON applied_changes FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- A commit that changes what governs: standbys read it anew.
ALTER TABLE commits ADD COLUMN settings boolean NOT NULL DEFAULT false;

-- Who submitted a workload, as the connection says; empty for those of before.
ALTER TABLE workloads ADD COLUMN submitter text NOT NULL DEFAULT '';

GRANT SELECT, INSERT, UPDATE, DELETE ON applied TO muster_queue_manager;
GRANT SELECT, INSERT ON applied_changes TO muster_queue_manager;
GRANT SELECT ON applied, applied_changes TO muster_reader;

-- +goose Down
ALTER TABLE workloads DROP COLUMN submitter;
ALTER TABLE commits DROP COLUMN settings;
DROP TABLE applied, applied_changes;
