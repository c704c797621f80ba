/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON for importers; import_json.h describes the functions. */
#include "index/import/import_json.h"

#include "index/db/connect.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"

#include <annal/event.h>

#include <string.h>

/* number of texts other than lines whose tokens are kept */
#define RECENT 8

#define JSON_SUBTYPE 'J'

struct import_json {
    struct line {
        uint64_t row;
        struct json_tokens text;
    } * lines; /* lines of the batch that are JSON, in the order of their rows */
    size_t line_count;
    size_t line; /* index in lines of the line that was used last, where the next search begins */
    struct json_tokens recent[RECENT];
    char *recent_bytes[RECENT];
    size_t next_recent;
    /* connection on which SQLite computes results (rule 2); NULL until it is needed */
    sqlite3 *sqlite;
};

/* ---- Texts ---- */

void annal__import_json_begin(struct import_json *json)
{
    for (size_t i = 0; i < json->line_count; i++)
        annal__json_tokens_done(&json->lines[i].text);
    json->line_count = json->line = 0;
}

void annal__import_json_line(struct import_json *json, uint64_t row, annal_slice line)
{
    struct line *added = annal__array_add(&json->lines, &json->line_count, sizeof *added);
    if (added == NULL)
        return;
    *added = (struct line){row, annal__json_tokens(line)};
    json->line = json->line_count - 1;
}

static bool is_text(const struct json_tokens *text, annal_slice bytes)
{
    return text->json.len == bytes.len &&
           (text->json.ptr == bytes.ptr || memcmp(text->json.ptr, bytes.ptr, bytes.len) == 0);
}

/* Find the value in a line at the address and with the length of these bytes. */
static bool find_part(const struct json_tokens *line, annal_slice bytes, uint32_t *out_token)
{
    uintptr_t begin = (uintptr_t)line->json.ptr, at = (uintptr_t)bytes.ptr;
    size_t low = 0, high = line->count;
    if (at < begin || at >= begin + line->json.len || !line->whole)
        return false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (line->tokens[middle].at < at - begin)
            low = middle + 1;
        else
            high = middle;
    }
    *out_token = (uint32_t)low;
    return low < line->count && line->tokens[low].at == at - begin &&
           line->tokens[low].len == bytes.len;
}

/* Find the line or value that these bytes are. The search begins at the line that was used last,
 * because statements use lines in their order, and several values of the same line. */
bool annal__import_json_line_of(struct import_json *json, annal_slice bytes,
                                struct json_place *out_place)
{
    *out_place = (struct json_place){.stays = true};
    for (size_t i = 0; i < json->line_count; i++) {
        size_t at = (json->line + i) % json->line_count;
        const struct json_tokens *line = &json->lines[at].text;
        if (is_text(line, bytes) || (i == 0 && find_part(line, bytes, &out_place->token))) {
            out_place->text = line;
            json->line = at;
            return true;
        }
    }
    return false;
}

static bool find_recent(struct import_json *json, annal_slice bytes, struct json_place *out_place)
{
    for (size_t i = 0; i < RECENT; i++)
        if (json->recent_bytes[i] != NULL && is_text(&json->recent[i], bytes)) {
            *out_place = (struct json_place){.text = &json->recent[i]};
            return true;
        }
    return false;
}

/* Return whether these bytes are the line that was used last: their addresses are compared. Most
 * calls are about the same line as the call before. */
static bool is_same_line(const struct import_json *json, annal_slice bytes,
                         struct json_place *out_place)
{
    if (json->line >= json->line_count)
        return false;
    const struct json_tokens *line = &json->lines[json->line].text;
    *out_place = (struct json_place){.text = line, .stays = true};
    return line->json.ptr == bytes.ptr && line->json.len == bytes.len;
}

/*
 * Find or list the tokens of a text. Returns false if it is not JSON, or memory ran out; SQLite is
 * then called, and reports the error.
 */
static bool find_text(struct import_json *json, sqlite3_value *value, struct json_place *out_place)
{
    annal_slice bytes = {NULL, 0};
    if (sqlite3_value_type(value) != SQLITE_TEXT)
        return false;
    bytes.ptr = sqlite3_value_blob(value);
    bytes.len = (size_t)sqlite3_value_bytes(value);
    if (is_same_line(json, bytes, out_place) || find_recent(json, bytes, out_place) ||
        annal__import_json_line_of(json, bytes, out_place))
        return true;
    if (annal__json_check(bytes, JSON_DEPTH_MAX, NULL) != JSON_VALID)
        return false;
    size_t at = json->next_recent++ % RECENT;
    annal__json_tokens_done(&json->recent[at]);
    annal__free(json->recent_bytes[at]);
    json->recent_bytes[at] = annal__strndup(bytes.ptr, bytes.len);
    if (json->recent_bytes[at] == NULL)
        return false;
    json->recent[at] = annal__json_tokens((annal_slice){json->recent_bytes[at], bytes.len});
    *out_place = (struct json_place){.text = &json->recent[at]};
    return true;
}

