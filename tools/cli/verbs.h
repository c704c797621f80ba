/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs of two words, such as `annal team send`: rows of a table, most of them without code.
 *
 * A noun (team) has a list of verbs (send), each a struct command with a table of fields. A field
 * is an operand or an option, and names the member of an event's data that it fills; help,
 * completion and the checks of the command line are generated from the same table. The function in
 * `run` makes these kinds of verbs:
 *
 *     verb_append   one event of type, in the session that the template says, through the guards of
 *                   the packs; then one sentence, or with --json
 *                   {"session_id":…,"seq":…,"type":…,"data":{…}}
 *     verb_select   the rows of a SELECT: a table, or with --json one object a line
 *     verb_lines    the same, but people see only the last column
 *     verb_append_each, verb_write_files
 *                   an event for each row of the SELECT, or its rows as files
 *     a function    of its own, which may use verb_open(), verb_post() and verb_close()
 *
 * The verbs of a pack are data in its SQL file (index/pack/pack_verbs.c), from which nouns.c builds
 * the tables. The code of those that need some is found by their names:
 *
 *     const struct verb_code team_code[] = {
 *         {"team", "send", .prepare = prepare_send}, {"team", "show", .run = run_show},
 *         {.noun = NULL}};
 *
 * Nouns of the command itself (pack, snapshot, artifact, cursor) are tables in C:
 *
 *     static const struct field cursor_fields[] = {
 *         OPERAND("CURSOR", FIELD_TEXT, NULL, "name of the cursor"), FIELDS_END};
 *
 *     static const struct command verbs[] = {
 *         {.name = "drop", .summary = "forget a cursor", HELP(cursor_drop),
 *          .fields = cursor_fields, .run = drop},
 *         {0}};
 *
 *     const struct noun noun_cursor = {.name = "cursor", .summary = "…", .verbs = verbs};
 *
 * HELP(cursor_drop) is the text and the examples in help/cursor_drop.txt (cmake/EmbedHelp.cmake).
 */
#pragma once

#include "tools/cli/fields.h"

#include <annal/journal.h>
#include <annal/query.h>

struct noun {
    const char *name;
    const char *summary;         /* one line without a full stop */
    const char *pack;            /* pack that must be enabled in the store; NULL for none */
    bool of_user;                /* whether the pack is a file in the store */
    const struct command *verbs; /* verbs of the noun; {0} ends them */
    /* name of the verb that is meant if none is given; NULL for none */
    const char *usual;
};

/* The options of every verb that appends an event; a NULL name ends them. */
extern const struct option verb_common[];

/* ---- Nouns: nouns.c ---- */

/* Set the store in which users' packs are looked up; NULL for the default store. The text must
 * remain valid. */
void nouns_look_in(const char *store);

/* Return noun number i in the order of help; NULL after the last one. */
const struct noun *noun_at(size_t i);

/* Find a noun by name; NULL if it is unknown. noun_find_built_in() finds only nouns that exist in
 * every store. */
const struct noun *noun_find(const char *name);
const struct noun *noun_find_built_in(const char *name);

/* Return whether the noun can be used: it belongs to no pack, or its pack is enabled in the
 * store. */
bool noun_is_on(const struct noun *noun);

const struct command *noun_verb(const struct noun *noun, const char *name);

/* The functions of a verb that a pack declares. */
struct verb_code {
    const char *noun, *verb; /* names of the noun and the verb; a NULL noun ends a table */
    int (*prepare)(struct verb_call *call);
    int (*finish)(struct verb_call *call);
    int (*run)(const struct args *args);
};

extern const struct verb_code agentweaver_code[], lionagi_code[], note_code[], prose_code[],
    team_code[];

/* All tables of functions of verbs that packs declare; NULL ends them. Defined in commands.c. */
extern const struct verb_code *const verb_codes[];

/* ---- The command line of a verb ---- */

/* Append a file to out; path "-" is standard input. Returns 0 or an exit status. */
int verb_read_file(const char *path, struct buf *out);

/* Write a session id from a template such as "team_{TEAM}" or "_state" to out; {NAME} is replaced
 * by that operand or option. Returns 0 or an exit status. */
int verb_session_id(const struct args *args, const char *template, char *out, size_t size);

/* ---- A running verb ---- */

struct verb_member;

struct verb_call {
    const struct args *args;
    annal_store *store;
    annal_index *index;
    const annal_decider *decider;
    uint32_t wait_ms; /* longest wait for other processes, in ms */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    const char *type;
    struct verb_member *members; /* members of the event's data, in their order there */
    size_t member_count;

    /* Set by verb_post(): */
    uint64_t seq;
    annal_slice data; /* data of the appended event, with the members that packs added */
};

/*
 * Open the store and the index for a verb, and check that the pack of its noun is enabled. Sets
 * session, type and members from the command line and the verb's table; prepare() may change them.
 * Returns 0 or an exit status; call verb_close() in either case.
 */
int verb_open(struct verb_call *call, const struct args *args);

/* Set the member `to` of the event's data: verb_set() to a JSON value, verb_set_text() to a string.
 * An earlier value is replaced. "run.id" is a member of the object "run". */
void verb_set(struct verb_call *call, const char *to, annal_slice json);
void verb_set_text(struct verb_call *call, const char *to, annal_slice text);

/* Return the current value of the member `to` of the event's data as JSON; empty if it is not set.
 * Valid until the member is set again. */
annal_slice verb_member(const struct verb_call *call, const char *to);

/* Set the session of the event, instead of the one from the template. Returns 0 or an exit
 * status. */
int verb_set_session(struct verb_call *call, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Append the event with call->type and the members to call->session. Returns 0 or an exit
 * status. */
int verb_post(struct verb_call *call);

/* As verb_post(), but return the error instead of printing it. */
annal_status verb_try(struct verb_call *call, annal_error *err);

/* Append several drafts of the caller, all or none, to call->session. */
annal_status verb_try_all(struct verb_call *call, const annal_draft *drafts, size_t count,
                          annal_error *err);

/* Print what was appended. For people, print the sentence `said`: {id} is replaced by that member
 * of data, {TEAM} by that operand or option, {seq} and {session_id} by those of the event. */
void verb_print(const struct verb_call *call);

/* Close what verb_open() opened. Returns exit_status, or another one if closing failed. */
int verb_close(struct verb_call *call, int exit_status);

/* ---- Functions for struct command's run ---- */

/* Append one event: call verb_open(), prepare(), verb_post(), then finish() or verb_print(), and
 * verb_close(). */
int verb_append(const struct args *args);

/* Print the rows of the verb's SELECT. Its parameters ?1, ?2, … are the fields in the order of
 * the table: texts, numbers, 1 or NULL for a flag; a list is a JSON array. */
int verb_select(const struct args *args);
int verb_lines(const struct args *args);
int verb_append_each(const struct args *args);
int verb_write_files(const struct args *args);
