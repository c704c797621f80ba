/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of crashed and of careless programs, and logs of extreme sizes: an import takes each line,
 * skips it for a reason or keeps it byte for byte, its exit status says whether all could be read,
 * and a second import adds nothing.
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

/* ---- Values ---- */

#define ODD_VALUES                                                                                 \
    "\"big\":123456789012345678901234567890,\"small\":-9223372036854775809,\"far\":1e400,"         \
    "\"exact\":1.10000000000000000000001,\"half\":\"\\ud800\",\"nul\":\"a\\u0000b\",\"same\":1,"   \
    "\"same\":2,\"zero\":-0"

static void assert_odd_values(void)
{
    static const char *const values[] = {"123456789012345678901234567890",
                                         "-9223372036854775809",
                                         "1e400",
                                         "1.10000000000000000000001",
                                         "\"\\ud800\"",
                                         "\"a\\u0000b\"",
                                         "\"same\":1",
                                         "\"same\":2",
                                         "\"zero\":-0"};
    CLI(&cli, NULL, "query", "--raw");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ck_assert_msg(strstr(cli.out, values[i]) != NULL, "%s is in no event: %s", values[i],
                      cli.out);
}

static void write_odd_line(void)
{
    FILE *file = create("a.jsonl");
    begin_line(file, 1);
    fputs("," ODD_VALUES "}\n", file);
    fclose(file);
}

static void write_odd_document(void)
{
    FILE *file = create("session-1.json");
    fputs(DOCUMENT_BEGIN, file);
    begin_message(file, 1);
    fputs("," ODD_VALUES "}" DOCUMENT_END, file);
    fclose(file);
}

static void write_odd_row(void)
{
    static const char json[] = "{\"role\":\"user\",\"content\":\"a\"," ODD_VALUES "}";
    sqlite3 *db = create_database("a.db");
    put_row(db, json, sizeof json - 1);
    sqlite3_close(db);
}

static void write_odd_file(void)
{
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "run"), 0700), 0);
    FILE *file = create("run/base_state.json");
    fputs("{\"id\":\"s\"," ODD_VALUES "}", file);
    fclose(file);
}

START_TEST(extreme_numbers_and_strings_are_kept_byte_for_byte)
{
    static const struct {
        void (*write)(void);
        const char *kind, *name;
    } logs[] = {{write_odd_line, "claude-code", "a.jsonl"},
                {write_odd_document, "gemini-cli", "session-1.json"},
                {write_odd_row, "openai-agents", "a.db"},
                {write_odd_file, "openhands", "run"}};
    logs[_i].write();
    import_twice(logs[_i].kind, logs[_i].name, 0);
    assert_odd_values();
    ck_assert_int_eq(count_type("import.unreadable"), 0);
}
END_TEST

static void nest(FILE *file, int depth)
{
    fputs(",\"deep\":", file);
    fill(file, '[', (size_t)depth);
    fputs("\"bottom\"", file);
    fill(file, ']', (size_t)depth);
}

START_TEST(a_line_nested_too_deep_is_kept_as_text_and_its_neighbours_are_imported)
{
    static const int depths[] = {490, 600, 10000};
    int depth = depths[_i];
    FILE *lines = create("a.jsonl"), *document = create("session-1.json");
    fputs(DOCUMENT_BEGIN, document);
    for (int n = 1; n <= 3; n++) {
        begin_line(lines, n);
        begin_message(document, n);
        if (n == 2) {
            nest(lines, depth);
            nest(document, depth);
        }
        fputs("}\n", lines);
        fputs("}", document);
    }
    fputs(DOCUMENT_END, document);
    fclose(lines);
    fclose(document);
    import_twice("claude-code", "a.jsonl", 0);
    ck_assert_int_eq(count_type("import.record"), depth < 500 ? 3 : 2);
    import_twice("gemini-cli", "session-1.json", 0);
    assert_found("bottom");
    ck_assert_int_eq(count_type("message.added"), depth < 500 ? 3 : 2);
    assert_found("said 3");
}
END_TEST

/* Without a line break it is the last line, which waits unless it is whole. */
START_TEST(a_deeply_nested_last_line_is_imported)
{
    FILE *file = create("a.jsonl");
    begin_line(file, 1);
    nest(file, 900);
    fputs("}", file);
    fclose(file);
    import_twice("claude-code", "a.jsonl", 1);
    assert_found("bottom");
}
END_TEST

/* ---- Bytes ---- */

