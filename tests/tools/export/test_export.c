/* SPDX-License-Identifier: Apache-2.0 */
/* annal export: the exported formats, and imports that restore the same data. */
#include "journal/base/sha256.h"
#include "tests/support/real_logs.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/export/staging.h"

#include <annal/journal.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASSERT_OUT(cli, part)                                                                      \
    ck_assert_msg(strstr((cli)->out, part) != NULL, "'%s' is not in %s", part, (cli)->out)
#define ASSERT_NOT_OUT(cli, part)                                                                  \
    ck_assert_msg(strstr((cli)->out, part) == NULL, "'%s' is in %s", part, (cli)->out)

/* Data whose bytes a parser would change. */
#define ODD_EVENTS                                                                                 \
    "{\"type\":\"a.b\",\"data\":{ \"n\" : 1.50e+1,\"n\":12345678901234567890123 },"                \
    "\"id\":\"one\",\"ts\":\"2026-01-06T07:24:00.5Z\"}\n"                                          \
    "{\"type\":\"c\",\"data\":\"\\u00e9\\ud800\\/ caf\xc3\xa9\",\"cause\":\"other:16\"}\n"         \
    "{\"type\":\"d\",\"data\":[1e400,-0,null , true]}\n"

/* Collect the text after "data": of each line; free() it. */
static char *data_of(const char *lines)
{
    char *text = calloc(1, strlen(lines) + 1), *to = text;
    for (const char *at = lines; (at = strstr(at, "\"data\":")) != NULL;) {
        const char *end = strchr(at, '\n');
        ck_assert_ptr_nonnull(end);
        memcpy(to, at, (size_t)(end - at) + 1);
        to += end - at + 1;
        at = end;
    }
    return text;
}

static char *export_text(const char *session)
{
    DONE(&cli, "export", session);
    return strdup(cli.out);
}

START_TEST(exported_events_are_appended_again_with_the_same_bytes)
{
    DONE_WITH(&cli, ODD_EVENTS, "append", "s1");
    char *lines = export_text("s1");
    char *data = data_of(lines);
    ck_assert_ptr_nonnull(strstr(lines, "{\"ts\":\"2026-01-06T07:24:00.500000Z\",\"type\":\"a.b\","
                                        "\"id\":\"one\",\"data\":{ \"n\" : 1.50e+1,\"n\":123456789"
                                        "01234567890123 }}\n"));
    DONE_WITH(&cli, lines, "append", "s2");
    char *again = export_text("s2");
    ck_assert_str_eq(again, lines);
    ck_text(data_of(again), data);
    free(again);
    free(data);
    free(lines);
}
END_TEST

START_TEST(several_sessions_in_one_file_are_imported_as_separate_sessions)
{
    CLI(&cli, "{\"type\":\"a\",\"data\":{\"x\":1}}\n{\"type\":\"a\",\"data\":\"\\u00e9\"}\n",
        "append", "s1");
    CLI(&cli, "{\"type\":\"b\",\"data\":12345678901234567890123}\n", "append", "s2");
    const char *file = tmpdir_path(&cli.dir, "both.jsonl");
    DONE(&cli, "export", "s1", "s2", "--to", file);
    ck_assert_str_eq(cli.out, "");
    char *one = export_text("s1"), *two = export_text("s2");
    char *data_one = data_of(one), *data_two = data_of(two);
    DONE(&cli, "import", "jsonl", file, "--store", tmpdir_path(&cli.dir, "other"));
    DONE(&cli, "export", "s1", "--store", tmpdir_path(&cli.dir, "other"));
    ck_text(data_of(cli.out), data_one);
    CLI(&cli, NULL, "export", "s2", "--store", tmpdir_path(&cli.dir, "other"));
    ck_text(data_of(cli.out), data_two);
    free(data_one);
    free(data_two);
    free(one);
    free(two);
}
END_TEST

START_TEST(a_fork_is_exported_with_what_it_shares_and_up_to_an_event)
{
    CLI(&cli, "1\n2\n3\n", "append", "s1", "--type", "n");
    DONE(&cli, "fork", "s1", "s1b", "--at", "2");
    CLI(&cli, "30\n", "append", "s1b", "--type", "n");
    char *lines = export_text("s1b");
    char *data = data_of(lines);
    ck_assert_str_eq(data, "\"data\":1}\n\"data\":2}\n\"data\":30}\n");
    free(data);
    free(lines);
    DONE(&cli, "export", "s1b", "--at", "1");
    data = data_of(cli.out);
    ck_assert_str_eq(data, "\"data\":1}\n");
    free(data);
    CLI(&cli, NULL, "export", "s1b", "--at", "4");
    cli_assert_refused(&cli, EXIT_REFUSED, "ends with event 3");
    CLI(&cli, NULL, "export", "s1", "s1b", "--at", "1");
    ck_assert_int_eq(cli.exit_status, EXIT_USAGE);
}
END_TEST

START_TEST(long_data_is_exported_whole)
{
    const size_t bytes = 3000000;
    char *input = malloc(bytes + 4);
    memset(input, 'x', bytes);
    memcpy(input + bytes, "\"\n", 3);
    input[0] = '"';
    DONE_WITH(&cli, input, "append", "s1", "--type", "n");
    DONE(&cli, "export", "s1");
    const char *data = strstr(cli.out, "\"data\":");
    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(strncmp(data + 7, input, bytes + 1), 0);
    ck_assert_str_eq(data + 7 + bytes + 1, "}\n");
    free(input);
}
END_TEST

START_TEST(a_file_receives_its_name_when_it_is_complete)
{
    size_t len;
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    const char *file = tmpdir_path(&cli.dir, "out.jsonl");
    file_write(file, "before", 6);
    CLI(&cli, NULL, "export", "s1", "none", "--to", file);
    cli_assert_refused(&cli, EXIT_REFUSED, "none");
    ck_text(file_read(file, &len), "before");
    DONE(&cli, "export", "s1", "--to", file);
    char *bytes = file_read(file, &len);
    ck_assert_int_eq(strncmp(bytes, "{\"ts\":", 6), 0);
    free(bytes);
    CLI(&cli, NULL, "export", "s1", "--to", tmpdir_path(&cli.dir, "none/out"));
    cli_assert_refused(&cli, EXIT_STORAGE, "No such file or directory");
    CLI(&cli, NULL, "export", "s1", "--to", "/dev/full");
    cli_assert_refused(&cli, EXIT_STORAGE, "/dev/full");
    ck_assert_int_eq(access("/dev/full", F_OK), 0);
}
END_TEST

START_TEST(an_overwritten_file_keeps_its_mode_and_its_links)
{
    struct stat found;
    char path[400];
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    const char *file = tmpdir_path(&cli.dir, "out.jsonl"), *link = tmpdir_path(&cli.dir, "link");
    file_write(file, "before", 6);
    ck_assert_int_eq(chmod(file, 0400), 0);
    ck_assert_int_eq(symlink("out.jsonl", link), 0);
    DONE(&cli, "export", "s1", "--to", link);
    ck_assert_int_eq(lstat(link, &found), 0);
    ck_assert(S_ISLNK(found.st_mode));
    ck_assert_int_eq(stat(file, &found), 0);
    ck_assert_int_eq(found.st_mode & 0777, 0400);
    ck_assert_int_ne(found.st_size, 6);
    DONE(&cli, "stats", "--plot", "--svg", link);
    ck_assert_int_eq(lstat(link, &found), 0);
    ck_assert(S_ISLNK(found.st_mode));
    ck_assert_int_eq(stat(file, &found), 0);
    ck_assert_int_eq(found.st_mode & 0777, 0400);
    mode_t mask = umask(027); /* a new file follows the umask */
    CLI(&cli, NULL, "export", "s1", "--to", tmpdir_path(&cli.dir, "new"));
    umask(mask);
    cli_assert_done(&cli);
    ck_assert_int_eq(stat(tmpdir_path(&cli.dir, "new"), &found), 0);
    ck_assert_int_eq(found.st_mode & 0777, 0640);
    snprintf(path, sizeof path, "test -z \"$(find %s -name '*.partial-*')\"", cli.dir.path);
    ck_assert_int_eq(system(path), 0);
}
END_TEST

START_TEST(a_file_without_a_name_is_written_in_place)
{
    char path[60], bytes[1000] = "";
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    int fd = open(cli.dir.path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 5000), 0);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    DONE(&cli, "export", "s1", "--to", path);
    ck_assert_int_lt(pread(fd, bytes, sizeof bytes - 1, 0), 200);
    ck_assert_ptr_nonnull(strstr(bytes, "\"data\":1}\n"));
    close(fd);
}
END_TEST

START_TEST(an_export_that_is_interrupted_leaves_nothing)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    enum { EVENTS = 100000 };
    int input, output, status;
    char *lines = malloc(EVENTS * 4);
    for (size_t i = 0; i < EVENTS; i++)
        memcpy(lines + i * 4, i + 1 < EVENTS ? "123\n" : "123", 4);
    CLI(&cli, lines, "append", "s1", "--type", "n", "--level", "os");
    free(lines);
    cli_assert_done(&cli);
    const char *file = tmpdir_path(&cli.dir, "out.jsonl");
    const char *words[] = {"export", "s1", "--to", file, NULL};
    pid_t pid = cli_start(&cli, words, &input, &output);
    while (count_names(cli.dir.path, ".partial-") == 0 && access(file, F_OK) != 0)
        usleep(100);
    kill(pid, signals[_i]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signals[_i]);
    ck_assert_uint_eq(count_names(cli.dir.path, ".partial-"), 0);
    ck_assert_int_ne(access(file, F_OK), 0);
    close(input);
    close(output);
}
END_TEST

