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

/* The kind of a value on the command line, and what it becomes in data. */
typedef enum annal_field_kind {
    ANNAL_FIELD_END = 0, /* ends a list of fields */
    ANNAL_FIELD_TEXT,    /* a string */
    ANNAL_FIELD_BODY,    /* a string; "-" reads standard input */
    ANNAL_FIELD_FILE,    /* the name of a file (or "-"), whose text becomes the string */
    ANNAL_FIELD_NUMBER,  /* a JSON number, with the digits that were given */
    ANNAL_FIELD_JSON,    /* a JSON value; @FILE and "-" read it */
    ANNAL_FIELD_FLAG,    /* true; an option without value */
    ANNAL_FIELD_LIST, /* an array of strings: the option is repeated, the operand takes the rest */
    ANNAL_FIELD_TIME, /* a time, or an age such as 2h: a string in our fixed width */
    ANNAL_FIELD_CONST /* always its preset; not on the command line */
} annal_field_kind;

/* An operand (name NULL), an option, or a constant (name and value NULL). */
typedef struct annal_field {
    annal_field_kind kind;
    const char *name;    /* name of an option, without the dashes */
    const char *value;   /* the name of the operand, or of the option's value: "TEAM" */
    const char *help;    /* one line; NULL: a constant */
    const char *to;      /* the member of data, "content" or "run.id"; NULL: not in data */
    const char *preset;  /* its value if it was not given, as JSON; NULL: nothing */
    const char *choices; /* "all|first|any": the only values; NULL: anything */
    bool required;
} annal_field;

typedef struct annal_verb {
    const char *name;
    const char *summary;  /* one line, no full stop */
    const char *about;    /* paragraphs; may be NULL, like all that follow */
    const char *examples; /* commands, indented by two spaces, each followed by a newline */
    const char *type;     /* type of the event that is appended */
    /* the session of the event, or whose databases are queried: "team_{TEAM}" */
    const char *session;
    const char *said;          /* the sentence for people: "sent {id} to team {TEAM}" */
    const char *sql;           /* the SELECT that runs; ?1, ?2, … are the fields in their order */
    const annal_field *fields; /* not NULL; ANNAL_FIELD_END ends them */
    unsigned line;             /* line of the pack's file in which it begins */
} annal_verb;

typedef struct annal_noun {
    const char *name;
    const char *summary;     /* one line, no full stop */
    const annal_verb *verbs; /* not NULL; one without a name ends them */
    unsigned line;
} annal_noun;

/* The nouns of a pack, in the order of its file; one without a name ends them. Valid as long as the
 * pack. */
ANNAL_API const annal_noun *annal_pack_nouns(const annal_pack *pack);

#ifdef __cplusplus
}
#endif

#endif
