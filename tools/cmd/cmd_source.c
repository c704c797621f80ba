/* SPDX-License-Identifier: Apache-2.0 */
/* annal source: lists the copies of imported logs, and restores logs from them. */
#include "index/sys/row_text.h"
#include "journal/base/hash.h"
#include "journal/base/io.h"
#include "journal/base/json_walk.h"
#include "journal/base/sha256.h"
#include "journal/base/slice.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cli/target.h"
#include "tools/cli/temporary.h"
#include "tools/cli/verbs.h"
#include "tools/import/import.h"
#include "tools/source/copies.h"
#include "tools/source/copies_file.h"
#include "tools/source/copies_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- One copy ---- */

static annal_slice text_of(const struct copy *copy, const char *member, struct buf *text)
{
    annal_slice out = {0};
    annal__buf_clear(text);
    (void)annal__json_text(annal__json_member(copy->info, member), text, &out);
    return out;
}

static int64_t mtime_ns(const struct stat *st)
{
    return copies_file_ns(st->st_mtim);
}

/* Return whether the log has the form, COPIES_ROWS or COPIES_FILES. */
static bool has_form(const struct copy *copy, const char *form)
{
    return annal__slice_is(annal__json_inside(annal__json_member(copy->info, "form")), form);
}

static bool importer_of(const struct copy *copy, struct importer *out)
{
    char kind[64];
    snprintf(kind, sizeof kind, "%.*s",
             ANNAL_FMT(annal__json_inside(annal__json_member(copy->info, "kind"))));
    *out = (struct importer){.kind = "", .sql = ANNAL_SLICE("")};
    return importer_find(kind, out);
}

/* Compare the log with its copy by size and mtime. Return a word for the column STATE: kept,
 * changed, old, deleted or unknown. */
static const char *state_of(const struct copy *copy, annal_slice path)
{
    char name[4096];
    struct stat st;
    struct importer importer;
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(path));
    if (annal__json_member(copy->info, "foreign").len > 0)
        return "elsewhere";
    if (stat(name, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? "deleted" : "unknown";
    bool same = (uint64_t)st.st_size == copy->bytes && mtime_ns(&st) == copy->mtime_ns;
    if (annal__json_member(copy->info, "form").len > 0) {
        (void)importer_of(copy, &importer);
        same = import_copy_stat(&importer, name,
                                has_form(copy, COPIES_ROWS) ? COPIES_ROWS : COPIES_FILES, &st,
                                NULL) >= 0 &&
               mtime_ns(&st) == copy->current_ns;
    }
    return !copy->newest ? "old" : same ? "kept" : "changed";
}

/* ---- ls, generations ---- */

struct listing {
    struct table *table;
    bool lost;
    uint64_t shown;
    int exit_status;
};

/* Add the sessions of a copied log; people see the first one and the number of the others. */
static void put_sessions(struct table *table, const struct copy *copy)
{
    annal_slice sessions = annal__json_member(copy->info, "sessions"), id, first = {0};
    struct json_walk walk;
    size_t count = 0;
    for (annal__json_walk_array(&walk, sessions); annal__json_walk_item(&walk, &id); count++)
        first = count == 0 ? annal__json_inside(id) : first;
    table_json(table, sessions);
    if (count > 1)
        table_shown(table, "%.*s +%zu", ANNAL_FMT(first), count - 1);
    else
        table_shown(table, "%.*s", ANNAL_FMT(first));
}

static int list_one(void *arg, const struct copy *copy)
{
    struct listing *listing = arg;
    SCOPED_BUF path = {0}, kind = {0};
    char bytes[HUMAN_BYTES], stored[HUMAN_BYTES];
    annal_slice name = text_of(copy, "path", &path);
    const char *state = state_of(copy, name);
    if (!listing->lost || strcmp(state, "deleted") == 0) {
        struct table *table = listing->table;
        listing->shown++;
        table_text(table, name);
        table_text(table, text_of(copy, "kind", &kind));
        table_number(table, copy->generation);
        table_number(table, copy->bytes);
        table_shown(table, "%s", human_bytes(bytes, copy->bytes));
        table_number(table, copy->stored);
        table_shown(table, "%s", human_bytes(stored, copy->stored));
        table_time(table, copy->mtime_ns / 1000);
        table_time(table, copy->copied_us);
        table_text(table, annal_slice_of(state));
        put_sessions(table, copy);
        table_row(table);
    }
    return out_wanted() ? 0 : ANNAL_END;
}

static void say_fault(void *arg, const char *name, const annal_error *err)
{
    struct listing *listing = arg;
    (void)name;
    listing->exit_status = fail_error(err);
}

static int list(const struct args *args, bool all)
{
    static const struct column columns[] = {
        {.name = "path", .title = "LOG", .flexible = true, .cut_left = true},
        {.name = "kind", .title = "KIND"},
        {.name = "generation", .title = "GENERATION", .right = true},
        {.name = "bytes", .title = "BYTES", .right = true},
        {.name = "stored_bytes", .title = "STORED", .right = true},
        {.name = "written_at", .title = "WRITTEN"},
        {.name = "copied_at", .title = "COPIED"},
        {.name = "state", .title = "LOG IS"},
        {.name = "sessions", .title = "SESSIONS", .flexible = true},
    };
    annal_store *store = NULL;
    annal_error err = {0};
    const char *session = args_get(args, "SESSION");
    struct listing listing = {.lost = args_has(args, "lost")};
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status != EXIT_DONE)
        return exit_status;
    listing.table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, 9);
    if (copies_each(store, annal_slice_of(session), all, list_one, say_fault, &listing, &err) < 0)
        exit_status = fail_error(&err);
    else
        exit_status = listing.exit_status;
    table_free(listing.table);
    if (exit_status == EXIT_DONE && session != NULL && listing.shown == 0)
        exit_status =
            fail_refused("source: the store has no copy of a log of session '%s'", session);
    return store_close(store, out_finish(exit_status));
}

