/* SPDX-License-Identifier: Apache-2.0 */
#include "index/packs/need.h"
#include "index/packs/post.h"

#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <annal/packs/run.h>
#include <annal/query.h>

static const char TRANSIENT[] =
    "SELECT id, status FROM agentweaver.runs WHERE status IN ('committing', 'merging') AND (?1 IS "
    "NULL OR project_id = ?1) ORDER BY id";

/* Append the id and the status of a run to a buf, each followed by a NUL: an annal_row_fn. */
static int add_run(void *arg, const annal_row *row)
{
    struct buf *runs = arg;
    for (size_t i = 0; i < 2; i++)
        if (annal__buf_append_slice(runs, row->values[i].bytes) < 0 ||
            annal__buf_append(runs, "", 1) < 0)
            return ANNAL_ERR_NOMEM;
    return 0;
}

static annal_status write_data(annal_slice status, struct buf *data)
{
    bool merging = annal__slice_is(status, "merging");
    annal_status done = annal__post_add_text(data, "to", ANNAL_SLICE("awaiting_review"));
    if (done == ANNAL_OK)
        done = annal__post_add_text(data, "expected", status);
    if (done == ANNAL_OK)
        done = annal__post_add_text(data, "operation",
                                    annal_slice_of(merging ? "revert_merge" : "revert_commit"));
    return done == ANNAL_OK ? annal__post_close_data(data) : done;
}

/*
 * Set a run in a transient status back to awaiting_review, and call fn with the result. If another
 * process changed the run's status in the meantime, the guard refuses the event; this is not a
 * failure: recovered->refusal is the guard's sentence.
 */
static int revert(annal_index *index, const annal_run_recover_options *how,
                  annal_run_recovered *recovered, annal_run_recovered_fn fn, void *arg,
                  annal_error *err)
{
    struct buf session = {0}, data = {0};
    annal_appended appended = {0};
    annal_error refusal = {0};
    int status = annal__buf_printf(&session, "run_%.*s", ANNAL_FMT(recovered->run));
    if (status >= 0)
        status = write_data(recovered->status, &data);
    if (status < 0) {
        annal__fail(err, status, "recover run '%.*s': out of memory", ANNAL_FMT(recovered->run));
        goto done;
    }
    recovered->session = annal__buf_slice(&session);
    const struct post post = {.session = recovered->session,
                              .type = ANNAL_SLICE("run.transition"),
                              .id = how->id,
                              .cause = how->cause,
                              .wait_ms = how->wait_ms};
    status = annal__post(index, &post, annal__buf_slice(&data), &appended, &refusal);
    if (status < 0 && status != ANNAL_ERR_REFUSED) {
        if (err != NULL)
            *err = refusal;
        goto done;
    }
    recovered->refusal = status < 0 ? refusal.message : NULL;
    recovered->seq = appended.seq;
    recovered->data = appended.data;
    status = fn == NULL ? 0 : fn(arg, recovered);

done:
    annal_free(appended.data.ptr);
    annal__buf_done(&session);
    annal__buf_done(&data);
    return status;
}

annal_status annal_run_recover(annal_index *index, const annal_run_recover_options *options,
                               annal_run_recovered_fn fn, void *arg, annal_error *err)
{
    struct buf runs = {0};
    const annal_run_recover_options none = {0}, *how = options != NULL ? options : &none;
    const annal_value param = {.kind = how->project.len > 0 ? ANNAL_VALUE_TEXT : ANNAL_VALUE_NULL,
                               .bytes = how->project};
    const annal_sql_options sql = {.params = &param, .param_count = 1};
    annal_status status = annal__need_pack(index, "agentweaver", err);
    if (status == ANNAL_OK)
        status = annal_sql(index, annal_slice_of(TRANSIENT), &sql, add_run, &runs, err);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "list the runs to recover: out of memory");
    for (size_t at = 0; status == ANNAL_OK && at < runs.len;) {
        annal_run_recovered recovered = {.run = annal_slice_of(runs.ptr + at)};
        recovered.status = annal_slice_of(runs.ptr + at + recovered.run.len + 1);
        status = revert(index, how, &recovered, fn, arg, err);
        at += recovered.run.len + recovered.status.len + 2;
    }
    annal__buf_done(&runs);
    return status;
}
