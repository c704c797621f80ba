/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/generate.h"

#include "journal/base/buf.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES      ((size_t)4 << 20)
#define SHORT_BYTES     ((size_t)64 << 10) /* instead, if no text is longer than `longest` */
#define TURN_BYTES_MAX  ((size_t)64 << 20)
#define TURN_EVENTS_MAX 64
#define SESSIONS_MAX    100000u
#define BEGIN_US        INT64_C(1767690240000000) /* 2026-01-06T09:04:00Z */

/* Bytes of text, and the share of events with them in 1,000, spread evenly over the logarithm. */
struct size_class {
    unsigned share;
    unsigned from, to;
};

static const struct size_class result_sizes[] = {
    {350, 60, 480}, {285, 480, 2300}, {200, 2300, 9500}, {148, 9500, 38000}, {17, 38000, 100000}};
static const struct size_class call_sizes[] = {{700, 30, 300}, {250, 300, 2500}, {50, 2500, 9000}};
static const struct size_class message_sizes[] = {
    {150, 40, 150}, {600, 150, 750}, {200, 750, 2300}, {50, 2300, 9500}};

static const char *const words[] = {"the",
                                    "a",
                                    "is",
                                    "of",
                                    "to",
                                    "file",
                                    "test",
                                    "error",
                                    "return",
                                    "if",
                                    "for",
                                    "not",
                                    "and",
                                    "import",
                                    "value",
                                    "session",
                                    "function",
                                    "build",
                                    "run",
                                    "line",
                                    "src/",
                                    "tests/",
                                    "client.py",
                                    "index.ts",
                                    "main.c",
                                    "\\\"name\\\":",
                                    "{",
                                    "}",
                                    "()",
                                    "=>",
                                    "==",
                                    "null",
                                    "0x3f",
                                    "127.0.0.1",
                                    "200",
                                    "404",
                                    "warning:",
                                    "expected",
                                    "got",
                                    "commit",
                                    "branch",
                                    "merge",
                                    "diff",
                                    "+++",
                                    "---",
                                    "@@",
                                    "\\n   ",
                                    "\\n",
                                    "\\n\\n",
                                    "\\t",
                                    "I",
                                    "will",
                                    "now",
                                    "read",
                                    "look",
                                    "at",
                                    "how",
                                    "this",
                                    "works",
                                    "because",
                                    "\xc3\xa9t\xc3\xa9",
                                    "\xe2\x80\x94",
                                    "\\\\",
                                    "timeout"};

struct generator {
    struct random random;
    char *text; /* words, JSON-escaped, each with a space after it */
    size_t text_len;
    uint64_t longest; /* bytes of a text; 0: as in real logs */
    struct buf bytes; /* data of the drafts */
    size_t starts[TURN_EVENTS_MAX];
    annal_draft drafts[TURN_EVENTS_MAX];
    size_t count;
    uint64_t turn;
    int64_t ts_us;
    char turn_id[64];
    bool failed; /* no memory */
};

static uint64_t below(struct generator *generator, uint64_t limit)
{
    return random_below(&generator->random, limit);
}

static uint64_t spread(struct generator *generator, double from, double to)
{
    double at = (double)below(generator, 1u << 20) / (1u << 20);
    return (uint64_t)(from * pow(to / from, at));
}

/* ---- Text ---- */

static char *make_text(struct generator *generator, size_t *out_len)
{
    size_t bytes = generator->longest > 0 ? SHORT_BYTES : TEXT_BYTES;
    char *text = malloc(bytes);
    size_t len = 0;
    while (text != NULL && len + 32 < bytes) {
        char word[32];
        size_t which = below(generator, 4 + 2 * sizeof words / sizeof *words);
        if (which < sizeof words / sizeof *words)
            snprintf(word, sizeof word, "%s ", words[which]);
        else if (which < 2 * sizeof words / sizeof *words) /* the frequent ones */
            snprintf(word, sizeof word, "%s ", words[which % 16]);
        else
            snprintf(word, sizeof word, "%llx ", (unsigned long long)below(generator, 1u << 31));
        size_t word_len = strlen(word);
        memcpy(text + len, word, word_len);
        len += word_len;
    }
    *out_len = len;
    return text;
}

