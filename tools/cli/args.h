/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: annal [--store DIR] [--json] VERB [options and operands in any order].
 *
 * --name VALUE and --name=VALUE mean the same; "--" ends the options. A function that finds an
 * error in the command line prints one line on stderr and returns EXIT_USAGE; 0 means that there is
 * no error.
 */
#pragma once

#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <annal/event.h>

#define WAIT_MS_USUAL 10000

struct args {
    const struct noun *noun;       /* noun of a verb of two words, else NULL */
    const struct command *command; /* the verb; NULL if none was given */
    /* directory of --store, else of $ANNAL_STORE; NULL for the default store */
    const char *store;
    /* total time to wait for other processes, in ms: --wait, or WAIT_MS_USUAL */
    uint32_t wait_ms;
    bool wait_given;
    uint64_t keep_free_bytes; /* value of --keep-free in bytes; 0 if the option was not given */
    const char *zone;         /* time zone of --zone, or "UTC" for --utc; NULL for the zone of TZ */
    bool json;
    bool help;
    bool version;
    const char **operands;
    int operand_count;
    struct args_value {
        const struct option *option;
        const char *text; /* value of the option; NULL for a flag */
    } * values;
    int value_count;
    char *ids; /* memory for the id of each operand and value (sessions_resolve()) */
};

#define ARGS_ID_BYTES (ANNAL_SESSION_ID_BYTES_MAX + 1)

/* The options of every verb that works on a store; a NULL name ends them. */
extern const struct option args_common[];

int args_parse(struct args *args, int argc, char **argv);
void args_done(struct args *args);

/* Report that no verb is named `given` (if noun is not NULL, no verb of this noun), and suggest the
 * verb that was probably meant. Returns EXIT_USAGE. */
int args_fail_verb(const struct noun *noun, const char *given);

/* args_verb(): write the verb of the command line, such as "append" or "team send", to text, and
 * return text; "" without a verb. */
#define VERB_BYTES 64
const char *args_verb(const struct args *args, char text[VERB_BYTES]);

bool args_has(const struct args *args, const char *name);

/* Return the value of an option, or the operand of that name; the first one if there are several.
 * NULL if it was not given. */
const char *args_get(const struct args *args, const char *name);

/* Return how many bytes of the text a message may print: all, except in a URL, where a password may
 * follow "//". */
int args_shown(const char *text);

/* Return the next value of an option or operand that may have several; begin with *at = 0. NULL
 * after the last one. */
const char *args_next(const struct args *args, const char *name, int *at);

/* Read an option that is a whole number; *out is unchanged if it was not given. Returns 0 or
 * EXIT_USAGE. */
int args_number(const struct args *args, const char *name, uint64_t *out);

/* fields_parse_number() reads a text that consists of a whole number, fields_parse_time() of a
 * time; false if it does not. */
bool fields_parse_number(const char *text, uint64_t *out);
bool fields_parse_time(const char *text, int64_t *out_us);

/*
 * A range of times: since_us <= time < until_us; 0 stands for no bound. Every range of the command
 * line is read by the functions below, so adjacent ranges neither overlap nor leave a gap.
 *
 * A time before 1970-01-02, or later than a day from now, cannot be correct, so an event with such
 * a time has no place in an order by time. Therefore a range without an end ends a day from now,
 * and a range without a beginning begins on 1970-01-02, unless the given bound is itself such a
 * time.
 */
#define TIME_LEAST_US INT64_C(86400000000)
#define TIME_AHEAD_US INT64_C(86400000000)
struct time_range {
    int64_t since_us;
    int64_t until_us;
    bool has_since, has_until; /* whether the user gave since_us and until_us */
};

/* Read a range from two texts, either of which may be NULL. Returns false if one of them is not a
 * time. */
bool fields_parse_range(const char *since, const char *until, struct time_range *out);
bool fields_range_is_backward(const struct time_range *range);

/* Return whether --zone accepts this name. */
bool args_zone_is_known(const char *name);
bool fields_parse_amount(const char *text, double most, double *out);
