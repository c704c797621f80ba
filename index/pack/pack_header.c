/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing the first line of a pack (rule 1 of pack.c). */
#include "index/pack/pack.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <string.h>

/* The clauses that may follow FILE in the first line. */
struct clauses {
    annal_slice folder, sessions;
    annal_slice cluster; /* the text "GLOB, GLOB" */
};

/* Parse the text after the word scope: cluster GLOB[, GLOB]... */
static bool parse_scope(annal_slice *rest, annal_slice *out)
{
    if (!annal__slice_is(annal__pack_take_word(rest), "cluster"))
        return false;
    annal_slice glob, comma, after = *rest;
    out->ptr = rest->ptr;
    do {
        glob = annal__pack_take_word(&after);
        *rest = after;
        comma = annal__pack_take_word(&after);
    } while (annal__pack_is_glob(glob) && annal__slice_is(comma, ","));
    *out = (annal_slice){out->ptr, (size_t)(rest->ptr - out->ptr)};
    return annal__pack_is_glob(glob);
}

/* Parse the clauses (in, sessions, writable, scope) on a pack's first line. Returns false if other
 * text follows, or a clause is repeated. */
static bool parse_clauses(annal_pack *pack, annal_slice rest, struct clauses *out)
{
    for (annal_slice word = annal__pack_take_word(&rest); word.len > 0;
         word = annal__pack_take_word(&rest)) {
        if (annal__slice_is(word, "in") && out->folder.len == 0) {
            out->folder = annal__pack_take_word(&rest);
            if (!annal__pack_is_path(out->folder, 0))
                return false;
        } else if (annal__slice_is(word, "sessions") && out->sessions.len == 0) {
            out->sessions = annal__pack_take_word(&rest);
            if (!annal__pack_is_glob(out->sessions))
                return false;
        } else if (annal__slice_is(word, "writable") && !pack->writable) {
            pack->writable = true;
        } else if (annal__slice_is(word, "scope") && out->cluster.len == 0) {
            if (!parse_scope(&rest, &out->cluster))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

/* Check that a database ends in .db and does not belong to the store itself; only core may be in
 * sessions.db. */
static annal_status check_database(const annal_pack *pack, annal_slice name, annal_slice database,
                                   annal_slice folder, annal_error *err)
{
    const annal_slice place = folder.len > 0 ? folder : database;
    if (database.len < 4 || memcmp(database.ptr + database.len - 3, ".db", 3) != 0)
        return annal__fail(
            err, ANNAL_ERR_INVALID,
            "%s:1: '%.*s' is not a valid database: the name of the file must end in .db",
            pack->file, ANNAL_FMT(database));
    if (annal__pack_path_is_kept(place, (annal_slice){0}) &&
        !(annal__slice_is(name, "core") && annal__slice_is(place, "sessions.db")))
        return annal__fail(
            err, ANNAL_ERR_INVALID,
            "%s:1: the path '%.*s' belongs to the store itself: choose a different database",
            pack->file, ANNAL_FMT(place));
    return ANNAL_OK;
}

static char *copy_of(annal_slice word)
{
    return annal__strndup(word.ptr, word.len);
}

annal_status annal__pack_parse_header(annal_pack *pack, annal_slice line, annal_error *err)
{
    struct clauses clauses = {0};
    annal_slice rest = line;
    bool good = annal__slice_is(annal__pack_take_word(&rest), "--") &&
                annal__slice_is(annal__pack_take_word(&rest), "pack");
    annal_slice name = annal__pack_take_word(&rest);
    good = good && annal__pack_is_path(name, 0) && memchr(name.ptr, '/', name.len) == NULL;
    good = good && annal__slice_is(annal__pack_take_word(&rest), "version");
    good = good && annal__pack_parse_number(annal__pack_take_word(&rest), &pack->version) &&
           pack->version > 0;
    good = good && annal__slice_is(annal__pack_take_word(&rest), "database");
    annal_slice database = annal__pack_take_word(&rest);
    good = good && annal__pack_is_path(database, 1) && parse_clauses(pack, rest, &clauses);
    if (!good)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:1: a pack must begin with '-- pack NAME   version N   database FILE "
                           "  [in DIR]   [sessions GLOB]   [writable]   [scope cluster GLOB]'",
                           pack->file);
    if (memchr(database.ptr, '*', database.len) != NULL &&
        (clauses.sessions.len == 0 ||
         memchr(clauses.sessions.ptr, '*', clauses.sessions.len) == NULL))
        return annal__fail(
            err, ANNAL_ERR_INVALID,
            "%s:1: FILE '%.*s' contains a *, so the glob of 'sessions GLOB' must contain a * too",
            pack->file, ANNAL_FMT(database));
    annal_status status = check_database(pack, name, database, clauses.folder, err);
    if (status < 0)
        return status;
    pack->name = copy_of(name);
    pack->database = copy_of(database);
    pack->folder = clauses.folder.len == 0 ? NULL : copy_of(clauses.folder);
    pack->sessions = clauses.sessions.len == 0 ? NULL : copy_of(clauses.sessions);
    pack->cluster = clauses.cluster.len == 0 ? NULL : copy_of(clauses.cluster);
    if (pack->name == NULL || pack->database == NULL ||
        (clauses.folder.len > 0 && pack->folder == NULL) ||
        (clauses.sessions.len > 0 && pack->sessions == NULL) ||
        (clauses.cluster.len > 0 && pack->cluster == NULL))
        return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", pack->file);
    return ANNAL_OK;
}
