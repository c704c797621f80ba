/*
 * A session is read back from a lake, to be pulled.
 *
 * Which files have events of it is in the manifests, all of which are read for that: those of
 * batches name their sessions, and a file that was made of others has what they had. The header of
 * the journal is in the manifest that has its first event.
 *
 * Memory does not grow with the session: DuckDB sorts no events, but writes them to a file of text
 * in the order in which the lake has them. That is nearly the order of the session, in a few runs
 * of consecutive events. They are found, sorted, and read one after the other.
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
    bool all; /* also files that have no events of the session that is looked for */
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
    if ((which != postorder && which != leaf) || reading->status < 0 ||
        (!file->has_events && !reading->all) || file->replaced_us != 0)
        return;
    struct ship_target *lake = reading->lake;
    reading->status =
        lake->kind->fetch(lake->files, file->name, path, &reading->are_copies, reading->err);
    if (reading->status == ANNAL_ERR_NOTFOUND && reading->all &&
        strcmp(file->name, lake->last) != 0) {
        reading->status = ANNAL_OK; /* its day was deleted */
        return;
    }
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

struct taking {
    row_fn fn;
    void *arg;
};

static annal_status give_row(void *arg, char *line, annal_error *err)
{
    const struct taking *taking = arg;
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
    return taking->fn(taking->arg, &event, err);
}

/* Called with each line of an answer. */
typedef annal_status (*line_fn)(void *arg, char *line, annal_error *err);

/* Consecutive events in the answer: the seq of the first, and where its line begins. */
struct run {
    uint64_t seq;
    off_t at;
    uint64_t count;
};

struct lines {
    FILE *file;
    char *line;
    size_t room;
    struct run *runs;
    size_t count;
};

static int compare_runs(const void *a, const void *b)
{
    const struct run *first = a, *second = b;
    return first->seq != second->seq ? (first->seq < second->seq ? -1 : 1)
                                     : (first->at > second->at) - (first->at < second->at);
}

static annal_status find_runs(struct lines *lines, annal_error *err)
{
    struct run *run = NULL;
    ssize_t len;
    for (off_t at = 0; (len = getline(&lines->line, &lines->room, lines->file)) > 0; at += len) {
        uint64_t seq = strtoull(lines->line, NULL, 10);
        if (run == NULL || seq != run->seq + run->count) {
            run = annal__array_add(&lines->runs, &lines->count, sizeof *run);
            if (run == NULL)
                return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
            *run = (struct run){.seq = seq, .at = at};
        }
        run->count++;
    }
    if (lines->count > 0)
        qsort(lines->runs, lines->count, sizeof *lines->runs, compare_runs);
    return ANNAL_OK;
}

/* Up to count lines from here on. */
static annal_status give_run(struct lines *lines, uint64_t count, line_fn fn, void *arg,
                             annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (; count > 0 && status >= 0; count--) {
        if (getline(&lines->line, &lines->room, lines->file) <= 0)
            break;
        status = fn(arg, lines->line, err);
    }
    return status;
}

static annal_status give_in_order(struct lines *lines, line_fn fn, void *arg, annal_error *err)
{
    annal_status status = find_runs(lines, err);
    for (size_t i = 0; i < lines->count && status >= 0; i++) {
        if (fseeko(lines->file, lines->runs[i].at, SEEK_SET) != 0)
            return annal__fail_errno(err, "ship: read the answer of DuckDB");
        status = give_run(lines, lines->runs[i].count, fn, arg, err);
    }
    return status;
}

/* by_seq: each line begins with a seq, and they are given in that order. */
static annal_status give_lines(const char *path, bool by_seq, line_fn fn, void *arg,
                               annal_error *err)
{
    struct lines lines = {.file = fopen(path, "re")};
    if (lines.file == NULL)
        return annal__fail_errno(err, "ship: read '%s'", path);
    annal_status status =
        by_seq ? give_in_order(&lines, fn, arg, err) : give_run(&lines, UINT64_MAX, fn, arg, err);
    if (status >= 0 && ferror(lines.file))
        status = annal__fail_errno(err, "ship: read '%s'", path);
    fclose(lines.file);
    free(lines.line);
    annal__free(lines.runs);
    return status;
}

