/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of extreme sizes and compressed logs; other logs of crashed and of careless programs are in
 * tests/commands/import_odd.test. An import takes each line, skips it for a reason or keeps it byte
 * for byte, its exit status says whether all could be read, and a second import adds nothing.
 */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <annal/import.h>
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#define HUGE_BYTES ((size_t)full_or(100, 66) << 20)

/* Sanitizers keep what was freed for a while, and shadow all of it. */
#if defined(__SANITIZE_ADDRESS__)
enum { MOST_MIB = 1400 };
#elif defined(__SANITIZE_THREAD__)
enum { MOST_MIB = 5000 };
#else
enum { MOST_MIB = 640 };
#endif

/* ---- Logs ---- */

static FILE *create(const char *name)
{
    FILE *file = fopen(tmpdir_path(&cli.dir, name), "w");
    ck_assert_ptr_nonnull(file);
    return file;
}

static void fill(FILE *file, char c, size_t count)
{
    char bytes[65536];
    memset(bytes, c, sizeof bytes);
    for (size_t n; count > 0; count -= n) {
        n = count < sizeof bytes ? count : sizeof bytes;
        ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    }
}

/* The begin of a line of claude-code, which wants "}". */
static void begin_line(FILE *file, int n)
{
    fprintf(file,
            "{\"type\":\"mode\",\"uuid\":\"u%d\",\"sessionId\":\"s\",\"timestamp\":"
            "\"2026-03-01T10:00:00.000Z\"",
            n);
}

static void put_line(FILE *file, int n)
{
    begin_line(file, n);
    fputs("}\n", file);
}

/* Of gemini-cli. A message is a line of its own besides the head; the first of a session gives two
 * events. */
#define DOCUMENT_BEGIN "{\"sessionId\":\"s\",\"projectHash\":\"p\",\n\"messages\":[\n"
#define DOCUMENT_END   "\n]}\n"

static void begin_message(FILE *file, int n)
{
    fprintf(file, "%s{\"id\":\"m%d\",\"type\":\"gemini\",\"content\":\"said %d\"",
            n > 1 ? ",\n" : "", n, n);
}

static sqlite3 *create_database(const char *name)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&cli.dir, name), &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(
            db,
            "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at "
            "TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT "
            "CURRENT_TIMESTAMP);"
            "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id "
            "TEXT NOT NULL, message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT "
            "'2026-03-01 10:00:00');"
            "INSERT INTO agent_sessions VALUES ('s', '2026-03-01 10:00:00', '2026-03-01 "
            "10:00:00')",
            NULL, NULL, NULL),
        SQLITE_OK);
    return db;
}

static void put_row(sqlite3 *db, const char *json, size_t len)
{
    sqlite3_stmt *insert = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "INSERT INTO agent_messages (session_id, message_data) "
                                        "VALUES ('s', ?)",
                                        -1, &insert, NULL),
                     SQLITE_OK);
    sqlite3_bind_text64(insert, 1, json, len, SQLITE_TRANSIENT, SQLITE_UTF8);
    ck_assert_int_eq(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_finalize(insert);
}

/* ---- Results ---- */

static int count_of(const char *name)
{
    const char *at = strstr(cli.out, name);
    ck_assert_msg(at != NULL, "no %s in %s", name, cli.out);
    return atoi(at + strlen(name));
}

/* Import it twice; cli.out is the output of the first import. */
static void import_twice(const char *kind, const char *name, int exit_status)
{
    const char *path = tmpdir_path(&cli.dir, name);
    CLI(&cli, NULL, "import", kind, path, "--json");
    ck_assert_msg(cli.exit_status == exit_status, "%s: exit status %d: %s", name, cli.exit_status,
                  cli.err);
    ck_assert_int_eq(count_of("\"imported\":") + count_of("\"skipped\":"), count_of("\"lines\":"));
    char *out = strdup(cli.out), *err = strdup(cli.err);
    CLI(&cli, NULL, "import", kind, path, "--json");
    ck_assert_int_eq(cli.exit_status, exit_status);
    ck_assert_int_eq(count_of("\"events\":"), 0);
    DONE(&cli, "verify");
    free(cli.out);
    free(cli.err);
    cli.out = out;
    cli.err = err;
}

