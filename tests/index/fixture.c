/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under Valgrind and the thread sanitizer the default of ten seconds is short. */
static void fixture_open_index(struct fixture *fixture, const annal_index_options *options)
{
    const annal_index_options patient = {.wait_ms = 120000};
    ck_ok(annal_index_open(fixture->store, options == NULL ? &patient : options, &fixture->index,
                           err));
}

void fixture_open(struct fixture *fixture)
{
    const annal_store_options options = {.create = true, .no_keeper = true};
    ck_ok(annal_store_open(fixture->path, &options, &fixture->store, err));
    fixture_open_index(fixture, NULL);
}

void fixture_init(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    tmpdir_init(&fixture->dir);
    fixture->path = tmpdir_path(&fixture->dir, "store");
    fixture_open(fixture);
}

void fixture_done(struct fixture *fixture)
{
    annal_index_close(fixture->index);
    ck_ok(annal_store_close(fixture->store, err));
    tmpdir_done(&fixture->dir);
}

struct fixture f;

void fixture_setup(void)
{
    fixture_init(&f);
}

void fixture_teardown(void)
{
    fixture_done(&f);
}

void fixture_reopen(struct fixture *fixture, const annal_index_options *options)
{
    annal_index_close(fixture->index);
    fixture_open_index(fixture, options);
}

void fixture_append_at(struct fixture *fixture, const char *session, const char *type,
                       const char *data, int64_t ts_us)
{
    annal_writer *writer = NULL;
    uint64_t seq;
    const annal_draft draft = {
        .type = annal_slice_of(type), .data = annal_slice_of(data), .ts_us = ts_us};
    ck_ok(annal_writer_open(fixture->store, annal_slice_of(session), NULL, &writer, err));
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
}

void fixture_append(struct fixture *fixture, const char *session, const char *type,
                    const char *data)
{
    fixture_append_at(fixture, session, type, data, 0);
}

#define DRAFTS 500

void fixture_append_many(struct fixture *fixture, const char *session, unsigned count,
                         int64_t ts_us)
{
    static const char *const types[] = {"a.one", "a.two", "b.one"};
    annal_writer *writer = NULL;
    ck_ok(annal_writer_open(fixture->store, annal_slice_of(session), NULL, &writer, err));
    for (unsigned done = 0; done < count;) {
        annal_draft drafts[DRAFTS];
        unsigned n = 0;
        for (; n < DRAFTS && done < count; n++, done++)
            drafts[n] = (annal_draft){.type = annal_slice_of(types[done % 3]),
                                      .data = ANNAL_SLICE("{\"text\":\"something was said\"}"),
                                      .ts_us = ts_us + (int64_t)done * 1000000};
        uint64_t seq;
        ck_ok(annal_writer_append(writer, drafts, n, NULL, &seq, err));
    }
    annal_writer_close(writer);
}

void fixture_append_session(struct fixture *fixture, const char *session)
{
    static const char *const events[][2] = {
        {"session.created", "{\"agent_id\":\"coder\",\"provider\":\"p\",\"model\":\"m-1\"}"},
        {"turn.started", "{\"turn_id\":\"t1\",\"sequence\":1}"},
        {"agent.turn.usage", "{\"turn_id\":\"t1\",\"input_tokens\":100,\"output_tokens\":7,"
                             "\"cached_input_tokens\":60}"},
        {"turn.completed", "{\"turn_id\":\"t1\"}"},
        {"turn.started", "{\"turn_id\":\"t2\",\"sequence\":2}"},
        {"tool.called", "{\"call_id\":\"c1\",\"tool\":\"shell\"}"},
        {"turn.completed", "{\"turn_id\":\"t2\",\"input_tokens\":10,\"output_tokens\":5,"
                           "\"cost_usd\":0.25}"},
        {"session.ended", "{\"reason\":\"done\"}"},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        fixture_append_at(fixture, session, events[i][0], events[i][1],
                          1767684240000000 + (int64_t)i * 1000000);
}

/* ---- Queries ---- */

int text_row(void *arg, const annal_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        const annal_value *value = &row->values[i];
        char number[64] = "";
        if (i > 0)
            text_add(arg, "|", 1);
        if (value->kind == ANNAL_VALUE_INTEGER)
            snprintf(number, sizeof number, "%lld", (long long)value->integer);
        else if (value->kind == ANNAL_VALUE_REAL)
            snprintf(number, sizeof number, "%g", value->real);
        else if (value->kind != ANNAL_VALUE_NULL)
            text_add(arg, value->bytes.ptr, value->bytes.len);
        text_add(arg, number, strlen(number));
    }
    text_add(arg, "\n", 1);
    return 0;
}

char *fixture_sql(struct fixture *fixture, const char *sql)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_index_sql(fixture->index, annal_slice_of(sql), NULL, text_row, &text, err));
    return text.ptr;
}

char *fixture_dump(struct fixture *fixture)
{
    static const char *const selects[] = {
        "SELECT * FROM sessions ORDER BY id",
        "SELECT * FROM turns ORDER BY id",
        "SELECT * FROM tool_calls",
        "SELECT * FROM responses",
        "SELECT * FROM artifacts",
        "SELECT * FROM event_index ORDER BY session_id, seq",
        "SELECT * FROM forks",
        "SELECT * FROM _cursor",
        "SELECT * FROM _counts",
        "SELECT * FROM _findings",
    };
    struct text text = {0};
    for (size_t i = 0; i < sizeof selects / sizeof *selects; i++) {
        text_add(&text, "--\n", 3);
        ck_ok(annal_index_sql(fixture->index, annal_slice_of(selects[i]), NULL, text_row, &text,
                              err));
    }
    return text.ptr;
}