START_TEST(an_export_reports_damage_and_exports_everything_else)
{
    size_t len;
    CLI(&cli, "1\n22\n3\n", "append", "s1", "--type", "n");
    char *journal = cli_journal(&cli, "s1", &len);
    *strstr(journal, ":22,") = ';';
    cli_journal_write(&cli, "s1", journal, len);
    free(journal);
    CLI(&cli, NULL, "export", "s1");
    cli_assert_refused(&cli, EXIT_REFUSED, "session 's1', event 2 at byte");
    char *data = data_of(cli.out);
    ck_assert_str_eq(data, "\"data\":1}\n\"data\":3}\n");
    free(data);
    CLI(&cli, NULL, "export", "s1", "--format", "markdown");
    cli_assert_refused(&cli, EXIT_REFUSED, "session 's1', event 2 at byte");
    ASSERT_OUT(&cli, "**Damaged**: event 2 cannot be read");
}
END_TEST

/* ---- Markdown ---- */

#define TURN                                                                                       \
    "{\"type\":\"session.created\",\"data\":{\"title\":\"# <b>High</b> "                           \
    "*water*\",\"model\":\"m`1\""                                                                  \
    "}}\n"                                                                                         \
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\",\"sequence\":1}}\n"                   \
    "{\"type\":\"message.added\",\"data\":{\"id\":\"m1\",\"role\":\"user\",\"content\":\"Why?\"}}" \
    "\n"                                                                                           \
    "{\"type\":\"message.added\",\"data\":{\"id\":\"m2\",\"role\":\"assistant\",\"content\":["     \
    "{\"type\":\"thinking\",\"thinking\":\"Hm.\"},{\"type\":\"text\",\"text\":\"Look.\"}]}}\n"     \
    "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c1\",\"tool\":\"Bash\",\"input\":"          \
    "{\"command\":\"a\\nb\",\"n\":1}}}\n"                                                          \
    "{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"c1\",\"success\":false,\"output\":\"no\","  \
    "\"exit_code\":2,\"duration_ms\":7}}\n"                                                        \
    "{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":1200,\"output_tokens\":34,"         \
    "\"cost_usd\":0.0125}}\n"                                                                      \
    "{\"type\":\"x.y\",\"data\":1}\n"

START_TEST(a_transcript_shows_speakers_costs_and_unfinished_calls)
{
    CLI(&cli,
        TURN "{\"type\":\"turn.failed\",\"data\":{\"turn_id\":\"t1\",\"error\":\"over\"}}\n"
             "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t2\",\"sequence\":2}}\n"
             "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c2\",\"tool\":\"Read\"}}\n",
        "append", "s1");
    cli_assert_done(&cli);
    DONE(&cli, "export", "s1", "--format", "markdown");
    ASSERT_OUT(&cli, "# \\# \\<b\\>High\\</b\\> \\*water\\*\n\n- **Session**: `s1`\n- **Model**: "
                     "``m`1``\n");
    ASSERT_OUT(&cli, "- **Turns**: 2\n- **Tool calls**: 2, 1 failed\n- **Used**: 1,200 tokens in, "
                     "34 out, $0.0125\n- **Unfinished**: 1 tool call without a result\n"
                     "- **Unfinished**: 1 turn without an end\n");
    ASSERT_OUT(&cli, "## Turn 1\n");
    ASSERT_OUT(&cli, "### user\n\n*event 3, ");
    ASSERT_OUT(&cli, "*\n\n> Why?\n\n### assistant\n");
    ASSERT_OUT(&cli, "<details><summary>Thinking</summary>\n\n> Hm.\n\n</details>\n\n> Look.\n\n");
    ASSERT_OUT(&cli, "### Call: Bash\n");
    ASSERT_OUT(&cli, "```text\ncommand:\n    a\n    b\nn: 1\n```\n");
    ASSERT_OUT(&cli, "### Failed: Bash, 7 ms, exit status 2\n");
    ASSERT_OUT(&cli, "```text\nno\n```\n");
    ASSERT_OUT(&cli, "**Turn failed**: over · 1,200 tokens in, 34 out, $0.0125\n");
    ASSERT_OUT(&cli, "**No result**: the session ends while this call is under way.\n");
    ASSERT_OUT(&cli, "**The session ends here, in the middle of a turn.**\n");
    ASSERT_OUT(&cli, "*1 event of other types or without a text is not shown: ");
    ASSERT_NOT_OUT(&cli, "x.y");
    CLI(&cli, NULL, "export", "s1", "--format", "markdown", "--full");
    ASSERT_OUT(&cli, "*event 8* `x.y` `1`\n");
    CLI(&cli, NULL, "export", "s1", "--format", "markdown", "--at", "5");
    ASSERT_OUT(&cli, "- **Events**: 5\n");
    ASSERT_OUT(&cli, "1 tool call without a result");
}
END_TEST

/* Agents write a picture in many forms, and Claude Code hides thoughts in redacted_thinking. */
START_TEST(a_transcript_shows_no_base64)
{
    enum { CODED = 600 };
    static const char *const forms[] = {
        "message.added\",\"data\":{\"role\":\"user\",\"content\":[{\"inlineData\":{"
        "\"mimeType\":\"image/png\",\"data\":\"%\"}}]}",
        "message.added\",\"data\":{\"role\":\"user\",\"content\":[{\"type\":\"file\",\"mime\":"
        "\"image/png\",\"url\":\"data:image/png;base64,%\"}]}",
        "tool.returned\",\"data\":{\"call_id\":\"c\",\"output\":[{\"type\":\"image\",\"source\":{"
        "\"media_type\":\"image/png\",\"data\":\"%\"}}]}",
        "tool.returned\",\"data\":{\"call_id\":\"c\",\"output\":{\"mimeType\":\"image/png\","
        "\"data\":\"%\"}}",
        "tool.returned\",\"data\":{\"call_id\":\"c\",\"output\":\"image/png is "
        "data:image/png;base64,"
        "% and was not shown\"}",
        "tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"image/png, not shown\",\"input\":{"
        "\"a\":\"%\"}}"};
    char coded[CODED + 1], data[1200], line[1400], session[8];
    for (size_t i = 0; i < CODED; i++)
        coded[i] = "iVBORw0KGgoAAAANSUhEUg"[i % 22];
    coded[CODED] = '\0';
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *at = strchr(forms[i], '%');
        snprintf(data, sizeof data, "%.*s%s%s", (int)(at - forms[i]), forms[i], coded, at + 1);
        snprintf(line, sizeof line, "{\"type\":\"%s}\n", data);
        snprintf(session, sizeof session, "s%zu", i);
        DONE_WITH(&cli, line, "append", session);
        DONE(&cli, "export", session, "--format", "markdown");
        ck_assert_msg(strstr(cli.out, "iVBORw0KGgo") == NULL, "%s: %s", forms[i], cli.out);
        ck_assert_msg(strstr(cli.out, "not shown") != NULL, "%s: %s", forms[i], cli.out);
        ck_assert_msg(strstr(cli.out, "image/png") != NULL, "%s: %s", forms[i], cli.out);
        ck_assert_msg(strstr(cli.out, "**Other**") == NULL, "%s: %s", forms[i], cli.out);
    }
    DONE_WITH(&cli,
              "{\"type\":\"message.added\",\"data\":{\"role\":\"assistant\",\"content\":[{\"type\":"
              "\"redacted_thinking\",\"data\":\"iVBORw0KGgo=\"},{\"type\":\"text\",\"text\":\"a "
              "mole\"}]}}\n",
              "append", "r");
    DONE(&cli, "export", "r", "--format", "markdown");
    ASSERT_OUT(&cli, "> a mole\n");
    ASSERT_NOT_OUT(&cli, "iVBORw0KGgo");
}
END_TEST

START_TEST(without_full_long_results_are_cut_with_a_note)
{
    struct buf {
        char text[9000];
        size_t len;
    } input = {.len = 0};
    input.len += (size_t)sprintf(input.text, "{\"type\":\"tool.returned\",\"data\":{\"call_id\":"
                                             "\"c1\",\"output\":\"");
    for (int i = 1; i <= 60; i++)
        input.len += (size_t)sprintf(input.text + input.len, "line %d.\\n", i);
    memset(input.text + input.len, 'y', 3000);
    strcpy(input.text + input.len + 3000, "\"}}\n");
    DONE_WITH(&cli, input.text, "append", "s1");
    CLI(&cli, NULL, "export", "s1", "--format", "markdown");
    ASSERT_OUT(&cli, "line 40.\n```\n\n*21 lines cut: `annal export s1 --format markdown --full`");
    ASSERT_NOT_OUT(&cli, "line 41.");
    CLI(&cli, NULL, "export", "s1", "--format", "markdown", "--full");
    ASSERT_OUT(&cli, "line 60.\ny");
    ASSERT_NOT_OUT(&cli, "cut:");
}
END_TEST

