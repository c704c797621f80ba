/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/wipe.h"
#include "journal/sys/artifact.h"
#include "journal/sys/delete.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "index/index.h"
#include "index/search/search_words.h"

#include <annal/artifact.h>
#include <annal/search.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000LL
#define START  (1767684240 * SECOND)

static int put_hit(void *arg, const annal_search_hit *hit)
{
    char one[4096];
    snprintf(one, sizeof one, "%.*s:%llu %.*s/%.*s %.*s\n", ANNAL_FMT(hit->session),
             (unsigned long long)hit->seq, ANNAL_FMT(hit->role), ANNAL_FMT(hit->tool),
             ANNAL_FMT(hit->snippet));
    text_add(arg, one, strlen(one));
    return 0;
}

/* List every hit as "session:seq role/tool snippet", newest first. free() it. */
static char *found(annal_search_options options)
{
    struct text text = {0};
    annal_lag lag;
    text_add(&text, "", 0);
    options.mark_begin = "<";
    options.mark_end = ">";
    ck_ok(annal_search_each(f.index, &options, put_hit, &text, &lag, err));
    ck_assert_uint_eq(lag.bytes, 0);
    return text.ptr;
}

#define ck_found_by(order_, f, expected, ...)                                                      \
    do {                                                                                           \
        const annal_search_options options_ = {.order = (order_), __VA_ARGS__};                    \
        char *got_ = found(options_);                                                              \
        ck_assert_str_eq(got_, expected);                                                          \
        free(got_);                                                                                \
    } while (0)
#define ck_found(...) ck_found_by(ANNAL_SEARCH_NEWEST, __VA_ARGS__)

/* One word or phrase. */
#define WORD(text) .words = (const annal_slice[]){{text, sizeof text - 1}}, .word_count = 1

/* Append a session: a user asks, the assistant calls a tool, the tool answers. */
static void talk(const char *session, int64_t from_us)
{
    fixture_append_at(&f, session, "message.added",
                      "{\"role\":\"user\",\"content\":\"Why is high water late?\"}", from_us);
    fixture_append_at(&f, session, "message.added",
                      "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
                      "\"I look for the \\u201cclock\\u201d.\"}]}",
                      from_us + SECOND);
    fixture_append_at(
        &f, session, "tool.called",
        "{\"call_id\":\"c1\",\"tool\":\"grep\",\"input\":{\"pattern\":\"localtime\"}}",
        from_us + 2 * SECOND);
    fixture_append_at(
        &f, session, "tool.returned",
        "{\"call_id\":\"c1\",\"output\":\"src/table.py:\\n  localtime of high water\","
        "\"source\":{\"file\":\"water.jsonl\"},\"extra\":{\"note\":\"clock\"}}",
        from_us + 3 * SECOND);
}

START_TEST(words_of_messages_and_of_tool_results_are_found)
{
    talk("s", START);
    ck_found(&f,
             "s:4 tool/grep src/table.py:\n  localtime of high <water>\n"
             "s:1 user/ Why is high <water> late?\n",
             WORD("WATER"));
    ck_found(&f, "s:1 user/ Why is <high water late>?\n", WORD("high water late"));
    ck_found(&f, "", WORD("water high"));
    ck_found(&f, "s:2 assistant/ I look for the “<clock>”.\n", WORD("clock"));
    ck_found(&f, "s:4 tool/grep src/<table>.py:\n  localtime of high water\n", WORD("tab*"));
    ck_found(&f, "", WORD("tab"));
    ck_found(&f, "s:1 user/ Why is <high> water <late>?\n",
             .words =
                 (const annal_slice[]){ANNAL_SLICE("late"), ANNAL_SLICE("?"), ANNAL_SLICE("high")},
             .word_count = 3);
    ck_found(&f, "s:2 assistant/ I look for the “<clock>”.\n",
             .expression = ANNAL_SLICE("(clock OR nothing) NOT water"));
}
END_TEST

START_TEST(filters_narrow_the_hits)
{
    const annal_slice t = ANNAL_SLICE("t"), called = ANNAL_SLICE("tool.c*");
    talk("s", START);
    talk("t", START + 60 * SECOND);
    ck_found(&f, "t:1 user/ Why is high <water> late?\ns:1 user/ Why is high <water> late?\n",
             WORD("water"), .role = ANNAL_SLICE("user"));
    ck_found(&f, "t:1 user/ Why is high <water> late?\n", WORD("water"), .sessions = &t,
             .session_count = 1, .role = ANNAL_SLICE("user"));
    ck_found(&f, "t:4 tool/grep src/table.py:\n  <localtime> of high water\n", WORD("localtime"),
             .tool = ANNAL_SLICE("grep"), .limit = 1);
    ck_found(&f, "t:3 assistant/grep grep\n<localtime>\ns:3 assistant/grep grep\n<localtime>\n",
             WORD("localtime"), .types = &called, .type_count = 1);
    ck_found(&f, "s:1 user/ Why is high <water> late?\n", WORD("water"), .since_us = START,
             .until_us = START + SECOND);
    ck_found(&f, "", WORD("water"), .tool = ANNAL_SLICE("sed"));
}
END_TEST

START_TEST(a_search_covers_every_event_appended_before_it)
{
    ck_found(&f, "", WORD("ebb"));
    fixture_append_at(&f, "s", "note", "{\"text\":\"ebb and flow\"}", START);
    ck_found(&f, "s:1 / <ebb> and flow\n", WORD("ebb"));
    fixture_append_at(&f, "s", "note", "\"the ebb\"", START + 1);
    ck_found(&f, "s:2 / the <ebb>\ns:1 / <ebb> and flow\n", WORD("ebb"));
    fixture_reopen(&f, NULL);
    ck_found(&f, "s:2 / the <ebb>\ns:1 / <ebb> and flow\n", WORD("ebb"));
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/search.db")), 0);
    ck_found(&f, "s:2 / the <ebb>\ns:1 / <ebb> and flow\n", WORD("ebb"));
}
END_TEST

