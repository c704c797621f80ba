/* SPDX-License-Identifier: Apache-2.0 */
/* query and sql with --format parquet; DuckDB itself reads back what they wrote. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Find DuckDB's library for the command and the test. If it is missing, print that the test is
 * skipped, and return false. */
static bool has_duckdb(const char *test)
{
    glob_t found = {0};
    if (getenv("ANNAL_DUCKDB") == NULL &&
        glob(ANNAL_SOURCE "/build/duckdb/node_modules/@duckdb/*/libduckdb.so", 0, NULL, &found) ==
            0)
        setenv("ANNAL_DUCKDB", found.gl_pathv[0], 1);
    globfree(&found);
    if (getenv("ANNAL_DUCKDB") != NULL)
        return true;
    fprintf(stderr, "SKIPPED: %.*s: no DuckDB here: run cmake/duckdb.sh\n", (int)strlen(test) - 3,
            test); /* without Check's _fn */
    return false;
}

struct answer {
    const char *directory; /* contains only the files of the command */
    const char *path;
};

#define BEGIN(answer)                                                                              \
    do {                                                                                           \
        if (!has_duckdb(__func__))                                                                 \
            return;                                                                                \
        begin(answer);                                                                             \
    } while (0)

static void begin(struct answer *answer)
{
    answer->directory = tmpdir_path(&cli.dir, "answers");
    answer->path = tmpdir_path(&cli.dir, "answers/it's.parquet");
    ck_assert_int_eq(mkdir(answer->directory, 0700), 0);
}

