/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed pack, for the files of this folder. */
#pragma once

#include "index/db/shape.h"

#include <annal/pack.h>

#include <sqlite3.h>
#include <stdatomic.h>

struct annal_noun;
struct buf;

enum pack_section_kind {
    PACK_ON,
    PACK_FILL,
    PACK_FORGET,
    PACK_ARTIFACT,
    PACK_SETTLE,
    PACK_NOUN, /* like PACK_VERB, used by the command annal only: it runs for no event */
    PACK_VERB
};

/*
 * One section of a pack. Lists are strings, each followed by a NUL, with an empty string at the
 * end.
 */
struct pack_section {
    enum pack_section_kind kind;
    /* one or more types; empty for PACK_FORGET, PACK_SETTLE, PACK_NOUN and PACK_VERB */
    char *types;
    char *guard; /* sentence of the section's guard, or NULL */
    /* for PACK_ON and PACK_FILL: other sessions that its SQL reads, "name", "name*", "$field" or
     * "name$field"; NULL: only the event's own session */
    char *reads;
    /* for PACK_ON: it runs only if a condition of this list holds, "$field" or "$field=text"; NULL:
     * always */
    char *when;
    char *field; /* PACK_ARTIFACT: field of data, "output" or "result::text" */
    /* for PACK_ARTIFACT: a field with more bytes is moved into an artifact */
    uint64_t over_bytes;
    /* for PACK_NOUN and PACK_VERB: the head line of the section, cut by pack_verbs.c */
    char *head;
    char *sql;     /* SQL of the section; for PACK_ARTIFACT only comments */
    unsigned line; /* line of the file in which sql begins, counted from 1 */
};

/* The database pages of an empty state: the tables of a pack without rows. */
struct pack_blank {
    uint64_t count;
    char pages[]; /* `count` pages, each of ANNAL_STATE_PAGE_BYTES */
};

struct annal_pack {
    char *name;
    char *database; /* path of its database, with at most one *, relative to folder */
    /* folder of its database, relative to the store or absolute; NULL: the store itself */
    char *folder;
    char *sessions; /* glob of the sessions whose events it reads, with at most one *; NULL: all */
    /* "GLOB, GLOB" of the sessions that the stores of a cluster share; NULL: none */
    char *cluster;
    bool writable; /* whether the plain sqlite3 shell may write its tables */
    /* whether the pack is built in: its SQL needs no check, and a section is compiled when it first
     * runs */
    bool tried;
    char *file;   /* name of the pack's file, for messages */
    char *tables; /* SQL above the first section, which creates the pack's tables */
    unsigned tables_line;
    char *own; /* list of the names of tables and views that `tables` creates */
    /* objects that tables creates; empty for a built-in pack that is not enabled */
    struct shape shape;
    uint32_t version;
    uint64_t hash;          /* hash of the pack's text without the verbs */
    uint64_t tables_hash;   /* hash of the text that creates the tables */
    uint64_t handlers_hash; /* hash of the sections that fill the tables: PACK_ON and PACK_SETTLE */
    struct pack_section *sections;
    size_t section_count;
    /* the pages of an empty state, for a built-in pack: the first state fills them, all others copy
     * them; see state.c */
    struct pack_blank *_Atomic *blank;
    struct annal_noun *nouns; /* nouns of the pack, ended by a noun without a name */
};

/* Read a pack's text, without checking its SQL. See annal_pack_parse(). */
annal_status annal__pack_read(const char *name, annal_slice text, annal_pack **out_pack,
                              annal_error *err);

/*
 * Append the types that a file with an error guards or fills to list, each with a NUL. Types that
 * cannot be read with certainty are included.
 */
annal_status annal__pack_guarded(annal_slice bytes, struct buf *list, annal_error *err);

/* ---- pack_words.c ---- */

/* Return whether a character separates words. */
bool annal__pack_is_space(char c);

/* Remove the next word from the beginning of a line, or a comma, or a sentence with its quotes;
 * empty at the end. */
annal_slice annal__pack_take_word(annal_slice *rest);

