/* SPDX-License-Identifier: Apache-2.0 */
/* Converts words of the command line to members of an event's data. */
#include "tools/cli/verbs.h"

#include "journal/base/json.h"
#include "tools/cli/must.h"
#include "tools/cli/verb_data.h"
#include "tools/cli/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct option verb_common[] = {
    {"event-id", "ID", "id of this event; a repeated append adds nothing", false},
    {"cause", "SESSION:SEQ", "event that caused this event", false},
    {NULL, NULL, NULL, false}};

/* ---- Values that were given ---- */

int verb_fill_in(const struct args *args, const char *template, struct buf *out)
{
    while (*template != '\0') {
        char name[NAME_BYTES];
        size_t len = strcspn(template, "{");
        must_append(out, template, len);
        template += len;
        if (*template == '\0')
            break;
        len = strcspn(template, "}");
        snprintf(name, sizeof name, "%.*s", (int)len - 1, template + 1);
        const char *text = args_get(args, name);
        if (text == NULL)
            return fail_usage("required option --%s is missing", name);
        must_append_text(out, text);
        template += len + 1;
    }
    return 0;
}

int verb_session_id(const struct args *args, const char *template, char *out, size_t size)
{
    SCOPED_BUF id = {0};
    int exit_status = verb_fill_in(args, template, &id);
    annal_slice session = annal__buf_slice(&id);
    if (exit_status == 0 && annal_session_id_check(session, NULL) < 0)
        exit_status = fail_usage("'%.*s' is not a valid session id: use 1 to %d of A-Z a-z 0-9 . _ "
                                 "-, and neither . nor - at the beginning",
                                 (int)(session.len < 100 ? session.len : 100), session.ptr,
                                 ANNAL_SESSION_ID_BYTES_MAX);
    if (exit_status == 0)
        snprintf(out, size, "%.*s", ANNAL_FMT(session));
    return exit_status;
}

/* ---- Values ---- */

int verb_read_file(const char *path, struct buf *out)
{
    const size_t limit = (size_t)ANNAL_DATA_BYTES_MAX + 1; /* the file and a NUL */
    bool whole = strcmp(path, "-") == 0 ? whole_file_read_fd(STDIN_FILENO, limit, out)
                                        : whole_file_read(path, limit, out);
    if (whole && out->len < limit)
        return 0;
    return whole || errno == EFBIG
               ? fail_refused(
                     "read the file '%s': the file is larger than an event may be (%u bytes)", path,
                     ANNAL_DATA_BYTES_MAX)
               : fail_refused("read the file '%s': %s", path, strerror(errno));
}

static int quote(struct buf *json, annal_slice text, const char *name)
{
    if (!annal__json_is_utf8(text))
        return fail_refused(
            "the value of %s is not valid UTF-8, so the value cannot be stored unchanged", name);
    must_quote(json, text);
    return 0;
}

static int add_text(const struct field *field, const char *name, const char *text, struct buf *json)
{
    SCOPED_BUF content = {0};
    int exit_status = 0;
    bool is_file =
        field->kind == FIELD_FILE || (field->kind == FIELD_BODY && strcmp(text, "-") == 0);
    if (is_file)
        exit_status = verb_read_file(text, &content);
    if (exit_status == 0)
        exit_status =
            quote(json, is_file ? annal__buf_slice(&content) : annal_slice_of(text), name);
    return exit_status;
}

static bool is_json(annal_slice text)
{
    return annal__json_check(text, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID;
}

/* Append a JSON value on one line: line breaks between its parts become spaces. The value is text,
 * a file "@NAME", or standard input "-". Returns 0 or an exit status. */
static int add_json(const char *name, const char *text, struct buf *json)
{
    bool is_file = text[0] == '@' || strcmp(text, "-") == 0;
    int exit_status = 0;
    if (is_file)
        exit_status = verb_read_file(text[0] == '@' ? text + 1 : text, json);
    else
        must_append_text(json, text);
    if (exit_status == 0 && !is_json(annal__buf_slice(json)))
        exit_status =
            is_file ? fail_refused("%s: the file '%s' does not contain a JSON value", name, text)
                    : fail_usage("%s needs a JSON value, not '%s'", name, text);
    for (size_t i = 0; exit_status == 0 && i < json->len; i++) {
        if (json->ptr[i] == '\n' || json->ptr[i] == '\r')
            json->ptr[i] = ' ';
    }
    return exit_status;
}

static int add_number(const char *name, const char *text, struct buf *json)
{
    bool is_number = strchr("-0123456789", text[0]) != NULL && text[0] != '\0' &&
                     text[strspn(text, "+-.0123456789eE")] == '\0' && is_json(annal_slice_of(text));
    if (!is_number)
        return fail_usage("%s needs a number, not '%s'", name, text);
    must_append_text(json, text);
    return 0;
}

static int add_time(const char *name, const char *text, struct buf *json)
{
    int64_t time_us = 0;
    char formatted[ANNAL_TIME_BYTES];
    if (!fields_parse_time(text, &time_us))
        return fail_usage("%s needs a time such as 2026-01-06T07:24:00Z or an age such as 45s, "
                          "30m, 2h, 7d, 2w, not '%s'",
                          name, text);
    annal_time_format(time_us, formatted);
    return quote(json, annal_slice_of(formatted), name);
}

static int add_list(const struct args *args, const char *called, const char *name, struct buf *json)
{
    int exit_status = 0;
    const char *text;
    must_append_text(json, "[");
    for (int at = 0; exit_status == 0 && (text = args_next(args, called, &at)) != NULL;) {
        must_append_text(json, json->len > 1 ? "," : "");
        exit_status = quote(json, annal_slice_of(text), name);
    }
    must_append_text(json, "]");
    return exit_status;
}

int verb_field_json(const struct args *args, const struct field *field, struct buf *json)
{
    char name[NAME_BYTES + 2];
    const char *called = field->option.name != NULL ? field->option.name : field->option.value;
    const char *text = called == NULL ? NULL : args_get(args, called);
    bool flag = field->kind == FIELD_FLAG && args_has(args, called);
    annal__buf_clear(json);
    if (text == NULL && !flag) {
        must_append_text(json, field->preset != NULL ? field->preset : "");
        return 0;
    }
    snprintf(name, sizeof name, "%s%s", field->option.name != NULL ? "--" : "", called);
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_BODY:
    case FIELD_FILE:
        return add_text(field, name, text, json);
    case FIELD_NUMBER:
        return add_number(name, text, json);
    case FIELD_JSON:
        return add_json(name, text, json);
    case FIELD_FLAG:
        must_append_text(json, "true");
        return 0;
    case FIELD_LIST:
        return add_list(args, called, name, json);
    case FIELD_TIME:
        return add_time(name, text, json);
    default:
        return 0; /* fields of the other kinds are not part of an event's data */
    }
}
