/*
 * Arbitrary text as a pack file: read, and its handlers compiled.
 *
 * (1) What is refused is refused with a sentence that names the file.
 * (2) What is read has a name, a database, and handlers with types that events may have.
 * (3) Its tables' text and its handlers' are what stands between the section lines: no byte is
 *     lost.
 * (4) Handlers that compile take no clock and write no file. (Its SQL is not run: it may be any.)
 */
#include "index/pack.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_handler(annal_pack *pack, const struct pack_handler *handler, sqlite3 *db)
{
    MUST(handler->types[0] != '\0');
    for (const char *type = handler->types; *type != '\0'; type += strlen(type) + 1) {
        annal_draft draft = {.type = annal_slice_of(type), .data = ANNAL_SLICE("0")};
        MUST(annal_draft_check(&draft, NULL) == ANNAL_OK);
    }
    MUST(handler->guard == NULL || handler->guard[0] != '\0');
    const char *at = handler->sql;
    while (*at != '\0') {
        sqlite3_stmt *stmt = NULL;
        annal_error err = {0};
        const char *before = at;
        annal_status status = annal__pack_next_statement(pack, handler, &at, db, &stmt, &err);
        sqlite3_finalize(stmt);
        MUST(status >= 0 || strncmp(err.message, "f.sql:", 6) == 0);
        if (status < 0 || stmt == NULL)
            break;
        MUST(at > before);
    }
}

static sqlite3 *open_database(void)
{
    static sqlite3 *db;
    if (db == NULL) {
        annal_pack *core = NULL;
        MUST(sqlite3_open(":memory:", &db) == SQLITE_OK);
        MUST(annal_pack_core(&core, NULL) == ANNAL_OK);
        MUST(annal__pack_make_tables(core, db, NULL) == ANNAL_OK);
        annal_pack_free(core);
        sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
    }
    return db;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice text = {(const char *)bytes, len};
    annal_pack *pack = NULL;
    annal_error err = {0};
    annal_status status = annal__pack_read("f.sql", text, &pack, &err);
    if (status < 0) {
        MUST(pack == NULL && strncmp(err.message, "f.sql:", 6) == 0);
        return 0;
    }
    MUST(annal_pack_name(pack)[0] != '\0' && annal_pack_database(pack)[0] != '\0');
    MUST(strchr(annal_pack_database(pack), '/') == NULL);
    size_t kept = strlen(pack->tables);
    for (size_t i = 0; i < pack->handler_count; i++) {
        kept += strlen(pack->handlers[i].sql);
        check_handler(pack, &pack->handlers[i], open_database());
    }
    size_t lines = 0; /* the first line and the section lines are what is not in any text */
    annal_slice rest = text;
    for (unsigned section = 0; section <= pack->handler_count && rest.len > 0; section++) {
        const char *body = section == 0 ? pack->tables : pack->handlers[section - 1].sql;
        const char *newline = memchr(rest.ptr, '\n', rest.len);
        size_t line = newline == NULL ? rest.len : (size_t)(newline - rest.ptr) + 1;
        lines += line;
        rest.ptr += line;
        rest.len -= line;
        MUST(rest.len >= strlen(body) && memcmp(rest.ptr, body, strlen(body)) == 0);
        rest.ptr += strlen(body);
        rest.len -= strlen(body);
    }
    MUST(lines + kept == len);
    annal_pack_free(pack);
    return 0;
}