START_TEST(a_page_has_no_empty_sections_and_the_headings_of_a_message_are_bold)
{
    CLI(&cli,
        "{\"type\":\"session.created\",\"data\":{\"title\":\"019e44d4-6ecf my_tool 1.5 (#36)\"}}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":\"assistant\",\"content\":["
        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"abc\"}]}}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":\"assistant\",\"content\":[]}}\n"
        "{\"type\":\"message.added\",\"data\":{\"role\":\"assistant\",\"content\":"
        "\"## Review of PR #36 ##\\nDone: `x` #1\\n####### seven\\n# a*b\"}}\n",
        "append", "s1");
    cli_assert_done(&cli);
    DONE(&cli, "export", "s1", "--format", "markdown");
    ASSERT_OUT(&cli, "# 019e44d4-6ecf my_tool 1.5 (#36)\n");
    ASSERT_OUT(
        &cli, "> **Review of PR #36**\n> Done: `x` #1\n> \\#\\#\\#\\#\\#\\#\\# seven\n> \\# a*b\n");
    ck_assert_ptr_null(strstr(strstr(cli.out, "### assistant") + 1, "### assistant"));
    ASSERT_OUT(&cli, "*2 events of other types or without a text are not shown: "
                     "`annal export s1 --format markdown --full`*");
    CLI(&cli, NULL, "export", "s1", "--format", "markdown", "--full");
    ASSERT_OUT(&cli, "*event 2* `message.added` `");
}
END_TEST

/* Remove the spans of code from a line of prose; the rest must not contain characters of markup. */
static void assert_prose(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\\') {
            i++;
        } else if (line[i] == '`') {
            size_t ticks = strspn(line + i, "`"), at = i + ticks, run = 0;
            for (; at < len && run != ticks; at += run > 0 ? run : 1)
                run = strspn(line + at, "`");
            ck_assert_msg(run == ticks, "a span that does not end: %.*s", (int)len, line);
            i = at - 1;
        } else {
            bool begins = strspn(line, " -+*.)>#0123456789") >= i; /* then '#' is a heading */
            ck_assert_msg(strchr(begins ? "<[#" : "<[", line[i]) == NULL, "%.*s", (int)len, line);
        }
    }
}

/*
 * Read a page as CommonMark does, as far as that matters: outside of fences only our own headings
 * and our own HTML, all messages in quotes. Returns the number of fences.
 */
static int assert_page(const char *page)
{
    static const char *const ours[] = {"# ",
                                       "## Turn ",
                                       "### ",
                                       "- **",
                                       "*event ",
                                       "**",
                                       "<details><summary>Thinking</summary>\n",
                                       "</details>\n",
                                       "\n",
                                       "*"};
    size_t fence = 0, fences = 0;
    bool quoted = false;
    for (const char *line = page; *line != '\0'; line = strchr(line, '\n') + 1) {
        size_t len = strcspn(line, "\n"), mark = strncmp(line, "> ", 2) == 0 ? 2 : 0;
        size_t ticks = strspn(line + mark, "`");
        if (fence > 0) {
            bool same = !quoted || *line == '>';
            ck_assert_msg(same, "a fence that its quote ends: %.*s", (int)len, line);
            ticks = quoted ? ticks : strspn(line, "`");
            if (ticks >= fence && (quoted ? mark : 0) + ticks == len)
                fence = 0;
        } else if (ticks >= 3 && memchr(line + mark + ticks, '`', len - mark - ticks) == NULL) {
            fence = ticks;
            quoted = *line == '>';
            fences++;
        } else if (*line == '>') {
            assert_prose(line + 1, len - 1);
        } else {
            bool known = false;
            for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
                known = known || strncmp(line, ours[i], strlen(ours[i])) == 0;
            ck_assert_msg(known, "not a line of ours: %.*s", (int)len, line);
            if (strchr("#*-", *line) != NULL)
                assert_prose(line + strspn(line, "#"), len - strspn(line, "#"));
        }
    }
    ck_assert_msg(fence == 0, "a fence that does not end");
    return (int)fences;
}

static const char *const hostile[] = {
    "```\\n# Owned\\n<script>",
    "````md\\n```\\n</details>\\n````\\n## after",
    "~~~\\n```\\n~~~~\\n<!-- ",
    "a ` b\\nc ` <img src=x> ` d",
    "``` not a fence ``` <b>",
    "\\\\` <i> \\\\`",
    "text\\n===\\nmore\\n---\\n> # quoted\\n- # listed\\n1. # counted",
    "[x](javascript:1) ![y](http://z) [r]: http://z",
    "</details></summary>\\n\\n<details>",
    "    indented <pre>\\n\\n\\t```\\n\\tx",
    "\\u0060\\u0060\\u0060\\u0060\\n\\u003cscript\\u003e\\n# h",
    "\\u001b[31m\\u0000 \\r\\n# cr\\r# cr",
    "- ```js\\n  <b>\\n  ```\\n# tail",
    "`````",
    "$x$ &lt;b&gt; @who #1",
};

START_TEST(nothing_in_an_event_breaks_the_page)
{
    enum { COUNT = sizeof hostile / sizeof *hostile };
    char input[6000], text[200];
    snprintf(text, sizeof text, "%s", hostile[_i]);
    snprintf(
        input, sizeof input,
        "{\"type\":\"session.created\",\"data\":{\"title\":\"%s\",\"model\":\"%s\"}}\n"
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t\",\"sequence\":\"%s\"}}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"1\",\"role\":\"%s\",\"content\":\"%s\"}"
        "}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"2\",\"role\":\"assistant\",\"content\":"
        "[{\"type\":\"thinking\",\"thinking\":\"%s\"},{\"type\":\"image\",\"%s\":1},\"%s\"]}}\n"
        "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"%s\",\"input\":"
        "{\"%s\":\"%s\",\"deep\":{\"%s\":[\"%s\"]}}}}\n"
        "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c\",\"output\":[\"%s\",{\"text\":"
        "\"%s\"},{\"a\":\"%s\"}]}}\n"
        "{\"type\":\"checkpoint.noted\",\"data\":{\"note\":\"%s\"}}\n"
        "{\"type\":\"turn.failed\",\"data\":{\"turn_id\":\"t\",\"error\":{\"%s\":\"%s\"}}}\n",
        text, text, text, text, text, text, text, text, text, text, text, text, text, text, text,
        text, text, text, text);
    DONE_WITH(&cli, input, "append", "s1");
    DONE(&cli, "export", "s1", "--format", "markdown", "--full");
    ck_assert_int_ge(assert_page(cli.out), 4);
    for (const char *c = cli.out; *c != '\0'; c++)
        ck_assert_msg((unsigned char)*c >= 0x20 || *c == '\n', "a control character");
}
END_TEST

/* ---- OTLP ---- */

static const char *const kinds[] = {
    "autogen",        "claude-code", "codex", "gemini-cli", "goose",     "langgraph", "opencode",
    "mini-swe-agent", "openhands",   "otel",  "pi",         "swe-agent", "tau-bench"};

#define TRACE  "b38acab60a3e3b2be369db72403143e1"
#define ROOT   "c17b960bb0720d4d"
#define TURN_2 "534694da09c4a230"

/* Tokens and numbers of tool calls, for all sessions with tokens or calls. */
#define USED_SQL                                                                                   \
    "SELECT s.id, coalesce(s.input_tokens, 0), coalesce(s.output_tokens, 0), "                     \
    "coalesce(s.cost_microusd, 0), t.calls "                                                       \
    "FROM sessions s "                                                                             \
    "LEFT JOIN (SELECT session_id, count(*) AS calls FROM events WHERE type = 'tool.called' "      \
    "GROUP BY session_id) t ON t.session_id = s.id WHERE s.input_tokens <> 0 OR s.output_tokens "  \
    "<> 0 OR t.calls > 0 ORDER BY s.id"

/* Export every session of the store as OTLP and import it into another store; sets its path. */
static const char *through_otlp(void)
{
    const char *file = tmpdir_path(&cli.dir, "spans.jsonl");
    DONE(&cli, "export", "--format", "otlp", "--to", file);
    const char *other = tmpdir_path(&cli.dir, "other");
    DONE(&cli, "import", "otel", file, "--store", other);
    return other;
}

static void assert_same_use(const char *what)
{
    DONE(&cli, "sql", USED_SQL, "--format", "csv");
    char *before = strdup(cli.out);
    const char *other = through_otlp();
    DONE(&cli, "sql", USED_SQL, "--format", "csv", "--store", other);
    ck_assert_msg(strcmp(cli.out, before) == 0, "%s: %s, and it was %s", what, cli.out, before);
    free(before);
}

static void import_there_and_back(const char *kind, const char *folder)
{
    CLI(&cli, NULL, "import", kind, folder);
    if (strstr(cli.err, "the path contains no log of kind") != NULL) {
        printf("skipped: %s", cli.err);
    } else {
        ck_assert_int_eq(cli.exit_status, EXIT_DONE);
        assert_same_use(folder);
    }
}

START_TEST(an_import_of_a_logs_spans_restores_tokens_costs_and_calls)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/tests/data/%s", ANNAL_SOURCE, kinds[_i]);
    import_there_and_back(kinds[_i], folder);
}
END_TEST

START_TEST(an_import_of_a_real_logs_spans_restores_tokens_costs_and_calls)
{
    char *folder = real_logs(kinds[_i]);
    if (folder != NULL)
        import_there_and_back(kinds[_i], folder);
    free(folder);
}
END_TEST

