/* SPDX-License-Identifier: Apache-2.0 */
/* annal ship to a lake of Parquet files; DuckDB itself reads them back. */
#include "journal/base/error.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/export/duckdb.h"
#include "tools/ship/ship.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LARGE_BYTES = 1 << 20 };

static char url[300];

/* Find DuckDB's library; false: say that the test is skipped. */
static bool begin(const char *test)
{
    glob_t found = {0};
    if (getenv("ANNAL_DUCKDB") == NULL &&
        glob(ANNAL_SOURCE "/build/duckdb/node_modules/@duckdb/*/libduckdb.so", 0, NULL, &found) ==
            0)
        setenv("ANNAL_DUCKDB", found.gl_pathv[0], 1);
    globfree(&found);
    snprintf(url, sizeof url, "file://%s", tmpdir_path(&cli.dir, "lake"));
    if (getenv("ANNAL_DUCKDB") != NULL)
        return true;
    fprintf(stderr, "SKIPPED: %.*s: no DuckDB here: run cmake/duckdb.sh\n", (int)strlen(test) - 3,
            test); /* without Check's _fn */
    return false;
}

#define SHIP(...) CLI(&cli, NULL, "ship", url, "--as", "h1", __VA_ARGS__)

static void append(const char *session, int from, int count)
{
    char *input = malloc((size_t)count * 60 + 1), *at = input;
    for (int i = from; i < from + count; i++)
        at += sprintf(at, "{\"type\":\"t\",\"data\":{\"n\":%d}}\n", i);
    DONE_WITH(&cli, input, "append", session, "--level", "batch");
    free(input);
}

/* What DuckDB answers about all files of the lake. */
static void assert_reads(const char *sql, const char *want)
{
    const char *out = tmpdir_path(&cli.dir, "read");
    const char *files = tmpdir_path(&cli.dir, "lake/*/*/*.parquet");
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        execl(READ_PARQUET, READ_PARQUET, sql, files, out, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "DuckDB: %d: %s", status, sql);
    ck_text(file_read(out, NULL), want);
}

static const char whole[] = "SELECT count(*), count(DISTINCT session_id || ' ' || seq), "
                            "count(*) FILTER (data <> '{\"n\":' || seq || '}') FROM f";

static void assert_whole(int events)
{
    char want[100];
    snprintf(want, sizeof want, "%d|%d|0\n", events, events);
    assert_reads(whole, want);
    snprintf(want, sizeof want, "{\"events\":%d,\"behind\":0,\"dropped\":0,\"sound\":true}\n",
             events);
    DONE(&cli, "ship", "check", url, "--as", "h1", "--json");
    ck_assert_str_eq(cli.out, want);
}

START_TEST(events_are_in_the_lake_once_and_unchanged)
{
    if (!begin(__func__))
        return;
    DONE_WITH(
        &cli,
        "{\"type\":\"a.b\",\"id\":\"i\u00e91\",\"cause\":\"other:7\",\"ts\":"
        "\"2026-01-06T07:00:00.123456Z\",\"data\":{\"t\":\"a\\u0000b\\ud800\", \"x\":1.50}}\n",
        "append", "s1");
    SHIP("--json");
    cli_assert_done(&cli);
    assert_reads("SELECT session_id, seq, epoch_us(timestamp), type, id, cause, data FROM f",
                 "s1|1|1767682800123456|a.b|i\u00e91|other:7|{\"t\":\"a\\u0000b\\ud800\", "
                 "\"x\":1.50}\n");
    append("s2", 1, 100);
    SHIP("--batch", "30");
    cli_assert_done(&cli);
    assert_reads("SELECT count(*), count(DISTINCT session_id || seq) FROM f", "101|101\n");
    SHIP("--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"events\":0,"));
}
END_TEST

