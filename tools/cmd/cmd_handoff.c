/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/sha256.h"
#include "journal/base/slice.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/store_open.h"
#include "tools/cli/target.h"
#include "tools/cli/whole_file.h"
#include "tools/import/importers.h"
#include "tools/show/values.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char annal__sql_handoff_conversation[];

enum { TEXT_BYTES_MAX = 1 << 20, ROWS_STOP = 99 };

struct handoff {
    const struct args *args;
    struct importer target;
    struct buf sql;                           /* text of a target that the user wrote */
    char here[PATH_MAX], directory[PATH_MAX]; /* directory: where the agent continues */
    struct buf base, path, file, resume;
    char id[256];
    struct target out;
    uint64_t lines;
    struct buf left; /* left out things as JSON */
    int exit_status; /* why the rows were stopped */
};

/* ---- The target ---- */

static int read_text(const char *path, struct buf *text)
{
    return whole_file_read(path, TEXT_BYTES_MAX, text)
               ? EXIT_DONE
               : fail_refused("handoff: read '%s': %s", path, strerror(errno));
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
static void find_base(struct handoff *handoff)
{
    size_t at = 0;
    for (annal_slice word;
         handoff->base.len == 0 && (word = importer_word(&handoff->target, "base", &at)).len > 0;) {
        char name[64];
        const char *slash = memchr(word.ptr, '/', word.len);
        size_t len = slash != NULL ? (size_t)(slash - word.ptr) : word.len;
        snprintf(name, sizeof name, "%.*s", (int)len - 1, word.ptr + 1);
        const char *value = getenv(word.ptr[0] == '$' ? name : "HOME");
        if (value != NULL && value[0] == '/')
            must_printf(&handoff->base, "%s%.*s/", value, (int)(word.len - len), word.ptr + len);
    }
    if (handoff->base.len == 0)
        must_printf(&handoff->base, "%s/", handoff->here);
}

/* Read the file in "-- reads:", if it exists. Return the exit status. */
static int read_beside(struct handoff *handoff)
{
    size_t at = 0;
    SCOPED_BUF path = {0};
    annal_slice name = importer_word(&handoff->target, "reads", &at);
    int exit_status = EXIT_DONE;
    must_printf(&path, "%.*s%.*s", ANNAL_FMT(annal__buf_slice(&handoff->base)), ANNAL_FMT(name));
    if (name.len > 0 && access(path.ptr, F_OK) == 0)
        exit_status = read_text(path.ptr, &handoff->file);
    return exit_status;
}

/* ---- The file ---- */

/* Begin the file: nothing that exists is replaced. Return the exit status. */
static int begin_file(struct handoff *handoff, annal_slice name)
{
    struct stat st;
    must_append_slice(&handoff->path, name);
    must_cstr(&handoff->path);
    if (lstat(handoff->path.ptr, &st) == 0)
        return fail_refused("handoff: '%s' exists, and is not replaced; --to-path FILE writes to "
                            "another file",
                            handoff->path.ptr);
    if (!target_make_parents(handoff->path.ptr))
        return fail_storage("handoff: make the directory of '%s': %s", handoff->path.ptr,
                            strerror(errno));
    return target_begin(&handoff->out, handoff->path.ptr);
}

static int use_row(struct handoff *handoff, const annal_row *row)
{
    if (row->count != 3 || row->values[0].kind != ANNAL_VALUE_TEXT)
        return fail_refused("handoff: a row of '%s' is not (what, n, text)", handoff->target.kind);
    annal_slice what = row->values[0].bytes, text = row->values[2].bytes;
    if (annal__slice_is(what, "left") && row->values[1].integer > 0) {
        say("left out: %.*s (%" PRIi64 ")", ANNAL_FMT(text), row->values[1].integer);
        must_printf(&handoff->left, "%s{\"n\":%" PRIi64 ",\"what\":\"%.*s\"}",
                    handoff->left.len > 0 ? "," : "", row->values[1].integer, ANNAL_FMT(text));
    }
    if (annal__slice_is(what, "path"))
        return begin_file(handoff, text);
    if (annal__slice_is(what, "resume"))
        must_append_slice(&handoff->resume, text);
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
    handoff->exit_status = use_row(handoff, row);
    return handoff->exit_status != EXIT_DONE ? ROWS_STOP : 0;
}

/* ---- The end ---- */

static void print_end(struct handoff *handoff)
{
    char lines[HUMAN_BYTES];
    annal_slice resume = annal__buf_slice(&handoff->resume);
    if (handoff->args->json) {
        out_json("{\"path\":?,\"session_id\":\"#\",\"lines\":#,\"resume\":?",
                 annal__buf_slice(&handoff->path), annal_slice_of(handoff->id),
                 JSON_U64(handoff->lines), resume);
        printf(",\"left_out\":[%.*s]}\n", (int)handoff->left.len,
               handoff->left.len > 0 ? handoff->left.ptr : "");
    } else {
        printf("wrote '%s': %s lines\nresume the session with: %.*s\n", handoff->path.ptr,
               human_count(lines, handoff->lines), ANNAL_FMT(resume));
    }
}

/* ---- The verb ---- */

static int keep_row(void *arg, const annal_row *row)
{
    struct handoff *handoff = arg;
    snprintf(handoff->id, sizeof handoff->id, "%.*s", ANNAL_FMT(row->values[0].bytes));
    snprintf(handoff->directory, PATH_MAX, "%.*s", ANNAL_FMT(row->values[1].bytes));
    return EXIT_DONE;
}

/* Choose the new id, and the directory in which the agent continues: --directory, else the
 * session's, if it exists, else the current one. */
static int choose(struct handoff *handoff, annal_index *index, const annal_value *session)
{
    static const char sql[] =
        "SELECT printf('%s-%s-4%s-%s%s-%s', substr(h, 1, 8), substr(h, 9, 4), substr(h, 14, 3),"
        " substr('89ab', 1 + random() % 2 + 1, 1), substr(h, 18, 3), substr(h, 21, 12)), d "
        "FROM (SELECT lower(hex(randomblob(16))) AS h, coalesce(working_directory, '') AS d"
        "      FROM sessions WHERE id = ?1 LIMIT 1)";
    struct stat st;
    annal_error err = {0};
    const annal_sql_options options = {.params = session, .param_count = 1};
    const char *given = args_get(handoff->args, "directory");
    if (annal_index_sql(index, annal_slice_of(sql), &options, keep_row, handoff, &err) < 0)
        return fail_error(&err);
    if (given != NULL)
        return realpath(given, handoff->directory) != NULL
                   ? EXIT_DONE
                   : fail_refused("handoff: directory '%s': %s", given, strerror(errno));
    if (stat(handoff->directory, &st) == 0 && S_ISDIR(st.st_mode))
        return EXIT_DONE;
    if (handoff->directory[0] != '\0')
        say("the session's directory '%s' does not exist here, so the session continues in the "
            "current directory",
            handoff->directory);
    memcpy(handoff->directory, handoff->here, PATH_MAX);
    return EXIT_DONE;
}

/* Run the SELECT of the target, which writes the file. Return the exit status. */
static int write_session(struct handoff *handoff, annal_index *index, annal_value session)
{
    uint8_t digest[SHA256_BYTES];
    char hash[SHA256_TEXT_BYTES];
    annal_error err = {0};
    SCOPED_BUF sql = {0};
    annal__sha256_of(handoff->directory, strlen(handoff->directory), digest);
    annal__sha256_text(digest, hash);
    must_printf(&sql, "%s\n%.*s", annal__sql_handoff_conversation, ANNAL_FMT(handoff->target.sql));
    const annal_value params[] = {session,
                                  string_value(handoff->id),
                                  string_value(handoff->directory),
                                  string_value(hash),
                                  text_or_null(annal__buf_slice(&handoff->file)),
                                  text_value(annal__buf_slice(&handoff->base)),
                                  string_value(args_get(handoff->args, "to-path")),
                                  string_value(handoff->here)};
    const annal_sql_options options = {.params = params, .param_count = 8};
    annal_status status =
        annal_index_sql(index, annal__buf_slice(&sql), &options, take_row, handoff, &err);
    int exit_status = status < 0 ? fail_error(&err) : handoff->exit_status;
    int at_end = handoff->path.len > 0 ? target_end(&handoff->out, exit_status == EXIT_DONE) : 0;
    if (exit_status == EXIT_DONE && at_end == EXIT_DONE && handoff->path.len == 0)
        return fail_refused("handoff: session '%.*s' has no messages and no calls",
                            ANNAL_FMT(session.bytes));
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
    if (exit_status == EXIT_DONE && getcwd(handoff.here, PATH_MAX) == NULL)
        exit_status = fail_storage("handoff: the current directory: %s", strerror(errno));
    if (exit_status == EXIT_DONE) {
        find_base(&handoff);
        exit_status = read_beside(&handoff);
    }
    if (exit_status == EXIT_DONE)
        exit_status = store_open(args, OPEN_READ, 0, &store);
    const annal_value session = text_value(fields_text(args, "SESSION"));
    if (exit_status == EXIT_DONE && annal_session_info_get(store, session.bytes, &info, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == EXIT_DONE)
        exit_status = catch_up_open(store, NULL, &index);
    if (exit_status == EXIT_DONE)
        exit_status = choose(&handoff, index, &session);
    (void)umask(077); /* logs of agents are private */
    if (exit_status == EXIT_DONE)
        exit_status = write_session(&handoff, index, session);
    if (exit_status == EXIT_DONE)
        print_end(&handoff);
    struct buf *const bufs[] = {&handoff.sql,  &handoff.base, &handoff.path,
                                &handoff.file, &handoff.left, &handoff.resume};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        annal__buf_done(bufs[i]);
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
    COMMAND("handoff", "write a session as another agent's file, to resume it there", handoff,
            fields, run)};
