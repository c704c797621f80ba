/* SPDX-License-Identifier: Apache-2.0 */
/* The table events: its queries of the index, and its reads of journals. */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "journal/base/io.h"
#include "journal/store.h"
#include "journal/sys/seam.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 2000

static uint64_t bytes_read; /* through the store's seam, which SQLite does not use */

static ssize_t count_pread(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    ssize_t got = annal__system_io.pread(arg, fd, bytes, len, offset);
    bytes_read += got > 0 ? (uint64_t)got : 0;
    return got;
}

/* Open the fixture on a store that counts reads. */
static void reopen_counted(struct io *io)
{
    *io = annal__system_io;
    io->pread = io->pread_now = count_pread;
    const struct seams seams = {.io = io, .clock = &annal__system_clock};
    const annal_store_options options = {.no_keeper = true};
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal__store_open(f.path, &options, &seams, &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
}

static unsigned count_rows(const char *rows)
{
    unsigned lines = 0;
    for (const char *c = rows; *c != '\0'; c++)
        lines += *c == '\n';
    return lines;
}

/* Run a SELECT: returns the number of rows and sets *out_bytes to the bytes that it read. */
static unsigned ask(const char *sql, uint64_t *out_bytes)
{
    const annal_sql_options options = {.as_indexed = true};
    struct text text = {0};
    text_add(&text, "", 0);
    bytes_read = 0;
    ck_ok(annal_index_sql(f.index, annal_slice_of(sql), &options, text_row, &text, err));
    *out_bytes = bytes_read;
    unsigned rows = count_rows(text.ptr);
    free(text.ptr);
    return rows;
}

START_TEST(a_select_without_data_reads_no_journal)
{
    static const char *const asked[] = {
        "SELECT count(*) FROM events",
        "SELECT * FROM (SELECT session_id, seq, timestamp, type FROM events) WHERE seq % 2",
        "SELECT type, count(*), max(timestamp) FROM events GROUP BY type",
        ("SELECT seq FROM events WHERE type GLOB 'a.*' AND timestamp > '2026' ORDER BY timestamp "
         "DESC, seq LIMIT 5"),
        "SELECT e.seq FROM sessions AS s JOIN events AS e ON e.session_id = s.id",
    };
    static struct io io;
    uint64_t bytes = 0;
    fixture_append_many(&f, "x", EVENTS, 1767684240000000);
    reopen_counted(&io);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        ck_assert_uint_gt(ask(asked[i], &bytes), 0);
        ck_assert_msg(bytes == 0, "%s: %llu bytes", asked[i], (unsigned long long)bytes);
    }
}
END_TEST

START_TEST(a_select_reads_only_the_events_of_its_answer)
{
    static const struct {
        const char *sql;
        unsigned rows;
    } asked[] = {
        {"SELECT data FROM events ORDER BY timestamp DESC, seq DESC LIMIT 10", 10},
        {"SELECT data FROM events WHERE type = 'a.two' ORDER BY seq LIMIT 10 OFFSET 300", 10},
        {"SELECT data FROM events WHERE type IN ('a.one', 'b.one') ORDER BY timestamp, type LIMIT "
         "7",
         7},
        {"SELECT data FROM events WHERE type LIKE 'B.%' AND session_id = 'x' LIMIT 4", 4},
        {"SELECT data FROM events WHERE type = 'b.one' AND timestamp BETWEEN '2026-01-06T07:30:00' "
         "AND '2026-01-06T07:31:00'",
         20},
        {"SELECT data FROM events WHERE session_id = 'x' AND seq IN (5, 900, '1800', 5000)", 3},
        {"SELECT data FROM events WHERE seq = 3 OR seq BETWEEN 1990 AND 1995", 14},
        {"SELECT (SELECT data FROM events WHERE session_id = s.id AND seq = 2) FROM sessions AS s",
         2},
    };
    static struct io io;
    fixture_append_many(&f, "x", EVENTS, 1767684240000000);
    fixture_append_many(&f, "y", EVENTS, 1767994240000000);
    reopen_counted(&io);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        uint64_t bytes = 0;
        unsigned rows = ask(asked[i].sql, &bytes);
        ck_assert_msg(rows == asked[i].rows, "%s: %u rows", asked[i].sql, rows);
        /* A line has about 120 bytes; opening a journal reads its header. */
        ck_assert_msg(bytes > 0 && bytes <= rows * 256 + 2 * 4096, "%s: %llu bytes", asked[i].sql,
                      (unsigned long long)bytes);
    }
}
END_TEST