/* Rule 2: the shipper was killed between the manifest and the name. */
START_TEST(a_file_with_a_manifest_is_renamed_after_a_crash)
{
    if (!begin(__func__))
        return;
    glob_t found = {0};
    char tmp[600];
    append("s1", 1, 5);
    SHIP(NULL);
    ck_assert_int_eq(glob(tmpdir_path(&cli.dir, "lake/*/*/*.parquet"), 0, NULL, &found), 0);
    snprintf(tmp, sizeof tmp, "%s.tmp", found.gl_pathv[0]);
    ck_assert_int_eq(rename(found.gl_pathv[0], tmp), 0);
    globfree(&found);
    append("s1", 6, 5);
    SHIP(NULL);
    cli_assert_done(&cli);
    assert_whole(10);
}
END_TEST

/* Only the file of the last manifest may lack its name. */
START_TEST(no_manifest_is_written_while_a_file_cannot_be_renamed)
{
    if (!begin(__func__))
        return;
    glob_t found = {0};
    char tmp[600];
    append("s1", 1, 5);
    SHIP(NULL);
    ck_assert_int_eq(glob(tmpdir_path(&cli.dir, "lake/*/*/*.parquet"), 0, NULL, &found), 0);
    snprintf(tmp, sizeof tmp, "%s.tmp", found.gl_pathv[0]);
    ck_assert_int_eq(rename(found.gl_pathv[0], tmp), 0);
    ck_assert_int_eq(mkdir(found.gl_pathv[0], 0777), 0);
    append("s1", 6, 5);
    SHIP(NULL);
    cli_assert_refused(&cli, 3, "rename");
    ck_assert_int_eq(rmdir(found.gl_pathv[0]), 0);
    globfree(&found);
    SHIP(NULL);
    cli_assert_done(&cli);
    assert_whole(10);
}
END_TEST

/* It ended when the file had its name and was about to lose the other one. */
START_TEST(a_temporary_file_of_the_same_process_id_is_not_overwritten)
{
    char path[600], tmp[700];
    annal_error err = {0};
    struct ship_target *lake = NULL;
    if (!begin(__func__))
        return;
    const struct ship_where where = {.url = url, .store = "h1"};
    ck_assert_int_eq(ship_lake.open(&where, true, &lake, &err), ANNAL_OK);
    ck_assert_int_eq(ship_lake.source->keep(lake, "hash", ANNAL_SLICE("one"), &err), ANNAL_OK);
    snprintf(path, sizeof path, "%s", tmpdir_path(&cli.dir, "lake/store=h1/artifacts/hash"));
    snprintf(tmp, sizeof tmp, "%s.%ld.tmp", path, (long)getpid());
    ck_assert_int_eq(link(path, tmp), 0);
    ck_assert_int_eq(ship_lake.source->keep(lake, "hash", ANNAL_SLICE("other"), &err), ANNAL_OK);
    ck_text(file_read(path, NULL), "one");
    ship_lake.close(lake);
}
END_TEST

static void break_file(const char *path)
{
    size_t len;
    char *bytes = file_read(path, &len);
    bytes[len / 2] ^= 1;
    file_write(path, bytes, len);
    free(bytes);
}

/* Of a day that was deleted all files are missing: one line says so. */
START_TEST(a_check_continues_after_missing_files)
{
    if (!begin(__func__))
        return;
    glob_t found = {0};
    append("s1", 1, 12);
    SHIP("--batch", "2");
    cli_assert_done(&cli);
    ck_assert_int_eq(glob(tmpdir_path(&cli.dir, "lake/*/*/*.parquet"), 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 6);
    ck_assert_int_eq(unlink(found.gl_pathv[0]), 0);
    break_file(found.gl_pathv[2]);
    ck_assert_int_eq(unlink(found.gl_pathv[3]), 0);
    break_file(found.gl_pathv[5]);
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "is missing, and 1 more files of this day"));
    ck_assert_ptr_nonnull(strstr(cli.err, found.gl_pathv[0]));
    ck_assert_ptr_nonnull(strstr(cli.err, found.gl_pathv[2]));
    ck_assert_ptr_nonnull(strstr(cli.err, found.gl_pathv[5]));
    globfree(&found);
}
END_TEST

