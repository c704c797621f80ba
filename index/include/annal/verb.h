/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of packs: what `annal NOUN VERB` does, as the pack's own file defines it. Programs that
 * offer them in another way (a server, a tool of an agent) read them here. docs/packs.md describes
 * how they are written.
 */
#ifndef ANNAL_VERB_H
#define ANNAL_VERB_H

#include <annal/pack.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of a value on the command line, and the JSON value in data that is created from it. */
typedef enum annal_field_kind {
    ANNAL_FIELD_END = 0, /* not a field: it ends a list of fields */
    ANNAL_FIELD_TEXT,    /* a string */
    ANNAL_FIELD_BODY,    /* a string; "-" reads standard input */
    /* the name of a file (or "-" for standard input), whose text becomes the string */
    ANNAL_FIELD_FILE,
    ANNAL_FIELD_NUMBER, /* a JSON number, with the digits as given on the command line */
    /* a JSON value; with @FILE or "-" the value is read from a file or standard input */
    ANNAL_FIELD_JSON,
    ANNAL_FIELD_FLAG, /* the value true; on the command line an option without a value */
    /* an array of strings: an option may be repeated; an operand takes all remaining arguments */
    ANNAL_FIELD_LIST,
    ANNAL_FIELD_TIME, /* a time, or an age such as 2h: a string of fixed width */
    ANNAL_FIELD_CONST /* the preset of the field; it cannot be given on the command line */
} annal_field_kind;

/* An operand (name NULL), an option, or a constant (name and value NULL). */
typedef struct annal_field {
    annal_field_kind kind;
    const char *name;  /* name of an option, without the dashes */
    const char *value; /* name of the operand, or of the option's value: "TEAM" */
    const char *help;  /* description in one line; NULL: the field is a constant */
    const char
        /* path in the event's data at which the value is stored, such as "content" or "run.id";
         * NULL: the value is not stored in data */
        *to;
    const char *preset; /* default value, as JSON; NULL: none */
    /* only allowed values: "all|first|any" of a text or a list, "1..100" of a number; NULL: any */
    const char *choices;
    bool required;
} annal_field;

typedef enum annal_verb_kind {
    ANNAL_VERB_NONE = 0,
    ANNAL_VERB_APPENDS, /* append an event */
    ANNAL_VERB_EACH,    /* append an event for each row of sql, whose columns are session and data,
                         * and perhaps says and subject */
    ANNAL_VERB_SELECTS, /* print the rows of sql */
    ANNAL_VERB_LINES,   /* the same; people see only the last column, a text */
    ANNAL_VERB_WRITES,  /* write the rows of sql as files below the operand DIR: folder, name,
                         * suffix, content */
    ANNAL_VERB_RUNS     /* run code of the command annal */
} annal_verb_kind;

typedef struct annal_verb {
    annal_verb_kind kind;
    const char *name;
    const char *summary; /* description of the verb in one line, without a full stop */
    /* description in paragraphs; may be NULL, like all members that follow unless noted */
    const char *about;
    const char *examples; /* commands, indented by two spaces, each followed by a newline */
    const char *type;     /* type of the event that is appended */
    /* session of the event, or session whose databases are queried: "team_{TEAM}" */
    const char *session;
    const char *said;          /* sentence that is printed for people: "sent {id} to team {TEAM}" */
    const char *none;          /* sentence for the case that the SELECT returns no row */
    const char *needs;         /* another pack that must be enabled */
    const char *sql;           /* the SELECT that runs; ?1, ?2, … are the fields in their order */
    unsigned params;           /* number of the last of these that sql uses; 0: none */
    const annal_field *fields; /* fields of the verb, ended by ANNAL_FIELD_END; not NULL */
    unsigned line;             /* line of the pack's file in which the verb begins */
} annal_verb;

typedef struct annal_noun {
    const char *name;
    const char *summary;     /* description of the noun in one line, without a full stop */
    const annal_verb *verbs; /* verbs, ended by a verb without a name; not NULL */
    unsigned line;
} annal_noun;

/* Return the nouns of a pack, in the order of its file, ended by a noun without a name. Valid as
 * long as the pack. */
ANNAL_API const annal_noun *annal_pack_nouns(const annal_pack *pack);

#ifdef __cplusplus
}
#endif

#endif