START_TEST(the_query_plan_shows_the_constraints_passed_to_the_index)
{
    static const struct {
        const char *sql;
        const char *plan;
    } asked[] = {
        {"SELECT seq FROM events WHERE session_id = 'x' AND seq > 5 ORDER BY seq DESC LIMIT 3",
         "session_id = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3;"},
        {"SELECT seq FROM events WHERE type = 'a' AND timestamp BETWEEN 'b' AND 'c' ORDER BY "
         "timestamp, session_id",
         "type = ?1 AND timestamp >= ?2 AND timestamp <= ?3 ORDER BY timestamp, session_id;"},
        {"SELECT seq FROM events WHERE type GLOB 'a*'", "type GLOB ?"},
        {"SELECT seq FROM events WHERE type IN ('a', 'b') LIMIT 9",
         "type IN (SELECT value FROM json_each(?1)) LIMIT ?2;"},
        /* A condition that the index drops or an unknown order: without the limit. */
        {"SELECT seq FROM events WHERE id = 'i' AND seq = 4 LIMIT 9", " WHERE 1 AND seq = ?1;"},
        {"SELECT seq FROM events WHERE type LIKE 'a%' LIMIT 9", "type LIKE ?1);"},
        {"SELECT seq FROM events WHERE seq = 1 ORDER BY data LIMIT 9", " WHERE 1 AND seq = ?1;"},
    };
    fixture_append_session(&f, "s1");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct text sql = {0};
        text_add(&sql, "EXPLAIN QUERY PLAN ", 19);
        text_add(&sql, asked[i].sql, strlen(asked[i].sql));
        char *plan = fixture_sql(&f, sql.ptr);
        ck_assert_msg(strstr(plan, asked[i].plan) != NULL, "%s: %s", asked[i].sql, plan);
        free(plan);
        free(sql.ptr);
    }
}
END_TEST

START_TEST(a_join_starts_with_the_smaller_side)
{
    static const struct {
        const char *sql;
        const char *first;
    } asked[] = {
        {"SELECT e.data FROM events e JOIN sessions s ON e.session_id = s.id WHERE s.model = 'm'",
         "SCAN s"},
        {"SELECT e.data FROM events e, sessions s WHERE e.session_id = s.id AND s.id = 's1'",
         "SEARCH s"},
        {"SELECT s.id FROM sessions s JOIN events e ON e.session_id = s.id WHERE e.type = 'a' AND "
         "e.timestamp > '2026'",
         "SCAN e"},
    };
    fixture_append_session(&f, "s1");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct text sql = {0};
        text_add(&sql, "EXPLAIN QUERY PLAN ", 19);
        text_add(&sql, asked[i].sql, strlen(asked[i].sql));
        char *plan = fixture_sql(&f, sql.ptr);
        char *at = strstr(plan, asked[i].first);
        ck_assert_msg(at != NULL && memchr(plan, '\n', (size_t)(at - plan)) == NULL, "%s: %s",
                      asked[i].sql, plan);
        free(plan);
        free(sql.ptr);
    }
}
END_TEST

START_TEST(the_hidden_column_hash_is_the_hash_of_the_line)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    char expected[40];
    fixture_append_many(&f, "x", 3, 1767684240000000);
    ck_ok(annal_cursor_open(f.store, ANNAL_SLICE("x"), 2, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    snprintf(expected, sizeof expected, "%016" PRIx64 "\n", event.h);
    annal_cursor_close(cursor);
    ck_text(fixture_sql(&f, "SELECT hash FROM events WHERE seq = 2"), expected);
    ck_text(fixture_sql(&f, "SELECT instr(sql, 'hash') FROM (SELECT group_concat(name) AS sql FROM "
                            "pragma_table_info('events'))"),
            "0\n");
}
END_TEST

Suite *suite_events_table(void)
{
    Suite *suite = suite_create("events_table");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, a_select_without_data_reads_no_journal);
    tcase_add_test(all, a_select_reads_only_the_events_of_its_answer);
    tcase_add_test(all, the_query_plan_shows_the_constraints_passed_to_the_index);
    tcase_add_test(all, the_hidden_column_hash_is_the_hash_of_the_line);
    tcase_add_test(all, a_join_starts_with_the_smaller_side);
    return suite;
}