static int files(const struct answer *answer)
{
    int count = 0;
    DIR *directory = opendir(answer->directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

#define SQL(answer, sql) CLI(&cli, NULL, "sql", sql, "--format", "parquet", "--to", (answer)->path)
#define QUERY(answer, ...)                                                                         \
    CLI(&cli, NULL, "query", "--format", "parquet", "--to", (answer)->path, __VA_ARGS__)

static void assert_written(const struct answer *answer)
{
    cli_assert_done(&cli);
    ck_assert_uint_eq(cli.out_len, 0);
    ck_assert_int_eq(files(answer), 1);
}

/* ---- Reading back: read_parquet.c ---- */

static void assert_reads(struct answer *answer, const char *sql, const char *want)
{
    const char *out = tmpdir_path(&cli.dir, "read");
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        execl(READ_PARQUET, READ_PARQUET, sql, answer->path, out, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "DuckDB: %d: %s", status, sql);
    ck_text(file_read(out, NULL), want);
}

/* ---- Events ---- */

START_TEST(duckdb_reads_the_same_events)
{
    struct answer answer;
    BEGIN(&answer);
    CLI(&cli,
        "{\"type\":\"a.b\",\"id\":\"i\u00e91\",\"cause\":\"other:7\",\"ts\":\"2026-01-06T07:00:00."
        "123456Z\",\"data\":{\"t\":\"a\\u0000b\\ud800 \U0001F600\",\"n\":"
        "123456789012345678901234567890, \"x\":1.50}}\n"
        "{\"type\":\"c\",\"ts\":\"1969-12-31T23:59:59.999999Z\",\"data\":null}\n",
        "append", "s");
    cli_assert_done(&cli);
    QUERY(&answer, "s");
    assert_written(&answer);
    assert_reads(&answer, "SELECT column_name, column_type FROM (DESCRIBE f)",
                 "session_id|VARCHAR\nseq|BIGINT\ntimestamp|TIMESTAMP WITH TIME ZONE\n"
                 "type|VARCHAR\nid|VARCHAR\ncause|VARCHAR\ndata|VARCHAR\n");
    assert_reads(&answer,
                 "SELECT session_id, seq, epoch_us(timestamp), type, id, cause, data FROM f "
                 "ORDER BY seq",
                 "s|1|1767682800123456|a.b|i\u00e91|other:7|{\"t\":\"a\\u0000b\\ufffd \U0001F600\""
                 ",\"n\":123456789012345678901234567890, \"x\":1.50}\n"
                 "s|2|-1|c|NULL|NULL|null\n");
}
END_TEST

START_TEST(an_answer_without_events_is_a_file_with_columns)
{
    struct answer answer;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    QUERY(&answer, "--type", "none");
    assert_written(&answer);
    assert_reads(&answer, "SELECT count(*), count(data) FROM f", "0|0\n");
    SQL(&answer, "SELECT id, total_turns FROM sessions WHERE id = 'none'");
    assert_written(&answer);
    assert_reads(&answer,
                 "SELECT column_name, column_type, (SELECT count(*) FROM f) FROM (DESCRIBE f)",
                 "id|VARCHAR|0\ntotal_turns|VARCHAR|0\n");
}
END_TEST

static char *many_events(size_t count)
{
    char *text = malloc(count * 64 + 1), *at = text;
    ck_assert_ptr_nonnull(text);
    for (size_t i = 1; i <= count; i++)
        at += sprintf(at, "{\"type\":\"t%zu\",\"data\":{\"n\":%zu}}\n", i % 3, i);
    return text;
}

/* The SELECT gives many chunks and several row groups. */
START_TEST(many_rows_keep_their_order_and_their_sums)
{
    struct answer answer;
    char want[200];
    BEGIN(&answer);
    const uint64_t count = many_or(100000, 5000);
    char *input = many_events(count);
    CLI(&cli, input, "append", "s", "--level", "os");
    ck_assert_int_eq(cli.exit_status, 0);
    free(input);
    snprintf(want, sizeof want, "%lu|%lu|%lu|0\n", (unsigned long)count,
             (unsigned long)(count * (count + 1) / 2), (unsigned long)(count * (count + 1) / 2));
    QUERY(&answer, "s");
    assert_written(&answer);
    static const char sums[] =
        "SELECT count(*), sum(seq), sum(substr(data, 6, length(data) - 6)::BIGINT), "
        "count(*) FILTER (seq <> file_row_number + 1) FROM rows";
    assert_reads(&answer, sums, want);
    SQL(&answer, "SELECT seq, printf('{\"n\":%d}', seq) AS data, hex(zeroblob(2000)) AS long "
                 "FROM event_index ORDER BY seq");
    assert_written(&answer);
    assert_reads(&answer, sums, want);
}
END_TEST

START_TEST(groups_are_written_with_their_counts)
{
    struct answer answer;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":1}\n", "append", "s");
    QUERY(&answer, "--group-by", "type");
    assert_written(&answer);
    assert_reads(&answer, "SELECT type, events, typeof(events) FROM f", "a|2|BIGINT\n");
}
END_TEST

/* ---- SQL ---- */

START_TEST(columns_of_sql_have_the_types_of_their_values)
{
    struct answer answer;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    SQL(&answer,
        "SELECT 9223372036854775807 AS i, 1 AS r, 9007199254740993 AS wide, x'00ff' AS b, "
        "'2026-01-06T07:00:00.000000Z' AS t, 1 AS mixed, NULL AS none, x'0a' AS bt, "
        "CAST(x'ff41' AS TEXT) AS raw, 1e999 AS inf "
        "UNION ALL SELECT NULL, 2.5, 0.5, x'', 'a' || char(0) || 'b', 'x', NULL, 'y', 7, 1.5 "
        "UNION ALL SELECT -9223372036854775807 - 1, NULL, NULL, NULL, NULL, 0.1, NULL, NULL, 'z', "
        "-1e999");
    assert_written(&answer);
    assert_reads(&answer, "SELECT column_name, column_type FROM (DESCRIBE f)",
                 "i|BIGINT\nr|DOUBLE\nwide|VARCHAR\nb|BLOB\nt|VARCHAR\nmixed|VARCHAR\n"
                 "none|VARCHAR\nbt|VARCHAR\nraw|BLOB\ninf|DOUBLE\n");
    assert_reads(&answer,
                 "SELECT i, r, wide, hex(b), hex(t), mixed, none, bt, hex(raw), inf FROM f",
                 "9223372036854775807|1.0|9007199254740993|00FF|323032362D30312D30365430373A30303A"
                 "30302E3030303030305A|1|NULL|0a|FF41|inf\n"
                 "NULL|2.5|0.5||610062|x|NULL|y|37|1.5\n"
                 "-9223372036854775808|NULL|NULL|NULL|NULL|0.1|NULL|NULL|7A|-inf\n");
}
END_TEST

START_TEST(columns_with_equal_names_are_numbered)
{
    struct answer answer;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    SQL(&answer, "SELECT 1 AS a, 2 AS A, 3 AS a_1, 4 AS a, 5 AS \"\", 6 AS \"x'\"\"y\"");
    assert_written(&answer);
    assert_reads(&answer, "SELECT column_name FROM (DESCRIBE f)",
                 "a\nA_1\na_1_1\na_2\ncolumn_5\nx'\"y\n");
}
END_TEST

/* ---- The file ---- */

START_TEST(a_failed_query_keeps_the_old_file)
{
    struct answer answer;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    file_write(answer.path, "old", 3);
    SQL(&answer, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 9000) "
                 "SELECT x, CASE WHEN x = 9000 THEN abs(-9223372036854775807 - 1) END FROM c");
    cli_assert_refused(&cli, EXIT_REFUSED, "integer overflow");
    QUERY(&answer, "--where", "json_extract(data, 'no path')");
    cli_assert_refused(&cli, EXIT_REFUSED, "no path");
    char *text = file_read(answer.path, NULL);
    ck_assert_str_eq(text, "old");
    ck_assert_int_eq(files(&answer), 1);
    free(text);
}
END_TEST