static void assert_found(const char *what)
{
    CLI(&cli, NULL, "query");
    ck_assert_msg(strstr(cli.out, what) != NULL, "%s is in no event", what);
}

static int count_type(const char *type)
{
    CLI(&cli, NULL, "query", "--type", type, "--count");
    return atoi(cli.out);
}

static void assert_little_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    ck_assert_int_lt(usage.ru_maxrss / 1024, MOST_MIB);
}

/* ---- Huge ---- */

START_TEST(a_line_of_100_mb_without_strings_is_kept_in_pieces_and_its_neighbours_are_imported)
{
    FILE *file = create("a.jsonl");
    put_line(file, 1);
    begin_line(file, 2);
    fputs(",\"x\":", file);
    fill(file, '1', HUGE_BYTES);
    fputs("}\n", file);
    put_line(file, 3);
    fclose(file);
    import_twice("claude-code", "a.jsonl", 0);
    ck_assert_int_eq(count_of("\"lines\":"), 3);
    assert_little_memory();
    ck_assert_int_eq(count_type("import.unreadable"), (int)full_or(13, 9)); /* of 8 MiB */
    ck_assert_int_eq(count_type("import.record"), 2);
    CLI(&cli, NULL, "sql",
        "SELECT DISTINCT data ->> '$.reason', data ->> '$.source.line' FROM events WHERE type = "
        "'import.unreadable'",
        "--format", "csv");
    ck_assert_ptr_nonnull(strstr(cli.out, "longer than 67043328 bytes,2"));
}
END_TEST

static int count_files(const char *below)
{
    DIR *directory = opendir(tmpdir_path(&cli.dir, below));
    int count = 0;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    if (directory != NULL)
        closedir(directory);
    return count;
}

/* An image, without a backslash, and a text with escapes. */
START_TEST(long_strings_of_a_line_of_70_mib_become_artifacts_and_its_text_and_usage_are_imported)
{
    FILE *file = create("a.jsonl");
    put_line(file, 1);
    fputs("{\"type\":\"assistant\",\"uuid\":\"u2\",\"sessionId\":\"s\",\"timestamp\":"
          "\"2026-03-01T10:00:01.000Z\",\"requestId\":\"r1\",\"message\":{\"id\":\"m1\","
          "\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"image\","
          "\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"",
          file);
    fill(file, 'A', (size_t)68 << 20);
    fputs("\"}},{\"type\":\"text\",\"text\":\"seen\"},{\"type\":\"text\",\"text\":\"\\\"[", file);
    fill(file, 'n', (size_t)2 << 20);
    fputs("\\\\\"}],\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}}\n", file);
    put_line(file, 3);
    fclose(file);
    import_twice("claude-code", "a.jsonl", 0);
    assert_little_memory();
    ck_assert_int_eq(count_type("import.unreadable"), 0);
    ck_assert_int_eq(count_type("message.added"), 1);
    ck_assert_int_eq(count_type("import.record"), 2);
    ck_assert_int_eq(count_files("store/artifacts/s"), 1);
    assert_found("{\"type\":\"text\",\"text\":\"seen\"}");
    CLI(&cli, NULL, "query", "--type", "agent.turn.usage");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"input_tokens\":10,\"output_tokens\":5"));
}
END_TEST

START_TEST(a_long_string_that_a_line_break_ends_is_kept_and_the_next_line_is_imported)
{
    FILE *file = create("a.jsonl");
    begin_line(file, 1);
    fputs(",\"x\":\"", file);
    fill(file, 'x', (size_t)65 << 20);
    fputs("\n", file);
    put_line(file, 2);
    fclose(file);
    import_twice("claude-code", "a.jsonl", 0);
    ck_assert_int_eq(count_type("import.unreadable"), 1);
    ck_assert_int_eq(count_type("import.record"), 1);
}
END_TEST

START_TEST(a_line_as_long_as_lines_may_be_takes_bounded_memory)
{
    FILE *file = create("a.jsonl");
    begin_line(file, 1);
    fputs(",\"x\":[1", file);
    for (size_t i = 0; i < (ANNAL_IMPORT_LINE_BYTES_MAX - 200) / 2; i++)
        fputs(",1", file);
    fputs("]}\n", file);
    fclose(file);
    import_twice("claude-code", "a.jsonl", 0);
    assert_little_memory();
    ck_assert_int_eq(count_type("import.unreadable"), 0);
}
END_TEST

