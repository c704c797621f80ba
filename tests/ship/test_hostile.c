/* SPDX-License-Identifier: Apache-2.0 */
/* What a lake, a database, a bucket or a server says is not believed: nothing outside is touched,
 * and the command says what is wrong and ends with 1 or 3. */
#include "journal/base/buf.h"
#include "tests/ship/fixture.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/export/parquet.h"
#include "tools/ship/lake.h"
#include "tools/ship/shared.h"

#include <glob.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char lake_url[300];
static char megabyte[(1 << 20) + 1];

/* A lake of the store "evil", with nothing in it, and a directory beside it that is to stay. */
static void set_up(void)
{
    cli_setup();
    static const char *const folders[] = {"lake", "lake/store=evil", "lake/store=evil/_log",
                                          "lake/store=evil/day=2026-01-01", "target"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, folders[i]), 0777), 0);
    snprintf(lake_url, sizeof lake_url, "file://%s", tmpdir_path(&cli.dir, "lake"));
    file_write(tmpdir_path(&cli.dir, "target/notes.txt"), "mine", 4);
    file_write(tmpdir_path(&cli.dir, "target/notes.txt.tmp"), "other", 5);
}

static void assert_untouched(void)
{
    size_t len;
    ck_text(file_read(tmpdir_path(&cli.dir, "target/notes.txt"), &len), "mine");
    ck_text(file_read(tmpdir_path(&cli.dir, "target/notes.txt.tmp"), &len), "other");
}

/* Lines, and the last line that proves them: hostile is not damaged. */
static void put_text(const char *name, const char *lines)
{
    char path[300];
    size_t count = 0;
    struct buf text = {0};
    for (const char *c = strchr(lines, '\n'); c != NULL && c[1] != '\0'; c = strchr(c + 1, '\n'))
        count++;
    ck_assert_int_eq(annal__buf_append(&text, lines, strlen(lines)), ANNAL_OK);
    lake_end_text(&text, count);
    snprintf(path, sizeof path, "lake/store=evil/_log/%s", name);
    file_write(tmpdir_path(&cli.dir, path), text.ptr, text.len);
    annal__buf_done(&text);
}

#define FILE_1(name)                                                                               \
    "{\"annal_lake\":1,\"file\":\"" name                                                           \
    "\",\"rows\":0,\"bytes\":0,\"hash\":\"0000000000000000\"}\n"
#define GOOD_1 FILE_1("day=2026-01-01/00000001-00000000.parquet")
#define PIECE_1(session, rest)                                                                     \
    "{\"session\":\"" session "\",\"first_seq\":1,\"h_before\":\"0000000000000000\","              \
    "\"last_seq\":1,\"h\":\"0000000000000001\",\"at\":0" rest "}\n"
#define HEADER ",\"file\":\"00000000000000000000000000000001\",\"created_us\":1"

/* All verbs that read a lake. */
static void assert_refused_by_all(const char *says)
{
    static const char *const verbs[][8] = {
        {"pull", "x", "--from", lake_url, "--store-name", "evil"},
        {"pull", "x", "--tree", "--from", lake_url, "--store-name", "evil"},
        {"ship", "status", lake_url, "--as", "evil"},
        {"ship", "check", lake_url, "--as", "evil"},
    };
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli_run(&cli, NULL, verbs[i]);
        ck_assert_msg(cli.exit_status == 1 || cli.exit_status == 3, "%s: %d", verbs[i][0],
                      cli.exit_status);
        ck_assert_msg(strstr(cli.err, says) != NULL, "%s: %s", verbs[i][1], cli.err);
        assert_untouched();
    }
}

static const char *const bad_names[] = {
    "../../target/notes.txt",
    "/etc/passwd",
    "",
    "day=2026-01-01/../../../target/notes.txt",
    "day=2026-01-01/00000001-00000000.parquet/../../../../target/notes.txt",
    "day=../../../target/00000001-00000000.parquet",
    "day=2026-01-01//0000001-00000000.parquet",
    "day=2026-01-01/00000001-0000000X.parquet",
    "day=2026-01-01/00000001-00000000.parquet.tmp",
    "day=2026-1-01/00000001-00000000.parquet",
    "s3://other/day=2026-01-01/00000001-00000000.parquet",
    "_log/00000001.json",
    "day=2026-01-01/000000001-0000000.parquet",
    "day=2026-01-01/*",
};

START_TEST(a_manifest_names_only_files_of_its_lake)
{
    char line[400];
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        snprintf(line, sizeof line, FILE_1("%s"), bad_names[i]);
        put_text("00000001.json", line);
        assert_refused_by_all("manifest 00000001 of the lake is damaged, or has a version that "
                              "this annal cannot read");
    }
}
END_TEST

START_TEST(a_manifest_replaces_and_removes_only_files_of_its_lake)
{
    char text[900];
    put_text("00000001.json", GOOD_1);
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        int len = snprintf(text, sizeof text,
                           "{\"annal_lake\":2,\"file\":\"day=2026-01-01/00000002-00000000.parquet\""
                           ",\"rows\":0,\"bytes\":0,\"hash\":\"0000000000000000\"}\n");
        snprintf(text + len, sizeof text - (size_t)len, "{\"%s\":\"%s\"%s}\n",
                 i % 2 == 0 ? "replaces" : "removed", bad_names[i],
                 i % 2 == 0 ? ",\"at_us\":1" : "");
        put_text("00000002.json", text);
        assert_refused_by_all("manifest 00000002 of the lake is damaged");
    }
}
END_TEST

START_TEST(each_field_of_a_manifest_has_one_spelling_and_limits)
{
    static const char *const bad[] = {
        PIECE_1("../x", HEADER),
        PIECE_1("", HEADER),
        PIECE_1("-x", HEADER),
        PIECE_1("a\\nb", HEADER),
        PIECE_1("x", ",\"file\":\"../../0000000000000000000000001\",\"created_us\":1"),
        PIECE_1("x", ",\"file\":\"0001\",\"created_us\":1"),
        PIECE_1("x", ",\"file\":\"00000000000000000000000000000001\",\"created_us\":1e9"),
        PIECE_1("x", ",\"file\":\"00000000000000000000000000000001\",\"created_us\":"
                     "9223372036854775808"),
        PIECE_1("x", ",\"file\":\"00000000000000000000000000000001\",\"created_us\":"
                     "9223372036854775807"),
        PIECE_1("x", HEADER ",\"replaces\":\"zz\""),
        PIECE_1("x", HEADER ",\"parent\":\"../y\",\"forked_at\":1,\"fork_h\":\"0000000000000001\""),
        PIECE_1("x", HEADER ",\"parent\":\"y\",\"forked_at\":-1,\"fork_h\":\"0000000000000001\""),
        PIECE_1("x", HEADER ",\"parent\":\"y\",\"forked_at\":18446744073709551616,\"fork_h\":"
                            "\"0000000000000001\""),
        PIECE_1("x", HEADER ",\"parent\":\"y\",\"forked_at\":1,\"fork_h\":\"1\""),
        PIECE_1("x", ",\"more\":1"),
        "{\"session\":\"x\",\"first_seq\":0,\"h_before\":\"0000000000000000\",\"last_seq\":0,\"h\":"
        "\"0000000000000001\",\"at\":0}\n",
        "{\"session\":\"x\",\"first_seq\":2,\"h_before\":\"0000000000000000\",\"last_seq\":1,\"h\":"
        "\"0000000000000001\",\"at\":0}\n",
        "{\"session\":\"x\",\"first_seq\":1,\"h_before\":\"0000000000000000\",\"last_seq\":"
        "18446744073709551615,\"h\":\"0000000000000001\",\"at\":0}\n",
        "{\"session\":\"x\",\"first_seq\":01,\"h_before\":\"0000000000000000\",\"last_seq\":1,"
        "\"h\":\"0000000000000001\",\"at\":0}\n",
        "[[[[[[[[\n",
    };
    char text[1200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, GOOD_1 "%s", bad[i]);
        put_text("00000001.json", text);
        CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
        cli_assert_refused(&cli, 1, "manifest 00000001 of the lake is damaged");
    }
}
END_TEST

