-- SPDX-License-Identifier: Apache-2.0
-- Rows of the tables of packs, sent by shippers (annal ship tables), and the views that show them.
--
-- The rows of all tables are in one table, so shippers need no right to create tables. The rows of a session are
-- complete up to an event that this database has; they replace only rows of an earlier event, all in one transaction.
-- So any of the stores that share a session may send its rows.

-- columns and types: those of the view, in order; further columns of a store are added at the end.
CREATE TABLE IF NOT EXISTS annal._pack_tables (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pack     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    view     text COLLATE "C" NOT NULL,
    columns  text[] NOT NULL,
    types    text[] NOT NULL,
    UNIQUE (pack, name)
);

-- seq: the event up to which the rows of this pack are complete. version: of the pack. made: hash of the SQL that
-- computed the rows. store: the store that sent them. The key 0 is for rows that belong to no session.
CREATE TABLE IF NOT EXISTS annal._pack_sessions (
    key      bigint NOT NULL,
    pack     text COLLATE "C" NOT NULL,
    seq      bigint NOT NULL,
    version  bigint NOT NULL,
    made     text COLLATE "C" NOT NULL,
    store    text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, pack)
);

-- row is json, not jsonb, because it may contain \u0000.
CREATE TABLE IF NOT EXISTS annal._pack_rows (
    tab  integer NOT NULL,
    key  bigint NOT NULL,
    row  json NOT NULL
);

CREATE INDEX IF NOT EXISTS _pack_rows_place ON annal._pack_rows (tab, key);

