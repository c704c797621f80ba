/* SPDX-License-Identifier: Apache-2.0 */
/* No bytes of a store, a file's name or the command line control a terminal. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The title of a window, a colour by C1, marks of direction; as bytes, and as JSON writes them. */
#define NASTY                                                                                      \
    "\033]0;owned\a\xc2\x9b"                                                                       \
    "31m\x7f\u202e\u2066\u061c\u200f harbour"
#define JSON_NASTY                                                                                 \
    "\\u001b]0;owned\\u0007\xc2\x9b"                                                               \
    "31m\x7f\u202e\u2066\u061c\u200f harbour"
#define JSON_ESCAPED "\\u001b]0;owned\\u0007\\u009b31m\\u007f\\u202e\\u2066\\u061c\\u200f harbour"

static const char history[] =
    "{\"type\":\"session.created\",\"data\":{\"title\":\"" JSON_NASTY
    "\",\"agent_id\":\"" JSON_ESCAPED "\",\"model\":\"" JSON_NASTY "\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"" JSON_NASTY "\",\"sequence\":1}}\n"
    "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"" JSON_NASTY "\"}}\n"
    "{\"type\":\"message.added\",\"data\":{\"role\":\"" JSON_NASTY "\",\"content\":\"" JSON_ESCAPED
    "\"}}\n"
    "{\"type\":\"tool.called\",\"data\":{\"call_id\":\"" JSON_NASTY "\",\"tool\":\"" JSON_NASTY
    "\",\"input\":{\"" JSON_NASTY "\":\"" JSON_NASTY "\"}}}\n"
    "{\"type\":\"tool.failed\",\"data\":{\"call_id\":\"c1\",\"tool\":\"" JSON_NASTY
    "\",\"error\":\"" JSON_NASTY "\"}}\n"
    "{\"type\":\"note.added\",\"data\":{\"" JSON_NASTY "\":\"" JSON_ESCAPED "\"}}\n";

#define PACK "-- pack x   version 1   database x.db\nCREATE TABLE t (a);\n\"" NASTY "\" no;\n"

struct case_ {
    const char *words[10];
    bool shows; /* the words that contain NASTY, and the bytes */
};

/* The runs, in this order. FILE has NASTY in its name, and contains NASTY and a byte that is not
 * UTF-8. */
