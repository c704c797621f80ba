/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one verb of two words: opens the store, appends an event. */
#include "index/sys/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/cli/decider.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cli/subject.h"
#include "tools/cli/verb_data.h"

#include <annal/pack.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct verb_member {
    char *to; /* name of the member in the event's data; NULL if the entry is unused */
    struct buf json;
};

/* ---- Members ---- */

static struct verb_member *find_member(const struct verb_call *call, const char *to)
{
    for (size_t i = 0; i < call->member_count; i++) {
        if (strcmp(call->members[i].to, to) == 0)
            return &call->members[i];
    }
    return NULL;
}

static struct verb_member *add_member(struct verb_call *call, const char *to)
{
    struct verb_member *member =
        must_array_add(&call->members, &call->member_count, sizeof *member);
    member->to = must_strndup(to, strlen(to));
    return member;
}

void verb_set(struct verb_call *call, const char *to, annal_slice json)
{
    struct verb_member *member = find_member(call, to);
    if (member == NULL)
        member = add_member(call, to);
    annal__buf_clear(&member->json);
    must_append_slice(&member->json, json);
}

void verb_set_text(struct verb_call *call, const char *to, annal_slice text)
{
    SCOPED_BUF json = {0};
    must_quote(&json, text);
    verb_set(call, to, annal__buf_slice(&json));
}

annal_slice verb_member(const struct verb_call *call, const char *to)
{
    const struct verb_member *member = find_member(call, to);
    return member == NULL ? (annal_slice){0} : annal__buf_slice(&member->json);
}

int verb_set_session(struct verb_call *call, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int len = vsnprintf(call->session, sizeof call->session, format, list);
    va_end(list);
    if (len < 0 || (size_t)len >= sizeof call->session ||
        annal_session_id_check(annal_slice_of(call->session), NULL) < 0)
        return fail_usage("'%s' is not a valid session id", call->session);
    return 0;
}

/* Return the part of a path after prefix, such as "id" for "run.id" and the prefix "run."; NULL if
 * the path has another prefix. */
static const char *below(const char *to, const char *prefix, size_t len)
{
    return strncmp(to, prefix, len) == 0 ? to + len : NULL;
}

/* Append the members whose path begins with prefix as an object. Members with the same next part of
 * the path form one object inside. */
static void write_object(const struct verb_call *call, const char *prefix, size_t len,
                         struct buf *out)
{
    bool is_first = true;
    must_append_text(out, "{");
    for (size_t i = 0; i < call->member_count; i++) {
        const char *name = below(call->members[i].to, prefix, len);
        if (name == NULL)
            continue;
        size_t head = strcspn(name, ".");
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++) {
            const char *before = below(call->members[j].to, prefix, len);
            seen = before != NULL && strncmp(before, name, head) == 0 && before[head] == '.';
        }
        if (seen)
            continue;
        if (!is_first)
            must_append_text(out, ",");
        is_first = false;
        must_json(out, "?:", (annal_slice){name, head});
        if (name[head] == '.')
            write_object(call, call->members[i].to, len + head + 1, out);
        else
            must_append_slice(out, annal__buf_slice(&call->members[i].json));
    }
    must_append_text(out, "}");
}

/* ---- The call ---- */

static int read_fields(struct verb_call *call)
{
    SCOPED_BUF json = {0};
    int exit_status = 0;
    const struct field *field = call->args->command->fields;
    for (; exit_status == 0 && field != NULL && field->kind != FIELD_END; field++) {
        if (field->to == NULL)
            continue;
        exit_status = verb_field_json(call->args, field, &json);
        if (exit_status == 0 && json.len > 0)
            verb_set(call, field->to, annal__buf_slice(&json));
    }
    return exit_status;
}

/* Return whether a pack is the file of the user that has the noun. The file was read, so the index
 * lacks the pack only because of an error, which it reported when it was opened. */
static bool is_of_user(const struct noun *noun, const char *pack)
{
    return noun != NULL && noun->of_user && noun->pack == pack;
}

/* Check that the pack is enabled: otherwise the verb would append events that no guard checks, and
 * read tables that do not exist. The first verb that writes a note enables its pack.
 * NULL: no check. */
static int need_pack(const struct verb_call *call, const char *pack)
{
    annal_error err = {0};
    annal_status status = pack == NULL ? ANNAL_OK : annal__packs_have(call->index, pack, &err);
    if (status == ANNAL_ERR_NOTFOUND && call->type != NULL && strcmp(pack, "annotations") == 0)
        status = subject_enable(call->store, call->index, &err);
    if (status == ANNAL_ERR_NOTFOUND && is_of_user(call->args->noun, pack))
        return fail_refused("pack %s does not run, because its file has the error above", pack);
    if (status == ANNAL_ERR_NOTFOUND)
        return fail_storage("pack %s is not enabled in this store: run 'annal pack enable %s'",
                            pack, pack);
    return status < 0 ? fail_error(&err) : 0;
}