START_TEST(two_manifests_do_not_name_the_same_file)
{
    put_text("00000001.json", GOOD_1);
    put_text("00000002.json", GOOD_1);
    assert_refused_by_all("lists the file 'day=2026-01-01/00000001-00000000.parquet' twice");
}
END_TEST

/* What it says is not needed: the manifests are read in its place. */
START_TEST(a_checkpoint_that_names_other_files_is_not_used)
{
    char text[900];
    put_text("00000001.json", GOOD_1 PIECE_1("x", ""));
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        snprintf(text, sizeof text,
                 "{\"annal_lake\":1,\"checkpoint\":1,\"events\":1}\n"
                 "{\"file\":\"%s\",\"rows\":0,\"bytes\":0,\"hash\":\"0000000000000000\","
                 "\"replaced_us\":1}\n"
                 "{\"session\":\"x\",\"seq\":1,\"h\":\"0000000000000001\",\"at\":0}\n",
                 bad_names[i]);
        put_text("_checkpoint", text);
        CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
        cli_assert_refused(&cli, 3, "the lake does not contain the header of its journal");
        assert_untouched();
    }
}
END_TEST

/* The file of the last manifest may lack its name, which only a shipper gives it. */
START_TEST(a_reader_changes_nothing_in_a_lake)
{
    static const char file[] = "lake/store=evil/day=2026-01-01/00000001-00000000.parquet.tmp";
    put_text("00000001.json", GOOD_1 PIECE_1("x", HEADER));
    file_write(tmpdir_path(&cli.dir, file), "", 0);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    CLI(&cli, NULL, "ship", "status", lake_url, "--as", "evil");
    CLI(&cli, NULL, "ship", "check", lake_url, "--as", "evil");
    CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
    ck_assert_int_ne(cli.exit_status, 0);
    ck_assert_int_eq(access(tmpdir_path(&cli.dir, file), F_OK), 0);
}
END_TEST

/* Whatever has the name of the file, no one waits, and the store is not taken for one without. */
START_TEST(an_invalid_cluster_file_is_reported)
{
    static const char *const texts[] = {"../../etc/passwd\n",
                                        "postgresql://a/b\npostgresql://c/d\n", "file:///tmp\n",
                                        "postgresql://a\x1b[2J/b\n", megabyte};
    const char *file = tmpdir_path(&cli.dir, "store/cluster");
    char out[SHARED_URL_BYTES];
    annal_store *store = NULL;
    annal_error err = {0};
    memset(megabyte, 'm', sizeof megabyte - 1);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, NULL), ANNAL_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        file_write(file, texts[i], strlen(texts[i]));
        ck_assert_int_eq(shared_url(store, out, &err), ANNAL_ERR_UNSUPPORTED);
        ck_assert_str_eq(out, "");
    }
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(shared_url(store, out, &err), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(mkfifo(file, 0600), 0);
    ck_assert_int_eq(shared_url(store, out, &err), ANNAL_ERR_IO);
    ck_assert_msg(strstr(err.message, "names a pipe, a socket or a device") != NULL, "%s",
                  err.message);
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(symlink("../target/notes.txt", file), 0);
    ck_assert_int_eq(shared_url(store, out, &err), ANNAL_ERR_IO);
    ck_assert_msg(strstr(err.message, "is a symbolic link, which is not followed") != NULL, "%s",
                  err.message);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
    assert_untouched();
}
END_TEST

START_TEST(no_link_in_a_lake_is_followed)
{
    static const char *const names[] = {"_log", "day=2026-01-01"};
    char path[300];
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    put_text("00000001.json", GOOD_1 PIECE_1("x", HEADER));
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "lake/store=evil/%s", names[i]);
        const char *name = tmpdir_path(&cli.dir, path), *aside = tmpdir_path(&cli.dir, "aside");
        ck_assert_int_eq(rename(name, aside), 0);
        ck_assert_int_eq(symlink(aside, name), 0);
        CLI(&cli, NULL, "ship", "check", lake_url, "--as", "evil");
        ck_assert_int_ne(cli.exit_status, 0);
        ck_assert_msg(strstr(cli.err, "is a symbolic link, which is not followed") != NULL, "%s",
                      cli.err);
        ck_assert_int_eq(unlink(name), 0);
        ck_assert_int_eq(rename(aside, name), 0);
    }
}
END_TEST

/* c0 is the root, and each session has `by` forks with one event; the file with their events is
 * missing. */
static void put_forks(int count, int by)
{
    struct buf text = {0};
    ck_assert_int_eq(annal__buf_printf(&text, GOOD_1), ANNAL_OK);
    for (int i = 0; i < count; i++) {
        int parent = (i - 1) / by, depth = by == 1 ? i + 1 : 1;
        for (int at = i; by > 1 && at > 0; at = (at - 1) / by)
            depth++;
        ck_assert_int_eq(
            annal__buf_printf(&text,
                              "{\"session\":\"c%d\",\"first_seq\":%d,\"h_before\":"
                              "\"0000000000000000\",\"last_seq\":%d,\"h\":\"0000000000000001\","
                              "\"at\":0,\"file\":\"%032x\",\"created_us\":1",
                              i, depth, depth, i),
            ANNAL_OK);
        if (i > 0)
            ck_assert_int_eq(annal__buf_printf(&text,
                                               ",\"parent\":\"c%d\",\"forked_at\":%d,"
                                               "\"fork_h\":\"0000000000000001\"",
                                               parent, depth - 1),
                             ANNAL_OK);
        ck_assert_int_eq(annal__buf_printf(&text, "}\n"), ANNAL_OK);
    }
    put_text("00000001.json", annal__buf_cstr(&text));
    annal__buf_done(&text);
}

/* Both end with the file that is missing, or with the limit. */
static void assert_pull_of_forks(int count, int by, const char *session, const char *says)
{
    put_forks(count, by);
    CLI(&cli, NULL, "pull", session, "--from", lake_url, "--store-name", "evil");
    cli_assert_refused(&cli, 1, says);
    CLI(&cli, NULL, "pull", session, "--from", lake_url, "--store-name", "evil", "--tree");
    cli_assert_refused(&cli, 1, says);
}

