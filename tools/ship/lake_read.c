/*
 * A session is read back from a lake, to be pulled.
 *
 * Which files have events of it is in the manifests, all of which are read for that: those of
 * batches name their sessions, and a file that was made of others has what they had. The header of
 * the journal is in the manifest that has its first event.
 */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "tools/export/parquet.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- The header of a journal ---- */

annal_status lake_print_header(const annal_session_info *info, struct buf *out)
{
    annal_status status = annal__buf_printf(out, ",\"file\":\"%s\",\"created_us\":%" PRId64,
                                            info->file, info->created_us);
    if (status >= 0 && info->replaces[0] != '\0')
        status = annal__buf_printf(out, ",\"replaces\":\"%s\"", info->replaces);
    if (status >= 0 && info->fork_session[0] != '\0')
        status = annal__buf_printf(
            out, ",\"parent\":\"%s\",\"forked_at\":%" PRIu64 ",\"fork_h\":\"%016" PRIx64 "\"",
            info->fork_session, info->fork_seq, info->fork_h);
    return status;
}

/* The value of a member, which has no escapes; "": there is none. */
static void take_text(const char *line, const char *member, char *out, size_t room)
{
    const char *at = strstr(line, member);
    at = at != NULL ? at + strlen(member) : "";
    snprintf(out, room, "%.*s", (int)strcspn(at, "\""), at);
}

static uint64_t take_number(const char *line, const char *member, int base)
{
    const char *at = strstr(line, member);
    return at != NULL ? strtoull(at + strlen(member), NULL, base) : 0;
}

void lake_take_piece(struct ship_target *lake, const char *line, struct lake_file *file)
{
    annal_session_info *info = &lake->found->info;
    file->has_events = true;
    if (strstr(line, ",\"file\":\"") == NULL)
        return;
    take_text(line, ",\"file\":\"", info->file, sizeof info->file);
    take_text(line, ",\"replaces\":\"", info->replaces, sizeof info->replaces);
    take_text(line, ",\"parent\":\"", info->fork_session, sizeof info->fork_session);
    info->created_us = (int64_t)take_number(line, ",\"created_us\":", 10);
    info->fork_seq = take_number(line, ",\"forked_at\":", 10);
    info->fork_h = take_number(line, ",\"fork_h\":\"", 16);
    info->first_seq = info->fork_seq + 1;
}

annal_status lake_find(struct ship_target *lake, annal_slice session, struct ship_origin *out,
                       annal_error *err)
{
    annal_status status = annal_session_id_check(session, err); /* a manifest may say anything */
    if (status < 0)
        return status;
    *out = (struct ship_origin){.stores = 1};
    snprintf(out->store, sizeof out->store, "%s", lake->store);
    snprintf(out->info.session, sizeof out->info.session, "%.*s", ANNAL_FMT(session));
    snprintf(lake->looked_for, sizeof lake->looked_for, "%s", out->info.session);
    lake_forget(lake);
    lake->found = out;
    status = lake_read_log(lake, err);
    lake->found = NULL;
    if (status < 0)
        return status;
    const struct lane *head = lane_of(&lake->heads, session);
    if (head == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    if (!head->has_head)
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%s' at %s",
                           out->info.session, lake->kind->place(lake->files, ""));
    if (out->info.file[0] == '\0')
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "session '%s' cannot be pulled: an older annal shipped its first event, "
                           "and did not say what the header of its journal is",
                           out->info.session);
    out->info.last_seq = head->there.seq;
    out->info.last_h = head->there.h;
    return ANNAL_OK;
}

/* ---- Events ---- */

struct reading {
    struct ship_target *lake;
    const char **paths;
    size_t count;
    bool are_copies;
    annal_error *err;
    annal_status status;
};

