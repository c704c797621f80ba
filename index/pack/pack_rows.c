/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the deletions of `-- forget` as conditions of a SELECT: annal__pack_rows_each(). */
#include "index/sys/pack_rows.h"

#include "index/db/token.h"
#include "index/index.h"
#include "index/pack/packs.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

enum { FORGOTTEN_MAX = 200 };

struct reading {
    struct annal__pack_rows rows;
    struct annal__forgotten forgotten[FORGOTTEN_MAX];
};

static bool ends(const struct token *token)
{
    return token->kind == TOKEN_END || (token->kind == TOKEN_OTHER && *token->text.ptr == ';');
}

/* Read the condition after WHERE, up to a semicolon or the end, with :session replaced by the
 * column "of session". */
static annal_status read_condition(const char **at, char **out, annal_error *err)
{
    SCOPED_BUF text = {0};
    const char *from = *at;
    struct token before = {0}, token = annal__token_next(at);
    annal_status status = annal__buf_append(&text, "(", 1);
    for (; status >= 0 && !ends(&token); token = annal__token_next(at)) {
        if (annal__token_is(&token, "session") && before.kind == TOKEN_OTHER &&
            *before.text.ptr == ':' && before.text.ptr + 1 == token.text.ptr) {
            status =
                annal__buf_printf(&text, "%.*s\"of session\"", (int)(before.text.ptr - from), from);
            from = *at;
        }
        before = token;
    }
    /* a newline before the parenthesis, because the condition may end with a comment */
    status = annal__buf_printf(&text, "%.*s\n)", (int)(token.text.ptr - from), from);
    if (status >= 0)
        *out = annal__strndup(text.ptr, text.len);
    return *out != NULL ? ANNAL_OK
                        : annal__fail(err, ANNAL_ERR_NOMEM, "read rows of a pack: out of memory");
}

/*
 * Read a statement of `-- forget`: DELETE FROM table [WHERE condition]. An INSERT is skipped,
 * because its rows exist only while the section runs.
 */
static annal_status read_statement(struct reading *reading, struct token first, const char **at,
                                   annal_error *err)
{
    struct annal__forgotten *forgotten = &reading->forgotten[reading->rows.count];
    struct token from = annal__token_next(at), table = from, next;
    if (annal__token_is(&first, "INSERT")) {
        while (!ends(&table))
            table = annal__token_next(at);
        return ANNAL_OK;
    }
    table = annal__token_next(at);
    next = annal__token_next(at);
    if (!annal__token_is(&first, "DELETE") || !annal__token_is(&from, "FROM") ||
        !(ends(&next) || annal__token_is(&next, "WHERE")) || reading->rows.count == FORGOTTEN_MAX) {
        reading->rows.why = "its '-- forget' has a statement that is not DELETE FROM table WHERE";
        return ANNAL_OK;
    }
    annal_slice name = annal__token_name(&table);
    forgotten->table = annal__strndup(name.ptr, name.len);
    if (forgotten->table == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read rows of a pack: out of memory");
    reading->rows.count++;
    return ends(&next) ? ANNAL_OK : read_condition(at, &forgotten->condition, err);
}

static annal_status read_pack(struct reading *reading, const annal_pack *pack, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < pack->section_count; i++) {
        const char *at = pack->sections[i].sql;
        struct token token;
        if (pack->sections[i].kind != PACK_FORGET)
            continue;
        while (status >= 0 && reading->rows.why == NULL &&
               (token = annal__token_next(&at)).kind != TOKEN_END)
            if (!ends(&token))
                status = read_statement(reading, token, &at, err);
    }
    return status;
}

static annal_status give(annal_index *index, struct pack_set *set, const struct pack_slot *slot,
                         annal__pack_rows_fn fn, void *arg, annal_error *err)
{
    struct reading reading = {.rows = {.pack = slot->name}};
    struct pack_database *database = NULL;
    annal_status status = ANNAL_OK;
    reading.rows.forgotten = reading.forgotten;
    if (annal__packs_slot_has_star(slot) || slot->pack->writable)
        reading.rows.why = "the pack has a database for each session";
    else if (!annal__pack_forgets(slot->pack))
        reading.rows.why = "the pack has no section '-- forget'";
    else
        status = read_pack(&reading, slot->pack, err);
    while (reading.rows.why == NULL &&
           (database = annal__packs_next(index, set, database)) != NULL &&
           annal__pack_fill(database, slot) == NULL)
        ;
    if (database != NULL)
        reading.rows.database = database->stem;
    if (status >= 0 && (database != NULL || reading.rows.why != NULL))
        status = (annal_status)fn(arg, &reading.rows);
    for (size_t i = 0; i < reading.rows.count; i++) {
        annal__free(reading.forgotten[i].table);
        annal__free(reading.forgotten[i].condition);
    }
    return status;
}

annal_status annal__pack_rows_each(annal_index *index, annal__pack_rows_fn fn, void *arg,
                                   annal_error *err)
{
    struct pack_set *set = NULL;
    annal_status status = annal__packs_get(index, &set, err);
    for (size_t i = 0; status == ANNAL_OK && i < set->slot_count; i++)
        if (set->slots[i].pack != NULL)
            status = give(index, set, &set->slots[i], fn, arg, err);
    annal__packs_put(index, set);
    return status;
}
