/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of pack annotations: SESSION or SESSION:SEQ as the session of the notes, and as the
 * event that they are about. */
#include "tools/cli/out.h"
#include "tools/cli/sessions.h"
#include "tools/cli/subject.h"
#include "tools/cli/verbs.h"

#include <stdio.h>
#include <string.h>

/* Find SESSION or SESSION:SEQ. Returns 0 or an exit status. */
static int find(const struct verb_call *call, struct subject *out)
{
    char room[ARGS_ID_BYTES], word[ARGS_ID_BYTES];
    const char *text = args_get(call->args, "SESSION"), *colon = strchr(text, ':'), *id = word;
    size_t len = colon == NULL ? strlen(text) : (size_t)(colon - text);
    uint64_t seq = 0;
    annal_error err = {0};
    if (colon != NULL && (!fields_parse_number(colon + 1, &seq) || seq == 0))
        return fail_usage("'%s' must be SESSION or SESSION:SEQ, such as sess_1:12", text);
    if (annal_session_id_check((annal_slice){text, len}, NULL) < 0)
        return fail_usage("'%.*s' is not a valid session id", (int)len, text);
    snprintf(word, sizeof word, "%.*s", (int)len, text);
    int exit_status = sessions_resolve_word(call->store, &id, room);
    if (exit_status != 0)
        return exit_status;
    annal_status status = subject_find(call->store, annal_slice_of(id), seq, out, &err);
    return status < 0 ? fail_error(&err) : 0;
}

static int prepare(struct verb_call *call)
{
    struct subject subject = {0};
    int exit_status = find(call, &subject);
    if (exit_status == 0)
        exit_status = verb_set_session(call, "%s", subject.notes);
    if (exit_status == 0 && subject.seq > 0) {
        verb_set(call, "event_seq", JSON_U64(subject.seq));
        verb_set_text(call, "event_hash", annal_slice_of(subject.hash));
        if (subject.id.len > 0)
            verb_set_text(call, "event_id", annal__buf_slice(&subject.id));
    }
    subject_done(&subject);
    return exit_status;
}

/* For verbs that are about a session only. */
static int prepare_whole(struct verb_call *call)
{
    if (strchr(args_get(call->args, "SESSION"), ':') != NULL)
        return fail_usage("'%s' must be a session, not an event", args_get(call->args, "SESSION"));
    return prepare(call);
}

const struct verb_code note_code[] = {
    {"note", "star", .prepare = prepare},       {"note", "unstar", .prepare = prepare},
    {"note", "name", .prepare = prepare_whole}, {"note", "unname", .prepare = prepare_whole},
    {"note", "tag", .prepare = prepare},        {"note", "untag", .prepare = prepare},
    {"note", "add", .prepare = prepare},        {"note", "remove", .prepare = prepare_whole},
    {"note", "undo", .prepare = prepare_whole}, {.noun = NULL}};
