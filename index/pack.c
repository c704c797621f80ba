/*
 * A pack is one SQL file.
 *
 * (1) Its first line is `-- pack NAME   version N   database FILE`.
 * (2) What follows, up to the first section, makes the tables. It runs once, when the database is
 *     made.
 * (3) A line `-- on TYPE[, TYPE]…` begins a section: one or more statements, which run in this
 *     order for each event of these types, all or none. `guarded "…"` behind the types gives the
 *     sentence with which an append is refused when the section's first statement changes no row.
 * (4) Parameters: $name and $run::id are $.name and $.run.id of the event's data, by SQLite's ->>
 *     (absent: NULL; objects and arrays: their text). :session, :seq, :ts, :type, :id, :cause and
 *     :data come from the envelope; id and cause are NULL when the event has none. Nothing else may
 *     be bound.
 * (5) No clocks, no randomness: a rebuild must give the same rows. random() and its kin are
 *     refused; 'now' in a date function is the author's fault. annal_time(x) gives a time in our
 *     fixed width, or NULL; annal_count(x, ...) the first that is not NULL as an integer, or 0;
 *     annal_cost(microusd, usd) millionths of a dollar.
 * (6) Every row belongs to one session. Handlers write only rows of :session.
 */
#include "index/pack.h"

#include "index/database.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <ctype.h>
#include <string.h>

/* ---- Lines and words ---- */

struct text {
    const char *at;
    const char *end;
    unsigned line; /* of at */
};

static annal_slice take_line(struct text *text)
{
    const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
    const char *stop = newline == NULL ? text->end : newline;
    annal_slice line = {text->at, (size_t)(stop - text->at)};
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    text->at = newline == NULL ? text->end : newline + 1;
    text->line++;
    return line;
}

static annal_slice take_word(annal_slice *rest)
{
    while (rest->len > 0 && (*rest->ptr == ' ' || *rest->ptr == '\t' || *rest->ptr == ',')) {
        rest->ptr++;
        rest->len--;
    }
    annal_slice word = {rest->ptr, 0};
    while (rest->len > 0 && *rest->ptr != ' ' && *rest->ptr != '\t' && *rest->ptr != ',') {
        word.len++;
        rest->ptr++;
        rest->len--;
    }
    return word;
}

static bool is(annal_slice slice, const char *word)
{
    return slice.len == strlen(word) && memcmp(slice.ptr, word, slice.len) == 0;
}

static bool begins_section(annal_slice line)
{
    annal_slice rest = line;
    return is(take_word(&rest), "--") && is(take_word(&rest), "on") && take_word(&rest).len > 0;
}

/* ---- The header line, rule 1 ---- */

static bool is_file_name(annal_slice word)
{
    if (word.len == 0 || word.len > 100 || !isalnum((unsigned char)word.ptr[0]))
        return false;
    for (size_t i = 0; i < word.len; i++)
        if (!isalnum((unsigned char)word.ptr[i]) && strchr("._-", word.ptr[i]) == NULL)
            return false;
    return true;
}

static annal_status parse_header(annal_pack *pack, annal_slice line, annal_error *err)
{
    annal_slice rest = line;
    bool good = is(take_word(&rest), "--") && is(take_word(&rest), "pack");
    annal_slice name = take_word(&rest);
    good = good && is_file_name(name) && is(take_word(&rest), "version");
    annal_slice version = take_word(&rest);
    good = good && version.len > 0 && version.len < 9 && is(take_word(&rest), "database");
    annal_slice database = take_word(&rest);
    good = good && is_file_name(database) && take_word(&rest).len == 0;
    for (size_t i = 0; good && i < version.len; i++) {
        good = isdigit((unsigned char)version.ptr[i]) != 0;
        pack->version = pack->version * 10 + (uint32_t)(version.ptr[i] - '0');
    }
    if (!good)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:1: a pack begins with '-- pack NAME   version N   database FILE'",
                           pack->file);
    pack->name = annal__strndup(name.ptr, name.len);
    pack->database = annal__strndup(database.ptr, database.len);
    if (pack->name == NULL || pack->database == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
    return ANNAL_OK;
}

/* ---- Sections, rule 3 ---- */

