/* SPDX-License-Identifier: Apache-2.0 */
/* annal export: the exported formats, and imports that restore the same data. */
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

/* Data whose bytes a parser would change. */
#define ODD_EVENTS                                                                                 \
    "{\"type\":\"a.b\",\"data\":{ \"n\" : 1.50e+1,\"n\":12345678901234567890123 },"                \
    "\"id\":\"one\",\"ts\":\"2026-01-06T07:24:00.5Z\"}\n"                                          \
    "{\"type\":\"c\",\"data\":\"\\u00e9\\ud800\\/ caf\xc3\xa9\",\"cause\":\"other:16\"}\n"         \
    "{\"type\":\"d\",\"data\":[1e400,-0,null , true]}\n"

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

/* ---- Markdown ---- */

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

START_TEST(an_import_of_a_real_logs_spans_restores_tokens_costs_and_calls)
{
    char *folder = real_logs(kinds[_i]);
    if (folder != NULL)
        import_there_and_back(kinds[_i], folder);
    free(folder);
}
END_TEST

/* ---- Bundles ---- */

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
    tcase_add_loop_test(lines, an_export_that_is_interrupted_leaves_nothing, 0, 3);
    TCase *markdown = suite_case(suite, "markdown", cli_setup, cli_teardown);
    tcase_add_loop_test(markdown, nothing_in_an_event_breaks_the_page, 0,
                        sizeof hostile / sizeof *hostile);
    TCase *otlp = suite_case(suite, "otlp", cli_setup, cli_teardown);
    tcase_add_loop_test(otlp, an_import_of_a_real_logs_spans_restores_tokens_costs_and_calls, 0,
                        sizeof kinds / sizeof *kinds);
    TCase *bundle = suite_case(suite, "bundle", cli_setup, cli_teardown);
    tcase_set_timeout(bundle, 300);
    tcase_add_test(bundle,
                   a_bundle_with_any_flipped_byte_or_any_cut_is_refused_and_nothing_written);
    tcase_add_test(bundle, a_failed_read_of_a_bundle_is_an_io_error_and_not_damage);
    tcase_add_test(bundle, staged_files_stay_below_their_directory_after_its_name_became_a_link);
    tcase_add_test(bundle, two_concurrent_imports_of_a_bundle_both_succeed);
    tcase_add_test(bundle,
                   an_import_that_is_killed_leaves_whole_sessions_and_the_next_one_finishes);
    return suite;
}