START_TEST(spans_are_children_of_their_turn_and_keep_their_ids)
{
    CLI(&cli, TURN "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t1\"}}\n", "append", "s1");
    DONE(&cli, "export", "s1", "--format", "otlp");
    /* printf 'annal trace\0s1' | sha256sum; printf 'annal span\0s1\0002' | sha256sum; … */
    ASSERT_OUT(&cli, "{\"traceId\":\"" TRACE "\",\"spanId\":\"" ROOT
                     "\",\"name\":\"invoke_agent\",\"kind\":1,");
    ASSERT_OUT(&cli, "\"spanId\":\"" TURN_2 "\",\"parentSpanId\":\"" ROOT
                     "\",\"name\":\"turn 1\",\"kind\":1,");
    ASSERT_OUT(&cli, "\"parentSpanId\":\"" TURN_2 "\",\"name\":\"execute_tool Bash\",\"kind\":1,");
    ASSERT_OUT(&cli, "\"parentSpanId\":\"" TURN_2 "\",\"name\":\"chat m`1\",\"kind\":3,");
    ASSERT_OUT(&cli, "{\"key\":\"gen_ai.usage.input_tokens\",\"value\":{\"intValue\":\"1200\"}}");
    ASSERT_OUT(&cli, "{\"key\":\"gen_ai.tool.call.id\",\"value\":{\"stringValue\":\"c1\"}}");
    ASSERT_OUT(&cli, "{\"key\":\"gen_ai.tool.call.arguments\",\"value\":{\"stringValue\":"
                     "\"{\\\"command\\\":\\\"a\\\\nb\\\",\\\"n\\\":1}\"}}");
    ASSERT_OUT(&cli, "{\"key\":\"error.type\",\"value\":{\"stringValue\":\"_OTHER\"}}],"
                     "\"status\":{\"code\":2}}");
    ASSERT_NOT_OUT(&cli, "annal.incomplete");
    char *first = strdup(cli.out);
    CLI(&cli, NULL, "export", "s1", "--format", "otlp");
    ck_assert_str_eq(cli.out, first);
    free(first);
}
END_TEST

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

START_TEST(spans_that_a_crash_left_open_end_with_the_last_event_and_are_marked)
{
    CLI(&cli,
        "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\"},\"ts\":\"2026-01-06T07:00:00Z\"}"
        "\n{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"A\"},"
        "\"ts\":\"2026-01-06T07:00:01Z\"}\n"
        "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"B\"},"
        "\"ts\":\"2026-01-06T07:00:02Z\"}\n"
        "{\"type\":\"tool.called\",\"data\":{\"tool\":\"C\"},\"ts\":\"2026-01-06T07:00:03Z\"}\n"
        "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"x\",\"output\":\"\\ud800\"},"
        "\"ts\":\"2026-01-06T07:00:04Z\"}\n",
        "append", "s1");
    cli_assert_done(&cli);
    DONE(&cli, "export", "s1", "--format", "otlp");
    ck_assert_int_eq(count_of(cli.out, "\"annal.incomplete\""), 5);
    ck_assert_int_eq(count_of(cli.out, "\"status\":{\"code\":2,"), 5);
    ck_assert_int_eq(count_of(cli.out, "\"endTimeUnixNano\":\"1767682804000000000\""), 6);
    ASSERT_OUT(&cli, "\"name\":\"tool result\"");
    ASSERT_OUT(&cli, "\"stringValue\":\"\\ufffd\"");
    assert_same_use("open calls");
}
END_TEST

#define TELL(role, content, more)                                                                  \
    "{\"type\":\"message.added\",\"data\":{\"role\":\"" role "\",\"content\":" content more "}}\n"
#define TEXT_BLOCK "[{\"type\":\"text\",\"text\":\"Done.\"}]"

static const struct last_events {
    const char *events; /* after a turn began */
    bool finished;
} last_events[] = {
    {TELL("assistant", TEXT_BLOCK, ",\"stop_reason\":\"end_turn\""), true},
    {TELL("assistant", "\"Done.\"", "") "{\"type\":\"import.record\",\"data\":{}}\n", true},
    {TELL("assistant", TEXT_BLOCK, ",\"stop_reason\":\"tool_use\""), false},
    {TELL("assistant", TEXT_BLOCK, ",\"stop_reason\":\"max_tokens\""), false},
    {TELL("assistant", "[{\"type\":\"thinking\",\"thinking\":\"Hm.\"}]", ""), false},
    {TELL("user", "\"Why?\"", ""), false},
    {TELL("assistant", TEXT_BLOCK,
          "") "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\"}}\n"
              "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c\"}}\n",
     false},
    {"{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\"}}\n" TELL("assistant", TEXT_BLOCK, ""),
     false},
    {TELL("assistant", TEXT_BLOCK, "") "{\"type\":\"provider.failed\",\"data\":{}}\n", false},
};

START_TEST(a_turn_that_ends_in_an_answer_is_complete)
{
    const struct last_events *last = &last_events[_i];
    CLI(&cli, "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\"}}\n", "append", "s1");
    DONE_WITH(&cli, last->events, "append", "s1");
    DONE(&cli, "export", "s1", "--format", "otlp");
    ck_assert_int_eq(strstr(cli.out, "annal.incomplete") == NULL, last->finished);
    ck_assert_int_eq(strstr(cli.out, "\"status\":{\"code\":2,") == NULL, last->finished);
    ck_assert_int_eq(count_of(cli.out, "\"name\":\"turn t1\""), 1);
    DONE(&cli, "export", "s1", "--format", "markdown");
    ck_assert_int_eq(strstr(cli.out, "in the middle of a turn") == NULL, last->finished);
    ck_assert_int_eq(strstr(cli.out, "without an end") == NULL, last->finished);
    DONE(&cli, "show", "s1", "--recovery");
    ck_assert_int_eq(strstr(cli.out, "turn t1 ends in an answer") != NULL, last->finished);
}
END_TEST

START_TEST(a_result_before_its_call_belongs_to_that_call)
{
    CLI(&cli,
        "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c\",\"output\":\"first\"}}\n"
        "{\"type\":\"tool.returned\",\"data\":{\"call_id\":\"c\",\"output\":\"second\"}}\n"
        "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"c\",\"tool\":\"A\"}}\n",
        "append", "s1");
    cli_assert_done(&cli);
    DONE(&cli, "export", "s1", "--format", "otlp");
    ASSERT_NOT_OUT(&cli, "annal.incomplete");
    ck_assert_int_eq(count_of(cli.out, "\"name\":\"execute_tool A\""), 1);
    ck_assert_int_eq(count_of(cli.out, "\"name\":\"tool result\""), 1);
    const char *call = strstr(cli.out, "\"name\":\"execute_tool A\"");
    const char *first = strstr(call, "gen_ai.tool.call.result");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_eq(strstr(first, "\"first\""), strchr(strstr(first, "stringValue\":"), ':') + 1);
    DONE(&cli, "export", "s1", "--format", "markdown");
    ASSERT_NOT_OUT(&cli, "Unfinished");
    ASSERT_NOT_OUT(&cli, "No result");
}
END_TEST

START_TEST(a_chat_span_contains_its_messages_and_the_type_of_its_failure)
{
    CLI(&cli,
        "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"a\\ud800\",\"provider\":"
        "\"anthropic\","
        "\"parent_session_id\":\"parent\"}}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"1\",\"role\":\"user\",\"content\":\"Why?\"}"
        "}\n"
        "{\"type\":\"provider.failed\",\"data\":{\"error\":{\"type\":\"overloaded_error\"}}}\n"
        "{\"type\":\"message.added\",\"data\":{\"id\":\"2\",\"role\":\"assistant\",\"content\":["
        "{\"type\":\"thinking\",\"thinking\":\"Hm.\"},{\"type\":\"text\",\"text\":\"So.\"},{"
        "\"type\":\"reasoning\",\"summary\":[]}]}}\n",
        "append", "s1");
    cli_assert_done(&cli);
    DONE(&cli, "export", "s1", "--format", "otlp");
    ASSERT_OUT(&cli, "\"links\":[{\"traceId\":\"99f2f39d338f583bccbf8f2f5eb4a464\",\"spanId\":"
                     "\"d4eac67e4ff62ce5\"}]");
    ASSERT_OUT(&cli, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"a\\ufffd\"}}");
    ASSERT_OUT(&cli, "{\"key\":\"error.type\",\"value\":{\"stringValue\":\"overloaded_error\"}}]");
    ASSERT_OUT(&cli,
               "{\"key\":\"gen_ai.provider.name\",\"value\":{\"stringValue\":\"anthropic\"}}");
    ASSERT_OUT(&cli,
               "{\"key\":\"gen_ai.input.messages\",\"value\":{\"stringValue\":\"[{\\\"role\\\":"
               "\\\"user\\\",\\\"parts\\\":[{\\\"type\\\":\\\"text\\\",\\\"content\\\":"
               "\\\"Why?\\\"}]}]\"}}");
    ASSERT_OUT(&cli, "\\\"parts\\\":[{\\\"type\\\":\\\"reasoning\\\",\\\"content\\\":\\\"Hm.\\\"},"
                     "{\\\"type\\\":\\\"text\\\",\\\"content\\\":\\\"So.\\\"},"
                     "{\\\"type\\\":\\\"reasoning\\\",\\\"content\\\":\\\"\\\",\\\"value\\\":"
                     "{\\\"type\\\":\\\"reasoning\\\",\\\"summary\\\":[]}}],"
                     "\\\"finish_reason\\\":\\\"stop\\\"}]");
    ASSERT_OUT(&cli, "{\"key\":\"gen_ai.response.finish_reasons\",\"value\":{\"arrayValue\":{"
                     "\"values\":[{\"stringValue\":\"stop\"}]}}}");
    ASSERT_OUT(&cli, "\"schemaUrl\":\"https://opentelemetry.io/schemas/");
    ASSERT_NOT_OUT(&cli, "content_cut");
}
END_TEST