START_TEST(thousands_of_forks_in_a_lake_are_pulled_without_recursion)
{
    static const char missing[] = "' of the lake does not exist";
    assert_pull_of_forks(1000, 1, "c999", missing);
    assert_pull_of_forks(1026, 1, "c1024", missing);
    assert_pull_of_forks(1026, 1, "c1025", "has more than 1024 ancestors at the target");
    assert_pull_of_forks(20000, 1, "c19999", "has more than 1024 ancestors at the target");
    assert_pull_of_forks(5000, 3, "c0", missing);
    assert_pull_of_forks(5000, 5000, "c0", missing);
}
END_TEST

/* Where a file may be of any size, its manifest bounds it, and a limit the manifest. */
START_TEST(a_file_of_a_lake_must_have_the_length_in_its_manifest)
{
    put_text("00000001.json", GOOD_1 PIECE_1("x", HEADER));
    file_write(tmpdir_path(&cli.dir, "lake/store=evil/day=2026-01-01/00000001-00000000.parquet"),
               "12", 2);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
    cli_assert_refused(&cli, 1, "is longer than the 0 bytes in the manifest");
    CLI(&cli, NULL, "ship", "check", lake_url, "--as", "evil");
    cli_assert_refused(&cli, 1, "is longer than the 0 bytes in the manifest");
    const char *manifest = tmpdir_path(&cli.dir, "lake/store=evil/_log/00000001.json");
    ck_assert_int_eq(truncate(manifest, (64 << 20) + 1), 0);
    CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
    cli_assert_refused(
        &cli, 1, "has more than 67108864 bytes, the maximum that annal writes to such a file");
}
END_TEST

struct making {
    int64_t left;
    int64_t seq, step;
    annal_value values[8];
    annal_slice data;
};

static int make_row(void *arg, const annal_value **out_values)
{
    struct making *making = arg;
    static const char *const texts[] = {"x", "t", "", ""};
    if (making->left <= 0)
        return 0;
    making->left--;
    for (int i = 0; i < 8; i++)
        making->values[i] = (annal_value){.kind = ANNAL_VALUE_INTEGER, .integer = 1};
    making->values[0] = (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(texts[0])};
    for (int i = 3; i < 6; i++)
        making->values[i] =
            (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(texts[i - 2])};
    making->values[6] = (annal_value){.kind = ANNAL_VALUE_TEXT, .bytes = making->data};
    making->values[1].integer = making->seq;
    making->seq += making->step;
    *out_values = making->values;
    return 0;
}

/* A small Parquet file, named by the only manifest, which claims one event. */
static void put_parquet(struct making making, int last_seq)
{
    static const struct parquet_column columns[] = {
        {"session_id", PARQUET_TEXT}, {"seq", PARQUET_INTEGER}, {"timestamp", PARQUET_TIME},
        {"type", PARQUET_TEXT},       {"id", PARQUET_TEXT},     {"cause", PARQUET_TEXT},
        {"data", PARQUET_TEXT},       {"h", PARQUET_INTEGER}};
    char text[1200];
    struct parquet *parquet = NULL;
    const char *path =
        tmpdir_path(&cli.dir, "lake/store=evil/day=2026-01-01/00000001-00000000.parquet");
    ck_assert_int_eq(parquet_open(path, &parquet), 0);
    ck_assert_int_eq(parquet_write(parquet, columns, 8, make_row, &making), 0);
    parquet_close(parquet);
    snprintf(text, sizeof text,
             "{\"annal_lake\":1,\"file\":\"day=2026-01-01/00000001-00000000.parquet\",\"rows\":%d,"
             "\"bytes\":10000000,\"hash\":\"0000000000000000\"}\n"
             "{\"session\":\"x\",\"first_seq\":1,\"h_before\":\"0000000000000000\",\"last_seq\":%d,"
             "\"h\":\"0000000000000001\",\"at\":100" HEADER "}\n",
             last_seq, last_seq);
    put_text("00000001.json", text);
}

START_TEST(a_small_file_that_claims_a_huge_content_is_not_unpacked)
{
    static const char says[] = "the files have more events or bytes of session 'x' than the "
                               "manifests of the lake say";
    static char data[1 << 20];
    glob_t found = {0};
    if (glob(ANNAL_SOURCE "/build/duckdb/node_modules/@duckdb/*/libduckdb.so", 0, NULL, &found) !=
        0)
        return; /* test_lake.c says that nothing is tested */
    setenv("ANNAL_DUCKDB", found.gl_pathv[0], 1);
    globfree(&found);
    memset(data, 'd', sizeof data);
    data[0] = data[sizeof data - 1] = '"';
    put_parquet((struct making){.left = 100000, .seq = 1, .data = ANNAL_SLICE("1")}, 1);
    CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
    ck_assert_int_eq(cli.exit_status, 3);
    ck_assert_msg(strstr(cli.err, "the files have more rows than the manifests of the lake say") !=
                      NULL,
                  "%s", cli.err);
    put_parquet((struct making){.left = 70, .seq = 1, .step = 1, .data = {data, sizeof data}}, 70);
    CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
    ck_assert_int_eq(cli.exit_status, 3);
    ck_assert_msg(strstr(cli.err, says) != NULL, "%s", cli.err);
    put_parquet((struct making){.left = 1, .seq = 1, .data = ANNAL_SLICE("1")}, 1);
    CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
    cli_assert_refused(&cli, 1, "the hash of event 1 differs from");
}
END_TEST

/* Two sessions that claim to be forks of each other, and a session that claims to be a fork of
 * itself. */
START_TEST(forks_in_a_circle_are_damage)
{
    put_text("00000001.json", GOOD_1
             "{\"session\":\"x\",\"first_seq\":3,\"h_before\":\"0000000000000000\",\"last_seq\":3,"
             "\"h\":\"0000000000000001\",\"at\":0" HEADER ",\"parent\":\"y\",\"forked_at\":2,"
             "\"fork_h\":\"0000000000000001\"}\n"
             "{\"session\":\"y\",\"first_seq\":3,\"h_before\":\"0000000000000000\",\"last_seq\":3,"
             "\"h\":\"0000000000000001\",\"at\":0" HEADER ",\"parent\":\"x\",\"forked_at\":2,"
             "\"fork_h\":\"0000000000000001\"}\n"
             "{\"session\":\"z\",\"first_seq\":3,\"h_before\":\"0000000000000000\",\"last_seq\":3,"
             "\"h\":\"0000000000000001\",\"at\":0" HEADER ",\"parent\":\"z\",\"forked_at\":2,"
             "\"fork_h\":\"0000000000000001\"}\n");
    CLI(&cli, NULL, "pull", "x", "--from", lake_url, "--store-name", "evil");
    cli_assert_refused(&cli, 1,
                       "session 'y': the target reports a wrong fork point: the fork point must be "
                       "before event 2");
    CLI(&cli, NULL, "pull", "z", "--from", lake_url, "--store-name", "evil");
    ck_assert_int_eq(cli.exit_status, 1);
}
END_TEST

static annal_status give_three_heads(struct ship_target *target, head_fn fn, void *arg,
                                     annal_error *err)
{
    static const char *const names[] = {"one", "two", "three"};
    annal_status status = ANNAL_OK;
    (void)target;
    for (int i = 0; i < 3 && status >= 0; i++)
        status = fn(arg, annal_slice_of(names[i]), &(struct place){.seq = 1}, err);
    return status;
}

