/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of packs as data: events that are given, SELECTs, and the rows that are expected.
 *
 * (1) A file is a sequence of cases. `== TITLE` begins a case, which has a store of its own, in a
 *     temporary directory; the lines before the first case are run at the beginning of each.
 *         pack NAME            enable an included pack, or check and add the file NAME.sql, whose
 *                              path is relative to the test file; an error in it ends the run
 *         in SESSION           events below belong to this session, and queries read its databases
 *         > TYPE DATA          append an event through guards and fills
 *         ! TYPE DATA          the same; it must be refused with a message that contains the text
 *                              of the next line, which is indented
 *         ~ TYPE DATA          append an event past the guards, as an import does
 *         watch SELECT         rows that `=` compares
 *         = TYPE DATA          as ~; the rows of `watch` must stay the same
 *         ? SELECT             the lines up to the next empty line are the expected rows
 *         findings N           number of events that handlers could not accept
 *         rebuild              the tables of all packs must be the same after a rebuild, and after
 *                              another that reads the sessions in reverse order
 *         $ annal WORD...      run the command in the directory of the case; the lines up to the
 *                              next empty line or command are what it prints: standard output, then
 *                              standard error, each line after `! `, then [N] if its exit status N
 *                              is not 0
 *         file PATH            the lines up to the next empty line or command are the file PATH of
 *                              that directory; (missing) if it does not exist
 *     An indented line continues a SELECT or DATA. Other lines are empty or begin with `--`.
 * (2) A row is a line: its values with | between them, a NULL as NULL, an empty text as (empty),
 *     a line break in a text as ⏎. In what a command prints and in a file, an empty line is
 *     (empty), and the expected text `[..]` is any text.
 * (3) The first event of a case is of 2026-01-06T07:24:00Z, each further event a second later.
 *     Commands use the real clock, in UTC.
 * (4) The words of a command are split as a shell does, by wordexp(3), which refuses pipes,
 *     redirections and commands in commands. Its standard input is empty.
 * (5) A line that fails is reported with its number; the case goes on.
 */
#include "tools/cmd/pack_test.h"

#include "journal/base/alloc.h"
#include "journal/base/io.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/rows.h"
#include "tools/cli/spawn.h"
#include "tools/cli/temporary.h"
#include "tools/cli/verbs.h"

#include <annal/pack.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#define ANY "[..]"

struct testing {
    const char *file;
    char *next;    /* rest of the text, from the line after the current one */
    unsigned line; /* number of the current line */
    char directory[PATH_MAX];
    char variable[PATH_MAX + 24]; /* ANNAL_STORE=DIRECTORY/store */
    char files[PATH_MAX + 8];     /* DIRECTORY/files, in which commands run */
    annal_store *store;
    annal_index *index;
    int64_t now_us;
    annal_slice session, watched;
    uint64_t cases, failed;
    bool has_failed; /* whether a line of the current case failed */
    int exit_status; /* not 0: no further line can be run */
    annal_error err; /* the last error */
};

static void report(struct testing *t, const char *format, ...) ANNAL_PRINTF(2, 3);

static void report(struct testing *t, const char *format, ...)
{
    char what[4000];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    say("%s:%u: %s", t->file, t->line, what);
    t->has_failed = true;
}

/* ---- The store of a case ---- */

/* Remove a database, and its log. */
static int remove_database(const char *path, const struct stat *info, int type, struct FTW *at)
{
    const char *dot = strrchr(path + at->base, '.');
    (void)info;
    return type == FTW_F && dot != NULL && strncmp(dot, ".db", 3) == 0 ? remove(path) : 0;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type, (void)at;
    return remove(path);
}

static void close_index(struct testing *t)
{
    annal_index_close(t->index);
    annal_store_close(t->store, NULL);
    t->index = NULL;
    t->store = NULL;
}