START_TEST(a_chat_span_omits_very_long_messages_and_marks_them_as_cut)
{
    char *input = malloc(5000100);
    size_t len =
        (size_t)sprintf(input, "{\"type\":\"message.added\",\"data\":{\"id\":\"1\",\"role\":"
                               "\"assistant\",\"content\":\"");
    memset(input + len, 'x', 5000000);
    strcpy(input + len + 5000000, "\"}}\n");
    DONE_WITH(&cli, input, "append", "s1");
    free(input);
    DONE(&cli, "export", "s1", "--format", "otlp");
    ASSERT_OUT(&cli, "{\"key\":\"annal.content_cut\",\"value\":{\"boolValue\":true}}");
    ck_assert_uint_lt(cli.out_len, 5000);
}
END_TEST

#define USAGE(in, out, id)                                                                         \
    "{\"type\":\"agent.turn.usage\",\"data\":{\"input_tokens\":" #in ",\"output_tokens\":" #out    \
    ",\"message_id\":" id "}}\n"
#define SAID                                                                                       \
    "{\"type\":\"message.added\",\"data\":{\"id\":\"1\",\"role\":\"user\",\"content\":\"x\"}}\n"

START_TEST(negative_usage_is_subtracted_from_the_sum)
{
    static const char *const cases[] = {
        (USAGE(100, 10, "\"a\"") USAGE(-30, 5, "\"a\"")),
        (USAGE(100, 10, "null") USAGE(50, 5, "null") USAGE(-120, 0, "null")),
        (USAGE(-20, 0, "null") USAGE(100, 10, "null")),
        (USAGE(100, 10, "null") SAID USAGE(-20, -1, "null") SAID USAGE(1, 1, "null")),
        ("{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t\",\"input_tokens\":7}}\n"
         "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t\",\"input_tokens\":7}}\n"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        DONE_WITH(&cli, cases[i], "append", "s1");
        assert_same_use(cases[i]);
        cli_teardown();
        cli_setup();
    }
}
END_TEST

/* ---- Bundles ---- */

#define GOLDEN_SHA256  "8466ee381b2a5cbc231cb683bbc8758169a3112cfd04dc272baffb904be60f38"
#define CONTENT_SHA256 "a27e2f20e6e8016cdd8a77d2763bd43ad9e9af61090071902180850b07936a25"

#define OTHER(cli) "--store", tmpdir_path(&(cli)->dir, "other")

/* A store with a fork, a session of msgpack and an artifact, and its bundle. */
static const char *make_bundle(void)
{
    const char *file = tmpdir_path(&cli.dir, "all.annal");
    const char *content = tmpdir_path(&cli.dir, "content");
    file_write(content, "what a tool returned", 20);
    CLI(&cli, ODD_EVENTS, "append", "s1");
    CLI(&cli, NULL, "fork", "s1", "a-fork", "--at", "2");
    CLI(&cli, "7\n", "append", "a-fork", "--type", "n");
    CLI(&cli, "{\"x\":[1,2.5]}\n8\n", "append", "packed", "--type", "n", "--format", "msgpack");
    DONE(&cli, "artifact", "put", "s1", content);
    DONE(&cli, "export", "--format", "bundle", "--to", file);
    return file;
}

/* Assert that both stores have the same journal. */
static void assert_same_journal(const char *name)
{
    char path[300];
    size_t len, other_len;
    snprintf(path, sizeof path, "store/events/%s", name);
    char *bytes = file_read(tmpdir_path(&cli.dir, path), &len);
    snprintf(path, sizeof path, "other/events/%s", name);
    char *other = file_read(tmpdir_path(&cli.dir, path), &other_len);
    ck_assert_msg(len == other_len && memcmp(bytes, other, len) == 0, "%s is not the same", name);
    free(other);
    free(bytes);
}

static void assert_no_stage(void)
{
    char command[400];
    snprintf(command, sizeof command, "ls -A %s | grep -q importing",
             tmpdir_path(&cli.dir, "other"));
    ck_assert_int_ne(system(command), 0);
}

START_TEST(an_import_of_a_bundle_copies_journals_byte_for_byte)
{
    const char *file = make_bundle();
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    ck_assert_str_eq(cli.out, "3 sessions, 7 events, 1 artifact: all hashes are equal\n");
    assert_same_journal("s1.jsonl");
    assert_same_journal("a-fork.jsonl");
    assert_same_journal("packed.mpk");
    assert_no_stage();
    DONE(&cli, "verify", OTHER(&cli));
    DONE(&cli, "artifact", "get", "s1", CONTENT_SHA256, OTHER(&cli));
    ck_assert_str_eq(cli.out, "what a tool returned");
    DONE(&cli, "import", "bundle", file, OTHER(&cli), "--json");
    ASSERT_OUT(&cli, "\"sessions\":3,\"events\":7,\"artifacts\":1,\"added\":0,\"extended\":0,"
                     "\"already_there\":3,\"missing_artifacts\":0,\"hashes_equal\":true}\n");
    DONE_WITH(&cli, "9\n", "append", "s1", "--type", "n", OTHER(&cli));
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    ASSERT_OUT(&cli, "; 3 already in the store\n");
}
END_TEST

START_TEST(the_same_store_gives_the_same_bundle_and_tar_reads_it)
{
    size_t len;
    const char *file = make_bundle();
    char *bytes = file_read(file, &len);
    CLI(&cli, NULL, "export", "packed", "s1", "a-fork", "--format", "bundle");
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_uint_eq(cli.out_len, len);
    ck_assert_mem_eq(cli.out, bytes, len);
    free(bytes);
    char command[1000];
    snprintf(command, sizeof command, "mkdir %s && tar -C %s --zstd -xf %s 2>&1",
             tmpdir_path(&cli.dir, "tar"), tmpdir_path(&cli.dir, "tar"), file);
    if (system("tar --version >/dev/null 2>&1 && zstd --version >/dev/null 2>&1") == 0)
        ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(a_bundle_of_a_fork_contains_its_parent)
{
    (void)make_bundle();
    const char *file = tmpdir_path(&cli.dir, "fork.annal");
    DONE(&cli, "export", "a-fork", "--format", "bundle", "--to", file);
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    ck_assert_str_eq(cli.out, "2 sessions, 5 events, 1 artifact: all hashes are equal\n");
    assert_same_journal("s1.jsonl");
    assert_same_journal("a-fork.jsonl");
}
END_TEST

START_TEST(a_bundle_extends_a_session_that_the_store_already_begins)
{
    const char *file = make_bundle();
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    CLI(&cli, ODD_EVENTS, "append", "s1");
    CLI(&cli, "\"\\u00e9\\ud800\"\n { \"a\" : 1.50 }\n", "append", "packed", "--type", "n");
    DONE(&cli, "export", "--format", "bundle", "--to", file);
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    ASSERT_OUT(&cli, "; 2 extended; 1 already in the store\n");
    assert_same_journal("s1.jsonl");
    assert_same_journal("packed.mpk");
    DONE(&cli, "verify", OTHER(&cli));
}
END_TEST

/* Give a line to a command that runs, and wait for its answer. */
static void append_line(int input, int output, const char *line)
{
    char answer[100];
    ck_assert_int_eq(write(input, line, strlen(line)), (ssize_t)strlen(line));
    ck_assert_int_gt(read(output, answer, sizeof answer), 0);
}

START_TEST(a_bundle_contains_the_acknowledged_events_of_an_open_session)
{
    int input, output, status;
    const char *file = tmpdir_path(&cli.dir, "x.annal");
    pid_t pid =
        cli_start(&cli, (const char *[]){"append", "s1", "--type", "n", NULL}, &input, &output);
    for (int events = 1; events <= 4; events++) {
        char out[100];
        append_line(input, output, "1\n");
        DONE(&cli, "export", "s1", "--format", "bundle", "--to", file);
        DONE(&cli, "import", "bundle", file, OTHER(&cli));
        snprintf(out, sizeof out, "1 session, %d event%s, 0 artifacts: all hashes are equal",
                 events, events == 1 ? "" : "s");
        ASSERT_OUT(&cli, out);
        assert_same_journal("s1.jsonl");
    }
    close(input);
    close(output);
    waitpid(pid, &status, 0);
}
END_TEST

START_TEST(a_bundle_may_extend_a_session_by_several_appends)
{
    enum { EVENTS = ANNAL_APPEND_EVENTS_MAX + 1000 };
    const char *file = tmpdir_path(&cli.dir, "x.annal");
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    CLI(&cli, NULL, "export", "--format", "bundle", "--to", file);
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    char *lines = malloc(2 * EVENTS + 1);
    for (size_t i = 0; i < EVENTS; i++)
        memcpy(lines + 2 * i, "7\n", 3);
    DONE_WITH(&cli, lines, "append", "s1", "--type", "n", "--level", "os");
    free(lines);
    CLI(&cli, NULL, "export", "--format", "bundle", "--to", file);
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    ASSERT_OUT(&cli, "1 session, 66,537 events, 0 artifacts: all hashes are equal; 1 extended");
    assert_same_journal("s1.jsonl");
}
END_TEST

START_TEST(a_bundle_with_another_content_under_a_known_name_is_refused_whole)
{
    const char *file = make_bundle();
    DONE_WITH(&cli, "1\n", "append", "packed", "--type", "n", OTHER(&cli));
    CLI(&cli, NULL, "import", "bundle", file, OTHER(&cli));
    cli_assert_refused(&cli, EXIT_REFUSED, "session 'packed' already exists with other content");
    CLI(&cli, NULL, "export", "s1", OTHER(&cli));
    cli_assert_refused(&cli, EXIT_REFUSED, "s1");
    assert_no_stage();
}
END_TEST

START_TEST(a_bundle_restores_a_deleted_session)
{
    const char *file = make_bundle();
    CLI(&cli, NULL, "import", "bundle", file, OTHER(&cli));
    CLI(&cli, NULL, "delete", "packed", "--yes", OTHER(&cli));
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    DONE(&cli, "import", "bundle", file, OTHER(&cli));
    ASSERT_OUT(&cli, "; 2 already in the store\n");
    assert_same_journal("packed.mpk");
}
END_TEST

static void assert_nothing_comes_of(const char *file, size_t at)
{
    CLI(&cli, NULL, "import", "bundle", file, OTHER(&cli));
    ck_assert_msg(cli.exit_status == EXIT_REFUSED, "byte %zu: exit status %d: %s", at,
                  cli.exit_status, cli.err);
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "other"), F_OK), 0);
}