START_TEST(a_target_with_too_many_sessions_is_refused)
{
    const struct ship_kind kind = {.heads = give_three_heads};
    struct shipments shipments = {.count = SHIPMENTS_MAX - 2};
    annal_error err = {0};
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &shipments.store, &err), ANNAL_OK);
    ck_assert_int_eq(shipments_survey(&shipments, &kind, NULL, &err), ANNAL_ERR_LIMIT);
    ck_assert_msg(strstr(err.message, "more than 4000000 sessions") != NULL, "%s", err.message);
    ck_assert_int_eq(annal_store_close(shipments.store, NULL), ANNAL_OK);
    shipments_done(&shipments);
}
END_TEST

/* ---- A bucket, and a server of a store ---- */

struct answer {
    const char *head, *body; /* the body is repeated `times` times */
    unsigned times;
};

static size_t body_bytes; /* of a body that is not a text; else 0 */

static const struct answer answers[] = {
    {"HTTP/1.1 200 OK\r\n", "", 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello", 1},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "hello", 1},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", "hello", 1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "ffffffffffffffff\r\nx", 1},
    {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "\x1f\x8b not gzip", 1},
    {"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "", 0},
    {"HTTP/1.1 200 OK\r\nETag: ../../x\r\n\r\n", "{\"annal_lake\":1}\n", 1},
    {"HTTP/1.1 404 Not Found\r\n\r\n", "<Error><Code>", 100000},
    {"HTTP/1.1 403 Forbidden\r\n\r\n", "<a>", 100000},
    {"HTTP/1.1 500 Error\r\n\r\n", "{\"error\":{\"message\":\"\x1b[2J\nx\"}}", 1},
    {"HTTP/1.1 400 Bad\r\n\r\n", "{\"error\":", 100000},
    {"HTTP/1.1 400 Bad\r\n\r\n", "[[[[[[[[", 100000},
    {"HTTP/1.1 200 OK\r\n\r\n", "{\"hash\":[[[[[", 100000},
    {"HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef0123456789abcdef", 600000},
    {"HTTP/1.1 200 OK\r\n\r\n", megabyte, 300},
    {"HTTP/1.1 416 Range\r\n\r\n", "", 0},
    {"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-9/3\r\n\r\n", "hello", 1},
    {"HTTP/9.9 200 OK\r\n\r\n", "hello", 1},
    {"X: y\r\n", "X: y\r\n", 100000},
};

static const char *swap_store; /* NULL: a server that is only that */

/* Another process, which may write to the store, gives the name of what is pulled to a link. */
static void swap_staging(void)
{
    glob_t found = {0};
    char pattern[300];
    snprintf(pattern, sizeof pattern, "%s/.importing-*", swap_store);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_int_eq(rename(found.gl_pathv[0], tmpdir_path(&cli.dir, "aside")), 0);
    ck_assert_int_eq(symlink(tmpdir_path(&cli.dir, "target"), found.gl_pathv[0]), 0);
    globfree(&found);
}

static const char *manifest; /* the manifest of the bucket; NULL: each answer is the same */

/* A bucket with one manifest, whose file has any length. */
static const struct answer *answer_for(char *request, ssize_t len, const struct answer *answer)
{
    static struct answer one = {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", NULL, 1};
    static const struct answer none = {
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "", 0};
    request[len > 0 ? len : 0] = '\0';
    if (manifest == NULL || strstr(request, ".parquet") != NULL)
        return answer;
    one.body = manifest;
    return strstr(request, "/00000001.json") != NULL ? &one : &none;
}

/* Short bodies are sent in pieces of many: each send(2) would cost more than its bytes. */
static bool send_body(int fd, const struct answer *answer)
{
    static char piece[65536];
    size_t len = body_bytes > 0 ? body_bytes : strlen(answer->body);
    const char *from = answer->body;
    unsigned at_once = 1;
    if (len > 0 && len <= sizeof piece / 2 && answer->times > 1) {
        at_once = (unsigned)(sizeof piece / len);
        for (unsigned i = 0; i < at_once; i++)
            memcpy(piece + i * len, answer->body, len);
        from = piece;
    }
    bool good = true;
    for (unsigned left = answer->times; left > 0 && good; left -= at_once) {
        at_once = at_once < left ? at_once : left;
        good = send(fd, from, at_once * len, MSG_NOSIGNAL) > 0;
    }
    return good;
}

static void answer_one(int fd, const void *arg)
{
    const struct answer *answer = arg;
    char request[65536];
    struct timeval quiet = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &quiet, sizeof quiet);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof quiet);
    ssize_t got = recv(fd, request, sizeof request - 1, 0);
    answer = answer_for(request, got, answer);
    if (swap_store != NULL)
        swap_staging();
    if (got > 0 && send(fd, answer->head, strlen(answer->head), MSG_NOSIGNAL) > 0)
        (void)send_body(fd, answer);
    close(fd);
}

/* A process that hands each connection to serve, which closes it. */
static pid_t start_server(void (*serve)(int fd, const void *arg), const void *arg, int *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    *out_port = ntohs(address.sin_port);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;)
            serve(fd, arg);
        _exit(0);
    }
    close(listener);
    return pid;
}

static void assert_answer_is_refused(const struct answer *answer)
{
    char server[60];
    int port = 0;
    const char *store = cli.store;
    pid_t liar = start_server(answer_one, answer, &port);
    snprintf(server, sizeof server, "http://127.0.0.1:%d", port);
    setenv("AWS_ENDPOINT_URL", server, 1);
    const char *const verbs[][10] = {
        {"push", "here", "--to", server, "--timeout", "1"},
        {"ship", "status", "s3://lake/x", "--as", "evil"},
        {"pull", "x", "--from", "s3://lake/x", "--store-name", "evil"},
        {"pull", "x", "--from", server, "--timeout", "1"},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        cli.store = i == 3 ? tmpdir_path(&cli.dir, "second") : store;
        cli_run(&cli, NULL, verbs[i]);
        ck_assert_msg(cli.exit_status == 1 || cli.exit_status == 3, "%s: %s: %d: %s", answer->head,
                      verbs[i][0], cli.exit_status, cli.err);
        ck_assert_msg(strncmp(cli.err, "annal: ", 7) == 0 && strlen(cli.err) < 1300, "%s", cli.err);
        ck_assert_msg(strchr(cli.err, '\x1b') == NULL, "%s", cli.err);
        ck_assert_int_eq(cli_journals(&cli), i == 3 ? 0 : 1);
    }
    cli.store = store;
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    unsetenv("AWS_ENDPOINT_URL");
}

