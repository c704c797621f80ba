/* SPDX-License-Identifier: Apache-2.0 */
/* How a line is split and inserted: rules 2, 3, 5 and 6 of import_run.c. */
#include "index/import/import_lines.h"

#include "index/db/db.h"
#include "index/import/import.h"
#include "index/sys/import.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * maximum number of levels of nesting that an importer adds around a line in the data of an event
 */
#define WRAP_DEPTH 8

/* limit for searching a record in a line: checked bytes, as a multiple of the line's length */
#define CHECKED_TIMES 8

static bool is_blank(annal_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.ptr[i] != ' ' && bytes.ptr[i] != '\t' && bytes.ptr[i] != '\r')
            return false;
    }
    return true;
}

annal_status annal__import_fail(annal_import *import, annal_error *err, const char *what)
{
    return annal__db_fail(err, import->db, sqlite3_extended_errcode(import->db), "%s", what);
}

void annal__import_hash(annal_slice bytes, uint64_t seed, char out[HASH_TEXT_BYTES])
{
    snprintf(out, HASH_TEXT_BYTES, "%016" PRIx64 "%016" PRIx64,
             annal__hash(bytes.ptr, bytes.len, seed), annal__hash(bytes.ptr, bytes.len, ~seed));
}

static annal_status remember(annal_import *import, const char *hash, bool *out_known,
                             annal_error *err)
{
    sqlite3_bind_text(import->remember, 1, hash, -1, SQLITE_STATIC);
    int code = sqlite3_step(import->remember);
    sqlite3_reset(import->remember);
    if (code != SQLITE_DONE)
        return annal__import_fail(import, err, "importer");
    *out_known = sqlite3_changes(import->db) == 0;
    return ANNAL_OK;
}

/*
 * Write the key under which the id of an event is remembered: a dot and a hash. The dot
 * distinguishes it from the hashes of lines.
 */
static annal_status event_key(annal_import *import, annal_slice session, annal_slice id,
                              char out[HASH_TEXT_BYTES + 1], annal_error *err)
{
    struct buf *key = &import->scratch;
    annal__buf_clear(key);
    annal__buf_append_slice(key, session);
    annal__buf_append(key, "\n", 1);
    annal_status status = annal__buf_append_slice(key, id);
    if (status < 0)
        return annal__fail(err, status, "importer: out of memory");
    out[0] = '.';
    annal__import_hash(annal__buf_slice(key), 0, out + 1);
    return ANNAL_OK;
}

annal_status annal__import_remember(annal_import *import, annal_slice session, annal_slice id,
                                    annal_error *err)
{
    char key[HASH_TEXT_BYTES + 1];
    bool known = false;
    annal_status status = event_key(import, session, id, key, err);
    import->has_ids = true;
    return status < 0 ? status : remember(import, key, &known, err);
}

annal_status annal__import_knows(annal_import *import, annal_slice session, annal_slice id,
                                 bool *out_known, annal_error *err)
{
    char key[HASH_TEXT_BYTES + 1];
    *out_known = false;
    if (!import->has_ids)
        return ANNAL_OK;
    annal_status status = event_key(import, session, id, key, err);
    if (status < 0)
        return status;
    sqlite3_bind_text(import->knows, 1, key, -1, SQLITE_STATIC);
    int code = sqlite3_step(import->knows);
    sqlite3_reset(import->knows);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return annal__import_fail(import, err, "importer");
    *out_known = code == SQLITE_ROW;
    return ANNAL_OK;
}

annal_status annal__import_recall(annal_import *import, annal_slice session, annal_slice type,
                                  annal_slice id, int64_t ts_us, annal_slice data, annal_error *err)
{
    sqlite3_stmt *recall = import->recall;
    if (id.len == 0)
        return ANNAL_OK;
    sqlite3_bind_int64(recall, 1, ++import->recalled);
    annal__db_bind_text(recall, 2, session);
    sqlite3_bind_int64(recall, 3, ts_us);
    annal__db_bind_text(recall, 4, type);
    annal__db_bind_text(recall, 5, id);
    annal__db_bind_text(recall, 6, data);
    return annal__db_run(recall, err);
}

