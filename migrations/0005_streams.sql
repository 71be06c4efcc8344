-- What NATS has had of each stream, to find out that it has lost some of it; and
-- messages that it will never take.

-- +goose Up

-- Written now and then by the relay, after the server's acknowledgements.
CREATE TABLE streams (
    name    text PRIMARY KEY,
    created timestamptz NOT NULL, -- another one: the stream was made anew
    last    bigint NOT NULL       -- a sequence that the stream has had
) WITH (fillfactor = 10);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON streams FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- Messages of the outbox that cannot be published, for people to look at.
CREATE TABLE undelivered (
    seq      bigint PRIMARY KEY, -- in the outbox
    at       timestamptz NOT NULL DEFAULT now(),
    event_id text NOT NULL,
    subject  text NOT NULL,
    message  bytea NOT NULL,
    reason   text NOT NULL
);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON undelivered FOR EACH STATEMENT EXECUTE FUNCTION refuse_unfenced();

-- +goose Down
DROP TABLE streams, undelivered;
