/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Append events from standard input, and print the seq of each on standard output.
 *
 * Lines that can be read without waiting are synced together. Before the command has to wait for
 * input, it syncs and acknowledges everything that it has read, so an event is never held back for
 * the next event. The four rules in appender.h say how each line is answered.
 */
#include "journal/base/error.h"
#include "tools/append/appender.h"
#include "tools/cli/decider.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX ((size_t)ANNAL_DATA_BYTES_MAX + 4096)

enum { READ_BYTES = 256 << 10 };

struct append {
    const struct args *args;
    struct appender appender;
    const annal_decider *decider;
    annal_format format;
    struct buf input;
    size_t searched; /* number of bytes at the start of input that contain no line break */
    struct buf answers;
};

static int read_options(struct append *append)
{
    static const annal_level levels[] = {ANNAL_LEVEL_SYNC, ANNAL_LEVEL_BATCH, ANNAL_LEVEL_OS};
    const struct args *args = append->args;
    struct appender *appender = &append->appender;
    int level = fields_choice(args, "level");
    annal_error err = {0};
    appender->session = fields_text(args, "SESSION");
    appender->level = levels[level < 0 ? 0 : level];
    appender->type = fields_text(args, "type");
    appender->expects = args_has(args, "expect-seq");
    appender->expected_seq = fields_count(args, "expect-seq", 0);
    appender->strict = args_has(args, "strict");
    fields_journal_format(args, &append->format);
    const annal_draft typed = {.type = appender->type, .data = ANNAL_SLICE("null")};
    if (appender->type.len > 0 && annal_draft_check(&typed, &err) < 0)
        return fail_usage("--type needs the type of an event, such as tool.called: %s",
                          err.message);
    return 0;
}

static int fail_line(struct append *append, annal_error *err)
{
    appender_fail(&append->appender, err);
    return fail_error(err);
}

/* Open the store, or create it, when the first valid line was read, so that invalid input creates
 * nothing. */
static int open_writer(struct append *append, const annal_draft *first)
{
    struct appender *appender = &append->appender;
    const uint32_t wait_ms = append->args->wait_ms;
    annal_error err = {0};
    if (appender->writer != NULL)
        return 0;
    if (annal_draft_check(first, &err) < 0)
        return fail_line(append, &err);
    if (appender->expects && appender->expected_seq > 0 && !store_is_there(append->args)) {
        annal__fail(&err, ANNAL_ERR_CONFLICT,
                    "append to session '%.*s': the store does not exist, so the session does not "
                    "end at seq "
                    "%" PRIu64,
                    ANNAL_FMT(appender->session), appender->expected_seq);
        return fail_line(append, &err);
    }
    int exit_status = store_try(append->args, OPEN_CREATE, wait_ms, &appender->store, &err);
    if (exit_status != 0) {
        appender_add_answer(&appender->last_answer, "refused", err.message);
        say("%s", err.message);
        return exit_status;
    }
    append->decider = decider_new(appender->store);
    if (annal_writer_open(appender->store, appender->session,
                          &(annal_writer_options){.wait_ms = wait_ms, .format = append->format},
                          &appender->writer, &err) < 0 ||
        annal_index_open(appender->store,
                         &(annal_index_options){.wait_ms = wait_ms, .decider = append->decider},
                         &appender->index, &err) < 0)
        return fail_line(append, &err);
    return 0;
}

/* Sync the appended events, then print their answers. Return the exit status. */
static int acknowledge(struct append *append)
{
    annal_error err = {0};
    int exit_status = 0;
    annal__buf_clear(&append->answers);
    if (appender_acknowledge(&append->appender, &append->answers, &err) < 0) {
        (void)fail_error(&err);
        exit_status = EXIT_STORAGE;
        /* appender_acknowledge() has reported the loss of events, and annal_store_sync() would
         * report it once more: call it here without printing, so that store_close() does not. It
         * hides no other loss, because only this command writes the session. */
        if (annal_store_sync(append->appender.store, NULL) < 0)
            exit_status = EXIT_STORAGE;
    }
    out_slice(annal__buf_slice(&append->answers));
    (void)out_flush(); /* main() checks at the end whether the output could be written */
    return exit_status;
}