static bool is_type(annal_slice word)
{
    if (word.len == 0 || word.len > ANNAL_TYPE_BYTES_MAX)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && strchr("_.-", c) == NULL)
            return false;
    }
    return true;
}

/* The sentence between the quotes of `guarded "…"`; false when the line is something else. */
static bool take_guard(annal_slice rest, char **out_guard)
{
    const char *open = memchr(rest.ptr, '"', rest.len);
    const char *end = rest.ptr + rest.len;
    const char *close = open == NULL ? NULL : memchr(open + 1, '"', (size_t)(end - open - 1));
    if (close == NULL || close == open + 1)
        return false;
    for (const char *c = close + 1; c < end; c++)
        if (*c != ' ' && *c != '\t')
            return false;
    *out_guard = annal__strndup(open + 1, (size_t)(close - open - 1));
    return *out_guard != NULL;
}

static annal_status parse_section(annal_pack *pack, struct pack_handler *handler, annal_slice line,
                                  unsigned number, annal_error *err)
{
    annal_slice rest = line;
    take_word(&rest); /* -- */
    take_word(&rest); /* on */
    handler->types = annal__zalloc(rest.len + 2);
    if (handler->types == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
    char *out = handler->types;
    for (annal_slice word = take_word(&rest); word.len > 0; word = take_word(&rest)) {
        if (is(word, "guarded")) {
            if (take_guard(rest, &handler->guard))
                break;
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "%s:%u: a guard is a sentence in quotes: guarded \"why not\"",
                               pack->file, number);
        }
        if (!is_type(word))
            return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: '%.*s' is no event type", pack->file,
                               number, ANNAL_FMT(word));
        memcpy(out, word.ptr, word.len);
        out += word.len + 1;
    }
    if (out == handler->types)
        return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: a section names its event types",
                           pack->file, number);
    return ANNAL_OK;
}

/* Text up to the next section, as a string of its own. */
static char *take_body(struct text *text)
{
    const char *begin = text->at;
    while (text->at < text->end) {
        struct text peek = *text;
        if (begins_section(take_line(&peek)))
            break;
        *text = peek;
    }
    return annal__strndup(begin, (size_t)(text->at - begin));
}

static annal_status parse_sections(annal_pack *pack, struct text *text, annal_error *err)
{
    while (text->at < text->end) {
        struct pack_handler *grown =
            annal__realloc_array(pack->handlers, pack->handler_count + 1, sizeof *grown);
        if (grown == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
        pack->handlers = grown;
        struct pack_handler *handler = &grown[pack->handler_count++];
        *handler = (struct pack_handler){.line = text->line + 1};
        unsigned number = text->line;
        annal_status status = parse_section(pack, handler, take_line(text), number, err);
        if (status < 0)
            return status;
        handler->sql = take_body(text);
        if (handler->sql == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
    }
    return ANNAL_OK;
}

/* ---- Statements ---- */

/* The line of the first thing in sql that is no space or comment. */
static unsigned line_of(const char *sql, unsigned line)
{
    for (;; sql++) {
        if (*sql == '\n')
            line++;
        else if (sql[0] == '-' && sql[1] == '-')
            sql += strcspn(sql, "\n") - 1;
        else if (!isspace((unsigned char)*sql))
            return line;
    }
}

static unsigned count_lines(const char *from, const char *to)
{
    unsigned lines = 0;
    for (; from < to; from++)
        lines += *from == '\n';
    return lines;
}

/* Run the tables' statements one by one, so that a message can tell the line. */
annal_status annal__pack_make_tables(const annal_pack *pack, sqlite3 *db, annal_error *err)
{
    const char *at = pack->tables;
    while (*at != '\0') {
        unsigned line = line_of(at, pack->tables_line + count_lines(pack->tables, at));
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, at, -1, &stmt, &at);
        if (rc == SQLITE_OK && stmt != NULL)
            rc = sqlite3_step(stmt);
        annal_status status = ANNAL_OK;
        if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW)
            status = annal__db_fail(err, db, rc, "%s:%u", pack->file, line);
        sqlite3_finalize(stmt);
        if (status < 0)
            return status;
        if (stmt == NULL)
            break;
    }
    return ANNAL_OK;
}

