/* SPDX-License-Identifier: Apache-2.0 */
/* Packs at work: in memory over a single session and in a store, with short forms of queries. */
#pragma once

#include "tests/support/text.h"
#include "tests/support/tmpdir.h"

#include <annal/journal.h>
#include <annal/pack.h>

#include <check.h>

/* Assert that the call returns this status, with a message that contains text. */
#define ck_fails(expected, text, call)                                                             \
    do {                                                                                           \
        annal_error err_ = {0}, *err = &err_;                                                      \
        annal_status got_status_ = (call);                                                         \
        ck_assert_msg(*(text) != '\0', "any sentence has \"\" in it");                             \
        ck_assert_msg(got_status_ == (expected) && strstr(err_.message, (text)) != NULL, "%s: %s", \
                      annal_status_name(got_status_), err_.message);                               \
    } while (0)

/* ---- Growing text, for callbacks ---- */

/* arg: a struct text. Adds columns separated by |, and a newline. */
int text_row(void *arg, const annal_row *row);

/* ---- Packs in memory, for handlers alone: no store, no guards ---- */

#define MEMORY_PACKS_MAX 4

struct memory {
    annal_pack *packs[MEMORY_PACKS_MAX];
    size_t count;
    annal_state *state;
    uint64_t seq;
    int64_t ts_us; /* time of the next event; each event adds a second */
};

/* Load the shipped packs with these names (index/packs/NAME/); NULL ends the list. */
void memory_init(struct memory *m, const char *session, ...);
void memory_init_text(struct memory *m, const char *session, const char *pack);
void memory_done(struct memory *m);

/* Apply one event; annal__state_refused(m->state) counts events on which a handler failed. */
void memory_apply(struct memory *m, const char *type, const char *data);

/* The rows of a SELECT; free() it. */
char *memory_rows(struct memory *m, const char *select);
#define ck_memory(m, select, rows)                                                                 \
    do {                                                                                           \
        char *got_ = memory_rows(m, select);                                                       \
        ck_assert_str_eq(got_, rows);                                                              \
        free(got_);                                                                                \
    } while (0)

/* ---- A store with enabled packs ---- */

struct packs {
    struct tmpdir dir;
    const char *path; /* of the store */
    annal_store *store;
    annal_index *index;
    int64_t
        past_us; /* time of the next event of packs_append_past(), which adds a second; 0: now */
};

/* Store of the running test, without a keeper: suite_case(suite, name, packs_setup,
 * packs_teardown). */
extern struct packs p;
void packs_setup(void);
void packs_teardown(void);

/* Enable these shipped packs. */
#define PACKS_ENABLE(packs, ...) packs_enable(packs, (const char *[]){__VA_ARGS__, NULL})
void packs_enable(struct packs *packs, const char *const *names);

/* Write a pack of the user: packs/NAME.sql with this text. */
void packs_add(struct packs *packs, const char *name, const char *text);

/* Close store and index, if they are open, and open them again. */
void packs_reopen(struct packs *packs);
void packs_close(struct packs *packs);

/* Append one event through the packs; id may be NULL. *out_seq may be NULL. */
annal_status packs_append_id(struct packs *packs, const char *session, const char *type,
                             const char *data, const char *id, uint64_t *out_seq,
                             annal_error *error);
annal_status packs_append(struct packs *packs, const char *session, const char *type,
                          const char *data, annal_error *error);

/* Assert that an event is appended, or refused with a message that contains text. */
#define ck_append(p, session, type, data) ck_ok(packs_append(p, session, type, data, err))
#define ck_refused(p, session, type, data, text)                                                   \
    ck_fails(ANNAL_ERR_REFUSED, text, packs_append(p, session, type, data, err))

/* Append one event past the packs, like a writer that does not know them; level os. */
void packs_append_past(struct packs *packs, const char *session, const char *type,
                       const char *data);

/* The rows of a SELECT through annal_index_sql(), as memory_rows() gives them; free() it. */
char *packs_rows(struct packs *packs, const char *select);
#define ck_packs(p, select, rows)                                                                  \
    do {                                                                                           \
        char *got_ = packs_rows(p, select);                                                        \
        ck_assert_str_eq(got_, rows);                                                              \
        free(got_);                                                                                \
    } while (0)

/*
 * Assert that the tables of a pack database (its file in the store: "state.db") equal the tables
 * that a copy of the store builds from its journals, with its sessions in another order (seed).
 * Tables that begin with _ are left out.
 */
void packs_ck_rebuild(struct packs *packs, const char *database, uint64_t seed);

/* Run sql in the stock sqlite3 shell on a file of the store and return its output; free() it. */
char *packs_shell(struct packs *packs, const char *database, const char *sql);
