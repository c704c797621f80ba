/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a session back from a lake, for a pull.
 *
 * The manifests tell which files contain events of the session. They are all read for that, once
 * for all sessions: manifests of batches list their sessions, and a merged file contains what the
 * files that it replaces contained. The header of the journal is in the manifest of its first
 * event.
 *
 * Memory use does not grow with the session: DuckDB does not sort events, but writes them to a text
 * file in the order of the lake. That is nearly the order of the session, in a few runs of
 * consecutive events. These are found, sorted, and read one after the other.
 */
#include "tools/ship/lake.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "tools/cli/must.h"
#include "tools/export/parquet.h"
#include "tools/ship/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char annal__sql_ship_agents[]; /* agents.sql */

/* ---- Finding a session ---- */

/* Read all manifests from the first, unless that was done. Manifests written after that are not
 * read: they are for the next pull. */
static annal_status read_histories(struct ship_target *lake, annal_error *err)
{
    if (lake->has_histories)
        return ANNAL_OK;
    lake_forget(lake);
    lake->has_histories = true;
    return lake_read_log(lake, err);
}

annal_status lake_find(struct ship_target *lake, annal_slice session, struct ship_origin *out,
                       annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0)
        status = read_histories(lake, err);
    if (status < 0)
        return status;
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    const struct lake_history *history = lake_find_history(lake, name);
    const struct shipment *head = shipment_find(&lake->heads, session);
    if (history == NULL || head == NULL)
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%s' at %s", name,
                           lake->kind->place(lake->files, ""));
    if (history->info.file[0] == '\0')
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "session '%s' cannot be pulled: the lake does not contain the header of "
                           "its journal",
                           name);
    *out = (struct ship_origin){.stores = 1, .info = history->info};
    snprintf(out->store, sizeof out->store, "%s", lake->store);
    memcpy(out->info.session, name, sizeof name);
    out->info.last_seq = head->head.seq;
    out->info.last_h = head->head.h;
    return ANNAL_OK;
}

/* ---- Events ---- */

annal_status lake_open_more(struct ship_target *lake, const struct lake_file *file,
                            struct opened *opened, annal_error *err)
{
    int fd = -1;
    char path[FD_PATH_BYTES];
    annal_status status = lake_fetch_file(lake, file, &fd, err);
    if (status < 0)
        return status;
    lake_fd_path(path, fd);
    const char **item = must_array_add(&opened->paths, &opened->count, sizeof *item);
    *item = must_strndup(path, strlen(path));
    return ANNAL_OK;
}

void lake_close_all(struct opened *opened)
{
    for (size_t i = 0; i < opened->count; i++) {
        close(atoi(opened->paths[i] + strlen("/proc/self/fd/")));
        annal__free((void *)(uintptr_t)opened->paths[i]);
    }
    annal__free(opened->paths);
    *opened = (struct opened){0};
}

enum { SQL_BYTES = 1200 };

struct reading {
    struct ship_target *lake;
    /* SELECT that fails if the files have too many or too long rows (print_proof()), or NULL */
    const char *proof;
    bool all; /* whether to read the files of all sessions */
    struct lake_file **files;
    size_t count;
    annal_error *err;
};

static int compare_names(const void *a, const void *b)
{
    const struct lake_file *const *one = a, *const *other = b;
    return strcmp((*one)->name, (*other)->name);
}

static void add_file(struct reading *reading, struct lake_file *file)
{
    struct lake_file **item = must_array_add(&reading->files, &reading->count, sizeof *item);
    *item = file;
}

/* Return the file that contains the rows of this file now, following the replacements, and shorten
 * the path for later calls. Only a later manifest replaces a file, so the path has no cycle. */
static struct lake_file *live(struct lake_file *file)
{
    struct lake_file *last = file;
    while (last->replaced_by != NULL)
        last = last->replaced_by;
    while (file != last) {
        struct lake_file *next = file->replaced_by;
        file->replaced_by = last;
        file = next;
    }
    return last;
}

