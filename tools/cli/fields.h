/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operands and options of a verb, each a row of a table.
 *
 * Help, manual and completion are generated from these tables, and the command line is checked
 * against them before a verb runs. So the verb need not check the values that it reads
 * (fields_count(), fields_age(), …).
 *
 *     static const struct field fields[] = {
 *         OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
 *         OPTION("since", "T", FIELD_TIME, NULL, "start of the range"),
 *         OPTION_WITH("jobs", "N", FIELD_COUNT, NULL, "sessions at once", .least = 1, .most = 64),
 *         FLAG("all", NULL, "all sessions"), FIELDS_END};
 */
#pragma once

#include "tools/cli/args.h"

#include <annal/replay.h>
#include <annal/verb.h>

/* The kind of a value, which determines its form on the command line and in an event's data
 * (annal/verb.h). */
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

    /* Only for verbs of the command itself, never in an event's data: */
    FIELD_COUNT = 32, /* whole number, from least to most */
    FIELD_AMOUNT,     /* number that may have a fraction, from 0 to most */
    FIELD_AGE,        /* age such as 45s, 30m, 2h, 7d, 2w */
    FIELD_MOMENT,     /* seq, time or age */
    FIELD_CHOICE,     /* one of the field's choices, in upper or lower case */
    FIELD_SESSION,    /* session: its id, or letters with which only this id begins */
    FIELD_SESSIONS,   /* list of sessions */
    FIELD_ID,         /* complete id of a session, which need not exist */
    FIELD_IDS         /* list of complete ids */
};

struct field {
    /* An operand has no name; its value is what help calls the operand, such as "TEAM". */
    struct option option;
    enum field_kind kind;
    /* path in the event's data at which the value is stored, such as "content" or "run.id"; NULL:
     * it is not stored */
    const char *to;
    bool required;
    const char *preset;  /* JSON value stored at `to` if the field was not given; NULL for none */
    const char *choices; /* the values that are accepted, such as "all|first|any"; NULL for any */
    uint64_t least;
    uint64_t most;    /* 0 for no limit */
    const char *with; /* name of an option that must also be given, or NULL */
    /* options that cannot be given together with this one, such as "from|json"; NULL for none */
    const char *without;
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
/* An option with further members, such as OPTION_WITH("strategy", …, .preset = "\"all\""). */
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

/* For verbs that open a store with OPEN_CREATE; store_open() reads this option. */
#define CREATE_OPTION FLAG("create", NULL, "create a store even in a directory with other files")

/* Options that several verbs have. fields_limits() reads the values of LIMIT_OPTIONS. */
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

/* Values of --format: formats of a journal, which fields_journal_format() reads, and of output,
 * which fields_format() reads. */
#define JOURNAL_FORMATS "jsonl|msgpack"
#define OUT_FORMATS     "jsonl|csv|table"

static inline bool field_is_operand(const struct field *field)
{
    return field->option.name == NULL && field->option.value != NULL;
}

/* Check the command line against the fields of its verb. Returns 0, or an exit status after one
 * line on stderr. */
int fields_check(const struct args *args);

/* ---- Values of checked fields ---- */

/* Return the value of an option or operand: fields_count() a whole number, fields_amount() one that
 * may have a fraction; `usual` if it was not given. */
uint64_t fields_count(const struct args *args, const char *name, uint64_t usual);
double fields_amount(const struct args *args, const char *name, double usual);

/* Return an age in us, the value of an option; 0 if it was not given. */
int64_t fields_age(const struct args *args, const char *name);

/* Read the range of --since and --until; a bound that was not given is chosen as for struct
 * time_range. */
void fields_range(const struct args *args, struct time_range *out);

/* Read a moment from an option or operand: a seq, a time or an age; *out is unchanged if it was not
 * given. */
void fields_moment(const struct args *args, const char *name, annal_moment *out);

/* Return the index of the given value in the option's choices; -1 if the option was not given. */
int fields_choice(const struct args *args, const char *name);

/* Return the text of an option or operand; empty if it was not given. */
annal_slice fields_text(const struct args *args, const char *name);

/* Read all values of a list. Their texts belong to args; the caller frees *out with
 * annal__free(). */
void fields_list(const struct args *args, const char *name, annal_slice **out, size_t *out_count);

/* Limits for SQL of users. fields_limits() returns --timeout, --memory and --temp; limits_usual has
 * the value of each option that was not given. */
extern const annal_limits limits_usual;
annal_limits fields_limits(const struct args *args);

/* If a limit was reached, add to the message which options change the limits; fields_fail_limited()
 * also prints the message, and returns an exit status. */
void fields_limits_hint(annal_error *err);
int fields_fail_limited(const annal_error *err);

/* Read --format jsonl|msgpack, the format of a new journal; *out is unchanged if it was not
 * given. */
void fields_journal_format(const struct args *args, annal_format *out);

/* Read --format jsonl|csv|table, or --json, which means jsonl; *out is unchanged if neither was
 * given. Returns 0 or EXIT_USAGE. */
int fields_format(const struct args *args, enum out_format *out);