/* A shared event belongs to the parent; the history of the fork includes it. */
START_TEST(a_search_of_a_fork_covers_shared_events)
{
    const annal_slice fork = ANNAL_SLICE("fork"), s = ANNAL_SLICE("s");
    fixture_append_at(&f, "s", "note", "{\"text\":\"tide one\"}", START);
    fixture_append_at(&f, "s", "note", "{\"text\":\"tide two\"}", START + 1);
    ck_ok(annal_session_fork(f.store, s, 1, fork, NULL, NULL, err));
    fixture_append_at(&f, "fork", "note", "{\"text\":\"tide three\"}", START + 2);
    ck_found(&f, "fork:2 / <tide> three\ns:1 / <tide> one\n", WORD("tide"), .sessions = &fork,
             .session_count = 1);
    ck_found(&f, "s:2 / <tide> two\ns:1 / <tide> one\n", WORD("tide"), .sessions = &s,
             .session_count = 1);
}
END_TEST

START_TEST(outputs_that_became_artifacts_are_searched)
{
    struct text output = {0};
    annal_slice data;
    text_add(&output, "{\"output\":\"", 11);
    for (int i = 0; i < 2000; i++)
        text_add(&output, "the same line over and over\\n", 29);
    text_add(&output, "the \\\"needle\\\"\"}", 16);
    ck_ok(annal__artifact_externalize(f.store, ANNAL_SLICE("s"), "output", 1000,
                                      (annal_slice){output.ptr, output.len}, &data, err));
    ck_assert_uint_gt(data.len, 0);
    char *copy = strndup(data.ptr, data.len);
    ck_assert_ptr_null(strstr(copy, "needle"));
    fixture_append_at(&f, "s", "tool.returned", copy, START);
    ck_found(&f, "s:1 tool/ …and over\nthe \"<needle>\"\n", WORD("needle"), .snippet_words = 4);
    free(copy);
    annal_free(data.ptr);
    free(output.ptr);
}
END_TEST

START_TEST(images_names_of_members_and_sources_are_not_searched)
{
    struct text hashes = {0};
    char image[2048] = "{\"image\":\"data:image/png;base64,needle/";
    size_t len = strlen(image);
    memset(image + len, 'A', 1000);
    memcpy(image + len + 1000, "+needle\"}", 10);
    fixture_append_at(&f, "s", "a", image, START);
    fixture_append_at(&f, "s", "a", "{\"needle\":1,\"n\":[{\"needle\" : 2}]}", START);
    fixture_append_at(&f, "s", "a", "{\"source\":{\"f\":\"needle\"},\"extra\":{\"x\":\"needle\"}}",
                      START);
    ck_found(&f, "", WORD("needle"));
    struct text lines = {0}; /* as base64 -w 76 writes them */
    text_add(&lines, "{\"image\":\"", 10);
    for (int i = 0; i < 10; i++) {
        char line[80];
        memset(line, 'z', 76);
        memcpy(line, "needle+", 7);
        memcpy(line + 76, "\\n", 2);
        text_add(&lines, line, 78);
    }
    text_add(&lines, "abc=\"}", 6);
    fixture_append_at(&f, "s", "a", lines.ptr, START);
    free(lines.ptr);
    ck_found(&f, "", WORD("needle"));
    /* Hashes are text. */
    text_add(&hashes, "{\"output\":\"", 11);
    for (int i = 0; i < 20; i++)
        text_add(&hashes, "6f1ed002ab5595859014ebf0951522d94ad0ffa3\\n", 42);
    text_add(&hashes, "apple\\npear\"}", 13);
    fixture_append_at(&f, "t", "a", hashes.ptr, START);
    free(hashes.ptr);
    ck_found(&f, "t:1 / …apple\n<pear>\n", WORD("pear"), .snippet_words = 2);
    fixture_append_at(&f, "s", "a", "{\"source\":\"needle one\"}", START);
    fixture_append_at(&f, "s", "import.record", "{\"extra\":{\"x\":\"needle two\"}}", START + 1);
    fixture_append_at(&f, "s", "a", "{\"x\":\"\\ud800 needle three\"}", START + 2);
    ck_found(&f, "s:7 / \xef\xbf\xbd <needle> three\ns:5 / <needle> one\n", WORD("needle"));
}
END_TEST

START_TEST(messages_rank_before_bookkeeping_and_records_need_a_filter)
{
    static const char kept[] = "{\"extra\":{\"branch\":\"needle needle needle\"}}";
    const annal_slice records = ANNAL_SLICE("import.*");
    fixture_append_at(
        &f, "s", "message.added",
        "{\"role\":\"user\",\"content\":\"a needle in a stack of hay, long as it is\"}", START);
    fixture_append_at(&f, "s", "session.updated", "{\"set\":{\"git_branch\":\"needle\"}}",
                      START + 1);
    for (int i = 2; i < 10; i++)
        fixture_append_at(&f, "s", "import.record", kept, START + i);
    fixture_append_at(&f, "s", "agent.turn.usage", "{\"model\":\"needle\"}", START + 10);
    ck_found_by(ANNAL_SEARCH_BEST, &f, "s:1 user/ a <needle> in…\ns:2 / <needle>\n", WORD("needle"),
                .snippet_words = 3);
    ck_found_by(ANNAL_SEARCH_BEST, &f, "s:1 user/ a <needle> in…\n", WORD("needle"),
                .bookkeeping = true, .limit = 1, .snippet_words = 3);
    ck_found(&f, "s:11 / <needle>\n", WORD("needle"), .bookkeeping = true, .limit = 1);
    ck_found(&f, "s:10 / <needle> <needle> <needle>\n", WORD("needle"), .types = &records,
             .type_count = 1, .limit = 1);
}
END_TEST