/* About len bytes of text; from space to space, so that no escape is cut. */
static annal_slice take_text(struct generator *generator, size_t len)
{
    const char *from = generator->text + below(generator, generator->text_len - len - 64);
    from = strchr(from, ' ') + 1;
    const char *to = strchr(from + len, ' ');
    return (annal_slice){from, (size_t)(to - from)};
}

static annal_slice text_of(struct generator *generator, const struct size_class *sizes)
{
    uint64_t at = below(generator, 1000);
    while (at >= sizes->share)
        at -= sizes++->share;
    uint64_t bytes = spread(generator, sizes->from, sizes->to);
    bool is_long = generator->longest > 0 && bytes > generator->longest;
    return take_text(generator, is_long ? generator->longest : bytes);
}

static const char *random_id(struct generator *generator, const char *prefix, char out[64])
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    size_t len = (size_t)snprintf(out, 64, "%s", prefix);
    for (int i = 0; i < 22; i++)
        out[len++] = digits[below(generator, 62)];
    out[len] = '\0';
    return out;
}

/* ---- Events ---- */

static void wait_us(struct generator *generator, double from_ms, double to_ms)
{
    generator->ts_us +=
        (int64_t)(1000 * spread(generator, from_ms, to_ms)) + (int64_t)below(generator, 1000);
}

/* Programs answer at once, models take their time. */
static void wait_for_program(struct generator *generator)
{
    if (below(generator, 3) == 0)
        wait_us(generator, 0.1, 10);
    else
        wait_us(generator, 20, 9000);
}

static void wait_for_user(struct generator *generator)
{
    if (below(generator, 200) == 0)
        wait_us(generator, 3600e3, 4 * 3600e3);
    else
        wait_us(generator, 3e3, 300e3);
}

static void add(struct generator *generator, const char *type, const char *format, ...)
    ANNAL_PRINTF(3, 4);