START_TEST(zero_bytes_of_a_power_cut_are_counted_and_the_next_line_is_imported)
{
    FILE *file = create("a.jsonl");
    put_line(file, 1);
    fill(file, '\0', 100000);
    put_line(file, 2);
    put_line(file, 3);
    fill(file, '\0', 5000);
    fputs("\n", file);
    fputs("\"a\"", file);
    fill(file, '\0', 300);
    fputs("\n", file);
    fill(file, '\0', 4096);
    fclose(file);
    import_twice("claude-code", "a.jsonl", 0);
    ck_assert_int_eq(count_of("\"lines\":"), 6);
    ck_assert_int_eq(count_of("\"imported\":"), 5);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"reason\":\"unfinished\",\"lines\":1}"));
    ck_assert_int_eq(count_type("import.record"), 3);
    CLI(&cli, NULL, "query", "--type", "import.unreadable");
    ck_assert_ptr_nonnull(
        strstr(cli.out, "{\"reason\":\"zero bytes\",\"part\":1,\"zero_bytes\":100000"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"zero_bytes\":5000"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"base64\":\"ImEiAAAA"));
}
END_TEST

START_TEST(zero_bytes_in_a_document_cost_only_the_message_that_they_replace)
{
    FILE *file = create("session-1.json");
    fputs(DOCUMENT_BEGIN, file);
    begin_message(file, 1);
    fputs("}", file);
    begin_message(file, 2);
    fill(file, '\0', 4096);
    fclose(file);
    import_twice("gemini-cli", "session-1.json", 0);
    ck_assert_int_eq(count_type("message.added"), 1);
    CLI(&cli, NULL, "ls", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"session_id\":\"s\"")); /* which its head names */
}
END_TEST

START_TEST(byte_order_marks_and_line_ends_of_other_systems_change_nothing)
{
    static const char *const texts[] = {
        "\xEF\xBB\xBF{\"a\":1}\r\n{\"a\":2}\r\n", "{\"a\":1}\n{\"a\":2}",
        "\r\n{\"a\":1}\r\n\r\n \t\r\n{\"a\":2}\r\n", "{\"a\":1}\r\n{\"a\":2}\r"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *file = create("a.jsonl");
        fputs(texts[i], file);
        fclose(file);
        DONE(&cli, "import", "jsonl", tmpdir_path(&cli.dir, "a.jsonl"), "--json");
        ck_assert_int_eq(count_of("\"imported\":"), 2);
        ck_assert_int_eq(count_of("\"events\":"), i == 0 ? 2 : 0);
    }
}
END_TEST

START_TEST(a_line_that_is_not_utf_8_is_kept_byte_for_byte)
{
    FILE *file = create("a.jsonl");
    put_line(file, 1);
    fputs("{\"a\":\"\xC3\x28\"}\n", file);
    put_line(file, 2);
    fclose(file);
    import_twice("claude-code", "a.jsonl", 0);
    assert_found("\"base64\":\"eyJhIjoiwygifQ==\"");
    ck_assert_int_eq(count_type("import.record"), 3);
    assert_found("\"a\":\"\xef\xbf\xbd(\"");
    file = create("session-1.json");
    fputs(DOCUMENT_BEGIN, file);
    begin_message(file, 1);
    fputs("}", file);
    begin_message(file, 2);
    fputs(",\"x\":\"\xC3\x28\"}" DOCUMENT_END, file);
    fclose(file);
    import_twice("gemini-cli", "session-1.json", 0);
    ck_assert_int_eq(count_type("message.added"), 2);
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

START_TEST(a_truncated_archive_gives_its_complete_files_and_a_warning)
{
    size_t len = 0;
    char *text = file_read(ANNAL_SOURCE "/tests/data/inspect/2026-03-02T09-14-06_tides.eval", &len);
    FILE *file = create("a.eval");
    fwrite(text, 1, len * 2 / 3, file);
    fclose(file);
    import_twice("inspect", "a.eval", 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "the zip archive of the log is damaged"));
    DONE(&cli, "sql", "SELECT count(*) AS n FROM sessions WHERE title = 'And the sun?'", "--json");
    ck_assert_str_eq(cli.out, "{\"n\":1}\n");
    text[len / 4] = (char)~text[len / 4]; /* in the compressed bytes of a sample */
    file = create("b.eval");
    fwrite(text, 1, len, file);
    fclose(file);
    CLI(&cli, NULL, "import", "inspect", tmpdir_path(&cli.dir, "b.eval"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "the zip archive of the log is damaged"));
    free(text);
}
END_TEST