static int append_line(struct append *append, annal_slice line)
{
    struct appender *appender = &append->appender;
    annal_error err = {0};
    annal_draft draft;
    if (appender_read(appender, line, &draft, &err) < 0)
        return fail_line(append, &err);
    if (appender->store != NULL)
        store_wait_anew(append->args, appender->store);
    int exit_status = open_writer(append, &draft);
    if (exit_status != 0)
        return exit_status;
    if (appender_put(appender, &draft, line.len, &err) < 0)
        return fail_line(append, &err);
    return appender_is_full(appender) ? acknowledge(append) : 0;
}

/* Append the complete lines of the input; if at_end, also the rest, which ends without a line
 * break. Return the exit status. */
static int append_lines(struct append *append, bool at_end)
{
    size_t used = 0;
    int exit_status = 0;
    while (exit_status == 0 && used < append->input.len) {
        const char *begin = append->input.ptr + used;
        size_t rest = append->input.len - used;
        const char *newline = memchr(begin + append->searched, '\n', rest - append->searched);
        append->searched = newline == NULL && !at_end ? rest : 0;
        if (append->searched > 0)
            break;
        size_t len = newline != NULL ? (size_t)(newline - begin) : rest;
        exit_status = append_line(append, (annal_slice){begin, len});
        used += len + (newline != NULL ? 1 : 0);
    }
    annal__buf_consume(&append->input, used);
    return exit_status;
}

static bool can_read_now(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

static int read_input(struct append *append, bool *out_at_end)
{
    struct buf *input = &append->input;
    if (input->len > LINE_BYTES_MAX || annal__buf_reserve(input, READ_BYTES) < 0) {
        annal_error err = {0};
        annal__fail(&err, ANNAL_ERR_LIMIT, "the line of standard input is longer than %zu bytes",
                    LINE_BYTES_MAX);
        append->appender.line++;
        return fail_line(append, &err);
    }
    ssize_t count;
    do
        count = read(STDIN_FILENO, input->ptr + input->len, READ_BYTES);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return fail_storage("read standard input: %s", strerror(errno));
    input->len += (size_t)count;
    *out_at_end = count == 0;
    return 0;
}

static int append_input(struct append *append)
{
    bool at_end = false;
    int exit_status = 0;
    while (exit_status == 0 && !at_end) {
        if (!can_read_now())
            exit_status = acknowledge(append);
        if (exit_status == 0)
            exit_status = read_input(append, &at_end);
        if (exit_status == 0)
            exit_status = append_lines(append, at_end);
    }
    int acknowledged = acknowledge(append);
    out_slice(annal__buf_slice(&append->appender.last_answer));
    return acknowledged != 0 ? acknowledged : exit_status;
}

static int run(const struct args *args)
{
    struct append append = {.args = args, .input.limit = LINE_BYTES_MAX + 2 * READ_BYTES};
    int exit_status = read_options(&append);
    if (exit_status == 0)
        exit_status = append_input(&append);
    annal_writer_close(append.appender.writer);
    annal_index_close(append.appender.index);
    decider_free(append.decider);
    exit_status = store_close(append.appender.store, exit_status);
    annal__buf_done(&append.input);
    annal__buf_done(&append.answers);
    appender_done(&append.appender);
    return exit_status;
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_ID, NULL, "the session"),

    OPTION("type", "T", FIELD_TEXT, NULL, "type of the events; every line is then only data"),
    OPTION_WITH("level", "LEVEL", FIELD_CHOICE, NULL, "durability of an acknowledged event (sync)",
                .choices = "sync|batch|os"),
    OPTION("expect-seq", "N", FIELD_COUNT, NULL, "expected last seq (0: the session is empty)"),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "format of a new journal (jsonl)",
                .choices = JOURNAL_FORMATS),
    FLAG("strict", NULL, "refuse fields that do not fit a known type"),
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_append = {
    COMMAND("append", "append events to a session", append, fields, run)};
