-- The ledger's schema as the migrations make it, for readers. Made by
-- go test ./services/queue-manager/internal/store -run Schema -update
CREATE FUNCTION public.assert_leader(mine bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
DECLARE
    current bigint;
BEGIN
    SELECT epoch INTO STRICT current FROM leader FOR SHARE;
    IF current <> mine THEN
        RAISE EXCEPTION 'epoch % is over, the leader is of epoch %', mine, current USING ERRCODE = 'MUFEN';
    END IF;
    PERFORM set_config('muster.epoch', mine::text, true);
END $$;
CREATE FUNCTION public.charge_quota() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
DECLARE
    asked bigint;
    found_rows bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM changed WHERE charges IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    WITH demand AS (
        SELECT s.scope, f.value AS flavor, f.key AS resource, sum(c.pods * (c.requests->>f.key)::bigint) AS amount
        FROM changed c, jsonb_array_elements_text(c.charges->'scopes') s (scope), jsonb_each_text(c.charges->'flavors') f
        WHERE c.charges IS NOT NULL
        GROUP BY 1, 2, 3
        HAVING sum(c.pods * (c.requests->>f.key)::bigint) > 0
    ), charged AS (
        UPDATE quota_usage u
        SET used = CASE TG_OP WHEN 'INSERT' THEN u.used + d.amount ELSE u.used - d.amount END,
            had = CASE WHEN u.had_in = pg_current_xact_id() THEN u.had ELSE u.used END, had_in = pg_current_xact_id()
        FROM demand d
        WHERE u.scope = d.scope AND u.flavor = d.flavor AND u.resource = d.resource
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM demand), (SELECT count(*) FROM charged) INTO asked, found_rows;
    IF asked <> found_rows THEN
        RAISE EXCEPTION 'a reservation is charged to quota that does not exist (% charges, % found)', asked, found_rows
            USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.charge_quota_resized() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
DECLARE
    asked bigint;
    found_rows bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM changed WHERE charges IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    WITH part AS (
        SELECT s.scope, f.value AS flavor, f.key AS resource, c.pods * (c.requests->>f.key)::bigint AS amount,
            CASE WHEN c.charges <> o.charges THEN o.pods * (o.requests->>f.key)::bigint ELSE 0 END AS moved
        FROM changed c JOIN old o USING (workload, pod_set, node),
            jsonb_array_elements_text(c.charges->'scopes') s (scope), jsonb_each_text(c.charges->'flavors') f
        UNION ALL
        SELECT s.scope, f.value, f.key, -o.pods * (o.requests->>f.key)::bigint,
            CASE WHEN c.charges <> o.charges THEN -o.pods * (o.requests->>f.key)::bigint ELSE 0 END
        FROM changed c JOIN old o USING (workload, pod_set, node),
            jsonb_array_elements_text(o.charges->'scopes') s (scope), jsonb_each_text(o.charges->'flavors') f
    ), demand AS (
        SELECT scope, flavor, resource, sum(amount) AS amount, greatest(sum(moved), 0) AS moved
        FROM part GROUP BY 1, 2, 3 HAVING sum(amount) <> 0
    ), charged AS (
        UPDATE quota_usage u
        SET used = u.used + d.amount,
            had = CASE WHEN u.had_in = pg_current_xact_id() THEN u.had ELSE u.used END + d.moved, had_in = pg_current_xact_id()
        FROM demand d
        WHERE u.scope = d.scope AND u.flavor = d.flavor AND u.resource = d.resource
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM demand), (SELECT count(*) FROM charged) INTO asked, found_rows;
    IF asked <> found_rows THEN
        RAISE EXCEPTION 'a reservation is charged to quota that does not exist (% charges, % found)', asked, found_rows
            USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.charge_reservations() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
DECLARE
    asked bigint;
    found_rows bigint;
BEGIN
    WITH demand AS (
        SELECT c.cluster, c.node, r.key AS resource, sum(c.pods * r.value::bigint) AS amount
        FROM changed c, jsonb_each_text(c.requests) r
        GROUP BY c.cluster, c.node, r.key
        HAVING sum(c.pods * r.value::bigint) > 0
    ), charged AS (
        UPDATE node_resources n
        SET reserved = CASE TG_OP WHEN 'INSERT' THEN n.reserved + d.amount ELSE n.reserved - d.amount END,
            had = CASE WHEN n.had_in = pg_current_xact_id() THEN n.had ELSE n.reserved END, had_in = pg_current_xact_id()
        FROM demand d
        WHERE n.cluster = d.cluster AND n.node = d.node AND n.resource = d.resource
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM demand), (SELECT count(*) FROM charged) INTO asked, found_rows;
    IF asked <> found_rows THEN
        RAISE EXCEPTION 'a reservation asks for a resource that its node does not have (% asked, % found)', asked, found_rows
            USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overcommit';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.charge_resized() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
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
CREATE FUNCTION public.keep_partitions(mine bigint, days_ahead integer, keep_history interval, keep_archive interval) RETURNS TABLE(made integer, dropped integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO '$user', 'public', 'pg_temp'
    SET lock_timeout TO '500ms'
    AS $_$ -- who reads for long must not make the writers wait behind us
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
END $_$;
CREATE FUNCTION public.keep_partitions_of(mine bigint, parent text, days_ahead integer, keep interval) RETURNS TABLE(made integer, dropped integer)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO '$user', 'public', 'pg_temp'
    SET lock_timeout TO '500ms'
    AS $_$ -- who reads for long must not make the writers wait behind us
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
END $_$;
CREATE FUNCTION public.labels_of(manifest json) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found json;
BEGIN
    found := coalesce(manifest #> '{metadata,labels}', manifest #> '{items,0,object,metadata,labels}');
    IF json_typeof(found) = 'object' THEN
        RETURN coalesce((SELECT jsonb_object_agg(key, value) FROM json_each_text(found)
            WHERE value IS NOT NULL AND length(key) <= 317 AND length(value) <= 63), '{}');
    END IF;
    RETURN '{}';
EXCEPTION WHEN untranslatable_character THEN
    RETURN '{}'; -- a text of Postgres has no character of number 0
END $$;
CREATE FUNCTION public.least_kept() RETURNS interval
    LANGUAGE sql IMMUTABLE
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$ SELECT interval '1 day' $$;
CREATE FUNCTION public.note_labels() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
BEGIN
    NEW.labels := labels_of(NEW.manifest);
    RETURN NEW;
END $$;
CREATE FUNCTION public.refuse_delete() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION 'node %/%: % of % is reserved', OLD.cluster, OLD.node, OLD.reserved, OLD.resource
        USING ERRCODE = 'check_violation', CONSTRAINT = 'node_in_use';
END $$;
CREATE FUNCTION public.refuse_overcommit() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
BEGIN
    IF NEW.had_in = pg_current_xact_id() AND NEW.reserved <= NEW.had THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'node %/%: % of % would be reserved beside % used, but % is allocatable',
        NEW.cluster, NEW.node, NEW.reserved, NEW.resource, NEW.used, NEW.allocatable
        USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overcommit';
END $$;
CREATE FUNCTION public.refuse_overuse() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
BEGIN
    IF NEW.had_in = pg_current_xact_id() AND NEW.used <= NEW.had THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '%: % of % of flavor % would be used, but the quota is at most %', NEW.scope, NEW.used, NEW.resource, NEW.flavor, NEW.bound
        USING ERRCODE = 'check_violation', CONSTRAINT = 'no_overuse';
END $$;
CREATE FUNCTION public.refuse_ownerless() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
DECLARE
    wrong record;
BEGIN
    IF TG_TABLE_NAME = 'workloads' THEN
        SELECT r.workload, 0 AS gang, r.pods AS placed INTO wrong FROM changed c JOIN reservations r ON r.workload = c.id LIMIT 1;
    ELSE
        SELECT c.workload, w.gang, (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.workload) AS placed
        INTO wrong
        FROM (SELECT DISTINCT workload FROM changed) c LEFT JOIN workloads w ON w.id = c.workload
        WHERE (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.workload)
            <> CASE WHEN w.holding THEN w.gang ELSE 0 END
        LIMIT 1;
    END IF;
    IF wrong.workload IS NOT NULL THEN
        RAISE EXCEPTION 'workload % has % pods placed, which is neither none nor its gang of %', wrong.workload, wrong.placed, wrong.gang
            USING ERRCODE = 'check_violation', CONSTRAINT = 'all_or_nothing';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.refuse_partial_gangs() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
DECLARE
    wrong record;
BEGIN
    SELECT c.id, c.queue, c.phase, c.gang, s.pods, q.name IS NULL AS no_queue,
        (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.id) AS placed
    INTO wrong
    FROM changed c LEFT JOIN shapes s ON s.id = c.shape LEFT JOIN queues q ON q.name = c.queue
    WHERE q.name IS NULL OR s.pods IS DISTINCT FROM c.gang OR
        (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = c.id) <> CASE WHEN c.holding THEN c.gang ELSE 0 END
    LIMIT 1;
    IF wrong.no_queue THEN
        RAISE EXCEPTION 'workload % names queue %, which does not exist', wrong.id, wrong.queue
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'workloads_queue';
    ELSIF wrong.id IS NOT NULL THEN
        RAISE EXCEPTION 'workload % is % with % of % pods placed (% in its shape)', wrong.id, wrong.phase, wrong.placed, wrong.gang, wrong.pods
            USING ERRCODE = 'check_violation', CONSTRAINT = 'all_or_nothing';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.refuse_unfenced() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
BEGIN
    IF current_setting('muster.epoch', true) IS DISTINCT FROM (SELECT epoch::text FROM leader) THEN
        RAISE EXCEPTION '% of % is not the leader''s: its transaction has epoch %, which is not the present one',
            TG_OP, TG_TABLE_NAME, coalesce(nullif(current_setting('muster.epoch', true), ''), '(none)') USING ERRCODE = 'MUFEN';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.refuse_update() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public', 'pg_temp'
    AS $$
BEGIN
    IF TG_TABLE_NAME = 'reservations'
        AND to_jsonb(NEW) - 'pods' #- '{charges,scopes}' = to_jsonb(OLD) - 'pods' #- '{charges,scopes}' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of % are never updated', TG_TABLE_NAME;
END $$;
CREATE FUNCTION public.refuse_usurper() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
CREATE TABLE public.applied (
    kind text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    origin text NOT NULL,
    manifest json NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.applied_changes (
    version bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    epoch bigint NOT NULL,
    origin text NOT NULL,
    written jsonb NOT NULL,
    removed jsonb NOT NULL
);
CREATE TABLE public.archive (
    id uuid NOT NULL,
    submission bigint NOT NULL,
    queue text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    phase text NOT NULL,
    digest text NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    record json NOT NULL,
    manifest json,
    labels jsonb,
    CONSTRAINT archive_phase_check CHECK ((phase = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])))
)
PARTITION BY RANGE (finished_at);
CREATE TABLE public.archive_rest (
    id uuid NOT NULL,
    submission bigint NOT NULL,
    queue text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    phase text NOT NULL,
    digest text NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    record json NOT NULL,
    manifest json,
    labels jsonb,
    CONSTRAINT archive_phase_check CHECK ((phase = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE TABLE public.bases (
    epoch bigint NOT NULL,
    part integer NOT NULL,
    version bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    content bytea NOT NULL
)
PARTITION BY RANGE (at);
ALTER TABLE ONLY public.bases ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE public.bases_rest (
    epoch bigint NOT NULL,
    part integer NOT NULL,
    version bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE ONLY public.bases_rest ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE public.budget_usage (
    budget text NOT NULL,
    spec text NOT NULL,
    begins timestamp with time zone NOT NULL,
    upto timestamp with time zone NOT NULL,
    hours double precision NOT NULL
);
CREATE TABLE public.commits (
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    workloads uuid[] NOT NULL,
    clusters text[] NOT NULL,
    nodes text[] NOT NULL,
    settings boolean DEFAULT false NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='0');
CREATE TABLE public.decisions (
    epoch bigint NOT NULL,
    number bigint NOT NULL,
    version bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    inputs bytea NOT NULL,
    outcome bytea NOT NULL
)
PARTITION BY RANGE (at);
ALTER TABLE ONLY public.decisions ALTER COLUMN inputs SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.decisions ALTER COLUMN outcome SET STORAGE EXTERNAL;
CREATE TABLE public.decisions_rest (
    epoch bigint NOT NULL,
    number bigint NOT NULL,
    version bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    inputs bytea NOT NULL,
    outcome bytea NOT NULL
);
ALTER TABLE ONLY public.decisions_rest ALTER COLUMN inputs SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.decisions_rest ALTER COLUMN outcome SET STORAGE EXTERNAL;
CREATE TABLE public.estimate_scores (
    seq bigint NOT NULL,
    workload uuid NOT NULL,
    queue text NOT NULL,
    made timestamp with time zone NOT NULL,
    started timestamp with time zone NOT NULL,
    wait bigint NOT NULL,
    quantiles bigint[] NOT NULL
);
ALTER TABLE public.estimate_scores ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.estimate_scores_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.estimates (
    seq bigint NOT NULL,
    workload uuid NOT NULL,
    made timestamp with time zone NOT NULL,
    queue text NOT NULL,
    wait bigint,
    quantiles bigint[],
    unknown text,
    CONSTRAINT estimates_check CHECK (((wait IS NULL) = (quantiles IS NULL)))
);
ALTER TABLE public.estimates ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.estimates_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE SEQUENCE public.history_order
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.history (
    seq bigint DEFAULT nextval('public.history_order'::regclass) NOT NULL,
    workload uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    epoch bigint NOT NULL,
    version bigint NOT NULL,
    phase text NOT NULL,
    attempt integer NOT NULL,
    cluster text,
    reason jsonb,
    event_id text,
    usage jsonb
)
PARTITION BY RANGE (at);
CREATE TABLE public.history_rest (
    seq bigint DEFAULT nextval('public.history_order'::regclass) NOT NULL,
    workload uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    epoch bigint NOT NULL,
    version bigint NOT NULL,
    phase text NOT NULL,
    attempt integer NOT NULL,
    cluster text,
    reason jsonb,
    event_id text,
    usage jsonb
);
CREATE TABLE public.leader (
    only_row boolean DEFAULT true NOT NULL,
    epoch bigint NOT NULL,
    holder text NOT NULL,
    since timestamp with time zone NOT NULL,
    CONSTRAINT leader_only_row_check CHECK (only_row)
);
CREATE TABLE public.learned (
    queue text NOT NULL,
    kind text NOT NULL,
    size integer NOT NULL,
    durations jsonb NOT NULL
);
CREATE TABLE public.manifests (
    workload uuid NOT NULL,
    manifest json NOT NULL,
    labels jsonb
);
CREATE TABLE public.node_resources (
    cluster text NOT NULL,
    node text NOT NULL,
    resource text NOT NULL,
    allocatable bigint NOT NULL,
    used bigint NOT NULL,
    reserved bigint DEFAULT 0 NOT NULL,
    had bigint,
    had_in xid8,
    CONSTRAINT node_resources_reserved_check CHECK ((reserved >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');
CREATE TABLE public.nodes (
    cluster text NOT NULL,
    name text NOT NULL,
    session bigint NOT NULL,
    seq bigint NOT NULL,
    present boolean NOT NULL,
    observed jsonb NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1');
CREATE TABLE public.outbox (
    seq bigint NOT NULL,
    event_id text NOT NULL,
    subject text NOT NULL,
    ttl interval NOT NULL,
    message bytea NOT NULL,
    manifest_of uuid
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000', autovacuum_vacuum_cost_delay='0');
ALTER TABLE public.outbox ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.past_usage (
    queue text NOT NULL,
    history jsonb NOT NULL
);
CREATE TABLE public.policy (
    only_row boolean DEFAULT true NOT NULL,
    config jsonb NOT NULL,
    CONSTRAINT policy_only_row_check CHECK (only_row)
);
CREATE TABLE public.quarantine (
    kind text NOT NULL,
    cluster text NOT NULL,
    name text NOT NULL,
    level integer NOT NULL,
    until timestamp with time zone,
    attempt integer NOT NULL,
    tries integer NOT NULL,
    why text NOT NULL,
    epoch bigint NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT quarantine_kind_check CHECK ((kind = ANY (ARRAY['workload'::text, 'node'::text])))
);
CREATE TABLE public.queues (
    name text NOT NULL,
    namespaces text[] NOT NULL,
    strategy text NOT NULL,
    rules jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT queues_namespaces_check CHECK ((cardinality(namespaces) > 0)),
    CONSTRAINT queues_strategy_check CHECK ((strategy = ANY (ARRAY['StrictFIFO'::text, 'BestEffortFIFO'::text, 'Backfill'::text])))
);
CREATE TABLE public.quota_usage (
    scope text NOT NULL,
    flavor text NOT NULL,
    resource text NOT NULL,
    bound bigint NOT NULL,
    used bigint DEFAULT 0 NOT NULL,
    had bigint,
    had_in xid8,
    CONSTRAINT quota_usage_bound_check CHECK ((bound >= 0)),
    CONSTRAINT quota_usage_used_check CHECK ((used >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');
CREATE TABLE public.reservations (
    workload uuid NOT NULL,
    attempt integer NOT NULL,
    cluster text NOT NULL,
    node text NOT NULL,
    pod_set text NOT NULL,
    pods integer NOT NULL,
    hostname text NOT NULL,
    requests jsonb NOT NULL,
    charges jsonb,
    CONSTRAINT reservations_pods_check CHECK ((pods > 0))
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');
CREATE TABLE public.shapes (
    id uuid NOT NULL,
    pod_sets jsonb NOT NULL,
    pods integer NOT NULL
);
CREATE TABLE public.streams (
    name text NOT NULL,
    created timestamp with time zone NOT NULL,
    last bigint NOT NULL
)
WITH (fillfactor='10');
CREATE TABLE public.undelivered (
    seq bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    event_id text NOT NULL,
    subject text NOT NULL,
    message bytea NOT NULL,
    reason text NOT NULL
);
CREATE TABLE public.workloads (
    id uuid NOT NULL,
    submission bigint NOT NULL,
    queue text NOT NULL,
    namespace text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    priority integer NOT NULL,
    digest text NOT NULL,
    phase text NOT NULL,
    attempt integer NOT NULL,
    cluster text,
    holding boolean NOT NULL,
    cancel_requested boolean NOT NULL,
    reason jsonb,
    submitted_at timestamp with time zone NOT NULL,
    admitted_at timestamp with time zone,
    dispatched_at timestamp with time zone,
    running_at timestamp with time zone,
    finished_at timestamp with time zone,
    life jsonb DEFAULT '{}'::jsonb NOT NULL,
    requeues integer DEFAULT 0 NOT NULL,
    not_before timestamp with time zone,
    evict_at timestamp with time zone,
    shape uuid NOT NULL,
    gang integer NOT NULL,
    flavors jsonb,
    submitter text DEFAULT ''::text NOT NULL,
    provisioning jsonb,
    hold jsonb,
    asked jsonb,
    heard_again timestamp with time zone,
    saved jsonb,
    CONSTRAINT live CHECK (((phase <> ALL (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])) OR holding)),
    CONSTRAINT workloads_attempt_check CHECK ((attempt >= 1)),
    CONSTRAINT workloads_check CHECK (((phase = ANY (ARRAY['admitted'::text, 'dispatched'::text, 'running'::text, 'evicting'::text, 'cancelling'::text])) <= holding)),
    CONSTRAINT workloads_check1 CHECK (((phase <> 'queued'::text) OR (NOT holding))),
    CONSTRAINT workloads_check2 CHECK (((NOT holding) OR (cluster IS NOT NULL))),
    CONSTRAINT workloads_phase_check CHECK ((phase = ANY (ARRAY['queued'::text, 'admitted'::text, 'dispatched'::text, 'running'::text, 'evicting'::text, 'cancelling'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT workloads_requeues_check CHECK ((requeues >= 0))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_cost_delay='0');
ALTER TABLE ONLY public.archive ATTACH PARTITION public.archive_rest DEFAULT;
ALTER TABLE ONLY public.bases ATTACH PARTITION public.bases_rest DEFAULT;
ALTER TABLE ONLY public.decisions ATTACH PARTITION public.decisions_rest DEFAULT;
ALTER TABLE ONLY public.history ATTACH PARTITION public.history_rest DEFAULT;
ALTER TABLE ONLY public.applied_changes
    ADD CONSTRAINT applied_changes_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.applied
    ADD CONSTRAINT applied_pkey PRIMARY KEY (kind, namespace, name);
ALTER TABLE ONLY public.budget_usage
    ADD CONSTRAINT budget_usage_pkey PRIMARY KEY (budget);
ALTER TABLE ONLY public.commits
    ADD CONSTRAINT commits_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.estimate_scores
    ADD CONSTRAINT estimate_scores_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.estimate_scores
    ADD CONSTRAINT estimate_scores_workload_made_key UNIQUE (workload, made);
ALTER TABLE ONLY public.estimates
    ADD CONSTRAINT estimates_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.estimates
    ADD CONSTRAINT estimates_workload_made_key UNIQUE (workload, made);
ALTER TABLE ONLY public.leader
    ADD CONSTRAINT leader_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.learned
    ADD CONSTRAINT learned_pkey PRIMARY KEY (queue, kind, size);
ALTER TABLE ONLY public.manifests
    ADD CONSTRAINT manifests_pkey PRIMARY KEY (workload);
ALTER TABLE ONLY public.node_resources
    ADD CONSTRAINT node_resources_pkey PRIMARY KEY (cluster, node, resource);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (cluster, name);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.past_usage
    ADD CONSTRAINT past_usage_pkey PRIMARY KEY (queue);
ALTER TABLE ONLY public.policy
    ADD CONSTRAINT policy_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.quarantine
    ADD CONSTRAINT quarantine_pkey PRIMARY KEY (kind, cluster, name);
ALTER TABLE ONLY public.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.quota_usage
    ADD CONSTRAINT quota_usage_pkey PRIMARY KEY (scope, flavor, resource);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (workload, pod_set, node);
ALTER TABLE ONLY public.shapes
    ADD CONSTRAINT shapes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.streams
    ADD CONSTRAINT streams_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.undelivered
    ADD CONSTRAINT undelivered_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.workloads
    ADD CONSTRAINT workloads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workloads
    ADD CONSTRAINT workloads_submission_key UNIQUE (submission);
CREATE INDEX archive_id ON ONLY public.archive USING btree (id);
CREATE INDEX archive_labels ON ONLY public.archive USING gin (labels);
CREATE INDEX archive_name ON ONLY public.archive USING btree (name);
CREATE INDEX archive_rest_id_idx ON public.archive_rest USING btree (id);
CREATE INDEX archive_rest_labels_idx ON public.archive_rest USING gin (labels);
CREATE INDEX archive_rest_name_idx ON public.archive_rest USING btree (name);
CREATE INDEX archive_submission ON ONLY public.archive USING btree (submission);
CREATE INDEX archive_rest_submission_idx ON public.archive_rest USING btree (submission);
CREATE INDEX bases_order ON ONLY public.bases USING btree (epoch, part);
CREATE INDEX bases_rest_epoch_part_idx ON public.bases_rest USING btree (epoch, part);
CREATE INDEX decisions_order ON ONLY public.decisions USING btree (epoch, number);
CREATE INDEX decisions_rest_epoch_number_idx ON public.decisions_rest USING btree (epoch, number);
CREATE INDEX estimate_scores_queue ON public.estimate_scores USING btree (queue, seq);
CREATE INDEX history_seq ON ONLY public.history USING btree (seq);
CREATE INDEX history_rest_seq_idx ON public.history_rest USING btree (seq);
CREATE INDEX history_usage ON ONLY public.history USING btree (seq) WHERE (usage IS NOT NULL);
CREATE INDEX history_rest_seq_idx1 ON public.history_rest USING btree (seq) WHERE (usage IS NOT NULL);
CREATE INDEX history_workload ON ONLY public.history USING btree (workload, seq);
CREATE INDEX history_rest_workload_seq_idx ON public.history_rest USING btree (workload, seq);
CREATE UNIQUE INDEX workloads_live_object ON public.workloads USING btree (name, namespace, kind, COALESCE("substring"(submitter, '^kubernetes/([^/]*)'::text), ''::text));
CREATE INDEX workloads_order ON public.workloads USING btree (queue, priority DESC, submission);
ALTER INDEX public.archive_id ATTACH PARTITION public.archive_rest_id_idx;
ALTER INDEX public.archive_labels ATTACH PARTITION public.archive_rest_labels_idx;
ALTER INDEX public.archive_name ATTACH PARTITION public.archive_rest_name_idx;
ALTER INDEX public.archive_submission ATTACH PARTITION public.archive_rest_submission_idx;
ALTER INDEX public.bases_order ATTACH PARTITION public.bases_rest_epoch_part_idx;
ALTER INDEX public.decisions_order ATTACH PARTITION public.decisions_rest_epoch_number_idx;
ALTER INDEX public.history_seq ATTACH PARTITION public.history_rest_seq_idx;
ALTER INDEX public.history_usage ATTACH PARTITION public.history_rest_seq_idx1;
ALTER INDEX public.history_workload ATTACH PARTITION public.history_rest_workload_seq_idx;
CREATE TRIGGER all_or_nothing_added AFTER INSERT ON public.workloads REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_partial_gangs();
CREATE TRIGGER all_or_nothing_changed AFTER UPDATE ON public.workloads REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_partial_gangs();
CREATE TRIGGER charge_added AFTER INSERT ON public.reservations REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.charge_reservations();
CREATE TRIGGER charge_removed AFTER DELETE ON public.reservations REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.charge_reservations();
CREATE TRIGGER charge_resized AFTER UPDATE ON public.reservations REFERENCING OLD TABLE AS old NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.charge_resized();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.applied FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.applied_changes FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.archive FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.bases FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.budget_usage FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.commits FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.decisions FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.estimate_scores FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.estimates FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.history FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.learned FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.manifests FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.node_resources FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.nodes FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.outbox FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.past_usage FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.policy FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE ON public.quarantine FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.queues FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.quota_usage FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.reservations FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.shapes FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.streams FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.undelivered FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER fenced BEFORE INSERT OR DELETE OR UPDATE ON public.workloads FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_unfenced();
CREATE TRIGGER labelled BEFORE INSERT ON public.archive FOR EACH ROW EXECUTE FUNCTION public.note_labels();
CREATE TRIGGER labelled BEFORE INSERT ON public.manifests FOR EACH ROW EXECUTE FUNCTION public.note_labels();
CREATE TRIGGER no_overcommit BEFORE UPDATE OF reserved ON public.node_resources FOR EACH ROW WHEN (((new.reserved > old.reserved) AND ((new.reserved + new.used) > new.allocatable))) EXECUTE FUNCTION public.refuse_overcommit();
CREATE TRIGGER no_overuse BEFORE UPDATE OF used ON public.quota_usage FOR EACH ROW WHEN (((new.used > old.used) AND (new.used > new.bound))) EXECUTE FUNCTION public.refuse_overuse();
CREATE TRIGGER node_in_use BEFORE DELETE ON public.node_resources FOR EACH ROW WHEN ((old.reserved > 0)) EXECUTE FUNCTION public.refuse_delete();
CREATE TRIGGER owned AFTER DELETE ON public.workloads REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_ownerless();
CREATE TRIGGER owned_added AFTER INSERT ON public.reservations REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_ownerless();
CREATE TRIGGER owned_removed AFTER DELETE ON public.reservations REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_ownerless();
CREATE TRIGGER owned_resized AFTER UPDATE ON public.reservations REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_ownerless();
CREATE TRIGGER quota_added AFTER INSERT ON public.reservations REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.charge_quota();
CREATE TRIGGER quota_removed AFTER DELETE ON public.reservations REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.charge_quota();
CREATE TRIGGER quota_resized AFTER UPDATE ON public.reservations REFERENCING OLD TABLE AS old NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.charge_quota_resized();
CREATE TRIGGER reservations_are_facts BEFORE UPDATE ON public.reservations FOR EACH ROW EXECUTE FUNCTION public.refuse_update();
CREATE TRIGGER usurper BEFORE UPDATE ON public.leader FOR EACH ROW EXECUTE FUNCTION public.refuse_usurper();
ALTER TABLE ONLY public.node_resources
    ADD CONSTRAINT node_resources_cluster_node_fkey FOREIGN KEY (cluster, node) REFERENCES public.nodes(cluster, name);
REVOKE ALL ON FUNCTION public.keep_partitions(mine bigint, days_ahead integer, keep_history interval, keep_archive interval) FROM PUBLIC;
GRANT ALL ON FUNCTION public.keep_partitions(mine bigint, days_ahead integer, keep_history interval, keep_archive interval) TO muster_queue_manager;
REVOKE ALL ON FUNCTION public.keep_partitions_of(mine bigint, parent text, days_ahead integer, keep interval) FROM PUBLIC;
GRANT ALL ON FUNCTION public.keep_partitions_of(mine bigint, parent text, days_ahead integer, keep interval) TO muster_queue_manager;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.applied TO muster_queue_manager;
GRANT SELECT ON TABLE public.applied TO muster_reader;
GRANT SELECT,INSERT ON TABLE public.applied_changes TO muster_queue_manager;
GRANT SELECT ON TABLE public.applied_changes TO muster_reader;
GRANT SELECT,INSERT ON TABLE public.archive TO muster_queue_manager;
GRANT SELECT ON TABLE public.archive TO muster_reader;
GRANT SELECT ON TABLE public.archive_rest TO muster_queue_manager;
GRANT SELECT,INSERT ON TABLE public.bases TO muster_queue_manager;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.budget_usage TO muster_queue_manager;
GRANT SELECT ON TABLE public.budget_usage TO muster_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.commits TO muster_queue_manager;
GRANT SELECT ON TABLE public.commits TO muster_reader;
GRANT SELECT,INSERT ON TABLE public.decisions TO muster_queue_manager;
GRANT SELECT,INSERT,DELETE ON TABLE public.estimate_scores TO muster_queue_manager;
GRANT SELECT ON TABLE public.estimate_scores TO muster_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.estimates TO muster_queue_manager;
GRANT SELECT ON TABLE public.estimates TO muster_reader;
GRANT USAGE ON SEQUENCE public.history_order TO muster_queue_manager;
GRANT SELECT,INSERT ON TABLE public.history TO muster_queue_manager;
GRANT SELECT ON TABLE public.history TO muster_reader;
GRANT SELECT ON TABLE public.history_rest TO muster_queue_manager;
GRANT SELECT,UPDATE ON TABLE public.leader TO muster_queue_manager;
GRANT SELECT ON TABLE public.leader TO muster_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.learned TO muster_queue_manager;
GRANT SELECT ON TABLE public.learned TO muster_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.manifests TO muster_queue_manager;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.node_resources TO muster_queue_manager;
GRANT SELECT ON TABLE public.node_resources TO muster_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.nodes TO muster_queue_manager;
GRANT SELECT ON TABLE public.nodes TO muster_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.outbox TO muster_queue_manager;
GRANT USAGE ON SEQUENCE public.outbox_seq_seq TO muster_queue_manager;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.past_usage TO muster_queue_manager;
GRANT SELECT ON TABLE public.past_usage TO muster_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.policy TO muster_queue_manager;
GRANT SELECT ON TABLE public.policy TO muster_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.quarantine TO muster_queue_manager;
GRANT SELECT ON TABLE public.quarantine TO muster_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.queues TO muster_queue_manager;
GRANT SELECT ON TABLE public.queues TO muster_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.quota_usage TO muster_queue_manager;
GRANT SELECT ON TABLE public.quota_usage TO muster_reader;
GRANT SELECT,INSERT,DELETE ON TABLE public.reservations TO muster_queue_manager;
GRANT SELECT ON TABLE public.reservations TO muster_reader;
GRANT UPDATE(pods) ON TABLE public.reservations TO muster_queue_manager;
GRANT UPDATE(charges) ON TABLE public.reservations TO muster_queue_manager;
GRANT SELECT,INSERT,DELETE ON TABLE public.shapes TO muster_queue_manager;
GRANT SELECT ON TABLE public.shapes TO muster_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.streams TO muster_queue_manager;
GRANT SELECT ON TABLE public.streams TO muster_reader;
GRANT SELECT,INSERT ON TABLE public.undelivered TO muster_queue_manager;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.workloads TO muster_queue_manager;
GRANT SELECT ON TABLE public.workloads TO muster_reader;
