/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include "index/pack/pack.h"

#include <annal/verb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HEAD[] = "-- pack p   version 1   database p.db\n"
                           "CREATE TABLE t (session_id TEXT, n INTEGER);\n";

/* Parse HEAD and body without compiling them; sets *err on failure. */
static annal_pack *read_pack(const char *header, const char *body, annal_error *err)
{
    struct text text = {0};
    annal_pack *pack = NULL;
    *err = (annal_error){0};
    text_add(&text, header, strlen(header));
    text_add(&text, body, strlen(body));
    annal_status status = annal_pack_parse("p.sql", (annal_slice){text.ptr, text.len}, &pack, err);
    ck_assert_int_eq(status, err->status);
    free(text.ptr);
    return pack;
}

static void ck_wrong(const char *header, const char *body, const char *message)
{
    annal_error err;
    annal_pack *pack = read_pack(header, body, &err);
    ck_assert_msg(pack == NULL, "taken: %s%s", header, body);
    ck_assert_msg(strstr(err.message, message) != NULL, "%s, not %s", err.message, message);
}

START_TEST(the_header_sets_the_path_of_the_database_and_the_sessions_that_feed_it)
{
    annal_error err;
    annal_pack *pack = read_pack(
        "-- pack p version 1 database runs/*/state.db  in prose  sessions prose_*  writable\n", "",
        &err);
    ck_assert_msg(pack != NULL, "%s", err.message);
    ck_assert_str_eq(pack->database, "runs/*/state.db");
    ck_assert_str_eq(pack->folder, "prose");
    ck_assert_str_eq(pack->sessions, "prose_*");
    ck_assert(pack->writable);
    annal_pack_free(pack);

    pack = read_pack(HEAD, "", &err);
    ck_assert(pack->folder == NULL && pack->sessions == NULL && !pack->writable);
    annal_pack_free(pack);
}
END_TEST

