/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/snapshot/fold.h"

#include "index/sys/snapshot_rows.h"
#include "snapshot/sys/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DRAFTS 200

void append_turns(struct fixture *fixture, const char *session, unsigned first, unsigned count)
{
    static char data[DRAFTS][500];
    annal_writer *writer = NULL;
    ck_ok(annal_writer_open(fixture->store, annal_slice_of(session), NULL, &writer, err));
    for (unsigned done = 0; done < count;) {
        annal_draft drafts[DRAFTS];
        unsigned n = 0;
        for (; n < DRAFTS && done < count; n++, done++) {
            bool starts = done % 2 == 0;
            snprintf(data[n], sizeof data[n],
                     starts ? "{\"turn_id\":\"t%u\",\"note\":\"%0300d\"}"
                            : "{\"turn_id\":\"t%u\",\"input_tokens\":7,\"cost_usd\":0.001,\"note\":"
                              "\"%0300d\"}",
                     first + done / 2, 0);
            drafts[n] = (annal_draft){.type = starts ? ANNAL_SLICE("turn.started")
                                                     : ANNAL_SLICE("turn.completed"),
                                      .data = annal_slice_of(data[n])};
        }
        uint64_t seq;
        ck_ok(annal_writer_append(writer, drafts, n, NULL, &seq, err));
    }
    annal_writer_close(writer);
}

static char *json_of(annal_state *state)
{
    struct text text = {0};
    ck_ok(annal_state_json(state, text_write, &text, err));
    return text.ptr;
}

char *folded_json(struct fixture *fixture, annal_slice session, uint64_t seq)
{
    annal_state *state = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    ck_ok(annal__load_begin(fixture->index, session, 0, NULL, 0, &state, &cursor, err));
    annal_status status = ANNAL_OK;
    while (annal_cursor_position(cursor).seq <= seq && status != ANNAL_END) {
        status = annal_cursor_next(cursor, &event, NULL);
        ck_assert_int_ge(status, 0);
        if (status == ANNAL_OK)
            ck_ok(annal_state_apply(state, &event, err));
    }
    annal_cursor_close(cursor);
    char *json = json_of(state);
    annal_state_free(state);
    return json;
}

char *loaded_json(struct fixture *fixture, annal_slice session, uint64_t at_most, uint64_t *out_seq)
{
    annal_state *state = NULL;
    annal_cursor *cursor = NULL;
    annal_error err = {0};
    annal_status status =
        annal__load_begin(fixture->index, session, at_most, NULL, 0, &state, &cursor, &err);
    ck_assert_msg(status == ANNAL_OK, "%s", err.message);
    ck_assert_uint_eq(annal_cursor_position(cursor).seq, annal_state_seq(state) + 1);
    annal_cursor_close(cursor);
    *out_seq = annal_state_seq(state);
    char *json = *out_seq == 0 ? NULL : json_of(state);
    annal_state_free(state);
    return json;
}

void ck_newest(struct fixture *fixture, annal_slice session, uint64_t at_most, uint64_t seq)
{
    uint64_t got = 0;
    char *loaded = loaded_json(fixture, session, at_most, &got);
    ck_assert_uint_eq(got, seq);
    if (loaded != NULL) {
        char *folded = folded_json(fixture, session, seq);
        ck_assert_str_eq(loaded, folded);
        free(folded);
    }
    free(loaded);
}

static int list_one(void *arg, annal_slice session, const annal_snapshot_info *info,
                    const char *problem)
{
    (void)session;
    char text[64];
    int len = snprintf(text, sizeof text, "%" PRIu64 "%s ", info->seq, problem == NULL ? "" : "!");
    text_add(arg, text, (size_t)len);
    return 0;
}

char *listed(struct fixture *fixture, annal_slice session)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_snapshot_each(fixture->index, session, list_one, &text, err));
    return text.ptr;
}

annal_slice row_get(struct fixture *fixture, uint64_t seq)
{
    annal_slice row = {0};
    uint64_t got = 0;
    ck_ok(annal__snapshot_rows_newest(fixture->index, S, seq, &got, &row, err));
    ck_assert_uint_eq(got, seq);
    return row;
}

void row_put(struct fixture *fixture, uint64_t seq, annal_slice row)
{
    ck_ok(annal__snapshot_rows_put(fixture->index, S, seq, row, 0, 0, (annal_slice){0}, 1000, err));
}
