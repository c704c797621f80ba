/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of annal lionagi in C: they add ids, register classes of messages, and describe
 * processes. */
#include "journal/base/clock.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/verbs.h"

#include <annal/pack.h>
#include <annal/process.h>

#include <string.h>
#include <sys/random.h>

/* ---- Ids ---- */

enum { UUID_BYTES = 37 };

static int new_uuid(char out[UUID_BYTES])
{
    unsigned char b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return fail_storage("cannot read random bytes from the system");
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(out, UUID_BYTES,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return 0;
}

/* Set the member id to a new id if the user gave none. Returns 0 or an exit status. */
static int prepare_id(struct verb_call *call)
{
    char id[UUID_BYTES];
    if (verb_member(call, "id").len > 0)
        return 0;
    int exit_status = new_uuid(id);
    if (exit_status == 0)
        verb_set_text(call, "id", annal_slice_of(id));
    return exit_status;
}

/* ---- Messages ---- */

static int note_row(void *arg, const annal_row *row)
{
    (void)row;
    *(bool *)arg = true;
    return 0;
}

/*
 * Register a class in session _state, which assigns it a number, unless that was done. If several
 * processes do so at the same time, one succeeds and the others are refused, which has the same
 * result.
 */
static annal_status register_class(struct verb_call *call, const char *class, annal_error *err)
{
    annal_writer *writer = NULL;
    SCOPED_BUF data = {0};
    bool known = false;
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(class)};
    const annal_sql_options asked = {.params = &param, .param_count = 1};
    annal_status status = annal_index_sql(
        call->index, ANNAL_SLICE("SELECT 1 FROM message_types WHERE lion_class = ?1"), &asked,
        note_row, &known, err);
    if (status < 0 || known)
        return status;
    must_json(&data, "{\"lion_class\":?}", annal_slice_of(class));
    status = annal_writer_open(call->store, ANNAL_SLICE("_state"), NULL, &writer, err);
    if (status >= 0) {
        const annal_draft draft = {.type = ANNAL_SLICE("message_type.registered"),
                                   .data = annal__buf_slice(&data)};
        status = annal_pack_append(call->index, writer, &draft, 1, NULL, NULL, err);
    }
    annal_writer_close(writer);
    return status == ANNAL_ERR_REFUSED ? ANNAL_OK : status;
}

static int prepare_message(struct verb_call *call)
{
    annal_error err = {0};
    const char *class = args_get(call->args, "class");
    int exit_status = prepare_id(call);
    if (exit_status == 0 && class != NULL && register_class(call, class, &err) < 0)
        exit_status = fail_error(&err);
    return exit_status;
}

/* ---- Processes ---- */

/* Read --pid N, and add the facts that distinguish this process from every other one, so that it
 * can be proved later that it has ended. Returns 0 or an exit status. */
static int prepare_process(struct verb_call *call)
{
    char json[ANNAL_PROCESS_JSON_BYTES];
    uint64_t pid = 0;
    annal_process process;
    annal_error err = {0};
    const char *text = args_get(call->args, "pid");
    if (text == NULL)
        return 0;
    if (!fields_parse_number(text, &pid) || pid == 0 || pid > INT32_MAX)
        return fail_usage("--pid needs the id of a process, not '%s'", text);
    if (annal_process_get((uint32_t)pid, &process, &err) < 0)
        return fail_error(&err);
    verb_set(call, "process", annal_slice_of(annal_process_json(&process, json)));
    return 0;
}

/* Set started_at to the time when the session was created, unless it was given. Returns 0 or an
 * exit status. */
static int prepare_session(struct verb_call *call)
{
    char text[ANNAL_TIME_BYTES];
    annal_slice created = verb_member(call, "created_at");
    int exit_status = prepare_process(call);
    if (exit_status != 0 || verb_member(call, "started_at").len > 0)
        return exit_status;
    if (created.len > 0) {
        verb_set(call, "started_at", created);
        return 0;
    }
    annal_time_format(annal__system_clock.wall_us(annal__system_clock.arg), text);
    verb_set_text(call, "created_at", annal_slice_of(text));
    verb_set_text(call, "started_at", annal_slice_of(text));
    return 0;
}

const struct verb_code lionagi_code[] = {{"lionagi", "session", .prepare = prepare_session},
                                         {"lionagi", "open", .prepare = prepare_process},
                                         {"lionagi", "branch", .prepare = prepare_id},
                                         {"lionagi", "fork", .prepare = prepare_id},
                                         {"lionagi", "message", .prepare = prepare_message},
                                         {"lionagi", "amend", .prepare = prepare_message},
                                         {.noun = NULL}};
