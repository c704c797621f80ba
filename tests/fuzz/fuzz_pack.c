/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary text as a pack file: read, and its handlers compiled.
 *
 * (1) What is refused is refused with a sentence that names the file.
 * (2) What is read has a name, databases inside the store, and sections with types that events may
 *     have.
 * (3) Its tables' text and its sections' are what stands between the section lines: no byte is
 *     lost.
 * (4) A verb has what help prints of it, and is at most one of an event and a SELECT.
 * (5) Handlers that compile take no clock and write no file. (Its SQL is not run: it may be any.)
 */
#include "index/pack/pack.h"
#include "index/sys/pack.h"
#include "tests/fuzz/fuzz.h"

#include <annal/verb.h>

#include <string.h>

static void check_types(const struct pack_section *section)
{
    const char *type = section->types == NULL ? "" : section->types;
    MUST((*type == '\0') == (section->kind == PACK_FORGET || section->kind >= PACK_SETTLE));
    for (; *type != '\0'; type += strlen(type) + 1) {
        annal_draft draft = {.type = annal_slice_of(type), .data = ANNAL_SLICE("0")};
        if (type[draft.type.len - 1] == '*') /* any that begins so */
            draft.type.len--;
        MUST(draft.type.len == 0 || annal_draft_check(&draft, NULL) == ANNAL_OK);
        MUST(annal__pack_section_takes(section, draft.type));
    }
}

/* Every text that help prints exists, and every session name refers to fields. */
static void check_verbs(const annal_pack *pack)
{
    for (const annal_noun *noun = annal_pack_nouns(pack); noun->name != NULL; noun++) {
        MUST(noun->name[0] != '\0' && noun->summary[0] != '\0');
        for (const annal_verb *verb = noun->verbs; verb->name != NULL; verb++) {
            MUST(verb->name[0] != '\0' && verb->summary[0] != '\0' && verb->line > noun->line);
            MUST(verb->type == NULL || verb->sql == NULL);
            for (const annal_field *field = verb->fields; field->kind != ANNAL_FIELD_END; field++)
                MUST((field->kind == ANNAL_FIELD_CONST) == (field->help == NULL));
        }
    }
}

static void check_section(annal_pack *pack, const struct pack_section *section, sqlite3 *db)
{
    check_types(section);
    MUST(section->guard == NULL || (section->guard[0] != '\0' && section->kind == PACK_ON));
    MUST(section->reads == NULL || section->reads[0] != '\0');
    MUST((section->field != NULL) == (section->kind == PACK_ARTIFACT));
    const char *at = section->sql;
    while (*at != '\0') {
        sqlite3_stmt *stmt = NULL;
        annal_error err = {0};
        const char *before = at;
        annal_status status = annal__pack_next_statement(pack, section, &at, db, &stmt, &err);
        sqlite3_finalize(stmt);
        MUST(status >= 0 || strncmp(err.message, "f.sql:", 6) == 0);
        if (status < 0 || stmt == NULL)
            break;
        MUST(at > before);
    }
}

/* Where its databases stand never leads out of the store. */
static void check_header(const annal_pack *pack)
{
    static const char *const sessions[] = {"a", "prose_1", "prose_..", "prose_.x", "prose_", "x-y"};
    MUST(annal__pack_name(pack)[0] != '\0' && strchr(annal__pack_name(pack), '/') == NULL);
    MUST(pack->database[0] != '/' && pack->database[0] != '.');
    MUST(strstr(pack->database, "/.") == NULL && strstr(pack->database, "//") == NULL);
    MUST(pack->folder == NULL ||
         (pack->folder[0] != '/' && strstr(pack->folder, "/.") == NULL && pack->folder[0] != '.'));
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) {
        annal_slice star;
        if (!annal__pack_feeds(pack, annal_slice_of(sessions[i]), &star))
            continue;
        MUST(star.len <= strlen(sessions[i]));
        MUST(strchr(pack->database, '*') == NULL || (star.len > 0 && star.ptr[0] != '.'));
    }
}

static sqlite3 *open_database(void)
{
    static sqlite3 *db;
    if (db == NULL) {
        annal_pack *core = NULL;
        MUST(sqlite3_open(":memory:", &db) == SQLITE_OK);
        MUST(annal__pack_core(&core, NULL) == ANNAL_OK);
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
    check_header(pack);
    check_verbs(pack);
    size_t kept = strlen(pack->tables);
    for (size_t i = 0; i < pack->section_count; i++) {
        kept += strlen(pack->sections[i].sql);
        check_section(pack, &pack->sections[i], open_database());
    }
    size_t lines = 0; /* the first line and the section lines are what is not in any text */
    annal_slice rest = text;
    for (unsigned section = 0; section <= pack->section_count && rest.len > 0; section++) {
        const char *body = section == 0 ? pack->tables : pack->sections[section - 1].sql;
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
