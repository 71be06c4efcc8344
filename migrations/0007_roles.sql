-- Who may do what. The role that migrates owns the tables; queue-manager's logins
-- are members of muster_queue_manager, which owns nothing and can change no schema;
-- who only looks is a member of muster_reader.

-- +goose Up

-- +goose StatementBegin
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['muster_queue_manager', 'muster_reader'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL; -- roles are of the whole server
            WHEN insufficient_privilege THEN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
                    RAISE EXCEPTION 'role % does not exist: create it (CREATE ROLE % NOLOGIN), or migrate as a role that may create roles',
                        wanted, wanted;
                END IF;
        END;
    END LOOP;
END $$;
-- +goose StatementEnd

-- The leader shows that it is alive in its session (migration 3 had this sequence
-- for it).
DROP SEQUENCE leader_beat;

GRANT SELECT ON ALL TABLES IN SCHEMA public TO muster_queue_manager;
GRANT UPDATE ON leader TO muster_queue_manager;
GRANT INSERT, UPDATE, DELETE ON queues, workloads, nodes, node_resources, reservations, quota_usage, policy, streams TO muster_queue_manager;
GRANT INSERT, DELETE ON shapes, manifests, outbox, commits TO muster_queue_manager;
-- A reservation's number of pods may change, nothing else of it (see its trigger).
REVOKE UPDATE ON reservations FROM muster_queue_manager;
GRANT UPDATE (pods) ON reservations TO muster_queue_manager;
-- What has happened stays: partitions go as a whole, by a function of the owner's.
GRANT INSERT ON archive, history, undelivered TO muster_queue_manager;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO muster_queue_manager;
REVOKE EXECUTE ON FUNCTION keep_partitions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_partitions TO muster_queue_manager;

-- Manifests are not for everybody's eyes, nor are the messages that carry them.
GRANT SELECT ON leader, queues, policy, shapes, workloads, archive, nodes, node_resources, reservations, quota_usage, commits, history,
    streams TO muster_reader;

-- +goose Down
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM muster_queue_manager, muster_reader;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM muster_queue_manager;
REVOKE ALL ON FUNCTION keep_partitions FROM muster_queue_manager;
GRANT EXECUTE ON FUNCTION keep_partitions TO PUBLIC;
CREATE SEQUENCE leader_beat;