static void close_store(struct testing *t)
{
    close_index(t);
    if (t->directory[0] != '\0')
        (void)nftw(t->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    t->directory[0] = '\0';
}

static const char *store_path(const struct testing *t)
{
    return t->variable + strlen("ANNAL_STORE=");
}

static int open_index(struct testing *t)
{
    const annal_store_options options = {.create = true, .no_keeper = true};
    annal_error err = {0};
    if (annal_store_open(store_path(t), &options, &t->store, &err) < 0 ||
        annal_index_open(t->store, &(annal_index_options){.wait_ms = 120000}, &t->index, &err) < 0)
        return fail_error(&err);
    return 0;
}

static int open_store(struct testing *t)
{
    char made[PATH_MAX];
    if (!temporary_directory("test", made) || realpath(made, t->directory) == NULL) {
        t->directory[0] = '\0';
        return fail_storage("cannot create a temporary directory: %s", strerror(errno));
    }
    snprintf(t->variable, sizeof t->variable, "ANNAL_STORE=%s/store", t->directory);
    snprintf(t->files, sizeof t->files, "%s/files", t->directory);
    t->now_us = 1767684240000000; /* 2026-01-06T07:24:00Z */
    t->watched = t->session = (annal_slice){0};
    if (mkdir(t->files, 0777) != 0)
        return fail_storage("create '%s': %s", t->files, strerror(errno));
    return open_index(t);
}

/* ---- Rows (rule 2) ---- */

static int add_row(void *arg, const annal_row *row)
{
    struct buf *out = arg;
    for (size_t i = 0; i < row->count; i++) {
        const annal_value *value = &row->values[i];
        must_append_text(out, i > 0 ? "|" : "");
        if (value->kind == ANNAL_VALUE_NULL)
            must_append_text(out, "NULL");
        else if (value->kind != ANNAL_VALUE_TEXT)
            must_status(rows_value_json(out, value));
        else if (value->bytes.len == 0)
            must_append_text(out, "(empty)");
        for (size_t j = 0; value->kind == ANNAL_VALUE_TEXT && j < value->bytes.len; j++)
            if (value->bytes.ptr[j] == '\n')
                must_append_text(out, "⏎");
            else
                must_append(out, value->bytes.ptr + j, 1);
    }
    must_append_text(out, "\n");
    return 0;
}

static annal_status ask(struct testing *t, annal_slice sql, struct buf *out)
{
    annal_status status = annal_index_sql(
        t->index, sql, &(annal_sql_options){.session = t->session}, add_row, out, &t->err);
    if (status < 0)
        report(t, "%s", t->err.message);
    return status;
}

static void say_rows(const char *what, annal_slice rows)
{
    for (size_t at = 0; at < rows.len;) {
        const char *end = memchr(rows.ptr + at, '\n', rows.len - at);
        size_t len = (end == NULL ? rows.len : (size_t)(end - rows.ptr)) - at;
        say("    %s: %.*s", what, (int)len, rows.ptr + at);
        at += len + 1;
    }
}

static void compare(struct testing *t, const char *what, annal_slice expected, annal_slice got)
{
    if (annal__slice_same(expected, got))
        return;
    report(t, "%s", what);
    say_rows("expected", expected);
    say_rows("got", got);
}

/* ---- Lines ---- */

/* Take the next line of the text; NULL at its end. */
static char *take_line(struct testing *t)
{
    char *line = t->next, *end = strchr(line, '\n');
    if (*line == '\0')
        return NULL;
    t->next = end == NULL ? line + strlen(line) : end + 1;
    if (end != NULL)
        *end = '\0';
    t->line++;
    return line;
}

/* Return a text with the indented lines that continue it; *lines is their number. */
static annal_slice take_rest(struct testing *t, char *text, unsigned *lines)
{
    size_t len = strlen(text);
    for (*lines = 0; t->next[0] == ' '; (*lines)++) {
        text[len] = '\n';
        t->next += strcspn(t->next, "\n");
        len = (size_t)(t->next - text);
        t->next += *t->next == '\n';
    }
    return (annal_slice){text, len};
}

static annal_status append(struct testing *t, annal_slice type, annal_slice data, bool guarded)
{
    annal_writer *writer = NULL;
    annal_appended appended = {0};
    uint64_t seq = 0;
    const annal_draft draft = {.type = type, .data = data, .ts_us = t->now_us};
    t->now_us += 1000000;
    t->err = (annal_error){0};
    annal_status status = annal_writer_open(
        t->store, t->session, &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, &t->err);
    if (status >= 0 && guarded)
        status = annal_pack_append(t->index, writer, &draft, 1, NULL, &appended, &t->err);
    else if (status >= 0)
        status = annal_writer_append(writer, &draft, 1, NULL, &seq, &t->err);
    annal_free(appended.data.ptr);
    annal_writer_close(writer);
    return status;
}

/* Run a line > ! ~ or =, whose text is TYPE DATA. */
static void run_event(struct testing *t, char kind, char *text)
{
    unsigned lines = 0;
    SCOPED_BUF before = {0}, after = {0};
    size_t len = strcspn(text, " ");
    char *because = NULL;
    annal_slice type = {text, len};
    annal_slice data = kind == '!' ? annal_slice_of(text) : take_rest(t, text, &lines);
    data = (annal_slice){data.ptr + len + (data.len > len), data.len - len - (data.len > len)};
    if (kind == '=' && ask(t, t->watched, &before) < 0)
        goto done;
    annal_status status = append(t, type, data, kind == '>' || kind == '!');
    if (kind == '!') {
        because = t->next[0] == ' ' ? take_line(t) : NULL;
        because += because == NULL ? 0 : strspn(because, " ");
        if (because == NULL)
            report(t, "the line after ! must be indented, and say why the event is refused");
        else if (status != ANNAL_ERR_REFUSED || strstr(t->err.message, because) == NULL)
            report(t, "expected a refusal, '%s', and got: %s", because,
                   status < 0 ? t->err.message : "appended");
    } else if (status < 0) {
        report(t, "%s", t->err.message);
    }
    if (kind == '=' && ask(t, t->watched, &after) >= 0)
        compare(t, "the event changed the rows", annal__buf_slice(&before),
                annal__buf_slice(&after));

done:
    t->line += lines;
}

static void run_query(struct testing *t, char *text)
{
    unsigned lines = 0;
    SCOPED_BUF got = {0};
    annal_slice sql = take_rest(t, text, &lines);
    char *rows = t->next, *end = rows;
    unsigned count = 0;
    for (; *end != '\0' && *end != '\n'; count++) {
        end += strcspn(end, "\n");
        end += *end == '\n';
    }
    t->next = end;
    if (ask(t, sql, &got) >= 0)
        compare(t, "other rows", (annal_slice){rows, (size_t)(end - rows)}, annal__buf_slice(&got));
    t->line += lines + count;
}

/* ---- Commands and files ---- */

/* Return whether a line is as expected, where `[..]` is any text. */
static bool line_fits(const char *expected, const char *got)
{
    const char *end = got + strlen(got), *any = strstr(expected, ANY);
    if (any == NULL)
        return strcmp(expected, got) == 0;
    if (strncmp(expected, got, (size_t)(any - expected)) != 0)
        return false;
    got += any - expected;
    for (expected = any + strlen(ANY); (any = strstr(expected, ANY)) != NULL;
         expected = any + strlen(ANY)) {
        got = memmem(got, (size_t)(end - got), expected, (size_t)(any - expected));
        if (got == NULL)
            return false;
        got += any - expected;
    }
    return (size_t)(end - got) >= strlen(expected) && strcmp(end - strlen(expected), expected) == 0;
}

/* Compare lines with those up to the next empty line or command. */
static void compare_lines(struct testing *t, const char *what, annal_slice got)
{
    SCOPED_BUF expected = {0};
    char *copy = must_strndup(got.ptr, got.len), *rest = copy;
    unsigned line = t->line;
    bool fits = true;
    while (t->next[0] != '\n' && t->next[0] != '\0' && strncmp(t->next, "$ ", 2) != 0) {
        const char *wanted = take_line(t), *printed = strsep(&rest, "\n");
        must_printf(&expected, "%s\n", wanted);
        fits = fits && rest != NULL && line_fits(wanted, printed);
    }
    unsigned last = t->line;
    t->line = line;
    if (!fits || (rest != NULL && *rest != '\0'))
        compare(t, what, annal__buf_slice(&expected), got);
    t->line = last;
    annal__free(copy);
}

static void add_lines(struct buf *out, FILE *file, const char *mark)
{
    char *line = NULL;
    size_t size = 0;
    for (ssize_t len; (len = getline(&line, &size, file)) > 0;) {
        line[len - (line[len - 1] == '\n')] = '\0';
        must_printf(out, "%s%s\n", mark, line[0] == '\0' && mark[0] == '\0' ? "(empty)" : line);
    }
    free(line);
}

/* Run a command with these words. Return its status of waitpid(), or -1. */
static int spawn_command(struct testing *t, const char *const *words, FILE *out, FILE *errors)
{
    posix_spawn_file_actions_t actions;
    char zone[] = "TZ=UTC";
    char *const environment[] = {t->variable, zone, NULL};
    pid_t pid;
    int how = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, t->files);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(errors), STDERR_FILENO);
    errno = spawn_start(&pid, "/proc/self/exe", &actions, words, environment);
    if (errno != 0)
        report(t, "cannot start the command: %s", strerror(errno));
    while (errno == 0 && waitpid(pid, &how, 0) < 0)
        errno = errno == EINTR ? 0 : errno;
    posix_spawn_file_actions_destroy(&actions);
    return how;
}

