/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL of a pack: compiling its statements one by one, the names of its tables, and hashes that
 * show whether it changed. */
#include "index/pack/pack.h"

#include "index/db/db.h"
#include "index/db/token.h"
#include "index/pack/permit.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <string.h>

static unsigned count_lines(const char *from, const char *to)
{
    unsigned lines = 0;
    for (; from < to; from++)
        lines += *from == '\n';
    return lines;
}

/*
 * Return the line of the first token in sql that is not a space or comment; line is the number of
 * the line at which sql begins.
 */
static unsigned line_of(const char *sql, unsigned line)
{
    const char *at = sql;
    return line + count_lines(sql, annal__token_next(&at).text.ptr);
}

/*
 * Fail with the message of SQLite, or of permit if that refused the statement, and the line of the
 * error. line is the number of the line at which statement begins.
 */
static annal_status statement_fail(const annal_pack *pack, unsigned line, const char *statement,
                                   const struct permit *permit, sqlite3 *db, int rc,
                                   annal_error *err)
{
    int offset = sqlite3_error_offset(db);
    unsigned first = line_of(statement, line);
    unsigned at = offset < 0 ? first : line + count_lines(statement, statement + offset);
    if (permit->why[0] != '\0')
        return annal__fail(err, ANNAL_ERR_SQL, "%s:%u: %s", pack->file, first, permit->why);
    return annal__db_fail(err, db, rc, "%s:%u", pack->file, at < first ? first : at);
}

/* Refuse the literal 'now', and calls of date functions that read the clock, in a statement (rule 5
 * of pack.c): SQLite's authorizer checks names, and neither literals nor arguments. */
static annal_status find_now(const annal_pack *pack, unsigned line, const char *from,
                             const char *to, annal_error *err)
{
    for (const char *at = from; at < to;) {
        struct token token = annal__token_next(&at);
        annal_slice text = annal__token_name(&token);
        if (token.kind == TOKEN_END || at > to)
            break;
        if (token.kind == TOKEN_STRING && text.len == 3 &&
            sqlite3_strnicmp(text.ptr, "now", 3) == 0)
            return annal__fail(err, ANNAL_ERR_SQL,
                               "%s:%u: 'now' is not allowed, because packs must be deterministic: "
                               "use the time of the event (:ts)",
                               pack->file, line + count_lines(from, token.text.ptr));
        if (annal__permit_reads_clock(&token, at))
            return annal__fail(err, ANNAL_ERR_SQL,
                               "%s:%u: %.*s() without a time, with 'localtime' or with 'utc' is "
                               "not allowed, because packs must be deterministic: use the time of "
                               "the event (:ts)",
                               pack->file, line + count_lines(from, token.text.ptr),
                               ANNAL_FMT(text));
    }
    return ANNAL_OK;
}

/* Compile one statement within the rules of permit.c; line is the number of the line of *at. */
static annal_status compile(const annal_pack *pack, bool makes_tables, unsigned line,
                            const char **at, sqlite3 *db, sqlite3_stmt **out_stmt, annal_error *err)
{
    struct permit permit = {.pack = pack, .makes_tables = makes_tables};
    const char *statement = *at;
    sqlite3_stmt *stmt = NULL;
    /* no authorizer for a built-in pack: setting one makes SQLite compile all earlier statements
     * again */
    if (!pack->tried)
        sqlite3_set_authorizer(db, annal__permit, &permit);
    int rc = sqlite3_prepare_v3(db, statement, -1, SQLITE_PREPARE_PERSISTENT, &stmt, at);
    if (!pack->tried)
        sqlite3_set_authorizer(db, NULL, NULL);
    if (rc == SQLITE_OK && pack->tried) {
        *out_stmt = stmt;
        return ANNAL_OK;
    }
    if (rc == SQLITE_OK && stmt != NULL && !annal__permit_statement(&permit, stmt)) {
        sqlite3_finalize(stmt);
        rc = SQLITE_AUTH;
    }
    if (rc != SQLITE_OK)
        return statement_fail(pack, line, statement, &permit, db, rc, err);
    if (makes_tables && sqlite3_bind_parameter_count(stmt) > 0) {
        sqlite3_finalize(stmt);
        return annal__fail(
            err, ANNAL_ERR_SQL,
            "%s:%u: statements that create tables have no parameters, because no event is applied",
            pack->file, line_of(statement, line));
    }
    if (!makes_tables || permit.inserts) {
        annal_status status = find_now(pack, line, statement, *at, err);
        if (status < 0) {
            sqlite3_finalize(stmt);
            return status;
        }
    }
    *out_stmt = stmt;
    return ANNAL_OK;
}

/* Run the statements that create the tables one by one, so that a message can name the line. */
annal_status annal__pack_make_tables(const annal_pack *pack, sqlite3 *db, annal_error *err)
{
    const char *at = pack->tables;
    unsigned line = pack->tables_line;
    while (*at != '\0') {
        const char *statement = at;
        sqlite3_stmt *stmt = NULL;
        annal_status status = compile(pack, true, line, &at, db, &stmt, err);
        if (status < 0)
            return status;
        if (stmt == NULL)
            break;
        struct spending spending;
        annal__permit_steps(db, &spending);
        int rc = sqlite3_step(stmt);
        annal__permit_steps(db, NULL);
        if (rc == SQLITE_INTERRUPT)
            status = annal__fail(err, ANNAL_ERR_SQL, "%s:%u: %s", pack->file,
                                 line_of(statement, line), spending.why);
        else if (rc != SQLITE_DONE && rc != SQLITE_ROW)
            status = annal__db_fail(err, db, rc, "%s:%u", pack->file, line_of(statement, line));
        sqlite3_finalize(stmt);
        if (status < 0)
            return status;
        line += count_lines(statement, at);
    }
    return ANNAL_OK;
}

