/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary lines through each importer.
 *
 * (1) No line stops an import: every line that is neither blank nor a repetition gives an event,
 *     and all are counted.
 * (2) A session accepts each event: id, type, data, cause.
 * (3) The ends of batches make no difference.
 */
#include "journal/base/buf.h"
#include "tests/fuzz/fuzz.h"
#include "tools/import/import.h"

#include <annal/import.h>

#include <inttypes.h>
#include <string.h>

#define LINES_MAX 64

static annal_status take(void *arg, const annal_import_event *event, annal_error *err)
{
    struct buf *out = arg;
    const annal_draft *draft = &event->draft;
    annal_error reason = {0};
    if (annal_session_id_check(event->session, &reason) < 0 ||
        annal_draft_check(draft, &reason) < 0) {
        fprintf(stderr, "line %" PRIu64 ": %s\n", event->line, reason.message);
        abort();
    }
    (void)err;
    MUST(annal__buf_printf(out, "%.*s %" PRId64 " %.*s %.*s %.*s %.*s\n", ANNAL_FMT(event->session),
                           draft->ts_us, ANNAL_FMT(draft->type), ANNAL_FMT(draft->id),
                           ANNAL_FMT(draft->cause), ANNAL_FMT(draft->data)) == ANNAL_OK);
    return ANNAL_OK;
}

static size_t split(annal_slice text, annal_import_line *lines)
{
    size_t count = 0;
    while (text.len > 0 && count < LINES_MAX) {
        const char *newline = memchr(text.ptr, '\n', text.len);
        size_t len = newline == NULL ? text.len : (size_t)(newline - text.ptr);
        lines[count] = (annal_import_line){.number = count + 1, .bytes = {text.ptr, len}};
        count++;
        len += newline != NULL;
        text.ptr += len;
        text.len -= len;
    }
    return count;
}

static void import(const char *kind, const annal_import_line *lines, size_t count, size_t batch,
                   struct buf *out)
{
    struct importer importer;
    annal_import *import = NULL;
    annal_error err = {0};
    const annal_import_source source = {.kind = kind, .file = "rollout-1.jsonl"};
    MUST(importer_find(kind, &importer));
    MUST(annal_import_open(importer.sql, &source, &import, NULL) == ANNAL_OK);
    for (size_t i = 0; i < count; i += batch) {
        size_t take_now = count - i < batch ? count - i : batch;
        if (annal_import_feed(import, lines + i, take_now, take, out, &err) < 0) {
            fprintf(stderr, "%s, lines %zu to %zu: %s\n", kind, i + 1, i + take_now, err.message);
            abort();
        }
    }
    annal_import_counts counts = annal_import_counts_get(import);
    MUST(counts.imported + counts.blank + counts.duplicate == count);
    annal_import_close(import);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const kinds[] = {"claude-code", "codex"};
    annal_import_line lines[LINES_MAX];
    annal_slice input = {(const char *)bytes, len};
    uint8_t how = take_byte(&input);
    const char *kind = kinds[how % 2];
    size_t count = split(input, lines);
    struct buf at_once = {0}, in_parts = {0};
    import(kind, lines, count, LINES_MAX, &at_once);
    import(kind, lines, count, (size_t)(how / 2 % 3) + 1, &in_parts);
    MUST(at_once.len == in_parts.len);
    MUST(at_once.len == 0 || memcmp(at_once.ptr, in_parts.ptr, at_once.len) == 0);
    annal__buf_done(&at_once);
    annal__buf_done(&in_parts);
    return 0;
}
