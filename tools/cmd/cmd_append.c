/*
 * Append: events from standard input, a seq for each on standard output.
 *
 * Lines that can be read without waiting are made durable together: they are appended at level
 * batch, then synced once, then acknowledged in their order. As soon as the input would have to be
 * waited for, everything read so far is synced and acknowledged, so one event is never held back
 * for the next.
 *
 * (1) Every line that was read gets one answer, in the order of the lines: {"seq":N},
 *     {"refused":"…"} (nothing of it is there, and nothing will be) or {"unknown":"…"} (storage
 *     failed under it, and nobody can say: append it again with the same id, and see).
 * (2) The first answer that is no seq ends the command: what follows may mean nothing without it.
 * (3) When a sync fails, the lines that waited for it are told apart: some may be durable. A line
 *     that was refused behind them still has its answer.
 * (4) Packs that the store has switched on are asked about events that they guard or fill. Such an
 *     event is durable by itself; what was read before it is durable with it.
 */
#include "index/sys/pack.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/fields.h"
#include "tools/cli/line.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"

#include <annal/pack.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX ((size_t)ANNAL_DATA_BYTES_MAX + 4096)

enum {
    READ_BYTES = 256 << 10,
    PENDING_EVENTS_MAX = 4096,
    PENDING_BYTES_MAX = 1 << 20,
};

struct append {
    const struct args *args;
    annal_slice session;
    annal_slice type;
    annal_level level;
    annal_format format;
    bool expects; /* for the first line */
    uint64_t expected_seq;

    annal_store *store;
    annal_index *index;
    annal_writer *writer;
    struct buf input;
    size_t searched; /* of it, without finding a line break */
    struct buf scratch;
    struct buf seqs; /* uint64_t: of events that are appended but not acknowledged */
    struct buf answers;
    size_t pending_bytes;
    uint64_t line; /* number of the line at hand */
    struct buf
        last_answer; /* of the line that ends the command, until those before it have theirs */
};

static int read_options(struct append *append)
{
    static const annal_level levels[] = {ANNAL_LEVEL_SYNC, ANNAL_LEVEL_BATCH, ANNAL_LEVEL_OS};
    const struct args *args = append->args;
    int level = args_choice(args, "level");
    annal_error err = {0};
    append->session = args_text(args, "SESSION");
    append->level = levels[level < 0 ? 0 : level];
    append->type = args_text(args, "type");
    append->expects = args_has(args, "expect-seq");
    append->expected_seq = args_count(args, "expect-seq", 0);
    args_journal_format(args, &append->format);
    const annal_draft typed = {.type = append->type, .data = ANNAL_SLICE("null")};
    if (append->type.len > 0 && annal_draft_check(&typed, &err) < 0)
        return fail_usage("--type needs the type of an event, such as tool.called: %s",
                          err.message);
    return 0;
}

static void add_answer(struct buf *answers, const char *kind, const char *sentence)
{
    /* Without memory for it the exit status and the sentence on stderr are all there is. */
    if (annal__buf_printf(answers, "{\"%s\":", kind) < 0 ||
        annal__json_quote(answers, annal_slice_of(sentence)) < 0 ||
        annal__buf_append(answers, "}\n", 2) < 0)
        annal__buf_clear(answers);
}

static int fail_line(struct append *append, annal_error *err)
{
    annal_error placed = *err;
    snprintf(placed.message, sizeof placed.message, "line %" PRIu64 ": %.450s", append->line,
             err->message);
    add_answer(&append->last_answer, err->status == ANNAL_ERR_UNKNOWN ? "unknown" : "refused",
               placed.message);
    return fail_error(&placed);
}