START_TEST(a_lake_is_not_created_without_duckdb)
{
    const char *was = getenv("ANNAL_DUCKDB");
    char *kept = was != NULL ? strdup(was) : NULL;
    snprintf(url, sizeof url, "file://%s", tmpdir_path(&cli.dir, "lake"));
    append("s1", 1, 5);
    setenv("ANNAL_DUCKDB", "/nowhere/libduckdb.so", 1);
    duckdb = (struct duckdb){0}; /* what an earlier test loaded */
    SHIP(NULL);
    unsetenv("ANNAL_DUCKDB");
    if (kept != NULL)
        setenv("ANNAL_DUCKDB", kept, 1);
    free(kept);
    ck_assert_int_eq(cli.exit_status, 3);
    ck_assert_ptr_nonnull(strstr(cli.err, "$ANNAL_DUCKDB does not point to it"));
    ck_assert_int_ne(access(tmpdir_path(&cli.dir, "lake"), F_OK), 0);
}
END_TEST

static duckdb_state fail_query(duckdb_connection connection, const char *sql, duckdb_result *result)
{
    (void)connection, (void)sql, (void)result;
    return 1;
}

static const char *say_full(duckdb_result *result)
{
    (void)result;
    return "IO Error: Could not write file: No space left on device";
}

static int opened;

static annal_status open_full(const struct ship_where *where, bool to_write,
                              struct ship_target **out_target, annal_error *err)
{
    (void)where, (void)to_write, (void)out_target;
    errno = opened++ == 0 ? ENOSPC : EIO;
    return annal__fail_errno(err, "write");
}

static void close_none(struct ship_target *target)
{
    (void)target;
}

START_TEST(a_following_shipper_waits_for_space_at_its_target)
{
    if (!begin(__func__))
        return;
    append("s1", 1, 5);
    ck_assert_int_eq(duckdb_load(), 0);
    struct duckdb was = duckdb;
    duckdb.query = fail_query;
    duckdb.result_error = say_full;
    SHIP(NULL);
    duckdb = was;
    ck_assert_int_eq(cli.exit_status, 3);
    ck_assert_ptr_nonnull(
        strstr(cli.err, "cannot write a Parquet file of the lake: No space left on device"));

    annal_store *store = NULL;
    const struct ship_kind kind = {.open = open_full, .close = close_none};
    const struct ship_options options = {
        .target = {.url = "file:///full", .store = "h1"}, .kind = &kind, .follow = true};
    opened = 0;
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, NULL), ANNAL_OK);
    ck_assert_int_eq(ship_run(store, &options), 3);
    ck_assert_int_eq(opened, 2);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
}
END_TEST

START_TEST(damage_to_the_lake_is_noticed)
{
    if (!begin(__func__))
        return;
    glob_t found = {0};
    size_t len;
    append("s1", 1, 5);
    SHIP(NULL);
    ck_assert_int_eq(glob(tmpdir_path(&cli.dir, "lake/*/*/*.parquet"), 0, NULL, &found), 0);
    break_file(found.gl_pathv[0]);
    globfree(&found);
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "differs from the file that was written");
    const char *manifest = tmpdir_path(&cli.dir, "lake/store=h1/_log/00000001.json");
    char *bytes = file_read(manifest, &len);
    *strstr(bytes, "last_seq") = 'L';
    file_write(manifest, bytes, len);
    free(bytes);
    SHIP(NULL);
    cli_assert_refused(&cli, 1, "manifest 00000001 of the lake is damaged");
}
END_TEST

START_TEST(another_history_is_not_mixed_into_the_lake)
{
    if (!begin(__func__))
        return;
    append("s1", 1, 5);
    SHIP(NULL);
    DONE(&cli, "delete", "--yes", "s1");
    append("s1", 1, 9);
    SHIP(NULL);
    cli_assert_refused(&cli, 1, "a different history at the target");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    ck_assert_int_eq(cli.exit_status, 1);
    assert_reads(whole, "5|5|0\n");
}
END_TEST

