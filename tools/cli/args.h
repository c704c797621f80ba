/* SPDX-License-Identifier: Apache-2.0 */
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

#define WAIT_MS_USUAL 10000

struct args {
    const struct noun *noun;       /* NULL: a verb of one word */
    const struct command *command; /* NULL: none was given */
    const char *store;             /* --store, else $ANNAL_STORE, else NULL: the default place */
    uint32_t wait_ms;              /* --wait; WAIT_MS_USUAL when it was not given */
    bool wait_given;
    uint64_t keep_free_bytes; /* --keep-free; 0 when it was not given */
    const char *zone;         /* --zone, or "UTC" of --utc; NULL: the zone of TZ */
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
    char *ids; /* room for the id of each operand and each value; see sessions_resolve() */
};

#define ARGS_ID_BYTES (ANNAL_SESSION_ID_BYTES_MAX + 1)

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

/* The value of an option, or the operand of that name (of several, the first); NULL when it was not
 * given. */
const char *args_get(const struct args *args, const char *name);

/* How many bytes of it a message may have: of a URL those before its host, because it may have a
 * password. */
int args_shown(const char *text);

/* Walk over all of a list: begin with *at = 0; NULL when there are no more. */
const char *args_next(const struct args *args, const char *name, int *at);

/* A whole number; *out stays as it is when the option was not given. */
int args_number(const struct args *args, const char *name, uint64_t *out);

/* A whole number, all of text and nothing else. */
bool parse_number(const char *text, uint64_t *out);
bool parse_time(const char *text, int64_t *out_us);

/*
 * Which times: since_us <= time < until_us; 0: no bound. Every range that a user names is read
 * here, so neighbours share no instant and leave none out.
 *
 * A time before 1970-01-02, or later than a day from now, cannot be right. An event with such a
 * time is newer or older than nothing: a range without an end ends a day from now, and a range
 * without a beginning begins on 1970-01-02, unless the other bound is itself such a time.
 */
#define TIME_LEAST_US INT64_C(86400000000)
#define TIME_AHEAD_US INT64_C(86400000000)
struct time_range {
    int64_t since_us;
    int64_t until_us;
    bool has_since, has_until; /* the user named it */
};

/* The range between two texts, either of which may be NULL; false: one of them is not a time. */
bool parse_range(const char *since, const char *until, struct time_range *out);
bool range_is_backward(const struct time_range *range);

/* Whether --zone takes it. */
bool zone_is_known(const char *name);
bool parse_amount(const char *text, double most, double *out);

#endif