/* The answer to SQL, in a file of text. */
static annal_status ask(const struct reading *reading, const char *sql, const char *path)
{
    struct parquet *parquet = NULL;
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

/* Fetch the files that the manifests say, and give the lines of the answer. */
static annal_status read_files(struct reading *reading, const char *sql, line_fn fn, void *arg)
{
    char path[PATH_BYTES];
    twalk_r(reading->lake->tree, fetch_file, reading);
    annal_status status = reading->status;
    if (status >= 0)
        status = lake_temporary_name(path, "pull", "", reading->err);
    if (status >= 0 && reading->count > 0) {
        status = ask(reading, sql, path);
        if (status >= 0)
            status = give_lines(path, !reading->all, fn, arg, reading->err);
        (void)unlink(path);
    }
    for (size_t i = 0; i < reading->count; i++) {
        if (reading->are_copies && reading->paths[i] != NULL)
            (void)unlink(reading->paths[i]);
        annal__free((void *)(uintptr_t)reading->paths[i]);
    }
    annal__free(reading->paths);
    return status;
}

annal_status lake_rows(struct ship_target *lake, annal_slice session, uint64_t after_seq, row_fn fn,
                       void *arg, annal_error *err)
{
    char sql[500];
    struct ship_origin origin;
    struct reading reading = {.lake = lake, .err = err};
    annal_status status = ANNAL_OK;
    if (!annal__slice_is(session, lake->looked_for))
        status = lake_find(lake, session, &origin, err);
    if (status < 0)
        return status;
    snprintf(sql, sizeof sql,
             "SELECT seq, epoch_us(timestamp), hex(type), hex(id), hex(cause), hex(data), h FROM f "
             "WHERE session_id = '%s' AND seq > %" PRIu64,
             lake->looked_for, after_seq);
    return read_files(&reading, sql, give_row, &(struct taking){fn, arg});
}

/* ---- Forks and sub-agents ---- */

static annal_status add_link(struct lake_links *links, const char *session, const char *of,
                             annal_error *err)
{
    struct lake_link *link = annal__array_add(&links->all, &links->count, sizeof *link);
    if (link == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    *link = (struct lake_link){0};
    snprintf(link->session, sizeof link->session, "%s", session);
    snprintf(link->of, sizeof link->of, "%s", of);
    return ANNAL_OK;
}

annal_status lake_note_fork(struct ship_target *lake, const char *line, annal_error *err)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1], parent[ANNAL_SESSION_ID_BYTES_MAX + 1];
    take_text(line, "{\"session\":\"", session, sizeof session);
    take_text(line, ",\"parent\":\"", parent, sizeof parent);
    return parent[0] == '\0' ? ANNAL_OK : add_link(lake->links, session, parent, err);
}

static annal_status note_agent(void *arg, char *line, annal_error *err)
{
    char *rest = line;
    const char *session = strsep(&rest, "|");
    if (rest == NULL)
        return annal__fail(err, ANNAL_ERR_CORRUPT, "ship: DuckDB gave a row with too few values");
    rest[strcspn(rest, "\n")] = '\0';
    return add_link(arg, session, rest, err);
}

static annal_status give_tree(struct lake_links *links, annal_slice of, session_fn fn, void *arg,
                              annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < links->count && status >= 0; i++) {
        struct lake_link *link = &links->all[i];
        if (link->is_given || !annal__slice_is(of, link->of))
            continue;
        link->is_given = true;
        status = fn(arg, annal_slice_of(link->session), err);
        if (status >= 0)
            status = give_tree(links, annal_slice_of(link->session), fn, arg, err);
    }
    return status;
}

/* The manifests know forks; sub-agents are in events, so all files are read. */
annal_status lake_tree(struct ship_target *lake, annal_slice session, session_fn fn, void *arg,
                       annal_error *err)
{
    struct lake_links links = {0};
    struct reading reading = {.lake = lake, .all = true, .err = err};
    lake_forget(lake);
    lake->looked_for[0] = '\0';
    lake->links = &links;
    annal_status status = lake_read_log(lake, err);
    lake->links = NULL;
    if (status >= 0)
        status = read_files(
            &reading,
            "SELECT session_id, arg_max(regexp_extract(data, "
            "'\"parent_session_id\"\\s*:\\s*\"([^\"|\\n]+)\"',"
            " 1), seq) AS parent FROM f WHERE type IN ('session.created', 'session_start', "
            "'session.updated') AND"
            " regexp_matches(data, '\"parent_session_id\"\\s*:\\s*\"[^\"|\\n]+\"') GROUP BY ALL",
            note_agent, &links);
    if (status >= 0)
        status = give_tree(&links, session, fn, arg, err);
    annal__free(links.all);
    return status;
}