/* Each listed part finds its text, and is marked in the snippet. */
START_TEST(parts_of_two_letters_are_found_in_scripts_without_spaces)
{
    static const struct {
        const char *text, *question, *snippet;
    } cases[] = {
        {"明天下午开会议讨论码头", "会议", "明天下午开<会议>讨论码头"},
        {"明天下午开会议讨论码头", "午开会", "明天下<午开会>议讨论码头"},
        {"明天下午开会议讨论码头", "码头", "明天下午开会议讨论<码头>"},
        {"明天下午开会议讨论码头", "头", "明天下午开会议讨论<码头>"},
        {"明天下午开会议讨论码头", "讨", "明天下午开会议<讨论>码头"},
        {"步骤2 重跑gen-itgc后五十条", "步骤2", "<步骤2> 重跑gen-itgc后五十条"},
        {"步骤2 重跑gen-itgc后五十条", "骤2", "<步骤2> 重跑gen-itgc后五十条"},
        {"步骤2 重跑gen-itgc后五十条", "跑gen", "步骤2 <重跑gen>-itgc后五十条"},
        {"步骤2 重跑gen-itgc后五十条", "itgc", "步骤2 重跑gen-<itgc>后五十条"},
        {"満潮の時刻表をYouer端末で", "youer", "満潮の時刻表を<Youer>端末で"},
        {"満潮の時刻表をYouer端末で", "ｙｏｕｅｒ端末", "満潮の時刻表を<Youer端末>で"},
        {"부두의만조시간을", "시간", "부두의만조<시간>을"},
        {"น้ำขึ้นสูงสุดตอนเที่ยง", "ตอน", "น้ำขึ้นสูงสุด<ตอน>เที่ยง"},
        {"ဆိပ်ကမ်းသို့", "ကမ်း", "ဆိပ်<ကမ်း>သို့"},
    };
    char data[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text expected = {0};
        const annal_slice word = annal_slice_of(cases[i].question);
        char session[16], line[512];
        snprintf(session, sizeof session, "s%zu", i);
        snprintf(data, sizeof data, "{\"text\":\"%s\"}", cases[i].text);
        fixture_append_at(&f, session, "a", data, START);
        snprintf(line, sizeof line, "%s:1 / %s\n", session, cases[i].snippet);
        text_add(&expected, line, strlen(line));
        const annal_slice only = annal_slice_of(session);
        ck_found(&f, expected.ptr, .words = &word, .word_count = 1, .sessions = &only,
                 .session_count = 1, .snippet_words = 40);
        free(expected.ptr);
    }
}
END_TEST