static void run_command(struct testing *t, const char *text)
{
    SCOPED_BUF got = {0};
    wordexp_t words = {0};
    FILE *out = temporary_stream(NULL), *errors = temporary_stream(NULL);
    if (out == NULL || errors == NULL) {
        report(t, "cannot create a temporary file: %s", strerror(errno));
    } else if (wordexp(text, &words, WRDE_NOCMD | WRDE_UNDEF) != 0 || words.we_wordc == 0 ||
               strcmp(words.we_wordv[0], "annal") != 0) {
        report(t, "a command is 'annal' and words, in quotes if they have special characters");
    } else {
        int how = spawn_command(t, (const char *const *)words.we_wordv, out, errors);
        rewind(out);
        rewind(errors);
        add_lines(&got, out, "");
        add_lines(&got, errors, "! ");
        if (how != 0)
            must_printf(&got, "[%d]\n", WIFEXITED(how) ? WEXITSTATUS(how) : how);
        compare_lines(t, "the command printed something else", annal__buf_slice(&got));
    }
    wordfree(&words);
    if (out != NULL)
        fclose(out);
    if (errors != NULL)
        fclose(errors);
}

static void run_file_line(struct testing *t, const char *name)
{
    SCOPED_BUF got = {0}, path = {0};
    must_printf(&path, "%s/%s", t->files, name);
    FILE *file = fopen(must_cstr(&path), "re");
    if (file != NULL)
        add_lines(&got, file, "");
    if (file == NULL || ferror(file))
        must_append_text(&got, errno == ENOENT ? "(missing)\n" : strerror(errno));
    if (file != NULL)
        fclose(file);
    compare_lines(t, "another content", annal__buf_slice(&got));
}

