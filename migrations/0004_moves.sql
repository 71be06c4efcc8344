-- A started gang whose place is lost gets another one: its reservations may
-- change in their number of pods, and the ledger follows.

-- +goose Up

-- A reservation is a fact but for its number of pods.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'reservations' AND to_jsonb(NEW) - 'pods' = to_jsonb(OLD) - 'pods' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of % are never updated', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION charge_resized() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE node_resources n SET reserved = n.reserved + d.amount
    FROM (
        SELECT c.cluster, c.node, r.key AS resource, sum((c.pods - o.pods) * r.value::bigint) AS amount
        FROM changed c JOIN old o USING (workload, pod_set, node), jsonb_each_text(c.requests) r
        GROUP BY c.cluster, c.node, r.key
    ) d
    WHERE n.cluster = d.cluster AND n.node = d.node AND n.resource = d.resource AND d.amount <> 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER charge_resized AFTER UPDATE ON reservations REFERENCING OLD TABLE AS old NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION charge_resized();
CREATE TRIGGER owned_resized AFTER UPDATE ON reservations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_ownerless();

-- +goose Down
DROP TRIGGER owned_resized ON reservations;
DROP TRIGGER charge_resized ON reservations;
DROP FUNCTION charge_resized;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never updated', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd
