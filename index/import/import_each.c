/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_each() for importers. The rows of an array or an object are computed from its tokens. For
 * all other texts SQLite's own json_each() is called (rule 2 of import_json.h), and its rows are
 * returned.
 */
#include "index/import/import_json.h"

#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"

#include <string.h>

enum { KEY, VALUE, TYPE, ATOM, ID, PARENT, FULLKEY, PATH, JSON, ROOT };

static const char schema[] = "CREATE TABLE x(key, value, type, atom, id, parent, fullkey, path, "
                             "json HIDDEN, root HIDDEN)";
/* SELECT of the rows of SQLite's own json_each(), without the columns json and root, for which
 * SQLite would measure the complete text in each row. */
static const char asking[] = "SELECT key, value, type, atom, id, parent, fullkey, path "
                             "FROM json_each(?1, ?2)";

struct each_table {
    sqlite3_vtab base;
    struct import_json *json;
};

struct each {
    sqlite3_vtab_cursor base;
    struct json_place place; /* array or object whose items are the rows */
    annal_slice json;        /* text of the argument json */
    struct json_tokens own;  /* tokens of the text that is read, if it is not a line of the batch */
    /* copies of the arguments: the text whose tokens are own, and the path; root is NULL if no path
     * was given */
    sqlite3_value *text, *root;
    /* SELECT from SQLite's json_each(), if SQLite must compute the rows; NULL: they are computed
     * from tokens */
    sqlite3_stmt *asked;
    bool is_object, at_end;
    uint32_t at; /* token of the current item, or of the name of the current member */
    sqlite3_int64 row;
};

static int connect_each(sqlite3 *db, void *arg, int count, const char *const *words,
                        sqlite3_vtab **out, char **out_message)
{
    (void)count;
    (void)words;
    (void)out_message;
    int code = sqlite3_declare_vtab(db, schema);
    if (code != SQLITE_OK)
        return code;
    struct each_table *table = annal__zalloc(sizeof *table);
    if (table == NULL)
        return SQLITE_NOMEM;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    table->json = arg;
    *out = &table->base;
    return SQLITE_OK;
}

static int disconnect_each(sqlite3_vtab *base)
{
    annal__free(base);
    return SQLITE_OK;
}

/* Plan a scan: the arguments of json_each() are conditions on its hidden columns. */
static int plan_each(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int found[2] = {-1, -1};
    (void)base;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->iColumn < JSON || constraint->op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!constraint->usable)
            return SQLITE_CONSTRAINT;
        found[constraint->iColumn - JSON] = i;
    }
    info->estimatedCost = found[0] < 0 ? 1e99 : 1.0;
    info->idxNum = 0;
    for (int i = 0; i < 2 && found[0] >= 0 && found[i] >= 0; i++) {
        info->aConstraintUsage[found[i]].argvIndex = ++info->idxNum;
        info->aConstraintUsage[found[i]].omit = 1;
    }
    return SQLITE_OK;
}

static int open_each(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    struct each *each = annal__zalloc(sizeof *each);
    if (each == NULL)
        return SQLITE_NOMEM;
    *out = &each->base;
    return SQLITE_OK;
}

static void forget(struct each *each)
{
    sqlite3_finalize(each->asked);
    annal__json_tokens_done(&each->own);
    sqlite3_value_free(each->text);
    sqlite3_value_free(each->root);
    *each = (struct each){.base = each->base, .at_end = true};
}

static int close_each(sqlite3_vtab_cursor *base)
{
    forget((struct each *)base);
    annal__free(base);
    return SQLITE_OK;
}

static struct import_json *json_of(const struct each *each)
{
    return ((const struct each_table *)each->base.pVtab)->json;
}

static annal_slice bytes_of(sqlite3_value *value)
{
    annal_slice bytes = {sqlite3_value_blob(value), 0};
    bytes.len = (size_t)sqlite3_value_bytes(value);
    return bytes;
}