/* ---- Packs ---- */

static void add_pack(struct testing *t, const char *name)
{
    SCOPED_BUF path = {0}, text = {0};
    annal_pack *pack = NULL;
    const char *slash = strrchr(t->file, '/'), *base = strrchr(name, '/');
    size_t len = strlen(name);
    if (len < 5 || strcmp(name + len - 4, ".sql") != 0) {
        if (annal_pack_enable(t->store, name, NULL, &t->err) < 0)
            report(t, "%s", t->err.message);
        return;
    }
    if (slash != NULL && name[0] != '/')
        must_append(&path, t->file, (size_t)(slash + 1 - t->file));
    must_append_text(&path, name);
    t->exit_status = verb_read_file(must_cstr(&path), &text);
    if (t->exit_status == 0 &&
        annal_pack_parse(path.ptr, annal__buf_slice(&text), &pack, &t->err) < 0)
        t->exit_status = fail_error(&t->err);
    annal_pack_free(pack);
    if (t->exit_status != 0)
        return;
    annal__buf_clear(&path);
    must_printf(&path, "%s/packs", store_path(t));
    (void)mkdir(path.ptr, 0777);
    must_printf(&path, "/%s", base != NULL ? base + 1 : name);
    int fd = open(path.ptr, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || !annal__io_write_fd(fd, annal__buf_slice(&text)))
        report(t, "cannot write '%s': %s", path.ptr, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static int count_findings(void *arg, const annal_pack_info *info)
{
    *(uint64_t *)arg += info->findings;
    return 0;
}

/* Catch up on a session, or on all of them if its length is 0. */
static annal_status catch_up(struct testing *t, annal_slice session)
{
    annal_status status =
        annal_index_catch_up(t->index, session, &(annal_catch_up_options){.packs = true}, &t->err);
    if (status < 0)
        report(t, "%s", t->err.message);
    return status;
}

static void run_findings(struct testing *t, const char *number)
{
    uint64_t count = 0;
    if (catch_up(t, (annal_slice){0}) >= 0 &&
        annal_pack_each(t->index, count_findings, &count, &t->err) < 0)
        report(t, "%s", t->err.message);
    else if (count != strtoull(number, NULL, 10))
        report(t, "expected %s findings, got %" PRIu64, number, count);
}

/* Append the SELECT of the sorted rows of a table, whose name and columns the row has. */
static int add_select(void *arg, const annal_row *row)
{
    must_printf(arg, "%sSELECT * FROM (SELECT '%.*s', %.*s FROM %.*s ORDER BY 2, 1)",
                ((struct buf *)arg)->len > 0 ? " UNION ALL " : "", ANNAL_FMT(row->values[0].bytes),
                ANNAL_FMT(row->values[1].bytes), ANNAL_FMT(row->values[0].bytes));
    return 0;
}

/* Append all rows of the tables of packs. */
static annal_status dump(struct testing *t, struct buf *out)
{
    static const char tables[] =
        "SELECT '\"' || l.schema || '\".\"' || l.name || '\"',"
        " group_concat('quote(\"' || c.name || '\")', ' || '','' || ') "
        "FROM pragma_table_list l JOIN pragma_table_info(l.name, l.schema) c "
        "WHERE l.type = 'table' AND l.schema NOT IN ('main', 'temp') AND l.name NOT GLOB '_*'"
        " AND l.name NOT GLOB 'sqlite_*' GROUP BY 1 ORDER BY 1";
    SCOPED_BUF sql = {0};
    annal_status status =
        annal_index_sql(t->index, annal_slice_of(tables),
                        &(annal_sql_options){.session = t->session}, add_select, &sql, &t->err);
    if (status < 0)
        report(t, "%s", t->err.message);
    else if (sql.len > 0)
        status = ask(t, annal__buf_slice(&sql), out);
    return status;
}

static int rebuild_pack(void *arg, const annal_pack_info *info)
{
    struct testing *t = arg;
    if (strcmp(info->name, "core") != 0 &&
        annal_pack_rebuild(t->index, info->name, NULL, &t->err) < 0)
        report(t, "%s", t->err.message);
    return 0;
}

static int add_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    must_append(arg, session.ptr, session.len);
    must_append(arg, "", 1);
    return 0;
}

/* Delete all databases, and catch up on one session after the other, from the last to the first. */
static annal_status rebuild_reversed(struct testing *t)
{
    SCOPED_BUF sessions = {0};
    close_index(t);
    (void)nftw(store_path(t), remove_database, 16, FTW_PHYS);
    t->exit_status = open_index(t);
    if (t->exit_status != 0)
        return ANNAL_ERR_IO;
    annal_status status = annal_session_each(t->store, add_session, &sessions, &t->err);
    if (status < 0)
        report(t, "%s", t->err.message);
    for (size_t end = sessions.len; status >= 0 && end > 0;) {
        size_t at = end - 1;
        while (at > 0 && sessions.ptr[at - 1] != '\0')
            at--;
        status = catch_up(t, (annal_slice){sessions.ptr + at, end - 1 - at});
        end = at;
    }
    return status;
}

static void run_rebuild(struct testing *t)
{
    SCOPED_BUF before = {0}, after = {0}, reversed = {0};
    if (catch_up(t, (annal_slice){0}) < 0 || dump(t, &before) < 0)
        return;
    if (annal_pack_each(t->index, rebuild_pack, t, &t->err) < 0)
        report(t, "%s", t->err.message);
    if (dump(t, &after) >= 0)
        compare(t, "a rebuild gives other rows", annal__buf_slice(&before),
                annal__buf_slice(&after));
    if (rebuild_reversed(t) >= 0 && dump(t, &reversed) >= 0)
        compare(t, "a rebuild in another order of sessions gives other rows",
                annal__buf_slice(&before), annal__buf_slice(&reversed));
}

/* ---- Cases ---- */

/* Run a line, and those that belong to it. */
static void run_line(struct testing *t, char *line)
{
    unsigned lines = 0;
    size_t len = strcspn(line, " ");
    char *rest = line + len + (line[len] != '\0');
    if (len == 0 || strncmp(line, "--", 2) == 0) {
        if (line[0] == ' ')
            report(t, "an indented line must continue a SELECT or DATA");
    } else if (len == 1 && strchr(">!~=", line[0]) != NULL) {
        run_event(t, line[0], rest);
    } else if (strncmp(line, "? ", 2) == 0) {
        run_query(t, rest);
    } else if (strncmp(line, "pack ", 5) == 0) {
        add_pack(t, rest);
    } else if (strncmp(line, "in ", 3) == 0) {
        t->session = annal_slice_of(rest);
    } else if (strncmp(line, "watch ", 6) == 0) {
        t->watched = take_rest(t, rest, &lines);
        t->line += lines;
    } else if (strncmp(line, "findings ", 9) == 0) {
        run_findings(t, rest);
    } else if (strcmp(line, "rebuild") == 0) {
        run_rebuild(t);
    } else if (strncmp(line, "$ ", 2) == 0) {
        run_command(t, rest);
    } else if (strncmp(line, "file ", 5) == 0) {
        run_file_line(t, rest);
    } else {
        report(t,
               "'%s' does not begin as a line of a test file does: docs/packs.md, Test a pack, "
               "lists the lines",
               line);
    }
}

/* Run the lines up to the next case, or to the end. */
static void run_lines(struct testing *t)
{
    for (char *line;
         t->exit_status == 0 && strncmp(t->next, "== ", 3) != 0 && (line = take_line(t)) != NULL;)
        run_line(t, line);
}

/* Run a case: the lines before the first case, of which `common` is a copy, and its own. */
static int run_case(struct testing *t, const char *common)
{
    char *title = take_line(t) + 3, *text = must_strndup(common, strlen(common));
    char *next = t->next;
    unsigned line = t->line;
    t->has_failed = false;
    t->exit_status = open_store(t);
    if (t->exit_status == 0) {
        t->next = text;
        t->line = 0;
        run_lines(t);
        t->next = next;
        t->line = line;
        run_lines(t);
        t->cases++;
        t->failed += t->has_failed;
        if (t->has_failed)
            say("%s:%u: this case failed: %s", t->file, line, title);
    }
    close_store(t);
    annal__free(text);
    return t->exit_status;
}

/* Refuse a file for the NUL byte that ends text. Returns the exit status. */
static int refuse_nul(const char *file, const char *text)
{
    unsigned line = 1;
    for (; *text != '\0'; text++)
        line += *text == '\n';
    return fail_refused("%s:%u: a NUL byte: a test file must be a text file", file, line);
}

static int run_file(const char *file, bool json, bool *out_failed)
{
    SCOPED_BUF text = {0};
    struct testing t = {.file = file};
    int exit_status = verb_read_file(file, &text);
    if (exit_status != 0)
        return exit_status;
    if (text.len > strlen(must_cstr(&text)))
        return refuse_nul(file, text.ptr);
    char *first = strncmp(text.ptr, "== ", 3) == 0 ? text.ptr : strstr(text.ptr, "\n== ");
    first = first == NULL ? text.ptr + strlen(text.ptr) : first + (first[0] == '\n');
    char *common = must_strndup(text.ptr, (size_t)(first - text.ptr));
    for (const char *c = text.ptr; c < first; c++)
        t.line += *c == '\n';
    for (t.next = first; exit_status == 0 && *t.next != '\0';)
        exit_status = run_case(&t, common);
    if (exit_status == 0 && t.cases == 0)
        exit_status = fail_refused("%s has no case: a case begins with '== TITLE'", file);
    else if (exit_status == 0 && json)
        out_json("{\"file\":?,\"cases\":#,\"failed\":#}\n", annal_slice_of(file), JSON_U64(t.cases),
                 JSON_U64(t.failed));
    else if (exit_status == 0)
        printf("%s: %" PRIu64 " cases, %" PRIu64 " failed\n", file, t.cases, t.failed);
    *out_failed |= t.failed > 0;
    annal__free(common);
    return exit_status;
}

int pack_test(const struct args *args)
{
    int exit_status = 0;
    bool failed = false;
    const char *file;
    for (int at = 0; exit_status == 0 && (file = args_next(args, "FILE", &at)) != NULL;)
        exit_status = run_file(file, args->json, &failed);
    return exit_status == 0 && failed ? EXIT_REFUSED : exit_status;
}