START_TEST(a_bundle_with_any_flipped_byte_or_any_cut_is_refused_and_nothing_written)
{
    size_t len, step = full_or(1, 31);
    const char *file = make_bundle(), *bad = tmpdir_path(&cli.dir, "bad.annal");
    char *bytes = file_read(file, &len);
    for (size_t at = 0; at < len; at += step) {
        bytes[at] ^= (char)(1 << (at % 8));
        file_write(bad, bytes, len);
        assert_nothing_comes_of(bad, at);
        bytes[at] ^= (char)(1 << (at % 8));
    }
    for (size_t cut = 0; cut < len; cut += len / 10) {
        file_write(bad, bytes, cut);
        assert_nothing_comes_of(bad, cut);
    }
    free(bytes);
    CLI(&cli, NULL, "import", "bundle", tmpdir_path(&cli.dir, "none"), OTHER(&cli));
    cli_assert_refused(&cli, EXIT_REFUSED, "No such file");
    CLI(&cli, NULL, "import", "bundle", cli.dir.path, OTHER(&cli));
    cli_assert_refused(&cli, EXIT_REFUSED, "is not a regular file");
}
END_TEST

static void hash_text(const void *bytes, size_t len, char text[SHA256_TEXT_BYTES])
{
    uint8_t hash[SHA256_BYTES];
    struct sha256 *sha256 = annal__sha256_begin();
    annal__sha256_add(sha256, bytes, len);
    annal__sha256_end(sha256, hash);
    annal__sha256_text(hash, text);
}

START_TEST(a_bundle_of_version_1_is_imported)
{
    char text[SHA256_TEXT_BYTES];
    size_t len;
    const char *file = ANNAL_SOURCE "/tests/golden/bundle-1.annal";
    char *bytes = file_read(file, &len);
    hash_text(bytes, len, text);
    free(bytes);
    ck_assert_str_eq(text, GOLDEN_SHA256); /* never regenerate the file */
    DONE(&cli, "import", "bundle", file);
    ck_assert_str_eq(cli.out, "3 sessions, 6 events, 1 artifact: all hashes are equal\n");
    CLI(&cli, NULL, "export", "a-fork");
    char *data = data_of(cli.out);
    ck_assert_str_eq(data, "\"data\":{ \"n\" : 1.50e+1,\"n\":12345678901234567890123 }}\n"
                           "\"data\":7}\n");
    free(data);
    CLI(&cli, NULL, "export", "packed");
    data = data_of(cli.out);
    ck_assert_str_eq(data, "\"data\":{\"x\":[1,2.5]}}\n\"data\":8}\n");
    free(data);
    CLI(&cli, NULL, "artifact", "get", "s1", CONTENT_SHA256);
    ck_assert_str_eq(cli.out, "what a tool returned");
}
END_TEST

/* Write a session whose bundle is longer than a single read or write. */
static void make_long_session(void)
{
    enum { BYTES = 600000 };
    char *line = malloc(BYTES + 4);
    uint64_t random = 1;
    line[0] = '"';
    for (size_t i = 1; i <= BYTES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        line[i] = (char)('a' + (random >> 33) % 26);
    }
    memcpy(line + BYTES + 1, "\"\n", 3);
    DONE_WITH(&cli, line, "append", "long", "--type", "n");
    free(line);
}

START_TEST(a_full_disk_is_reported_as_a_failure_of_storage)
{
    CLI(&cli, "1\n", "append", "s1", "--type", "n");
    for (int i = 0; i < 2; i++) { /* the write at the end fails, then a write before it */
        CLI(&cli, NULL, "export", "--format", "bundle", "--to", "/dev/full");
        cli_assert_refused(&cli, EXIT_STORAGE, "No space left on device");
        make_long_session();
    }
}
END_TEST

START_TEST(an_export_of_a_bundle_succeeds_if_its_reader_closes_the_pipe)
{
    make_long_session();
    int input, output, status, error = open(tmpdir_path(&cli.dir, "err"), O_RDWR | O_CREAT, 0600);
    int saved = dup(STDERR_FILENO);
    dup2(error, STDERR_FILENO);
    const char *words[] = {"export", "--format", "bundle", NULL};
    pid_t pid = cli_start(&cli, words, &input, &output);
    dup2(saved, STDERR_FILENO);
    close(saved);
    char begin[10];
    ck_assert_int_eq(read(output, begin, sizeof begin), sizeof begin);
    close(output);
    close(input);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, EXIT_DONE);
    ck_assert_int_eq(lseek(error, 0, SEEK_END), 0);
    close(error);
}
END_TEST

START_TEST(a_failed_read_of_a_bundle_is_an_io_error_and_not_damage)
{
    struct tar_reader *reader;
    annal_error err = {0};
    const char *name;
    uint64_t bytes;
    make_long_session();
    const char *file = tmpdir_path(&cli.dir, "all.annal");
    CLI(&cli, NULL, "export", "--format", "bundle", "--to", file);
    int directory = open(cli.dir.path, O_RDONLY | O_DIRECTORY), fd = dup(directory);
    close(fd); /* the next open takes this descriptor; read() of a directory fails */
    ck_assert_int_eq(tar_reader_open(file, file, &reader, &err), ANNAL_OK);
    ck_assert_int_eq(dup2(directory, fd), fd);
    close(directory);
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK)
        status = tar_next(reader, &name, &bytes, &err);
    ck_assert_int_eq(status, ANNAL_ERR_IO);
    ck_assert_msg(strstr(err.message, "Is a directory") != NULL, "%s", err.message);
    tar_reader_free(reader);
}
END_TEST

/* ---- Malicious bundles: plain tar with a valid seal ---- */

struct made {
    char bytes[65536];
    size_t len;
};

static void made_add(struct made *made, const char *name, char type, const char *link,
                     const char *bytes, size_t len)
{
    char *head = made->bytes + made->len;
    unsigned sum = 0;
    memset(head, 0, 512);
    snprintf(head, 100, "%s", name);
    memcpy(head + 100, "0000600", 8);
    memcpy(head + 108, "0000000", 8);
    memcpy(head + 116, "0000000", 8);
    snprintf(head + 124, 12, "%011zo", len);
    memcpy(head + 136, "00000000000", 12);
    memset(head + 148, ' ', 8);
    head[156] = type;
    snprintf(head + 157, 100, "%s", link);
    memcpy(head + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    memcpy(head + 512, bytes, len);
    memset(head + 512 + len, 0, (512 - len % 512) % 512);
    made->len += 512 + (len + 511) / 512 * 512;
}

static const char *made_seal(struct made *made)
{
    struct sha256 *sha256 = annal__sha256_begin();
    const char *file = tmpdir_path(&cli.dir, "made.annal");
    memset(made->bytes + made->len, 0, 1024);
    made->len += 1024;
    annal__sha256_add(sha256, made->bytes, made->len);
    memcpy(made->bytes + made->len,
           "\x5e\x2a\x4d\x18\x28\0\0\0"
           "ANNALBND",
           16);
    annal__sha256_end(sha256, (uint8_t *)made->bytes + made->len + 16);
    file_write(file, made->bytes, made->len + 48);
    return file;
}

/* Parts of a bundle with a single session. */
struct parts {
    char *journal;
    size_t len;
    struct bundle bundle;
    struct bundle_session *session;
};

static void parts_init(struct parts *parts)
{
    annal_store *store = NULL;
    annal_session_info info;
    DONE_WITH(&cli, "1\n2\n", "append", "s1", "--type", "n");
    parts->journal = cli_journal(&cli, "s1", &parts->len);
    parts->bundle = (struct bundle){0};
    parts->session = bundle_add_session(&parts->bundle);
    strcpy(parts->session->session, "s1");
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.read_only = true}, &store, NULL),
        ANNAL_OK);
    ck_assert_int_eq(annal_session_info_get(store, ANNAL_SLICE("s1"), &info, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
    parts->session->format = ANNAL_FORMAT_JSON;
    parts->session->bytes = parts->len;
    parts->session->last_seq = info.last_seq;
    parts->session->h = info.last_h;
    memcpy(parts->session->file, info.file, sizeof info.file);
    hash_text(parts->journal, parts->len, parts->session->sha256);
}

static void made_manifest(struct made *made, const struct parts *parts)
{
    struct buf text = {0};
    ck_assert_int_eq(bundle_manifest_write(&parts->bundle, &text, NULL), ANNAL_OK);
    made_add(made, "manifest.json", '0', "", text.ptr, text.len);
    annal__buf_done(&text);
}

static void assert_harmless(struct made *made, const char *why)
{
    const char *file = made_seal(made);
    CLI(&cli, NULL, "import", "bundle", file, OTHER(&cli));
    cli_assert_refused(&cli, EXIT_REFUSED, why);
    CLI(&cli, NULL, "export", "s1", OTHER(&cli));
    ck_assert_int_ne(cli.exit_status, EXIT_DONE);
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "evil"), F_OK), 0);
    made->len = 0;
}