START_TEST(a_text_is_found_in_any_normal_form_with_and_without_accents)
{
    static const char *const same[][4] = {
        {"café", "cafe\xcc\x81", "cafe", "CAFÉ"},
        {"각", "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "각", "각"},
        {"ガギ", "カ\xe3\x82\x99キ\xe3\x82\x99", "ｶﾞｷﾞ", "ガギ"},
        {"file", "ﬁle", "ｆｉｌｅ", "FILE"},
        {"Straße", "strasse", "STRASSE", "straẞe"},
        {"Łódź", "lodz", "ŁÓDŹ", "lódź"},
        {"Đường", "duong", "ĐƯỜNG", "đuong"},
        {"Ørsted", "orsted", "ørsted", "ØRSTED"},
        {"œuvre", "oeuvre", "ŒUVRE", "Oeuvre"},
        {"Æsir", "aesir", "ǽsir", "AESIR"},
        {"שלום", "שָׁלוֹם", "שלום", "שלום"},
        {"हिन्दी", "हिन्दी", "हिन्दी", "हिन्दी"},
    };
    char data[256];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (size_t j = 0; j < 4; j++) {
            snprintf(data, sizeof data, "{\"text\":\"%s\"}", same[i][j]);
            fixture_append_at(&f, "s", "a", data, START);
        }
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (size_t j = 0; j < 4; j++) {
            const annal_slice word = annal_slice_of(same[i][j]);
            char *hits = found((annal_search_options){.words = &word, .word_count = 1});
            size_t lines = 0;
            for (const char *at = hits; (at = strchr(at, '\n')) != NULL; at++)
                lines++;
            ck_assert_msg(lines == 4, "'%s' has %zu hits: %s", same[i][j], lines, hits);
            free(hits);
        }
}
END_TEST

/* Neither half a pair of surrogates nor bytes that are not UTF-8 are letters or hide letters. */
START_TEST(words_after_escapes_and_halves_of_pairs_are_found)
{
    fixture_append_at(&f, "s", "a", "{\"x\":\"heron \\ud83d\\nmole\\tpier \\udc00\\udc00egret\"}",
                      START);
    ck_found(&f,
             "s:1 / heron \xef\xbf\xbd\n<mole>\tpier \xef\xbf\xbd\xef\xbf\xbd"
             "egret\n",
             WORD("mole"));
    ck_found(&f,
             "s:1 / heron \xef\xbf\xbd\nmole\t<pier> \xef\xbf\xbd\xef\xbf\xbd"
             "egret\n",
             WORD("pier"));
    ck_found(&f, "s:1 / heron \xef\xbf\xbd\nmole\tpier \xef\xbf\xbd\xef\xbf\xbd<egret>\n",
             WORD("egret"));
    ck_found(&f, "", WORD("nmole"));
}
END_TEST

/* As in code: a backslash and a letter instead of a line break. */
START_TEST(words_after_a_backslash_and_a_letter_are_found)
{
    fixture_append_at(&f, "s", "a", "{\"x\":\"puts(\\\"heron\\\\nmole\\\\tpier\\\") C:\\\\new\"}",
                      START);
    ck_found(&f, "s:1 / puts(\"heron\\<nmole>\\tpier\") C:\\new\n", WORD("mole"));
    ck_found(&f, "s:1 / puts(\"heron\\nmole\\<tpier>\") C:\\new\n", WORD("pier"));
    ck_found(&f, "s:1 / puts(\"heron\\nmole\\tpier\") C:\\<new>\n", WORD("new"));
}
END_TEST

/* The letter that ends such a sequence is not a letter of the next word. */
START_TEST(words_between_colours_of_a_terminal_are_found)
{
    fixture_append_at(&f, "s", "a",
                      "{\"x\":\"\\u001b[1;31mFAILED\\u001b[0m dock \\\\u001b[31mpier\\\\x1b[0m\"}",
                      START);
    ck_found(&f, "s:1 / \033[1;31m<FAILED>\033[0m dock \\u001b[31mpier\\x1b[0m\n", WORD("failed"));
    ck_found(&f, "s:1 / \033[1;31mFAILED\033[0m dock \\u001b[31m<pier>\\x1b[0m\n", WORD("pier"));
}
END_TEST

/* A character may have any number of marks, and a word any length. */
START_TEST(a_long_row_of_marks_and_a_long_word_are_one_word_each)
{
    struct text data = {0};
    text_add(&data, "{\"text\":\"o", 10);
    for (int i = 0; i < 5000; i++)
        text_add(&data, "\xcc\x81", 2);
    text_add(&data, "k ", 2);
    for (int i = 0; i < 5000; i++)
        text_add(&data, "z", 1);
    text_add(&data, " end\"}", 6);
    fixture_append_at(&f, "s", "a", data.ptr, START);
    free(data.ptr);
    char *hits = found((annal_search_options){WORD("ok"), .snippet_words = 1});
    ck_assert_int_eq(strncmp(hits, "s:1 / <o", 8), 0);
    free(hits);
    ck_found(&f, "s:1 / …<end>\n", WORD("end"), .snippet_words = 1);
}
END_TEST

/* FTS5's own snippet() takes minutes of processor time for this. */
START_TEST(the_time_of_a_snippet_is_linear_in_its_text)
{
    enum { REPEATED = 60000 };
    struct timespec begun, ended;
    struct text noise = {0};
    text_add(&noise, "{\"output\":\"", 11);
    for (int i = 0; i < REPEATED; i++)
        text_add(&noise, "needle hay ", 11);
    text_add(&noise, "straw\"}", 7);
    fixture_append_at(&f, "s", "tool.returned", noise.ptr, START);
    free(noise.ptr);
    ck_found(&f, "s:1 tool/ …hay needle hay <straw>\n", WORD("straw"), .snippet_words = 4);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
    ck_found(&f, "s:1 tool/ <needle> hay <needle>…\n", WORD("needle"), .snippet_words = 3);
    ck_found(&f, "s:1 tool/ <needle> <hay> <needle>…\n", .snippet_words = 3,
             .words = (const annal_slice[]){ANNAL_SLICE("hay"), ANNAL_SLICE("needle")},
             .word_count = 2);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    ck_assert_int_lt(ended.tv_sec - begun.tv_sec, 10);
}
END_TEST

/* ---- Sessions ---- */

static int put_session(void *arg, const annal_search_session *session)
{
    char one[8192];
    snprintf(one, sizeof one, "%.*s: %.*s\n", ANNAL_FMT(session->session), ANNAL_FMT(session->why));
    text_add(arg, one, strlen(one));
    for (size_t i = 0; i < session->place_count; i++) {
        const annal_search_hit *hit = &session->places[i];
        ck_assert(annal_slice_of("").len == 0 && hit->session.len == session->session.len);
        snprintf(one, sizeof one, "  %llu %.*s\n", (unsigned long long)hit->seq,
                 ANNAL_FMT(hit->snippet));
        text_add(arg, one, strlen(one));
    }
    return 0;
}

/* List every session as "session: why" and its places as "  seq snippet", best first. free() it. */
static char *ranked(annal_search_options options)
{
    struct text text = {0};
    annal_lag lag;
    text_add(&text, "", 0);
    options.mark_begin = "<";
    options.mark_end = ">";
    ck_ok(annal_search_session_each(f.index, &options, put_session, &text, &lag, err));
    ck_assert_uint_eq(lag.bytes, 0);
    return text.ptr;
}

#define ck_ranked(expected, ...)                                                                   \
    do {                                                                                           \
        const annal_search_options options_ = {__VA_ARGS__};                                       \
        char *got_ = ranked(options_);                                                             \
        ck_assert_str_eq(got_, expected);                                                          \
        free(got_);                                                                                \
    } while (0)
#define WORDS(...)                                                                                 \
    .words = (const annal_slice[]){__VA_ARGS__},                                                   \
    .word_count = sizeof((const annal_slice[]){__VA_ARGS__}) / sizeof(annal_slice)

static void note(const char *session, const char *text)
{
    char data[1024];
    snprintf(data, sizeof data, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    fixture_append_at(&f, session, "message.added", data, START);
}

/* The session with both words is first; then follows the session with the rarer word. */
START_TEST(sessions_are_ranked_by_rare_words_and_by_their_best_event)
{
    note("a", "the tide table");
    note("b", "the tide is late");
    note("b", "the harbour is empty");
    note("c", "the tide and the harbour");
    note("d", "the tide");
    ck_ranked("c: tide in 1 event, harbour in 1; 2 of 2 in event 1\n"
              "  1 the <tide> and the <harbour>\n"
              "b: tide in 1 event, harbour in 1\n  2 the <harbour> is empty\n"
              "  1 the <tide> is late\n"
              "d: tide in 1 event\n  1 the <tide>\na: tide in 1 event\n  1 the <tide> table\n",
              WORDS(ANNAL_SLICE("the"), ANNAL_SLICE("tide"), ANNAL_SLICE("harbour")));
    ck_ranked("c: tide in 1 event, harbour in 1; 2 of 2 in event 1\n"
              "  1 the <tide> and the <harbour>\n",
              WORDS(ANNAL_SLICE("tide"), ANNAL_SLICE("harbour")), .limit = 1, .places = 1);
    /* common words count if all words are common */
    char *all = ranked((annal_search_options){WORDS(ANNAL_SLICE("the"))});
    ck_assert_ptr_nonnull(strstr(all, "the in 2 events"));
    free(all);
    /* a preferred session is before its equals */
    const annal_slice a = ANNAL_SLICE("a");
    char *near = ranked(
        (annal_search_options){WORDS(ANNAL_SLICE("tide")), .preferred = &a, .preferred_count = 1});
    ck_assert_int_eq(strncmp(near, "a: ", 3), 0);
    free(near);
}
END_TEST

START_TEST(a_word_is_found_in_the_forms_of_its_stem)
{
    note("a", "We migrated the tables.");
    note("b", "Studies of running water");
    ck_ranked("a: migrations in 1 event\n  1 We <migrated> the tables.\n",
              WORDS(ANNAL_SLICE("migrations")));
    ck_ranked("b: study in 1 event, runs in 1; 2 of 2 in event 1\n"
              "  1 <Studies> of <running> water\n",
              WORDS(ANNAL_SLICE("study"), ANNAL_SLICE("runs")));
    ck_ranked("", WORDS(ANNAL_SLICE("mig")));
    ck_ranked("a: mig in 1 event\n  1 We <migrated> the tables.\n", WORDS(ANNAL_SLICE("mig*")));
}
END_TEST

START_TEST(a_word_that_occurs_nowhere_is_read_as_a_word_with_another_letter)
{
    static const char *const typed[] = {"conection", "connnection", "connextion", "conneciton"};
    note("a", "connection refused");
    note("b", "connect");
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
        char expected[200];
        snprintf(expected, sizeof expected,
                 "a: %s, read as connection, in 1 event\n  1 <connection> refused\n", typed[i]);
        ck_ranked(expected, WORDS(annal_slice_of(typed[i])));
    }
    ck_ranked("", WORDS(ANNAL_SLICE("conetion")));
    /* a word that occurs is not taken for another */
    note("c", "conection");
    ck_ranked("c: conection in 1 event\n  1 <conection>\n", WORDS(ANNAL_SLICE("conection")));
}
END_TEST

START_TEST(a_name_is_found_as_a_whole_and_by_its_parts)
{
    note("a", "call parseHttpRequest(x)");
    note("b", "edit src/http/parse_request.py with --no-cache");
    note("c", "parse the request");
    note("d", "HTTPServer and sha256sum");
    ck_ranked("a: parse_http_request in 1 event\n  1 call <parseHttpRequest>(x)\n"
              "b: parts of the words\n  1 edit src/<http>/<parse>_<request>.py with --no-cache\n"
              "c: parts of the words\n  1 <parse> the <request>\n"
              "d: parts of the words\n  1 <HTTPServer> and sha256sum\n",
              WORDS(ANNAL_SLICE("parse_http_request")));
    ck_ranked("b: parse_request.py in 1 event\n"
              "  1 edit src/http/<parse_request.py> with --no-cache\n",
              WORDS(ANNAL_SLICE("parse_request.py")), .limit = 1);
    ck_ranked("b: --no-cache in 1 event\n"
              "  1 edit src/http/parse_request.py with --<no-cache>\n",
              WORDS(ANNAL_SLICE("--no-cache")), .limit = 1);
    ck_ranked("d: server in 1 event\n  1 <HTTPServer> and sha256sum\n",
              WORDS(ANNAL_SLICE("server")));
    ck_ranked("a: parseHTTPRequest in 1 event\n  1 call <parseHttpRequest>(x)\n",
              WORDS(ANNAL_SLICE("parseHTTPRequest")), .limit = 1);
    /* a list of events does not know other forms */
    ck_found(&f, "", WORD("parse http request"));
}
END_TEST

START_TEST(ranked_sessions_keep_to_the_filters)
{
    const annal_slice t = ANNAL_SLICE("t"), fork = ANNAL_SLICE("fork"),
                      called = ANNAL_SLICE("tool.c*");
    talk("s", START);
    talk("t", START + 60 * SECOND);
    fixture_append_at(&f, "s", "import.record", "{\"extra\":{\"note\":\"water\"}}", START);
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("s"), 1, fork, NULL, NULL, err));
    ck_ranked("t: water in 1 event\n  1 Why is high <water> late?\n", WORD("water"),
              .role = ANNAL_SLICE("user"), .sessions = &t, .session_count = 1);
    ck_ranked("s: water in 1 event\n  1 Why is high <water> late?\n", WORD("water"),
              .sessions = &fork, .session_count = 1);
    ck_ranked("t: localtime in 1 event\n  3 grep\n<localtime>\n"
              "s: localtime in 1 event\n  3 grep\n<localtime>\n",
              WORD("localtime"), .types = &called, .type_count = 1);
    ck_ranked("s: water in 1 event\n  1 Why is high <water> late?\n", WORD("water"),
              .since_us = START, .until_us = START + SECOND);
    ck_ranked("t: localtime in 1 event\n  4 src/table.py:\n  <localtime> of high water\n",
              WORD("localtime"), .tool = ANNAL_SLICE("grep"), .role = ANNAL_SLICE("tool"),
              .limit = 1);
    ck_ranked("", WORD("water"), .tool = ANNAL_SLICE("sed"));
    char *all = ranked((annal_search_options){WORD("water"), .bookkeeping = true});
    ck_assert_ptr_nonnull(strstr(all, "water in 3 events"));
    free(all);
}
END_TEST