/* Rule 5, as far as names show it. Only while a handler is compiled. */
static int refuse_chance(void *arg, int action, const char *first, const char *function,
                         const char *database, const char *trigger)
{
    static const char *const moving[] = {"random",        "randomblob",    "current_timestamp",
                                         "current_time",  "current_date",  "last_insert_rowid",
                                         "total_changes", "load_extension"};
    (void)arg;
    (void)first;
    (void)database;
    (void)trigger;
    if (action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_INSERT ||
        action == SQLITE_UPDATE || action == SQLITE_DELETE || action == SQLITE_RECURSIVE)
        return SQLITE_OK;
    if (action != SQLITE_FUNCTION)
        return SQLITE_DENY;
    for (size_t i = 0; i < sizeof moving / sizeof *moving; i++)
        if (sqlite3_stricmp(function, moving[i]) == 0)
            return SQLITE_DENY;
    return SQLITE_OK;
}

annal_status annal__pack_next_statement(const annal_pack *pack, const struct pack_handler *handler,
                                        const char **at, sqlite3 *db, sqlite3_stmt **out_stmt,
                                        annal_error *err)
{
    unsigned line = line_of(*at, handler->line + count_lines(handler->sql, *at));
    sqlite3_set_authorizer(db, refuse_chance, NULL);
    int rc = sqlite3_prepare_v3(db, *at, -1, SQLITE_PREPARE_PERSISTENT, out_stmt, at);
    sqlite3_set_authorizer(db, NULL, NULL);
    if (rc == SQLITE_AUTH)
        return annal__fail(
            err, ANNAL_ERR_SQL,
            "%s:%u: a handler may read and write rows, without clocks and chance: %s", pack->file,
            line, sqlite3_errmsg(db));
    if (rc != SQLITE_OK)
        return annal__db_fail(err, db, rc, "%s:%u", pack->file, line);
    return ANNAL_OK;
}

/* ---- Parsing and freeing ---- */

annal_status annal__pack_read(const char *name, annal_slice text, annal_pack **out_pack,
                              annal_error *err)
{
    struct text rest = {text.ptr, text.ptr + text.len, 1};
    annal_status status = ANNAL_OK;
    annal_pack *pack = annal__zalloc(sizeof *pack);
    if (pack != NULL)
        pack->file = annal__strndup(name, strlen(name));
    if (pack == NULL || pack->file == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", name);
        goto done;
    }
    if (text.len == 0 || memchr(text.ptr, '\0', text.len) != NULL) {
        status = annal__fail(err, ANNAL_ERR_INVALID, "%s: a pack is a text file", name);
        goto done;
    }
    pack->hash = annal__hash(text.ptr, text.len, 0);
    status = parse_header(pack, take_line(&rest), err);
    if (status < 0)
        goto done;
    pack->tables_line = rest.line;
    pack->tables = take_body(&rest);
    if (pack->tables == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", name);
        goto done;
    }
    status = parse_sections(pack, &rest, err);
    if (status < 0)
        goto done;
    *out_pack = pack;
    pack = NULL;

done:
    annal_pack_free(pack);
    return status;
}

/* Without the trial: it is built in, and whoever uses it compiles it. */
annal_status annal_pack_core(annal_pack **out_pack, annal_error *err)
{
    return annal__pack_read("packs/core.sql", annal_slice_of(annal__sql_core), out_pack, err);
}

void annal_pack_free(annal_pack *pack)
{
    if (pack == NULL)
        return;
    for (size_t i = 0; i < pack->handler_count; i++) {
        annal__free(pack->handlers[i].types);
        annal__free(pack->handlers[i].guard);
        annal__free(pack->handlers[i].sql);
    }
    annal__free(pack->handlers);
    annal__free(pack->tables);
    annal__free(pack->name);
    annal__free(pack->database);
    annal__free(pack->file);
    annal__free(pack);
}

const char *annal_pack_name(const annal_pack *pack)
{
    return pack->name;
}

uint32_t annal_pack_version(const annal_pack *pack)
{
    return pack->version;
}

const char *annal_pack_database(const annal_pack *pack)
{
    return pack->database;
}