/* Find the text of the argument, and list its tokens if necessary. JSON_ASK: we cannot read it as
 * JSON, so SQLite must. */
static enum json_found find_text(struct each *each, sqlite3_value *text)
{
    if (sqlite3_value_type(text) != SQLITE_TEXT)
        return JSON_ASK;
    if (annal__import_json_line_of(json_of(each), bytes_of(text), &each->place))
        return JSON_FOUND;
    each->text = sqlite3_value_dup(text);
    if (each->text == NULL ||
        annal__json_check(bytes_of(each->text), JSON_DEPTH_MAX, NULL) != JSON_VALID)
        return JSON_ASK;
    each->own = annal__json_tokens(bytes_of(each->text));
    each->place = (struct json_place){.text = &each->own};
    return JSON_FOUND;
}

/* Find the array or object whose items are the rows. */
static enum json_found find_items(struct each *each, sqlite3_value *text)
{
    const annal_slice whole = {"$", 1};
    uint32_t around;
    enum json_found found = find_text(each, text);
    if (found == JSON_FOUND)
        each->json = each->place.token == 0
                         ? each->place.text->json
                         : annal__json_token_raw(each->place.text, each->place.token);
    if (found == JSON_FOUND && each->root != NULL && sqlite3_value_type(each->root) != SQLITE_TEXT)
        found = JSON_ASK;
    if (found == JSON_FOUND)
        found = annal__json_tokens_find(each->place.text,
                                        each->root != NULL ? bytes_of(each->root) : whole, &around,
                                        &each->place.token);
    if (found != JSON_FOUND)
        return found;
    char first = *annal__json_token_raw(each->place.text, each->place.token).ptr;
    each->is_object = first == '{';
    return first == '[' || (first == '{' && !each->place.text->odd_names) ? JSON_FOUND : JSON_ASK;
}

static int next_asked(struct each *each)
{
    int code = sqlite3_step(each->asked);
    each->at_end = code != SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return SQLITE_OK;
    sqlite3_free(each->base.pVtab->zErrMsg);
    each->base.pVtab->zErrMsg =
        sqlite3_mprintf("%s", sqlite3_errmsg(sqlite3_db_handle(each->asked)));
    return code;
}