/* Create the tables in a savepoint, with clock and random functions failing (permit.c): a failure
 * leaves no table. */
annal_status annal__pack_try_tables(const annal_pack *pack, sqlite3 *db, annal_error *err)
{
    annal_status status = annal__permit_no_chance(db, err);
    if (status >= 0)
        status = annal__db_exec(db, "SAVEPOINT tables", err);
    if (status < 0)
        return status;
    status = annal__pack_make_tables(pack, db, err);
    if (status >= 0)
        return annal__db_exec(db, "RELEASE tables", err);
    (void)annal__db_exec(db, "ROLLBACK TO tables; RELEASE tables", NULL);
    return status;
}

annal_status annal__pack_next_statement(const annal_pack *pack, const struct pack_section *section,
                                        const char **at, sqlite3 *db, sqlite3_stmt **out_stmt,
                                        annal_error *err)
{
    unsigned line = section->line + count_lines(section->sql, *at);
    return compile(pack, false, line, at, db, out_stmt, err);
}

/* ---- Names ---- */

/* Read [TEMP] TABLE|VIEW [IF NOT EXISTS] name, from *at after CREATE on. Returns false for any
 * other object. */
static bool take_made(const char **at, annal_slice *out_name)
{
    struct token token = annal__token_next(at);
    if (annal__token_is(&token, "temp") || annal__token_is(&token, "temporary"))
        token = annal__token_next(at);
    if (!annal__token_is(&token, "table") && !annal__token_is(&token, "view"))
        return false;
    token = annal__token_next(at);
    if (annal__token_is(&token, "if")) {
        (void)annal__token_next(at); /* skip NOT */
        (void)annal__token_next(at); /* skip EXISTS */
        token = annal__token_next(at);
    }
    *out_name = annal__token_name(&token);
    return token.kind == TOKEN_WORD || token.kind == TOKEN_NAME || token.kind == TOKEN_STRING;
}

/*
 * Set pack->own to the tables and views that the text creates. Names that begin with _ are left
 * out: they are ours, and a pack cannot create them.
 */
static annal_status find_own(annal_pack *pack, annal_error *err)
{
    SCOPED_BUF own = {0};
    annal_status status = ANNAL_OK;
    const char *at = pack->tables;
    for (struct token token = annal__token_next(&at); status >= 0 && token.kind != TOKEN_END;
         token = annal__token_next(&at)) {
        annal_slice name;
        if (!annal__token_is(&token, "create") || !take_made(&at, &name) || name.len == 0 ||
            name.ptr[0] == '_')
            continue;
        annal__buf_append(&own, name.ptr, name.len);
        status = annal__buf_append(&own, "\0", 1);
    }
    if (status >= 0)
        pack->own = annal__zalloc(own.len + 1);
    if (pack->own != NULL && own.len > 0)
        memcpy(pack->own, own.ptr, own.len);
    return pack->own == NULL
               ? annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", pack->file)
               : ANNAL_OK;
}

/* Hash the tokens of SQL, so that comments and line breaks make no difference. */
static uint64_t hash_sql(const char *sql, uint64_t hash)
{
    for (struct token token = annal__token_next(&sql); token.kind != TOKEN_END;
         token = annal__token_next(&sql))
        hash = annal__hash(token.text.ptr, token.text.len, hash);
    return hash;
}

/* Hash a list of a section; NULL: it is empty. */
static uint64_t hash_list(const char *list, uint64_t hash)
{
    const char *begin = list == NULL ? "" : list, *end = begin;
    while (*end != '\0')
        end += strlen(end) + 1;
    return annal__hash(begin, (size_t)(end - begin), hash);
}

/*
 * Hash the parts of the text on which the content of the tables depends. Guards, fills and limits
 * are not hashed, because their change changes no row; the set of sessions that are fed to the pack
 * is.
 */
static void hash_parts(annal_pack *pack)
{
    pack->tables_hash = hash_sql(pack->tables, 0);
    if (pack->sessions != NULL)
        pack->handlers_hash = annal__hash(pack->sessions, strlen(pack->sessions), 0);
    for (size_t i = 0; i < pack->section_count; i++) {
        const struct pack_section *section = &pack->sections[i];
        if (section->kind != PACK_ON && section->kind != PACK_SETTLE)
            continue;
        pack->handlers_hash = hash_list(section->types, pack->handlers_hash);
        if (section->when != NULL)
            pack->handlers_hash = hash_list(section->when, pack->handlers_hash);
        pack->handlers_hash = hash_sql(section->sql, pack->handlers_hash);
    }
}

annal_status annal__pack_read_sql(annal_pack *pack, annal_error *err)
{
    annal_status status = find_own(pack, err);
    if (status >= 0)
        hash_parts(pack);
    return status;
}