static int ls(const struct args *args)
{
    return list(args, false);
}

static int generations(const struct args *args)
{
    return list(args, true);
}

/* ---- restore ---- */

struct choice {
    annal_slice session;
    const char *path;    /* path of the log whose copy is wanted, or NULL for any log */
    uint64_t generation; /* number of the wanted generation, or 0 for the newest */
    /* found: a copy was chosen; named: the file name of its log contains the session id */
    bool found, named;
    /* largest generation of the log that is being visited, and its size in bytes */
    uint64_t longest, longest_bytes;
    /* number of a generation that is larger than the chosen generation, or 0 */
    uint64_t longer;
    uint64_t others; /* number of other logs that have events of the session */
    struct copy copy;
    char name[SOURCES_NAME_BYTES], log[SOURCES_LOG_DIGITS + 1];
    struct buf info;
};

/* Choose the copy of a log whose file name contains the session id, then the log that was copied
 * last. */
static int choose(void *arg, const struct copy *copy)
{
    struct choice *choice = arg;
    SCOPED_BUF text = {0};
    if (copy->generation == 1 || copy->bytes > choice->longest_bytes) {
        choice->longest = copy->generation;
        choice->longest_bytes = copy->bytes;
    }
    bool fits = choice->generation == 0 ? copy->newest : copy->generation == choice->generation;
    if (!fits)
        return 0;
    annal_slice path = text_of(copy, "path", &text);
    const char *slash = path.len > 0 ? memrchr(path.ptr, '/', path.len) : NULL;
    const char *base = slash != NULL ? slash : path.ptr;
    bool named = memmem(base, (size_t)(path.ptr + path.len - base), choice->session.ptr,
                        choice->session.len) != NULL;
    fits = choice->path == NULL || annal__slice_is(path, choice->path);
    bool better = !choice->found || (named && !choice->named) ||
                  (named == choice->named && copy->copied_us > choice->copy.copied_us);
    if (!fits)
        return 0;
    if (choice->found && !annal__slice_is(copy->log, choice->log))
        choice->others++;
    if (!better)
        return 0;
    annal__buf_clear(&choice->info);
    must_append_slice(&choice->info, copy->info);
    choice->found = true;
    choice->named = named;
    choice->longer = choice->longest_bytes > copy->bytes ? choice->longest : 0;
    choice->copy = *copy;
    snprintf(choice->name, sizeof choice->name, "%s", copy->name);
    snprintf(choice->log, sizeof choice->log, "%.*s", ANNAL_FMT(copy->log));
    choice->copy.name = choice->name;
    choice->copy.info = annal__buf_slice(&choice->info);
    return 0;
}

/* ---- Logs that are not files ---- */

static int write_text(void *arg, annal_slice bytes)
{
    return fwrite(bytes.ptr, 1, bytes.len, arg) == bytes.len ? 0 : ANNAL_ERR_IO;
}

