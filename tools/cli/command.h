/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verb of the command: its tables, its functions and its exit statuses.
 *
 * A single-word verb is a file, cmd_<verb>.c, which defines a struct command; commands.c lists
 * them. A table defines its options, and help is generated from the table, so that help cannot
 * mention an option that does not exist. Verbs of two words (annal team send) are rows of a table:
 * verbs.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Exit status. docs/annal.1 promises these values. */
enum {
    EXIT_DONE = 0,
    /* a request was refused, or the answer is negative: a conflict, damage, wrong input */
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,  /* the command line is wrong */
    EXIT_STORAGE = 3 /* the store or the system failed, or the store is missing */
};

struct option {
    const char *name;  /* name without the dashes; NULL ends a table */
    const char *value; /* name of the option's value in help texts, such as "N"; NULL for a flag */
    const char *help;  /* text for help, in one line */
    bool repeatable;
};

struct args;
struct field;
struct verb_call;

struct command {
    const char *name;
    const char *summary;        /* one line without a full stop */
    const char *about;          /* paragraphs, in lines of at most 78 columns */
    const char *examples;       /* lines with an indentation of two spaces */
    const struct field *fields; /* operands and options (fields.h); NULL without any */
    bool no_store;              /* whether the verb does not accept --store and --json */
    /* whether an operand may begin with "--", as a comment in SQL does */
    bool takes_sql;
    int (*run)(const struct args *args);

    /* The members below are only for verbs of two words (verbs.h). */
    /* type of the event that verb_append() appends, or NULL */
    const char *type;
    /* template of the session id of the event, such as "team_{TEAM}" or "_state" */
    const char *session;
    /* sentence that is printed for people, such as "sent {id} to team {TEAM}" */
    const char *said;
    const char *none;  /* sentence for the case that the SELECT returns no row, or NULL */
    const char *needs; /* another pack that must be enabled, or NULL */
    /* called before the append; returns 0 or an exit status; may be NULL */
    int (*prepare)(struct verb_call *call);
    int (*finish)(struct verb_call *call); /* prints the result in place of said; may be NULL */
    const char *sql;                       /* SELECT that verb_select() runs, or NULL */
    unsigned params;                       /* number of its last parameter */
};

extern const struct command cmd_append, cmd_cat, cmd_checkpoint, cmd_convert, cmd_delete, cmd_diff,
    cmd_fork, cmd_help, cmd_import, cmd_ls, cmd_query, cmd_reindex, cmd_search, cmd_fix, cmd_how;
extern const struct command cmd_doctor, cmd_repair, cmd_replay, cmd_report, cmd_schema, cmd_serve,
    cmd_show, cmd_sql, cmd_stats, cmd_tail, cmd_watch;
extern const struct command cmd_prune, cmd_vacuum, cmd_verify, cmd_version;

extern const struct command cmd_backup, cmd_blame, cmd_export, cmd_handoff, cmd_log, cmd_mcp,
    cmd_acp, cmd_pull, cmd_push, cmd_restore;

/* All single-word verbs, in the order of help; NULL ends them. Defined in commands.c. */
extern const struct command *const commands[];

/* Find a single-word verb; NULL if it does not exist. */
const struct command *command_find(const char *name);

/* The nouns of the command, such as `snapshot`, that do not belong to a pack. Each has a file of
 * its own, and is listed in nouns.c. */
struct noun;
extern const struct noun noun_artifact, noun_cursor, noun_home, noun_pack, noun_ship, noun_snapshot,
    noun_source;

/* Return the next option of a verb; begin with *at = 0. NULL after the last one. */
const struct option *command_option(const struct command *command, int *at);

/* Return the values that an option accepts, as "a|b|c"; NULL if it accepts any. */
const char *command_choices(const struct command *command, const struct option *option);

/* Return how many operands a verb must have (command_operands_min()), and how many it may have
 * (command_operands_max(), -1 for any number). */
int command_operands_min(const struct command *command);
int command_operands_max(const struct command *command);

/*
 * Run the command, as main() does; argv[0] is its name. It may change the texts of argv, sets
 * signals and the locale, uses the standard streams, and does not free memory that verbs keep until
 * the process ends. Returns the exit status.
 */
int command_main(int argc, char **argv);

/* Print help on stdout: help_print_command() for one verb (noun is NULL for a single-word verb),
 * help_print_noun() for a noun, help_print_all() for everything. */
void help_print_command(const struct noun *noun, const struct command *command);
void help_print_noun(const struct noun *noun);
void help_print_all(void);