/* Collect the files in the order of their names, which is the order of the batches. */
static void files_of(struct reading *reading, const struct lake_history *history)
{
    for (size_t i = 0; i < history->count; i++)
        add_file(reading, live(history->files[i]));
    if (reading->count > 0)
        qsort(reading->files, reading->count, sizeof *reading->files, compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < reading->count; i++)
        if (kept == 0 || reading->files[kept - 1] != reading->files[i])
            reading->files[kept++] = reading->files[i];
    reading->count = kept;
}

/* Add a file that is not replaced to the list; called in the order of names. */
static void add_live(const void *node, VISIT which, void *closure)
{
    struct reading *reading = closure;
    struct lake_file *file = *(struct lake_file *const *)node;
    if ((which == postorder || which == leaf) && file->replaced_us == 0)
        add_file(reading, file);
}

static annal_status open_files(const struct reading *reading, struct opened *opened)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < reading->count && status >= 0; i++) {
        const struct lake_file *file = reading->files[i];
        status = lake_open_more(reading->lake, file, opened, reading->err);
        if (status == ANNAL_ERR_NOTFOUND && reading->all)
            /* ignore a missing file when all sessions are read: users may delete old days from the
             * lake */
            status = ANNAL_OK;
    }
    return status;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode hexadecimal digits in place. */
static bool unhex(char *text, annal_slice *out)
{
    size_t len = strlen(text);
    *out = (annal_slice){text, len / 2};
    for (size_t i = 0; i < len / 2; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        text[i] = (char)(high << 4 | low);
    }
    return len % 2 == 0;
}

/* Read a text that consists of one number only. */
static bool number_is(const char *text, int64_t *out)
{
    struct outside field = {.at = text};
    *out = outside_signed(&field);
    return outside_end(&field);
}

bool lake_read_row(char *line, annal_event *out)
{
    enum { VALUES = 7 };
    char *values[VALUES] = {0}, *rest = line;
    int64_t seq = 0, h = 0;
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < VALUES && rest != NULL; i++)
        values[i] = strsep(&rest, "|");
    if (values[VALUES - 1] == NULL || rest != NULL)
        return false;
    *out = (annal_event){0};
    if (!number_is(values[0], &seq) || seq <= 0 || !number_is(values[1], &out->ts_us) ||
        !number_is(values[6], &h) || !unhex(values[2], &out->type) || !unhex(values[3], &out->id) ||
        !unhex(values[4], &out->cause) || !unhex(values[5], &out->data))
        return false;
    out->seq = (uint64_t)seq;
    out->h = (uint64_t)h;
    return true;
}

struct taking {
    row_fn fn;
    void *arg;
};

static annal_status give_row(void *arg, char *line, annal_error *err)
{
    const struct taking *taking = arg;
    annal_event event;
    return lake_read_row(line, &event)
               ? taking->fn(taking->arg, &event, err)
               : annal__fail(err, ANNAL_ERR_CORRUPT,
                             "ship: a file of the lake contains a row that is not an event");
}

/* Receive one line of DuckDB's output. */
typedef annal_status (*line_fn)(void *arg, char *line, annal_error *err);

/* Lines of DuckDB's output with consecutive events: the seq of the first event, the offset of its
 * line, and the number of lines. */
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

static void find_runs(struct lines *lines)
{
    struct run *run = NULL;
    ssize_t len;
    for (off_t at = 0; (len = getline(&lines->line, &lines->room, lines->file)) > 0; at += len) {
        uint64_t seq = strtoull(lines->line, NULL, 10);
        if (run == NULL || seq != run->seq + run->count) {
            run = must_array_add(&lines->runs, &lines->count, sizeof *run);
            *run = (struct run){.seq = seq, .at = at};
        }
        run->count++;
    }
    if (lines->count > 0)
        qsort(lines->runs, lines->count, sizeof *lines->runs, compare_runs);
}

/* Pass up to count lines, from the current position of the file, to fn. */
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
    annal_status status = ANNAL_OK;
    find_runs(lines);
    for (size_t i = 0; i < lines->count && status >= 0; i++) {
        if (fseeko(lines->file, lines->runs[i].at, SEEK_SET) != 0)
            return annal__fail_errno(err, "ship: cannot read the output of DuckDB");
        status = give_run(lines, lines->runs[i].count, fn, arg, err);
    }
    return status;
}