static const struct case_ cases[] = {
    {{"cat", "s"}, true},
    {{"cat", "s", "--json", "--last", "2"}, true},
    {{"tail", "s"}, true},
    {{"tail", "--all", "--json"}, true},
    {{"ls"}, true},
    {{"ls", "--json"}, true},
    {{"show", "s"}, true},
    {{"show", "s", "--json"}, true},
    {{"show", "s", "--recovery"}, true},
    {{"query"}, true},
    {{"query", "s", "--format", "table"}, true},
    {{"query", "s", "--format", "csv"}, true},
    {{"query", "--where", "data LIKE '%harbour%'"}, true},
    {{"sql", "SELECT seq, data FROM events"}, true},
    {{"sql", "--format", "csv", "SELECT data->>'content' AS c FROM events"}, true},
    {{"sql", "--format", "jsonl", "SELECT data->>'content' AS c FROM events"}, true},
    {{"sql", "--format", "csv", "SELECT char(27) || ']0;x' || char(7, 0x9b, 0x202e) AS c"}, true},
    {{"sql", "SELECT char(27) || ']0;x' || char(7, 0x9b, 0x202e) AS \"" NASTY "\""}, true},
    {{"sql", "--format", "csv", "SELECT CAST(x'9bff1b5b6d' AS TEXT) || '\u202e'"}, true},
    {{"sql", "SELECT \"" NASTY "\" FROM nothing"}, true},
    {{"sql", "-- " NASTY "\nSELEC"}, false},
    {{"search", "harbour"}, true},
    {{"search", "harbour", "--json"}, true},
    {{"search", NASTY}, false},
    {{"replay", "s"}, true},
    {{"replay", "s", "--json"}, true},
    {{"replay", "s", "--sql", "SELECT title FROM sessions"}, true},
    {{"replay", "s", "--events", "--speed", "max", "--full"}, true},
    {{"replay", "s", "--events", "--speed", "max", "--json"}, true},
    {{"replay", "s", "--verify"}, false},
    {{"diff", "s", "1", "7"}, true},
    {{"diff", "s", "1", "7", "--json"}, true},
    {{"stats"}, false},
    {{"stats", "--plot"}, false},
    {{"stats", "--plot", "s"}, true},
    {{"export", "s"}, true},
    {{"export", "s", "--to", "/dev/tty"}, true},
    {{"export", "s", "--format", "markdown"}, true},
    {{"export", "s", "--format", "markdown", "--full", "--to", "/dev/stdout"}, true},
    {{"export", "s", "--format", "otlp"}, true},
    {{"export", "s", "--format", NASTY}, true},
    {{"artifact", "put", "s", "FILE"}, false},
    {{"artifact", "ls"}, false},
    {{"artifact", "get", "s", "HASH"}, true},
    {{"artifact", "get", "s", NASTY}, true},
    {{"snapshot", "take", "s"}, false},
    {{"snapshot", "list", "s"}, false},
    {{"fork", "s", "--at", "2", "f"}, false},
    {{"repair", "s", "--dry-run"}, false},
    {{"convert", "s", "--format", "msgpack"}, false},
    {{"cat", "s"}, true},
    {{"import", "claude-code", "FILE"}, true},
    {{"import", "FILE"}, true},
    {{"pack", "check", "FILE"}, true},
    {{"pack", "check", "PACK"}, true},
    {{"pack", "enable", NASTY}, true},
    {{"pack", "list"}, false},
    {{"team", "create", NASTY, "--id", "t1", "--member", NASTY}, false},
    {{"team", "send", "t1", NASTY, "--from", NASTY, "--summary", NASTY}, false},
    {{"team", "inbox", "t1"}, true},
    {{"team", "inbox", "t1", "--json"}, true},
    {{"team", "members", "t1"}, true},
    {{"team", "ls"}, true},
    {{"project", "create", "p1", "--name", NASTY, "--owner", NASTY}, false},
    {{"project", "ls"}, true},
    {{"decision", "create", "p1", NASTY, "--type", "scope", "--content", NASTY}, false},
    {{"decision", "ls", "p1"}, true},
    {{"memory", "note", "p1", "ada", NASTY}, false},
    {{"memory", "ls", "p1"}, true},
    {{"memory", "compile", "p1", "--agent", "ada"}, true},
    {{"context", "start", "p1", "--focus", NASTY, "--summary", NASTY}, false},
    {{"context", "ls", "p1"}, true},
    {{"context", "current", "p1"}, true},
    {{"backlog", "add", "p1", NASTY, "--description", NASTY}, false},
    {{"backlog", "ls", "p1"}, true},
    {{"workflow", "create", "w1", "--project", "p1"}, false},
    {{"steering", "issue", "w1", "amend", NASTY}, false},
    {{"steering", "ls", "w1"}, true},
    {{"plan", "spec", "w1", NASTY, "--content", NASTY}, false},
    {{"plan", "ls", "w1"}, true},
    {{"lionagi", "session", "l1"}, false},
    {{"lionagi", "branch", "l1", "--id", "b1"}, false},
    {{"lionagi", "message", "l1", "\"" JSON_NASTY "\"", "--branch", "b1"}, false},
    {{"lionagi", "history", "b1"}, true},
    {{"prose", "bind", "r1", "name", NASTY}, false},
    {{"prose", "get", "r1", "name"}, true},
    {{"verify"}, true},
    {{"verify", "--json"}, true},
    {{"doctor"}, true},
    {{"doctor", "--json"}, true},
    {{"reindex"}, true},
    {{"backup", "FILE/b"}, true},
    {{"restore", "FILE", "--store", NASTY}, true},
    {{"delete", NASTY}, true},
    {{"cat", NASTY}, true},
    {{NASTY}, true},
    {{"cat", "--" NASTY}, true},
    {{"-" NASTY}, true},
    {{"help", NASTY}, true},
    {{"ls", "--store", NASTY}, true},
    {{"append", "s", "--type", NASTY}, false},
    {{"cursor", "show", NASTY}, false},
    {{"version"}, false},
};

/* ---- Running on a terminal ---- */

struct tty {
    char text[1 << 17];
    size_t len;
    int exit_status;
};