static void wait_for_files(const struct answer *answer, int count)
{
    for (int i = 0; i < 3000 && files(answer) != count; i++)
        usleep(10000);
    ck_assert_int_eq(files(answer), count);
}

START_TEST(an_interrupted_query_leaves_no_file)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct answer answer;
    int status, input, output;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    static const char endless[] = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
                                  "SELECT x FROM c WHERE x < 0";
    const char *const words[] = {"sql", endless, "--format", "parquet", "--to", answer.path, NULL};
    pid_t pid = cli_start(&cli, words, &input, &output);
    wait_for_files(&answer, 1);
    kill(pid, signals[_i]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signals[_i]);
    ck_assert_int_eq(files(&answer), 0);
    close(input);
    close(output);
}
END_TEST

START_TEST(an_overwritten_parquet_file_keeps_its_mode_and_its_links)
{
    struct answer answer;
    struct stat found;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    const char *other = tmpdir_path(&cli.dir, "other.parquet");
    file_write(other, "old", 3);
    ck_assert_int_eq(chmod(other, 0640), 0);
    ck_assert_int_eq(symlink("../other.parquet", answer.path), 0);
    SQL(&answer, "SELECT 7 AS n");
    assert_written(&answer);
    ck_assert_int_eq(lstat(answer.path, &found), 0);
    ck_assert(S_ISLNK(found.st_mode));
    ck_assert_int_eq(stat(other, &found), 0);
    ck_assert_int_eq(found.st_mode & 0777, 0640);
    assert_reads(&answer, "SELECT n FROM f", "7\n");
}
END_TEST

START_TEST(a_query_reports_a_damaged_event_and_writes_the_others)
{
    struct answer answer;
    size_t len;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":11}\n{\"type\":\"a\",\"data\":22}\n", "append", "s");
    CLI(&cli, NULL, "query", "--count");
    char *journal = cli_journal(&cli, "s", &len);
    strstr(journal, "\"data\":11")[7] = '9';
    cli_journal_write(&cli, "s", journal, len);
    free(journal);
    QUERY(&answer, "s");
    cli_assert_refused(&cli, EXIT_REFUSED, "event 1 at byte");
    assert_reads(&answer, "SELECT seq, data FROM f", "2|22\n");
}
END_TEST

/* ---- Refusals ---- */

