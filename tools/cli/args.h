/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: annal [--store DIR] [--json] VERB [options and operands in any order].
 *
 * --name VALUE and --name=VALUE are the same, "--" ends the options. Functions that find an error
 * in the command line print one line on stderr and return EXIT_USAGE; 0 means that it is correct.
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
    const char *store;             /* --store, else $ANNAL_STORE, else NULL: the default store */
    uint32_t wait_ms;              /* --wait, or WAIT_MS_USUAL */
    bool wait_given;
    uint64_t keep_free_bytes; /* --keep-free, or 0 */
    const char *zone;         /* --zone, or "UTC" for --utc; NULL: the zone of TZ */
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
    char *ids; /* room for the id of each operand and value: sessions_resolve() */
};

#define ARGS_ID_BYTES (ANNAL_SESSION_ID_BYTES_MAX + 1)

/* The options of every verb that works on a store. */
extern const struct option args_common[];

int args_parse(struct args *args, int argc, char **argv);
void args_done(struct args *args);

/* Report that the verb does not exist (in the noun), and suggest the verb that may have been
 * meant. */
int args_fail_verb(const struct noun *noun, const char *given);

/* Write the name of the verb to text: "append", "team send", or "" without a verb. */
#define VERB_BYTES 64
const char *args_verb(const struct args *args, char text[VERB_BYTES]);

bool args_has(const struct args *args, const char *name);

/* Find the value of an option, or the operand of that name (the first of several); NULL if it was
 * not given. */
const char *args_get(const struct args *args, const char *name);

/* Count the bytes of the text that a message may print: in a URL, only those before the host,
 * because a password may follow. */
int args_shown(const char *text);

/* Read the next value of a list: begin with *at = 0; NULL at the end. */
const char *args_next(const struct args *args, const char *name, int *at);

/* Read a whole number; *out is unchanged if the option was not given. */
int args_number(const struct args *args, const char *name, uint64_t *out);

/* Read a whole number that is all of text. */
bool fields_parse_number(const char *text, uint64_t *out);
bool fields_parse_time(const char *text, int64_t *out_us);

/*
 * A range of times: since_us <= time < until_us; 0: no bound. Every range of the command line is
 * read here, so adjacent ranges neither overlap nor leave a gap.
 *
 * A time before 1970-01-02, or later than a day from now, cannot be right, so an event with such a
 * time has no place in an order by time: a range without an end ends a day from now, and a range
 * without a beginning begins on 1970-01-02, unless the other bound is itself such a time.
 */
#define TIME_LEAST_US INT64_C(86400000000)
#define TIME_AHEAD_US INT64_C(86400000000)
struct time_range {
    int64_t since_us;
    int64_t until_us;
    bool has_since, has_until; /* given by the user */
};

/* Read a range from two texts, either of which may be NULL; false: one of them is not a time. */
bool fields_parse_range(const char *since, const char *until, struct time_range *out);
bool fields_range_is_backward(const struct time_range *range);

/* Return whether --zone accepts it. */
bool args_zone_is_known(const char *name);
bool fields_parse_amount(const char *text, double most, double *out);

#endif
