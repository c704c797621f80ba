/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verb of the command is made of, and the answers it can give.
 *
 * A verb is one file, cmd_<verb>.c, which defines one struct command; commands.c lists them. Its
 * options are a table, and its help is made from that table, so that help cannot promise what is
 * not there. Verbs behind a noun (annal team send) are rows of a table: verbs.h.
 */
#ifndef TOOLS_CLI_COMMAND_H
#define TOOLS_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* Exit status. docs/annal.1 promises these. */
enum {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1, /* refused, or the answer is no: a conflict, damage, wrong input */
    EXIT_USAGE = 2,   /* the command line is wrong */
    EXIT_STORAGE = 3  /* the store or the system failed, or there is no store */
};

struct option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* how help names its value, "N"; NULL: it has none */
    const char *help;  /* one line */
    bool repeatable;
};

struct args;
struct field;
struct verb_call;

struct command {
    const char *name;
    const char *summary;        /* one line, no full stop */
    const char *about;          /* paragraphs, lines of at most 78 columns */
    const char *examples;       /* lines, indented by two spaces */
    const struct field *fields; /* its operands and options: fields.h; NULL: it has none */
    bool no_store;              /* does not take --store and --json */
    bool takes_sql;             /* an operand may begin with a comment, as -- does */
    int (*run)(const struct args *args);

    /* Of a verb of two words: verbs.h. */
    const char *type;    /* of the event that verb_append() appends */
    const char *session; /* whose event it is: "team_{TEAM}", "_state" */
    const char *said;    /* the sentence for people: "sent {id} to team {TEAM}" */
    int (*prepare)(struct verb_call *call); /* before it is appended; 0 or an exit status */
    int (*finish)(struct verb_call *call);  /* prints in the place of said */
    const char *sql;                        /* that verb_select() asks */
};

extern const struct command cmd_append, cmd_cat, cmd_checkpoint, cmd_convert, cmd_delete, cmd_diff,
    cmd_fork, cmd_help, cmd_import, cmd_ls, cmd_query, cmd_reindex, cmd_search;
extern const struct command cmd_doctor, cmd_repair, cmd_replay, cmd_report, cmd_schema, cmd_serve,
    cmd_show, cmd_sql, cmd_stats, cmd_tail;
extern const struct command cmd_prune, cmd_vacuum, cmd_verify, cmd_version;

extern const struct command cmd_backup, cmd_export, cmd_pull, cmd_push, cmd_restore;

/* Every verb of one word, in the order in which help lists them; NULL ends it. In commands.c. */
extern const struct command *const commands[];

/* NULL when there is no such verb. */
const struct command *command_find(const char *name);

/* A noun of no pack is one file, too, and stands in nouns.c. */
struct noun;
extern const struct noun noun_artifact, noun_cursor, noun_home, noun_pack, noun_ship, noun_snapshot;

/* The options of a verb, one after another: begin with *at = 0; NULL when there are no more. */
const struct option *command_option(const struct command *command, int *at);

/* "a|b|c": the only values of an option; NULL: anything. */
const char *command_choices(const struct command *command, const struct option *option);

/* How many operands a verb takes; -1: any number. */
int command_operands_min(const struct command *command);
int command_operands_max(const struct command *command);

/*
 * The command, as main() runs it: argv[0] is its name, the words may be written to. The process is
 * its own: signals and the locale are set, standard streams are used, and what a verb keeps until
 * its process ends stays.
 */
int command_main(int argc, char **argv);

/* Print the help of one verb (noun NULL: of one word), of a noun, or of all, on stdout. */
void help_print_command(const struct noun *noun, const struct command *command);
void help_print_noun(const struct noun *noun);
void help_print_all(void);

#endif
