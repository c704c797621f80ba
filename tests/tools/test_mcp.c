/* SPDX-License-Identifier: Apache-2.0 */
/* annal mcp by HTTP, long messages and answers, calls that run; the rest: commands/mcp.test */
#include "journal/base/json.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/mcp/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HELLO                                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"
#define MODERN                                                                                     \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

/* A request of the newest revision as a line. */
#define REQUEST(id, method, params)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params MODERN "}}" \
    "\n"
#define TOOL(id, name, arguments)                                                                  \
    REQUEST(id, "tools/call", "\"name\":\"" name "\",\"arguments\":{" arguments "},")

static void setup(void)
{
    static const char *const names[] = {"ANNAL_ASKING_SESSION", "CLAUDE_CODE_SESSION_ID",
                                        "CLAUDE_SESSION_ID",    "CODEX_THREAD_ID",
                                        "CLAUDE_CONFIG_DIR",    "CODEX_HOME",
                                        "XDG_CONFIG_HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    cli_setup();
}

static void add_sessions(void)
{
    DONE_WITH(&cli,
              "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"codex\",\"model\":\"m\","
              "\"working_directory\":\"/w/tides\"}}\n"
              "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\"}}\n"
              "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"why is the "
              "walrus late\"}}\n"
              "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"Bash\",\"input\":{"
              "\"command\":\"make walrus\"}}}\n",
              "append", "tides-1");
    DONE_WITH(&cli,
              "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"claude-code\"}}\n"
              "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"another "
              "walrus\"}}\n",
              "append", "moon-2");
}

/* Run annal mcp on these lines. */
static void run(const char *input)
{
    DONE_WITH(&cli, input, "mcp", "--all");
}

/* Return line number i of the output, with the escapes \n, \" and \\ of its strings decoded. */
static const char *line(int i)
{
    static char text[2000000];
    const char *at = cli.out, *end;
    for (; i > 0; i--) {
        at = strchr(at, '\n');
        ck_assert_ptr_nonnull(at);
        at++;
    }
    end = strchr(at, '\n');
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(annal__json_check((annal_slice){at, (size_t)(end - at)}, 100, NULL),
                     JSON_VALID);
    size_t len = 0;
    for (; at < end && len + 1 < sizeof text; at++) {
        bool escaped = *at == '\\' && (at[1] == 'n' || at[1] == '"' || at[1] == '\\');
        at += escaped;
        text[len++] = (char)(escaped && *at == 'n' ? '\n' : *at);
    }
    text[len] = '\0';
    return text;
}

static int lines(void)
{
    int count = 0;
    for (const char *at = cli.out; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

#define HAS(i, what)                                                                               \
    do {                                                                                           \
        const char *has_line = line(i);                                                            \
        ck_assert_msg(strstr(has_line, what) != NULL, "no '%s' in: %.3000s", what, has_line);      \
    } while (0)
#define LACKS(i, what) ck_assert_msg(strstr(line(i), what) == NULL, "'%s' in: %s", what, line(i))

/* ---- Messages ---- */

START_TEST(a_message_that_is_too_long_or_too_deep_is_refused)
{
    const size_t size = 3000000;
    char *input = malloc(size + 1000);
    size_t len = (size_t)sprintf(input, "%s", HELLO);
    memset(input + len, 'x', size);
    sprintf(input + len + size, "\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n");
    run(input);
    ck_assert_int_eq(lines(), 3);
    HAS(1, "-32700");
    HAS(2, "\"id\":5,\"result\":{}");
    /* The end of this line is in the piece with which it becomes too long. */
    const size_t longer = MCP_MESSAGE_BYTES + 100;
    len = (size_t)sprintf(input, "%s", HELLO);
    memset(input + len, 'x', longer);
    sprintf(input + len + longer, "\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n");
    run(input);
    ck_assert_int_eq(lines(), 3);
    HAS(1, "-32700");
    HAS(2, "\"id\":5,\"result\":{}");
    len = (size_t)sprintf(input, "%s", HELLO);
    memset(input + len, '[', 200);
    memset(input + len + 200, ']', 200);
    strcpy(input + len + 400, "\n");
    run(input);
    HAS(1, "-32700");
    free(input);
}
END_TEST

/* The client writes only after the server has read the bytes before. */
static void write_slowly(int to, const char *text)
{
    int unread = 1;
    ck_assert_int_eq(write(to, text, strlen(text)), (ssize_t)strlen(text));
    for (int tries = 0; unread > 0 && tries < 60000; tries++) {
        usleep(1000);
        ck_assert_int_eq(ioctl(to, FIONREAD, &unread), 0);
    }
    ck_assert_int_eq(unread, 0);
}

START_TEST(a_request_that_runs_is_stopped_when_it_is_cancelled)
{
    int to, from;
    char answer[4000];
    add_sessions();
    cli.own_program = true;
    pid_t pid = cli_start(&cli, (const char *[]){"mcp", "--all", NULL}, &to, &from);
    ck_assert_int_gt(pid, 0);
    write_slowly(to, TOOL("7", "sql",
                          "\"sql\":\"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM "
                          "n) SELECT count(*) FROM n\"") REQUEST("8", "tools/list", ""));
    write_slowly(to, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                     "\"requestId\":7}}\n");
    ssize_t len = read(from, answer, sizeof answer - 1);
    ck_assert_int_gt(len, 0);
    answer[len] = '\0';
    ck_assert_ptr_nonnull(strstr(answer, "\"id\":8,"));
    close(to);
    close(from);
}
END_TEST

/* Answer a message as POST /mcp does. Returns the HTTP status; cli.out has the answer. */
static unsigned post(const char *version, const char *method, const char *name, const char *body)
{
    struct buf out = {0};
    struct mcp mcp = {
        .over_http = true, .header_version = version, .header_method = method, .header_name = name};
    snprintf(mcp.version, sizeof mcp.version, "%s", version == NULL ? "" : version);
    unsigned status = mcp_rpc_answer(&mcp, annal_slice_of(body), &out);
    free(cli.out);
    cli.out = calloc(1, out.len + 2);
    if (out.len > 0)
        sprintf(cli.out, "%.*s\n", (int)out.len, out.ptr);
    annal__buf_done(&out);
    return status;
}

START_TEST(headers_by_http_must_agree_with_the_message)
{
    static const char newest[] = "2026-07-28", list[] = REQUEST("1", "tools/list", ""),
                      call[] = TOOL("1", "x y", "");
    ck_assert_uint_eq(post(newest, "tools/list", NULL, list), 200);
    ck_assert_uint_eq(post(newest, "\ttools/list ", NULL, list), 200);
    ck_assert_uint_eq(post(NULL, "tools/list", NULL, list), 400);
    HAS(0, "-32020");
    ck_assert_uint_eq(post("2025-11-25", "tools/list", NULL, list), 400);
    HAS(0, "-32020");
    ck_assert_uint_eq(post(newest, NULL, NULL, list), 400);
    ck_assert_uint_eq(post(newest, "Tools/List", NULL, list), 400);
    ck_assert_uint_eq(post(newest, "tools/call", NULL, call), 400);
    HAS(0, "-32020");
    ck_assert_uint_eq(post(newest, "tools/call", "x y", call), 200);
    HAS(0, "-32602");
    ck_assert_uint_eq(post(newest, "tools/call", "=?base64?eCB5?=", call), 200);
    ck_assert_uint_eq(post(newest, "tools/call", "=?base64?eCB6?=", call), 400);
    ck_assert_uint_eq(post(newest, "tools/call", "=?base64?*?=", call), 400);
    ck_assert_uint_eq(post(newest, "nope", NULL, REQUEST("1", "nope", "")), 404);
    ck_assert_uint_eq(
        post(newest, "ping", NULL, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), 400);
}
END_TEST

START_TEST(the_older_revisions_by_http_need_no_earlier_request)
{
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";
    ck_assert_uint_eq(post(NULL, NULL, NULL, list), 200);
    ck_assert_uint_eq(post("2025-11-25", NULL, NULL, list), 200);
    HAS(0, "\"name\":\"search\"");
    LACKS(0, "resultType");
    ck_assert_uint_eq(post(NULL, NULL, NULL, "{"), 400);
    ck_assert_uint_eq(post(NULL, NULL, NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"), 202);
    ck_assert_str_eq(cli.out, "");
    char batch[200];
    snprintf(batch, sizeof batch, "[%s]", list);
    ck_assert_uint_eq(post(NULL, NULL, NULL, batch), 200);
    ck_assert_uint_eq(post("2025-06-18", NULL, NULL, batch), 400);
    ck_assert_uint_eq(post("1999-01-01", NULL, NULL, list), 400);
}
END_TEST

/* ---- Tools ---- */

/* Return the handle after "continue: open " in an answer; NULL without a handle. */
static char *continuation(const char *text)
{
    static char handle[300];
    const char *at = strstr(text, "continue: open ");
    if (at == NULL)
        return NULL;
    snprintf(handle, sizeof handle, "%.*s", (int)strcspn(at + 15, "\n"), at + 15);
    return handle;
}

static void open_handle(const char *handle, int max_bytes)
{
    char input[1000];
    snprintf(input, sizeof input, TOOL("1", "open", "\"handle\":\"%s\",\"max_bytes\":%d"), handle,
             max_bytes);
    run(input);
    ck_assert_ptr_null(strstr(cli.out, "\"isError\":true"));
}

START_TEST(a_long_event_is_shown_whole_in_several_answers)
{
    char *content = malloc(40001), *input = malloc(41000), *shown = calloc(1, 100000);
    for (size_t i = 0; i < 40000; i += 4)
        memcpy(content + i,
               i % 400 == 396 ? "\\n\xc3\xa9"
                              : "\xe2\x82\xac"
                                "x",
               4);
    content[40000] = '\0';
    sprintf(input, "{\"role\":\"user\",\"content\":\"%s\"}\n", content);
    DONE_WITH(&cli, input, "append", "long", "--type", "message.added");
    const char *handle = "long:1";
    int answers = 0;
    while (handle != NULL) {
        open_handle(handle, 5000);
        const char *text = line(0);
        ck_assert_uint_lt(strlen(text), 5500);
        for (const char *at = text; (at = strstr(at, "\n| ")) != NULL;) {
            at += 3;
            size_t len = strcspn(at, "\n");
            strncat(shown, at, len);
            strcat(shown, "\n");
            at += len;
        }
        handle = continuation(text);
        /* the last line of an answer that was cut continues in the next answer */
        if (handle != NULL)
            shown[strlen(shown) - 1] = '\0';
        ck_assert_int_lt(++answers, 30);
    }
    ck_assert_int_gt(answers, 7);
    char *expected = calloc(1, 100000);
    strcpy(expected, "role: user\ncontent:\n");
    for (const char *at = content; *at != '\0'; at++) {
        bool breaks = at[0] == '\\' && at[1] == 'n';
        strncat(expected, breaks ? "\n" : at, 1);
        at += breaks;
    }
    strcat(expected, "\n");
    ck_assert_uint_eq(strlen(shown), strlen(expected));
    ck_assert_str_eq(shown, expected);
    free(content);
    free(input);
    free(shown);
    free(expected);
}
END_TEST

START_TEST(a_range_continues_at_the_event_that_had_no_room)
{
    char input[100000] = "", seen[60] = {0};
    for (int i = 1; i <= 50; i++)
        sprintf(input + strlen(input), "{\"n\":%d,\"text\":\"%0800d\"}\n", i, i);
    DONE_WITH(&cli, input, "append", "range", "--type", "n");
    char handle[300] = "range:1-48";
    const char *next = handle;
    while (next != NULL) {
        open_handle(next, 8000);
        for (int i = 1; i <= 50; i++) {
            char begin[30];
            snprintf(begin, sizeof begin, "\n:%d  ", i);
            seen[i] = (char)(seen[i] + (strstr(line(0), begin) != NULL));
        }
        next = continuation(line(0));
    }
    for (int i = 1; i <= 50; i++)
        ck_assert_int_eq(seen[i], i <= 48);
}
END_TEST

START_TEST(verbs_are_tools_on_demand_and_take_no_options_from_arguments)
{
    add_sessions();
    cli.own_program = true;
    run(TOOL("1", "sql", "\"sql\":\"SELECT count(*) AS n FROM sessions\"")
            TOOL("2", "sql", "\"sql\":\"DELETE FROM sessions\"")
                TOOL("3", "verify", "\"session\":\"tides-1\"")
                    TOOL("4", "verify", "\"session\":\"--replay\"") TOOL("5", "usage", "")
                        TOOL("6", "diff", "\"session\":\"tides-1\",\"a\":\"1\",\"b\":\"3\"")
                            TOOL("7", "fix", "\"error\":\"--json\"")
                                TOOL("8", "how", "\"task\":\"walrus\""));
    HAS(0, "{\"n\":2}");
    HAS(1, "\"isError\":true");
    HAS(2, "\"findings\":0");
    HAS(3, "\"isError\":true");
    HAS(4, "\"section\":\"total\"");
    HAS(5, "\"change\":");
    HAS(6, "no call failed with this error");
    HAS(7, "no turn about this");
    DONE_WITH(&cli, REQUEST("1", "tools/list", "") TOOL("2", "sql", "\"sql\":\"SELECT 1\""), "mcp");
    LACKS(0, "\"name\":\"sql\"");
    HAS(1, "-32602");
}
END_TEST

/* ---- Resources ---- */

/* Add the sessions s1, s2, … with an event each. */
static void add_many(int count)
{
    annal_store *store;
    annal_writer *writer;
    annal_error err;
    const annal_draft draft = {.type = ANNAL_SLICE("session.created"), .data = ANNAL_SLICE("{}")};
    uint64_t seq;
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.create = true, .level = ANNAL_LEVEL_OS},
                         &store, &err),
        0);
    for (int i = 1; i <= count; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        ck_assert_int_eq(annal_writer_open(store, annal_slice_of(name), NULL, &writer, &err), 0);
        ck_assert_int_eq(annal_writer_append(writer, &draft, 1, NULL, &seq, &err), 0);
        annal_writer_close(writer);
    }
    ck_assert_int_eq(annal_store_close(store, &err), 0);
}

START_TEST(resources_are_listed_in_pages_and_read_by_their_uri)
{
    char input[20000] = "";
    add_many(103);
    run(REQUEST("1", "resources/list", "") REQUEST("2", "resources/list", "\"cursor\":\"100\","));
    int count[2] = {0};
    for (int i = 0; i < 2; i++) {
        for (const char *at = line(i); (at = strstr(at, "\"uri\":")) != NULL; at++)
            count[i]++;
    }
    ck_assert_int_eq(count[0], 100);
    ck_assert_int_eq(count[1], 3);
    HAS(0, "\"nextCursor\":\"100\"");
    LACKS(1, "nextCursor");
    static const char *const uris[] = {"annal://session/s1", "annal://session/s1/event/1",
                                       "annal://session/s1/events/1-1",
                                       "annal://session/s1/state/1"};
    for (size_t i = 0; i < 4; i++)
        sprintf(input + strlen(input), REQUEST("1", "resources/read", "\"uri\":\"%s\","), uris[i]);
    strcat(input, REQUEST("1", "resources/read", "\"uri\":\"annal://session/nope\",")
                      REQUEST("1", "resources/read", "\"uri\":\"file:///etc/passwd\",")
                          REQUEST("1", "resources/read", "\"uri\":7,"));
    run(input);
    for (int i = 0; i < 4; i++) {
        HAS(i, uris[i]);
        HAS(i, "\"mimeType\":\"text/plain\",\"text\":");
    }
    for (int i = 4; i < 7; i++)
        HAS(i, "-32602");
    HAS(4, "\"data\":{\"uri\":\"annal://session/nope\"}");
}
END_TEST

Suite *suite_mcp(void)
{
    Suite *suite = suite_create("mcp");
    TCase *messages = suite_case(suite, "messages", setup, cli_teardown);
    TCase *tools = suite_case(suite, "tools", setup, cli_teardown);
    TCase *resources = suite_case(suite, "resources", setup, cli_teardown);
    tcase_add_test(messages, a_message_that_is_too_long_or_too_deep_is_refused);
    tcase_add_test(messages, a_request_that_runs_is_stopped_when_it_is_cancelled);
    tcase_add_test(messages, headers_by_http_must_agree_with_the_message);
    tcase_add_test(messages, the_older_revisions_by_http_need_no_earlier_request);
    tcase_add_test(tools, a_long_event_is_shown_whole_in_several_answers);
    tcase_add_test(tools, a_range_continues_at_the_event_that_had_no_room);
    tcase_add_test(tools, verbs_are_tools_on_demand_and_take_no_options_from_arguments);
    tcase_add_test(resources, resources_are_listed_in_pages_and_read_by_their_uri);
    return suite;
}
