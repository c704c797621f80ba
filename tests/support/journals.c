/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/journals.h"

#include "journal/base/error.h"
#include "journal/sys/delete.h"
#include "journal/sys/say.h"
#include "tests/support/tmpdir.h"

#include <check.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t never_moves(void *arg)
{
    (void)arg;
    return (int64_t)1 << 40;
}

const struct clock still_clock = {.wall_us = never_moves, .monotonic_us = never_moves};

annal_store *store_open_seams(const char *path, const struct seams *seams)
{
    static const struct seams system = {.io = &annal__system_io, .clock = &annal__system_clock};
    const annal_store_options options = {.create = true, .no_keeper = true, .wait_ms = 2000};
    annal_store *store = NULL;
    ck_ok(annal__store_open(path, &options, seams == NULL ? &system : seams, &store, err));
    return store;
}

annal_store *store_open(const char *path)
{
    return store_open_seams(path, NULL);
}

void store_close(annal_store *store)
{
    ck_ok(annal_store_close(store, err));
}

annal_status delete_wiped(annal_store *store, annal_slice session, annal_session_info *out_info,
                          annal_error *err)
{
    annal_error why;
    annal_status status = annal__replace_delete(store, session, out_info, err);
    if (status == ANNAL_OK && annal__replace_wipe_logs(store, &why) < 0)
        annal__say(store, ANNAL_LOG_WARNING, "session '%.*s' is deleted: %s", ANNAL_FMT(session),
                   why.message);
    return status;
}

void store_abandon(annal_store *store)
{
    annal_error died;
    annal__fail(&died, ANNAL_ERR_IO, "this process is dead");
    annal__commit_fail(&store->commit, &died);
    (void)annal_store_close(store, NULL);
}

annal_slice event_data(char *out, size_t room, uint64_t number, size_t pad)
{
    int length = snprintf(out, room, "{\"number\":%" PRIu64 ",\"text\":\"", number);
    size_t at = (size_t)length;
    /* Threads and processes that will be killed call this too, so it calls Check only on a
     * failure. */
    if (at + pad + 2 > room)
        ck_abort_msg("no room for data of %zu bytes", at + pad + 2);
    for (size_t i = 0; i < pad; i++)
        out[at++] = (char)('a' + (number * 7 + i) % 26);
    out[at++] = '"';
    out[at++] = '}';
    return (annal_slice){out, at};
}

annal_status append_slice(annal_store *store, const char *session, annal_slice data, const char *id,
                          annal_level level, uint64_t *out_seq, annal_error *err)
{
    annal_writer *writer = NULL;
    const annal_writer_options options = {.level = level};
    annal_status status = annal_writer_open(store, annal_slice_of(session), &options, &writer, err);
    if (status < 0)
        return status;
    const annal_draft draft = {
        .type = ANNAL_SLICE("test.event"), .data = data, .id = annal_slice_of(id)};
    status = annal_writer_append(writer, &draft, 1, NULL, out_seq, err);
    annal_writer_close(writer);
    return status;
}

annal_status append_number(annal_store *store, const char *session, uint64_t number, size_t pad,
                           annal_level level, uint64_t *out_seq, annal_error *err)
{
    char *room = malloc(pad + 100);
    if (room == NULL)
        ck_abort_msg("no memory");
    annal_slice data = event_data(room, pad + 100, number, pad);
    annal_status status = append_slice(store, session, data, NULL, level, out_seq, err);
    free(room);
    return status;
}

void append_numbers(annal_store *store, const char *session, uint64_t first, uint64_t last,
                    annal_level level)
{
    for (uint64_t number = first; number <= last; number++) {
        uint64_t seq;
        ck_ok(append_number(store, session, number, 40, level, &seq, err));
    }
}

uint64_t event_number(const annal_event *event)
{
    char text[32] = {0};
    char expected[100];
    ck_assert_uint_gt(event->data.len, 11);
    memcpy(text, event->data.ptr + 10, event->data.len - 10 < 31 ? event->data.len - 10 : 31);
    uint64_t number = strtoull(text, NULL, 10);
    size_t before = event_data(expected, sizeof expected, number, 0).len;
    ck_assert_uint_ge(event->data.len, before);
    size_t pad = event->data.len - before;
    char *room = malloc(pad + 100);
    ck_assert_ptr_nonnull(room);
    annal_slice data = event_data(room, pad + 100, number, pad);
    ck_assert(data.len == event->data.len && memcmp(data.ptr, event->data.ptr, data.len) == 0);
    free(room);
    return number;
}

uint64_t read_session(annal_store *store, const char *session, event_fn fn, void *arg)
{
    annal_cursor *cursor = NULL;
    annal_error err = {0};
    uint64_t last = 0;
    annal_event event;
    annal_status status = annal_cursor_open(store, annal_slice_of(session), 1, &cursor, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        return 0;
    ck_assert_msg(status == ANNAL_OK, "%s", err.message);
    while ((status = annal_cursor_next(cursor, &event, &err)) == ANNAL_OK) {
        ck_assert_uint_eq(event.seq, last + 1);
        last = event.seq;
        if (fn != NULL)
            fn(arg, &event);
    }
    ck_assert_msg(status == ANNAL_END, "%s", annal_status_name(status));
    annal_cursor_close(cursor);
    return last;
}

static void check_next(void *arg, const annal_event *event)
{
    uint64_t *last = arg;
    ck_assert_uint_eq(event_number(event), ++*last);
}

void ck_numbers(annal_store *store, const char *session, uint64_t last)
{
    uint64_t found = 0;
    read_session(store, session, check_next, &found);
    ck_assert_uint_eq(found, last);
}

static void copy_directory(const char *from, const char *to)
{
    DIR *entries = opendir(from);
    ck_assert_msg(entries != NULL, "no directory %s", from);
    ck_assert_int_eq(mkdir(to, 0700), 0);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        char source[1024], target[1024];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (strncmp(entry->d_name, ".new-", 5) == 0) /* a log on its way: gone any moment */
            continue;
        snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        ck_assert_int_eq(lstat(source, &info), 0);
        if (S_ISDIR(info.st_mode)) {
            copy_directory(source, target);
            continue;
        }
        size_t len;
        char *bytes = file_read(source, &len);
        file_write(target, bytes, len);
        free(bytes);
    }
    closedir(entries);
}

void copy_store(const char *from, const char *to)
{
    static const char *const parts[] = {"commit", "events"};
    ck_assert_int_eq(mkdir(to, 0700), 0);
    for (size_t i = 0; i < 2; i++) {
        char source[1024], target[1024];
        snprintf(source, sizeof source, "%s/%s", from, parts[i]);
        snprintf(target, sizeof target, "%s/%s", to, parts[i]);
        copy_directory(source, target);
    }
}