/* Pass the lines of DuckDB's output to fn; by_seq: each line begins with a seq, and the lines are
 * passed in the order of these. */
static annal_status give_lines(FILE *file, bool by_seq, line_fn fn, void *arg, annal_error *err)
{
    struct lines lines = {.file = file};
    annal_status status =
        by_seq ? give_in_order(&lines, fn, arg, err) : give_run(&lines, UINT64_MAX, fn, arg, err);
    if (status >= 0 && ferror(lines.file))
        status = annal__fail_errno(err, "ship: cannot read the output of DuckDB");
    free(lines.line);
    annal__free(lines.runs);
    return status;
}

/* Run the SQL in DuckDB, which writes its output to the file with descriptor answer. */
static annal_status ask(const struct reading *reading, const char *sql, int answer)
{
    struct opened opened = {0};
    struct parquet *parquet = NULL;
    char path[FD_PATH_BYTES];
    uint64_t rows_max = 0;
    lake_fd_path(path, answer);
    for (size_t i = 0; i < reading->count; i++)
        rows_max += reading->files[i]->rows;
    annal_status status = open_files(reading, &opened);
    int exit_status = status >= 0 && opened.count > 0 ? parquet_open(path, &parquet) : 0;
    if (parquet != NULL)
        exit_status =
            parquet_lines(parquet, opened.paths, opened.count, rows_max, reading->proof, sql);
    parquet_close(parquet);
    lake_close_all(&opened);
    return exit_status == 0 ? status
                            : annal__fail(reading->err, ANNAL_ERR_IO,
                                          "ship: DuckDB could not read the files of the lake");
}

/* Run the SQL on the files, and pass the lines of the output to fn. */
static annal_status read_files(const struct reading *reading, const char *sql, line_fn fn,
                               void *arg)
{
    int fd = -1;
    annal_status status = lake_unnamed(&fd, reading->err);
    if (status >= 0)
        status = ask(reading, sql, fd);
    FILE *file = status >= 0 ? fdopen(fd, "r") : NULL;
    if (file != NULL)
        status = give_lines(file, !reading->all, fn, arg, reading->err);
    else if (status >= 0)
        status = annal__fail_errno(reading->err, "ship: cannot read the output of DuckDB");
    if (file != NULL)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    return status;
}

/* Print a query that limits what is read. A small Parquet file may claim very many or very long
 * rows, which would fill the disk as text. So at most as many rows are read as the manifests list,
 * and their text is limited in proportion to the size of the journal; JSON may need six bytes for
 * one byte of a journal. */
static void print_proof(char sql[SQL_BYTES], const char *rows, const char *session, uint64_t most,
                        const struct place *head)
{
    static const uint64_t always = (uint64_t)64 << 20, bytes_max = OUTSIDE_BYTES_MAX / 16;
    uint64_t journal = head->at < bytes_max ? head->at : bytes_max;
    snprintf(sql, SQL_BYTES,
             "SELECT CASE WHEN count(*) > %" PRIu64
             " OR sum(coalesce(strlen(type), 0) + coalesce(strlen(id), 0) + "
             "coalesce(strlen(cause), 0) + coalesce(strlen(data), 0)) > %" PRIu64
             " THEN error('the files have more events or bytes of session ''%s'' than the "
             "manifests of the lake say') END %s",
             most, always + journal * 8, session, rows);
}

annal_status lake_rows(struct ship_target *lake, annal_slice session, uint64_t after_seq, row_fn fn,
                       void *arg, annal_error *err)
{
    char rows[400], proof[SQL_BYTES], sql[SQL_BYTES], name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct reading reading = {.lake = lake, .err = err};
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0)
        status = read_histories(lake, err);
    if (status < 0)
        return status;
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    const struct lake_history *history = lake_find_history(lake, name);
    if (history != NULL)
        files_of(&reading, history);
    const struct shipment *head = shipment_find(&lake->heads, session);
    if (reading.count > 0 && head != NULL && head->head.seq > after_seq) {
        snprintf(rows, sizeof rows,
                 "FROM f WHERE session_id = '%s' AND seq > %" PRIu64 " AND seq <= %" PRIu64, name,
                 after_seq, head->head.seq);
        print_proof(proof, rows, name, head->head.seq - after_seq, &head->head);
        snprintf(sql, sizeof sql,
                 "SELECT seq, epoch_us(timestamp), hex(type), hex(id), hex(cause), hex(data), h %s",
                 rows);
        reading.proof = proof;
        status = read_files(&reading, sql, give_row, &(struct taking){fn, arg});
    }
    annal__free(reading.files);
    return status;
}

