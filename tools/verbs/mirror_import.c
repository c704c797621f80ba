/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal project import: proposals from the files that agents write.
 *
 * (1) An import only adds: a proposal for each file in the inbox whose slug the project does not
 *     have. A file that cannot be read as a proposal is reported and skipped.
 * (2) A link in the inbox is not read as a proposal, and nothing outside the given directory is
 *     read (journal/base/below.h).
 */
#include "journal/base/below.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/verbs.h"
#include "tools/verbs/agentweaver.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INBOX    ".squad/decisions/inbox"
#define TOO_LONG "the file is longer than an event can be"

struct mirror_import {
    struct verb_call call;
    struct below below;
    uint64_t taken;
};

struct proposal {
    annal_slice agent, slug, type, title, content, rationale;
};

static annal_slice trim(annal_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]) != NULL) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) != NULL)
        text.len--;
    return text;
}

static annal_slice take_line(annal_slice *rest)
{
    const char *newline = memchr(rest->ptr, '\n', rest->len);
    size_t len = newline == NULL ? rest->len : (size_t)(newline - rest->ptr);
    annal_slice line = {rest->ptr, len};
    rest->ptr += len + (newline != NULL);
    rest->len -= len + (newline != NULL);
    return trim(line);
}

/* Read a line `name: value` into a member of proposal; other names are ignored. A value in double
 * quotes is a JSON string, which is decoded into scratch. */
static bool take_field(struct proposal *proposal, annal_slice line, struct buf *scratch)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    if (colon == NULL)
        return true;
    annal_slice name = trim((annal_slice){line.ptr, (size_t)(colon - line.ptr)});
    annal_slice value = trim((annal_slice){colon + 1, line.len - (size_t)(colon + 1 - line.ptr)});
    annal_slice *to = annal__slice_is(name, "agent")   ? &proposal->agent
                      : annal__slice_is(name, "slug")  ? &proposal->slug
                      : annal__slice_is(name, "type")  ? &proposal->type
                      : annal__slice_is(name, "title") ? &proposal->title
                                                       : NULL;
    if (to == NULL)
        return true;
    *to = value;
    if (value.len > 1 && value.ptr[0] == '"' &&
        annal__json_check(value, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID)
        return annal__json_text(value, scratch, to) != ANNAL_ERR_NOMEM;
    return true;
}

/*
 * Parse a proposal. Returns false if the text is not a proposal, or memory ran out. The slices of
 * *out point into text and scratch; scratch is first given room for the whole text, so that its
 * bytes do not move.
 */
static bool parse_proposal(annal_slice text, struct buf *scratch, struct proposal *out)
{
    static const char mark[] = "**Rationale:**";
    annal_slice rest = text;
    *out = (struct proposal){0};
    if (annal__buf_reserve(scratch, text.len) < 0 || !annal__slice_is(take_line(&rest), "---"))
        return false;
    for (;;) {
        if (rest.len == 0)
            return false;
        annal_slice line = take_line(&rest);
        if (annal__slice_is(line, "---"))
            break;
        if (!take_field(out, line, scratch))
            return false;
    }
    out->content = trim(rest);
    const char *found = memmem(rest.ptr, rest.len, mark, sizeof mark - 1);
    if (found != NULL) {
        out->content = trim((annal_slice){rest.ptr, (size_t)(found - rest.ptr)});
        found += sizeof mark - 1;
        out->rationale = trim((annal_slice){found, (size_t)(rest.ptr + rest.len - found)});
    }
    return out->agent.len > 0 && out->slug.len > 0 && out->type.len > 0 && out->title.len > 0 &&
           out->content.len > 0 && annal__json_is_utf8(text);
}

static void say_unreadable(const struct mirror_import *import, const char *path, const char *why)
{
    say("the file '%s/%s' in the inbox is left out: %s", import->below.root, path, why);
}

/* Set the members of the event's data to those of a proposal. */
static void set_members(struct verb_call *call, const struct proposal *proposal)
{
    const struct {
        const char *name;
        annal_slice text;
    } members[] = {{"agent_name", proposal->agent}, {"slug", proposal->slug},
                   {"type", proposal->type},        {"title", proposal->title},
                   {"content", proposal->content},  {"rationale", proposal->rationale}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (members[i].text.len > 0)
            verb_set_text(call, members[i].name, members[i].text);
        else
            verb_set(call, members[i].name, ANNAL_SLICE("null"));
    }
}