START_TEST(parquet_needs_a_file_and_a_file_needs_parquet)
{
    CLI(&cli, NULL, "query", "--format", "parquet");
    cli_assert_refused(&cli, EXIT_USAGE, "needs --to FILE");
    CLI(&cli, NULL, "sql", "SELECT 1", "--format", "parquet", "--to", "");
    cli_assert_refused(&cli, EXIT_USAGE, "--to needs a value");
    CLI(&cli, NULL, "sql", "SELECT 1", "--format", "csv", "--to", "x");
    cli_assert_refused(&cli, EXIT_USAGE, "--to needs --format parquet");
    CLI(&cli, NULL, "query", "--json", "--format", "parquet", "--to", "x");
    cli_assert_refused(&cli, EXIT_USAGE, "cannot be used together");
    CLI(&cli, NULL, "sql", "SELECT 1", "--format", "xml");
    cli_assert_refused(&cli, EXIT_USAGE, "jsonl, csv, table or parquet, not 'xml'");
}
END_TEST

START_TEST(a_file_that_cannot_be_created_is_refused_before_the_query_runs)
{
    struct answer answer;
    BEGIN(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    answer.path = tmpdir_path(&cli.dir, "none/x.parquet");
    SQL(&answer, "SELECT 1");
    cli_assert_refused(&cli, EXIT_STORAGE, "none/x.parquet': No such file");
    answer.path = answer.directory;
    SQL(&answer, "SELECT 1");
    cli_assert_refused(&cli, EXIT_STORAGE, "answers': the path is not a regular file");
    ck_assert_int_eq(files(&answer), 0);
}
END_TEST

START_TEST(without_duckdb_the_message_names_the_setting)
{
    struct answer answer;
    begin(&answer);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s");
    const char *was = getenv("ANNAL_DUCKDB");
    char *kept = was != NULL ? strdup(was) : NULL;
    setenv("ANNAL_DUCKDB", "/nowhere/libduckdb.so", 1);
    SQL(&answer, "SELECT 1");
    cli_assert_refused(&cli, EXIT_STORAGE, "$ANNAL_DUCKDB does not point to it");
    setenv("ANNAL_DUCKDB", "libm.so.6", 1);
    QUERY(&answer, "s");
    cli_assert_refused(&cli, EXIT_STORAGE, "libm.so.6 has no duckdb_");
    unsetenv("ANNAL_DUCKDB");
    void *installed = dlopen("libduckdb.so", RTLD_LAZY);
    QUERY(&answer, "s");
    if (installed == NULL)
        cli_assert_refused(&cli, EXIT_STORAGE, "set ANNAL_DUCKDB to ");
    ck_assert_int_eq(files(&answer), installed != NULL);
    if (kept != NULL)
        setenv("ANNAL_DUCKDB", kept, 1);
    free(kept);
}
END_TEST

Suite *suite_parquet(void)
{
    Suite *suite = suite_create("parquet");
    TCase *parquet = suite_case(suite, "parquet", cli_setup, cli_teardown);
    tcase_add_test(parquet, duckdb_reads_the_same_events);
    tcase_add_test(parquet, an_answer_without_events_is_a_file_with_columns);
    tcase_add_test(parquet, many_rows_keep_their_order_and_their_sums);
    tcase_add_test(parquet, groups_are_written_with_their_counts);
    tcase_add_test(parquet, columns_of_sql_have_the_types_of_their_values);
    tcase_add_test(parquet, columns_with_equal_names_are_numbered);
    tcase_add_test(parquet, a_failed_query_keeps_the_old_file);
    tcase_add_loop_test(parquet, an_interrupted_query_leaves_no_file, 0, 3);
    tcase_add_test(parquet, an_overwritten_parquet_file_keeps_its_mode_and_its_links);
    tcase_add_test(parquet, a_query_reports_a_damaged_event_and_writes_the_others);
    tcase_add_test(parquet, parquet_needs_a_file_and_a_file_needs_parquet);
    tcase_add_test(parquet, a_file_that_cannot_be_created_is_refused_before_the_query_runs);
    tcase_add_test(parquet, without_duckdb_the_message_names_the_setting);
    return suite;
}