/* Refuse to write where a database exists: it may have other sessions, and a write-ahead log of a
 * database that was deleted would be applied to the new one. */
static int refuse_database(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-journal"};
    char name[4096];
    struct stat st;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        if (lstat(name, &st) == 0)
            return fail_refused("source restore: '%s' exists, and a session is restored into a new "
                                "database; --to FILE says where",
                                name);
    }
    return EXIT_DONE;
}

static int build_database(const struct copy *copy, FILE *text, char *path)
{
    SCOPED_BUF beside = {0};
    annal_error err = {0};
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_NOW},
        {.tv_sec = copy->mtime_ns / 1000000000, .tv_nsec = copy->mtime_ns % 1000000000}};
    int fd = -1, exit_status = EXIT_DONE;
    must_printf(&beside, "%s.annal-%d", path, (int)getpid());
    if (!target_make_parents(path) ||
        (fd = open(beside.ptr, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
        exit_status = fail_storage("source restore: make '%s': %s", beside.ptr, strerror(errno));
    else if (annal__row_text_build(text, beside.ptr, &err) < 0)
        exit_status = fail_error(&err);
    else if (fchmod(fd, copy->mode) < 0 || futimens(fd, times) < 0 || fsync(fd) < 0 ||
             link(beside.ptr, path) < 0)
        exit_status = fail_storage("source restore: write '%s': %s", path, strerror(errno));
    if (fd >= 0) {
        close(fd);
        (void)unlink(beside.ptr);
    }
    return exit_status;
}

static int write_files(const struct args *args, FILE *text, char *path, uint64_t *out_files)
{
    annal_error err = {0};
    if (!target_make_parents(path) || (mkdir(path, 0700) < 0 && errno != EEXIST))
        return fail_storage("source restore: make '%s': %s", path, strerror(errno));
    return copies_files_restore(text, path, args_has(args, "force"), out_files, &err) < 0
               ? fail_error(&err)
               : EXIT_DONE;
}

/* Restore a log that is not a file. */
static int write_other(const struct args *args, annal_store *store, const struct copy *copy,
                       char *path, uint64_t *out_files, bool *out_earlier)
{
    annal_error err = {0};
    annal_status status = ANNAL_OK;
    bool is_database = has_form(copy, COPIES_ROWS);
    int exit_status = is_database ? refuse_database(path) : EXIT_DONE;
    FILE *text = temporary_stream(NULL);
    if (text == NULL)
        exit_status = fail_storage("source restore: make a temporary file: %s", strerror(errno));
    if (exit_status == EXIT_DONE &&
        (status = copies_read(store, copy->name, copy->generation, write_text, text, &err)) < 0)
        exit_status = err.status == 0 ? fail_storage("source restore: write a temporary file: %s",
                                                     strerror(errno))
                                      : fail_error(&err);
    if (exit_status == EXIT_DONE) {
        rewind(text);
        exit_status = is_database ? build_database(copy, text, path)
                                  : write_files(args, text, path, out_files);
    }
    if (text != NULL)
        fclose(text);
    *out_earlier = status == ANNAL_END;
    return exit_status;
}

/* ---- Logs that are files ---- */

struct writing {
    int fd;
    struct sha256 *sha256;
};

static int write_bytes(void *arg, annal_slice bytes)
{
    struct writing *writing = arg;
    annal__sha256_add(writing->sha256, bytes.ptr, bytes.len);
    return annal__io_write_fd(writing->fd, bytes) ? ANNAL_OK : ANNAL_ERR_IO;
}

/* Refuse to replace a file that differs from the copy in size or mtime. Return the exit status. */
static int refuse_other(const struct args *args, const struct copy *copy, const char *path)
{
    struct stat st;
    if (args_has(args, "force") || lstat(path, &st) < 0)
        return EXIT_DONE;
    if (!S_ISREG(st.st_mode))
        return fail_refused("source restore: the path of the log, '%s', is not a regular file; "
                            "--to FILE writes the log to a different path",
                            path);
    if ((uint64_t)st.st_size != copy->bytes || mtime_ns(&st) != copy->mtime_ns)
        return fail_refused(
            "source restore: the log '%s' exists, and was written %s than the copy; --to FILE "
            "writes the copy to a different file, --force replaces the log",
            path, mtime_ns(&st) > copy->mtime_ns ? "later" : "at another time");
    return EXIT_DONE;
}

/* Write the log under a temporary name in the same directory, sync it, and rename it. *out_earlier
 * is set to true if the end of the copy is damaged and an earlier state was restored. Return the
 * exit status. */
static int write_log(annal_store *store, const struct copy *copy, char *path,
                     char sha256[SHA256_TEXT_BYTES], bool *out_earlier)
{
    SCOPED_BUF beside = {0};
    annal_error err = {0};
    struct writing writing = {.fd = -1, .sha256 = annal__sha256_begin()};
    uint8_t digest[SHA256_BYTES] = {0};
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_NOW},
        {.tv_sec = copy->mtime_ns / 1000000000, .tv_nsec = copy->mtime_ns % 1000000000}};
    annal_status status = ANNAL_OK;
    int exit_status = EXIT_DONE;
    must_printf(&beside, "%s.annal-%d", path, (int)getpid());
    must_true(writing.sha256 != NULL);
    if (!target_make_parents(path) ||
        (writing.fd =
             open(beside.ptr, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
        exit_status =
            fail_storage("source restore: create the file '%s': %s", beside.ptr, strerror(errno));
    else if ((status = copies_read(store, copy->name, copy->generation, write_bytes, &writing,
                                   &err)) < 0)
        exit_status = err.status == 0 ? fail_storage("source restore: write the file '%s': %s",
                                                     beside.ptr, strerror(errno))
                                      : fail_error(&err);
    else if (fchmod(writing.fd, copy->mode) < 0 || futimens(writing.fd, times) < 0 ||
             fsync(writing.fd) < 0 || rename(beside.ptr, path) < 0)
        exit_status =
            fail_storage("source restore: write the file '%s': %s", path, strerror(errno));
    annal__sha256_end(writing.sha256, digest);
    annal__sha256_text(digest, sha256);
    if (writing.fd >= 0) {
        close(writing.fd);
        if (exit_status != EXIT_DONE)
            (void)unlink(beside.ptr);
    }
    if (exit_status == EXIT_DONE && status == ANNAL_END)
        *out_earlier = true;
    return exit_status;
}

/* Append the command that continues the session in its agent, from the line "-- resume:" of the
 * importer, for example claude --resume. Append nothing if the importer names no command. */
static void find_resume(const struct copy *copy, annal_slice session, struct buf *out)
{
    struct importer importer;
    size_t at = 0;
    if (!importer_of(copy, &importer))
        return;
    for (annal_slice word; (word = importer_word(&importer, "resume", &at)).len > 0;)
        must_printf(out, "%.*s ", ANNAL_FMT(word));
    if (out->len > 0)
        must_append_slice(out, session);
}

/* sha256: of the file; "": the log is not a file. files: number of files of a directory. */
static void print_restored(const struct args *args, const struct choice *choice, const char *path,
                           const char *sha256, uint64_t files)
{
    SCOPED_BUF resume = {0};
    char bytes[HUMAN_BYTES];
    const struct copy *copy = &choice->copy;
    find_resume(copy, choice->session, &resume);
    if (args->json) {
        out_json("{\"path\":?,\"generation\":#,\"bytes\":#,", annal_slice_of(path),
                 JSON_U64(copy->generation), JSON_U64(copy->bytes));
        if (sha256[0] != '\0')
            printf("\"sha256\":\"%s\"", sha256);
        else if (files > 0)
            printf("\"form\":\"files\",\"files\":%" PRIu64, files);
        else
            fputs("\"form\":\"rows\"", stdout);
        out_json(",\"resume\":!}\n", annal__buf_slice(&resume));
    } else {
        if (sha256[0] != '\0')
            printf("restored '%s': %s, generation %" PRIu64 ", SHA-256 %s\n", path,
                   human_bytes(bytes, copy->bytes), copy->generation, sha256);
        else if (files > 0)
            printf("restored '%s': %" PRIu64 " file%s, generation %" PRIu64 "\n", path, files,
                   files == 1 ? "" : "s", copy->generation);
        else
            printf("restored '%s': a database with the rows of session '%.*s', generation %" PRIu64
                   "\n",
                   path, ANNAL_FMT(choice->session), copy->generation);
        if (resume.len > 0)
            printf("resume the session with: %.*s\n", (int)resume.len, resume.ptr);
        if (choice->longer > 0)
            printf("generation %" PRIu64 " has more bytes: --generation %" PRIu64 " restores it\n",
                   choice->longer, choice->longer);
        if (choice->others > 0)
            printf(
                "other logs have events of this session, too: 'annal source ls %.*s' lists them, "
                "--log PATH restores one\n",
                ANNAL_FMT(choice->session));
    }
}

/* Find the path to write to: --to, or the former path of the log. The name of a copy contains a
 * hash of this path; a different hash means that the path has bytes that are not UTF-8, which info
 * cannot store. */
static int find_place(const struct args *args, const struct choice *choice, struct buf *path)
{
    char name[SOURCES_LOG_DIGITS + 1];
    const char *to = args_get(args, "to");
    SCOPED_BUF text = {0};
    if (to == NULL && annal__json_member(choice->copy.info, "foreign").len > 0)
        return fail_refused("source restore: this copy of a log came with a bundle, from another "
                            "host; --to FILE says where to write it");
    annal_slice place = to != NULL ? annal_slice_of(to) : text_of(&choice->copy, "path", &text);
    must_append_slice(path, place);
    (void)must_cstr(path);
    snprintf(name, sizeof name, "%016" PRIx64, annal__hash(path->ptr, path->len, 0));
    if (to == NULL && strcmp(name, choice->log) != 0)
        return fail_refused("source restore: the name of the log, '%s', has bytes that are not "
                            "UTF-8; --to FILE names the file to write the log to",
                            path->ptr);
    return EXIT_DONE;
}

static int restore(const struct args *args)
{
    annal_store *store = NULL;
    annal_error err = {0};
    SCOPED_BUF path = {0};
    char sha256[SHA256_TEXT_BYTES] = "";
    uint64_t files = 0;
    bool earlier = false;
    struct choice choice = {.session = annal_slice_of(args_get(args, "SESSION")),
                            .path = args_get(args, "log"),
                            .generation = fields_count(args, "generation", 0)};
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status != EXIT_DONE)
        return exit_status;
    if (copies_each(store, choice.session, true, choose, NULL, &choice, &err) < 0)
        exit_status = fail_error(&err);
    else if (!choice.found)
        exit_status = fail_refused("source restore: the store has no such copy of a log of session "
                                   "'%.*s'; 'annal source generations' lists them",
                                   ANNAL_FMT(choice.session));
    if (exit_status == EXIT_DONE)
        exit_status = find_place(args, &choice, &path);
    if (exit_status == EXIT_DONE && annal__json_member(choice.copy.info, "form").len > 0) {
        exit_status = write_other(args, store, &choice.copy, path.ptr, &files, &earlier);
    } else if (exit_status == EXIT_DONE) {
        exit_status = refuse_other(args, &choice.copy, path.ptr);
        if (exit_status == EXIT_DONE)
            exit_status = write_log(store, &choice.copy, path.ptr, sha256, &earlier);
    }
    if (exit_status == EXIT_DONE)
        print_restored(args, &choice, path.ptr, sha256, files);
    if (exit_status == EXIT_DONE && earlier)
        exit_status = fail_refused("source restore: the end of the copy sources/%s is damaged, so "
                                   "the restored file '%s' contains an earlier state of the log",
                                   choice.name, path.ptr);
    annal__buf_done(&choice.info);
    return store_close(store, out_finish(exit_status));
}

/* ---- The table ---- */

static const struct field ls_fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSION, NULL, "the logs of this session only"),
    FLAG("lost", NULL, "logs that do not exist any more, only"), FIELDS_END};

static const struct field generations_fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session whose logs it lists"), FIELDS_END};

static const struct field restore_fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session whose log it restores"),
    OPTION("to", "FILE", FIELD_TEXT, NULL, "another file or directory than the log's own"),
    OPTION("log", "PATH", FIELD_TEXT, NULL, "the path of the log, if there are several"),
    OPTION_WITH("generation", "N", FIELD_COUNT, NULL, "an older generation (the newest)",
                .least = 1),
    FLAG("force", NULL, "replace a file that differs from the copy"),
    FIELDS_END};

static const struct command verbs[] = {
    {COMMAND("ls", "list the logs that the store has copies of", source_ls, ls_fields, ls)},
    {COMMAND("generations", "list all generations of the logs of a session", source_generations,
             generations_fields, generations)},
    {COMMAND("restore", "give an agent its log back", source_restore, restore_fields, restore)},
    {0}};

const struct noun noun_source = {
    .name = "source", .summary = "copies of the logs that were imported", .verbs = verbs};
