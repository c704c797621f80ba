/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed pack, for the files of this folder. */
#ifndef INDEX_PACK_PACK_H
#define INDEX_PACK_PACK_H

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
    PACK_NOUN, /* and what follows is for the command: it runs for no event */
    PACK_VERB
};

/*
 * One section of a pack. Lists are strings, each followed by a NUL, with an empty one at the end.
 */
struct pack_section {
    enum pack_section_kind kind;
    char *types; /* one or more; none for PACK_FORGET, PACK_SETTLE, PACK_NOUN and PACK_VERB */
    char *guard; /* the sentence of its guard, or NULL */
    /* PACK_ON, PACK_FILL: sessions, "name*", "$field", "name$field"; NULL: only its own */
    char *reads;
    char *field;         /* PACK_ARTIFACT: of data, "output" or "result::text" */
    uint64_t over_bytes; /* PACK_ARTIFACT */
    char *head;          /* PACK_NOUN, PACK_VERB: their line, as pack_verbs.c cut it */
    char *sql;           /* PACK_ARTIFACT: only comments */
    unsigned line;       /* where sql begins, 1 for the first line of the file */
};

/* The pages of a state in which nothing happened: the tables of a pack. */
struct pack_blank {
    uint64_t count;
    char pages[]; /* of ANNAL_STATE_PAGE_BYTES */
};

struct annal_pack {
    char *name;
    char *database; /* a path with at most one *, relative to folder */
    char *folder;   /* below the store; NULL: the store itself */
    char *sessions; /* a glob with at most one *; NULL: all */
    char *cluster;  /* "GLOB, GLOB": the stores of a cluster share these; NULL: none */
    bool writable;  /* the plain sqlite3 shell may write its tables */
    bool tried;     /* built in: its SQL needs no check, and a section is compiled when needed */
    char *file;     /* its name in messages */
    char *tables;   /* the SQL above the first section */
    unsigned tables_line;
    char *own; /* the names of tables and views that `tables` creates; a list */
    uint32_t version;
    uint64_t hash;          /* of the text without verbs */
    uint64_t tables_hash;   /* of what creates the tables */
    uint64_t handlers_hash; /* of what fills them: PACK_ON and PACK_SETTLE */
    struct pack_section *sections;
    size_t section_count;
    /* built in: filled by the first state, copied by all others; see state.c */
    struct pack_blank *_Atomic *blank;
    struct annal_noun *nouns; /* one without a name ends them */
};

/* Read a pack's text; it is not known yet whether its SQL is right. See annal_pack_parse(). */
annal_status annal__pack_read(const char *name, annal_slice text, annal_pack **out_pack,
                              annal_error *err);

/*
 * Of a file that has an error: append the types that it guards or fills to list, each with a NUL.
 * What cannot be read for certain counts as guarded.
 */
annal_status annal__pack_guarded(annal_slice bytes, struct buf *list, annal_error *err);

/* Whether a section is for events of this type. */
bool annal__section_takes(const struct pack_section *section, annal_slice type);

/* Whether it has the form of a field of data after the $ of a parameter: run::id. */
bool annal__is_field(annal_slice word);

/* Whether it has a `-- forget` section: a pack without one is rebuilt if a journal is gone. */
bool annal__pack_forgets(const annal_pack *pack);

/* Whether it has a `-- settle` section. */
bool annal__pack_settles(const annal_pack *pack);

/* The next word of a line, or a comma, or a sentence with its quotes; empty at the end. */
annal_slice annal__take_word(annal_slice *rest);

/* ---- pack_header.c ---- */

/* Read the first line of a pack. */
annal_status annal__parse_header(annal_pack *pack, annal_slice line, annal_error *err);

/* Whether it has the form of a session's id, with at most one * in it. */
bool annal__is_glob(annal_slice word);

/* At most eight digits. */
bool annal__parse_number(annal_slice word, uint32_t *out);

/*
 * Whether the events of a session are fed to the pack. *out_star (may be NULL) is what the * of its
 * glob matches, or empty: a file name, never hidden, never "..".
 */
bool annal__pack_feeds(const annal_pack *pack, annal_slice session, annal_slice *out_star);

/* Whether the stores of a cluster share this session: `scope cluster`. */
bool annal__pack_shares(const annal_pack *pack, annal_slice session);

/*
 * Whether a path, relative to the store, leads to something that belongs to the store itself
 * (events/, packs/, sessions.db, …); a * in its first name is replaced by star.
 */
bool annal__path_is_kept(annal_slice path, annal_slice star);

/* ---- pack_verbs.c ---- */

/* Whether it is a line that belongs to the verb above it. */
bool annal__is_verb_line(annal_slice line);

/* Make the nouns of the sections that were read; call annal__pack_free_verbs() in either case. */
annal_status annal__pack_read_verbs(annal_pack *pack, annal_error *err);
void annal__pack_free_verbs(annal_pack *pack);

/* Whether the SELECTs of its verbs can be run, with the pack's tables in main. */
annal_status annal__pack_check_verbs(const annal_pack *pack, sqlite3 *db, annal_error *err);

/* ---- pack_sql.c ---- */

/* Find what the tables' part creates, and the hashes of the parts: the last step of reading. */
annal_status annal__pack_read_sql(annal_pack *pack, annal_error *err);

/* Create the pack's tables. */
annal_status annal__pack_make_tables(const annal_pack *pack, sqlite3 *db, annal_error *err);

/* As above, with clock and random functions failing: on a database in memory, before it is done
 * anywhere else. */
annal_status annal__pack_try_tables(const annal_pack *pack, sqlite3 *db, annal_error *err);

/*
 * Prepare the next statement of a section: *at is moved after it, and *out_stmt is NULL at the end.
 * Messages name file and line.
 */
annal_status annal__pack_next_statement(const annal_pack *pack, const struct pack_section *section,
                                        const char **at, sqlite3 *db, sqlite3_stmt **out_stmt,
                                        annal_error *err);

/* ---- builtin.c ---- */

/* The text of a pack that is built in; NULL if there is none of that name. core is one. */
const char *annal__builtin_pack(const char *name);
/* Name number i, NULL at the end. */
const char *annal__builtin_name(size_t i);

#endif