START_TEST(a_bundle_whose_files_differ_from_its_manifest_is_refused)
{
    static struct made made;
    struct parts parts;
    parts_init(&parts);
    const char *journal = "events/s1.jsonl";
    made_manifest(&made, &parts);
    made_add(&made, "../evil", '0', "", parts.journal, parts.len);
    assert_harmless(&made, "the files in the bundle differ from the manifest");
    made_manifest(&made, &parts);
    made_add(&made, journal, '2', "/etc/passwd", "", 0);
    assert_harmless(&made, "not a regular file");
    made_manifest(&made, &parts);
    made_add(&made, journal, '1', "manifest.json", "", 0);
    assert_harmless(&made, "not a regular file");
    made_manifest(&made, &parts);
    made_add(&made, journal, '0', "", parts.journal, parts.len - 1);
    assert_harmless(&made, "the files in the bundle differ from the manifest");
    made_manifest(&made, &parts);
    made_add(&made, journal, '0', "", parts.journal, parts.len);
    made_add(&made, "events/s2.jsonl", '0', "", parts.journal, parts.len);
    assert_harmless(&made, "more files");
    made_manifest(&made, &parts);
    assert_harmless(&made, "the files in the bundle differ from the manifest");
    made_add(&made, journal, '0', "", parts.journal, parts.len);
    assert_harmless(&made, "the first file in the bundle is not manifest.json");
    made_manifest(&made, &parts);
    made_add(&made, journal, '0', "", parts.journal, parts.len);
    const char *file = made_seal(&made);
    DONE(&cli, "import", "bundle", file, OTHER(&cli)); /* so the refusal has no other reason */
    bundle_done(&parts.bundle);
    free(parts.journal);
}
END_TEST

START_TEST(a_bundle_with_a_false_manifest_is_refused)
{
    static struct made made;
    struct parts parts;
    parts_init(&parts);
    struct bundle_session *session = parts.session, good = *session;
    strcpy(session->session, "../s1");
    made_manifest(&made, &parts);
    assert_harmless(&made, "is not valid");
    *session = good;
    session->bytes = UINT64_MAX;
    made_manifest(&made, &parts);
    assert_harmless(&made, "a number in the manifest is too large");
    *session = good;
    session->bytes = UINT64_MAX / 8;
    made_manifest(&made, &parts);
    assert_harmless(&made, "unpack to more than 1000 times the size of the bundle");
    *session = good;
    strcpy(session->fork, "parent");
    session->fork_seq = 1;
    made_manifest(&made, &parts);
    assert_harmless(&made, "without the parent session of the fork");
    *session = good;
    session->last_seq = 3;
    made_manifest(&made, &parts);
    made_add(&made, "events/s1.jsonl", '0', "", parts.journal, parts.len);
    assert_harmless(&made, "is damaged");
    *session = good;
    session->h ^= 1;
    made_manifest(&made, &parts);
    made_add(&made, "events/s1.jsonl", '0', "", parts.journal, parts.len);
    assert_harmless(&made, "is damaged");
    *session = good;
    session->sha256[0] = session->sha256[0] == '0' ? '1' : '0';
    made_manifest(&made, &parts);
    made_add(&made, "events/s1.jsonl", '0', "", parts.journal, parts.len);
    assert_harmless(&made, "the hash of events/s1.jsonl differs from the manifest");
    *session = good;
    *strstr(parts.journal, "\"data\":2") = 'x'; /* with its hash in the manifest */
    hash_text(parts.journal, parts.len, session->sha256);
    made_manifest(&made, &parts);
    made_add(&made, "events/s1.jsonl", '0', "", parts.journal, parts.len);
    assert_harmless(&made, "is damaged");
    made_add(&made, "manifest.json", '0', "", "{\"annal_bundle\":3}", 18);
    CLI(&cli, NULL, "import", "bundle", made_seal(&made), OTHER(&cli));
    ck_assert_ptr_nonnull(strstr(cli.err, "reads only versions 1 and 2"));
    bundle_done(&parts.bundle);
    free(parts.journal);
}
END_TEST

/* One zstd frame of 1.25 GiB: each block repeats a byte 128 KiB times. */
static size_t put_bomb(char *out)
{
    enum { BLOCKS = 10240, BLOCK_BYTES = 128 << 10 };
    static const char head[] = "\x28\xb5\x2f\xfd\x00\x58"; /* without a size; a window of 2 MiB */
    size_t len = sizeof head - 1;
    memcpy(out, head, len);
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned block = BLOCK_BYTES << 3 | 1 << 1 | (i == BLOCKS - 1);
        memcpy(out + len, (const char[]){(char)block, (char)(block >> 8), (char)(block >> 16), 'x'},
               4);
        len += 4;
    }
    return len;
}

START_TEST(an_artifact_that_unpacks_to_more_than_1_gib_is_refused)
{
    static struct made made;
    static char bomb[50000];
    struct parts parts;
    parts_init(&parts);
    struct bundle_artifact *artifact = bundle_add_artifact(&parts.bundle);
    char path[BUNDLE_PATH_BYTES];
    strcpy(artifact->session, "s1");
    memset(artifact->name, 'a', 64);
    artifact->bytes = put_bomb(bomb);
    hash_text(bomb, artifact->bytes, artifact->sha256);
    bundle_artifact_path(artifact, path);
    made_manifest(&made, &parts);
    made_add(&made, "events/s1.jsonl", '0', "", parts.journal, parts.len);
    made_add(&made, path, '0', "", bomb, artifact->bytes);
    assert_harmless(&made,
                    "the artifacts unpack to more than 1 GiB and 100 times the size of the bundle");
    bundle_done(&parts.bundle);
    free(parts.journal);
}
END_TEST

START_TEST(a_bundle_of_a_damaged_session_is_refused)
{
    size_t len;
    CLI(&cli, "1\n22\n3\n", "append", "s1", "--type", "n");
    char *journal = cli_journal(&cli, "s1", &len);
    *strstr(journal, ":22,") = ';';
    cli_journal_write(&cli, "s1", journal, len);
    free(journal);
    const char *file = tmpdir_path(&cli.dir, "x.annal");
    CLI(&cli, NULL, "export", "s1", "--format", "bundle", "--to", file);
    cli_assert_refused(&cli, EXIT_REFUSED, "annal repair s1");
    ck_assert_int_ne(access(file, F_OK), 0);
    CLI(&cli, NULL, "export", "s1", "--format", "bundle", "--to", file, "--at", "1");
    cli_assert_refused(&cli, EXIT_USAGE, "whole journals");
}
END_TEST

/* Count the imports that have staged a session. */
static int count_laid_down(const char *store, const char *journal)
{
    int count = 0;
    char path[400];
    DIR *files = opendir(store);
    for (struct dirent *entry; files != NULL && (entry = readdir(files)) != NULL;) {
        snprintf(path, sizeof path, "%.100s/%.100s/events/%s", store, entry->d_name, journal);
        count += strncmp(entry->d_name, ".importing-", 11) == 0 && access(path, F_OK) == 0 ? 1 : 0;
    }
    if (files != NULL)
        closedir(files);
    return count;
}

/* The second import finds the same content as its own. */
START_TEST(two_concurrent_imports_of_a_bundle_both_succeed)
{
    int input[2], output[2], status;
    pid_t pids[2];
    const char *file = make_bundle(), *store = tmpdir_path(&cli.dir, "other");
    DONE_WITH(&cli, "1\n", "append", "another", "--type", "n", OTHER(&cli));
    /* This lock stops an import before it adopts artifacts, and so before its sessions. */
    int lock =
        open(tmpdir_path(&cli.dir, "other/locks/artifacts"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    const char *words[] = {"import", "bundle", file, OTHER(&cli), NULL};
    for (int i = 0; i < 2; i++)
        pids[i] = cli_start(&cli, words, &input[i], &output[i]);
    for (int i = 0; i < 3000 && count_laid_down(store, "a-fork.jsonl") < 2; i++)
        usleep(10000);
    ck_assert_int_eq(count_laid_down(store, "a-fork.jsonl"), 2);
    usleep(700000); /* both have compared the bundle with the store */
    close(lock);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, EXIT_DONE);
        close(input[i]);
        close(output[i]);
    }
    assert_same_journal("a-fork.jsonl");
    assert_same_journal("packed.mpk");
    assert_no_stage();
    DONE(&cli, "verify", OTHER(&cli));
}
END_TEST

static int count_journals(const char *path)
{
    int count = 0;
    DIR *events = opendir(path);
    for (struct dirent *entry; events != NULL && (entry = readdir(events)) != NULL;)
        count += strstr(entry->d_name, ".jsonl") != NULL ? 1 : 0;
    if (events != NULL)
        closedir(events);
    return count;
}