static int append_proposal(struct mirror_import *import, const char *path,
                           const struct proposal *proposal)
{
    annal_error err = {0};
    set_members(&import->call, proposal);
    annal_status status = verb_try(&import->call, &err);
    if (status == ANNAL_ERR_REFUSED)
        say("the proposal '%.*s' in the inbox is refused: %s", ANNAL_FMT(proposal->slug),
            err.message);
    else if (status == ANNAL_ERR_LIMIT)
        say_unreadable(import, path, TOO_LONG);
    else if (status < 0)
        return fail_error(&err);
    import->taken += status == ANNAL_OK;
    if (status == ANNAL_OK && import->call.args->json)
        verb_print(&import->call);
    return 0;
}

static int note_row(void *arg, const annal_row *row)
{
    (void)row;
    *(bool *)arg = true;
    return 0;
}

/* Append the proposal, unless the project has one with this slug. Returns 0 or an exit status. */
static int add_missing(struct mirror_import *import, const char *path,
                       const struct proposal *proposal)
{
    bool known = false;
    annal_error err = {0};
    const annal_value params[] = {
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(args_get(import->call.args, "PROJECT"))},
        {.kind = ANNAL_VALUE_TEXT, .bytes = proposal->slug}};
    const annal_sql_options options = {.params = params, .param_count = 2};
    if (annal_index_sql(import->call.index,
                        ANNAL_SLICE("SELECT 1 FROM memory.decision_inbox "
                                    "WHERE project_id = ?1 AND slug = ?2"),
                        &options, note_row, &known, &err) < 0)
        return fail_error(&err);
    return known ? 0 : append_proposal(import, path, proposal);
}

/* Return the reason why a file of the inbox cannot be read: rule (1). */
static const char *why_unreadable(int status, const annal_error *why)
{
    return status == ANNAL_ERR_LIMIT ? TOO_LONG
           : why->os_errno == ELOOP  ? "the file is a symbolic link, which is not followed"
           : why->os_errno == EISDIR ? "the path is a directory"
           : why->os_errno == ENODEV ? "the file is not a regular file"
                                     : strerror(why->os_errno);
}

static int import_file(struct mirror_import *import, const char *name)
{
    SCOPED_BUF path = {0}, scratch = {0}, text = {.limit = (size_t)ANNAL_DATA_BYTES_MAX + 1};
    struct proposal proposal;
    annal_error why = {0};
    int exit_status = 0;
    must_printf(&path, INBOX "/%s", name);
    annal_status status = annal__below_read(&import->below, path.ptr, &text, &why);
    if (status < 0)
        say_unreadable(import, path.ptr, why_unreadable(status, &why));
    else if (!parse_proposal(annal__buf_slice(&text), &scratch, &proposal))
        say_unreadable(import, path.ptr,
                       "not a proposal: it needs front matter with agent, slug, type and title, "
                       "and content");
    else
        exit_status = add_missing(import, path.ptr, &proposal);
    return exit_status;
}

static int is_markdown(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 3 && strcmp(entry->d_name + len - 3, ".md") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Import the files of the inbox, in the order of their names. Without the directory or its inbox no
 * proposals exist. */
static int import_all(struct mirror_import *import, const char *directory, int *out_files)
{
    struct dirent **entries = NULL;
    annal_error err = {0};
    int folder = -1, exit_status = 0;
    *out_files = 0;
    annal_status status = annal__below_open(directory, &import->below, &err);
    if (status == ANNAL_OK)
        status = annal__below_folder(&import->below, INBOX, NULL, &folder, &err);
    if (status == ANNAL_OK) {
        *out_files = scandirat(folder, ".", &entries, is_markdown, by_name);
        if (*out_files < 0)
            status = annal__fail_errno(&err, "cannot read '%s/" INBOX "'", directory);
        close(folder);
    }
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        exit_status = fail_refused("%s", err.message);
    for (int i = 0; i < *out_files; i++) {
        if (exit_status == 0)
            exit_status = import_file(import, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    annal__below_close(&import->below);
    return exit_status;
}

int mirror_import(const struct args *args)
{
    struct mirror_import import = {0};
    int files = 0;
    int exit_status = verb_open(&import.call, args);
    if (exit_status == 0 && args_has(args, "event-id"))
        exit_status = fail_usage("--event-id names one event, but this verb may append several");
    if (exit_status == 0)
        exit_status = verb_set_session(&import.call, "proj_%s", args_get(args, "PROJECT"));
    if (exit_status == 0)
        exit_status = import_all(&import, args_get(args, "DIR"), &files);
    if (exit_status == 0 && !args->json)
        printf("%" PRIu64 " proposals read from %d files\n", import.taken, files);
    return verb_close(&import.call, exit_status);
}