static void assert_store_is_in(const char *store, const char *want)
{
    glob_t found = {0};
    CLI(&cli, NULL, "ship", url, "--as", store);
    cli_assert_done(&cli);
    ck_assert_int_eq(glob(tmpdir_path(&cli.dir, "lake/*"), 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    ck_assert_str_eq(strrchr(found.gl_pathv[0], '/') + 1, want);
    globfree(&found);
}

/* A comma makes two names of a file in ClickHouse, and = another column in DuckDB. */
START_TEST(no_name_of_a_store_is_a_pattern_or_a_column_in_queries_of_the_lake)
{
    if (!begin(__func__))
        return;
    append("s1", 1, 5);
    assert_store_is_in("a,{b}*?=c", "store=a%2c%7bb%7d%2a%3f%3dc");
    assert_reads(whole, "5|5|0\n");
}
END_TEST

/* As those who delete old days do. */
static void remove_last_file(void)
{
    glob_t found = {0};
    ck_assert_int_eq(glob(tmpdir_path(&cli.dir, "lake/*/*/*.parquet"), 0, NULL, &found), 0);
    ck_assert_int_eq(unlink(found.gl_pathv[found.gl_pathc - 1]), 0);
    globfree(&found);
}

/* The second run removes what the first one replaced, so that a pattern is right again. */
START_TEST(a_compacted_lake_has_the_same_events_in_fewer_files)
{
    if (!begin(__func__))
        return;
    append("s1", 1, 30);
    SHIP("--batch", "7");
    /* Today is not over. */
    DONE(&cli, "ship", "compact", url, "--as", "h1");
    ck_assert_ptr_nonnull(strstr(cli.out, "merged 0 files into 0; removed 0 "));
    DONE(&cli, "ship", "compact", url, "--as", "h1", "--today", "--json");
    ck_assert_str_eq(cli.out, "{\"read\":5,\"made\":1,\"removed\":0}\n");
    assert_reads("SELECT count(*), count(DISTINCT seq) FROM f", "60|30\n");
    append("s1", 31, 5);
    SHIP(NULL);
    DONE(&cli, "ship", "compact", url, "--as", "h1", "--today", "--keep", "0", "--json");
    ck_assert_str_eq(cli.out, "{\"read\":2,\"made\":1,\"removed\":5}\n");
    DONE(&cli, "ship", "compact", url, "--as", "h1", "--today", "--keep", "0", "--json");
    ck_assert_str_eq(cli.out, "{\"read\":0,\"made\":0,\"removed\":2}\n");
    assert_whole(35);
    for (int i = 36; i <= 38; i++) {
        append("s1", i, 1);
        SHIP(NULL);
    }
    remove_last_file();
    DONE(&cli, "ship", "compact", url, "--as", "h1", "--today", "--json");
    ck_assert_str_eq(cli.out, "{\"read\":3,\"made\":1,\"removed\":0}\n");
    CLI(&cli, NULL, "ship", "compact", "postgresql:///none");
    cli_assert_refused(&cli, 2, "only a lake can be compacted");
}
END_TEST

/* Without the checkpoint all manifests are read, as in a lake that never had a checkpoint. */
START_TEST(a_lake_with_a_checkpoint_is_opened_without_its_earlier_manifests)
{
    if (!begin(__func__))
        return;
    char first[600], aside[620];
    append("s1", 1, 6);
    SHIP("--batch", "2");
    DONE(&cli, "ship", "compact", url, "--as", "h1");
    snprintf(first, sizeof first, "%s", tmpdir_path(&cli.dir, "lake/store=h1/_log/00000001.json"));
    snprintf(aside, sizeof aside, "%s.aside", first);
    ck_assert_int_eq(rename(first, aside), 0);
    append("s1", 7, 2);
    SHIP(NULL);
    cli_assert_done(&cli);
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "manifest 00000001 of the lake is missing");
    ck_assert_int_eq(rename(aside, first), 0);
    assert_whole(8);

    const char *checkpoint = tmpdir_path(&cli.dir, "lake/store=h1/_log/_checkpoint");
    size_t len;
    char *bytes = file_read(checkpoint, &len);
    *strstr(bytes, "\"seq\":6") = ' ';
    file_write(checkpoint, bytes, len);
    free(bytes);
    append("s1", 9, 1);
    SHIP(NULL);
    cli_assert_done(&cli);
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(
        &cli, 1, "_checkpoint' of the lake differs from the manifests: remove the checkpoint");
    ck_assert_int_eq(unlink(checkpoint), 0);
    assert_whole(9);
}
END_TEST

static void assert_same_journal(const char *store, const char *name)
{
    char path[300];
    size_t here_len, there_len;
    snprintf(path, sizeof path, "%s/events/%s", store, name);
    char *there = file_read(path, &there_len);
    snprintf(path, sizeof path, "%s/events/%s", cli.store, name);
    char *here = file_read(path, &here_len);
    ck_assert_uint_eq(here_len, there_len);
    ck_assert_mem_eq(here, there, here_len);
    free(here);
    free(there);
}

START_TEST(a_session_pulled_from_a_lake_is_the_same_byte_for_byte)
{
    if (!begin(__func__))
        return;
    const char *first = cli.store;
    DONE_WITH(&cli,
              "{\"type\":\"a.b\",\"id\":\"i\u00e91\",\"cause\":\"other:7\",\"data\":{\"t\":"
              "\"a\\u0000b\\ud800|\\n\",\"n\":123456789012345678901234567890, \"x\":1.50}}\n"
              "{\"type\":\"c\",\"ts\":\"1969-12-31T23:59:59.999999Z\",\"data\":null}\n",
              "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":{\"x\":[1,-0.0,2.5,\"t\"]}}\n", "append", "s2",
              "--format", "msgpack");
    DONE_WITH(&cli, "much", "artifact", "put", "s2", "-");
    DONE_WITH(&cli, "much", "artifact", "put", "s2", "-");
    SHIP(NULL);
    DONE(&cli, "fork", "s1", "--at", "1", "s1b");
    append("s1b", 2, 3);
    SHIP(NULL);
    DONE(&cli, "ship", "compact", url, "--as", "h1", "--today", "--keep", "0");
    append("s1b", 5, 3);
    SHIP("--batch", "2");
    cli_assert_done(&cli);
    DONE(&cli, "ship", "check", url, "--as", "h1", "--artifacts");
    ck_assert_ptr_nonnull(strstr(cli.out, "proved: 1 artifacts; 0 more"));
    cli.store = tmpdir_path(&cli.dir, "other");
    CLI(&cli, NULL, "pull", "s1b", "--from", url);
    cli_assert_refused(&cli, 1, "--store-name is missing");
    DONE(&cli, "pull", "s1b", "--from", url, "--store-name", "h1", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"store\":\"h1\",\"seq\":7,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"sessions\":2,\"events\":8,\"added\":2,"));
    DONE(&cli, "pull", "s2", "--from", url, "--store-name", "h1", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"missing_artifacts\":0}"));
    assert_same_journal(first, "s1.jsonl");
    assert_same_journal(first, "s1b.jsonl");
    assert_same_journal(first, "s2.mpk");
    DONE(&cli, "verify");
    cli.store = first;
    DONE_WITH(&cli, "{\"type\":\"session.created\",\"data\":{\"parent_session_id\": \"s1b\"}}\n",
              "append", "agent");
    DONE_WITH(&cli, "{\"type\":\"session_start\",\"data\":{\"parent_session_id\":\"agent\"}}\n",
              "append", "helper");
    SHIP(NULL);
    append("s3", 1, 1);
    SHIP(NULL);
    remove_last_file();
    cli.store = tmpdir_path(&cli.dir, "third");
    DONE(&cli, "pull", "s1", "--from", url, "--store-name", "h1", "--tree");
    assert_same_journal(first, "s1b.jsonl");
    assert_same_journal(first, "agent.jsonl");
    assert_same_journal(first, "helper.jsonl");
    ck_assert_int_eq(cli_journals(&cli), 4);
    CLI(&cli, NULL, "pull", "none", "--from", url, "--store-name", "h1");
    cli_assert_refused(&cli, 1, "there is no session 'none'");
    cli.store = first;
}
END_TEST