static int ask_sqlite(struct each *each, sqlite3_value *text)
{
    sqlite3 *sqlite = annal__import_json_sqlite(json_of(each));
    if (sqlite == NULL || (each->text == NULL && (each->text = sqlite3_value_dup(text)) == NULL))
        return SQLITE_NOMEM;
    int code = sqlite3_prepare_v2(sqlite, asking, -1, &each->asked, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_value(each->asked, 1, text);
    if (code == SQLITE_OK && each->root != NULL)
        code = sqlite3_bind_value(each->asked, 2, each->root);
    else if (code == SQLITE_OK)
        code = sqlite3_bind_text(each->asked, 2, "$", 1, SQLITE_STATIC);
    return code == SQLITE_OK ? next_asked(each) : code;
}

static uint32_t end_of(const struct each *each)
{
    return each->place.text->tokens[each->place.token].next;
}

static int filter_each(sqlite3_vtab_cursor *base, int number, const char *name, int count,
                       sqlite3_value **values)
{
    struct each *each = (struct each *)base;
    (void)name;
    forget(each);
    if (number == 0 || sqlite3_value_type(values[0]) == SQLITE_NULL)
        return SQLITE_OK;
    if (count > 1 && (each->root = sqlite3_value_dup(values[1])) == NULL)
        return SQLITE_NOMEM;
    enum json_found found = find_items(each, values[0]);
    if (found == JSON_ASK)
        return ask_sqlite(each, values[0]);
    if (found == JSON_MISSING)
        return SQLITE_OK;
    each->at = each->place.token + 1;
    each->at_end = each->at == end_of(each);
    return SQLITE_OK;
}

static int next_each(sqlite3_vtab_cursor *base)
{
    struct each *each = (struct each *)base;
    each->row++;
    if (each->asked != NULL)
        return next_asked(each);
    each->at = each->place.text->tokens[each->at + each->is_object].next;
    each->at_end = each->at == end_of(each);
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    return ((struct each *)base)->at_end;
}

/* Return the column fullkey. A name that is a word is not quoted. */
static void give_fullkey(sqlite3_context *context, const struct each *each)
{
    annal_slice raw = annal__json_token_raw(each->place.text, each->at);
    const char *root = each->root != NULL ? (const char *)sqlite3_value_text(each->root) : "$";
    if (!each->is_object) {
        sqlite3_result_text(context, sqlite3_mprintf("%s[%lld]", root, each->row), -1,
                            sqlite3_free);
        return;
    }
    bool word = raw.len > 2;
    for (size_t i = 1; word && i + 1 < raw.len; i++)
        word = ((raw.ptr[i] | 0x20) >= 'a' && (raw.ptr[i] | 0x20) <= 'z') ||
               (i > 1 && raw.ptr[i] >= '0' && raw.ptr[i] <= '9');
    if (word)
        raw = annal__json_inside(raw);
    sqlite3_result_text(context, sqlite3_mprintf("%s.%.*s", root, (int)raw.len, raw.ptr), -1,
                        sqlite3_free);
}

static void give_asked(sqlite3_context *context, const struct each *each, int column)
{
    const char *type = (const char *)sqlite3_column_text(each->asked, TYPE);
    sqlite3_result_value(context, sqlite3_column_value(each->asked, column));
    if (column == VALUE && type != NULL &&
        (strcmp(type, "array") == 0 || strcmp(type, "object") == 0))
        sqlite3_result_subtype(context, 'J');
}

static void give_argument(sqlite3_context *context, const struct each *each, int column)
{
    if (column == JSON && each->asked != NULL)
        sqlite3_result_value(context, each->text);
    else if (column == JSON)
        sqlite3_result_text64(context, each->json.ptr, each->json.len, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
    else if (each->root != NULL)
        sqlite3_result_value(context, each->root);
    else
        sqlite3_result_text(context, "$", 1, SQLITE_STATIC);
}

static int each_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct each *each = (const struct each *)base;
    if (column >= JSON) {
        give_argument(context, each, column);
        return SQLITE_OK;
    }
    if (each->asked != NULL) {
        give_asked(context, each, column);
        return SQLITE_OK;
    }
    struct json_place value = each->place, key = each->place;
    key.token = each->at;
    value.token = each->at + each->is_object;
    char first = *annal__json_token_raw(value.text, value.token).ptr;
    bool nested = first == '{' || first == '[';
    switch (column) {
    case KEY:
        if (each->is_object)
            annal__import_json_give(json_of(each), context, &key, false);
        else
            sqlite3_result_int64(context, each->row);
        break;
    case VALUE:
        annal__import_json_give(json_of(each), context, &value, nested);
        break;
    case TYPE:
        sqlite3_result_text(context, annal__import_json_type(&value), -1, SQLITE_STATIC);
        break;
    case ATOM:
        if (!nested)
            annal__import_json_give(json_of(each), context, &value, false);
        break;
    case ID:
        sqlite3_result_int64(context, value.token);
        break;
    case FULLKEY:
        give_fullkey(context, each);
        break;
    case PATH:
        give_argument(context, each, ROOT);
        break;
    }
    return SQLITE_OK;
}

static int each_row(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((struct each *)base)->row;
    return SQLITE_OK;
}

int annal__import_each_add(sqlite3 *db, struct import_json *json)
{
    static const sqlite3_module methods = {
        .xConnect = connect_each,
        .xBestIndex = plan_each,
        .xDisconnect = disconnect_each,
        .xOpen = open_each,
        .xClose = close_each,
        .xFilter = filter_each,
        .xNext = next_each,
        .xEof = is_at_end,
        .xColumn = each_column,
        .xRowid = each_row,
    };
    return sqlite3_create_module(db, "json_each", &methods, json);
}