/* The store is opened, and made, for the first good line: bad input leaves nothing behind. */
static int open_writer(struct append *append, const annal_draft *first)
{
    annal_error err = {0};
    if (append->writer != NULL)
        return 0;
    if (annal_draft_check(first, &err) < 0)
        return fail_line(append, &err);
    if (append->expects && append->expected_seq > 0 && !store_is_there(append->args)) {
        annal__fail(&err, ANNAL_ERR_CONFLICT,
                    "append to session '%.*s': there is no store yet, so it does not end at seq "
                    "%" PRIu64,
                    ANNAL_FMT(append->session), append->expected_seq);
        return fail_line(append, &err);
    }
    int exit_status =
        store_try(append->args, OPEN_CREATE, append->args->wait_ms, &append->store, &err);
    if (exit_status != 0) {
        add_answer(&append->last_answer, "refused", err.message);
        say("%s", err.message);
        return exit_status;
    }
    if (annal_writer_open(
            append->store, append->session,
            &(annal_writer_options){.wait_ms = append->args->wait_ms, .format = append->format},
            &append->writer, &err) < 0 ||
        annal_index_open(append->store, &(annal_index_options){.wait_ms = append->args->wait_ms},
                         &append->index, &err) < 0)
        return fail_line(append, &err);
    return 0;
}

/* Rule (4). */
static annal_status append_draft(struct append *append, const annal_draft *draft, uint64_t *out_seq,
                                 annal_error *err)
{
    bool asks = false;
    annal_appended appended = {0};
    const annal_append_options options = {
        .level = append->level == ANNAL_LEVEL_SYNC ? ANNAL_LEVEL_BATCH : append->level,
        .expect = append->expects ? ANNAL_EXPECT_SEQ : ANNAL_EXPECT_ANY,
        .expected_seq = append->expects ? append->expected_seq : 0};
    annal_status status = annal__pack_asks(append->index, append->session, draft->type, &asks, err);
    if (status >= 0 && !asks)
        return annal_writer_append(append->writer, draft, 1, &options, out_seq, err);
    if (status >= 0)
        status =
            annal_pack_append(append->index, append->writer, draft, 1, &options, &appended, err);
    if (status >= 0)
        *out_seq = appended.seq;
    annal_free(appended.data.ptr);
    return status;
}

/* Rule (3). */
static void answer(struct append *append, uint64_t seq, const annal_sync_result *result,
                   const annal_error *err)
{
    struct buf *answers = &append->answers;
    annal__buf_clear(answers);
    if (result->refused_seq > 0 && seq >= result->refused_seq)
        add_answer(answers, "refused", err->message);
    else if (result->unknown_seq > 0 && seq >= result->unknown_seq)
        add_answer(answers, "unknown", err->message);
    else
        (void)annal__buf_printf(answers, "{\"seq\":%" PRIu64 "}\n", seq);
    out_slice(annal__buf_slice(answers));
}

/* Make durable what was appended, then say so. */
static int acknowledge(struct append *append)
{
    annal_error err = {0};
    annal_sync_result result = {0};
    int exit_status = 0;
    size_t events = append->seqs.len / sizeof(uint64_t);
    if (events == 0)
        return 0;
    if (append->level == ANNAL_LEVEL_SYNC && annal_writer_sync(append->writer, &result, &err) < 0) {
        (void)fail_error(&err);
        exit_status = EXIT_STORAGE;
        /* It tells of the loss once too, and nobody else writes here: its close need not say it
         * again. */
        if (annal_sync(append->store, NULL) < 0)
            exit_status = EXIT_STORAGE;
    }
    for (size_t i = 0; i < events; i++) {
        uint64_t seq;
        memcpy(&seq, append->seqs.ptr + i * sizeof seq, sizeof seq);
        answer(append, seq, &result, &err);
    }
    annal__buf_clear(&append->seqs);
    append->pending_bytes = 0;
    (void)out_flush(); /* whether anybody still listens changes nothing: main() looks at the end */
    return exit_status;
}