/* The number of rows is divided among the words, and their latest events count. */
START_TEST(a_word_that_is_everywhere_costs_a_limited_number_of_rows)
{
    const annal_slice words[] = {ANNAL_SLICE("tide"), ANNAL_SLICE("harbour"), ANNAL_SLICE("pier"),
                                 ANNAL_SLICE("rope"), ANNAL_SLICE("sail"),    ANNAL_SLICE("mast")};
    for (int i = 0; i < 60; i++)
        fixture_append_at(&f, "s", "note", "{\"text\":\"tide harbour pier rope sail mast\"}",
                          START + i);
    note("t", "tide");
    f.index->search.rows_most = 300;
    uint64_t before = f.index->search.rows_read;
    char *got = ranked((annal_search_options){.words = words, .word_count = 6, .places = 1});
    ck_assert_uint_le(f.index->search.rows_read - before, 300);
    ck_assert_uint_ge(f.index->search.rows_read - before, 300);
    ck_assert_ptr_nonnull(strstr(got, "s: tide in 49 events, harbour in 50, "));
    free(got);
    before = f.index->search.rows_read;
    free(ranked((annal_search_options){.words = words, .word_count = 6, .tool = ANNAL_SLICE("x")}));
    ck_assert_uint_le(f.index->search.rows_read - before, 300);
}
END_TEST

