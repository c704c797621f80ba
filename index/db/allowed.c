/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that SQL of others may use: a user's query, a pack, an event that extends a schema.
 *
 * (1) It may use only the names in this file. Anything else that SQLite offers, now, in a later
 *     version or in a special build, is refused until a person has reviewed it and added its name.
 * (2) No function here reads or writes a file, takes or returns an address, or changes SQLite.
 * (3) A pragma reads the schema. No pragma here tells where a file is.
 * (4) The only virtual tables are ours and those that connect.c does not remove.
 * (5) EXPLAIN prints addresses (EXPLAIN QUERY PLAN does not), so db.c refuses it.
 */
#include "index/db/allowed.h"

#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SQL functions that a statement may call, sorted by strcmp(). */
static const char *const functions[] = {"->",
                                        "->>",
                                        "abs",
                                        "acos",
                                        "acosh",
                                        "annal_blob",
                                        "annal_cost",
                                        "annal_count",
                                        "annal_f32",
                                        "annal_health",
                                        "annal_history_part",
                                        "annal_increment",
                                        "annal_instant",
                                        "annal_message",
                                        "annal_pattern",
                                        "annal_period",
                                        "annal_period_begin",
                                        "annal_prompt_over",
                                        "annal_said",
                                        "annal_time",
                                        "annal_title",
                                        "annal_unix",
                                        "asin",
                                        "asinh",
                                        "atan",
                                        "atan2",
                                        "atanh",
                                        "avg",
                                        "ceil",
                                        "ceiling",
                                        "char",
                                        "coalesce",
                                        "concat",
                                        "concat_ws",
                                        "cos",
                                        "cosh",
                                        "count",
                                        "cume_dist",
                                        "current_date",
                                        "current_time",
                                        "current_timestamp",
                                        "date",
                                        "datetime",
                                        "degrees",
                                        "dense_rank",
                                        "exp",
                                        "first_value",
                                        "floor",
                                        "format",
                                        "glob",
                                        "group_concat",
                                        "hex",
                                        "if",
                                        "ifnull",
                                        "iif",
                                        "instr",
                                        "json",
                                        "json_array",
                                        "json_array_insert",
                                        "json_array_length",
                                        "json_error_position",
                                        "json_extract",
                                        "json_group_array",
                                        "json_group_object",
                                        "json_insert",
                                        "json_object",
                                        "json_patch",
                                        "json_pretty",
                                        "json_quote",
                                        "json_remove",
                                        "json_replace",
                                        "json_set",
                                        "json_type",
                                        "json_valid",
                                        "jsonb",
                                        "jsonb_array",
                                        "jsonb_array_insert",
                                        "jsonb_extract",
                                        "jsonb_group_array",
                                        "jsonb_group_object",
                                        "jsonb_insert",
                                        "jsonb_object",
                                        "jsonb_patch",
                                        "jsonb_remove",
                                        "jsonb_replace",
                                        "jsonb_set",
                                        "julianday",
                                        "lag",
                                        "last_value",
                                        "lead",
                                        "length",
                                        "like",
                                        "likelihood",
                                        "likely",
                                        "ln",
                                        "log",
                                        "log10",
                                        "log2",
                                        "lower",
                                        "ltrim",
                                        "max",
                                        "median",
                                        "min",
                                        "mod",
                                        "nth_value",
                                        "ntile",
                                        "nullif",
                                        "octet_length",
                                        "percent_rank",
                                        "percentile",
                                        "percentile_cont",
                                        "percentile_disc",
                                        "pi",
                                        "pow",
                                        "power",
                                        "printf",
                                        "quote",
                                        "radians",
                                        "random",
                                        "randomblob",
                                        "rank",
                                        "replace",
                                        "round",
                                        "row_number",
                                        "rtrim",
                                        "session_id",
                                        "sign",
                                        "sin",
                                        "sinh",
                                        "soundex",
                                        "sqlite_version",
                                        "sqrt",
                                        "stddev",
                                        "strftime",
                                        "string_agg",
                                        "substr",
                                        "substring",
                                        "subtype",
                                        "sum",
                                        "tan",
                                        "tanh",
                                        "time",
                                        "timediff",
                                        "total",
                                        "trim",
                                        "trunc",
                                        "typeof",
                                        "unhex",
                                        "unicode",
                                        "unistr",
                                        "unistr_quote",
                                        "unixepoch",
                                        "unlikely",
                                        "upper",
                                        "vec_distance_cosine",
                                        "vec_distance_l2",
                                        "zeroblob"};

static const char *const pragmas[] = {"foreign_key_check", "foreign_key_list", "index_info",
                                      "index_list",        "index_xinfo",      "table_info",
                                      "table_list",        "table_xinfo"};

static int compare(const void *name, const void *entry)
{
    return sqlite3_stricmp(name, *(const char *const *)entry);
}

bool annal__allowed_function(const char *name)
{
    return bsearch(name, functions, sizeof functions / sizeof *functions, sizeof *functions,
                   compare) != NULL;
}

bool annal__allowed_pragma(const char *name)
{
    return bsearch(name, pragmas, sizeof pragmas / sizeof *pragmas, sizeof *pragmas, compare) !=
           NULL;
}

static bool is_further(const char *names, const char *name)
{
    for (; names != NULL && *names != '\0'; names += strlen(names) + 1)
        if (sqlite3_stricmp(names, name) == 0)
            return true;
    return false;
}

static int refuse(struct allowed *allowed, const char *what, const char *name)
{
    if (!allowed->refused && name != NULL)
        snprintf(allowed->what, sizeof allowed->what, "%s%.80s", what, name);
    allowed->refused = true;
    return SQLITE_DENY;
}

int annal__allowed_select(void *arg, int action, const char *first, const char *second,
                          const char *database, const char *trigger)
{
    static const char pragma[] = "pragma_";
    struct allowed *allowed = arg;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    /* a table pragma_NAME runs PRAGMA NAME without a call of the authorizer, so NAME is checked
     * here */
    case SQLITE_READ:
        if (sqlite3_strnicmp(first, pragma, sizeof pragma - 1) != 0 ||
            annal__allowed_pragma(first + sizeof pragma - 1)) {
            allowed->counts = allowed->counts || sqlite3_stricmp(first, "event_index") == 0 ||
                              sqlite3_stricmp(first, "_counts") == 0;
            return SQLITE_OK;
        }
        return refuse(allowed, "the table ", first);
    case SQLITE_FUNCTION:
        if (annal__allowed_function(second) || is_further(allowed->functions, second))
            return SQLITE_OK;
        return refuse(allowed, "the function ", second);
    case SQLITE_PRAGMA:
        return annal__allowed_pragma(first) ? SQLITE_OK : refuse(allowed, "PRAGMA ", first);
    /* SQLite reports the declaration of a virtual table as an update; a statement that really
     * updates is refused because it is not read-only */
    case SQLITE_UPDATE:
        if (sqlite3_stricmp(first, "sqlite_master") == 0)
            return SQLITE_OK;
        break;
    default:
        break;
    }
    return refuse(allowed, "", NULL);
}
