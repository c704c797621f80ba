/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals with valid hashes and malformed lines, as any program with write access to events/ can
 * write. A malformed line costs only itself; every verb answers for the rest, and reports it.
 */
#include "journal/codec.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X10  "xxxxxxxxxx"
#define X66  X10 X10 X10 X10 X10 X10 "xxxxxx"
#define X210 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10

/* Malformed field of the third of five events. */
static const struct {
    const char *name, *type, *id, *cause, *data, *msgpack;
    unsigned depth; /* depth of nested arrays in data */
    bool long_data; /* with much text before data */
    uint64_t seq;
    int64_t ts_us;
    unsigned lost;     /* events that no verb returns */
    bool msgpack_only; /* JSON lines cannot express it */

} events[] = {
    {.name = "a type of 66 bytes", .type = X66, .lost = 1},
    {.name = "a type with a space", .type = "a b", .lost = 1},
    {.name = "a type with a control character", .type = "a\033[2J", .lost = 1},
    {.name = "a type in capitals", .type = "Message", .lost = 1},
    {.name = "an id of 210 bytes", .id = X210, .lost = 1},
    {.name = "an id with a control character", .id = "a\tb", .lost = 1},
    {.name = "an id that is not UTF-8", .id = "a\xff", .lost = 1},
    {.name = "an id with a backslash", .id = "a\\u0022", .lost = 1},
    {.name = "a cause without a seq", .cause = "bad:", .lost = 1},
    {.name = "a cause without a session", .cause = ":1", .lost = 1},
    {.name = "a cause that names a path", .cause = "../x:1", .lost = 1},
    {.name = "a cause of 210 bytes", .cause = X210 ":1", .lost = 1},
    {.name = "a cause with a seq of 30 digits",
     .cause = "bad:123456789012345678901234567890",
     .lost = 1},
    {.name = "the seq before", .seq = 2, .lost = 1},
    {.name = "seq 1 again", .seq = 1, .lost = 1},
    {.name = "a later seq", .seq = 77, .lost = 1},
    {.name = "the largest seq of SQLite", .seq = INT64_MAX, .lost = 1},
    {.name = "the largest seq", .seq = UINT64_MAX, .lost = 1},
    {.name = "the largest time", .ts_us = INT64_MAX, .msgpack_only = true, .lost = 1},
    {.name = "the smallest time", .ts_us = INT64_MIN, .msgpack_only = true, .lost = 1},
    {.name = "data that is no JSON", .data = "{\"text\":tide}", .msgpack = "\xc1", .lost = 1},
    {.name = "data that ends early", .data = "{\"text\":", .msgpack = "\x81", .lost = 1},
    {.name = "no data at all", .data = " ", .msgpack = "\x91", .lost = 1},
    {.name = "data of two values", .data = "1 2", .msgpack = "\x01\x02", .lost = 1},
    {.name = "data that is not UTF-8", .data = "\"\xff\"", .msgpack = "\xa1\xff", .lost = 1},
    {.name = "data with a control character", .data = "\"\x1b[2J\"", .msgpack = "\xc7", .lost = 1},
    {.name = "data with a line break", .data = "{\r}", .msgpack = "\xcb\x7f\xf8", .lost = 1},
    {.name = "data of 600 levels", .depth = 600, .lost = 1},
    {.name = "data of 300 KiB that is no JSON", .data = "no", .long_data = true, .lost = 1},
};

/* Malformed field of the header: the file has no valid header, or belongs to another session. */
static const struct {
    const char *name, *session, *fork;
    uint64_t fork_seq;
} headers[] = {
    {.name = "another session", .session = "good"},
    {.name = "a session that is a path", .session = "../bad"},
    {.name = "a session of 210 bytes", .session = X210},
    {.name = "a session with a control character", .session = "b\033ad"},
    {.name = "a parent that is a path", .session = "bad", .fork = "../good", .fork_seq = 2},
    {.name = "a parent of 210 bytes", .session = "bad", .fork = X210, .fork_seq = 2},
    {.name = "a parent that does not exist", .session = "bad", .fork = "none", .fork_seq = 2},
    {.name = "itself as its parent", .session = "bad", .fork = "bad", .fork_seq = 2},
    {.name = "a fork before the first event", .session = "bad", .fork = "good"},
    {.name = "a fork after the last seq", .session = "bad", .fork = "good", .fork_seq = UINT64_MAX},
};

struct forgery {
    const struct codec *codec;
    struct buf bytes;
    uint64_t h, seq;
};

static void forge_header(struct forgery *forgery, const struct frame_header *header)
{
    ck_assert_int_eq(forgery->codec->encode_header(&forgery->bytes, header, &forgery->h), 0);
    forgery->seq = header->fork_seq;
}