START_TEST(switching_search_off_deletes_its_file_and_switching_it_on_rebuilds_it)
{
    const annal_search_options ebb = {WORD("ebb")};
    annal_search_info info;
    annal_error why = {0};
    struct text text = {0};
    fixture_append_at(&f, "s", "note", "{\"text\":\"ebb and flow\"}", START);
    ck_ok(annal_search_info_get(f.index, &info, err));
    ck_assert(info.on && !info.exists && info.documents == 0);
    ck_found(&f, "s:1 / <ebb> and flow\n", WORD("ebb"));
    ck_ok(annal_search_info_get(f.index, &info, err));
    ck_assert(info.on && info.exists && info.documents == 1 && info.bytes > 0);
    ck_ok(annal_search_enable(f.index, false, err));
    ck_assert_int_ne(access(tmpdir_path(&f.dir, "store/search.db"), F_OK), 0);
    ck_assert_int_eq(annal_search_each(f.index, &ebb, put_hit, &text, NULL, &why),
                     ANNAL_ERR_UNSUPPORTED);
    ck_assert_int_eq(annal_search_rebuild(f.index, NULL, &why), ANNAL_ERR_UNSUPPORTED);
    ck_ok(annal_search_info_get(f.index, &info, err));
    ck_assert(!info.on && !info.exists);
    ck_ok(annal_search_enable(f.index, true, err));
    ck_found(&f, "s:1 / <ebb> and flow\n", WORD("ebb"));
}
END_TEST

/* Dump the rows and words of search.db in a fixed order. free() it. */
static char *words_of(void)
{
    static const char sql[] =
        "SELECT term, s.session_id, d.id & (1 << 37) - 1, v.offset, d.timestamp, d.type, d.role, "
        "d.tool FROM v JOIN documents d ON d.id = v.doc JOIN sessions s ON s.number = d.id >> 37 "
        "ORDER BY 1, 2, 3, 4";
    struct text text = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    text_add(&text, "", 0);
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&f.dir, "store/search.db"), &db), SQLITE_OK);
    ck_ok(annal__search_words_add(db, err));
    ck_assert_int_eq(sqlite3_exec(db,
                                  "CREATE VIRTUAL TABLE temp.v USING "
                                  "fts5vocab(main, 'said', 'instance')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        for (int i = 0; i < 8; i++) {
            text_add(&text, (const char *)sqlite3_column_text(stmt, i),
                     (size_t)sqlite3_column_bytes(stmt, i));
            text_add(&text, i == 7 ? "\n" : "|", 1);
        }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return text.ptr;
}

/* Also after a session was pruned, or deleted and created again. */
START_TEST(the_search_index_equals_a_rebuild)
{
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        talk(name, START + i * SECOND);
        ck_found(&f, "", WORD("nothing"));
    }
    fixture_append(&f, "s1", "session.pruned", "{}");
    ck_found(&f, "", WORD("nothing"));
    fixture_append_at(&f, "s1", "note", "{\"text\":\"after all\"}", START);
    ck_ok(annal__search_forget(f.index, ANNAL_SLICE("s2"), err));
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s2"), NULL, err));
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s3"), NULL, err));
    talk("s3", START + 100 * SECOND);
    fixture_append_at(&f, "s3", "note", "{}", START); /* journals differ by their size */
    ck_found(&f, "", WORD("nothing"));
    char *grown = words_of();
    ck_assert_ptr_null(strstr(grown, "|s2|"));
    ck_assert_ptr_nonnull(strstr(grown, "water|s3|112|"));
    ck_ok(annal_search_rebuild(f.index, NULL, err));
    char *made = words_of();
    ck_assert_msg(strcmp(grown, made) == 0, "grown and made anew are not the same");
    free(grown);
    free(made);
}
END_TEST

/* The keeper updates the search index; before the first search, the index does not exist. */
START_TEST(the_keeper_updates_the_search_index_after_the_first_search)
{
    annal_search_info info;
    annal_index_close(f.index);
    ck_ok(annal_index_open(f.store, &(annal_index_options){.follow = true}, &f.index, err));
    fixture_append_at(&f, "s", "note", "{\"text\":\"ebb\"}", START);
    ck_ok(annal__index_follow(f.index, err));
    ck_ok(annal_search_info_get(f.index, &info, err));
    ck_assert(!info.exists);
    ck_found(&f, "s:1 / <ebb>\n", WORD("ebb"));
    fixture_append_at(&f, "s", "note", "{\"text\":\"flow\"}", START);
    fixture_append_at(&f, "t", "note", "{\"text\":\"flow\"}", START);
    annal_status status;
    while ((status = annal__index_follow(f.index, NULL)) == ANNAL_END)
        ;
    ck_assert_int_eq(status, ANNAL_OK);
    ck_ok(annal_search_info_get(f.index, &info, err));
    ck_assert_uint_eq(info.documents, 3);
    ck_ok(annal_search_enable(f.index, false, err));
    fixture_append_at(&f, "t", "note", "{\"text\":\"ebb\"}", START);
    ck_ok(annal__index_follow(f.index, err));
    ck_ok(annal_search_info_get(f.index, &info, err));
    ck_assert(!info.exists);
}
END_TEST

