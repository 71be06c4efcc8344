-- What a stolen login of queue-manager's may do to the leader and to what has
-- happened. A role that owns the tables may do everything; services do not run as one.

-- +goose Up

-- An epoch begins only in the session that holds the lock of the leader, so nobody
-- ends the term of a leader whose session lives; and an epoch only grows, and never
-- so far that none could follow. The number is 0x6d7573746572 in its two halves.
-- +goose StatementBegin
CREATE FUNCTION refuse_usurper() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latest bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 366 * 86400 * 1000000::bigint;
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_locks l WHERE l.pid = pg_backend_pid() AND l.granted AND l.mode = 'ExclusiveLock'
            AND l.locktype = 'advisory' AND l.classid = 28021 AND l.objid = 1937007986 AND l.objsubid = 1
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) THEN
        RAISE EXCEPTION 'epoch % cannot end: this session does not hold the lock of the leader', OLD.epoch
            USING ERRCODE = 'insufficient_privilege', HINT = 'take the advisory lock 120351215609202 first; the leader''s session holds it while it lives';
    END IF;
    IF NEW.epoch <= OLD.epoch OR NEW.epoch > greatest(OLD.epoch + 1000, latest) OR length(NEW.holder) > 253 THEN
        RAISE EXCEPTION 'epoch % cannot follow epoch %: an epoch is larger than the one before, and not more than a year ahead of the clock', NEW.epoch, OLD.epoch
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER usurper BEFORE UPDATE ON leader FOR EACH ROW EXECUTE FUNCTION refuse_usurper();

-- The least time for which history, archive and decisions are kept, whatever the
-- service asks for: it may be told to keep less than it was. The owner may replace
-- the function by one that keeps for longer.
CREATE FUNCTION least_kept() RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '1 day' $$;

-- As before, but within least_kept.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION keep_partitions_of(mine bigint, parent text, days_ahead integer, keep interval)
RETURNS TABLE (made integer, dropped integer) LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET lock_timeout = '500ms' AS $$ -- who reads for long must not make the writers wait behind us
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    moment text := CASE parent WHEN 'archive' THEN 'finished_at' WHEN 'history' THEN 'at' WHEN 'decisions' THEN 'at' WHEN 'bases' THEN 'at' END;
    part record;
    day date;
BEGIN
    PERFORM assert_leader(mine);
    IF NOT pg_has_role(session_user, current_user, 'USAGE') THEN
        keep := greatest(keep, least_kept());
        days_ahead := least(days_ahead, 31);
    END IF;
    IF moment IS NULL THEN
        RAISE EXCEPTION 'table % has no partitions to keep', parent;
    END IF;
    made := 0;
    dropped := 0;
    FOR day IN SELECT d::date FROM generate_series(today, today + days_ahead, '1 day') d LOOP
        CONTINUE WHEN to_regclass(format('%I', parent || to_char(day, '_YYYYMMDD'))) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', parent || to_char(day, '_YYYYMMDD'),
                parent, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        EXCEPTION WHEN check_violation THEN
            NULL; -- rows of that day are in the rest already, and stay there
        END;
    END LOOP;
    FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent::regclass AND c.relname ~ '_[0-9]{8}$' LOOP
        IF (to_date(right(part.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' < now() - keep THEN
            EXECUTE format('DROP TABLE %I', part.relname);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE %I < now() - $1', parent || '_rest', moment) USING keep;
    RETURN NEXT;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION keep_partitions(mine bigint, days_ahead integer, keep_history interval, keep_archive interval)
RETURNS TABLE (made integer, dropped integer) LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET lock_timeout = '500ms' AS $$ -- who reads for long must not make the writers wait behind us
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    parent text;
    part record;
    day date;
    keep interval;
    ended timestamptz;
BEGIN
    PERFORM assert_leader(mine);
    IF NOT pg_has_role(session_user, current_user, 'USAGE') THEN
        keep_history := greatest(keep_history, least_kept());
        keep_archive := greatest(keep_archive, least_kept());
        days_ahead := least(days_ahead, 31);
    END IF;
    made := 0;
    dropped := 0;
    FOREACH parent IN ARRAY ARRAY['archive', 'history'] LOOP
        keep := CASE parent WHEN 'archive' THEN keep_archive ELSE keep_history END;
        FOR day IN SELECT d::date FROM generate_series(today, today + days_ahead, '1 day') d LOOP
            CONTINUE WHEN to_regclass(format('%I', parent || to_char(day, '_YYYYMMDD'))) IS NOT NULL;
            BEGIN
                EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', parent || to_char(day, '_YYYYMMDD'),
                    parent, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
                made := made + 1;
            EXCEPTION WHEN check_violation THEN
                NULL; -- rows of that day are in the rest already, and stay there
            END;
        END LOOP;
        FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = parent::regclass AND c.relname ~ '_[0-9]{8}$' LOOP
            ended := (to_date(right(part.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC';
            IF ended < now() - keep THEN
                EXECUTE format('DROP TABLE %I', part.relname);
                dropped := dropped + 1;
            END IF;
        END LOOP;
    END LOOP;
    DELETE FROM archive_rest WHERE finished_at < now() - keep_archive;
    DELETE FROM history_rest WHERE at < now() - keep_history;
    RETURN NEXT;
END $$;
-- +goose StatementEnd

-- Functions read the owner's tables, not temporary ones of the same names: those come
-- first unless pg_temp is named.
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_class c ON c.oid = 'leader'::regclass AND c.relnamespace = p.pronamespace
        WHERE p.proowner = c.relowner AND p.proname <> 'refuse_usurper' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s, pg_temp', f, current_setting('search_path'));
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER usurper ON leader;
DROP FUNCTION refuse_usurper;
CREATE OR REPLACE FUNCTION least_kept() RETURNS interval LANGUAGE sql IMMUTABLE AS $$ SELECT interval '-100 years' $$;