/*
 * Return whether the line is a record of its own, although its bytes may have been in the file
 * before: it contains a text of the section "-- repeats", and the last line with this text differs.
 */
static bool is_repeated(annal_import *import, annal_slice bytes, const char *hash)
{
    annal_slice texts = annal__buf_slice(&import->repeated);
    bool found = import->repeats && texts.len == 0;
    for (size_t i = 0; i < REPEATED_MAX && texts.len > 0 && bytes.len <= REPEATED_BYTES_MAX; i++) {
        const char *end = memchr(texts.ptr, '\n', texts.len);
        size_t len = end != NULL ? (size_t)(end - texts.ptr) : texts.len;
        if (memmem(bytes.ptr, bytes.len, texts.ptr, len) != NULL) {
            found = found || strcmp(import->last_with[i], hash) != 0;
            memcpy(import->last_with[i], hash, HASH_TEXT_BYTES);
        }
        len += end != NULL;
        texts = (annal_slice){texts.ptr + len, texts.len - len};
    }
    return found;
}

/* Append a number to the hash of a line whose bytes were in the file before: HASH.2, HASH.3, … */
static annal_status number_repeated(annal_import *import, char hash[HASH_NUMBERED_BYTES],
                                    annal_error *err)
{
    size_t len = strlen(hash);
    sqlite3_bind_text(import->repeat, 1, hash, -1, SQLITE_TRANSIENT);
    int code = sqlite3_step(import->repeat);
    if (code == SQLITE_ROW)
        snprintf(hash + len, HASH_NUMBERED_BYTES - len, ".%lld",
                 (long long)sqlite3_column_int64(import->repeat, 0));
    sqlite3_reset(import->repeat);
    return code == SQLITE_ROW ? ANNAL_OK : annal__import_fail(import, err, "importer");
}

/* The content of a row of the table lines, in one of these columns; the others are empty. */
struct content {
    annal_slice json, unreadable, text;
};

static annal_status insert_row(annal_import *import, struct batch *batch, uint64_t number,
                               const char *hash, struct content content, annal_error *err)
{
    sqlite3_stmt *insert = import->insert;
    struct row *row = annal__array_add(&batch->rows, &batch->count, sizeof *row);
    if (row == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "import: out of memory");
    row->number = number;
    sqlite3_bind_int64(insert, 1, (sqlite3_int64)batch->count);
    sqlite3_bind_int64(insert, 2, (sqlite3_int64)number);
    sqlite3_bind_text(insert, 3, hash, -1, SQLITE_STATIC);
    const annal_slice *all[] = {&content.json, &content.unreadable, &content.text};
    for (int i = 0; i < 3; i++)
        sqlite3_bind_text64(insert, 4 + i, all[i]->ptr, all[i]->len, SQLITE_STATIC, SQLITE_UTF8);
    int code = sqlite3_step(insert);
    sqlite3_reset(insert);
    sqlite3_clear_bindings(insert);
    if (code == SQLITE_DONE)
        return ANNAL_OK;
    annal_status status = annal__import_fail(import, err, "importer, a trigger on lines");
    return code == SQLITE_ERROR && content.json.ptr != NULL ? ANNAL_ERR_REFUSED : status;
}

static annal_status insert_unreadable(annal_import *import, struct batch *batch,
                                      const annal_import_line *line, const char *reason,
                                      annal_error *err)
{
    char hash[HASH_TEXT_BYTES];
    /* whether the numbers of the line and of its piece are hashed, too, so that lines or pieces
     * with the same bytes have different hashes */
    bool own = line->part > 0 || import->may_repeat;
    uint64_t seed = own ? line->number << 16 | line->part : import->refused;
    annal__import_hash(line->bytes, seed, hash);
    annal__buf_clear(&import->scratch);
    annal_status status = annal__import_hold(&import->scratch, line, reason);
    if (status < 0)
        return annal__fail(err, status, "line %" PRIu64 ": cannot store the line", line->number);
    return insert_row(import, batch, line->number, hash,
                      (struct content){.unreadable = annal__buf_slice(&import->scratch)}, err);
}