-- Convert a value to the type of its column; NULL if it does not fit, because SQLite stores any value in any column.
CREATE OR REPLACE FUNCTION annal._as_bigint(value text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN value ~ '^-?[0-9]{1,18}$' THEN value::bigint
                WHEN value ~ '^-?[0-9]{19}$' THEN
                    CASE WHEN value::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN value::bigint END END
$$;

CREATE OR REPLACE FUNCTION annal._as_float8(value text) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN value ~ '^-?([0-9]{1,18}(\.[0-9]{1,30})?(e[-+]?[0-9]{1,2})?|[0-9](\.[0-9]{1,30})?e[-+]?[12][0-9]{2}|Infinity)$'
                THEN value::float8
                WHEN value ~ '^-?[0-9](\.[0-9]{1,30})?e[-+]?30[0-8]$' AND abs(value::numeric) < 1.797693134862315e308
                THEN value::float8 END
$$;

CREATE OR REPLACE FUNCTION annal._as_bytea(value text) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN value ~ '^\\x([0-9a-f]{2})*$' THEN value::bytea ELSE convert_to(value, 'UTF8') END
$$;

-- Allow only roles that may update heads, that is, shippers, to write rows of packs.
CREATE OR REPLACE FUNCTION annal._must_ship() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT has_table_privilege(coalesce(nullif(current_setting('role'), 'none'), session_user), 'annal._heads', 'UPDATE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'permission denied for the tables of packs';
    END IF;
END $$;

-- Create the view of a table: its columns, and session_id and store unless it has columns of these names. Roles that
-- may read sessions may read it.
CREATE OR REPLACE FUNCTION annal._make_pack_view(made annal._pack_tables) RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shown text;
    members text;
    role text;
BEGIN
    SELECT string_agg(CASE type WHEN 'session_id' THEN 'h.session' WHEN 'store' THEN 'h.store' WHEN 'text' THEN format('c.%I COLLATE "C"', name)
                                ELSE format('annal._as_%s(c.%I)', type, name) END || format(' AS %I', name), ', ' ORDER BY n),
           string_agg(format('%I text', name), ', ') FILTER (WHERE type NOT IN ('session_id', 'store'))
        INTO shown, members FROM unnest(made.columns, made.types) WITH ORDINALITY AS c (name, type, n);
    EXECUTE format('CREATE OR REPLACE VIEW annal.%I AS SELECT %s FROM annal._pack_rows r LEFT JOIN annal._heads h USING (key),'
                   ' json_to_record(annal._data(r.row)) AS c (%s) WHERE r.tab = %s', made.view, shown, members, made.id);
    EXECUTE format('COMMENT ON VIEW annal.%I IS %L', made.view, format('table %s of pack %s, sent by annal ship tables', made.name,
                                                                     made.pack));
    FOR role IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(a.grantee::regrole::name) END
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = to_regclass('annal.sessions') AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT ON annal.%I TO %s', made.view, role);
    END LOOP;
END $$;

-- Return the number of a table. Missing columns are added to it, and its view is created. A column whose type differs
-- from that in the view keeps its old type until drop_pack(). Shippers may call it without owning the tables. The
-- view has the name of the table, or PACK_NAME if that name is in use. (A later version of this text that uses such a
-- name for itself will rename the view.)
CREATE OR REPLACE FUNCTION annal._pack_table(of_pack text, of_name text, of_columns text[], of_types text[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '30s' AS $$
DECLARE
    had annal._pack_tables;
    of_view text := lower(of_name);
    shown text;
BEGIN
    PERFORM annal._must_ship();
    PERFORM pg_advisory_xact_lock(hashtext('annal'), hashtext('packs'));
    FOREACH shown IN ARRAY ARRAY['session_id', 'store'] LOOP
        IF shown <> ALL (of_columns) THEN
            of_columns := of_columns || shown;
            of_types := of_types || shown;
        END IF;
    END LOOP;
    SELECT * INTO had FROM annal._pack_tables WHERE pack = of_pack AND name = of_name;
    IF had.columns @> of_columns THEN
        RETURN had.id;
    END IF;
    IF had.id IS NULL THEN
        WHILE of_view ~ '^(_|events_[0-9])'
            OR EXISTS (SELECT FROM pg_class WHERE relname = of_view AND relnamespace = 'annal'::regnamespace) LOOP
            of_view := lower(of_pack) || '_' || of_view;
        END LOOP;
        INSERT INTO annal._pack_tables (pack, name, view, columns, types)
            VALUES (of_pack, of_name, of_view, of_columns, of_types) RETURNING * INTO had;
    ELSE
        UPDATE annal._pack_tables t SET columns = had.columns || added.columns, types = had.types || added.types
            FROM (SELECT array_agg(name ORDER BY n) AS columns, array_agg(type ORDER BY n) AS types
                  FROM unnest(of_columns, of_types) WITH ORDINALITY AS c (name, type, n) WHERE name <> ALL (had.columns)) AS added
            WHERE t.id = had.id RETURNING t.* INTO had;
    END IF;
    PERFORM annal._make_pack_view(had);
    RETURN had.id;
END $$;

-- Check whether a session has this event. The days are parameters, so only their partitions are planned.
CREATE OR REPLACE FUNCTION annal._has_event(of_key bigint, of_seq bigint, of_h bigint, first_day date, last_day date)
    RETURNS boolean LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    RETURN EXISTS (SELECT FROM annal._events e
        WHERE e.key = of_key AND e.seq = of_seq AND e.h = of_h AND e.day BETWEEN first_day AND last_day);
END $$;

-- Compare the rows of sessions with those of a store, which are complete up to these events: 'equal': nothing to do;
-- 'older': the database has older rows, send them; 'behind': the event has not arrived yet; 'other': the database has
-- a different event. The head of a session is that of its own store, or that of the stores that share it. The name ''
-- stands for rows without a session.
CREATE OR REPLACE FUNCTION annal._pack_states(of_store text, of_pack text, of_version bigint, of_made text, sessions text[],
                                              seqs bigint[], hs bigint[]) RETURNS TABLE (n bigint, key bigint, state text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT entry.n, head.key,
           CASE WHEN head.key IS NULL OR head.seq < entry.seq THEN 'behind'
                WHEN NOT head.same THEN 'other'
                WHEN p.key IS NULL OR (p.seq < entry.seq AND p.version <= of_version)
                     OR (p.seq <= entry.seq AND (p.version < of_version OR (p.made <> of_made AND p.store = of_store))) THEN 'older'
                ELSE 'equal' END
    FROM unnest(sessions, seqs, hs) WITH ORDINALITY AS entry (session, seq, h, n)
         LEFT JOIN LATERAL (
             SELECT 0 AS key, 0 AS seq, true AS same, '' AS store WHERE entry.session = ''
             UNION ALL
             SELECT h.key, h.seq,
                    CASE WHEN h.seq = entry.seq THEN h.h = entry.h
                         WHEN h.seq > entry.seq THEN annal._has_event(h.key, entry.seq, entry.h, h.first_day, h.last_day)
                         ELSE false END AS same, h.store
             FROM annal._heads h WHERE h.session = entry.session AND h.store IN (of_store, '*')
             ORDER BY same DESC, store DESC LIMIT 1) AS head ON true
         LEFT JOIN annal._pack_sessions p ON p.key = head.key AND p.pack = of_pack
$$;

-- Replace the rows of the sessions whose state is 'older', and return their number. places: for each row, the index
-- of its session in sessions. Heads are locked in the same order as in batches, so that two processes that send the
-- same session wait for each other, and so does forget(). Shippers may call it without owning the tables. Every lock
-- has a time limit.
CREATE OR REPLACE FUNCTION annal._put_pack_rows(of_store text, of_pack text, of_version bigint, of_made text, sessions text[],
                                                seqs bigint[], hs bigint[], tabs integer[], places bigint[], rows text[])
    RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '30s' AS $$
DECLARE
    keys bigint[];
BEGIN
    PERFORM annal._must_ship();
    PERFORM pg_advisory_xact_lock(hashtext('annal'), hashtext('packs ' || of_pack)) WHERE sessions[1] = '';
    PERFORM pg_advisory_xact_lock_shared(hashtext('annal'), hashtext('packs'));
    IF EXISTS (SELECT unnest(tabs) EXCEPT SELECT id FROM annal._pack_tables) THEN
        RAISE serialization_failure USING MESSAGE = 'a table of a pack was dropped during the batch';
    END IF;
    PERFORM FROM annal._heads h WHERE h.session = ANY (sessions) AND h.store IN (of_store, '*')
        ORDER BY h.session COLLATE "default", h.store FOR NO KEY UPDATE;
    keys := ARRAY(SELECT CASE s.state WHEN 'older' THEN s.key END
        FROM annal._pack_states(of_store, of_pack, of_version, of_made, sessions, seqs, hs) s ORDER BY s.n);
    DELETE FROM annal._pack_rows r WHERE r.key = ANY (keys)
        AND r.tab = ANY (ARRAY(SELECT id FROM annal._pack_tables WHERE pack = of_pack));
    INSERT INTO annal._pack_rows (tab, key, row)
        SELECT tab, keys[place], row::json FROM unnest(tabs, places, rows) AS entry (tab, place, row)
        WHERE keys[place] IS NOT NULL;
    INSERT INTO annal._pack_sessions AS p
        SELECT k, of_pack, s, of_version, of_made, of_store FROM unnest(keys, seqs) AS entry (k, s) WHERE k IS NOT NULL
        ON CONFLICT (key, pack) DO UPDATE SET seq = excluded.seq, version = excluded.version, made = excluded.made,
                                              store = excluded.store;
    RETURN cardinality(array_remove(keys, NULL));
END $$;

-- The event up to which the rows of a session are complete, in each pack.
CREATE OR REPLACE VIEW annal.pack_sessions AS
    SELECT h.session AS session_id, p.pack, p.seq, h.seq - p.seq AS behind, p.version, h.store
    FROM annal._pack_sessions p JOIN annal._heads h USING (key);

-- Delete the tables of a pack: its rows and its views. If a store still has the pack, the rows are sent again, and
-- the views are created from its tables of that time.
CREATE OR REPLACE FUNCTION annal.drop_pack(of_pack text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    gone annal._pack_tables;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('annal'), hashtext('packs'));
    FOR gone IN DELETE FROM annal._pack_tables WHERE pack = of_pack RETURNING * LOOP
        EXECUTE format('DROP VIEW IF EXISTS annal.%I', gone.view);
        DELETE FROM annal._pack_rows r WHERE r.tab = gone.id;
        RETURN NEXT gone.view;
    END LOOP;
    DELETE FROM annal._pack_sessions WHERE pack = of_pack;
END $$;