/* ---- Forks and sub-agents ---- */

/* A fork or a sub-agent, and the session to which it belongs. */
struct link {
    const char *of;
    char *session;
    bool is_given;
};

struct links {
    struct link *all; /* sorted by of */
    size_t count;
};

static void add_link(struct links *links, const char *session, const char *of)
{
    struct link *link = must_array_add(&links->all, &links->count, sizeof *link);
    size_t len = strlen(session) + 1;
    char *text = must_zalloc(len + strlen(of) + 1);
    memcpy(text, session, len);
    memcpy(text + len, of, strlen(of) + 1);
    *link = (struct link){.session = text, .of = text + len};
}

static void note_fork(const void *node, VISIT which, void *closure)
{
    const struct lake_history *history = *(struct lake_history *const *)node;
    if ((which == postorder || which == leaf) && history->info.fork_session[0] != '\0')
        add_link(closure, history->session, history->info.fork_session);
}

/* Record a sub-agent. If the name of its parent is invalid, the sub-agent is ignored. */
static annal_status note_agent(void *arg, char *line, annal_error *err)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1], of[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outside field = {.at = line};
    line[strcspn(line, "\n")] = '\0';
    outside_session(&field, session);
    outside_skip(&field, "|");
    outside_session(&field, of);
    if (outside_end(&field))
        add_link(arg, session, of);
    (void)err;
    return ANNAL_OK;
}

static int compare_links(const void *a, const void *b)
{
    const struct link *one = a, *other = b;
    int order = strcmp(one->of, other->of);
    return order != 0 ? order : strcmp(one->session, other->session);
}

/* Return the index of the first link whose parent is `of`. */
static size_t first_link(const struct links *links, const char *of)
{
    size_t from = 0, to = links->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(links->all[middle].of, of) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Pass each session to fn once, before the sessions that belong to it. A list takes the place of
 * recursion. */
static annal_status give_tree(struct links *links, const char *of, session_fn fn, void *arg,
                              annal_error *err)
{
    size_t given = 0, room = links->count + 1;
    const char **list = must_zalloc(room * sizeof *list);
    annal_status status = ANNAL_OK;
    if (links->count > 0)
        qsort(links->all, links->count, sizeof *links->all, compare_links);
    for (size_t at = 0; status >= 0 && at <= given; at++) {
        const char *session = at == 0 ? of : list[at - 1];
        for (size_t i = first_link(links, session);
             status >= 0 && i < links->count && strcmp(links->all[i].of, session) == 0; i++) {
            if (links->all[i].is_given) /* already passed: sessions form a cycle */
                continue;
            links->all[i].is_given = true;
            list[given++] = links->all[i].session;
            status = fn(arg, annal_slice_of(links->all[i].session), err);
        }
    }
    annal__free(list);
    return status;
}

/* Pass the forks and sub-agents of a session to fn. Forks are in the manifests, but sub-agents only
 * in events, so all files are read. */
annal_status lake_tree(struct ship_target *lake, annal_slice session, session_fn fn, void *arg,
                       annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct links links = {0};
    struct reading reading = {.lake = lake, .all = true, .err = err};
    annal_status status = read_histories(lake, err);
    if (status >= 0) {
        twalk_r(lake->histories, note_fork, &links);
        twalk_r(lake->tree, add_live, &reading);
    }
    if (status >= 0 && reading.count > 0)
        status = read_files(&reading, annal__sql_ship_agents, note_agent, &links);
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    if (status >= 0)
        status = give_tree(&links, name, fn, arg, err);
    for (size_t i = 0; i < links.count; i++)
        annal__free(links.all[i].session);
    annal__free(links.all);
    annal__free(reading.files);
    return status;
}