START_TEST(a_truncated_database_gives_its_readable_rows_and_a_warning)
{
    sqlite3 *db = create_database("a.db");
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
    for (int n = 0; n < 2000; n++) {
        char json[300];
        int len = snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"%0200d\"}", n);
        put_row(db, json, (size_t)len);
    }
    ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    struct stat st;
    const char *path = tmpdir_path(&cli.dir, "a.db");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size / 2), 0);
    import_twice("openai-agents", "a.db", 1);
    ck_assert_int_gt(count_of("\"imported\":"), 100);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"damage\":"));
    ck_assert_int_eq(truncate(path, 50), 0);
    CLI(&cli, NULL, "import", "openai-agents", path);
    ck_assert_int_eq(cli.exit_status, 1);
}
END_TEST

START_TEST(a_database_in_wal_mode_is_read_beside_its_writer)
{
    sqlite3 *db = create_database("a.db");
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), SQLITE_OK);
    put_row(db, "{\"role\":\"user\",\"content\":\"one\"}", 31);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    put_row(db, "{\"role\":\"user\",\"content\":\"two\"}", 31);
    import_twice("openai-agents", "a.db", 0);
    ck_assert_int_eq(count_type("message.added"), 1);
    ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    import_twice("openai-agents", "a.db", 0);
    ck_assert_int_eq(count_type("message.added"), 2);
    sqlite3_close(db);
}
END_TEST

START_TEST(an_import_names_a_locked_database_and_imports_the_others)
{
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs"), 0700), 0);
    sqlite3 *locked = create_database("logs/a.db");
    sqlite3 *other = create_database("logs/b.db");
    put_row(other, "{\"role\":\"user\",\"content\":\"one\"}", 31);
    sqlite3_close(other);
    ck_assert_int_eq(sqlite3_exec(locked, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    CLI(&cli, NULL, "import", "openai-agents", tmpdir_path(&cli.dir, "logs"), "--wait", "1");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "logs/a.db'"));
    ck_assert_msg(strstr(cli.err, "the database is locked by another program") != NULL, "%s",
                  cli.err);
    ck_assert_int_eq(count_type("message.added"), 1);
    sqlite3_close(locked);
}
END_TEST

/* ---- Not logs ---- */

START_TEST(a_fifo_and_a_device_are_not_imported_as_logs)
{
    const char *logs = tmpdir_path(&cli.dir, "logs");
    ck_assert_int_eq(mkdir(logs, 0700), 0);
    ck_assert_int_eq(mkfifo(tmpdir_path(&cli.dir, "logs/fifo.jsonl"), 0600), 0);
    ck_assert_int_eq(symlink("/dev/zero", tmpdir_path(&cli.dir, "logs/zero.jsonl")), 0);
    ck_assert_int_eq(symlink(logs, tmpdir_path(&cli.dir, "logs/round")), 0);
    CLI(&cli, NULL, "import", "claude-code", tmpdir_path(&cli.dir, "logs/fifo.jsonl"));
    cli_assert_refused(&cli, 1, "neither a file nor a directory");
    CLI(&cli, NULL, "import", "claude-code", tmpdir_path(&cli.dir, "logs/zero.jsonl"));
    cli_assert_refused(&cli, 1, "neither a file nor a directory");
    fclose(create("logs/empty.jsonl"));
    CLI(&cli, NULL, "import", "claude-code", logs);
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(
        cli.err, "fifo.jsonl': the path is neither a file nor a directory; this path is left out"));
    ck_assert_ptr_nonnull(strstr(
        cli.err, "zero.jsonl': the path is neither a file nor a directory; this path is left out"));
    ck_assert_ptr_nonnull(strstr(cli.out, "1 file, 0 lines, 0 of them skipped: 0 events added"));
}
END_TEST

/* A record that was cut off, followed by the next record on the same line; and lines that only look
 * like that. */
