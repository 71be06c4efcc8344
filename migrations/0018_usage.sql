-- What workloads hold over time, for reports of usage. A step of a workload's life that holds
-- places, or frees them, says what is held from then on. Queue-managers older than this
-- migration write steps without it; a report fills in what a live workload holds.

-- +goose Up
ALTER TABLE history ADD COLUMN usage jsonb;
CREATE INDEX history_usage ON history (seq) WHERE usage IS NOT NULL;

-- +goose Down
DROP INDEX history_usage;
ALTER TABLE history DROP COLUMN usage;