int verb_open(struct verb_call *call, const struct args *args)
{
    const struct command *verb = args->command;
    annal_error err = {0};
    *call = (struct verb_call){.args = args, .type = verb->type};
    int exit_status = read_fields(call);
    if (exit_status == 0 && verb->session != NULL)
        exit_status = verb_session_id(args, verb->session, call->session, sizeof call->session);
    call->wait_ms = args->wait_ms;
    if (exit_status == 0)
        exit_status = store_open(args, verb->type != NULL ? OPEN_WRITE : OPEN_READ, call->wait_ms,
                                 &call->store);
    if (exit_status == 0)
        call->decider = decider_new(call->store);
    if (exit_status == 0 &&
        annal_index_open(call->store,
                         &(annal_index_options){.wait_ms = call->wait_ms, .decider = call->decider},
                         &call->index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && args->noun != NULL)
        exit_status = need_pack(call, args->noun->pack);
    return exit_status != 0 ? exit_status : need_pack(call, verb->needs);
}

annal_status verb_try_all(struct verb_call *call, const annal_draft *drafts, size_t count,
                          annal_error *err)
{
    annal_writer *writer = NULL;
    annal_appended appended = {0};
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC};
    annal_status status =
        annal_writer_open(call->store, annal_slice_of(call->session),
                          &(annal_writer_options){.wait_ms = call->wait_ms}, &writer, err);
    if (status == ANNAL_OK)
        status = annal_pack_append(call->index, writer, drafts, count, &options, &appended, err);
    if (status == ANNAL_OK) {
        annal_free(call->data.ptr);
        call->seq = appended.seq;
        call->data = appended.data;
    }
    annal_writer_close(writer);
    return status;
}

annal_status verb_try(struct verb_call *call, annal_error *err)
{
    SCOPED_BUF data = {0};
    write_object(call, "", 0, &data);
    const annal_draft draft = {.type = annal_slice_of(call->type),
                               .data = annal__buf_slice(&data),
                               .id = annal_slice_of(args_get(call->args, "event-id")),
                               .cause = annal_slice_of(args_get(call->args, "cause"))};
    return verb_try_all(call, &draft, 1, err);
}

int verb_post(struct verb_call *call)
{
    annal_error err = {0};
    return verb_try(call, &err) < 0 ? fail_error(&err) : 0;
}

int verb_close(struct verb_call *call, int exit_status)
{
    for (size_t i = 0; i < call->member_count; i++) {
        annal__free(call->members[i].to);
        annal__buf_done(&call->members[i].json);
    }
    annal__free(call->members);
    annal_free(call->data.ptr);
    annal_index_close(call->index);
    decider_free(call->decider);
    exit_status = store_close(call->store, exit_status);
    *call = (struct verb_call){0};
    return exit_status;
}

/* ---- The sentence ---- */

/* Print a JSON value for people: a string without its quotation marks, other values unchanged. */
static void print_scalar(annal_slice raw)
{
    SCOPED_BUF scratch = {0};
    annal_slice text = raw;
    if (raw.len > 0 && raw.ptr[0] == '"' && annal__json_text(raw, &scratch, &text) < 0)
        text = raw;
    out_plain(text);
}

/* Print a JSON value for people; the items of an array with commas between them. */
static void print_value(annal_slice raw)
{
    struct json_walk walk;
    annal_slice item;
    const char *comma = "";
    if (!annal__json_walk_array(&walk, raw)) {
        print_scalar(raw);
        return;
    }
    for (; annal__json_walk_item(&walk, &item); comma = ", ") {
        printf("%s", comma);
        print_scalar(item);
    }
}

static void print_name(const struct verb_call *call, const char *name)
{
    annal_slice raw = annal__json_member(call->data, name);
    const char *text = raw.len > 0 ? NULL : args_get(call->args, name);
    if (strcmp(name, "seq") == 0)
        printf("%" PRIu64, call->seq);
    else if (strcmp(name, "session_id") == 0)
        out_plain(annal_slice_of(call->session));
    else if (raw.len > 0)
        print_value(raw);
    else if (text != NULL)
        out_plain(annal_slice_of(text));
}

static void print_said(const struct verb_call *call, const char *said)
{
    while (*said != '\0') {
        char name[NAME_BYTES];
        size_t len = strcspn(said, "{");
        out_slice((annal_slice){said, len});
        said += len;
        if (*said == '\0')
            break;
        len = strcspn(said, "}");
        snprintf(name, sizeof name, "%.*s", (int)len - 1, said + 1);
        print_name(call, name);
        said += len + 1;
    }
    printf("\n");
}

void verb_print(const struct verb_call *call)
{
    const char *said = call->args->command->said;
    if (!call->args->json) {
        print_said(call, said != NULL ? said : "{session_id}: event {seq}");
        return;
    }
    out_json("{\"session_id\":?,\"seq\":#,\"type\":?,\"data\":#}\n", annal_slice_of(call->session),
             JSON_U64(call->seq), annal_slice_of(call->type), call->data);
}

int verb_append(const struct args *args)
{
    struct verb_call call;
    const struct command *verb = args->command;
    int exit_status = verb_open(&call, args);
    if (exit_status == 0 && verb->prepare != NULL)
        exit_status = verb->prepare(&call);
    if (exit_status == 0)
        exit_status = verb_post(&call);
    if (exit_status == 0 && verb->finish != NULL && !args->json)
        exit_status = verb->finish(&call);
    else if (exit_status == 0)
        verb_print(&call);
    return verb_close(&call, exit_status);
}