START_TEST(words_of_a_deleted_session_leave_the_file)
{
    fixture_append_at(&f, "s", "note", "{\"text\":\"xylophone\"}", START);
    fixture_append_at(&f, "t", "note", "{\"text\":\"zebra\"}", START);
    ck_found(&f, "s:1 / <xylophone>\n", WORD("xylophone"));
    ck_ok(annal__search_forget(f.index, ANNAL_SLICE("s"), err));
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s"), NULL, err));
    ck_found(&f, "", WORD("xylophone"));
    ck_found(&f, "t:1 / <zebra>\n", WORD("zebra"));
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&f.dir, "store/search.db"), &db), SQLITE_OK);
    ck_ok(annal__search_words_add(db, err));
    ck_assert_int_eq(
        sqlite3_exec(db, "CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, 'said', 'row')", NULL,
                     NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT group_concat(term) FROM v", -1, &stmt, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
    ck_assert_str_eq((const char *)sqlite3_column_text(stmt, 0), "zebra");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}
END_TEST

START_TEST(a_wrong_search_is_refused_with_a_reason)
{
    const struct {
        annal_search_options options;
        annal_status status;
        const char *says;
    } wrong[] = {
        {{.word_count = 0}, ANNAL_ERR_INVALID, "nothing to search for"},
        {{WORD("?!")}, ANNAL_ERR_INVALID, "nothing to search for"},
        {{.expression = ANNAL_SLICE("a AND (")}, ANNAL_ERR_SQL, "invalid search expression"},
        {{.expression = ANNAL_SLICE("nocolumn : a")}, ANNAL_ERR_SQL, "no such column"},
        {{WORD("a"), .sessions = (const annal_slice[]){{"../x", 4}}, .session_count = 1},
         ANNAL_ERR_INVALID,
         "session"},
    };
    talk("s", START);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        annal_error why = {0};
        struct text text = {0};
        ck_assert_int_eq(annal_search_each(f.index, &wrong[i].options, put_hit, &text, NULL, &why),
                         wrong[i].status);
        ck_assert_ptr_nonnull(strstr(why.message, wrong[i].says));
        ck_assert_ptr_null(text.ptr);
    }
    /* Operators of FTS5 have no meaning in words. */
    ck_found(&f, "", WORD("water\" OR \"clock"));
    ck_found(&f, "", WORD("AND"));
    ck_found(&f, "", WORD("text : clock NOT"));
}
END_TEST

START_TEST(an_overwritten_search_file_is_rebuilt)
{
    talk("s", START);
    ck_found(&f, "s:2 assistant/ I look for the “<clock>”.\n", WORD("clock"));
    fixture_reopen(&f, NULL);
    FILE *file = fopen(tmpdir_path(&f.dir, "store/search.db"), "r+");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 20000; i++)
        fputc('x', file);
    fclose(file);
    ck_found(&f, "s:2 assistant/ I look for the “<clock>”.\n", WORD("clock"));
}
END_TEST

/* ---- Embeddings ---- */

#define VECTOR(...)                                                                                \
    .vector_model = ANNAL_SLICE("m"), .vector = (const float[]){__VA_ARGS__},                      \
    .vector_count = sizeof((const float[]){__VA_ARGS__}) / sizeof(float)

static void embed(const char *session, uint64_t seq, float x, float y)
{
    const float values[] = {x, y};
    const annal_embedding embedding = {
        .seq = seq, .model = ANNAL_SLICE("m"), .values = values, .count = 2};
    ck_ok(annal_embedding_put(f.store, annal_slice_of(session), &embedding, 1, err));
}

START_TEST(a_vector_finds_what_shares_no_word)
{
    note("boats", "the ferry leaves at noon");
    note("trains", "the engine leaves at night");
    note("trains", "a quiet carriage");
    embed("boats", 1, 1, 0);
    embed("trains", 2, 0, 1);
    /* a vector alone, of events of other models and dimensions nothing */
    ck_ranked("boats: event 1 is near in meaning\n  1 the ferry leaves at noon\n"
              "trains: event 2 is near in meaning\n  2 a quiet carriage\n",
              VECTOR(1, 0.1f));
    ck_ranked("", .vector_model = ANNAL_SLICE("other"), .vector = (const float[]){1, 0},
              .vector_count = 2);
    ck_ranked("", VECTOR(1, 0, 0));
    /* words and a vector: the sum of both orders */
    ck_ranked("trains: night in 1 event; event 2 is near in meaning\n  1 the engine leaves at "
              "<night>\n  2 a quiet carriage\n"
              "boats: event 1 is near in meaning\n  1 the ferry leaves at noon\n",
              WORDS(ANNAL_SLICE("night")), VECTOR(1, 0.1f));
    const annal_slice boats = ANNAL_SLICE("boats");
    ck_ranked("boats: event 1 is near in meaning\n  1 the ferry leaves at noon\n", VECTOR(0, 1),
              .sessions = &boats, .session_count = 1);
    ck_ranked("", VECTOR(0, 1), .role = ANNAL_SLICE("assistant"));
}
END_TEST

START_TEST(vectors_outlive_the_search_index_and_end_with_their_session)
{
    note("boats", "the ferry leaves at noon");
    embed("boats", 1, 0, 1);
    embed("boats", 1, 1, 0); /* replaces the first */
    note("trains", "the engine leaves at night");
    embed("trains", 1, 1, 1);
    static const char found[] = "boats: event 1 is near in meaning\n  1 the ferry leaves at noon\n"
                                "trains: event 1 is near in meaning\n  1 the engine leaves at "
                                "night\n";
    ck_ranked(found, VECTOR(1, 0));
    ck_ok(annal_search_rebuild(f.index, NULL, err));
    ck_ranked(found, VECTOR(1, 0));
    ck_sql(&f, "SELECT last_activity_at = created_at FROM sessions WHERE id = 'boats'", "1\n");
    fixture_append(&f, "boats", "session.pruned", "{}");
    ck_ranked("trains: event 1 is near in meaning\n  1 the engine leaves at night\n", VECTOR(1, 0));
}
END_TEST

static const char *const no_vectors[] = {
    "{}",
    "[]",
    "{\"of\":1,\"model\":\"m\",\"vector\":\"AACAPw\"}",
    "{\"of\":1,\"model\":\"m\",\"vector\":\"AACA\"}",
    "{\"of\":9,\"model\":\"m\",\"vector\":\"AACAPwAAAAA=\"}",
    "{\"of\":1e300,\"model\":\"m\",\"vector\":\"AACAPwAAAAA=\"}",
    "{\"of\":\"1\",\"model\":\"m\",\"vector\":\"AACAPwAAAAA=\"}",
    "{\"of\":1,\"model\":7,\"vector\":\"AACAPwAAAAA=\"}",
    "{\"of\":1,\"model\":\"m\",\"vector\":\"AAAAAAAAAAA=\"}",
    "{\"of\":1,\"model\":\"m\",\"vector\":\"AADAfwAAwH8=\"}"};

