/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading fields of data without parsing all of the data.
 *
 * (1) SQLite defines what a field is: `data ->> '$.a.b'`. But it copies the data for every field,
 *     and parses all of it into a tree, which costs more than everything else in indexing.
 * (2) So we walk over the object once, and stop when all fields were found. We read only values
 *     that every version of SQLite returns in the same way: strings without escapes, integers of up
 *     to 18 digits, true, false, null, and missing fields. If two members have the same name, the
 *     first is used.
 * (3) Another value (a string with escapes, a number with a point, an array or an object) is read
 *     by SQLite, alone: `value ->> '$'`. If a key contains an escape, SQLite reads all fields.
 * (4) The walk does not check the JSON: data was checked when it was appended.
 * (5) The sections for an event share the list of its members, so that its data is walked over
 *     once. Only the members after the first PACK_MEMBERS_MAX are read by each section again.
 */
#include "index/pack/pack_fields.h"

#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <string.h>

/* maximum number of fields that the walk reads; for a section with more, SQLite reads all fields */
#define FIELDS_MAX 64
/* maximum number of parts of a name for the walk; if a name has more, SQLite reads all fields */
#define DEPTH_MAX 8
#define LENGTHS   32

struct value {
    int type; /* SQLITE_NULL, SQLITE_INTEGER or SQLITE_TEXT */
    sqlite3_int64 integer;
    annal_slice text;
    sqlite3_value *asked; /* value that SQLite read (rule 3); NULL: the value is as above */
};

/* One part of a field's name, such as run in run::id. */
struct part {
    annal_slice key;
    bool last;
};

struct pack_fields {
    sqlite3_stmt *extractor; /* statement that takes data and returns all fields */
    sqlite3_stmt *reader;    /* statement that takes one value; NULL until it is needed */
    struct buf names;
    size_t count;
    /* whether the walk can read the fields: not more than FIELDS_MAX, no name with more than
     * DEPTH_MAX parts */
    bool walk;
    bool asked;     /* whether the current values are columns of the extractor, and not in values */
    bool has_asked; /* whether one of the values has a member asked */
    struct part parts[FIELDS_MAX][DEPTH_MAX];
    /* a bit for each field whose first part has this length, modulo LENGTHS */
    uint64_t of_length[LENGTHS];
    struct value values[FIELDS_MAX];
};

/* ---- Creating ---- */

/*
 * Prepare SELECT ?1 ->> '$.a', ?1 ->> '$.b.c', …: the names are identifiers, so nothing needs
 * quoting.
 */
static annal_status make_extractor(struct pack_fields *fields, sqlite3 *db, annal_error *err)
{
    SCOPED_BUF sql = {0};
    annal_status status = annal__buf_printf(&sql, "SELECT");
    const char *end = fields->names.ptr + fields->names.len;
    for (const char *name = fields->names.ptr; status >= 0 && name < end;
         name += strlen(name) + 1) {
        status = annal__buf_printf(&sql, "%s ?1 ->> '$.", name == fields->names.ptr ? "" : ",");
        for (const char *c = name; status >= 0 && *c != '\0'; c++)
            if (c[0] == ':' && c[1] == ':') {
                status = annal__buf_append(&sql, ".", 1);
                c++;
            } else {
                status = annal__buf_append(&sql, c, 1);
            }
        status = annal__buf_append(&sql, "'", 1);
    }
    const char *text = status < 0 ? NULL : annal__buf_cstr(&sql);
    if (text == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "compile a section of a pack: out of memory");
    else
        status = annal__db_prepare(db, text, &fields->extractor, err);
    return status;
}

static void split_name(struct pack_fields *fields, const char *name)
{
    size_t depth = 0;
    if (fields->count == FIELDS_MAX) {
        fields->walk = false;
        return;
    }
    struct part *parts = fields->parts[fields->count++];
    for (const char *at = name; at != NULL; depth++) {
        const char *colons = strstr(at, "::");
        if (depth == DEPTH_MAX) {
            fields->walk = false;
            return;
        }
        parts[depth].key = annal_slice_of(at);
        parts[depth].last = colons == NULL;
        if (colons != NULL)
            parts[depth].key.len = (size_t)(colons - at);
        if (depth == 0)
            fields->of_length[parts->key.len % LENGTHS] |= UINT64_C(1) << (fields->count - 1);
        at = colons == NULL ? NULL : colons + 2;
    }
}