static int append_line(struct append *append, annal_slice line)
{
    annal_error err = {0};
    annal_draft draft;
    uint64_t seq = 0;
    append->line++;
    if (line_to_draft(line, append->type, &append->scratch, &draft, &err) < 0)
        return fail_line(append, &err);
    if (append->store != NULL)
        store_wait_anew(append->args, append->store);
    int exit_status = open_writer(append, &draft);
    if (exit_status != 0)
        return exit_status;
    if (annal__buf_reserve(&append->seqs, sizeof seq) < 0) {
        annal__fail(&err, ANNAL_ERR_NOMEM, "append to session '%.*s': out of memory",
                    ANNAL_FMT(append->session));
        return fail_line(append, &err);
    }
    if (append_draft(append, &draft, &seq, &err) < 0)
        return fail_line(append, &err);
    append->expects = false;
    (void)annal__buf_append(&append->seqs, &seq, sizeof seq);
    append->pending_bytes += line.len;
    if (append->seqs.len < PENDING_EVENTS_MAX * sizeof seq &&
        append->pending_bytes < PENDING_BYTES_MAX)
        return 0;
    return acknowledge(append);
}

/* The whole lines of the input, and at its end also one without a line break. */
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
        annal__fail(&err, ANNAL_ERR_LIMIT, "the line is longer than %zu bytes", LINE_BYTES_MAX);
        append->line++;
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
    out_slice(annal__buf_slice(&append->last_answer));
    return acknowledged != 0 ? acknowledged : exit_status;
}

static int run(const struct args *args)
{
    struct append append = {.args = args, .input.limit = LINE_BYTES_MAX + 2 * READ_BYTES};
    int exit_status = read_options(&append);
    if (exit_status == 0)
        exit_status = append_input(&append);
    annal_writer_close(append.writer);
    annal_index_close(append.index);
    exit_status = store_close(append.store, exit_status);
    annal__buf_done(&append.input);
    annal__buf_done(&append.scratch);
    annal__buf_done(&append.seqs);
    annal__buf_done(&append.answers);
    annal__buf_done(&append.last_answer);
    return exit_status;
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_ID, NULL, "the session"),

    OPTION("type", "T", FIELD_TEXT, NULL, "every line is the data of an event of this type"),
    OPTION_WITH("level", "LEVEL", FIELD_CHOICE, NULL, "when an event is acknowledged (sync)",
                .choices = "sync|batch|os"),
    OPTION("expect-seq", "N", FIELD_COUNT, NULL,
           "append only if the last seq is N; 0: none is there"),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "of a new journal (jsonl)",
                .choices = JOURNAL_FORMATS),
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_append = {
    .name = "append",
    .summary = "append events to a session",
    .about =
        "Reads one JSON object a line from standard input, {\"type\":…,\"data\":…} and if\n"
        "you like \"id\", \"ts\" and \"cause\", and prints {\"seq\":N} for each, once it is\n"
        "durable. data is kept byte for byte. With an id an event can be appended again\n"
        "without doing harm: the answer is its first seq.\n"
        "\n"
        "The answer to a line is one of three: {\"seq\":N}; {\"refused\":\"why\"}, nothing of\n"
        "it is there and nothing will be; {\"unknown\":\"why\"}, storage failed and nobody\n"
        "can say: append it again with the same id to see. The first line that gets no\n"
        "seq ends the command, with exit status 1 (3 when the storage failed, or it is\n"
        "unknown); the lines before it were appended. The store and the session are\n"
        "made when they are missing.\n"
        "\n"
        "Packs that are on (annal pack) are asked first about events that they guard: a\n"
        "refusal is the pack's sentence. Fields that a pack fills may be left out.\n"
        "\n"
        "A session keeps the format that it was made in. As msgpack it takes less room;\n"
        "every command reads both, and 'annal cat' prints both as JSON.\n"
        "\n"
        "Levels: sync survives a power cut; batch is acknowledged at once and durable\n"
        "within 10 ms; os survives the end of the process, not of the machine.",
    .examples =
        "  echo '{\"type\":\"note.added\",\"data\":{\"text\":\"hello\"}}' | annal append sess_1\n"
        "  echo '{\"text\":\"hello\"}' | annal append sess_1 --type note.added\n"
        "  my-agent | annal append sess_1 --level batch\n"
        "  my-agent | annal append sess_3 --format msgpack\n"
        "  echo '{\"n\":1}' | annal append sess_2 --type first --expect-seq 0\n",
    .fields = fields,
    .run = run};