START_TEST(a_whole_record_is_recovered_from_a_broken_line)
{
#define MODE(n) "{\"type\":\"mode\",\"sessionId\":\"s-1\",\"said\":\"" n "\"}"
    static const struct {
        const char *line;
        int records, unreadable;
    } lines[] = {
        {MODE("1") MODE("2"), 2, 0},
        {"{\"type\":\"mode\",\"sessio" MODE("3"), 1, 1},
        {MODE("4") "{\"type\":\"mode\",\"x\":{\"y\":1", 1, 1},
        {MODE("5") "{\"type\":\"mo" MODE("6"), 2, 1},
        {"de\",\"x\":{\"y\":1}}" MODE("7"), 1, 1},
        {"{\"type\":\"mode\",\"x\":{\"y\":1}", 0, 1},
        {"\"x\":{\"y\":1}}", 0, 1},
        {"{\"type\":\"mode\",\"x\":[{\"y\":1},{\"y\":2}", 0, 1},
        {MODE("8") "}", 1, 1},
        {MODE("9") " junk", 1, 1},
        {"{\"y\":1},\"z\":2}", 0, 1},
        {"{\"y\":1}],\"z\":2}}", 0, 1},
    };
    FILE *file = create("a.jsonl");
    int records = 0, unreadable = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fprintf(file, "%s\n", lines[i].line);
        records += lines[i].records;
        unreadable += lines[i].unreadable;
        fflush(file);
        CLI(&cli, NULL, "import", "claude-code", tmpdir_path(&cli.dir, "a.jsonl"));
        ck_assert_int_eq(cli.exit_status, 0);
        ck_assert_msg(count_type("import.record") == records, "%s", lines[i].line);
        ck_assert_msg(count_type("import.unreadable") == unreadable, "%s", lines[i].line);
    }
    fclose(file);
}
END_TEST

START_TEST(a_database_of_any_name_is_a_log_and_other_files_are_counted)
{
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs/.git"), 0700), 0);
    sqlite3 *db = create_database("logs/mine.store");
    put_row(db, "{\"role\":\"user\",\"content\":\"a\"}", 29);
    sqlite3_close(db);
    static const char *const others[] = {"logs/b.eval", "logs/c.eval", "logs/.git/d.eval",
                                         "logs/mine.store-wal", "logs/history.jsonl"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fclose(create(others[i]));
    CLI(&cli, NULL, "import", "openai-agents", tmpdir_path(&cli.dir, "logs"));
    ck_assert_msg(cli.exit_status == 0, "%s", cli.err);
    ck_assert_ptr_nonnull(strstr(cli.err, "2 files have no name of a log, such as '"));
    ck_assert_ptr_nonnull(strstr(cli.err, "logs/b.eval': left out"));
    ck_assert_int_eq(count_type("message.added"), 1);
}
END_TEST

START_TEST(an_import_follows_each_link_once_and_loops_end)
{
    static const char line[] = "{\"type\":\"mode\",\"sessionId\":\"%s\"}\n";
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "away"), 0700), 0);
    FILE *file = create("logs/a.jsonl");
    fprintf(file, line, "s-a");
    fclose(file);
    file = create("away/b.jsonl");
    fprintf(file, line, "s-b");
    fclose(file);
    static const char *const links[][2] = {{"../away", "logs/one"},    {"../away", "logs/two"},
                                           {"../logs", "away/round"},  {"a.jsonl", "logs/0.jsonl"},
                                           {"self", "logs/self"},      {"gone", "logs/none.jsonl"},
                                           {"b.jsonl", "away/0.jsonl"}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        ck_assert_int_eq(symlink(links[i][0], tmpdir_path(&cli.dir, links[i][1])), 0);
    CLI(&cli, NULL, "import", "claude-code", tmpdir_path(&cli.dir, "logs"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(
        strstr(cli.err, "none.jsonl': No such file or directory; this path is left out"));
    ck_assert_ptr_nonnull(strstr(cli.err, "logs/self': Too many levels of symbolic links"));
    ck_assert_msg(strstr(cli.out, "2 files, 2 lines, 0 of them skipped: 4 events added") != NULL,
                  "%s", cli.out);
}
END_TEST

/* An importer that fails on a line. */
START_TEST(an_import_names_a_line_that_its_importer_rejects_and_imports_the_other_logs)
{
    static const char sql[] =
        "-- importer picky\n-- files: *.log\n-- batch\n"
        "SELECT stem, 1700000000000000 + n * 1000, 'note.taken', hash, NULL, json, n FROM lines, "
        "source WHERE json ->> '$.a' <> 13 ORDER BY row;\n";
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs"), 0700), 0);
    FILE *file = create("picky.sql");
    fputs(sql, file);
    fclose(file);
    file = create("logs/a.log");
    fputs("{\"a\":1}\n{\"a\":13}\n{\"a\":2}\n", file);
    fclose(file);
    file = create("logs/b.log");
    fputs("{\"a\":3}\n", file);
    fclose(file);
    CLI(&cli, NULL, "import", tmpdir_path(&cli.dir, "picky.sql"), tmpdir_path(&cli.dir, "logs"));
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "logs/a.log': importer: line 2 yielded no event"));
    assert_found("{\"a\":3}");
}
END_TEST