/*
 * Insert a line that is not JSON in pieces, as a long line is, because it can take six times its
 * bytes when it is escaped.
 */
static annal_status insert_pieces(annal_import *import, struct batch *batch,
                                  const annal_import_line *line, const char *reason,
                                  annal_error *err)
{
    annal_status status = ANNAL_OK;
    annal_import_line piece = {.number = line->number};
    annal_slice rest = line->bytes;
    while (rest.len > 0 && status >= 0) {
        size_t len = rest.len < ANNAL_IMPORT_PIECE_BYTES ? rest.len : ANNAL_IMPORT_PIECE_BYTES;
        piece.part++;
        piece.bytes = (annal_slice){rest.ptr, len};
        status = insert_unreadable(import, batch, &piece, reason, err);
        rest = (annal_slice){rest.ptr + len, rest.len - len};
    }
    return status;
}

static void count_imported(annal_import *import, uint64_t number)
{
    if (number != import->last_counted)
        import->counts.imported++;
    import->last_counted = number;
}

/* Remove the zero bytes before a JSON value from the line, and insert them as a row of their own
 * (rule 5). */
static annal_status take_zeros(annal_import *import, struct batch *batch, annal_import_line *line,
                               annal_error *err)
{
    size_t zeros = 0;
    while (zeros < line->bytes.len && line->bytes.ptr[zeros] == '\0')
        zeros++;
    annal_slice rest = {line->bytes.ptr + zeros, line->bytes.len - zeros};
    if (zeros == 0 ||
        annal__json_check(rest, ANNAL_DATA_DEPTH_MAX - WRAP_DEPTH, NULL) != JSON_VALID)
        return ANNAL_OK;
    const annal_import_line front = {
        .number = line->number, .part = 1, .bytes = {line->bytes.ptr, zeros}};
    line->bytes = rest;
    count_imported(import, line->number);
    return insert_unreadable(import, batch, &front, "zero bytes", err);
}

/*
 * Return whether bytes are JSON objects only, one after the other: records without line breaks
 * between them.
 */
static bool are_records(annal_slice bytes)
{
    size_t end = 0;
    json_fault fault = JSON_TRAILING;
    while (fault == JSON_TRAILING && bytes.len > 0 && bytes.ptr[0] == '{') {
        fault = annal__json_check(bytes, ANNAL_DATA_DEPTH_MAX - WRAP_DEPTH, &end);
        if (fault == JSON_TRAILING)
            bytes = (annal_slice){bytes.ptr + end, bytes.len - end};
    }
    return fault == JSON_VALID && bytes.ptr[0] == '{';
}

static annal_status insert_whole(annal_import *import, struct batch *batch, annal_import_line line,
                                 annal_error *err);

/* Insert several records in a line, each as a row. first: length of the first record. */
static annal_status insert_records(annal_import *import, struct batch *batch,
                                   annal_import_line line, size_t first, annal_error *err)
{
    annal_import_line record = {.number = line.number};
    annal_status status = ANNAL_OK;
    while (status >= 0 && line.bytes.len > 0) {
        record.bytes = annal__json_trim((annal_slice){line.bytes.ptr, first});
        line.bytes = (annal_slice){line.bytes.ptr + first, line.bytes.len - first};
        first = line.bytes.len;
        (void)annal__json_check(line.bytes, ANNAL_DATA_DEPTH_MAX - WRAP_DEPTH, &first);
        status = insert_whole(import, batch, record, err);
    }
    return status;
}

/*
 * Find where a line that is not one value is to be cut, or 0. Either it is cut after a complete
 * object, if the text after it does not show that the object is a part of a value: an object begins
 * there, or zero bytes, a stray brace or other text. Or it is cut before an object that reaches to
 * the end of the line. That object is a record by itself, and not a part of the text before it, if
 * the line was wrong before its end: a line that was cut off while it was written is wrong at its
 * end.
 */