static void run_on_terminal(struct tty *tty, const char *const *words)
{
    struct winsize size = {.ws_row = 30, .ws_col = 200};
    int terminal, status = 0;
    fflush(NULL);
    pid_t pid = forkpty(&terminal, NULL, NULL, &size);
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        cli_exec(&cli, words);
    if (strcmp(words[0], "delete") == 0 || strcmp(words[0], "append") == 0)
        (void)!write(terminal, "\004", 1); /* the end of input */
    tty->len = 0;
    /* A read may fail although the command still writes: only after its end nothing more comes. */
    bool ended = false;
    for (;;) {
        ssize_t got = read(terminal, tty->text + tty->len, sizeof tty->text - 1 - tty->len);
        if (got > 0)
            tty->len += (size_t)got;
        else if (ended || tty->len == sizeof tty->text - 1)
            break;
        else if (waitpid(pid, &status, WNOHANG) == pid)
            ended = true;
        else
            usleep(1000);
    }
    tty->text[tty->len] = '\0';
    close(terminal);
    ck_assert(ended || waitpid(pid, &status, 0) == pid);
    tty->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Find a byte that could control a terminal; NULL if none does. */
static const char *find_steering(const char *text, bool colours)
{
    for (const char *at = text; *at != '\0';) {
        unsigned char a = (unsigned char)at[0], b = (unsigned char)at[1],
                      c = b == 0 ? 0 : (unsigned char)at[2];
        size_t ours = strspn(at + (a == 033 && b == '['), "[0123456789;\033");
        if (strncmp(at, CLEAR_LINE, strlen(CLEAR_LINE)) == 0) {
            at += strlen(CLEAR_LINE);
            continue;
        }
        if (colours && a == 033 && at[1 + ours] == 'm') {
            at += ours + 2;
            continue;
        }
        if ((a < 0x20 && a != '\n' && a != '\t' && !(a == '\r' && (b == '\n' || b == '\r'))) ||
            a == 0x7f || (a == 0xc2 && b < 0xa0) || (a == 0xd8 && b == 0x9c) ||
            (a == 0xe2 && b == 0x80 && (c == 0x8e || c == 0x8f || (c >= 0xa8 && c <= 0xae))) ||
            (a == 0xe2 && b == 0x81 && c >= 0xa6 && c <= 0xa9))
            return at;
        size_t bytes = a < 0x80 ? 1 : a < 0xc2 ? 0 : a < 0xe0 ? 2 : a < 0xf0 ? 3 : a < 0xf5 ? 4 : 0;
        for (size_t i = 1; i < bytes; i++)
            if (((unsigned char)at[i] & 0xc0) != 0x80)
                bytes = 0;
        if (bytes == 0)
            return at;
        at += bytes;
    }
    return NULL;
}

static const char *nasty_file(void)
{
    return tmpdir_path(&cli.dir, "x\xff" NASTY);
}

static void set_up(void)
{
    static const char *const packs[] = {"lionagi", "teams", "agentweaver", "memory", "prose"};
    static const char stray[] = "store/events/" NASTY ".jsonl";
    DONE_WITH(&cli, history, "append", "s");
    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++)
        CLI(&cli, NULL, "pack", "enable", packs[i]);
    CLI(&cli, NULL, "prose", "init", "r1");
    file_write(nasty_file(), NASTY "\xff\n", strlen(NASTY) + 2);
    file_write(tmpdir_path(&cli.dir, "pack.sql"), PACK, strlen(PACK));
    file_write(tmpdir_path(&cli.dir, stray), "x", 1);
}

static void words_of(const struct case_ *one, const char *hash, const char **out_words)
{
    static char inside[400];
    for (size_t i = 0; i < 10; i++) {
        const char *word = one->words[i];
        if (word != NULL && strcmp(word, "FILE") == 0)
            word = nasty_file();
        else if (word != NULL && strcmp(word, "FILE/b") == 0) {
            snprintf(inside, sizeof inside, "%s/b", nasty_file());
            word = inside;
        } else if (word != NULL && strcmp(word, "PACK") == 0)
            word = tmpdir_path(&cli.dir, "pack.sql");
        else if (word != NULL && strcmp(word, "HASH") == 0)
            word = hash;
        out_words[i] = word;
    }
    out_words[10] = NULL;
}

/* Hash of the stored artifact. */
static void note_hash(const struct tty *tty, char hash[65])
{
    for (const char *at = tty->text; *at != '\0'; at++) {
        if (strspn(at, "0123456789abcdef") == 64)
            snprintf(hash, 65, "%.64s", at);
    }
}

static struct tty tty;

