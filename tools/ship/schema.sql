-- SPDX-License-Identifier: Apache-2.0
-- The schema annal, in which annal ship stores events in PostgreSQL. This text can be run again on every older
-- version of itself: `annal ship schema` prints it, and a shipper whose role has the rights runs it in one
-- transaction, under an advisory lock.
--
-- Names that begin with _ are private to the shipper; the views are for users.
--
-- Exactly once. For each session of each store, _heads contains the last event in this database and its hash. A batch
-- locks the heads of its sessions, inserts events that continue them, moves each head on the condition that it is
-- unchanged, creates new heads, and commits. Rows and heads therefore always belong to the same moment, also in a
-- dump and in a replica.
DO $$ BEGIN
    IF to_regnamespace('annal') IS NULL THEN
        CREATE SCHEMA annal;
    END IF;
END $$;

CREATE TABLE IF NOT EXISTS annal._schema (
    version  integer NOT NULL,
    one_row  boolean PRIMARY KEY DEFAULT true CHECK (one_row)
);

-- key stands for (store, session) in the rows of events. at: offset of event seq + 1 in the journal, in bytes. file:
-- id of that journal. parent, forked_at: for a fork, whose own events start after forked_at. first_day, last_day: all
-- events of the session arrived within these days, so that readers need only these partitions.
CREATE TABLE IF NOT EXISTS annal._heads (
    store       text COLLATE "C" NOT NULL,
    session     text COLLATE "C" NOT NULL,
    key         bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    seq         bigint NOT NULL,
    h           bigint NOT NULL,
    at          bigint NOT NULL,
    file        text NOT NULL,
    created_at  timestamptz,
    parent      text COLLATE "C",
    forked_at   bigint,
    shipped_at  timestamptz NOT NULL DEFAULT now(),
    first_day   date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
    last_day    date NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
    PRIMARY KEY (store, session)
) WITH (fillfactor = 70);

-- day is the day of arrival (UTC); old events are deleted by dropping a partition. h is the hash of the event, as a
-- signed number. data is json, not jsonb, and so stays byte for byte as it was appended.
CREATE TABLE IF NOT EXISTS annal._events (
    key    bigint NOT NULL,
    seq    bigint NOT NULL,
    day    date NOT NULL,
    ts     timestamptz NOT NULL,
    type   text COLLATE "C" NOT NULL,
    id     text COLLATE "C",
    cause  text COLLATE "C",
    data   json NOT NULL,
    h      bigint NOT NULL,
    PRIMARY KEY (key, seq, day)
) PARTITION BY RANGE (day);

CREATE INDEX IF NOT EXISTS _events_type ON annal._events (type, ts);

-- Several stores may have a session of the same name, and a query may not know which.
CREATE INDEX IF NOT EXISTS _heads_session ON annal._heads (session);

-- Return today's date, and create the partitions of today and tomorrow. Shippers may call it without owning the
-- table. A partition is created as a separate table and then attached, which does not wait for running inserts.
-- Existence is checked in pg_class, because to_regclass() may answer from a cache that lacks what was committed while
-- this function waited for the lock.
CREATE OR REPLACE FUNCTION annal._today() RETURNS date LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    name text;
BEGIN
    FOR i IN 0..1 LOOP
        name := 'events_' || to_char(today + i, 'YYYYMMDD');
        CONTINUE WHEN to_regclass('annal.' || name) IS NOT NULL;
        PERFORM pg_advisory_xact_lock(hashtext('annal'));
        CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relname = name AND relnamespace = 'annal'::regnamespace);
        EXECUTE format('CREATE TABLE annal.%I (LIKE annal._events INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE annal._events ATTACH PARTITION annal.%I FOR VALUES FROM (%L) TO (%L)',
                       name, today + i, today + i + 1);
    END LOOP;
    RETURN today;
END $$;

SELECT annal._today();

-- Homes. A session that moves between stores has one home at a time: a lease with an epoch. A store ships the session
-- only if its store name and epoch equal those of the row. A batch locks the rows of its sessions FOR KEY SHARE, so
-- no store can take such a session during the batch, but leases can be renewed. store: NULL after a release. was: the
-- previous home. Sessions without a row, and those with epoch 0, which no store has taken yet, are shipped without a
-- home.
CREATE TABLE IF NOT EXISTS annal._homes (
    session  text COLLATE "C" PRIMARY KEY,
    store    text COLLATE "C",
    was      text COLLATE "C",
    epoch    bigint NOT NULL DEFAULT 0,
    until    timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 70);