static void forge_event(struct forgery *forgery, const annal_draft *given, uint64_t seq)
{
    annal_draft draft = *given;
    bool json = forgery->codec->format == ANNAL_FORMAT_JSON;
    if (draft.type.len == 0)
        draft.type = ANNAL_SLICE("message.user");
    draft.data_format = forgery->codec->format;
    if (draft.data.len == 0)
        draft.data =
            json ? ANNAL_SLICE("{\"text\":\"tide\"}") : ANNAL_SLICE("\x81\xa4text\xa4tide");
    const struct frame_place place = {
        .seq = seq, .ts_us = draft.ts_us, .offset = forgery->bytes.len, .h_before = forgery->h};
    ck_assert_int_eq(forgery->codec->encode_event(&forgery->bytes, &draft, &place, &forgery->h), 0);
}

/* Data of the event; built in room if the table does not give it. */
static annal_slice odd_data(size_t i, bool json, char room[400 << 10])
{
    if (events[i].depth > 0) {
        memset(room, json ? '[' : '\x91', events[i].depth);
        memset(room + events[i].depth, json ? ']' : '\x01', json ? events[i].depth : 1);
        return (annal_slice){room, events[i].depth + (json ? events[i].depth : 1)};
    }
    if (!events[i].long_data || !json)
        return annal_slice_of(json || events[i].msgpack == NULL ? events[i].data
                                                                : events[i].msgpack);
    size_t len = 300 << 10;
    memset(room, 'x', len);
    memcpy(room, "[\"", 2);
    return (annal_slice){room, len + (size_t)sprintf(room + len, "\",%s]", events[i].data)};
}

static const char *journal_of(const struct codec *codec)
{
    char inside[40];
    snprintf(inside, sizeof inside, "store/events/bad%s", codec->suffix);
    return tmpdir_path(&cli.dir, inside);
}

/* Write it to events/, as the journal of session bad. */
static void put_journal(struct forgery *forgery)
{
    file_write(journal_of(forgery->codec), forgery->bytes.ptr, forgery->bytes.len);
    annal__buf_done(&forgery->bytes);
}

static void take_journal(const struct codec *codec)
{
    ck_assert_int_eq(remove(journal_of(codec)), 0);
}

static void begin(void)
{
    DONE_WITH(&cli, "{\"text\":\"a harbour\"}\n{\"text\":\"two\"}\n", "append", "good", "--type",
              "message.user");
}

/* Verbs to run: each must exit with status 0 or 1, and answer for the sound session. */
static const struct {
    const char *words[6];
    const char *answer; /* of the session good */
    /* reports damage, with exit status 1: of a line; of a whole journal */
    bool names_line, names_journal;
} questions[] = {
    {.words = {"ls"}, .answer = "good", .names_line = true},
    {.words = {"ls", "--json"}, .answer = "\"good\"", .names_line = true},
    {.words = {"show", "good"}, .answer = "good"},
    {.words = {"query"}, .answer = "harbour", .names_line = true},
    {.words = {"query", "--count"}, .names_line = true},
    {.words = {"sql", "--format", "jsonl",
               "SELECT count(*) AS n FROM events WHERE "
               "session_id = 'good'"},
     .answer = "{\"n\":2}"},
    {.words = {"sql", "SELECT count(*) FROM events"}, .names_line = true},
    {.words = {"sql", "SELECT type, count(*) FROM event_index GROUP BY 1"}, .names_line = true},
    {.words = {"query", "--group-by", "type"}, .names_line = true},
    {.words = {"search", "harbour"}, .answer = "harbour"},
    {.words = {"report"}, .answer = "good", .names_line = true},
    {.words = {"stats"}},
    {.words = {"run", "ls"}},
    {.words = {"replay", "good"}},
    {.words = {"export", "--format", "jsonl"}, .answer = "harbour"},
    {.words = {"export", "good", "--format", "html"}, .answer = "harbour"},
    {.words = {"reindex"}},
    {.words = {"pack", "list"}},
    {.words = {"snapshot", "list", "good"}},
    {.words = {"artifact", "sweep", "--dry-run"}},
    {.words = {"doctor"}, .answer = "bad", .names_line = true, .names_journal = true},
    {.words = {"verify"}, .answer = "bad", .names_line = true, .names_journal = true},
    /* the damaged session */
    {.words = {"show", "bad"}, .names_line = true},
    {.words = {"show", "bad", "--json"}, .names_line = true},
    {.words = {"query", "bad", "--json"}, .names_line = true},
    {.words = {"cat", "bad"}},
    {.words = {"tail", "bad", "--from", "1"}},
    {.words = {"replay", "bad"}},
    {.words = {"diff", "bad", "1", "2"}},
    {.words = {"export", "bad", "--format", "markdown"}},
    {.words = {"repair", "bad", "--dry-run"}},
    {.words = {"fork", "bad", "--at", "1", "--to", "child"}},
};

