/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verb of the command: its tables, its functions and its exit statuses.
 *
 * A verb is one file, cmd_<verb>.c, which defines one struct command; commands.c lists them. Its
 * options are a table. Its help is generated from that table, so that help cannot promise a missing
 * option. Verbs of a noun (annal team send) are rows of a table: verbs.h.
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
    EXIT_STORAGE = 3  /* the store or the system failed, or the store is missing */
};

struct option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* name of its value in help, "N"; NULL: no value */
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
    const struct field *fields; /* operands and options: fields.h; NULL: none */
    bool no_store;              /* without --store and --json */
    bool takes_sql;             /* an operand may begin with "--", as SQL comments do */
    int (*run)(const struct args *args);

    /* The members below are for verbs of two words, see verbs.h. */
    const char *type;                       /* type of the event that verb_append() appends */
    const char *session;                    /* session of the event: "team_{TEAM}", "_state" */
    const char *said;                       /* sentence for people: "sent {id} to team {TEAM}" */
    int (*prepare)(struct verb_call *call); /* called before the append; 0 or an exit status */
    int (*finish)(struct verb_call *call);  /* prints instead of said */
    const char *sql;                        /* query of verb_select() */
};

extern const struct command cmd_append, cmd_cat, cmd_checkpoint, cmd_convert, cmd_delete, cmd_diff,
    cmd_fork, cmd_help, cmd_import, cmd_ls, cmd_query, cmd_reindex, cmd_search;
extern const struct command cmd_doctor, cmd_repair, cmd_replay, cmd_report, cmd_schema, cmd_serve,
    cmd_show, cmd_sql, cmd_stats, cmd_tail, cmd_watch;
extern const struct command cmd_prune, cmd_vacuum, cmd_verify, cmd_version;

extern const struct command cmd_backup, cmd_export, cmd_pull, cmd_push, cmd_restore;

/* Every verb of one word, in the order of help; NULL ends it. In commands.c. */
extern const struct command *const commands[];

/* Find a verb; NULL if it does not exist. */
const struct command *command_find(const char *name);

/* A noun without a pack has its own file, too, and is listed in nouns.c. */
struct noun;
extern const struct noun noun_artifact, noun_cursor, noun_home, noun_pack, noun_ship, noun_snapshot,
    noun_source;

/* Read the next option of a verb: begin with *at = 0; NULL at the end. */
const struct option *command_option(const struct command *command, int *at);

/* The only values of an option, "a|b|c"; NULL: anything. */
const char *command_choices(const struct command *command, const struct option *option);

/* Count the operands that a verb accepts; -1: any number. */
int command_operands_min(const struct command *command);
int command_operands_max(const struct command *command);

/*
 * Run the command, as main() does: argv[0] is its name, and the words may be written to. It takes
 * the process over: it sets signals and the locale, uses the standard streams, and leaves what a
 * verb keeps until the process ends.
 */
int command_main(int argc, char **argv);

/* Print the help of one verb (noun NULL: of one word), of a noun, or of everything, on stdout. */
void help_print_command(const struct noun *noun, const struct command *command);
void help_print_noun(const struct noun *noun);
void help_print_all(void);

#endif