static void add(struct generator *generator, const char *type, const char *format, ...)
{
    size_t number = generator->count++;
    va_list arguments;
    generator->starts[number] = generator->bytes.len;
    generator->drafts[number] =
        (annal_draft){.type = annal_slice_of(type), .ts_us = generator->ts_us};
    va_start(arguments, format);
    int len = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (annal__buf_reserve(&generator->bytes, (size_t)len + 1) < 0) {
        generator->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(generator->bytes.ptr + generator->bytes.len, (size_t)len + 1, format, arguments);
    va_end(arguments);
    generator->bytes.len += (size_t)len;
}

static void add_message(struct generator *generator, const char *role)
{
    char id[64], message[64];
    annal_slice text = text_of(generator, message_sizes);
    const char *block = below(generator, 3) == 0 && *role == 'a' ? "thinking" : "text";
    add(generator, "message.added",
        "{\"id\":\"%s\",\"role\":\"%s\",\"content\":[{\"type\":\"%s\",\"%s\":\"%.*s\"}],"
        "\"message_id\":\"%s\",\"model\":\"claude-opus-4-5\",\"turn_id\":\"%s\"}",
        random_id(generator, "m", id), role, block, block, ANNAL_FMT(text),
        random_id(generator, "msg_01", message), generator->turn_id);
}

static void add_usage(struct generator *generator)
{
    char message[64];
    unsigned cached = 12000 + (unsigned)below(generator, 90000);
    unsigned fresh = (unsigned)below(generator, 4000), output = 3 + (unsigned)below(generator, 900);
    add(generator, "agent.turn.usage",
        "{\"message_id\":\"%s\",\"model\":\"claude-opus-4-5\",\"input_tokens\":%u,"
        "\"output_tokens\":%u,\"cached_input_tokens\":%u,\"cache_write_tokens\":%u,"
        "\"total_tokens\":%u,\"cost_microusd\":%u,\"turn_id\":\"%s\"}",
        random_id(generator, "msg_01", message), cached + fresh, output, cached, fresh,
        cached + fresh + output, cached / 2 + fresh * 5 + output * 25, generator->turn_id);
}

static void add_call(struct generator *generator, bool answered)
{
    static const char *const tools[] = {"Bash", "Read", "Edit", "Grep", "Write", "Task"};
    char call[64], message[64];
    annal_slice input = text_of(generator, call_sizes);
    random_id(generator, "toolu_01", call);
    add(generator, "tool.called",
        "{\"call_id\":\"%s\",\"tool\":\"%s\",\"input\":{\"command\":\"%.*s\",\"timeout\":%u},"
        "\"message_id\":\"%s\",\"turn_id\":\"%s\"}",
        call, tools[below(generator, 6)], ANNAL_FMT(input), 1000 * (unsigned)below(generator, 600),
        random_id(generator, "msg_01", message), generator->turn_id);
    if (!answered)
        return;
    wait_for_program(generator);
    bool failed = below(generator, 25) == 0;
    annal_slice output = text_of(generator, result_sizes);
    add(generator, failed ? "tool.failed" : "tool.returned",
        "{\"call_id\":\"%s\",\"success\":%s,\"output\":\"%.*s\",\"output_bytes\":%zu,"
        "\"exit_code\":%d,\"duration_ms\":%u,\"turn_id\":\"%s\"}",
        call, failed ? "false" : "true", ANNAL_FMT(output), output.len, failed,
        (unsigned)below(generator, 9000), generator->turn_id);
}

/* The work of a turn: thoughts and answers around calls, and what they cost. */
static void add_steps(struct generator *generator)
{
    unsigned calls = 2 + (unsigned)below(generator, 4); /* 3.5 on average */
    for (unsigned call = 0; call < calls; call++) {
        for (unsigned i = 1 + (unsigned)below(generator, 3); i > 0; i--) {
            wait_for_program(generator);
            add_message(generator, "assistant");
        }
        wait_for_program(generator);
        add_call(generator, below(generator, 400) != 0);
        if (below(generator, 3) != 0)
            add_usage(generator);
    }
}

size_t generator_turn(struct generator *generator, const annal_draft **out_drafts)
{
    generator->count = 0;
    annal__buf_clear(&generator->bytes);
    if (generator->turn++ == 0)
        add(generator, "session.created",
            "{\"agent_id\":\"claude-code\",\"provider\":\"anthropic\",\"model\":\"claude-opus-4-"
            "5\","
            "\"status\":\"idle\",\"working_directory\":\"/home/ada/tide-table\","
            "\"git_branch\":\"main\",\"title\":\"High water printed an hour late\"}");
    wait_for_user(generator);
    random_id(generator, "t", generator->turn_id);
    add(generator, "turn.started",
        "{\"turn_id\":\"%s\",\"sequence\":%llu,\"status\":\"started\",\"prompt_ref\":\"%s\"}",
        generator->turn_id, (unsigned long long)generator->turn, generator->turn_id);
    add_message(generator, "user");
    add_steps(generator);
    wait_for_program(generator);
    add_message(generator, "assistant");
    add(generator, "turn.completed",
        "{\"turn_id\":\"%s\",\"timing\":{\"totalMs\":%u,\"ttfeMs\":%u,\"toolCallCount\":%zu}}",
        generator->turn_id, 9000 + (unsigned)below(generator, 90000),
        (unsigned)below(generator, 3000), generator->count / 5);

    if (generator->failed)
        return 0;
    for (size_t i = 0; i < generator->count; i++) {
        size_t end = i + 1 < generator->count ? generator->starts[i + 1] : generator->bytes.len;
        generator->drafts[i].data =
            (annal_slice){generator->bytes.ptr + generator->starts[i], end - generator->starts[i]};
    }
    *out_drafts = generator->drafts;
    return generator->count;
}

static struct generator *make_generator(uint64_t seed, unsigned session, uint64_t longest)
{
    struct generator *generator = calloc(1, sizeof *generator);
    if (generator == NULL)
        return NULL;
    generator->random.state = seed * 1000003 + session;
    generator->longest = longest;
    generator->bytes.limit = TURN_BYTES_MAX;
    generator->ts_us = BEGIN_US + (int64_t)below(generator, INT64_C(30) * 86400 * 1000000);
    generator->text = make_text(generator, &generator->text_len);
    if (generator->text == NULL) {
        generator_free(generator);
        return NULL;
    }
    generator->text[generator->text_len] = '\0';
    return generator;
}

struct generator *generator_new(uint64_t seed, unsigned session)
{
    return make_generator(seed, session, 0);
}

void generator_free(struct generator *generator)
{
    if (generator == NULL)
        return;
    free(generator->text);
    annal__buf_done(&generator->bytes);
    free(generator);
}

/* ---- Stores ---- */

const char *generate_name(unsigned session, char out[GENERATE_NAME_BYTES])
{
    snprintf(out, GENERATE_NAME_BYTES, "sess_%03u", session);
    return out;
}

static annal_status no_memory(annal_error *err)
{
    if (err != NULL)
        *err = (annal_error){ANNAL_ERR_NOMEM, 0, "generate sessions: no memory"};
    return ANNAL_ERR_NOMEM;
}

/* The last session is synced, and with it, by the one log of a store, all before it. */
static annal_status append_session(annal_store *store, unsigned session, uint64_t events,
                                   const struct generate_options *options, bool is_last,
                                   annal_error *err)
{
    char name[GENERATE_NAME_BYTES];
    annal_writer *writer = NULL;
    annal_status status =
        annal_writer_open(store, annal_slice_of(generate_name(session, name)),
                          &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, err);
    if (status < 0)
        return status;
    struct generator *generator = make_generator(options->seed, session, options->longest);
    if (generator == NULL)
        status = no_memory(err);
    for (uint64_t done = 0; status == ANNAL_OK && done < events;) {
        const annal_draft *drafts;
        uint64_t seq;
        size_t count = generator_turn(generator, &drafts);
        if (count > events - done)
            count = (size_t)(events - done);
        status = count == 0 ? no_memory(err)
                            : annal_writer_append(writer, drafts, count, NULL, &seq, err);
        done += count;
    }
    if (status == ANNAL_OK && is_last)
        status = annal_writer_sync(writer, NULL, err);
    generator_free(generator);
    annal_writer_close(writer);
    return status;
}

annal_status generate_session(annal_store *store, unsigned session, uint64_t events, uint64_t seed,
                              annal_error *err)
{
    return append_session(store, session, events, &(struct generate_options){.seed = seed}, true,
                          err);
}

annal_status generate_store(annal_store *store, const struct generate_options *options,
                            annal_error *err)
{
    unsigned sessions = options->sessions == 0 ? 100 : options->sessions;
    uint64_t events = options->events == 0 ? 1000000 : options->events;
    uint64_t largest = options->largest == 0 ? events / 5 : options->largest;
    if (sessions > SESSIONS_MAX)
        sessions = SESSIONS_MAX;
    if (sessions == 1 || largest > events)
        largest = events;
    struct random random = {options->seed ^ 0x5E55};
    double *weights = calloc(sessions, sizeof *weights), sum = 0;
    if (weights == NULL)
        return no_memory(err);
    for (unsigned i = 1; i < sessions; i++)
        sum += weights[i] = pow(30, (double)random_below(&random, 1u << 20) / (1u << 20));

    annal_status status = append_session(store, 0, largest, options, sessions == 1, err);
    uint64_t left = events - largest;
    for (unsigned i = 1; status == ANNAL_OK && i < sessions && left > 0; i++) {
        uint64_t count = (uint64_t)((double)(events - largest) * weights[i] / sum);
        count = i + 1 == sessions || count > left ? left : count;
        left -= count;
        status = append_session(store, i, count, options, left == 0, err);
    }
    free(weights);
    return status;
}
