/* A store that runs packs: appended to, asked, and compared with one made anew from its journals. */
#ifndef TESTS_PACKS_PACKED_H
#define TESTS_PACKS_PACKED_H

#include "tests/packs/fixture.h"
#include "tests/support/random.h"

struct packed {
    struct tmpdir dir;
    const char *const *packs; /* built in; NULL ends them */
    annal_store *store;
    annal_index *index;
    int64_t ts_us; /* of the next event; a second more for each */
};

#define PACKED_INIT(p, ...)                                                                        \
    packed_init(p, __FILE__, __LINE__, (const char *const[]){__VA_ARGS__, NULL})

/* packs must live as long as the fixture. The store is its dir.path. */
void packed_init(struct packed *p, const char *file, int line, const char *const *packs);
void packed_done(struct packed *p);

/* Append past the guards, quickly (level os). */
void packed_append(struct packed *p, const char *session, const char *type, const char *data);

/* The rows of a SELECT, after catching up; free() it. */
char *packed_rows(struct packed *p, const char *select);
#define ck_packed(p, select, rows)                                                                 \
    do {                                                                                           \
        char *got_ = packed_rows(p, select);                                                       \
        ck_assert_str_eq(got_, rows);                                                              \
        free(got_);                                                                                \
    } while (0)

/* What the stock sqlite3 shell says (and complains) about these statements, on a database of the
 * store; free() it. The database is there once it was caught up. */
char *packed_shell(struct packed *p, const char *database, const char *sql);

/* All rows of all tables of the packs' databases, by database, table and columns; free() it. */
char *packed_tables(struct packed *p);

/* That a store made from a copy of the journals, session by session in an order by chance, has the
 * same tables. */
void packed_compare_rebuild(struct packed *p, struct random *random);

#endif