/* ---- Results of SQLite, rule 2 ---- */

sqlite3 *annal__import_json_sqlite(struct import_json *json)
{
    if (json->sqlite == NULL &&
        annal__connect_open(NULL, ":memory:", SQLITE_OPEN_READWRITE, &json->sqlite) != SQLITE_OK) {
        sqlite3_close(json->sqlite);
        json->sqlite = NULL;
    }
    return json->sqlite;
}

/* Set the result of a SELECT, with parameters ?1, ?2, …, that SQLite runs on the separate
 * connection. raw: value of ?1, if its ptr is not NULL. */
static void ask_sqlite(struct import_json *json, sqlite3_context *context, const char *sql,
                       int count, sqlite3_value **values, annal_slice raw)
{
    sqlite3_stmt *statement = NULL;
    sqlite3 *sqlite = annal__import_json_sqlite(json);
    if (sqlite == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    int code = sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL);
    for (int i = 0; code == SQLITE_OK && i < count; i++)
        code = sqlite3_bind_value(statement, i + 1, values[i]);
    if (code == SQLITE_OK && raw.ptr != NULL)
        code = sqlite3_bind_text64(statement, 1, raw.ptr, raw.len, SQLITE_STATIC, SQLITE_UTF8);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        sqlite3_result_value(context, sqlite3_column_value(statement, 0));
    } else {
        sqlite3_result_error(context, sqlite3_errmsg(sqlite), -1);
        sqlite3_result_error_code(context, code);
    }
    sqlite3_finalize(statement);
}

/* ---- Results ---- */

/* Set the result to the text in a buffer, whose memory is passed to SQLite. */
static void give_buffer(sqlite3_context *context, struct buf *out, annal_status status)
{
    if (status < 0) {
        sqlite3_result_error_nomem(context);
        annal__buf_done(out);
        return;
    }
    sqlite3_result_text64(context, out->ptr, out->len, annal__free, SQLITE_UTF8);
    *out = (struct buf){0};
}