START_TEST(an_event_without_a_valid_vector_is_found_by_no_vector)
{
    note("boats", "the ferry leaves at noon");
    fixture_append_at(&f, "boats", "embedding.added", no_vectors[_i], START);
    ck_ranked("", VECTOR(1, 0));
    ck_ranked("boats: ferry in 1 event\n  1 the <ferry> leaves at noon\n",
              WORDS(ANNAL_SLICE("ferry")), VECTOR(1, 0));
}
END_TEST

START_TEST(an_embedding_needs_an_event_a_model_and_finite_numbers)
{
    const float values[] = {1, INFINITY};
    const annal_slice boats = ANNAL_SLICE("boats"), m = ANNAL_SLICE("m");
    note("boats", "the ferry leaves at noon");
    ck_assert_int_eq(
        annal_embedding_put(f.store, boats, &(annal_embedding){1, m, values, 2}, 1, NULL),
        ANNAL_ERR_INVALID);
    ck_assert_int_eq(
        annal_embedding_put(f.store, boats, &(annal_embedding){1, m, values, 0}, 1, NULL),
        ANNAL_ERR_INVALID);
    ck_assert_int_eq(
        annal_embedding_put(f.store, boats, &(annal_embedding){1, {0}, values, 1}, 1, NULL),
        ANNAL_ERR_INVALID);
    ck_assert_int_eq(
        annal_embedding_put(f.store, boats, &(annal_embedding){2, m, values, 1}, 1, NULL),
        ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal_embedding_put(f.store, ANNAL_SLICE("x"),
                                         &(annal_embedding){1, m, values, 1}, 1, NULL),
                     ANNAL_ERR_NOTFOUND);
}
END_TEST

START_TEST(an_embedding_of_an_event_that_a_fork_shares_belongs_to_the_ancestor)
{
    const float values[] = {1, 0};
    const annal_slice m = ANNAL_SLICE("m");
    annal_error why = {0};
    note("boats", "the ferry leaves at noon");
    note("boats", "the ferry is late");
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("boats"), 1, ANNAL_SLICE("rafts"), NULL, NULL,
                             err));
    for (int own = 0; own < 2; own++) { /* without and with an event of its own */
        ck_assert_int_eq(annal_embedding_put(f.store, ANNAL_SLICE("rafts"),
                                             &(annal_embedding){1, m, values, 2}, 1, &why),
                         ANNAL_ERR_NOTFOUND);
        ck_assert_ptr_nonnull(strstr(why.message, "event 1 is in the journal of session 'boats'"));
        if (own == 0)
            note("rafts", "a raft leaves at dawn");
    }
    ck_assert_int_eq(annal_embedding_put(f.store, ANNAL_SLICE("rafts"),
                                         &(annal_embedding){3, m, values, 2}, 1, &why),
                     ANNAL_ERR_NOTFOUND);
    embed("rafts", 2, 1, 0);
    ck_ranked("rafts: event 2 is near in meaning\n  2 a raft leaves at dawn\n", VECTOR(1, 0));
}
END_TEST

Suite *suite_search(void)
{
    Suite *suite = suite_create("search");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, words_of_messages_and_of_tool_results_are_found);
    tcase_add_test(all, filters_narrow_the_hits);
    tcase_add_test(all, a_search_covers_every_event_appended_before_it);
    tcase_add_test(all, a_search_of_a_fork_covers_shared_events);
    tcase_add_test(all, outputs_that_became_artifacts_are_searched);
    tcase_add_test(all, images_names_of_members_and_sources_are_not_searched);
    tcase_add_test(all, messages_rank_before_bookkeeping_and_records_need_a_filter);
    tcase_add_test(all, parts_of_two_letters_are_found_in_scripts_without_spaces);
    tcase_add_test(all, a_text_is_found_in_any_normal_form_with_and_without_accents);
    tcase_add_test(all, words_after_escapes_and_halves_of_pairs_are_found);
    tcase_add_test(all, words_after_a_backslash_and_a_letter_are_found);
    tcase_add_test(all, words_between_colours_of_a_terminal_are_found);
    tcase_add_test(all, a_long_row_of_marks_and_a_long_word_are_one_word_each);
    tcase_add_test(all, the_time_of_a_snippet_is_linear_in_its_text);
    tcase_add_test(all, sessions_are_ranked_by_rare_words_and_by_their_best_event);
    tcase_add_test(all, a_word_is_found_in_the_forms_of_its_stem);
    tcase_add_test(all, a_word_that_occurs_nowhere_is_read_as_a_word_with_another_letter);
    tcase_add_test(all, a_name_is_found_as_a_whole_and_by_its_parts);
    tcase_add_test(all, ranked_sessions_keep_to_the_filters);
    tcase_add_test(all, a_word_that_is_everywhere_costs_a_limited_number_of_rows);
    tcase_add_test(all, switching_search_off_deletes_its_file_and_switching_it_on_rebuilds_it);
    tcase_add_test(all, the_search_index_equals_a_rebuild);
    tcase_add_test(all, the_keeper_updates_the_search_index_after_the_first_search);
    tcase_add_test(all, words_of_a_deleted_session_leave_the_file);
    tcase_add_test(all, a_wrong_search_is_refused_with_a_reason);
    tcase_add_test(all, an_overwritten_search_file_is_rebuilt);
    TCase *vectors = suite_case(suite, "vectors", fixture_setup, fixture_teardown);
    tcase_add_test(vectors, a_vector_finds_what_shares_no_word);
    tcase_add_test(vectors, vectors_outlive_the_search_index_and_end_with_their_session);
    tcase_add_loop_test(vectors, an_event_without_a_valid_vector_is_found_by_no_vector, 0,
                        sizeof no_vectors / sizeof *no_vectors);
    tcase_add_test(vectors, an_embedding_needs_an_event_a_model_and_finite_numbers);
    tcase_add_test(vectors, an_embedding_of_an_event_that_a_fork_shares_belongs_to_the_ancestor);
    return suite;
}