static size_t find_cut(annal_slice bytes, json_fault fault, size_t fault_at)
{
    annal_slice rest = {bytes.ptr + fault_at, bytes.len - fault_at};
    if (fault == JSON_TRAILING && bytes.ptr[0] == '{' && fault_at > 2 && rest.len > 0 &&
        memchr(",:]", rest.ptr[0], 3) == NULL)
        return fault_at;
    if (fault == JSON_DEPTH || fault_at >= bytes.len)
        return 0;
    size_t at = 0, end = 0;
    for (size_t checked = 0; checked < CHECKED_TIMES * bytes.len && at + 1 < bytes.len;) {
        const char *found = memmem(bytes.ptr + at + 1, bytes.len - at - 1, "{\"", 2);
        if (found == NULL)
            break;
        at = (size_t)(found - bytes.ptr);
        rest = (annal_slice){found, bytes.len - at};
        if (annal__json_check(rest, ANNAL_DATA_DEPTH_MAX - WRAP_DEPTH, &end) == JSON_VALID)
            return at;
        checked += end + 1;
    }
    return 0;
}

static annal_status insert_torn(annal_import *import, struct batch *batch,
                                const annal_import_line *line, const char *reason, annal_error *err)
{
    const annal_import_line whole = {.number = line->number, .part = 1, .bytes = line->bytes};
    return line->bytes.len > ANNAL_IMPORT_PIECE_BYTES
               ? insert_pieces(import, batch, line, reason, err)
               : insert_unreadable(import, batch, &whole, reason, err);
}

/* Insert the two parts of a line that was cut: a record that may be incomplete, and the next record
 * on the same line. */
