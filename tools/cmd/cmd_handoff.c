/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/sha256.h"
#include "journal/base/slice.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/sessions.h"
#include "tools/cli/store_open.h"
#include "tools/cli/target.h"
#include "tools/cmd/handoff.h"
#include "tools/show/values.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { UUID_BYTES = 37, TEXT_BYTES_MAX = 1 << 20, ROWS_STOP = 99 };

struct handoff {
    const struct args *args;
    struct importer target;
    struct buf sql; /* text of a target that the user wrote */
    const char *directory;
    char own_directory[PATH_MAX]; /* of the session, or the current one */
    struct buf base, path, file;
    char id[256];
    struct target out;
    uint64_t lines;
    struct buf left, left_json; /* what is left out, for people and as JSON */
    int exit_status;            /* why the rows were stopped */
};

/* ---- The target ---- */

static int read_text(const char *path, struct buf *text)
{
    char bytes[4096];
    size_t len;
    FILE *file = fopen(path, "re");
    annal_status status = ANNAL_OK;
    text->limit = TEXT_BYTES_MAX;
    while (file != NULL && status >= 0 && (len = fread(bytes, 1, sizeof bytes, file)) > 0)
        status = annal__buf_append(text, bytes, len);
    if (file == NULL || ferror(file) || status < 0)
        status = fail_refused("handoff: read '%s': %s", path,
                              status < 0 ? "it is longer than 1 MiB" : strerror(errno));
    if (file != NULL)
        fclose(file);
    return status;
}

/* Find the built-in target, or read the file that --to names. Return the exit status. */
static int find_target(struct handoff *handoff)
{
    char names[256] = "";
    const char *name = args_get(handoff->args, "to");
    if (strchr(name, '/') != NULL) {
        int exit_status = read_text(name, &handoff->sql);
        handoff->target = (struct importer){name, annal__buf_slice(&handoff->sql)};
        return exit_status;
    }
    for (const struct importer_text *text = handoff_texts; text->kind != NULL; text++) {
        size_t len = strlen(names);
        if (strcmp(text->kind, name) == 0) {
            handoff->target = (struct importer){text->kind, annal_slice_of(text->sql)};
            return EXIT_DONE;
        }
        snprintf(names + len, sizeof names - len, "%s%s", len > 0 ? ", " : "", text->kind);
    }
    return fail_usage("handoff: --to is one of %s, or a file such as ./my-agent.sql", names);
}

/* Find the directory below which the agent keeps its files. */
static annal_status find_base(struct handoff *handoff)
{
    size_t at = 0;
    annal_status status = ANNAL_OK;
    for (annal_slice word; status >= 0 && handoff->base.len == 0 &&
                           (word = importer_word(&handoff->target, "base", &at)).len > 0;) {
        char name[64];
        const char *slash = memchr(word.ptr, '/', word.len);
        size_t len = slash != NULL ? (size_t)(slash - word.ptr) : word.len;
        snprintf(name, sizeof name, "%.*s", (int)len - 1, word.ptr + 1);
        const char *value = getenv(word.ptr[0] == '$' ? name : "HOME");
        if (value != NULL && value[0] == '/')
            status = annal__buf_printf(&handoff->base, "%s%.*s/", value, (int)(word.len - len),
                                       word.ptr + len);
    }
    return status;
}

/* Read the file in "-- reads:", if it exists. Return the exit status. */
static int read_beside(struct handoff *handoff)
{
    size_t at = 0;
    struct buf path = {0};
    annal_slice name = importer_word(&handoff->target, "reads", &at);
    int exit_status = EXIT_DONE;
    if (name.len > 0 &&
        annal__buf_printf(&path, "%.*s%.*s", (int)handoff->base.len,
                          handoff->base.len > 0 ? handoff->base.ptr : "", ANNAL_FMT(name)) >= 0 &&
        annal__buf_cstr(&path) != NULL && access(path.ptr, F_OK) == 0)
        exit_status = read_text(path.ptr, &handoff->file);
    annal__buf_done(&path);
    return exit_status;
}

