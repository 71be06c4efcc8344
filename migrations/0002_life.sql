-- The life of a workload after its admission: deadlines, back-off, announced
-- evictions. Queue-managers of before this migration run on with it.

-- +goose Up

-- A queue's rules and what a workload asks of its life, as configured and as
-- submitted: values that only the code interprets.
ALTER TABLE queues ADD COLUMN rules jsonb NOT NULL DEFAULT '{}';
ALTER TABLE workloads
    ADD COLUMN life       jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN requeues   integer NOT NULL DEFAULT 0 CHECK (requeues >= 0), -- those that count against the queue's limit
    ADD COLUMN not_before timestamptz, -- of a queued workload in back-off
    ADD COLUMN evict_at   timestamptz; -- when the objects of one that is torn down are deleted

-- +goose Down
ALTER TABLE workloads DROP COLUMN life, DROP COLUMN requeues, DROP COLUMN not_before, DROP COLUMN evict_at;
ALTER TABLE queues DROP COLUMN rules;