/* A walk in the order of names, which is that of the batches. */
static void fetch_file(const void *node, VISIT which, void *closure)
{
    struct reading *reading = closure;
    const struct lake_file *file = *(struct lake_file *const *)node;
    char path[PATH_BYTES];
    if ((which != postorder && which != leaf) || reading->status < 0 || !file->has_events ||
        file->replaced_us != 0)
        return;
    struct ship_target *lake = reading->lake;
    reading->status =
        lake->kind->fetch(lake->files, file->name, path, &reading->are_copies, reading->err);
    if (reading->status < 0)
        return;
    const char **item = annal__array_add(&reading->paths, &reading->count, sizeof *reading->paths);
    char *kept = annal__strndup(path, strlen(path));
    if (item != NULL)
        *item = kept;
    if (item == NULL || kept == NULL)
        reading->status = annal__fail(reading->err, ANNAL_ERR_NOMEM, "ship: out of memory");
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* Hexadecimal digits become bytes, in their place. */
static annal_slice unhex(char *text)
{
    size_t len = strlen(text) / 2;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return (annal_slice){text, len};
}

static annal_status give_line(char *line, row_fn fn, void *arg, annal_error *err)
{
    enum { VALUES = 7 };
    char *values[VALUES] = {0}, *rest = line;
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < VALUES && rest != NULL; i++)
        values[i] = strsep(&rest, "|");
    if (values[VALUES - 1] == NULL)
        return annal__fail(err, ANNAL_ERR_CORRUPT, "ship: DuckDB gave a row with too few values");
    const annal_event event = {.seq = strtoull(values[0], NULL, 10),
                               .ts_us = strtoll(values[1], NULL, 10),
                               .type = unhex(values[2]),
                               .id = unhex(values[3]),
                               .cause = unhex(values[4]),
                               .data = unhex(values[5]),
                               .h = (uint64_t)strtoll(values[6], NULL, 10)};
    return fn(arg, &event, err);
}

static annal_status give_lines(const char *path, row_fn fn, void *arg, annal_error *err)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    annal_status status = file != NULL ? ANNAL_OK : annal__fail_errno(err, "ship: read '%s'", path);
    while (status >= 0 && getline(&line, &room, file) > 0)
        status = give_line(line, fn, arg, err);
    if (status >= 0 && ferror(file))
        status = annal__fail_errno(err, "ship: read '%s'", path);
    free(line);
    if (file != NULL)
        fclose(file);
    return status;
}

/* The rows of the session, in order, in a file of text. */
static annal_status ask(const struct reading *reading, const char *session, uint64_t after_seq,
                        const char *path)
{
    char sql[500];
    struct parquet *parquet = NULL;
    snprintf(sql, sizeof sql,
             "SELECT seq, epoch_us(timestamp), hex(type), hex(id), hex(cause), hex(data), h FROM f "
             "WHERE session_id = '%s' AND seq > %" PRIu64 " ORDER BY seq",
             session, after_seq);
    int exit_status = parquet_open(path, &parquet);
    if (exit_status == 0)
        exit_status = parquet_lines(parquet, reading->paths, reading->count, sql);
    parquet_close(parquet);
    return exit_status == 0
               ? ANNAL_OK
               : annal__fail(reading->err, ANNAL_ERR_IO, "ship: the lake's files were not read");
}

annal_status lake_temporary_name(char path[PATH_BYTES], const char *what, const char *end,
                                 annal_error *err)
{
    const char *directory = getenv("TMPDIR");
    uint64_t chance = 0;
    if (getrandom(&chance, sizeof chance, 0) < 0)
        return annal__fail_errno(err, "ship: find a name");
    snprintf(path, PATH_BYTES, "%s/annal-%s-%016" PRIx64 "%s",
             directory != NULL && directory[0] != '\0' ? directory : "/tmp", what, chance, end);
    return ANNAL_OK;
}

annal_status lake_rows(struct ship_target *lake, annal_slice session, uint64_t after_seq, row_fn fn,
                       void *arg, annal_error *err)
{
    char path[PATH_BYTES];
    struct ship_origin origin;
    struct reading reading = {.lake = lake, .err = err};
    if (!annal__slice_is(session, lake->looked_for))
        reading.status = lake_find(lake, session, &origin, err);
    if (reading.status >= 0)
        twalk_r(lake->tree, fetch_file, &reading);
    annal_status status = reading.status;
    if (status >= 0)
        status = lake_temporary_name(path, "pull", "", err);
    if (status >= 0 && reading.count > 0) {
        status = ask(&reading, lake->looked_for, after_seq, path);
        if (status >= 0)
            status = give_lines(path, fn, arg, err);
        (void)unlink(path);
    }
    for (size_t i = 0; i < reading.count; i++) {
        if (reading.are_copies && reading.paths[i] != NULL)
            (void)unlink(reading.paths[i]);
        annal__free((void *)(uintptr_t)reading.paths[i]);
    }
    annal__free(reading.paths);
    return status;
}