/* Import, and kill the import when N journals are in place, unless it ends first. */
static void import_and_kill(const char *const *words, const char *events, int after)
{
    int input, output, status;
    pid_t pid = cli_start(&cli, words, &input, &output), ended = 0;
    while (count_journals(events) < after && (ended = waitpid(pid, &status, WNOHANG)) == 0)
        usleep(200);
    if (ended == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    close(input);
    close(output);
}

START_TEST(an_import_that_is_killed_leaves_whole_sessions_and_the_next_one_finishes)
{
    enum { SESSIONS = 40 };
    char id[20], path[60];
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "s%d", i);
        CLI(&cli, "1\n2\n3\n", "append", id, "--type", "n");
    }
    const char *file = tmpdir_path(&cli.dir, "all.annal");
    const char *events = tmpdir_path(&cli.dir, "other/events");
    DONE(&cli, "export", "--format", "bundle", "--to", file);
    const char *words[] = {"import", "bundle", file, OTHER(&cli), NULL};
    int partly = 0;
    for (int after = 1; after < SESSIONS; after += 6) {
        import_and_kill(words, events, after);
        int there = count_journals(events);
        partly += there > 0 && there < SESSIONS ? 1 : 0;
        DONE(&cli, "verify", OTHER(&cli));
        for (int i = 0; i < SESSIONS; i++) {
            snprintf(path, sizeof path, "other/events/s%d.jsonl", i);
            if (access(tmpdir_path(&cli.dir, path), F_OK) == 0)
                assert_same_journal(path + strlen("other/events/"));
        }
    }
    printf("killed in the middle: %d of 7\n", partly);
    cli_run(&cli, NULL, words);
    cli_assert_done(&cli);
    ASSERT_OUT(&cli, "40 sessions, 120 events, 0 artifacts: all hashes are equal");
    assert_no_stage();
}
END_TEST

START_TEST(no_text_of_an_event_escapes_its_element_of_the_page)
{
    CLI(&cli, "\"</script><script>alert(1)</script>\"\n\"<!--<script>\"\n", "append", "s1",
        "--type", "n");
    DONE(&cli, "export", "s1", "--format", "html");
    ASSERT_OUT(&cli, "\"root\":\"s1\"");
    ASSERT_OUT(&cli, "data-session=\"s1\" data-from=\"1\" data-to=\"2\">");
    ASSERT_OUT(&cli, "\"data\":\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\"}\n");
    ASSERT_NOT_OUT(&cli, "<script>alert");
    /* The head, the events, the script and the licenses of the page. */
    ck_assert_int_eq(count_of(cli.out, "</script>"), 4);
}
END_TEST

START_TEST(with_tree_a_page_contains_the_child_sessions)
{
    CLI(&cli, "{\"agent_id\":\"a\"}\n", "append", "up", "--type", "session.created");
    CLI(&cli, "{\"parent_session_id\":\"up\"}\n", "append", "below", "--type", "session.created");
    DONE(&cli, "fork", "below", "fork", "--at", "1");
    DONE(&cli, "export", "up", "--format", "html", "--tree");
    ck_assert_int_eq(count_of(cli.out, "{\"session\":{\"session_id\":"), 3);
    ASSERT_OUT(&cli, "data-session=\"fork\" data-from=\"1\" data-to=\"1\">");
    DONE(&cli, "export", "up", "--format", "html");
    ck_assert_int_eq(count_of(cli.out, "{\"session\":{\"session_id\":"), 1);
    CLI(&cli, NULL, "export", "--format", "html");
    ck_assert_int_eq(cli.exit_status, EXIT_USAGE);
    CLI(&cli, NULL, "export", "up", "--tree");
    ck_assert_int_eq(cli.exit_status, EXIT_USAGE);
}
END_TEST

/* Another process that may write to the store's directory can replace the staging directory. */
START_TEST(staged_files_stay_below_their_directory_after_its_name_became_a_link)
{
    annal_error err = {0};
    char text[SHA256_TEXT_BYTES];
    int fd = -1;
    struct staging staging = {.from = "a test", .stage_lock = -1, .err = &err};
    DONE_WITH(&cli, "1\n", "append", "s1", "--type", "n");
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &staging.store, NULL), ANNAL_OK);
    ck_assert_int_eq(staging_begin(&staging, 7), ANNAL_OK);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "victim"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "victim/events"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "victim/events/s1.jsonl"), "mine", 4);
    ck_assert_int_eq(rename(staging.stage.ptr, tmpdir_path(&cli.dir, "aside")), 0);
    ck_assert_int_eq(symlink(tmpdir_path(&cli.dir, "victim"), staging.stage.ptr), 0);
    struct below below = staging_below(&staging);
    ck_assert_int_eq(bundle_hash_below(&below, "events/s1.jsonl", 4, text, &err),
                     ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(staging_open_file(&staging, "events/s1.jsonl", O_RDWR | O_CREAT, &fd),
                     ANNAL_OK);
    ck_assert_int_eq(write(fd, "new", 3), 3);
    close(fd);
    size_t len;
    ck_text(file_read(tmpdir_path(&cli.dir, "victim/events/s1.jsonl"), &len), "mine");
    ck_text(file_read(tmpdir_path(&cli.dir, "aside/events/s1.jsonl"), &len), "new");
    annal_store *store = staging.store;
    staging_done(&staging);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
    ck_text(file_read(tmpdir_path(&cli.dir, "victim/events/s1.jsonl"), &len), "mine");
}
END_TEST

Suite *suite_export(void)
{
    Suite *suite = suite_create("export");
    TCase *lines = suite_case(suite, "lines", cli_setup, cli_teardown);
    tcase_add_test(lines, exported_events_are_appended_again_with_the_same_bytes);
    tcase_add_test(lines, several_sessions_in_one_file_are_imported_as_separate_sessions);
    tcase_add_test(lines, a_fork_is_exported_with_what_it_shares_and_up_to_an_event);
    tcase_add_test(lines, long_data_is_exported_whole);
    tcase_add_test(lines, a_file_receives_its_name_when_it_is_complete);
    tcase_add_test(lines, an_overwritten_file_keeps_its_mode_and_its_links);
    tcase_add_test(lines, a_file_without_a_name_is_written_in_place);
    tcase_add_loop_test(lines, an_export_that_is_interrupted_leaves_nothing, 0, 3);
    tcase_add_test(lines, an_export_reports_damage_and_exports_everything_else);
    TCase *markdown = suite_case(suite, "markdown", cli_setup, cli_teardown);
    tcase_add_test(markdown, a_transcript_shows_speakers_costs_and_unfinished_calls);
    tcase_add_test(markdown, a_page_has_no_empty_sections_and_the_headings_of_a_message_are_bold);
    tcase_add_test(markdown, a_transcript_shows_no_base64);
    tcase_add_test(markdown, without_full_long_results_are_cut_with_a_note);
    tcase_add_loop_test(markdown, nothing_in_an_event_breaks_the_page, 0,
                        sizeof hostile / sizeof *hostile);
    TCase *otlp = suite_case(suite, "otlp", cli_setup, cli_teardown);
    tcase_add_loop_test(otlp, an_import_of_a_logs_spans_restores_tokens_costs_and_calls, 0,
                        sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(otlp, an_import_of_a_real_logs_spans_restores_tokens_costs_and_calls, 0,
                        sizeof kinds / sizeof *kinds);
    tcase_add_test(otlp, spans_are_children_of_their_turn_and_keep_their_ids);
    tcase_add_test(otlp, spans_that_a_crash_left_open_end_with_the_last_event_and_are_marked);
    tcase_add_test(otlp, a_result_before_its_call_belongs_to_that_call);
    tcase_add_loop_test(otlp, a_turn_that_ends_in_an_answer_is_complete, 0,
                        sizeof last_events / sizeof *last_events);
    tcase_add_test(otlp, a_chat_span_contains_its_messages_and_the_type_of_its_failure);
    tcase_add_test(otlp, a_chat_span_omits_very_long_messages_and_marks_them_as_cut);
    tcase_add_test(otlp, negative_usage_is_subtracted_from_the_sum);
    TCase *html = suite_case(suite, "html", cli_setup, cli_teardown);
    tcase_add_test(html, no_text_of_an_event_escapes_its_element_of_the_page);
    tcase_add_test(html, with_tree_a_page_contains_the_child_sessions);
    TCase *bundle = suite_case(suite, "bundle", cli_setup, cli_teardown);
    tcase_set_timeout(bundle, 300);
    tcase_add_test(bundle, an_import_of_a_bundle_copies_journals_byte_for_byte);
    tcase_add_test(bundle, the_same_store_gives_the_same_bundle_and_tar_reads_it);
    tcase_add_test(bundle, a_bundle_of_a_fork_contains_its_parent);
    tcase_add_test(bundle, a_bundle_extends_a_session_that_the_store_already_begins);
    tcase_add_test(bundle, a_bundle_contains_the_acknowledged_events_of_an_open_session);
    tcase_add_test(bundle, a_bundle_may_extend_a_session_by_several_appends);
    tcase_add_test(bundle, a_bundle_with_another_content_under_a_known_name_is_refused_whole);
    tcase_add_test(bundle, a_bundle_restores_a_deleted_session);
    tcase_add_test(bundle,
                   a_bundle_with_any_flipped_byte_or_any_cut_is_refused_and_nothing_written);
    tcase_add_test(bundle, a_full_disk_is_reported_as_a_failure_of_storage);
    tcase_add_test(bundle, an_export_of_a_bundle_succeeds_if_its_reader_closes_the_pipe);
    tcase_add_test(bundle, a_failed_read_of_a_bundle_is_an_io_error_and_not_damage);
    tcase_add_test(bundle, staged_files_stay_below_their_directory_after_its_name_became_a_link);
    tcase_add_test(bundle, a_bundle_whose_files_differ_from_its_manifest_is_refused);
    tcase_add_test(bundle, a_bundle_with_a_false_manifest_is_refused);
    tcase_add_test(bundle, a_bundle_of_version_1_is_imported);
    tcase_add_test(bundle, two_concurrent_imports_of_a_bundle_both_succeed);
    tcase_add_test(bundle, an_artifact_that_unpacks_to_more_than_1_gib_is_refused);
    tcase_add_test(bundle, a_bundle_of_a_damaged_session_is_refused);
    tcase_add_test(bundle,
                   an_import_that_is_killed_leaves_whole_sessions_and_the_next_one_finishes);
    return suite;
}