annal_status annal__pack_fields_new(sqlite3 *db, annal_slice names, struct pack_fields **out_fields,
                                    annal_error *err)
{
    *out_fields = NULL;
    if (names.len == 0)
        return ANNAL_OK;
    struct pack_fields *fields = annal__zalloc(sizeof *fields);
    annal_status status = ANNAL_ERR_NOMEM;
    if (fields != NULL)
        status = annal__buf_append_slice(&fields->names, names);
    if (status < 0) {
        status = annal__fail(err, status, "cannot compile a section of a pack");
        goto done;
    }
    fields->walk = true;
    for (const char *name = fields->names.ptr;
         fields->walk && name < fields->names.ptr + fields->names.len; name += strlen(name) + 1)
        split_name(fields, name);
    status = make_extractor(fields, db, err);
    if (status < 0)
        goto done;
    *out_fields = fields;
    fields = NULL;

done:
    annal__pack_fields_free(fields);
    return status;
}

void annal__pack_fields_free(struct pack_fields *fields)
{
    if (fields == NULL)
        return;
    annal__pack_fields_forget(fields);
    sqlite3_finalize(fields->extractor);
    sqlite3_finalize(fields->reader);
    annal__buf_done(&fields->names);
    annal__free(fields);
}

/* ---- Walking, rules (2), (4) and (5) ---- */

void annal__pack_members_read(struct pack_members *members, annal_slice data)
{
    members->data = data;
    members->count = 0;
    (void)annal__json_walk_object(&members->rest, data); /* else it has no members */
}

/*
 * Return member number i, which is read if no section needed it before; the calls for one walk have
 * i = 0, 1, 2, … *beyond is the position after the last member that was kept. Returns false after
 * the last member.
 */
static bool next_member(struct pack_members *members, size_t i, struct json_walk *beyond,
                        struct pack_member *out)
{
    if (i < members->count) {
        *out = members->list[i];
        return true;
    }
    if (i == PACK_MEMBERS_MAX)
        *beyond = members->rest;
    struct json_walk *walk = i < PACK_MEMBERS_MAX ? &members->rest : beyond;
    if (!annal__json_walk_next(walk, &out->name, &out->value))
        return false;
    if (i < PACK_MEMBERS_MAX)
        members->list[members->count++] = *out;
    return true;
}

struct walk {
    struct pack_fields *fields;
    uint64_t left; /* a bit for each field that was not found yet */
};

static bool read_integer(annal_slice word, sqlite3_int64 *out)
{
    bool negative = word.len > 0 && word.ptr[0] == '-';
    size_t at = negative;
    sqlite3_int64 value = 0;
    if (word.len == at || word.len - at > 18)
        return false;
    for (; at < word.len; at++) {
        if (word.ptr[at] < '0' || word.ptr[at] > '9')
            return false;
        value = value * 10 + (word.ptr[at] - '0');
    }
    *out = negative ? -value : value;
    return true;
}

/* Let SQLite read a value (rule 3). Returns false if it must read all fields. */
static bool ask_value(struct pack_fields *fields, annal_slice raw, struct value *out)
{
    if (fields->reader == NULL && annal__db_prepare(sqlite3_db_handle(fields->extractor),
                                                    "SELECT ?1 ->> '$'", &fields->reader, NULL) < 0)
        return false;
    annal__db_bind_text(fields->reader, 1, raw);
    if (sqlite3_step(fields->reader) == SQLITE_ROW)
        out->asked = sqlite3_value_dup(sqlite3_column_value(fields->reader, 0));
    sqlite3_reset(fields->reader);
    sqlite3_clear_bindings(fields->reader);
    fields->has_asked = fields->has_asked || out->asked != NULL;
    return out->asked != NULL;
}

/* Read a value, if it is of a kind that the walk reads (rule 2); otherwise return false. */
static bool take_simple(annal_slice raw, struct value *out)
{
    *out = (struct value){.type = SQLITE_NULL};
    switch (*raw.ptr) {
    case '"':
        *out = (struct value){.type = SQLITE_TEXT, .text = annal__json_inside(raw)};
        return !annal__json_is_escaped(raw);
    case '{':
    case '[':
        return false;
    case 't':
    case 'f':
        *out = (struct value){.type = SQLITE_INTEGER, .integer = *raw.ptr == 't'};
        return true;
    case 'n':
        return true;
    default:
        out->type = SQLITE_INTEGER;
        return read_integer(raw, &out->integer);
    }
}

/* Return the subset of `wanted` (a bit for each field) whose path has this key at this depth. */
static uint64_t match(const struct pack_fields *fields, uint64_t wanted, size_t depth,
                      annal_slice key)
{
    uint64_t matched = 0;
    if (depth == 0)
        wanted &= fields->of_length[key.len % LENGTHS];
    for (; wanted != 0; wanted &= wanted - 1) {
        int i = __builtin_ctzll(wanted);
        if (annal__slice_same(fields->parts[i][depth].key, key))
            matched |= UINT64_C(1) << i;
    }
    return matched;
}