/* Return whether a word is a path of file names, none of them hidden, with at most `stars`
 * stars. */
bool annal__pack_is_path(annal_slice word, unsigned stars);

/* Return whether a word can be a field of data after the $ of a parameter: run::id. */
bool annal__pack_is_field(annal_slice word);

/* Return whether a word can be a session id, with at most one * in it. */
bool annal__pack_is_glob(annal_slice word);

/* Parse a number of at most eight digits. */
bool annal__pack_parse_number(annal_slice word, uint32_t *out);

/*
 * Return whether a path, relative to the store, leads to a file of the store itself
 * (events/, packs/, sessions.db, …). A * in its first name is replaced by star.
 */
bool annal__pack_path_is_kept(annal_slice path, annal_slice star);

/* ---- pack_model.c ---- */

/* Return whether a section is for events of this type. */
bool annal__pack_section_takes(const struct pack_section *section, annal_slice type);

/*
 * Return whether the pack has a `-- forget` section: a pack without this section is rebuilt if a
 * journal was deleted.
 */
bool annal__pack_forgets(const annal_pack *pack);

/* Return whether the pack has a `-- settle` section. */
bool annal__pack_settles(const annal_pack *pack);

/*
 * Return whether the events of a session are fed to the pack. *out_star (may be NULL): the text
 * that the * of its glob matches, or empty; if FILE contains a *, sessions for which the text is
 * not a valid file name (hidden, or "..") are not fed.
 */
bool annal__pack_feeds(const annal_pack *pack, annal_slice session, annal_slice *out_star);

/* Return whether the pack declares this session as shared by the stores of a cluster (`scope
 * cluster`). */
bool annal__pack_shares(const annal_pack *pack, annal_slice session);

/*
 * Return the name in SQL of the database of a pack at this path: state for state.db. Databases that
 * users write are in folders of their own, and several may have the same file name, so their name
 * in SQL is that of their pack, prose_agents. The caller frees it; NULL: memory ran out.
 */
char *annal__pack_stem(const annal_pack *pack, const char *path);

/* ---- pack_header.c ---- */

/* Read the first line of a pack. */
annal_status annal__pack_parse_header(annal_pack *pack, annal_slice line, annal_error *err);

/* ---- pack_verbs.c ---- */

/* Return whether a line belongs to the section of the verb above it. */
bool annal__pack_is_verb_line(annal_slice line);

/*
 * Create the nouns and verbs from the sections that were read. Call annal__pack_free_verbs() even
 * after a failure.
 */
annal_status annal__pack_read_verbs(annal_pack *pack, annal_error *err);
void annal__pack_free_verbs(annal_pack *pack);

/* Check that the SELECTs of the pack's verbs can run, with the pack's tables in the database
 * main. */
annal_status annal__pack_check_verbs(const annal_pack *pack, sqlite3 *db, annal_error *err);

/* ---- pack_sql.c ---- */

/* Find the objects that the SQL of the tables creates, and compute the hashes of the parts: the
 * last step of reading a pack. */
annal_status annal__pack_read_sql(annal_pack *pack, annal_error *err);

/* Create the tables of a pack in the database db. */
annal_status annal__pack_make_tables(const annal_pack *pack, sqlite3 *db, annal_error *err);

/*
 * Create the pack's tables in a database in memory, with clock and random functions failing, before
 * they are created anywhere else.
 */
annal_status annal__pack_try_tables(const annal_pack *pack, sqlite3 *db, annal_error *err);

/*
 * Prepare the next statement of a section: *at is moved after it; after the last statement
 * *out_stmt is NULL. Messages name file and line.
 */
annal_status annal__pack_next_statement(const annal_pack *pack, const struct pack_section *section,
                                        const char **at, sqlite3 *db, sqlite3_stmt **out_stmt,
                                        annal_error *err);

/* ---- builtin.c ---- */

/* Return the text of a built-in pack (including core), or NULL if there is no pack with this
 * name. */
const char *annal__builtin_pack(const char *name);
/* Return the name of built-in pack number i, or NULL if i is the number of packs. */
const char *annal__builtin_name(size_t i);