-- Wait until all running batches have ended. A batch that began before the row of a session existed has not locked
-- that row.
CREATE OR REPLACE FUNCTION annal._wait_for_batches() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    running text[] := ARRAY(SELECT virtualtransaction FROM pg_locks WHERE relation = 'annal._homes'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND mode = 'RowShareLock');
BEGIN
    WHILE EXISTS (SELECT FROM pg_locks WHERE relation = 'annal._homes'::regclass AND mode = 'RowShareLock'
        AND virtualtransaction = ANY (running)) LOOP
        PERFORM pg_sleep(0.005);
    END LOOP;
END $$;

-- Return numbers for new heads. Shippers may call it without a right on the sequence.
CREATE OR REPLACE FUNCTION annal._new_keys(count bigint) RETURNS bigint[] LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT array_agg(nextval('annal._heads_key_seq')) FROM generate_series(1, count)
$$;

-- Begin a batch. Returns for each session, in the given order: away, which is true if its home is another store or
-- has another epoch; and its head, locked. A session without a head gets a new key, and is_new is true. If two
-- shippers of a store begin with the same session, one waits, so they do not both send it. Plans are made once per
-- connection, when tables may still be empty.
CREATE OR REPLACE FUNCTION annal._begin_batch(of_store text, sessions text[], epochs bigint[])
    RETURNS TABLE (day integer, away boolean, is_new boolean, key bigint, seq bigint, h bigint, at bigint)
    LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    aways boolean[];
    keys bigint[];
    seqs bigint[];
    hs bigint[];
    ats bigint[];
    new_keys bigint[];
BEGIN
    day := annal._today() - date '2000-01-01';
    PERFORM pg_advisory_xact_lock(hashtextextended(of_store || ' ' || sessions[1], 0));
    SELECT array_agg(coalesce(o.epoch, 0) > 0 AND (o.store IS DISTINCT FROM of_store OR o.epoch <> entry.epoch) ORDER BY n)
        INTO aways
        FROM (SELECT * FROM unnest(sessions, epochs) WITH ORDINALITY AS entry (session, epoch, n) ORDER BY 1 OFFSET 0) AS entry
             LEFT JOIN LATERAL (
                 SELECT * FROM annal._homes o WHERE o.session = entry.session FOR KEY SHARE) AS o ON true;
    SELECT array_agg(o.key ORDER BY n), array_agg(o.seq ORDER BY n), array_agg(o.h ORDER BY n), array_agg(o.at ORDER BY n)
        INTO keys, seqs, hs, ats
        FROM (SELECT * FROM unnest(sessions) WITH ORDINALITY AS entry (session, n) ORDER BY 1 OFFSET 0) AS entry
             LEFT JOIN LATERAL (
                 SELECT * FROM annal._heads o
                 WHERE o.store = of_store AND o.session = entry.session FOR UPDATE) AS o ON true;
    IF array_position(keys, NULL) IS NOT NULL THEN
        new_keys := annal._new_keys(cardinality(keys));
    END IF;
    RETURN QUERY SELECT _begin_batch.day, a, k IS NULL, coalesce(k, new_keys[n]), s, x, y
        FROM unnest(aways, keys, seqs, hs, ats) WITH ORDINALITY AS entry (a, k, s, x, y, n) ORDER BY n;
END $$;