static bool walk_object(struct walk *walk, annal_slice object, uint64_t wanted, size_t depth);

/* Read the values of the wanted fields that are this member, or are in its value. Returns false if
 * SQLite must read the fields. */
static bool take_member(struct walk *walk, const struct pack_member *member, uint64_t wanted,
                        size_t depth)
{
    uint64_t here = 0;
    if (annal__json_is_escaped(member->name))
        return false;
    uint64_t matched =
        match(walk->fields, wanted & walk->left, depth, annal__json_inside(member->name));
    for (uint64_t rest = matched; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        if (walk->fields->parts[i][depth].last)
            here |= UINT64_C(1) << i;
    }
    uint64_t inside = matched & ~here;
    if (inside != 0 && !walk_object(walk, member->value, inside, depth + 1))
        return false;
    for (uint64_t rest = here; rest != 0; rest &= rest - 1) {
        struct value *value = &walk->fields->values[__builtin_ctzll(rest)];
        if (!take_simple(member->value, value) && !ask_value(walk->fields, member->value, value))
            return false;
    }
    /* fields that were not found in this member are missing, because the first member with a name
     * is used */
    walk->left &= ~matched;
    return true;
}

/* Walk over the value of a member, which may be no object. Returns false if SQLite must read the
 * fields. */
static bool walk_object(struct walk *walk, annal_slice object, uint64_t wanted, size_t depth)
{
    struct json_walk json;
    struct pack_member member;
    bool more = annal__json_walk_object(&json, object);
    while (more && (wanted & walk->left) != 0 &&
           annal__json_walk_next(&json, &member.name, &member.value))
        if (!take_member(walk, &member, wanted, depth))
            return false;
    return true;
}

static bool walk_data(struct pack_fields *fields, struct pack_members *members)
{
    struct walk walk = {.fields = fields, .left = UINT64_MAX >> (FIELDS_MAX - fields->count)};
    struct json_walk beyond = {NULL, NULL};
    struct pack_member member;
    for (size_t i = 0; i < fields->count; i++)
        fields->values[i] = (struct value){.type = SQLITE_NULL};
    for (size_t i = 0; walk.left != 0 && next_member(members, i, &beyond, &member); i++)
        if (!take_member(&walk, &member, walk.left, 0))
            return false;
    return true;
}

/* ---- Using ---- */

int annal__pack_fields_read(struct pack_fields *fields, struct pack_members *members)
{
    if (fields == NULL || (fields->walk && walk_data(fields, members)))
        return SQLITE_OK;
    fields->asked = true;
    annal__db_bind_text(fields->extractor, 1, members->data);
    int rc = sqlite3_step(fields->extractor);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

bool annal__pack_fields_is(const struct pack_fields *fields, int i, annal_slice text)
{
    const struct value *value = &fields->values[i % FIELDS_MAX];
    sqlite3_value *asked =
        fields->asked ? sqlite3_column_value(fields->extractor, i) : value->asked;
    int type = asked == NULL ? value->type : sqlite3_value_type(asked);
    if (text.len == 0 || type != SQLITE_TEXT)
        return text.len == 0 && type != SQLITE_NULL;
    if (asked == NULL)
        return annal__slice_same(value->text, text);
    const char *bytes = (const char *)sqlite3_value_text(asked);
    return bytes != NULL &&
           annal__slice_same((annal_slice){bytes, (size_t)sqlite3_value_bytes(asked)}, text);
}

void annal__pack_fields_forget(struct pack_fields *fields)
{
    if (fields == NULL)
        return;
    for (size_t i = 0; fields->has_asked && i < fields->count; i++) {
        sqlite3_value_free(fields->values[i].asked);
        fields->values[i].asked = NULL;
    }
    fields->has_asked = false;
    if (!fields->asked)
        return;
    sqlite3_reset(fields->extractor);
    sqlite3_clear_bindings(fields->extractor);
    fields->asked = false;
}

void annal__pack_fields_bind(const struct pack_fields *fields, int i, sqlite3_stmt *stmt, int at)
{
    const struct value *value = &fields->values[i % FIELDS_MAX];
    if (fields->asked)
        sqlite3_bind_value(stmt, at, sqlite3_column_value(fields->extractor, i));
    else if (value->asked != NULL)
        sqlite3_bind_value(stmt, at, value->asked);
    else if (value->type == SQLITE_INTEGER)
        sqlite3_bind_int64(stmt, at, value->integer);
    else if (value->type == SQLITE_TEXT)
        annal__db_bind_text(stmt, at, value->text);
    else
        sqlite3_bind_null(stmt, at);
}
