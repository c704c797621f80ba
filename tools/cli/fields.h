/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operands and options of a verb, each a row of a table.
 *
 * Help, manual and completion are generated from these tables, and the command line is checked
 * against them before a verb runs. So the verb need not check the values that it reads
 * (fields_count(), fields_time(), …).
 *
 *     static const struct field fields[] = {
 *         OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
 *         OPTION("since", "T", FIELD_TIME, NULL, "start of the range"),
 *         OPTION_WITH("jobs", "N", FIELD_COUNT, NULL, "sessions at once", .least = 1, .most = 64),
 *         FLAG("all", NULL, "all sessions"), FIELDS_END};
 */
#ifndef TOOLS_CLI_FIELDS_H
#define TOOLS_CLI_FIELDS_H

#include "tools/cli/args.h"

#include <annal/replay.h>
#include <annal/verb.h>

/* The form of a value on the command line and in data: see annal/verb.h. */
enum field_kind {
    FIELD_END = ANNAL_FIELD_END,
    FIELD_TEXT = ANNAL_FIELD_TEXT,
    FIELD_BODY = ANNAL_FIELD_BODY,
    FIELD_FILE = ANNAL_FIELD_FILE,
    FIELD_NUMBER = ANNAL_FIELD_NUMBER,
    FIELD_JSON = ANNAL_FIELD_JSON,
    FIELD_FLAG = ANNAL_FIELD_FLAG,
    FIELD_LIST = ANNAL_FIELD_LIST,
    FIELD_TIME = ANNAL_FIELD_TIME,
    FIELD_CONST = ANNAL_FIELD_CONST,

    /* Only for the command's own verbs, never in an event: */
    FIELD_COUNT = 32, /* a whole number, from least to most */
    FIELD_AMOUNT,     /* a number that may have a fraction, from 0 to most */
    FIELD_AGE,        /* 45s, 30m, 2h, 7d, 2w */
    FIELD_MOMENT,     /* a seq, a time or an age */
    FIELD_CHOICE,     /* one of its choices, in upper or lower case */
    FIELD_SESSION,    /* a session: its id, or the first letters of only this id */
    FIELD_SESSIONS,   /* a list of sessions */
    FIELD_ID,         /* the whole id of a session, which need not exist */
    FIELD_IDS         /* a list of whole ids */
};

struct field {
    /* An operand has no name; its value is what help calls it, "TEAM". */
    struct option option;
    enum field_kind kind;
    const char *to; /* member of data, "content" or "run.id"; NULL: not in data */
    bool required;
    const char *preset;  /* value in data if it was not given, as JSON; NULL: none */
    const char *choices; /* only values: "all|first|any" */
    uint64_t least;
    uint64_t most;       /* 0: no limit */
    const char *with;    /* option that must be given, too: "sql" */
    const char *without; /* options that exclude this option: "from|json" */
};

#define FIELD_IS_LIST(kind)                                                                        \
    ((kind) == FIELD_LIST || (kind) == FIELD_SESSIONS || (kind) == FIELD_IDS)

#define OPERAND(called, kind_, to_, help_)                                                         \
    {                                                                                              \
        .option = {.value = (called), .help = (help_)}, .kind = (kind_), .to = (to_),              \
        .required = true                                                                           \
    }
#define OPERAND_MAYBE(called, kind_, to_, help_)                                                   \
    {                                                                                              \
        .option = {.value = (called), .help = (help_)}, .kind = (kind_), .to = (to_)               \
    }
#define OPTION(name_, value_, kind_, to_, help_)                                                   \
    {                                                                                              \
        .option = {(name_), (value_), (help_), FIELD_IS_LIST(kind_)}, .kind = (kind_), .to = (to_) \
    }
/* For further members: OPTION_WITH("strategy", …, .preset = "\"all\""). */
#define OPTION_WITH(name_, value_, kind_, to_, help_, ...)                                         \
    {                                                                                              \
        .option = {(name_), (value_), (help_), FIELD_IS_LIST(kind_)}, .kind = (kind_),             \
        .to = (to_), __VA_ARGS__                                                                   \
    }