-- End a batch by compare and set: it fails if a head was changed after the batch began, or if another process has
-- created one of the new heads in the meantime. session: '' unless the head is new. The day is the day of this
-- transaction, as in _today(); the clock may have been set back since the last batch.
CREATE OR REPLACE FUNCTION annal._move_heads(of_store text, keys bigint[], from_seqs bigint[], from_hs bigint[],
                                             to_seqs bigint[], to_hs bigint[], to_ats bigint[], sessions text[], files text[],
                                             created timestamptz[], parents text[], forks bigint[]) RETURNS void
    LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moved bigint := 0;
    made bigint := 0;
    today date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
    IF '' = ANY (sessions) THEN
        UPDATE annal._heads AS head SET seq = to_seq, h = to_h, at = to_at, shipped_at = now(),
               first_day = least(first_day, today), last_day = greatest(last_day, today)
        FROM unnest(keys, from_seqs, from_hs, to_seqs, to_hs, to_ats, sessions)
             AS n (key, from_seq, from_h, to_seq, to_h, to_at, session)
        WHERE head.key = n.key AND head.seq = from_seq AND head.h = from_h AND n.session = '';
        GET DIAGNOSTICS moved = ROW_COUNT;
    END IF;
    IF moved < cardinality(keys) THEN
        BEGIN -- ON CONFLICT would cost half as much again
            INSERT INTO annal._heads (key, store, session, seq, h, at, file, created_at, parent, forked_at)
                OVERRIDING SYSTEM VALUE
            SELECT key, of_store, session, seq, h, at, file, created_at, nullif(parent, ''), nullif(fork, 0)
            FROM unnest(keys, to_seqs, to_hs, to_ats, sessions, files, created, parents, forks)
                 AS n (key, seq, h, at, session, file, created_at, parent, fork)
            WHERE session <> '' ORDER BY session;
            GET DIAGNOSTICS made = ROW_COUNT;
        EXCEPTION WHEN unique_violation THEN
            made := 0;
        END;
    END IF;
    IF moved + made < cardinality(keys) THEN
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'another process changed a head during the batch';
    END IF;
END $$;

-- Take the home of a session for `seconds`, unless another store has it. granted: the store is now the home; the
-- other results describe the current home. of_epoch: the lowest epoch that the store can have. If the store already
-- is the home and the epoch of the row is not higher, the lease is extended; otherwise a new lease starts, with an
-- epoch above both, because a restored database may have lost epochs. The head moves with the home, so that the
-- session keeps one history: the history of the previous home, or, for the first home, the longest one. If of_store
-- has a head of its own, the two heads swap names. The caller has inserted and committed the row of the session
-- before.
CREATE OR REPLACE FUNCTION annal.take_home(of_session text, of_store text, of_epoch bigint, seconds integer,
    OUT granted boolean, OUT home text, OUT home_epoch bigint, OUT seconds_left float8) LANGUAGE plpgsql AS $$
DECLARE
    had annal._homes;
    source text;
BEGIN
    IF (SELECT epoch FROM annal._homes WHERE session = of_session) = 0 THEN
        PERFORM annal._wait_for_batches();
    END IF;
    SELECT * INTO STRICT had FROM annal._homes WHERE session = of_session FOR UPDATE;
    granted := had.store IS NULL OR had.until <= clock_timestamp() OR (had.store = of_store AND had.epoch <= of_epoch);
    IF granted THEN
        source := coalesce(had.store, had.was,
            (SELECT store FROM annal._heads WHERE session = of_session ORDER BY seq DESC, store = of_store DESC LIMIT 1),
            of_store);
        IF had.store IS DISTINCT FROM of_store OR had.epoch <> of_epoch THEN
            had.epoch := greatest(had.epoch, of_epoch) + 1;
        END IF;
        had.store := of_store;
        had.until := clock_timestamp() + make_interval(secs => seconds);
        UPDATE annal._homes SET store = had.store, was = source, epoch = had.epoch, until = had.until
            WHERE session = of_session;
        IF source <> of_store AND EXISTS (SELECT FROM annal._heads WHERE session = of_session AND store = source) THEN
            UPDATE annal._heads SET store = '' WHERE session = of_session AND store = of_store;
            UPDATE annal._heads SET store = of_store WHERE session = of_session AND store = source;
            UPDATE annal._heads SET store = source WHERE session = of_session AND store = '';
        END IF;
    END IF;
    home := had.store;
    home_epoch := had.epoch;
    seconds_left := extract(epoch FROM had.until - clock_timestamp());
END $$;

-- Artifacts that events refer to: the SHA-256 of the content, and the content.
CREATE TABLE IF NOT EXISTS annal.artifacts (
    hash   text COLLATE "C" PRIMARY KEY,
    bytes  bytea NOT NULL
);

