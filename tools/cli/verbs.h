/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs of two words, such as `annal team send`: rows of a table, most of them without code.
 *
 * A noun (team) has a list of verbs (send), each a struct command with a table of fields. A field
 * is an operand or an option, and says which member of an event's data it fills; help, completion
 * and the checks of the command line are made from the same table. There are three kinds of verbs,
 * by what run is:
 *
 *     verb_append   one event of type, in the session that the template says, through the guards of
 *                   the packs; then one sentence, or with --json
 *                   {"session_id":…,"seq":…,"type":…,"data":{…}}
 *     verb_select   the rows of a SELECT: a table, or with --json one object a line
 *     a function    of its own, which may use verb_open(), verb_post() and verb_close()
 *
 * The verbs of a pack are said in its SQL file (index/pack/pack_verbs.c), and nouns.c makes the
 * tables. The code of those that need some is found by their names:
 *
 *     const struct verb_code team_code[] = {
 *         {"team", "send", .prepare = prepare_send}, {"team", "show", .run = run_show},
 *         {.noun = NULL}};
 *
 * Nouns of the command itself (pack, snapshot, artifact, cursor) are tables in C:
 *
 *     static const struct field cursor_fields[] = {
 *         OPERAND("CURSOR", FIELD_TEXT, NULL, "its name"), FIELDS_END};
 *
 *     static const struct command verbs[] = {
 *         {.name = "drop", .summary = "forget a cursor", .about = "…",
 *          .examples = "  annal cursor drop billing\n", .fields = cursor_fields, .run = drop},
 *         {0}};
 *
 *     const struct noun noun_cursor = {.name = "cursor", .summary = "…", .verbs = verbs};
 */
#ifndef TOOLS_CLI_VERBS_H
#define TOOLS_CLI_VERBS_H

#include "tools/cli/fields.h"

#include <annal/journal.h>
#include <annal/query.h>

struct noun {
    const char *name;
    const char *summary;         /* one line, no full stop */
    const char *pack;            /* that must be on in the store; NULL: none */
    bool of_user;                /* the pack is a file in the store */
    const struct command *verbs; /* {0} ends them */
    const char *usual;           /* the verb that is meant where none is named; NULL: none */
};

/* The options that every verb with an event takes; a NULL name ends them. */
extern const struct option verb_common[];

/* ---- Which nouns there are: nouns.c ---- */

/* Where packs of users are looked for: a directory; NULL: the default place. The text must stay. */
void nouns_look_in(const char *store);

/* Every noun, in the order in which help lists them; NULL behind the last. */
const struct noun *noun_at(size_t i);

/* NULL: there is none. And one that is there in every store. */
const struct noun *noun_find(const char *name);
const struct noun *noun_find_built_in(const char *name);

/* Whether its pack is on in the store; if there is no store, only those of no pack are. */
bool noun_is_on(const struct noun *noun);

const struct command *noun_verb(const struct noun *noun, const char *name);

/* The code of a verb that a pack says. */
struct verb_code {
    const char *noun, *verb; /* NULL ends a table */
    int (*prepare)(struct verb_call *call);
    int (*finish)(struct verb_call *call);
    int (*run)(const struct args *args);
};

extern const struct verb_code agentweaver_code[], lionagi_code[], prose_code[], team_code[];

/* Every such table; NULL ends it. In commands.c. */
extern const struct verb_code *const verb_codes[];

/* ---- The command line of a verb ---- */

/* All of a file, or of standard input when path is "-", behind out; 0 or an exit status. */
int verb_read_file(const char *path, struct buf *out);

/* A session id made from a template, "team_{TEAM}", "_state"; 0 or an exit status. */
int verb_session_id(const struct args *args, const char *template, char *out, size_t size);

/* ---- A verb at work ---- */

struct verb_member;

struct verb_call {
    const struct args *args;
    annal_store *store;
    annal_index *index;
    const annal_decider *decider;
    uint32_t wait_ms; /* for other processes */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    const char *type;
    struct verb_member *members; /* of data, as they will be appended */
    size_t member_count;

    /* After verb_post(): */
    uint64_t seq;
    annal_slice data; /* as appended, with what the packs put in */
};

/*
 * Open store and index of a verb, and see to it that its noun's pack is on; session, type and
 * members come from the command line and the table. 0 or an exit status; verb_close() in either
 * case. A prepare function gets a call in this state, and may change it.
 */
int verb_open(struct verb_call *call, const struct args *args);

/* That a further pack is on (NULL: none is asked for). 0, or an exit status after one line. */
int verb_need_pack(const struct verb_call *call, const char *pack);

/* Put a member into data, in the place of one that is there: JSON, or a string. "run.id" is a
 * member of the object "run". 0 or an exit status. */
int verb_set(struct verb_call *call, const char *to, annal_slice json);
int verb_set_text(struct verb_call *call, const char *to, annal_slice text);

/* What data holds so far, as JSON; an empty slice: nothing. It lives until it is set anew. */
annal_slice verb_member(const struct verb_call *call, const char *to);

/* Another session than the template says. 0 or an exit status. */
int verb_set_session(struct verb_call *call, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Append the event: call->type, call->session and data. 0 or an exit status. */
int verb_post(struct verb_call *call);

/* The same, for those who know what to do about a refusal: nothing is said. */
annal_status verb_try(struct verb_call *call, annal_error *err);

/* Several events of one's own making, all or none, to call->session. */
annal_status verb_try_all(struct verb_call *call, const annal_draft *drafts, size_t count,
                          annal_error *err);

/* Print what was appended: for people the sentence said, in which {id} stands for that member of
 * data, {TEAM} for that operand or option, {seq} and {session_id} for themselves. */
void verb_print(const struct verb_call *call);

/* Close what verb_open() opened; the exit status stays unless closing failed. */
int verb_close(struct verb_call *call, int exit_status);

/* ---- For struct command's run ---- */

/* verb_open(), prepare, verb_post(), finish or verb_print(), verb_close(). */
int verb_append(const struct args *args);

/* The rows of the verb's SELECT; ?1, ?2, … are its fields in the order of the table, as text,
 * numbers and 1 or NULL; a list is a JSON array. */
int verb_select(const struct args *args);

#endif