/* Run verify, doctor and a tenth of the questions; in a full run, all of them. */
static void ask(const char *name, bool of_line)
{
    static size_t turn;
    size_t every = full_or(1, 10);
    turn++;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        if (i % every != turn % every && !questions[i].names_journal)
            continue;
        const char *verb = questions[i].words[0];
        cli_run(&cli, NULL, questions[i].words);
        ck_assert_msg(cli.exit_status >= 0 && cli.exit_status <= 3 &&
                          strstr(cli.err, "must hold") == NULL,
                      "%s: annal %s ended with %d: %s", name, verb, cli.exit_status, cli.err);
        if (questions[i].answer != NULL)
            ck_assert_msg(strstr(cli.out, questions[i].answer) != NULL,
                          "%s: annal %s does not say '%s' but %s, %s", name, verb,
                          questions[i].answer, cli.out, cli.err);
        if (of_line ? questions[i].names_line : questions[i].names_journal)
            ck_assert_msg(cli.exit_status == EXIT_REFUSED &&
                              (strstr(cli.out, "bad") != NULL || strstr(cli.err, "bad") != NULL),
                          "%s: annal %s %s ended with %d: %s%s", name, verb,
                          questions[i].words[1] == NULL ? "" : questions[i].words[1],
                          cli.exit_status, cli.out, cli.err);
        if (of_line && questions[i].names_line && strstr(name, "data") != NULL &&
            strcmp(verb, "doctor") != 0)
            ck_assert_msg(strstr(cli.out, "event 3") != NULL || strstr(cli.err, "event 3") != NULL,
                          "%s: annal %s names no event: %s", name, verb, cli.err);
    }
}

static void ck_count(const char *name, unsigned lost)
{
    char want[20];
    snprintf(want, sizeof want, "{\"n\":%u}\n", 5 - lost);
    CLI(&cli, NULL, "sql", "--format", "jsonl",
        "SELECT count(*) AS n FROM events WHERE session_id = 'bad'");
    ck_assert_msg(strcmp(cli.out, want) == 0, "%s: %s, not %s", name, cli.out, want);
}

START_TEST(a_malformed_line_with_a_valid_hash_costs_only_itself)
{
    char *room = malloc(400 << 10);
    begin();
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        for (size_t format = 0; format < CODEC_COUNT; format++) {
            struct forgery forgery = {.codec = annal__codecs[format]};
            if (events[i].msgpack_only && forgery.codec->format == ANNAL_FORMAT_JSON)
                continue;
            const annal_draft sound = {.ts_us = 1};
            const annal_draft odd = {.type = annal_slice_of(events[i].type),
                                     .id = annal_slice_of(events[i].id),
                                     .cause = annal_slice_of(events[i].cause),
                                     .data = odd_data(i, format == 0, room),
                                     .ts_us = events[i].ts_us != 0 ? events[i].ts_us : 1};
            forge_header(&forgery, &(struct frame_header){.session = ANNAL_SLICE("bad")});
            for (uint64_t seq = 1; seq <= 5; seq++)
                forge_event(&forgery, seq == 3 ? &odd : &sound,
                            seq == 3 && events[i].seq > 0 ? events[i].seq : seq);
            put_journal(&forgery);
            ck_count(events[i].name, events[i].lost);
            ask(events[i].name, true);
            DONE_WITH(&cli, "1\n", "append", "bad", "--type", "after");
            ck_assert_str_eq(cli.out, "{\"seq\":6}\n");
            take_journal(annal__codecs[format]);
        }
    free(room);
}
END_TEST

START_TEST(a_malformed_header_with_a_valid_hash_costs_only_its_session)
{
    begin();
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        for (size_t format = 0; format < CODEC_COUNT; format++) {
            struct forgery forgery = {.codec = annal__codecs[format]};
            const annal_draft sound = {.ts_us = 1};
            forge_header(&forgery,
                         &(struct frame_header){.session = annal_slice_of(headers[i].session),
                                                .fork = annal_slice_of(headers[i].fork),
                                                .fork_seq = headers[i].fork_seq});
            for (uint64_t seq = 1; seq <= 3; seq++)
                forge_event(&forgery, &sound, headers[i].fork_seq + seq);
            put_journal(&forgery);
            ask(headers[i].name, false);
            take_journal(annal__codecs[format]);
        }
}
END_TEST

Suite *suite_forged(void)
{
    Suite *suite = suite_create("forged");
    TCase *tests = suite_case(suite, "lines", cli_setup, cli_teardown);
    tcase_add_test(tests, a_malformed_line_with_a_valid_hash_costs_only_itself);
    tcase_add_test(tests, a_malformed_header_with_a_valid_hash_costs_only_its_session);
    return suite;
}