START_TEST(a_header_cannot_put_a_database_outside_of_the_store)
{
    static const char *const wrong[] = {
        "-- pack p version 1 database ../p.db\n",
        "-- pack p version 1 database a/../p.db\n",
        "-- pack p version 1 database a//p.db\n",
        "-- pack p version 1 database a/\n",
        "-- pack p version 1 database p.db in /etc\n",
        "-- pack p version 1 database p.db in .\n",
        "-- pack p version 1 database p.db in a/../..\n",
        "-- pack p version 1 database p.db in *\n",
        "-- pack p version 1 database *.db\n",
        "-- pack p version 1 database *.db sessions prose\n",
        "-- pack p version 1 database */*.db sessions prose_*\n",
        "-- pack p version 1 database p.db sessions a*b*\n",
        "-- pack p version 1 database p.db sessions a/b\n",
        "-- pack p version 1 database p.db writable writable\n",
        "-- pack p version 1 database p.db in a in b\n",
        "-- pack a/b version 1 database p.db\n",
        "-- pack p version 0 database p.db\n",
        "-- pack p version 1 database p\n",
        "-- pack p version 1 database .db\n",
        "-- pack p version 1 database index.lock\n",
        "-- pack p version 1 database events/s1.jsonl\n",
        "-- pack p version 1 database events/s1.db\n",
        "-- pack p version 1 database commit/00.log\n",
        "-- pack p version 1 database commit/x.db\n",
        "-- pack p version 1 database packs/enabled\n",
        "-- pack p version 1 database packs/p.db\n",
        "-- pack p version 1 database locks/x.db\n",
        "-- pack p version 1 database snapshots/a/x.db\n",
        "-- pack p version 1 database artifacts/x.db\n",
        "-- pack p version 1 database sessions.db\n",
        "-- pack p version 1 database sessions.db-wal\n",
        "-- pack p version 1 database sessions.db/x.db\n",
        "-- pack p version 1 database p.db in events\n",
        "-- pack p version 1 database p.db in sessions.db\n",
        "-- pack p version 1 database p.db in packs/mine\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_wrong(wrong[i], "", "p.sql:1:");
}
END_TEST

START_TEST(a_glob_selects_the_sessions_and_extracts_the_part_of_its_star)
{
    static const struct {
        const char *session;
        const char *star; /* NULL: the session does not feed the pack */
    } cases[] = {{"prose_20260106", "20260106"},
                 {"prose_", NULL},
                 {"prose", NULL},
                 {"prose_..", NULL},
                 {"prose_.x", NULL},
                 {"a_prose_1", NULL},
                 {"prose_prose_", "prose_"},
                 {"PROSE_1", NULL}};
    annal_error err;
    annal_pack *pack =
        read_pack("-- pack p version 1 database runs/*/s.db sessions prose_*\n", "", &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        annal_slice star = {0};
        bool feeds = annal__pack_feeds(pack, annal_slice_of(cases[i].session), &star);
        ck_assert_msg(feeds == (cases[i].star != NULL), "%s", cases[i].session);
        if (feeds)
            ck_assert(star.len == strlen(cases[i].star) &&
                      memcmp(star.ptr, cases[i].star, star.len) == 0);
    }
    annal_pack_free(pack);

    pack = read_pack("-- pack p version 1 database p.db sessions a*z\n", "", &err);
    ck_assert(annal__pack_feeds(pack, ANNAL_SLICE("az"), NULL));
    ck_assert(annal__pack_feeds(pack, ANNAL_SLICE("a.z"), NULL));
    ck_assert(!annal__pack_feeds(pack, ANNAL_SLICE("a"), NULL));
    annal_pack_free(pack);

    pack = read_pack("-- pack p version 1 database *.db sessions a_*\n", "", &err);
    ck_assert(annal__pack_feeds(pack, ANNAL_SLICE("a_session"), NULL));
    ck_assert(!annal__pack_feeds(pack, ANNAL_SLICE("a_sessions"), NULL));
    annal_pack_free(pack);

    pack = read_pack("-- pack p version 1 database *s/p.db sessions a_*\n", "", &err);
    ck_assert(annal__pack_feeds(pack, ANNAL_SLICE("a_events"), NULL));
    ck_assert(!annal__pack_feeds(pack, ANNAL_SLICE("a_event"), NULL));
    annal_pack_free(pack);

    pack = read_pack("-- pack p version 1 database p.db sessions _state\n", "", &err);
    ck_assert(annal__pack_feeds(pack, ANNAL_SLICE("_state"), NULL));
    ck_assert(!annal__pack_feeds(pack, ANNAL_SLICE("_state1"), NULL));
    annal_pack_free(pack);
}
END_TEST

START_TEST(sections_parse_into_types_guards_reads_and_artifacts)
{
    annal_error err;
    annal_pack *pack = read_pack(HEAD,
                                 "-- on a.b, c   guarded \"no, because\"   reads _state, team_*, "
                                 "$run::id\n"
                                 "INSERT INTO t VALUES (:session, $n);\n"
                                 "-- fill a.b   reads *\n"
                                 "SELECT COALESCE(MAX(n), 0) + 1 AS n FROM t;\n"
                                 "-- forget\n"
                                 "DELETE FROM t WHERE session_id = :session;\n"
                                 "-- artifact tool.returned   result::output   over 10240\n",
                                 &err);
    ck_assert_msg(pack != NULL, "%s", err.message);
    ck_assert_uint_eq(pack->section_count, 4);
    const struct pack_section *on = &pack->sections[0], *artifact = &pack->sections[3];
    ck_assert_str_eq(on->guard, "no, because");
    ck_assert_int_eq(memcmp(on->types, "a.b\0c\0", 7), 0);
    ck_assert_int_eq(memcmp(on->reads, "_state\0team_*\0$run::id\0", 24), 0);
    ck_assert_int_eq(pack->sections[1].kind, PACK_FILL);
    ck_assert_str_eq(pack->sections[1].reads, "*");
    ck_assert_int_eq(pack->sections[2].kind, PACK_FORGET);
    ck_assert_str_eq(artifact->field, "result::output");
    ck_assert_uint_eq(artifact->over_bytes, 10240);
    ck_assert(annal__pack_forgets(pack));
    annal_pack_free(pack);
}
END_TEST

START_TEST(a_section_runs_only_when_one_of_its_conditions_holds)
{
    struct memory m;
    memory_init_text(&m, "s",
                     "-- pack p version 1 database p.db\nCREATE TABLE t (n, section);\n"
                     "-- on a.b   when $n, $run::id\nINSERT INTO t VALUES ($n, 1);\n"
                     "-- on a.b   when $role=user, $kind=x=y\nINSERT INTO t VALUES ($n, 2);\n"
                     "SELECT 1;\n"
                     "-- on a.b\nINSERT INTO t VALUES ($n, 3);\n");
    memory_apply(&m, "a.b", "{\"n\":1,\"role\":\"agent\"}");
    memory_apply(&m, "a.b", "{\"n\":null,\"role\":[\"user\"],\"run\":{\"x\":2}}");
    memory_apply(&m, "a.b", "{\"role\":\"user\",\"run\":{\"id\":0.5}}");
    memory_apply(&m, "a.b", "{\"role\":\"u\\u0073er\",\"n\":{},\"kind\":\"x\"}");
    memory_apply(&m, "a.b", "{\"kind\":\"x=y\"}");
    memory_apply(&m, "a.b", "[1]");
    ck_memory(&m, "SELECT section, count(*), count(n) FROM t GROUP BY 1", "1|3|2\n2|3|1\n3|6|2\n");
    memory_done(&m);
}
END_TEST

START_TEST(conditions_select_the_same_random_events_as_sql)
{
    static const char *const names[] = {"a", "b", "c", "\\u0061"};
    static const char *const values[] = {
        "null",  "1",   "1.5", "\"word\"",         "\"\"",          "{\"c\":null}",
        "false", "[1]", "{}",  "{\"c\":\"word\"}", "\"w\\u006frd\""};
    struct random random = random_init(58);
    struct memory m;
    memory_init_text(&m, "s",
                     "-- pack p version 1 database p.db\n"
                     "CREATE TABLE t (seq); CREATE TABLE plain (seq);\n"
                     "-- on a.b   when $a, $b::c=word, $c=word\nINSERT INTO t VALUES (:seq);\n"
                     "-- on a.b\nINSERT INTO plain SELECT :seq\n"
                     "WHERE $a IS NOT NULL OR $b::c = 'word' OR $c = 'word';\n");
    for (int i = 0; i < 500; i++) {
        char data[200] = "{";
        for (uint64_t members = random_below(&random, 4), at = 0; at < members; at++)
            snprintf(data + strlen(data), sizeof data - strlen(data), "%s\"%s\":%s",
                     at == 0 ? "" : ",", names[random_below(&random, 4)],
                     values[random_below(&random, 11)]);
        strcat(data, "}");
        memory_apply(&m, "a.b", data);
    }
    ck_memory(&m, "SELECT count(*) > 100 AND count(*) < 400 FROM t", "1\n");
    ck_memory(&m, "SELECT seq FROM t EXCEPT SELECT seq FROM plain", "");
    ck_memory(&m, "SELECT seq FROM plain EXCEPT SELECT seq FROM t", "");
    memory_done(&m);
}
END_TEST

START_TEST(a_comment_that_only_resembles_a_section_is_a_comment)
{
    static const char *const lines[] = {
        "-- of a task\n",
        "-- in the end, one row each\n",
        "-- one.row a task\n",
        "-- a guarded section refuses\n",
        "-- full text\n",
        "-- no task has two rows\n",
        "-- settled by whom\n",
        "-- -- on a.b   guarded \"not now\"\n",
        "-- # fill a.b\n",
        "------------ on ------------\n",
        "-- onward, to a.b\n",
        "-- on: the types are below\n",
        "-- who guarded it: \"x\"\n",
        "--\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        annal_error err = {0};
        annal_pack *pack = read_pack(HEAD, lines[i], &err);
        ck_assert_msg(pack != NULL && pack->section_count == 0, "%s%s", lines[i], err.message);
        annal_pack_free(pack);
    }
}
END_TEST

START_TEST(a_wrong_section_is_refused_with_file_and_line)
{
    static const struct {
        const char *body;
        const char *message;
    } cases[] = {
        {"-- onn a\nDELETE FROM t;\n", "p.sql:3: '-- onn a' does not begin a section"},
        {"-- o n a.b guarded \"x\"\nDELETE FROM t;\n",
         "p.sql:3: '-- o n a.b guarded \"x\"' does not begin"},
        {"-- task.claimed   guarded \"x\"\nDELETE FROM t;\n",
         "p.sql:3: '-- task.claimed   guarded"},
        {"--on a\nDELETE FROM t;\n", "p.sql:3: '--on a' does not begin a section"},
        {"-- no a.b\nDELETE FROM t;\n", "p.sql:3: '-- no a.b' does not begin a section"},
        {"-- om a, b.*  gaurded \"x\"\nDELETE FROM t;\n", "p.sql:3: '-- om a, b.*  gaurded"},
        {"-- fll a.b   reads c\nSELECT 1 AS n;\n",
         "p.sql:3: '-- fll a.b   reads c' does not begin"},
        {"-- forgt\nDELETE FROM t;\n", "p.sql:3: '-- forgt' does not begin a section"},
        {"-- artifcat a.b output over 10\n",
         "p.sql:3: '-- artifcat a.b output over 10' does not begin"},
        {"-- On a\nDELETE FROM t;\n", "p.sql:3: '-- On a' does not begin a section"},
        {"-- on\nDELETE FROM t;\n", "p.sql:3: '-- on' does not begin a section"},
        {"-- on a\nDELETE FROM t;\n-- forgett\n", "p.sql:5: '-- forgett' does not begin a section"},
        {"-- settle it\nDELETE FROM t;\n", "p.sql:3: '-- settle it' does not begin a section"},
        {"-- settle\nDELETE FROM t WHERE n = $n;\n",
         "p.sql:4: a section '-- settle' has no parameter except"},
        {"-- forget it\nDELETE FROM t;\n", "p.sql:3: '-- forget it' does not begin a section"},
        {"INSERT INTO t VALUES ('q',\n $text);\n",
         "p.sql:3: statements that create tables have no parameters"},
        {"INSERT INTO t VALUES (:session, 1);\n",
         "p.sql:3: statements that create tables have no parameters"},
        {"-- on a b\nDELETE FROM t;\n", "p.sql:3: 'b' is not allowed"},
        {"-- on a, B\nDELETE FROM t;\n", "p.sql:3: 'B' is not a valid event type"},
        {"-- on a,\nDELETE FROM t;\n", "p.sql:3: '' is not a valid event type"},
        {"-- on a*b\nDELETE FROM t;\n", "p.sql:3: 'a*b' is not a valid event type"},
        {"-- on **\nDELETE FROM t;\n", "p.sql:3: '**' is not a valid event type"},
        {"-- on a guarded why\nDELETE FROM t;\n", "p.sql:3: a guard needs a sentence"},
        {"-- on a guarded \"\"\nDELETE FROM t;\n", "p.sql:3: a guard needs a sentence"},
        {"-- on a guarded \"x\nDELETE FROM t;\n", "p.sql:3: a guard needs a sentence"},
        {"-- on a guarded \"x\" guarded \"y\"\nDELETE FROM t;\n", "p.sql:3: 'guarded'"},
        {"-- on a reads a/b\nDELETE FROM t;\n", "p.sql:3: 'a/b' is not a valid session"},
        {"-- on a reads *x\nDELETE FROM t;\n", "p.sql:3: '*x' is not a valid session"},
        {"-- on a reads $a.b\nDELETE FROM t;\n", "p.sql:3: '$a.b' is not a valid session"},
        {"-- fill a guarded \"x\"\nSELECT 1 AS n;\n", "p.sql:3: 'guarded'"},
        {"-- fill a when $n\nSELECT 1 AS n;\n", "p.sql:3: 'when'"},
        {"-- on a when n\nDELETE FROM t;\n", "p.sql:3: 'n' is not a valid condition"},
        {"-- on a when $\nDELETE FROM t;\n", "p.sql:3: '$' is not a valid condition"},
        {"-- on a when $n=\nDELETE FROM t;\n", "p.sql:3: '$n=' is not a valid condition"},
        {"-- on a when $n = x\nDELETE FROM t;\n", "p.sql:3: '=' is not allowed"},
        {"-- on a when $n when $m\nDELETE FROM t;\n", "p.sql:3: 'when' is not allowed"},
        {"-- on a whem $n\nDELETE FROM t;\n", "p.sql:3: 'whem' is not allowed"},
        {"-- fill a\nDELETE FROM t;\n", "p.sql:3: a section '-- fill' needs exactly one SELECT"},
        {"-- fill a\nSELECT 1 AS n; SELECT 2 AS n;\n",
         "p.sql:3: a section '-- fill' needs exactly one SELECT"},
        {"-- fill a\n-- nothing\n", "p.sql:3: this section needs a statement"},
        {"-- fill a\nSELECT 1 AS n, 2;\n", "p.sql:3: column '2' of a fill is not a valid name"},
        {"-- forget\n-- nothing\n", "p.sql:3: this section needs a statement"},
        {"-- forget\nDELETE FROM t WHERE n = $n;\n",
         "p.sql:4: a section '-- forget' has no parameter"},
        {"-- forget\nDELETE FROM t WHERE n = :seq;\n",
         "p.sql:4: a section '-- forget' has no parameter"},
        {"-- artifact a output over many\n", "p.sql:3: write an artifact as"},
        {"-- artifact a output\n", "p.sql:3: write an artifact as"},
        {"-- artifact a over 10\n", "p.sql:3: write an artifact as"},
        {"-- artifact a x over 10 bytes\n", "p.sql:3: write an artifact as"},
        {"-- artifact a x over 10\nDELETE FROM t;\n",
         "p.sql:3: a section '-- artifact' has no statement"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_wrong(HEAD, cases[i].body, cases[i].message);
}
END_TEST

START_TEST(a_star_at_the_end_of_a_type_matches_every_rest)
{
    struct memory m;
    memory_init_text(&m, "s",
                     "-- pack p version 1 database p.db\nCREATE TABLE t (type, section);\n"
                     "-- on tool.*, x\nINSERT INTO t VALUES (:type, 1);\n"
                     "-- on *\nINSERT INTO t VALUES (:type, 2);\n");
    const char *const types[] = {"tool.called", "tool.", "tool", "tools.x", "x", "xy"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        memory_apply(&m, types[i], "{}");
    ck_memory(&m, "SELECT type FROM t WHERE section = 1", "tool.called\ntool.\nx\n");
    ck_memory(&m, "SELECT count(*) FROM t WHERE section = 2", "6\n");
    memory_done(&m);
}
END_TEST

START_TEST(handlers_and_table_definitions_have_separate_hashes)
{
    annal_error err;
    annal_pack *packs[5] = {
        read_pack(HEAD, "-- on a guarded \"x\"\nDELETE FROM t;\n", &err),
        read_pack(HEAD, "-- on a guarded \"y\"\nDELETE FROM t;\n-- fill a\nSELECT 1 AS n;\n", &err),
        read_pack(HEAD, "-- on a\nDELETE FROM t WHERE n = 1;\n", &err),
        read_pack("-- pack p version 1 database p.db\nCREATE TABLE t (x);\n",
                  "-- on a\nDELETE FROM t;\n", &err),
        read_pack(HEAD, "-- on a when $n\nDELETE FROM t;\n", &err)};
    ck_assert_uint_eq(packs[0]->handlers_hash, packs[1]->handlers_hash);
    ck_assert_uint_eq(packs[0]->tables_hash, packs[2]->tables_hash);
    ck_assert_uint_ne(packs[0]->handlers_hash, packs[2]->handlers_hash);
    ck_assert_uint_ne(packs[0]->tables_hash, packs[3]->tables_hash);
    ck_assert_uint_ne(packs[0]->handlers_hash, packs[4]->handlers_hash);
    for (size_t i = 0; i < 5; i++)
        annal_pack_free(packs[i]);
}
END_TEST

/* So a store keeps its tables when its pack gains verbs. */
START_TEST(verbs_change_no_hash)
{
    const char *name;
    for (size_t i = 0; (name = annal__builtin_name(i)) != NULL; i++) {
        const char *text = annal__builtin_pack(name);
        const char *verbs = strstr(text, "-- noun ");
        annal_pack *all = NULL, *bare = NULL;
        annal_slice before = {text, verbs == NULL ? strlen(text) : (size_t)(verbs - text)};
        ck_ok(annal__pack_read("all.sql", annal_slice_of(text), &all, err));
        ck_ok(annal__pack_read("bare.sql", before, &bare, err));
        ck_assert_uint_eq(all->tables_hash, bare->tables_hash);
        ck_assert_uint_eq(all->handlers_hash, bare->handlers_hash);
        ck_assert_uint_eq(all->hash, bare->hash);
        ck_assert(annal_pack_nouns(bare)->name == NULL);
        ck_assert_msg((annal_pack_nouns(all)->name != NULL) == (verbs != NULL),
                      "pack %s: its nouns are not the last part of its text", name);
        annal_pack_free(all);
        annal_pack_free(bare);
    }
}
END_TEST

/* ---- Functions ---- */

START_TEST(annal_unix_returns_seconds_as_a_real)
{
    struct memory m;
    memory_init_text(&m, "s", HEAD);
    ck_memory(
        &m,
        "SELECT annal_unix('1970-01-01T00:00:01.5Z'), annal_unix('2026-01-06'), annal_unix(7),"
        " typeof(annal_unix(7)), annal_unix(1.25), annal_unix('7'), annal_unix(NULL),"
        " annal_unix(x'00')",
        "1.5|1767657600|7|real|1.25|||\n");
    memory_done(&m);
}
END_TEST

START_TEST(annal_blob_decodes_base64)
{
    struct memory m;
    memory_init_text(&m, "s", HEAD);
    ck_memory(
        &m,
        "SELECT annal_blob('AAEC/w=='), typeof(annal_blob('AAEC/w==')), typeof(annal_blob(''))"
        ", length(annal_blob('')), annal_blob('AAEC/w'), annal_blob('!'), annal_blob(12),"
        " annal_blob(NULL)",
        "000102ff|blob|blob|0||||\n");
    memory_done(&m);
}
END_TEST

Suite *suite_grammar(void)
{
    Suite *suite = suite_create("grammar");
    TCase *all = suite_case(suite, "all", NULL, NULL);
    tcase_add_test(all, the_header_sets_the_path_of_the_database_and_the_sessions_that_feed_it);
    tcase_add_test(all, a_header_cannot_put_a_database_outside_of_the_store);
    tcase_add_test(all, a_glob_selects_the_sessions_and_extracts_the_part_of_its_star);
    tcase_add_test(all, sections_parse_into_types_guards_reads_and_artifacts);
    tcase_add_test(all, a_section_runs_only_when_one_of_its_conditions_holds);
    tcase_add_test(all, conditions_select_the_same_random_events_as_sql);
    tcase_add_test(all, a_comment_that_only_resembles_a_section_is_a_comment);
    tcase_add_test(all, a_wrong_section_is_refused_with_file_and_line);
    tcase_add_test(all, a_star_at_the_end_of_a_type_matches_every_rest);
    tcase_add_test(all, handlers_and_table_definitions_have_separate_hashes);
    tcase_add_test(all, verbs_change_no_hash);
    tcase_add_test(all, annal_unix_returns_seconds_as_a_real);
    tcase_add_test(all, annal_blob_decodes_base64);
    return suite;
}