START_TEST(no_answer_of_a_server_or_a_bucket_does_harm)
{
    setenv("AWS_ACCESS_KEY_ID", "k", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    memset(megabyte, 'm', sizeof megabyte - 1);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_answer_is_refused(&answers[i]);
    DONE(&cli, "verify");
    assert_untouched();
}
END_TEST

START_TEST(a_file_of_a_bucket_must_have_the_length_in_its_manifest)
{
    char server[60];
    int port = 0;
    const struct answer answer = {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", megabyte, 300};
    size_t len;
    memset(megabyte, 'm', sizeof megabyte - 1);
    put_text("00000001.json", GOOD_1 PIECE_1("x", HEADER));
    char *text = file_read(tmpdir_path(&cli.dir, "lake/store=evil/_log/00000001.json"), &len);
    manifest = text;
    pid_t liar = start_server(answer_one, &answer, &port);
    snprintf(server, sizeof server, "http://127.0.0.1:%d", port);
    setenv("AWS_ENDPOINT_URL", server, 1);
    setenv("AWS_ACCESS_KEY_ID", "k", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    CLI(&cli, NULL, "pull", "x", "--from", "s3://lake/x", "--store-name", "evil");
    cli_assert_refused(&cli, 1, "is longer than the 0 bytes in the manifest");
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    unsetenv("AWS_ENDPOINT_URL");
    manifest = NULL;
    free(text);
}
END_TEST

START_TEST(an_endless_error_of_a_bucket_is_abandoned)
{
    char server[60];
    int port = 0;
    const struct answer answer = {"HTTP/1.1 404 Not Found\r\n\r\n", megabyte, 300};
    memset(megabyte, 'm', sizeof megabyte - 1);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    pid_t liar = start_server(answer_one, &answer, &port);
    snprintf(server, sizeof server, "http://127.0.0.1:%d", port);
    setenv("AWS_ENDPOINT_URL", server, 1);
    setenv("AWS_ACCESS_KEY_ID", "k", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    CLI(&cli, NULL, "ship", "status", "s3://lake/x", "--as", "evil");
    cli_assert_refused(&cli, 3, "the answer with HTTP status 404 is longer than any valid one");
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    unsetenv("AWS_ENDPOINT_URL");
}
END_TEST

/* A disk whose free space is what is to be kept free. */
START_TEST(a_server_does_not_fill_the_disk)
{
    char server[60];
    int port = 0;
    const struct answer answer = {"HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n", megabyte, 300};
    memset(megabyte, 'm', sizeof megabyte - 1);
    pid_t liar = start_server(answer_one, &answer, &port);
    snprintf(server, sizeof server, "http://127.0.0.1:%d", port);
    CLI(&cli, NULL, "pull", "here", "--from", server, "--keep-free", "100000000");
    cli_assert_refused(&cli, 3, "No space left on device");
    ck_assert_msg(strstr(cli.err, "cannot save the answer of the server http://127.0.0.1:") != NULL,
                  "%s", cli.err);
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
}
END_TEST

/* The bundle is sound, and has another session. */
START_TEST(a_server_may_send_only_the_requested_session)
{
    char server[60];
    int port = 0;
    struct answer answer = {.head = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n", .times = 1};
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    DONE(&cli, "export", "here", "--format", "bundle", "--to", tmpdir_path(&cli.dir, "bundle"));
    char *bytes = file_read(tmpdir_path(&cli.dir, "bundle"), &body_bytes);
    answer.body = bytes;
    pid_t liar = start_server(answer_one, &answer, &port);
    snprintf(server, sizeof server, "http://127.0.0.1:%d", port);
    cli.store = tmpdir_path(&cli.dir, "second");
    CLI(&cli, NULL, "pull", "x", "--from", server);
    cli_assert_refused(&cli, 1,
                       "sent session 'here', which is neither session 'x' nor an ancestor");
    ck_assert_int_eq(cli_journals(&cli), 0);
    DONE(&cli, "pull", "here", "--from", server);
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    body_bytes = 0;
    free(bytes);
}
END_TEST

/* The import reads the file that was written, not another file that has its name by then. */
START_TEST(a_pull_does_not_follow_a_link_that_is_created_while_the_server_answers)
{
    char server[60];
    int port = 0;
    struct answer answer = {.head = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n\r\n", .times = 1};
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "here");
    DONE(&cli, "export", "here", "--format", "bundle", "--to", tmpdir_path(&cli.dir, "bundle"));
    char *bytes = file_read(tmpdir_path(&cli.dir, "bundle"), &body_bytes);
    answer.body = bytes;
    cli.store = swap_store = tmpdir_path(&cli.dir, "second");
    file_write(tmpdir_path(&cli.dir, "target/bundle"), "not a bundle", 12);
    pid_t liar = start_server(answer_one, &answer, &port);
    snprintf(server, sizeof server, "http://127.0.0.1:%d", port);
    DONE(&cli, "pull", "here", "--from", server);
    ck_assert_int_eq(cli_journals(&cli), 1);
    assert_untouched();
    ck_assert_int_eq(access(tmpdir_path(&cli.dir, "target/bundle"), F_OK), 0);
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    body_bytes = 0;
    swap_store = NULL;
    free(bytes);
}
END_TEST

/* ---- A database ---- */

/* Each statement makes a sound database lie about the session s1, or about all. */
static const char *const lies[] = {
    "UPDATE annal._heads SET session = '../../target/notes' WHERE session = 's1'",
    "UPDATE annal._heads SET file = '../../../../target/notes.txt'",
    "UPDATE annal._heads SET file = repeat('a', 100000)",
    "UPDATE annal._heads SET parent = '../target', forked_at = 1",
    "UPDATE annal._heads SET parent = 's1', forked_at = 1 WHERE session = 's1'",
    "UPDATE annal._heads SET parent = 's2', forked_at = 1 WHERE session = 's1'; "
    "UPDATE annal._heads SET parent = 's1', forked_at = 1 WHERE session = 's2'",
    "UPDATE annal._heads SET parent = 's2', forked_at = -1",
    "UPDATE annal._heads SET seq = 9223372036854775807",
    "UPDATE annal._heads SET seq = -5",
    "UPDATE annal._heads SET h = -1",
    "UPDATE annal._heads SET created_at = '294000-01-01'",
    "UPDATE annal._heads SET created_at = NULL",
    "UPDATE annal._events SET seq = seq + 7",
    "UPDATE annal._events SET type = repeat('a', 65)",
    "UPDATE annal._events SET type = '../x'",
    "UPDATE annal._events SET id = E'\\e[2J\\n'",
    "UPDATE annal._events SET cause = repeat('c', 100000)",
    "UPDATE annal._events SET ts = '294000-01-01'",
    "UPDATE annal._events SET h = 0",
    "UPDATE annal._events SET data = ('{\"a\":' || repeat('[', 600) || repeat(']', 600) || "
    "'}')::json",
    "UPDATE annal._events SET data = ('[' || repeat('1,', 1000000) || '1]')::json",
    "DELETE FROM annal._events WHERE seq = 2",
    "ALTER TABLE annal._events RENAME TO was; CREATE VIEW annal._events AS SELECT key, "
    "seq::text::bytea"
    " AS was_seq, seq, day, 'x'::text AS ts, type, id, cause, data, h::text AS h FROM annal.was",
    "ALTER TABLE annal._heads RENAME TO was; CREATE VIEW annal._heads AS SELECT store, session, "
    "key,"
    " 'x'::text AS seq, '-'::text AS h, ''::text AS at, file, created_at, parent, forked_at,"
    " shipped_at, first_day, last_day FROM annal.was",
    "ALTER TABLE annal._heads RENAME TO was; CREATE VIEW annal._heads AS SELECT store, session, "
    "key,"
    " 99999999999999999999999::numeric AS seq, h, at, file, created_at, parent, forked_at,"
    " shipped_at, first_day, last_day FROM annal.was",
    "ALTER TABLE annal._events RENAME TO was; CREATE VIEW annal._events AS SELECT key, seq, day, "
    "ts, type, id, cause, '\"' || repeat('x', 100000000) || '\"' AS data, h FROM annal.was",
    "UPDATE annal._schema SET version = -3",
    "UPDATE annal._schema SET version = 2147483647",
    "DELETE FROM annal._schema",
};

static void set_up_database(void)
{
    fleet_setup();
    if (pg.dir[0] == '\0')
        return;
    DONE_WITH(
        &cli,
        "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n{\"type\":\"a\",\"data\":3}\n",
        "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
}

/* In the store of the other host nothing is new, and here nothing is lost. */
static void assert_lie_is_refused(const char *lie, bool by_all)
{
    const char *store = cli.store;
    fleet_do("DROP SCHEMA IF EXISTS annal CASCADE");
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do(lie);
    cli.store = second;
    CLI(&cli, NULL, "pull", "s1", "--from", url, "--store-name", "h1");
    ck_assert_msg(cli.exit_status == 1 || cli.exit_status == 3, "%s: %d: %s", lie, cli.exit_status,
                  cli.err);
    ck_assert_msg(strncmp(cli.err, "annal: ", 7) == 0 && strlen(cli.err) < 1300, "%s: %s", lie,
                  cli.err);
    CLI(&cli, NULL, "pull", "s1", "--from", url, "--store-name", "h1", "--tree");
    ck_assert_msg(cli.exit_status == 1 || cli.exit_status == 3, "%s: %d: %s", lie, cli.exit_status,
                  cli.err);
    ck_assert_int_eq(cli_journals(&cli), 0);
    cli.store = store;
    static const char *const verbs[][6] = {{"ship", "status", NULL, "--as", "h1"},
                                           {"ship", "check", NULL, "--as", "h1"},
                                           {"ship", NULL, "--as", "h1", "--wait", "0"}};
    for (size_t i = 0; i < 3 && by_all; i++) {
        const char *words[8] = {0};
        for (int j = 0; j < 5 + (i == 2); j++)
            words[j] = verbs[i][j] != NULL || j > 2 ? verbs[i][j] : url;
        cli_run(&cli, NULL, words);
        ck_assert_msg(cli.exit_status == 0 || cli.exit_status == 1 || cli.exit_status == 3,
                      "%s: %s: %d: %s", lie, words[1], cli.exit_status, cli.err);
    }
    DONE(&cli, "verify");
    ck_assert_int_eq(cli_journals(&cli), 2);
}

START_TEST(no_false_answer_of_a_database_reaches_a_store)
{
    NEEDS_SERVER();
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        assert_lie_is_refused(lies[i], i % full_or(5, 10) == 0);
}
END_TEST

/* The session itself is sound; the server claims that it has 100,001 forks. */
START_TEST(a_tree_of_very_many_sessions_is_not_pulled)
{
    NEEDS_SERVER();
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do("ALTER TABLE annal._heads RENAME TO was; CREATE VIEW annal._heads AS SELECT store, "
             "session, key, seq, h, at, file, created_at, parent, forked_at, shipped_at, first_day,"
             " last_day FROM annal.was UNION ALL SELECT store, 'c' || g, -g, seq, h, at, file, "
             "created_at, 's1', 1, shipped_at, first_day, last_day FROM annal.was, "
             "generate_series(1, 100001) AS g WHERE session = 's1'");
    cli.store = second;
    CLI(&cli, NULL, "pull", "s1", "--from", url, "--store-name", "h1", "--tree");
    cli_assert_refused(&cli, 1, "more than 100000 sub-agents and forks of session 's1'");
}
END_TEST

/* Run `annal home take` with the epoch, in a store that has another history of the session. */
static void take_with(const char *lie)
{
    fleet_do("UPDATE annal._homes SET store = NULL, until = '-infinity'");
    fleet_do(lie);
    CLI(&cli, NULL, "home", "take", "s1", url, "--as", "h2");
    ck_assert_msg(cli.exit_status == 1, "%s: %d: %s", lie, cli.exit_status, cli.err);
}

START_TEST(no_false_place_of_a_database_is_believed)
{
    static const char *const places[] = {"9223372036854775807", "-1", "1000000", "4"};
    static const char *const heads[] = {
        "seq = -1", "seq = -9223372036854775807 - 1", "seq = 9223372036854775807",
        "at = -5",  "at = 9223372036854775807",       "at = 1"};
    char sql[700];
    NEEDS_SERVER();
    DONE(&cli, "ship", url, "--as", "h1");
    DONE(&cli, "home", "take", "s1", url, "--as", "h1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":7}\n{\"type\":\"a\",\"data\":8}\n", "append", "s1",
              "--store", second);
    cli.store = second;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        snprintf(sql, sizeof sql,
                 "UPDATE annal._heads SET seq = 3, at = 300; UPDATE annal._heads "
                 "SET %s WHERE session = 's1'",
                 heads[i]);
        take_with(sql);
    }
    /* The database has its own max(), which the search path names first. */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(sql, sizeof sql,
                 "UPDATE annal._heads SET seq = 3, at = 300; DROP SCHEMA IF EXISTS evil CASCADE; "
                 "CREATE SCHEMA evil; CREATE FUNCTION evil.f(bigint, bigint) RETURNS bigint "
                 "LANGUAGE sql AS 'SELECT %s::bigint'; CREATE AGGREGATE evil.max(bigint) (sfunc = "
                 "evil.f, stype = bigint, initcond = '%s'); ALTER DATABASE fleet SET search_path = "
                 "evil, pg_catalog",
                 places[i], places[i]);
        take_with(sql);
        ck_assert_msg(strstr(cli.err, "invalid data about the events that both have") != NULL,
                      "%s: %s", places[i], cli.err);
    }
    fleet_do("ALTER DATABASE fleet RESET ALL; DROP SCHEMA evil CASCADE");
    ck_assert_int_eq(cli_journals(&cli), 1);
    DONE(&cli, "verify");
}
END_TEST

/* The name of an artifact proves its content before it is written. */
START_TEST(no_false_artifact_of_a_database_reaches_a_store)
{
    char path[300];
    NEEDS_SERVER();
    DONE_WITH(&cli, "the content", "artifact", "put", "s1", "-", "--name", "one");
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do("ALTER TABLE annal.artifacts RENAME TO was; CREATE VIEW annal.artifacts AS SELECT hash"
             ", 'other'::bytea AS bytes FROM annal.was");
    cli.store = second;
    CLI(&cli, NULL, "pull", "s1", "--from", url, "--store-name", "h1");
    cli_assert_refused(&cli, 1, "has different content at the target");
    snprintf(path, sizeof path, "%s/artifacts/s1", second);
    ck_assert_int_ne(access(path, F_OK), 0);
    /* rows without an end are not added to the content */
    fleet_do("CREATE OR REPLACE VIEW annal.artifacts AS SELECT hash, bytes FROM annal.was UNION ALL"
             " SELECT hash, 'more'::bytea FROM annal.was, generate_series(1, 1000)");
    DONE(&cli, "pull", "s1", "--from", url, "--store-name", "h1");
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

/* The number of the oldest batch without rows alternates, and is never the last. */
START_TEST(rows_that_are_never_built_are_not_awaited)
{
    NEEDS_SERVER();
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do("CREATE SEQUENCE annal.turn; DROP FUNCTION annal._fold_queued; CREATE FUNCTION "
             "annal._fold_queued(bigint, "
             "float8, OUT batches bigint, OUT seconds float8, OUT first bigint, OUT last bigint) "
             "LANGUAGE sql AS $$ SELECT 1::bigint, 'NaN'::float8, 1 + nextval('annal.turn') % 2, "
             "10::bigint $$");
    CLI(&cli, NULL, "pull", "s1", "--from", url, "--store-name", "h1", "--tree", "--timeout", "1",
        "--store", second);
    cli_assert_refused(&cli, 3, "made no progress for 1 s");
    DONE(&cli, "ship", url, "--as", "h1", "--timeout", "1", "--json");
    ck_assert_msg(strstr(cli.out, "nan") == NULL, "%s", cli.out);
}
END_TEST

/* ---- A server that speaks the protocol of PostgreSQL, and answers without an end ---- */

/* A message: its kind, its length, and its bytes. */
static bool pg_send(int fd, char kind, const void *bytes, size_t len)
{
    char head[5] = {kind};
    uint32_t be = htonl((uint32_t)len + 4);
    memcpy(head + 1, &be, 4);
    return send(fd, head, 5, MSG_NOSIGNAL) == 5 &&
           (len == 0 || send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static bool pg_columns(int fd, int count)
{
    char text[400];
    size_t len = 2;
    text[0] = 0;
    text[1] = (char)count;
    for (int i = 0; i < count; i++) {
        memset(text + len, 0, 20);
        text[len] = 'c';
        text[len + 11] = 25; /* text */
        len += 20;
    }
    return pg_send(fd, 'T', text, len);
}

/* Write the message of a row to out, and return its bytes. */
static size_t pg_row_text(char out[600], const char *const *values, int count)
{
    size_t len = 7;
    memset(out, 0, len);
    out[0] = 'D';
    out[6] = (char)count;
    for (int i = 0; i < count; i++) {
        uint32_t be = htonl((uint32_t)strlen(values[i]));
        memcpy(out + len, &be, 4);
        memcpy(out + len + 4, values[i], strlen(values[i]));
        len += 4 + strlen(values[i]);
    }
    uint32_t be = htonl((uint32_t)len - 1);
    memcpy(out + 1, &be, 4);
    return len;
}

static bool pg_row(int fd, const char *const *values, int count)
{
    char row[600];
    size_t len = pg_row_text(row, values, count);
    return send(fd, row, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Send a message without an end. */
static void pg_repeat(int fd, char kind, const void *bytes, size_t len)
{
    while (pg_send(fd, kind, bytes, len))
        ;
}

/* Of one answer that is not like the others: 0: a row of a gigabyte; 1: rows without an end, small;
 * 2: the same as the first answer; 3: results without an end. */
static void pg_endless(int fd, int what)
{
    static const char *const origin[] = {
        "h1", "00000000000000000000000000000001", "1", "", "", "1", "1", "1"};
    if (what == 0) {
        static const char row[] = "D\x3f\xff\xff\xff\x00\x01\x3f\xff\xff\xf9";
        if (send(fd, row, sizeof row - 1, MSG_NOSIGNAL) < 0)
            return;
        while (send(fd, megabyte, sizeof megabyte - 1, MSG_NOSIGNAL) > 0)
            ;
        return;
    }
    if (what == 3)
        pg_repeat(fd, 'C', "SELECT 1", 9);
    /* As many rows with a send as there is room for: the limit must come before the time is up. */
    size_t len = 0;
    while (len + 600 <= sizeof megabyte)
        len += pg_row_text(megabyte + len, origin, 8);
    while (send(fd, megabyte, len, MSG_NOSIGNAL) > 0)
        ;
}

static void pg_serve(int fd, const void *arg)
{
    int what = *(const int *)arg;
    static const char *const parameters[] = {"server_version\00015.0", "server_encoding\0UTF8",
                                             "client_encoding\0UTF8", "in_hot_standby\0off",
                                             "default_transaction_read_only\0off"};
    static const size_t lens[] = {20, 21, 21, 19, 34};
    static const char *const first[] = {"t"}, *const second_answer[] = {"1"};
    char request[65536];
    (void)!recv(fd, request, sizeof request, 0);
    pg_send(fd, 'R', "\0\0\0\0", 4);
    if (what >= 4) /* the greeting has no end */
        pg_repeat(fd, what == 4 ? 'S' : 'N', what == 4 ? "p\0v" : "SNOTICE\0C00000\0Mhello\0",
                  what == 4 ? 4 : 23);
    for (int i = 0; i < 5; i++)
        pg_send(fd, 'S', parameters[i], lens[i]);
    pg_send(fd, 'Z', "I", 1);
    for (int i = 0; recv(fd, request, sizeof request, 0) > 0; i++) {
        if (request[0] == 'P') {
            pg_send(fd, '1', NULL, 0);
            pg_send(fd, '2', NULL, 0);
        }
        bool is_odd = what >= 2 ? i == 0 : i == 2;
        pg_columns(fd, is_odd && what == 1 ? 8 : 1);
        if (is_odd)
            pg_endless(fd, what == 2 ? 1 : what);
        pg_row(fd, i == 0 ? first : second_answer, 1);
        pg_send(fd, 'C', "SELECT 1", 9);
        pg_send(fd, 'Z', "I", 1);
    }
    close(fd);
}

START_TEST(an_endless_answer_of_a_database_is_abandoned)
{
    static const char *const says[] = {"the server sent a longer answer than any valid one",
                                       "another command is already in progress",
                                       "the server sent a longer answer than any valid one",
                                       "the server sent a longer answer than any valid one",
                                       "the server sent a longer answer than any valid one",
                                       "the server sent a longer answer than any valid one"};
    char database[100];
    memset(megabyte, 'm', sizeof megabyte - 1);
    for (int what = 0; what < 6; what++) {
        int port;
        pid_t pid = start_server(pg_serve, &what, &port);
        snprintf(database, sizeof database, "postgresql://u@127.0.0.1:%d/d?sslmode=disable", port);
        CLI(&cli, NULL, "pull", "x", "--from", database, "--store-name", "h1");
        ck_assert_msg(cli.exit_status == 1 || cli.exit_status == 3, "%d %s", what, cli.err);
        ck_assert_msg(strstr(cli.err, says[what]) != NULL, "%d: %s", what, cli.err);
        ck_assert_msg(strstr(cli.err, "NOTICE") == NULL, "%s", cli.err);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}
END_TEST

/* ---- A server that speaks the protocol of NATS ---- */

#ifdef ANNAL_SHIP_NATS
enum { NATS_MESSAGES = 250, NATS_SUBS = 4 };

struct nats_subs {
    char subject[NATS_SUBS][200], sid[NATS_SUBS][20];
    int count;
};

/* Send a message to the subscription of this subject. */
static void nats_send(FILE *out, const struct nats_subs *subs, const char *subject,
                      const char *text)
{
    for (int i = 0; i < subs->count; i++)
        if (strncmp(subs->subject[i], subject, strcspn(subs->subject[i], "*")) == 0) {
            fprintf(out, "MSG %s %s %zu\r\n%s\r\n", subject, subs->sid[i], strlen(text), text);
            break;
        }
    fflush(out);
}

/* Send events of a megabyte, without waiting for the reader. */
static void nats_flood(FILE *out, const struct nats_subs *subs, const char *subject)
{
    char head[400];
    const char *sid = subs->sid[subs->count - 1];
    for (int i = 0; i < subs->count; i++)
        sid = strcmp(subs->subject[i], subject) == 0 ? subs->sid[i] : sid;
    for (int i = 1; i <= NATS_MESSAGES; i++) {
        int len = snprintf(head, sizeof head,
                           "NATS/1.0\r\nAnnal-Store: h1\r\nAnnal-Session: s\r\nAnnal-Seq: %d\r\n"
                           "Annal-H: %016x\r\nAnnal-H-Before: %016x\r\n\r\n",
                           i, i, i - 1);
        fprintf(out,
                "HMSG annal.events.0 %s $JS.ACK.ANNAL.c.1.%d.%d.1700000000000000000.0 %d %d\r\n",
                sid, i, i, len, len + (int)sizeof megabyte + 7);
        fprintf(out, "%s{\"a\":\"%s\"}\r\n", head, megabyte);
    }
    fflush(out);
}

static void nats_serve(int fd, const void *arg)
{
    FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
    struct nats_subs subs = {.count = 0};
    char line[5000], subject[300], reply[300], size[300], body[5000], answer[900];
    (void)arg;
    fputs("INFO {\"server_id\":\"x\",\"version\":\"2.10.0\",\"proto\":1,\"headers\":true,"
          "\"max_payload\":8388608,\"jetstream\":true}\r\n",
          out);
    fflush(out);
    while (fgets(line, sizeof line, in) != NULL) {
        int words = sscanf(line, "%*s %299s %299s %299s", subject, reply, size);
        if (strncmp(line, "PING", 4) == 0)
            fputs("PONG\r\n", out);
        fflush(out);
        if (strncmp(line, "SUB ", 4) == 0 && subs.count < NATS_SUBS) {
            snprintf(subs.subject[subs.count], sizeof subs.subject[0], "%.199s", subject);
            snprintf(subs.sid[subs.count++], sizeof subs.sid[0], "%.19s", reply);
        }
        if (strncmp(line, "PUB ", 4) != 0 || words != 3)
            continue;
        size_t len = strtoul(size, NULL, 10);
        if (len + 2 >= sizeof body || fread(body, 1, len + 2, in) != len + 2)
            break;
        body[len] = '\0';
        if (strncmp(subject, "$JS.API.STREAM.INFO", 19) == 0) {
            snprintf(answer, sizeof answer,
                     "{\"config\":{\"name\":\"ANNAL\",\"subjects\":[\"annal.events.*\"]},"
                     "\"created\":\"2026-01-01T00:00:00Z\",\"state\":{\"messages\":%d,"
                     "\"first_seq\":1,\"last_seq\":%d}}",
                     NATS_MESSAGES, NATS_MESSAGES);
            nats_send(out, &subs, reply, answer);
        } else if (strstr(subject, "CONSUMER.CREATE") != NULL) {
            const char *deliver = strstr(body, "\"deliver_subject\":\"");
            snprintf(size, sizeof size, "%.*s",
                     deliver != NULL ? (int)strcspn(deliver + 19, "\"") : 0,
                     deliver != NULL ? deliver + 19 : "");
            snprintf(answer, sizeof answer,
                     "{\"stream_name\":\"ANNAL\",\"name\":\"c\",\"config\":{"
                     "\"deliver_subject\":\"%s\",\"ack_policy\":\"none\"},\"num_pending\":%d}",
                     size, NATS_MESSAGES);
            nats_send(out, &subs, reply, answer);
            nats_flood(out, &subs, size);
        }
    }
    fclose(in);
    fclose(out);
}

/* The reader of the output waits; the server does not. */
START_TEST(a_stream_does_not_fill_the_memory)
{
    char address[60], seen[4096];
    int port, in, out, status;
    memset(megabyte, 'm', sizeof megabyte - 1);
    pid_t liar = start_server(nats_serve, NULL, &port);
    snprintf(address, sizeof address, "nats://127.0.0.1:%d", port);
    const char *const words[] = {"tail", "--from", address, NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    close(in);
    sleep(4);
    while (read(out, seen, sizeof seen) > 0)
        ;
    close(out);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 3);
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
}
END_TEST
#endif

Suite *suite_hostile(void)
{
    Suite *suite = suite_create("hostile");
    TCase *cases = suite_case(suite, "hostile", set_up, cli_teardown);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, a_manifest_names_only_files_of_its_lake);
    tcase_add_test(cases, a_manifest_replaces_and_removes_only_files_of_its_lake);
    tcase_add_test(cases, each_field_of_a_manifest_has_one_spelling_and_limits);
    tcase_add_test(cases, two_manifests_do_not_name_the_same_file);
    tcase_add_test(cases, a_checkpoint_that_names_other_files_is_not_used);
    tcase_add_test(cases, a_reader_changes_nothing_in_a_lake);
    tcase_add_test(cases, no_link_in_a_lake_is_followed);
    tcase_add_test(cases, an_invalid_cluster_file_is_reported);
    tcase_add_test(cases, thousands_of_forks_in_a_lake_are_pulled_without_recursion);
    tcase_add_test(cases, a_file_of_a_lake_must_have_the_length_in_its_manifest);
    tcase_add_test(cases, a_small_file_that_claims_a_huge_content_is_not_unpacked);
    tcase_add_test(cases, forks_in_a_circle_are_damage);
    tcase_add_test(cases, a_target_with_too_many_sessions_is_refused);
#ifdef ANNAL_SHIP_S3
    tcase_add_test(cases, no_answer_of_a_server_or_a_bucket_does_harm);
    tcase_add_test(cases, a_file_of_a_bucket_must_have_the_length_in_its_manifest);
    tcase_add_test(cases, an_endless_error_of_a_bucket_is_abandoned);
    tcase_add_test(cases, a_server_does_not_fill_the_disk);
    tcase_add_test(cases, a_server_may_send_only_the_requested_session);
    tcase_add_test(cases, a_pull_does_not_follow_a_link_that_is_created_while_the_server_answers);
#endif
    tcase_add_test(cases, an_endless_answer_of_a_database_is_abandoned);
#ifdef ANNAL_SHIP_NATS
    tcase_add_test(cases, a_stream_does_not_fill_the_memory);
#endif
    cases = suite_case(suite, "hostile_database", set_up_database, fleet_teardown);
    tcase_set_timeout(cases, 300);
    tcase_add_unchecked_fixture(cases, fleet_start, fleet_stop);
    tcase_add_test(cases, no_false_answer_of_a_database_reaches_a_store);
    tcase_add_test(cases, a_tree_of_very_many_sessions_is_not_pulled);
    tcase_add_test(cases, no_false_place_of_a_database_is_believed);
    tcase_add_test(cases, no_false_artifact_of_a_database_reaches_a_store);
    tcase_add_test(cases, rows_that_are_never_built_are_not_awaited);
    return suite;
}
