/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies sessions, and answers with a line for each session as soon as it is verified. */
#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "tools/serve/produce.h"

#include <inttypes.h>
#include <string.h>

#define SESSIONS_MAX 1000u
#define FINDINGS_MAX 1000u

struct verify {
    annal_store *store;
    struct buf names; /* ids of the sessions to verify, each with a final NUL */
    size_t at;
    struct buf *out;
    uint64_t findings;
};

static int add_name(void *arg, annal_slice session, uint64_t journal_bytes)
{
    struct buf *names = arg;
    (void)journal_bytes;
    annal__buf_append_slice(names, session);
    return annal__buf_append(names, "", 1);
}

static void add_finding(void *arg, const annal_finding *finding)
{
    struct verify *verify = arg;
    if (verify->findings++ >= FINDINGS_MAX)
        return;
    (void)annal__json_put(verify->out, "#{\"seq\":#,\"offset\":#,\"length\":#,\"what\":?}",
                          annal_slice_of(verify->findings > 1 ? "," : ""), JSON_U64(finding->seq),
                          JSON_U64(finding->offset), JSON_U64(finding->length),
                          annal_slice_of(finding->what));
}

static annal_status verify_one(struct verify *verify, const char *name, struct buf *out)
{
    annal_verify_result result = {0};
    annal_error err = {0};
    verify->out = out;
    verify->findings = 0;
    annal_status status = annal__buf_printf(out, "{\"session_id\":\"%s\",\"findings\":[", name);
    if (status < 0)
        return status;
    status = annal_session_verify(verify->store, annal_slice_of(name), add_finding, verify, &result,
                                  &err);
    return annal__json_put(
        out, "],\"finding_count\":#,\"events\":#,\"bytes\":#,\"last_seq\":#,\"error\":!}\n",
        JSON_U64(result.findings), JSON_U64(result.events), JSON_U64(result.bytes),
        JSON_U64(result.last_seq), annal_slice_of(status < 0 ? err.message : NULL));
}

static annal_status fill(void *arg, struct buf *out)
{
    struct verify *verify = arg;
    if (verify->at >= verify->names.len)
        return ANNAL_END;
    const char *name = verify->names.ptr + verify->at;
    verify->at += strlen(name) + 1;
    return verify_one(verify, name, out);
}

static void free_verify(void *arg)
{
    struct verify *verify = arg;
    annal__buf_done(&verify->names);
    annal__free(verify);
}

void serve_verify_run(struct serve *serve, struct request *request)
{
    annal_slice *sessions = NULL;
    size_t count = 0;
    annal_error err = {0};
    annal_session_info info;
    struct verify *verify = annal__zalloc(sizeof *verify);
    annal_status status = verify == NULL ? ANNAL_ERR_NOMEM : ANNAL_OK;
    if (status >= 0 && !answer_list(request, "session", SESSIONS_MAX, &sessions, &count)) {
        free_verify(verify);
        return;
    }
    for (size_t i = 0; status >= 0 && i < count; i++) {
        status = annal_session_info_get(serve->store, sessions[i], &info, &err);
        if (status >= 0 || status == ANNAL_ERR_CORRUPT)
            status = add_name(&verify->names, sessions[i], 0);
    }
    if (status >= 0 && count == 0)
        status = annal_session_each(serve->store, add_name, &verify->names, &err);
    annal__free(sessions);
    if (status >= 0) {
        verify->store = serve->store;
        produce(serve, request, NDJSON_TYPE,
                &(struct producer){
                    .queue = QUEUE_SLOW, .arg = verify, .fill = fill, .free = free_verify});
        return;
    }
    if (verify != NULL)
        free_verify(verify);
    answer_json(request, status, &err);
}