static bool make_id(char id[UUID_BYTES])
{
    uint8_t b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return false;
    b[6] = (b[6] & 0x0f) | 0x40; /* version 4 */
    b[8] = (b[8] & 0x3f) | 0x80;
    snprintf(id, UUID_BYTES, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
    return true;
}

/* ---- The file ---- */

/* Begin the file: nothing that exists is replaced. Return the exit status. */
static int begin_file(struct handoff *handoff, annal_slice name)
{
    struct stat st;
    const char *to = args_get(handoff->args, "to-path");
    annal_status status =
        to != NULL
            ? annal__buf_append_slice(&handoff->path, annal_slice_of(to))
            : annal__buf_printf(&handoff->path, "%.*s%.*s", (int)handoff->base.len,
                                handoff->base.len > 0 ? handoff->base.ptr : "", ANNAL_FMT(name));
    if (status < 0 || annal__buf_cstr(&handoff->path) == NULL)
        return fail_storage("handoff: out of memory");
    if (lstat(handoff->path.ptr, &st) == 0)
        return fail_refused("handoff: '%s' exists, and is not replaced; --to-path FILE writes to "
                            "another file",
                            handoff->path.ptr);
    if (!target_make_parents(handoff->path.ptr))
        return fail_storage("handoff: make the directory of '%s': %s", handoff->path.ptr,
                            strerror(errno));
    return target_begin(&handoff->out, handoff->path.ptr);
}

static int take_left(struct handoff *handoff, int64_t n, annal_slice text)
{
    annal_status status = ANNAL_OK;
    if (n > 0)
        status = annal__buf_printf(&handoff->left, "  %" PRIi64 " %.*s\n", n, ANNAL_FMT(text));
    if (n > 0 && status >= 0)
        status = annal__buf_printf(&handoff->left_json, "%s{\"n\":%" PRIi64 ",\"what\":\"%.*s\"}",
                                   handoff->left_json.len > 0 ? "," : "", n, ANNAL_FMT(text));
    return status;
}

static int use_row(struct handoff *handoff, const annal_row *row)
{
    if (row->count != 3 || row->values[0].kind != ANNAL_VALUE_TEXT)
        return fail_refused("handoff: a row of '%s' is not (what, n, text)", handoff->target.kind);
    annal_slice what = row->values[0].bytes, text = row->values[2].bytes;
    if (annal__slice_is(what, "left"))
        return take_left(handoff, row->values[1].integer, text);
    if (annal__slice_is(what, "path"))
        return begin_file(handoff, text);
    if (annal__slice_is(what, "id"))
        snprintf(handoff->id, sizeof handoff->id, "%.*s", ANNAL_FMT(text));
    if (!annal__slice_is(what, "line") || handoff->path.len == 0)
        return EXIT_DONE;
    handoff->lines++;
    out_slice(text);
    return putchar('\n') == EOF ? EXIT_STORAGE : EXIT_DONE;
}

static int take_row(void *arg, const annal_row *row)
{
    struct handoff *handoff = arg;
    int status = use_row(handoff, row);
    handoff->exit_status = status < 0 ? fail_storage("handoff: out of memory") : status;
    return handoff->exit_status != EXIT_DONE ? ROWS_STOP : 0;
}

/* ---- The end ---- */

/* Append a word of a shell command, in quotes if it needs them. */
static annal_status append_word(struct buf *out, annal_slice word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./+,:@%=";
    size_t i = 0;
    while (i < word.len && memchr(plain, word.ptr[i], sizeof plain - 1) != NULL)
        i++;
    if (i == word.len)
        return annal__buf_append_slice(out, word);
    annal_status status = annal__buf_append(out, "'", 1);
    for (i = 0; i < word.len && status >= 0; i++)
        status = word.ptr[i] == '\'' ? annal__buf_append(out, "'\\''", 4)
                                     : annal__buf_append(out, word.ptr + i, 1);
    return status < 0 ? status : annal__buf_append(out, "'", 1);
}

static annal_status write_resume(const struct handoff *handoff, struct buf *out)
{
    size_t at = 0;
    char *path = realpath(handoff->path.ptr, NULL);
    annal_status status = annal__buf_append(out, "cd ", 3);
    if (status >= 0)
        status = append_word(out, annal_slice_of(handoff->directory));
    if (status >= 0)
        status = annal__buf_append(out, " &&", 3);
    for (annal_slice word;
         status >= 0 && (word = importer_word(&handoff->target, "resume", &at)).len > 0;) {
        status = annal__buf_append(out, " ", 1);
        if (status >= 0 && annal__slice_is(word, "{id}"))
            word = annal_slice_of(handoff->id);
        if (status >= 0 && annal__slice_is(word, "{path}"))
            status = append_word(out, annal_slice_of(path != NULL ? path : handoff->path.ptr));
        else if (status >= 0)
            status = annal__buf_append_slice(out, word);
    }
    free(path);
    return status;
}

static int print_end(const struct handoff *handoff)
{
    struct buf resume = {0};
    int exit_status = EXIT_DONE;
    if (write_resume(handoff, &resume) < 0 || annal__buf_cstr(&resume) == NULL) {
        exit_status = fail_storage("handoff: out of memory");
    } else if (handoff->args->json) {
        fputs("{\"path\":", stdout);
        out_json_string(annal__buf_slice(&handoff->path));
        printf(",\"session_id\":\"%s\",\"lines\":%" PRIu64 ",\"resume\":", handoff->id,
               handoff->lines);
        out_json_string(annal__buf_slice(&resume));
        printf(",\"left_out\":[%.*s]}\n", (int)handoff->left_json.len,
               handoff->left_json.len > 0 ? handoff->left_json.ptr : "");
    } else {
        char lines[HUMAN_BYTES];
        printf("wrote '%s': %s lines\nresume the session with: %s\n", handoff->path.ptr,
               human_count(lines, handoff->lines), resume.ptr);
    }
    annal__buf_done(&resume);
    if (handoff->left.len > 0)
        fprintf(stderr, "left out:\n%.*s", (int)handoff->left.len, handoff->left.ptr);
    return exit_status;
}

/* ---- The verb ---- */

static int keep_directory(void *arg, const annal_row *row)
{
    struct handoff *handoff = arg;
    snprintf(handoff->own_directory, PATH_MAX, "%.*s", ANNAL_FMT(row->values[0].bytes));
    return EXIT_DONE;
}

/* Find the directory in which the agent continues: --directory, else the session's, if it exists,
 * else the current one. */
static int find_directory(struct handoff *handoff, annal_index *index, annal_slice session)
{
    struct stat st;
    annal_error err = {0};
    const annal_value params[] = {text_value(session)};
    const annal_sql_options options = {.params = params, .param_count = 1};
    const char *given = args_get(handoff->args, "directory");
    handoff->directory = handoff->own_directory;
    if (given != NULL)
        return realpath(given, handoff->own_directory) != NULL
                   ? EXIT_DONE
                   : fail_refused("handoff: directory '%s': %s", given, strerror(errno));
    annal_status status = annal_sql(
        index, ANNAL_SLICE("SELECT coalesce(working_directory, '') FROM sessions WHERE id = ?1"),
        &options, keep_directory, handoff, &err);
    if (status < 0)
        return fail_error(&err);
    if (stat(handoff->own_directory, &st) == 0 && S_ISDIR(st.st_mode))
        return EXIT_DONE;
    if (handoff->own_directory[0] != '\0')
        say("handoff: the session's directory '%s' does not exist here, so the session continues "
            "in the current directory",
            handoff->own_directory);
    return getcwd(handoff->own_directory, PATH_MAX) != NULL
               ? EXIT_DONE
               : fail_storage("handoff: the current directory: %s", strerror(errno));
}

/* Run the SELECT of the target, which writes the file. Return the exit status. */
static int write_session(struct handoff *handoff, annal_index *index, annal_slice session)
{
    uint8_t digest[SHA256_BYTES];
    char hash[SHA256_TEXT_BYTES];
    struct timespec now;
    annal_error err = {0};
    struct buf sql = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    annal__sha256_of(handoff->directory, strlen(handoff->directory), digest);
    annal__sha256_text(digest, hash);
    if (!make_id(handoff->id) ||
        annal__buf_printf(&sql, "%s\n%.*s", annal__sql_handoff_conversation,
                          ANNAL_FMT(handoff->target.sql)) < 0)
        return fail_storage("handoff: out of memory");
    const annal_value params[] = {text_value(session),
                                  string_value(handoff->id),
                                  integer_value(now.tv_sec * 1000 + now.tv_nsec / 1000000),
                                  string_value(handoff->directory),
                                  string_value(hash),
                                  text_or_null(annal__buf_slice(&handoff->file))};
    const annal_sql_options options = {.params = params, .param_count = 6};
    annal_status status =
        annal_sql(index, annal__buf_slice(&sql), &options, take_row, handoff, &err);
    annal__buf_done(&sql);
    int exit_status = status < 0 ? fail_error(&err) : handoff->exit_status;
    int at_end = handoff->path.len > 0 ? target_end(&handoff->out, exit_status == EXIT_DONE) : 0;
    if (exit_status == EXIT_DONE && at_end == EXIT_DONE && handoff->path.len == 0)
        return fail_refused("handoff: session '%.*s' has no messages and no calls",
                            ANNAL_FMT(session));
    return exit_status == EXIT_DONE ? at_end : exit_status;
}

static int run(const struct args *args)
{
    struct handoff handoff = {.args = args, .out = {.saved_stdout = -1}};
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_session_info info;
    annal_error err = {0};
    int exit_status = find_target(&handoff);
    if (exit_status == EXIT_DONE && find_base(&handoff) < 0)
        exit_status = fail_storage("handoff: out of memory");
    if (exit_status == EXIT_DONE)
        exit_status = read_beside(&handoff);
    if (exit_status == EXIT_DONE)
        exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == EXIT_DONE &&
        annal_session_info_get(store, fields_text(args, "SESSION"), &info, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == EXIT_DONE)
        exit_status = catch_up_open(store, NULL, &index);
    if (exit_status == EXIT_DONE)
        exit_status = find_directory(&handoff, index, fields_text(args, "SESSION"));
    (void)umask(077); /* logs of agents are private */
    if (exit_status == EXIT_DONE)
        exit_status = write_session(&handoff, index, fields_text(args, "SESSION"));
    if (exit_status == EXIT_DONE)
        exit_status = print_end(&handoff);
    annal__buf_done(&handoff.sql);
    annal__buf_done(&handoff.base);
    annal__buf_done(&handoff.path);
    annal__buf_done(&handoff.file);
    annal__buf_done(&handoff.left);
    annal__buf_done(&handoff.left_json);
    annal_index_close(index);
    return store_close(store, out_finish(exit_status));
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
    OPTION_WITH("to", "AGENT", FIELD_TEXT, NULL, "agent that continues, or a file with a target",
                .required = true),
    OPTION("to-path", "FILE", FIELD_TEXT, NULL, "another file than the agent's own place"),
    OPTION("directory", "DIR", FIELD_TEXT, NULL,
           "where the agent continues (the session's directory)"),
    FIELDS_END};

const struct command cmd_handoff = {
    .name = "handoff",
    .summary = "write a session as another agent's file, to resume it there",
    .about = "Writes what was said, what tools were called with, and what they returned, in\n"
             "this order, as a session of another agent, under a new id, into the place where\n"
             "that agent looks for its sessions ($CLAUDE_CONFIG_DIR, $CODEX_HOME, ... are\n"
             "observed), and prints the command that resumes it. No existing file is replaced.\n"
             "Standard error says how many things of which kind the other agent's file cannot\n"
             "hold. Also left out are turns that were taken back, instructions of the program,\n"
             "because the other agent has its own, and tokens, which were used already.\n"
             "\n"
             "AGENT is claude-code, codex, gemini-cli, opencode or pi. Each is a SQL file,\n"
             "tools/export/handoff/AGENT.sql in the sources; --to with a path, such as\n"
             "./my-agent.sql, runs a file of your own.",
    .examples = "  annal handoff sess_1 --to codex\n"
                "  annal handoff sess_1 --to opencode --to-path /tmp/sess_1.json\n",
    .fields = fields,
    .run = run};