static annal_status insert_cut(annal_import *import, struct batch *batch, annal_import_line line,
                               size_t cut, const char *reason, annal_error *err)
{
    annal_import_line front = {.number = line.number, .bytes = {line.bytes.ptr, cut}};
    annal_import_line rest = {.number = line.number,
                              .bytes = {line.bytes.ptr + cut, line.bytes.len - cut}};
    front.bytes = annal__json_trim(front.bytes);
    bool whole = annal__json_check(front.bytes, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID;
    annal_status status = whole ? insert_whole(import, batch, front, err)
                                : insert_torn(import, batch, &front, reason, err);
    return status < 0 ? status : insert_whole(import, batch, rest, err);
}

void annal__import_batch_done(annal_import *import, struct batch *batch)
{
    if (batch->mended_count > 0)
        annal__import_json_begin(import->json);
    for (size_t i = 0; i < batch->mended_count; i++)
        annal__buf_done(&batch->mended[i]);
    annal__free(batch->mended);
    annal__free(batch->rows);
}

/* Replace each byte that is not UTF-8, and each zero byte, by U+FFFD. */
static annal_status mend_utf8(struct batch *batch, annal_slice bytes, annal_slice *out,
                              annal_error *err)
{
    const unsigned char *at = (const unsigned char *)bytes.ptr, *end = at + bytes.len, *from = at;
    struct buf *mended =
        annal__array_add(&batch->mended, &batch->mended_count, sizeof *batch->mended);
    annal_status status = mended == NULL ? ANNAL_ERR_NOMEM : ANNAL_OK;
    if (mended != NULL)
        *mended = (struct buf){0};
    while (at < end && status >= 0) {
        size_t len = *at < 0x80 ? *at != 0 : annal__json_utf8_length(at, end);
        at += len;
        if (len > 0)
            continue;
        annal__buf_append(mended, (const char *)from, (size_t)(at - from));
        status = annal__buf_append(mended, "\xef\xbf\xbd", 3);
        from = ++at;
    }
    if (status >= 0)
        status = annal__buf_append(mended, (const char *)from, (size_t)(end - from));
    if (status < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "import: out of memory");
    *out = annal__buf_slice(mended);
    return ANNAL_OK;
}

/* Insert a line of a text. A line with zero bytes or without UTF-8 is inserted as it is, too. */
static annal_status insert_text(annal_import *import, struct batch *batch, annal_import_line line,
                                annal_error *err)
{
    char hash[HASH_NUMBERED_BYTES];
    bool known = false;
    annal_slice text = line.bytes;
    bool whole = annal__json_is_utf8(text) && memchr(text.ptr, 0, text.len) == NULL;
    annal__import_hash(text, 0, hash);
    annal_status status = remember(import, hash, &known, err);
    if (status >= 0 && known)
        status = number_repeated(import, hash, err);
    count_imported(import, line.number);
    if (status >= 0 && !whole)
        status = insert_torn(import, batch, &line, "not text in UTF-8", err);
    if (status >= 0 && !whole)
        status = mend_utf8(batch, text, &text, err);
    return status < 0
               ? status
               : insert_row(import, batch, line.number, hash,
                            (struct content){.text = {text.len > 0 ? text.ptr : "", text.len}},
                            err);
}

/* Insert a line as it is, and the same line without the bytes that are not UTF-8. */
static annal_status insert_mended(annal_import *import, struct batch *batch, annal_import_line line,
                                  annal_slice mended, const char *reason, annal_error *err)
{
    annal_status status = insert_torn(import, batch, &line, reason, err);
    line.bytes = mended;
    return status < 0 ? status : insert_whole(import, batch, line, err);
}

/* Insert a whole line into the table, unless it is to be skipped. */
static annal_status insert_whole(annal_import *import, struct batch *batch, annal_import_line line,
                                 annal_error *err)
{
    char hash[HASH_NUMBERED_BYTES];
    bool known = false;
    if (is_blank(line.bytes)) {
        import->counts.blank++;
        return ANNAL_OK;
    }
    annal_status status = take_zeros(import, batch, &line, err);
    annal__import_hash(line.bytes, 0, hash);
    if (status >= 0)
        status = remember(import, hash, &known, err);
    if (status < 0)
        return status;
    bool again = is_repeated(import, line.bytes, hash);
    if (known && !import->may_repeat && again)
        status = number_repeated(import, hash, err);
    else if (known && !import->may_repeat) {
        import->counts.duplicate += line.number != import->last_counted;
        return ANNAL_OK;
    }
    if (status < 0)
        return status;
    count_imported(import, line.number);
    size_t first = 0;
    json_fault fault = annal__json_check(line.bytes, ANNAL_DATA_DEPTH_MAX - WRAP_DEPTH, &first);
    if (fault == JSON_TRAILING && are_records(line.bytes))
        return insert_records(import, batch, line, first, err);
    const char *reason = annal__json_fault_text(fault);
    size_t cut = fault == JSON_VALID ? 0 : find_cut(line.bytes, fault, first);
    if (cut > 0)
        return insert_cut(import, batch, line, cut, reason, err);
    if (fault == JSON_VALID) {
        annal__import_json_line(import->json, batch->count + 1, line.bytes);
        status =
            insert_row(import, batch, line.number, hash, (struct content){.json = line.bytes}, err);
        if (status != ANNAL_ERR_REFUSED)
            return status;
        /* insert the line below as one that cannot be read: import_run.c, rule (6) */
        reason = "the importer failed on it";
    }
    if (fault == JSON_UTF8 && line.bytes.len <= ANNAL_IMPORT_PIECE_BYTES) {
        annal_slice mended = {0};
        status = mend_utf8(batch, line.bytes, &mended, err);
        if (status >= 0 &&
            annal__json_check(mended, ANNAL_DATA_DEPTH_MAX - WRAP_DEPTH, NULL) == JSON_VALID)
            return insert_mended(import, batch, line, mended, reason, err);
        if (status < 0)
            return status;
    }
    import->refused = fault == JSON_VALID;
    if (line.bytes.len > ANNAL_IMPORT_PIECE_BYTES)
        return insert_pieces(import, batch, &line, reason, err);
    return insert_unreadable(import, batch, &line, reason, err);
}

annal_status annal__import_insert(annal_import *import, struct batch *batch,
                                  const annal_import_line *line, annal_error *err)
{
    char reason[64];
    if (line->part == 0 && import->text)
        return insert_text(import, batch, *line, err);
    if (line->part == 0)
        return insert_whole(import, batch, *line, err);
    count_imported(import, line->number);
    snprintf(reason, sizeof reason, "longer than %u bytes", ANNAL_IMPORT_LINE_BYTES_MAX);
    return insert_unreadable(import, batch, line, reason, err);
}
