-- What the database refuses to store is set aside, so that everything else goes
-- on. Queue-managers older than this migration run on with it, and do not look here.

-- +goose Up

-- Workloads and nodes of which something cannot be stored. To delete a row releases
-- it: the leader tries it again. So a delete needs no epoch.
CREATE TABLE quarantine (
    kind    text NOT NULL CHECK (kind IN ('workload', 'node')),
    cluster text NOT NULL,         -- of a node
    name    text NOT NULL,         -- of a node, or the id of a workload
    level   integer NOT NULL,      -- 1 held back, 2 failed, 3 kept as it is
    until   timestamptz,           -- when it is tried again without being released
    attempt integer NOT NULL,      -- of a workload whose places stay as they are
    tries   integer NOT NULL,      -- how often it was set aside
    why     text NOT NULL,         -- what the database said
    epoch   bigint NOT NULL,
    since   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, cluster, name)
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE ON quarantine FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

GRANT SELECT, INSERT, UPDATE, DELETE ON quarantine TO muster_queue_manager;
GRANT SELECT ON quarantine TO muster_reader;

-- +goose Down
DROP TABLE quarantine;