START_TEST(a_document_with_a_message_of_100_mb_gives_all_its_other_messages)
{
    FILE *file = create("session-1.json");
    fputs(DOCUMENT_BEGIN, file);
    for (int n = 1; n <= 3; n++) {
        begin_message(file, n);
        if (n == 2) {
            fputs(",\"x\":\"", file);
            fill(file, 'x', HUGE_BYTES);
            fputs("\"", file);
        }
        fputs("}", file);
    }
    fputs(DOCUMENT_END, file);
    fclose(file);
    import_twice("gemini-cli", "session-1.json", 0);
    ck_assert_int_eq(count_of("\"lines\":"), 4);
    assert_little_memory();
    ck_assert_int_eq(count_type("message.added"), 3);
    ck_assert_int_eq(count_type("import.unreadable"), 0);
}
END_TEST

START_TEST(a_document_of_many_messages_takes_little_memory)
{
    enum { MESSAGES = 20000 };
    FILE *file = create("session-1.json");
    fputs(DOCUMENT_BEGIN, file);
    for (int n = 1; n <= MESSAGES; n++) {
        begin_message(file, n);
        fputs("}", file);
    }
    fputs(DOCUMENT_END, file);
    fclose(file);
    import_twice("gemini-cli", "session-1.json", 0);
    ck_assert_int_eq(count_of("\"events\":"), MESSAGES + 1);
    assert_little_memory();
}
END_TEST

START_TEST(a_row_of_70_mb_keeps_its_text_as_an_artifact)
{
    sqlite3 *db = create_database("a.db");
    size_t len = (size_t)70 << 20;
    char *json = malloc(len + 1);
    memset(json, 'x', len);
    memcpy(json, "{\"role\":\"user\",\"content\":\"", 26);
    memcpy(json + len - 2, "\"}", 2);
    put_row(db, "{\"role\":\"user\",\"content\":\"before\"}", 34);
    put_row(db, json, len);
    put_row(db, "{\"role\":\"user\",\"content\":\"behind\"}", 34);
    sqlite3_close(db);
    free(json);
    import_twice("openai-agents", "a.db", 0);
    ck_assert_int_eq(count_type("message.added"), 3);
    ck_assert_int_eq(count_type("import.unreadable"), 0);
    assert_little_memory();
}
END_TEST

START_TEST(a_file_of_a_directory_that_is_too_large_is_imported_without_its_long_string)
{
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "run"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "run/events"), 0700), 0);
    for (int n = 1; n <= 3; n++) {
        char name[60];
        snprintf(name, sizeof name, "run/events/event-%05d.json", n);
        FILE *file = create(name);
        fprintf(file, "{\"kind\":\"PauseEvent\",\"id\":\"e%d\",\"x\":\"", n);
        fill(file, 'x', n == 2 ? (size_t)65 << 20 : 10);
        fputs("\"}", file);
        fclose(file);
    }
    import_twice("openhands", "run", 0);
    ck_assert_int_eq(count_type("import.unreadable"), 0);
    assert_found("\"e2\"");
    assert_found("\"e3\"");
}
END_TEST

/* ---- Cut short, damaged, kept locked ---- */

/* 80 MiB of line ends compress to a few kilobytes. */
/* Three bytes each: making events of them would take as long as a log of millions of spans. */
START_TEST(a_line_of_more_than_a_million_spans_or_records_is_kept_unchanged)
{
    static const char *const kinds[][3] = {
        {"otel", "resourceSpans\":[{\"scopeSpans", "spans"},
        {"otel-logs", "resourceLogs\":[{\"scopeLogs", "logRecords"}};
    char name[40];
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.jsonl", kinds[i][0]);
        FILE *file = create(name);
        fprintf(file, "{\"%s\":[{\"%s\":[{}", kinds[i][1], kinds[i][2]);
        for (int span = 0; span < 1000000; span++)
            fputs(",{}", file);
        fputs("]}]}]}\n", file);
        ck_assert_int_eq(fclose(file), 0);
        CLI(&cli, NULL, "import", kinds[i][0], tmpdir_path(&cli.dir, name));
        ck_assert_int_eq(cli.exit_status, 1);
        ck_assert_ptr_nonnull(strstr(cli.err, "nothing else was found in the log"));
    }
    DONE(&cli, "sql",
         "SELECT sum(type = 'import.record') AS r, sum(type = 'import.unknown') AS u FROM events",
         "--json");
    ck_assert_str_eq(cli.out, "{\"r\":2,\"u\":2}\n");
}
END_TEST

