/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/append/appender.h"

#include "index/sys/pack.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/line.h"

#include <annal/pack.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PENDING_EVENTS_MAX = 4096,
    PENDING_BYTES_MAX = 1 << 20,
};

void appender_add_answer(struct buf *answers, const char *kind, const char *sentence)
{
    /* if memory runs out, leave out the answer; the caller reports the failure in any case */
    if (annal__json_put(answers, "{\"#\":?}\n", annal_slice_of(kind), annal_slice_of(sentence)) < 0)
        annal__buf_clear(answers);
}

void appender_fail(struct appender *appender, annal_error *err)
{
    annal_error placed = *err;
    snprintf(placed.message, sizeof placed.message, "line %" PRIu64 ": %.450s", appender->line,
             err->message);
    appender_add_answer(&appender->last_answer,
                        err->status == ANNAL_ERR_UNKNOWN ? "unknown" : "refused", placed.message);
    *err = placed;
}

annal_status appender_read(struct appender *appender, annal_slice line, annal_draft *out_draft,
                           annal_error *err)
{
    appender->line++;
    return line_to_draft(line, appender->type, &appender->scratch, out_draft, err);
}

/* Append an event. If an enabled pack guards or fills it, the pack checks it first (appender.h,
 * rule 4). */
static annal_status append_draft(struct appender *appender, const annal_draft *draft,
                                 uint64_t *out_seq, annal_error *err)
{
    bool asks = false;
    annal_appended appended = {0};
    const annal_append_options options = {
        .level = appender->level == ANNAL_LEVEL_SYNC ? ANNAL_LEVEL_BATCH : appender->level,
        .expect = appender->expects ? ANNAL_EXPECT_SEQ : ANNAL_EXPECT_ANY,
        .expected_seq = appender->expects ? appender->expected_seq : 0,
        .strict = appender->strict};
    annal_status status =
        annal__guard_pack_asks(appender->index, appender->session, draft->type, &asks, err);
    if (status >= 0 && !asks && !appender->strict)
        return annal_writer_append(appender->writer, draft, 1, &options, out_seq, err);
    if (status >= 0)
        status = annal_pack_append(appender->index, appender->writer, draft, 1, &options, &appended,
                                   err);
    if (status >= 0)
        *out_seq = appended.seq;
    annal_free(appended.data.ptr);
    return status;
}

annal_status appender_put(struct appender *appender, const annal_draft *draft, size_t line_bytes,
                          annal_error *err)
{
    uint64_t seq = 0;
    if (annal__buf_reserve(&appender->seqs, sizeof seq) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "append to session '%.*s': out of memory",
                           ANNAL_FMT(appender->session));
    annal_status status = append_draft(appender, draft, &seq, err);
    if (status < 0)
        return status;
    appender->expects = false;
    (void)annal__buf_append(&appender->seqs, &seq, sizeof seq);
    appender->pending_bytes += line_bytes;
    return ANNAL_OK;
}

bool appender_is_full(const struct appender *appender)
{
    return appender->seqs.len >= PENDING_EVENTS_MAX * sizeof(uint64_t) ||
           appender->pending_bytes >= PENDING_BYTES_MAX;
}

/* Append the answer of one event after a sync; if the sync failed, the result says from which seq
 * on events were refused or are unknown. */
static void answer(struct buf *answers, uint64_t seq, const annal_sync_result *result,
                   const annal_error *err)
{
    if (result->refused_seq > 0 && seq >= result->refused_seq)
        appender_add_answer(answers, "refused", err->message);
    else if (result->unknown_seq > 0 && seq >= result->unknown_seq)
        appender_add_answer(answers, "unknown", err->message);
    else
        (void)annal__buf_printf(answers, "{\"seq\":%" PRIu64 "}\n", seq);
}

annal_status appender_acknowledge(struct appender *appender, struct buf *answers, annal_error *err)
{
    annal_error failure = {0};
    annal_sync_result result = {0};
    annal_status status = ANNAL_OK;
    size_t events = appender->seqs.len / sizeof(uint64_t);
    if (events > 0 && appender->level == ANNAL_LEVEL_SYNC)
        status = annal_writer_sync(appender->writer, &result, &failure);
    for (size_t i = 0; i < events; i++) {
        uint64_t seq;
        memcpy(&seq, appender->seqs.ptr + i * sizeof seq, sizeof seq);
        answer(answers, seq, &result, &failure);
    }
    annal__buf_clear(&appender->seqs);
    appender->pending_bytes = 0;
    return annal__error_pass(err, status, &failure);
}

void appender_done(struct appender *appender)
{
    annal__buf_done(&appender->scratch);
    annal__buf_done(&appender->seqs);
    annal__buf_done(&appender->last_answer);
}
