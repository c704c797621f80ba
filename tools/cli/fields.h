/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verb takes: its operands and options, each a row of a table.
 *
 * Help, manual and completion are made from these tables, and the command line is checked against
 * them before a verb runs. What a verb then asks (args_count(), args_time(), …) needs no check.
 *
 *     static const struct field fields[] = {
 *         OPERAND("SESSION", FIELD_SESSION, NULL, "the session"),
 *         OPTION("since", "T", FIELD_TIME, NULL, "from this time on"),
 *         OPTION_WITH("jobs", "N", FIELD_COUNT, NULL, "how many at once", .least = 1, .most = 64),
 *         FLAG("all", NULL, "every one"), FIELDS_END};
 */
#ifndef TOOLS_CLI_FIELDS_H
#define TOOLS_CLI_FIELDS_H

#include "tools/cli/args.h"

#include <annal/replay.h>
#include <annal/verb.h>

/* What a value is on the command line, and what it becomes in data: annal/verb.h says it. */
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

    /* Of the command's own verbs, never in an event: */
    FIELD_COUNT = 32, /* a whole number, from least to most */
    FIELD_AMOUNT,     /* a number that may have a fraction, from 0 to most */
    FIELD_AGE,        /* 45s, 30m, 2h, 7d, 2w */
    FIELD_MOMENT,     /* a seq, a time or an age */
    FIELD_CHOICE,     /* one of its choices, in capitals or not */
    FIELD_SESSION,    /* a session: its id, or the first letters of it that no other has */
    FIELD_SESSIONS,   /* a list of them */
    FIELD_ID,         /* the whole id of a session, which need not be there */
    FIELD_IDS         /* a list of them */
};

struct field {
    /* An operand has no name; its value is what it is called, "TEAM", and its help explains it. */
    struct option option;
    enum field_kind kind;
    const char *to; /* the member of data, "content" or "run.id"; NULL: not in data */
    bool required;
    const char *preset;  /* what data gets when it was not given, as JSON; NULL: nothing */
    const char *choices; /* "all|first|any": the only values */
    uint64_t least;
    uint64_t most;       /* 0: no limit */
    const char *with;    /* an option that must be given, too: "sql" */
    const char *without; /* options that exclude this one: "from|json" */
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
/* More members, where they are needed: OPTION_WITH("strategy", …, .preset = "\"all\""). */
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

/* Of verbs that open a store with OPEN_CREATE; store_open() reads it. */
#define CREATE_OPTION FLAG("create", NULL, "make a store also in a directory with other files")

/* The options that args_limits() reads. */
#define PROJECT_OPTION                                                                             \
    OPTION("project", "DIR", FIELD_TEXT, NULL, "of the project in this directory, or once in it")
#define RAW_OPTION FLAG("raw", NULL, "data byte for byte, with halves of surrogate pairs")
#define LIMIT_OPTIONS                                                                              \
    OPTION_WITH("timeout", "SECONDS", FIELD_COUNT, NULL,                                           \
                "how long SQL may run (60); 0: as long as it takes", .most = 4000000),             \
        OPTION_WITH("memory", "MB", FIELD_COUNT, NULL,                                             \
                    "how much memory it may take (1024); 0: no limit", .most = 4294967296),        \
        OPTION_WITH("temp", "MB", FIELD_COUNT, NULL,                                               \
                    "how much room its temporary files may take (1024)", .most = 4294967296)

/* The formats of a journal, as args_journal_format() reads them, and those that args_format()
 * does. */
#define JOURNAL_FORMATS "jsonl|msgpack"
#define OUT_FORMATS     "jsonl|csv|table"

static inline bool field_is_operand(const struct field *field)
{
    return field->option.name == NULL && field->option.value != NULL;
}

/* Whether what was given is what the table asks; 0, or an exit status after one line on stderr. */
int fields_check(const struct args *args);

/* ---- What was given, of fields that were checked ---- */

/* A whole number, or one with a fraction; usual when it was not given. */
uint64_t args_count(const struct args *args, const char *name, uint64_t usual);
double args_amount(const struct args *args, const char *name, double usual);

/* Microseconds: a time, counted from 1970, and how long ago; 0 when it was not given. */
int64_t args_time(const struct args *args, const char *name);
int64_t args_age(const struct args *args, const char *name);

/* The range of --since and --until. */
void args_range(const struct args *args, struct time_range *out);

/* *out stays as it is when it was not given. */
void args_moment(const struct args *args, const char *name, annal_moment *out);

/* Which of its choices it is, from 0; -1 when it was not given. */
int args_choice(const struct args *args, const char *name);

/* Its text; empty when it was not given. */
annal_slice args_text(const struct args *args, const char *name);

/* All of a list, whose texts are those of the command line; the caller frees *out with
 * annal__free(). 0 or an exit status. */
int args_list(const struct args *args, const char *name, annal_slice **out, size_t *out_count);

/* What somebody's SQL may cost, unless --timeout, --memory and --temp say otherwise. */
extern const annal_limits limits_usual;
annal_limits args_limits(const struct args *args);

/* Where a limit was reached, the message says how to raise it. And fail_error() with that. */
void limits_hint(annal_error *err);
int fail_limited(const annal_error *err);

/* --format jsonl|msgpack, the format of a new journal; otherwise *out stays. */
void args_journal_format(const struct args *args, annal_format *out);

/* --format jsonl|csv|table, and --json, which is the same as jsonl; otherwise *out stays. */
int args_format(const struct args *args, enum out_format *out);

#endif