-- References from events to artifacts. Only this exact spelling is a reference.
CREATE OR REPLACE VIEW annal._names AS
    SELECT e.key, e.day, match[1] AS hash
    FROM annal._events e, regexp_matches(e.data::text, '"path":"artifacts/[^/"]+/([0-9a-f]{64})\.zst"', 'g') AS match
    WHERE strpos(e.data::text, '"path":"artifacts/') > 0;

-- Remove artifacts that no event referred to when this transaction started. A batch that found such an artifact in
-- the table has read this table, so the lock waits for its end. Its events arrived today, or yesterday if it began
-- then, so these are checked again.
CREATE OR REPLACE FUNCTION annal._drop_artifacts(hashes text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF hashes <> '{}' THEN
        LOCK TABLE annal.artifacts;
        DELETE FROM annal.artifacts WHERE hash = ANY (ARRAY(
            SELECT unnest(hashes) EXCEPT
            SELECT hash FROM annal._names WHERE day >= (now() AT TIME ZONE 'UTC')::date - 1));
    END IF;
END $$;

-- Roles that may update heads may also write homes and artifacts.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN SELECT DISTINCT a.grantee::regrole::name FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = 'annal._heads'::regclass AND a.privilege_type = 'UPDATE' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE ON annal._homes TO %I', role);
        EXECUTE format('GRANT SELECT, INSERT ON annal.artifacts TO %I', role);
    END LOOP;
END $$;

-- Retention: drop the events that arrived before a day. Heads are kept, so no event is shipped again. First the rows
-- of sessions and turns are updated with these events (tables.sql): most before the events are locked, the rest
-- afterwards. The whole table is locked, not its partitions, because readers lock the table first. While a reader
-- holds its lock for long (pg_dump), the lock is retried at intervals, because batches wait behind a waiting lock.
-- Artifacts to which only these events refer are removed; if there are any, all events are read.
CREATE OR REPLACE FUNCTION annal.drop_before(day date) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    name text;
    hashes text[];
    names text[];
BEGIN
    LOOP
        BEGIN
            PERFORM annal._lock_rows();
            names := ARRAY(SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                WHERE i.inhparent = 'annal._events'::regclass AND c.relname < 'events_' || to_char(day, 'YYYYMMDD') ORDER BY 1);
            IF names = '{}' THEN
                RETURN;
            END IF;
            hashes := ARRAY(SELECT DISTINCT hash FROM annal._names n WHERE n.day < drop_before.day);
            IF hashes <> '{}' THEN
                hashes := ARRAY(
                    SELECT unnest(hashes) EXCEPT SELECT hash FROM annal._names n WHERE n.day >= drop_before.day);
            END IF;
            PERFORM annal._fold_before(day);
            PERFORM set_config('lock_timeout', '5s', true);
            LOCK TABLE ONLY annal._events;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(20);
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', '0', true);
    PERFORM annal._fold_before(day);
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('DROP TABLE annal.%I', name);
        RETURN NEXT name;
    END LOOP;
    PERFORM annal._drop_artifacts(hashes);
END $$;

-- Delete a session: its events, rows and head, and the artifacts to which only it refers. If its journal still
-- exists, it will be shipped again from its first event.
CREATE OR REPLACE FUNCTION annal.forget(of_store text, of_session text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    events bigint;
    of_key bigint;
    hashes text[];
BEGIN
    PERFORM annal._lock_rows();
    DELETE FROM annal._heads WHERE store = of_store AND session = of_session RETURNING key INTO of_key;
    hashes := ARRAY(SELECT DISTINCT hash FROM annal._names WHERE key = of_key);
    IF hashes <> '{}' THEN
        hashes := ARRAY(SELECT unnest(hashes) EXCEPT SELECT hash FROM annal._names WHERE key <> of_key);
    END IF;
    DELETE FROM annal._session_rows WHERE key = of_key;
    DELETE FROM annal._turn_rows WHERE key = of_key;
    DELETE FROM annal._pack_sessions WHERE key = of_key;
    DELETE FROM annal._pack_rows WHERE key = of_key AND tab = ANY (ARRAY(SELECT id FROM annal._pack_tables));
    DELETE FROM annal._events WHERE key = of_key;
    GET DIAGNOSTICS events = ROW_COUNT;
    PERFORM annal._drop_artifacts(hashes);
    RETURN events;
END $$;