#define FLAG(name_, to_, help_)                                                                    \
    {                                                                                              \
        .option = {(name_), NULL, (help_), false}, .kind = FIELD_FLAG, .to = (to_)                 \
    }
#define CONSTANT(to_, json)                                                                        \
    {                                                                                              \
        .kind = FIELD_CONST, .to = (to_), .preset = (json)                                         \
    }
#define FIELDS_END                                                                                 \
    {                                                                                              \
        .kind = FIELD_END                                                                          \
    }

/* For verbs that open a store with OPEN_CREATE; store_open() reads it. */
#define CREATE_OPTION FLAG("create", NULL, "create a store even in a directory with other files")

/* The options that fields_limits() reads, and others that several verbs share. */
#define PROJECT_OPTION                                                                             \
    OPTION("project", "DIR", FIELD_TEXT, NULL, "directory of the project, now or earlier")
#define RAW_OPTION FLAG("raw", NULL, "data byte for byte, even half surrogate pairs")
#define LIMIT_OPTIONS                                                                              \
    OPTION_WITH("timeout", "SECONDS", FIELD_COUNT, NULL,                                           \
                "longest time that SQL may run (60); 0: no limit", .most = 4000000),               \
        OPTION_WITH("memory", "MB", FIELD_COUNT, NULL, "most memory for SQL (1024); 0: no limit",  \
                    .most = 4294967296),                                                           \
        OPTION_WITH("temp", "MB", FIELD_COUNT, NULL,                                               \
                    "most space for temporary files of SQL (1024)", .most = 4294967296)

/* The formats of a journal, for fields_journal_format(), and of output, for fields_format(). */
#define JOURNAL_FORMATS "jsonl|msgpack"
#define OUT_FORMATS     "jsonl|csv|table"

static inline bool field_is_operand(const struct field *field)
{
    return field->option.name == NULL && field->option.value != NULL;
}

/* Check the command line against the table; 0, or an exit status after one line on stderr. */
int fields_check(const struct args *args);

/* ---- Values of checked fields ---- */

/* Read a whole number, or a number with a fraction; `usual` if it was not given. */
uint64_t fields_count(const struct args *args, const char *name, uint64_t usual);
double fields_amount(const struct args *args, const char *name, double usual);

/* Read a time, or an age, in microseconds; 0 if it was not given. */
int64_t fields_time(const struct args *args, const char *name);
int64_t fields_age(const struct args *args, const char *name);

/* Read the range of --since and --until. */
void fields_range(const struct args *args, struct time_range *out);

/* Read a moment; *out is unchanged if it was not given. */
void fields_moment(const struct args *args, const char *name, annal_moment *out);

/* Find which of its choices was given, from 0; -1: none. */
int fields_choice(const struct args *args, const char *name);

/* Read its text; empty if it was not given. */
annal_slice fields_text(const struct args *args, const char *name);

/* Read all values of a list, whose texts belong to the command line; the caller frees *out with
 * annal__free(). 0 or an exit status. */
int fields_list(const struct args *args, const char *name, annal_slice **out, size_t *out_count);

/* Read the limits of user SQL: the defaults, or --timeout, --memory and --temp. */
extern const annal_limits limits_usual;
annal_limits fields_limits(const struct args *args);

/* Add to the message of a reached limit how to raise it. The second also calls fail_error(). */
void fields_limits_hint(annal_error *err);
int fields_fail_limited(const annal_error *err);

/* Read --format jsonl|msgpack, the format of a new journal; *out is unchanged if it was not
 * given. */
void fields_journal_format(const struct args *args, annal_format *out);

/* Read --format jsonl|csv|table, or --json, which means jsonl; *out is unchanged if neither was
 * given. */
int fields_format(const struct args *args, enum out_format *out);

#endif