static duckdb_state (*set_config)(duckdb_config config, const char *name, const char *value);

/* Too little to sort the session. DuckDB 2.0 needs more for its files than 1.5. */
static duckdb_state give_little_memory(duckdb_config config, const char *name, const char *value)
{
    const char *little = strncmp(duckdb.library_version(), "v1.", 3) == 0 ? "32MB" : "56MB";
    return set_config(config, name, strcmp(name, "memory_limit") == 0 ? little : value);
}

static annal_status expect_next(void *arg, const annal_event *event, annal_error *err)
{
    uint64_t *last = arg;
    (void)err;
    ck_assert_uint_eq(event->seq, ++*last);
    ck_assert_uint_eq(event->data.len, LARGE_BYTES);
    return ANNAL_OK;
}

/* Also if the files have its events in another order: the second file was missing while the others
 * were merged. */
START_TEST(a_session_larger_than_memory_is_read_from_a_lake_in_order)
{
    if (!begin(__func__))
        return;
    static char input[9 * (LARGE_BYTES + 40)];
    char *at = input, aside[600];
    glob_t found = {0};
    annal_error err = {0};
    struct ship_target *lake = NULL;
    uint64_t last = 0;
    for (int i = 0; i < 9; i++)
        at += sprintf(at, "{\"type\":\"t\",\"data\":\"%0*d\"}\n", LARGE_BYTES - 2, i);
    DONE_WITH(&cli, input, "append", "s1");
    SHIP("--batch", "3");
    cli_assert_done(&cli);
    ck_assert_int_eq(glob(tmpdir_path(&cli.dir, "lake/*/*/*.parquet"), 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 3);
    snprintf(aside, sizeof aside, "%s.aside", found.gl_pathv[1]);
    ck_assert_int_eq(rename(found.gl_pathv[1], aside), 0);
    DONE(&cli, "ship", "compact", url, "--as", "h1", "--today", "--json");
    ck_assert_str_eq(cli.out, "{\"read\":2,\"made\":1,\"removed\":0}\n");
    ck_assert_int_eq(rename(aside, found.gl_pathv[1]), 0);
    globfree(&found);

    ck_assert_int_eq(duckdb_load(), 0);
    set_config = duckdb.set_config;
    duckdb.set_config = give_little_memory;
    const struct ship_where where = {.url = url, .store = "h1"};
    ck_assert_int_eq(ship_lake.open(&where, false, &lake, &err), ANNAL_OK);
    ck_assert_int_eq(ship_lake.source->rows(lake, ANNAL_SLICE("s1"), 0, expect_next, &last, &err),
                     ANNAL_OK);
    ck_assert_uint_eq(last, 9);
    ship_lake.close(lake);
    duckdb.set_config = set_config;
}
END_TEST

#ifdef ANNAL_SHIP_S3
/* bucket.py ships to one. */
START_TEST(a_bucket_needs_keys_and_a_server)
{
    if (!begin(__func__))
        return;
    append("s1", 1, 1);
    CLI(&cli, NULL, "ship", "s3://lake/x", "--wait", "0");
    cli_assert_refused(&cli, 1, "needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    setenv("AWS_ACCESS_KEY_ID", "key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);
    CLI(&cli, NULL, "ship", "s3://lake/x", "--wait", "0");
    cli_assert_refused(&cli, 3, "ship to http://127.0.0.1:1/lake: ");
    CLI(&cli, NULL, "ship", "s3:///x");
    cli_assert_refused(&cli, 2, "has no bucket name");
    CLI(&cli, NULL, "pull", "s1", "--from", "s3://", "--store-name", "h1");
    cli_assert_refused(&cli, 2, "has no bucket name");
}
END_TEST
#endif

#ifdef ANNAL_SHIP_NATS
/* stream.py ships to one. */
START_TEST(a_stream_needs_a_server_and_cannot_be_checked)
{
    append("s1", 1, 1);
    CLI(&cli, NULL, "ship", "nats://u:secret@127.0.0.1:1", "--wait", "0");
    cli_assert_refused(&cli, 3, "ship to 127.0.0.1:1: ");
    CLI(&cli, NULL, "ship", "check", "nats://127.0.0.1:1");
    cli_assert_refused(&cli, 2, "annal ship check does not support streams");
    CLI(&cli, NULL, "tail", "--from", "nats://127.0.0.1:1", "--type", "x");
    cli_assert_refused(&cli, 2, "--type and --cursor are for a store");
    CLI(&cli, NULL, "tail", "--from", "nats://127.0.0.1:1");
    cli_assert_refused(&cli, 3, "127.0.0.1:1: ");
}
END_TEST
#endif

static void rest_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

/* Two at once, killed at any moment. */
START_TEST(killed_shippers_duplicate_and_lose_no_event)
{
    if (!begin(__func__))
        return;
    unsigned rounds = full_or(100, 5);
    struct random random = random_init(1);
    int events = 0;
    for (unsigned i = 0; i < rounds; i++) {
        const char *const words[] = {"ship", url, "--as", "h1", "--batch", "40", NULL};
        pid_t pids[2];
        append("s1", events + 1, 120);
        events += 120;
        for (int p = 0; p < 2; p++) {
            int in, out;
            pids[p] = cli_start(&cli, words, &in, &out);
            close(in);
            close(out);
        }
        rest_ms((unsigned)random_below(&random, 300));
        for (int p = 0; p < 2; p++) {
            kill(pids[p], SIGKILL);
            waitpid(pids[p], NULL, 0);
        }
    }
    SHIP(NULL);
    cli_assert_done(&cli);
    assert_whole(events);
}
END_TEST

Suite *suite_lake(void)
{
    Suite *suite = suite_create("lake");
    TCase *cases = suite_case(suite, "lake", cli_setup, cli_teardown);
    tcase_add_test(cases, events_are_in_the_lake_once_and_unchanged);
    tcase_add_test(cases, a_file_with_a_manifest_is_renamed_after_a_crash);
    tcase_add_test(cases, no_manifest_is_written_while_a_file_cannot_be_renamed);
    tcase_add_test(cases, a_temporary_file_of_the_same_process_id_is_not_overwritten);
    tcase_add_test(cases, a_check_continues_after_missing_files);
    tcase_add_test(cases, a_lake_is_not_created_without_duckdb);
    tcase_add_test(cases, a_following_shipper_waits_for_space_at_its_target);
    tcase_add_test(cases, damage_to_the_lake_is_noticed);
    tcase_add_test(cases, another_history_is_not_mixed_into_the_lake);
    tcase_add_test(cases, no_name_of_a_store_is_a_pattern_or_a_column_in_queries_of_the_lake);
    tcase_add_test(cases, a_compacted_lake_has_the_same_events_in_fewer_files);
    tcase_add_test(cases, a_lake_with_a_checkpoint_is_opened_without_its_earlier_manifests);
    tcase_add_test(cases, a_session_pulled_from_a_lake_is_the_same_byte_for_byte);
    tcase_add_test(cases, a_session_larger_than_memory_is_read_from_a_lake_in_order);
#ifdef ANNAL_SHIP_S3
    tcase_add_test(cases, a_bucket_needs_keys_and_a_server);
#endif
#ifdef ANNAL_SHIP_NATS
    tcase_add_test(cases, a_stream_needs_a_server_and_cannot_be_checked);
#endif
    tcase_add_test(cases, killed_shippers_duplicate_and_lose_no_event);
    return suite;
}