static void give_slice(sqlite3_context *context, const struct json_place *place, annal_slice slice)
{
    sqlite3_result_text64(context, slice.len > 0 ? slice.ptr : "", slice.len,
                          place->stays ? SQLITE_STATIC : SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* Append JSON. spaced: whether there is white space between its tokens, which is then left out. */
static annal_status put_compact(struct buf *out, bool spaced, annal_slice json)
{
    const char *at = json.ptr, *end = at + json.len;
    annal_status status = spaced ? ANNAL_OK : annal__buf_append_slice(out, json);
    while (spaced && status >= 0 && at < end) {
        const char *begin = at;
        if (*at == '"')
            at = annal__json_string_end(at, end);
        else
            while (at < end && *at != '"' && !annal__json_is_space(*at))
                at++;
        status = annal__buf_append(out, begin, (size_t)(at - begin));
        while (at < end && annal__json_is_space(*at))
            at++;
    }
    return status;
}

static void give_json(sqlite3_context *context, const struct json_place *place, annal_slice raw)
{
    struct buf out = {.limit = ANNAL_APPEND_BYTES_MAX};
    if (place->text->spaced && (*raw.ptr == '{' || *raw.ptr == '['))
        give_buffer(context, &out, put_compact(&out, true, raw));
    else
        give_slice(context, place, raw);
}

/* Set the result of the SQL function to a string of the JSON. Returns false if SQLite must compute
 * it. */
static bool give_string(sqlite3_context *context, const struct json_place *place, annal_slice raw)
{
    struct buf out = {.limit = ANNAL_APPEND_BYTES_MAX};
    bool half = false;
    if (!annal__json_is_escaped(raw)) {
        give_slice(context, place, annal__json_inside(raw));
        return true;
    }
    annal_status status = annal__buf_reserve(&out, raw.len);
    if (status >= 0)
        status = annal__json_decode(raw, &out, &half);
    if (status >= 0 && (half || memchr(out.ptr, '\0', out.len) != NULL)) {
        annal__buf_done(&out);
        return false;
    }
    give_buffer(context, &out, status);
    return true;
}

static bool is_integer(annal_slice raw)
{
    for (size_t i = raw.ptr[0] == '-'; i < raw.len; i++)
        if (raw.ptr[i] < '0' || raw.ptr[i] > '9')
            return false;
    return true;
}

/* Set the result of the SQL function to a value of the JSON. Returns false if SQLite must compute
 * it. */
static bool give_value(sqlite3_context *context, const struct json_place *place, annal_slice raw)
{
    sqlite3_int64 integer = 0;
    switch (*raw.ptr) {
    case '"':
        return give_string(context, place, raw);
    case '{':
    case '[':
        give_json(context, place, raw);
        return true;
    case 't':
    case 'f':
        sqlite3_result_int(context, *raw.ptr == 't');
        return true;
    case 'n':
        return true;
    }
    if (!is_integer(raw) || raw.len > 18)
        return false;
    for (size_t i = raw.ptr[0] == '-'; i < raw.len; i++)
        integer = integer * 10 + (raw.ptr[i] - '0');
    sqlite3_result_int64(context, raw.ptr[0] == '-' ? -integer : integer);
    return true;
}

void annal__import_json_give(struct import_json *json, sqlite3_context *context,
                             const struct json_place *place, bool as_json)
{
    annal_slice raw = annal__json_token_raw(place->text, place->token);
    if (as_json) {
        give_json(context, place, raw);
        sqlite3_result_subtype(context, JSON_SUBTYPE);
    } else if (!give_value(context, place, raw)) {
        ask_sqlite(json, context, "SELECT ?1 ->> '$'", 0, NULL, raw);
    }
}

const char *annal__import_json_type(const struct json_place *place)
{
    annal_slice raw = annal__json_token_raw(place->text, place->token);
    switch (*raw.ptr) {
    case '"':
        return "text";
    case '{':
        return "object";
    case '[':
        return "array";
    case 't':
        return "true";
    case 'f':
        return "false";
    case 'n':
        return "null";
    }
    return is_integer(raw) ? "integer" : "real";
}

/* ---- The functions ---- */

static annal_slice path_of(sqlite3_value *value)
{
    annal_slice path = {NULL, 0};
    if (sqlite3_value_type(value) == SQLITE_TEXT) {
        path.ptr = sqlite3_value_blob(value);
        path.len = (size_t)sqlite3_value_bytes(value);
    }
    return path;
}

/* Find the value at the path in the arguments (json, path). */
static enum json_found find(struct import_json *json, int count, sqlite3_value **values,
                            struct json_place *out_place)
{
    uint32_t around;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return JSON_MISSING;
    if (!find_text(json, values[0], out_place))
        return JSON_ASK;
    annal_slice path = count > 1 ? path_of(values[1]) : (annal_slice){"$", 1};
    return annal__json_tokens_find(out_place->text, path, &around, &out_place->token);
}

static void sql_json(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct import_json *json = sqlite3_user_data(context);
    struct json_place place;
    enum json_found found = find(json, count, values, &place);
    if (found == JSON_FOUND)
        annal__import_json_give(json, context, &place, true);
    if (found != JSON_ASK)
        return;
    ask_sqlite(json, context, "SELECT ?1 -> ?2", count, values, (annal_slice){NULL, 0});
    sqlite3_result_subtype(context, JSON_SUBTYPE);
}

static void sql_value(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct import_json *json = sqlite3_user_data(context);
    struct json_place place;
    enum json_found found = find(json, count, values, &place);
    if (found == JSON_FOUND)
        annal__import_json_give(json, context, &place, false);
    else if (found == JSON_ASK)
        ask_sqlite(json, context, "SELECT ?1 ->> ?2", count, values, (annal_slice){NULL, 0});
}

static void sql_type(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct import_json *json = sqlite3_user_data(context);
    struct json_place place;
    enum json_found found = find(json, count, values, &place);
    if (found == JSON_FOUND)
        sqlite3_result_text(context, annal__import_json_type(&place), -1, SQLITE_STATIC);
    else if (found == JSON_ASK)
        ask_sqlite(json, context, count > 1 ? "SELECT json_type(?1, ?2)" : "SELECT json_type(?1)",
                   count, values, (annal_slice){NULL, 0});
}

static void sql_line(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct import_json *json = sqlite3_user_data(context);
    uint64_t row = (uint64_t)sqlite3_value_int64(values[0]);
    size_t low = 0, high = json->line_count;
    (void)count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (json->lines[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == json->line_count || json->lines[low].row != row)
        return;
    json->line = low;
    annal_slice line = json->lines[low].text.json;
    sqlite3_result_text64(context, line.ptr, line.len, SQLITE_STATIC, SQLITE_UTF8);
}

/* ---- json_remove() ---- */

#define HOLES_MAX 16

/* A member that is removed: the tokens of its name and of the object that contains it. */
struct hole {
    uint32_t name, around;
    bool first; /* whether all members before it in the object are removed, too */
};

/* Add a hole for the member at path, in the order of tokens. Returns false if SQLite must compute
 * the result. */
static bool add_hole(const struct json_place *place, annal_slice path, struct hole *holes,
                     size_t *count)
{
    uint32_t around, token = place->token;
    enum json_found found = annal__json_tokens_find(place->text, path, &around, &token);
    if (found == JSON_MISSING)
        return true;
    if (found == JSON_ASK || token == place->token || *count == HOLES_MAX ||
        *annal__json_token_raw(place->text, around).ptr != '{')
        return false;
    size_t i = (*count)++;
    for (; i > 0 && holes[i - 1].name > token - 1; i--)
        holes[i] = holes[i - 1];
    holes[i] = (struct hole){.name = token - 1, .around = around};
    return true;
}

/*
 * Append an object without its holes. The comma before a hole is removed with it, or the comma
 * after it if all members before it are removed.
 */
static annal_status put_rest(struct buf *out, const struct json_place *place, struct hole *holes,
                             size_t count)
{
    const struct json_token *tokens = place->text->tokens;
    const char *json = place->text->json.ptr, *at = json + tokens[place->token].at;
    const char *end = at + tokens[place->token].len;
    const struct hole *before = NULL;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < count; i++) {
        struct hole *hole = &holes[i];
        const struct json_token *value = &tokens[hole->name + 1];
        uint32_t gone = before != NULL ? tokens[before->name + 1].next : 0;
        if (hole->name < gone)
            continue; /* the member is within another member that is removed */
        hole->first =
            hole->name == hole->around + 1 || (before != NULL && before->around == hole->around &&
                                               before->first && hole->name == gone);
        const char *from = json + tokens[hole->name].at, *to = json + value->at + value->len;
        if (!hole->first)
            while (*from != ',')
                from--;
        else if (value->next < tokens[hole->around].next)
            to = (const char *)memchr(to, ',', (size_t)(end - to)) + 1;
        status = put_compact(out, place->text->spaced, (annal_slice){at, (size_t)(from - at)});
        at = to;
        before = hole;
    }
    return put_compact(out, place->text->spaced, (annal_slice){at, (size_t)(end - at)});
}

/* Compose the SELECT of json_remove() for this number of arguments. */
static annal_status make_remove(struct buf *sql, int count)
{
    annal_status status = annal__buf_printf(sql, "SELECT json_remove(?1");
    for (int i = 1; status >= 0 && i < count; i++)
        status = annal__buf_printf(sql, ", ?%d", i + 1);
    return annal__buf_printf(sql, ")");
}

static void sql_remove(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct import_json *json = sqlite3_user_data(context);
    struct buf out = {.limit = ANNAL_APPEND_BYTES_MAX};
    struct hole holes[HOLES_MAX];
    struct json_place place;
    size_t hole_count = 0;
    if (count == 0 || sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    bool ours = find_text(json, values[0], &place) && place.text->whole;
    for (int i = 1; ours && i < count; i++)
        ours = add_hole(&place, path_of(values[i]), holes, &hole_count);
    annal_status status =
        ours ? put_rest(&out, &place, holes, hole_count) : make_remove(&out, count);
    if (ours || status < 0 || annal__buf_cstr(&out) == NULL) {
        give_buffer(context, &out, status);
    } else {
        ask_sqlite(json, context, out.ptr, count, values, (annal_slice){NULL, 0});
        annal__buf_done(&out);
    }
    sqlite3_result_subtype(context, JSON_SUBTYPE);
}

/* ---- New and free ---- */

struct import_json *annal__import_json_new(sqlite3 *db)
{
    static const struct {
        const char *name;
        int args;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"->", 2, sql_json},        {"->>", 2, sql_value},           {"json_type", 1, sql_type},
        {"json_type", 2, sql_type}, {"json_remove", -1, sql_remove}, {"line_json", 1, sql_line}};
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS | SQLITE_RESULT_SUBTYPE;
    struct import_json *json = annal__zalloc(sizeof *json);
    if (json == NULL)
        return NULL;
    int code = SQLITE_OK;
    for (size_t i = 0; code == SQLITE_OK && i < sizeof functions / sizeof *functions; i++)
        code = sqlite3_create_function(db, functions[i].name, functions[i].args, flags, json,
                                       functions[i].call, NULL, NULL);
    if (code == SQLITE_OK)
        return json;
    annal__import_json_free(json);
    return NULL;
}

void annal__import_json_free(struct import_json *json)
{
    if (json == NULL)
        return;
    annal__import_json_begin(json);
    annal__free(json->lines);
    for (size_t i = 0; i < RECENT; i++) {
        annal__json_tokens_done(&json->recent[i]);
        annal__free(json->recent_bytes[i]);
    }
    sqlite3_close(json->sqlite);
    annal__free(json);
}