static void run_all(bool colours)
{
    char hash[65] = "";
    unsigned failed = 0;
    unsetenv("NO_COLOR");
    setenv("TERM", colours ? "xterm" : "dumb", 1);
    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *words[11];
        words_of(&cases[i], hash, words);
        run_on_terminal(&tty, words);
        note_hash(&tty, hash);
        const char *steers = find_steering(tty.text, colours);
        bool shown = !cases[i].shows || strstr(tty.text, "\\u202e") != NULL;
        bool ended = tty.exit_status >= 0 && tty.exit_status <= EXIT_STORAGE;
        if (steers != NULL || !shown || !ended)
            fprintf(stderr, "%zu annal %s %s: exit status %d, %s: %.300s\n", i, words[0],
                    words[1] == NULL ? "" : words[1], tty.exit_status,
                    steers != NULL ? "steers" : "shows nothing of it",
                    steers != NULL ? steers : tty.text);
        failed += steers != NULL || !shown || !ended;
    }
    ck_assert_uint_eq(failed, 0);
}

START_TEST(no_verb_lets_content_steer_the_terminal)
{
    run_all(false);
}
END_TEST

START_TEST(colours_of_annal_are_the_only_terminal_sequences)
{
    run_all(true);
}
END_TEST

START_TEST(a_pipe_and_a_file_receive_the_unchanged_bytes)
{
    size_t len;
    CLI(&cli, history, "append", "s");
    static const char *const verbs[][6] = {
        {"cat", "s"},
        {"tail", "s"},
        {"query", "s"},
        {"export", "s"},
        {"sql", "SELECT data FROM events"},
        {"sql", "--format", "csv", "SELECT data FROM events"},
        {"sql", "--format", "csv", "SELECT data->>'content' FROM events"},
        {"show", "s"},
        {"search", "harbour"},
        {"replay", "s", "--events"},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli_run(&cli, NULL, verbs[i]);
        cli_assert_done(&cli);
        ck_assert_msg(strstr(cli.out, "\xc2\x9b"
                                      "31m\x7f\u202e\u2066\u061c\u200f") != NULL,
                      "%s: %s", verbs[i][0], cli.out);
    }
    CLI(&cli, NULL, "sql", "--format", "csv", "SELECT data->>'content' FROM events");
    ck_assert_ptr_nonnull(strstr(cli.out, NASTY));
    CLI(&cli, NULL, "cat", NASTY);
    ck_assert_ptr_nonnull(strstr(cli.err, NASTY));
    CLI(&cli, NULL, "cat", "two\nlines\r");
    ck_assert_ptr_nonnull(strstr(cli.err, "'two\\u000alines\\u000d'"));
    /* Started on a terminal, with its output in a file. */
    const char *file = tmpdir_path(&cli.dir, "out.jsonl");
    run_on_terminal(&tty, (const char *[]){"export", "s", "--to", file, NULL});
    ck_assert_int_eq(tty.exit_status, 0);
    char *written = file_read(file, &len);
    CLI(&cli, NULL, "export", "s");
    ck_assert_str_eq(written, cli.out);
    free(written);
}
END_TEST

/* JSON copied from the screen has the same value. */
START_TEST(json_on_a_terminal_escapes_characters_and_keeps_the_value)
{
    CLI(&cli, "{\"type\":\"a\",\"ts\":\"2026-01-06T07:24:00Z\",\"data\":\"" JSON_NASTY "\"}\n",
        "append", "s");
    setenv("TERM", "dumb", 1);
    run_on_terminal(&tty, (const char *[]){"cat", "s", "--json", NULL});
    ck_assert_str_eq(tty.text, "{\"seq\":1,\"ts\":\"2026-01-06T07:24:00.000000Z\",\"type\":\"a\","
                               "\"data\":\"" JSON_ESCAPED "\"}\r\n");
}
END_TEST

Suite *suite_terminal(void)
{
    Suite *suite = suite_create("terminal");
    TCase *tests = suite_case(suite, "terminal", cli_setup, cli_teardown);
    tcase_add_test(tests, no_verb_lets_content_steer_the_terminal);
    tcase_add_test(tests, colours_of_annal_are_the_only_terminal_sequences);
    tcase_add_test(tests, a_pipe_and_a_file_receive_the_unchanged_bytes);
    tcase_add_test(tests, json_on_a_terminal_escapes_characters_and_keeps_the_value);
    return suite;
}