START_TEST(an_id_that_a_log_repeats_gives_one_event)
{
    static const char sql[] =
        "-- importer twice\n-- batch\n"
        "SELECT 's', 1700000000000000 + n * 1000, 'note.taken', json ->> '$.id', NULL, json, n "
        "FROM lines ORDER BY row;\n";
    FILE *file = create("twice.sql");
    fputs(sql, file);
    fclose(file);
    file = create("a.jsonl");
    fputs("{\"id\":1,\"a\":1}\n{\"id\":2,\"a\":2}\n{\"id\":1,\"a\":3}\n", file);
    fclose(file);
    DONE(&cli, "import", tmpdir_path(&cli.dir, "twice.sql"), tmpdir_path(&cli.dir, "a.jsonl"));
    ck_assert_ptr_nonnull(strstr(cli.out, "2 events added"));
}
END_TEST

/* A database may contain a view where an importer expects a table. */
START_TEST(an_endless_view_instead_of_a_table_ends_the_import)
{
    static const char *const wheres[] = {"", "WHERE x < 0"};
    static const char *const says[] = {"this SQLite database contains more than 1 MB of rows",
                                       "the statement was stopped after 1 seconds for one row"};
    for (size_t i = 0; i < 2; i++) {
        char name[20], sql[500];
        sqlite3 *db = NULL;
        snprintf(name, sizeof name, "%zu.db", i);
        snprintf(sql, sizeof sql,
                 "CREATE TABLE messages (id, session_id, role, content_json, created_timestamp);"
                 "CREATE TABLE sessions (id, working_dir); INSERT INTO sessions VALUES ('s', 'd');"
                 "CREATE VIEW schema_version AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT "
                 "x + 1 FROM c) SELECT x AS version FROM c %s",
                 wheres[i]);
        ck_assert_int_eq(sqlite3_open(tmpdir_path(&cli.dir, name), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        CLI(&cli, NULL, "import", "goose", tmpdir_path(&cli.dir, name), "--temp", "1", "--timeout",
            "1");
        cli_assert_refused(&cli, EXIT_REFUSED, says[i]);
        ck_assert_ptr_nonnull(strstr(cli.err, "--timeout, --memory and --temp change the limits"));
    }
}
END_TEST

Suite *suite_import_odd(void)
{
    Suite *suite = suite_create("import_odd");
    TCase *tc = suite_case(suite, "odd logs", cli_setup, cli_teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, an_endless_view_instead_of_a_table_ends_the_import);
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
    tcase_add_loop_test(tc, extreme_numbers_and_strings_are_kept_byte_for_byte, 0, 4);
    tcase_add_loop_test(tc, a_line_nested_too_deep_is_kept_as_text_and_its_neighbours_are_imported,
                        0, 3);
    tcase_add_test(tc, a_deeply_nested_last_line_is_imported);
    tcase_add_test(tc, zero_bytes_of_a_power_cut_are_counted_and_the_next_line_is_imported);
    tcase_add_test(tc, zero_bytes_in_a_document_cost_only_the_message_that_they_replace);
    tcase_add_test(tc, byte_order_marks_and_line_ends_of_other_systems_change_nothing);
    tcase_add_test(tc, a_line_that_is_not_utf_8_is_kept_byte_for_byte);
    tcase_add_long_test(tc, a_line_of_more_than_a_million_spans_or_records_is_kept_unchanged);
    tcase_add_test(tc, a_compressed_log_of_a_thousand_times_its_size_is_not_unpacked);
    tcase_add_test(tc, a_truncated_compressed_log_gives_its_readable_part_and_a_warning);
    tcase_add_test(tc, a_truncated_archive_gives_its_complete_files_and_a_warning);
    tcase_add_test(tc, a_truncated_database_gives_its_readable_rows_and_a_warning);
    tcase_add_test(tc, a_database_in_wal_mode_is_read_beside_its_writer);
    tcase_add_test(tc, an_import_names_a_locked_database_and_imports_the_others);
    tcase_add_test(tc, a_fifo_and_a_device_are_not_imported_as_logs);
    tcase_add_test(tc, a_whole_record_is_recovered_from_a_broken_line);
    tcase_add_test(tc, a_database_of_any_name_is_a_log_and_other_files_are_counted);
    tcase_add_test(tc, an_import_follows_each_link_once_and_loops_end);
    tcase_add_test(tc, an_import_names_a_line_that_its_importer_rejects_and_imports_the_other_logs);
    tcase_add_test(tc, an_id_that_a_log_repeats_gives_one_event);
    return suite;
}
