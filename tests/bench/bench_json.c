/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast is the JSON check, beside yajl and SQLite's json_valid()?
 *
 *     bench_json [FILE.jsonl …]
 *
 * Every line is checked by itself, as an append would. Without a file it takes events made up here.
 */
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/json.h"

#include "tests/support/random.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#define ROUNDS 5
#define EVENTS 10000

static sqlite3_stmt *json_valid;

static bool by_annal(annal_slice line)
{
    return annal__json_check(line, 512, NULL) == JSON_VALID;
}

static bool by_yajl(annal_slice line)
{
    yajl_handle parser = yajl_alloc(NULL, NULL, NULL);
    bool valid = yajl_parse(parser, (const unsigned char *)line.ptr, line.len) == yajl_status_ok &&
                 yajl_complete_parse(parser) == yajl_status_ok;
    yajl_free(parser);
    return valid;
}

static bool by_sqlite(annal_slice line)
{
    sqlite3_bind_text(json_valid, 1, line.ptr, (int)line.len, SQLITE_STATIC);
    bool valid = sqlite3_step(json_valid) == SQLITE_ROW && sqlite3_column_int(json_valid, 0) == 1;
    sqlite3_reset(json_valid);
    return valid;
}

static size_t count_valid(annal_slice text, bool (*check)(annal_slice line), size_t *out_lines)
{
    size_t valid = 0;
    *out_lines = 0;
    while (text.len > 0) {
        const char *newline = memchr(text.ptr, '\n', text.len);
        size_t len = newline == NULL ? text.len : (size_t)(newline - text.ptr);
        valid += check((annal_slice){text.ptr, len});
        ++*out_lines;
        text.ptr += len + (newline != NULL);
        text.len -= len + (newline != NULL);
    }
    return valid;
}

static void measure(const char *name, annal_slice text, bool (*check)(annal_slice line))
{
    const struct clock *clock = &annal__system_clock;
    int64_t best_us = INT64_MAX;
    size_t valid = 0, lines = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start_us = clock->monotonic_us(clock->arg);
        valid = count_valid(text, check, &lines);
        int64_t took_us = clock->monotonic_us(clock->arg) - start_us;
        if (took_us < best_us)
            best_us = took_us;
    }
    printf("  %-10s %5.2f GB/s   %zu of %zu lines valid\n", name,
           (double)text.len / ((double)(best_us > 0 ? best_us : 1) * 1000), valid, lines);
}

static void measure_all(const char *name, annal_slice text)
{
    printf("JSON check: %s, %.1f MB, best of %d\n", name, (double)text.len / 1e6, ROUNDS);
    measure("annal", text, by_annal);
    measure("yajl", text, by_yajl);
    measure("json_valid", text, by_sqlite);
}

/* Like real ones: 1.6 KB on average, most of it text with a newline or a quote every 40 bytes. */
static void make_events(struct buf *out)
{
    struct random random = {1};
    for (int i = 0; i < EVENTS; i++) {
        annal__buf_printf(out,
                          "{\"type\":\"message.added\",\"role\":\"assistant\",\"usage\":{"
                          "\"input_tokens\":%d,\"output_tokens\":17},\"content\":\"",
                          i);
        for (uint64_t pieces = random_below(&random, 75); pieces > 0; pieces--) {
            uint64_t len = random_below(&random, 80);
            for (uint64_t n = 0; n < len; n++)
                annal__buf_append(out, &"etaoin shrdlu_()./=-"[random_below(&random, 20)], 1);
            annal__buf_printf(out, "%s", random_below(&random, 3) == 0 ? "\\\"" : "\\n");
        }
        annal__buf_printf(out, "\"}\n");
    }
}

static bool load(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    char block[65536];
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0) {
        if (annal__buf_append(out, block, got) < 0)
            break;
    }
    fclose(file);
    return got == 0;
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT json_valid(?)", -1, &json_valid, NULL) != SQLITE_OK)
        return 1;
    int result = 0;
    struct buf text = {0};
    if (argc < 2) {
        make_events(&text);
        measure_all("made-up events", annal__buf_slice(&text));
    }
    for (int i = 1; i < argc; i++) {
        annal__buf_clear(&text);
        if (load(argv[i], &text)) {
            measure_all(argv[i], annal__buf_slice(&text));
        } else {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            result = 1;
        }
    }
    annal__buf_done(&text);
    sqlite3_finalize(json_valid);
    sqlite3_close(db);
    return result;
}