START_TEST(a_compressed_log_of_a_thousand_times_its_size_is_not_unpacked)
{
    enum { BYTES = 80 << 20 };
    size_t bound = ZSTD_compressBound(BYTES);
    char *text = malloc(BYTES), *packed = malloc(bound);
    memset(text, '\n', BYTES);
    size_t packed_len = ZSTD_compress(packed, bound, text, BYTES, 1);
    ck_assert(!ZSTD_isError(packed_len));
    FILE *file = create("a.jsonl.zst");
    fwrite(packed, 1, packed_len, file);
    fclose(file);
    CLI(&cli, NULL, "import", "claude-code", tmpdir_path(&cli.dir, "a.jsonl.zst"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "more than 1000 times the size of the file"));
    free(text);
    free(packed);
}
END_TEST

START_TEST(a_truncated_compressed_log_gives_its_readable_part_and_a_warning)
{
    size_t len = 0;
    FILE *file = create("a.jsonl");
    for (int n = 1; n <= 20000; n++)
        put_line(file, n);
    fclose(file);
    char *text = file_read(tmpdir_path(&cli.dir, "a.jsonl"), &len);
    size_t bound = ZSTD_compressBound(len);
    char *packed = malloc(bound);
    size_t packed_len = ZSTD_compress(packed, bound, text, len, 1);
    ck_assert(!ZSTD_isError(packed_len));
    file = create("a.jsonl.zst");
    fwrite(packed, 1, packed_len * 3 / 4, file);
    fclose(file);
    import_twice("claude-code", "a.jsonl.zst", 1);
    ck_assert_int_gt(count_of("\"imported\":"), 1000);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"damage\":\"the zstd stream of the log ends early\""));
    ck_assert_ptr_nonnull(
        strstr(cli.err, "the zstd stream of the log ends early; the lines before the damage"));
    memset(packed + packed_len / 2, 0xff, 100);
    file = create("a.jsonl.zst");
    fwrite(packed, 1, packed_len, file);
    fclose(file);
    CLI(&cli, NULL, "import", "claude-code", tmpdir_path(&cli.dir, "a.jsonl.zst"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "the zstd stream of the log is damaged"));
    free(text);
    free(packed);
}
END_TEST

Suite *suite_import_odd(void)
{
    Suite *suite = suite_create("import_odd");
    TCase *tc = suite_case(suite, "odd logs", cli_setup, cli_teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(
        tc, a_line_of_100_mb_without_strings_is_kept_in_pieces_and_its_neighbours_are_imported);
    tcase_add_test(
        tc, long_strings_of_a_line_of_70_mib_become_artifacts_and_its_text_and_usage_are_imported);
    tcase_add_long_test(tc,
                        a_long_string_that_a_line_break_ends_is_kept_and_the_next_line_is_imported);
    tcase_add_long_test(tc, a_line_as_long_as_lines_may_be_takes_bounded_memory);
    tcase_add_long_test(tc, a_document_with_a_message_of_100_mb_gives_all_its_other_messages);
    tcase_add_long_test(tc, a_document_of_many_messages_takes_little_memory);
    tcase_add_long_test(tc, a_row_of_70_mb_keeps_its_text_as_an_artifact);
    tcase_add_long_test(
        tc, a_file_of_a_directory_that_is_too_large_is_imported_without_its_long_string);
    tcase_add_long_test(tc, a_line_of_more_than_a_million_spans_or_records_is_kept_unchanged);
    tcase_add_test(tc, a_compressed_log_of_a_thousand_times_its_size_is_not_unpacked);
    tcase_add_test(tc, a_truncated_compressed_log_gives_its_readable_part_and_a_warning);
    return suite;
}
