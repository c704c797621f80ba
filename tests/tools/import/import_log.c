/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/import/import_log.h"
#include "tests/support/real_logs.h"
#include "tests/support/tmpdir.h"
#include "tools/import/import.h"

#include <check.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static annal_status take(void *arg, const annal_import_event *event, annal_error *err)
{
    struct imported *out = arg;
    (void)err;
    if ((out->count & (out->count + 1)) == 0)
        out->events = realloc(out->events, (out->count + 1) * 2 * sizeof *out->events);
    ck_assert_ptr_nonnull(out->events);
    struct imported_event *added = &out->events[out->count++];
    *added = (struct imported_event){
        .line = event->line, .text = out->text.len, .ts_us = event->draft.ts_us};
    ck_assert_uint_lt(event->session.len, sizeof added->session);
    ck_assert_uint_lt(event->draft.type.len, sizeof added->type);
    memcpy(added->session, event->session.ptr, event->session.len);
    memcpy(added->type, event->draft.type.ptr, event->draft.type.len);
    ck_assert_int_eq(annal__buf_printf(&out->text, "%s\t%" PRId64 "\t%s\t%.*s\t", added->session,
                                       added->ts_us, added->type, ANNAL_FMT(event->draft.id)),
                     ANNAL_OK);
    added->data = out->text.len;
    ck_assert_int_eq(annal__buf_append_slice(&out->text, event->draft.data), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append(&out->text, "\n", 1), ANNAL_OK);
    return ANNAL_OK;
}

void import_log(const char *kind, const char *name, annal_slice bytes, size_t batch,
                size_t most_lines, struct imported *out)
{
    struct importer importer = {0};
    annal_import *import = NULL;
    annal_error err = {0};
    *out = (struct imported){0};
    ck_assert(importer_find(kind, &importer));
    annal_import_source source = {.kind = kind, .file = name};
    ck_assert_msg(annal_import_open(importer.sql, &source, &import, &err) == ANNAL_OK, "%s",
                  err.message);
    annal_import_line *lines = calloc(batch, sizeof *lines);
    ck_assert_ptr_nonnull(lines);
    size_t count = 0;
    while (bytes.len > 0 && (most_lines == 0 || out->lines < most_lines)) {
        const char *newline = memchr(bytes.ptr, '\n', bytes.len);
        size_t len = newline != NULL ? (size_t)(newline - bytes.ptr) : bytes.len;
        lines[count++] = (annal_import_line){.number = ++out->lines, .bytes = {bytes.ptr, len}};
        len += newline != NULL;
        bytes = (annal_slice){bytes.ptr + len, bytes.len - len};
        if (count < batch && bytes.len > 0 && (most_lines == 0 || out->lines < most_lines))
            continue;
        ck_assert_msg(annal_import_feed(import, lines, count, take, out, &err) == ANNAL_OK,
                      "%s: %s", name, err.message);
        count = 0;
    }
    out->counts = annal_import_counts_get(import);
    free(lines);
    annal_import_close(import);
}

void imported_done(struct imported *imported)
{
    annal__buf_done(&imported->text);
    free(imported->events);
}

char *imported_data(const struct imported *imported, size_t i)
{
    ck_assert_uint_lt(i, imported->count);
    const char *data = imported->text.ptr + imported->events[i].data;
    return strndup(data, (size_t)(strchr(data, '\n') - data));
}

size_t imported_count(const struct imported *imported, const char *session, const char *type)
{
    size_t found = 0;
    for (size_t i = 0; i < imported->count; i++) {
        const struct imported_event *event = &imported->events[i];
        found += strcmp(event->type, type) == 0 &&
                 (session == NULL || strcmp(event->session, session) == 0);
    }
    return found;
}

size_t imported_find(const struct imported *imported, const char *type, size_t n)
{
    for (size_t i = 0; i < imported->count; i++) {
        if (strcmp(imported->events[i].type, type) == 0 && n-- == 0)
            return i;
    }
    ck_abort_msg("no such event: %s", type);
}

/* ---- Logs ---- */

static const char *walk_kind;
static log_fn walk_fn;

static int walk_one(const char *path, const struct stat *st, int type)
{
    size_t len = strlen(path);
    (void)st;
    if (type == FTW_F && len > 6 && strcmp(path + len - 6, ".jsonl") == 0) {
        size_t bytes_len = 0;
        char *bytes = file_read(path, &bytes_len);
        walk_fn(walk_kind, path, (annal_slice){bytes, bytes_len});
        free(bytes);
    }
    return 0;
}

void for_each_log(const char *kind, bool real, log_fn fn)
{
    char fixtures[4096];
    snprintf(fixtures, sizeof fixtures, "%s/tests/data/%s", ANNAL_SOURCE, kind);
    char *folder = real ? real_logs(kind) : strdup(fixtures);
    if (folder == NULL)
        return; /* real_logs() has said so */
    walk_kind = kind;
    walk_fn = fn;
    ck_assert_int_eq(ftw(folder, walk_one, 8), 0);
    free(folder);
}
