/*
 * The command line: annal [--store DIR] [--json] VERB [options and operands in any order].
 *
 * --name VALUE and --name=VALUE are the same, "--" ends the options. Functions that find the
 * command line wrong print one line on stderr and answer EXIT_USAGE; 0 means that all is well.
 */
#ifndef TOOLS_CLI_ARGS_H
#define TOOLS_CLI_ARGS_H

#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <annal/event.h>
#include <annal/query.h>

#define WAIT_MS_USUAL 10000

struct args {
    const struct noun *noun;       /* NULL: a verb of one word */
    const struct command *command; /* NULL: none was given */
    const char *store;             /* --store, else $ANNAL_STORE, else NULL: the default place */
    uint32_t wait_ms;              /* --wait; WAIT_MS_USUAL when it was not given */
    bool wait_given;
    bool json;
    bool help;
    bool version;
    const char **operands;
    int operand_count;
    struct args_value {
        const struct option *option;
        const char *text; /* NULL for an option without value */
    } * values;
    int value_count;
};

/* What every verb takes, unless it works without a store. */
extern const struct option args_common[];

int args_parse(struct args *args, int argc, char **argv);
void args_done(struct args *args);

/* There is no such verb (in the noun): say so, and which one may have been meant. */
int args_fail_verb(const struct noun *noun, const char *given);

/* What was asked for, "append" or "team send"; "" when nothing was. Written to text. */
#define VERB_BYTES 64
const char *args_verb(const struct args *args, char text[VERB_BYTES]);

bool args_has(const struct args *args, const char *name);

/* The value of an option, NULL when it was not given. */
const char *args_get(const struct args *args, const char *name);

/* Walk over a repeatable option: begin with *at = 0; NULL when there are no more. */
const char *args_next(const struct args *args, const char *name, int *at);

/* A whole number; *out stays as it is when the option was not given. */
int args_number(const struct args *args, const char *name, uint64_t *out);

/* --limit; *out stays as it is when the option was not given. 0 would ask for nothing. */
int args_limit(const struct args *args, uint64_t *out);

/* What somebody's SQL may cost, unless --timeout, --memory and --temp say otherwise. */
extern const annal_limits limits_usual;
int args_limits(const struct args *args, annal_limits *out);

/* Where a limit was reached, the message says how to raise it. And fail_error() with that. */
void limits_hint(annal_error *err);
int fail_limited(const annal_error *err);

/* The rows of a table of options that args_limits() reads. */
#define LIMIT_OPTIONS                                                                              \
    {"timeout", "SECONDS", "how long SQL may run (60); 0: as long as it takes", false},            \
        {"memory", "MB", "how much memory it may take (1024); 0: no limit", false},                \
    {                                                                                              \
        "temp", "MB", "how much room its temporary files may take (1024)", false                   \
    }

/* A time, ISO 8601 or an age such as 45s, 30m, 2h, 7d, 2w; *out stays when it was not given. */
int args_time(const struct args *args, const char *name, int64_t *out_us);

/* --format jsonl|msgpack, the format of a new journal; otherwise *out stays. */
int args_journal_format(const struct args *args, annal_format *out);

/* --format jsonl|csv|table, and --json, which is the same as jsonl; otherwise *out stays. */
int args_format(const struct args *args, enum out_format *out);

/* A whole number, all of text and nothing else. */
bool parse_number(const char *text, uint64_t *out);
bool parse_time(const char *text, int64_t *out_us);

/* Operand number i as a session id, checked. */
int args_session(const struct args *args, int i, annal_slice *out);

#endif
