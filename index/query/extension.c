/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal_sqlite.so: the tables events and annal_events('DIR') for any program that is built on
 * SQLite.
 *
 * (1) It is compiled against sqlite3ext.h and contains no SQLite: two copies of SQLite in one
 *     process that open one file release each other's locks when they close it.
 * (2) Of the host's connection only its state is queried. Data is read through a connection of our
 *     own, which first catches up like every reader. Writers do not wait for this connection.
 * (3) All cursors of one statement of the host share a view of the index, if no other statement of
 *     the connection runs. Otherwise cursors of different statements cannot be distinguished, and
 *     each cursor has a view of its own.
 * (4) Events that are not indexed yet are read from the journals; if events would be missing in the
 *     answer, the query fails with the reason.
 * (5) A host whose main database is sessions.db may be writing it. Then the table does not wait for
 *     the lock on the database, which the host itself holds, but reads the missing events from the
 *     journals as in (4).
 * (6) Each table opens its store when it is first queried. A child of fork() opens it again.
 */
#include "index/sys/open.h"

#include "index/index.h"
#include "index/query/events_table.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/default_store.h"
#include "journal/base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SQLITE_EXTENSION_INIT1

/* SQLite 3.38, the first version with sqlite3_vtab_in(), limits for virtual tables, and ->> */
#define VERSION_LEAST   3038000
#define BUSY_TIMEOUT_MS 10000

/* A view of the index, and the number of cursors that use it. */
struct look {
    struct reading reading;
    unsigned cursors;
    bool alone; /* whether no other statement ran when the view was created */
};

struct store_source {
    struct event_source base;
    sqlite3 *host;
    char *path;
    pid_t pid; /* process that opened the store */
    annal_store *store;
    annal_index *index;
    /* newest view of the index, which the next cursor may use, too; NULL: none is open */
    struct look *newest;
};

/* ---- Stores ---- */

static bool is_refused(const annal_error *err)
{
    return err->os_errno == EROFS || err->os_errno == EACCES || err->os_errno == EPERM;
}

static annal_status open_store(struct store_source *source, annal_error *err)
{
    annal_store_options options = {.no_keeper = true};
    annal_status status = annal_store_open(source->path, &options, &source->store, err);
    if (status == ANNAL_ERR_UNSUPPORTED || (annal__error_is_io(status) && is_refused(err))) {
        options.read_only = true;
        status = annal_store_open(source->path, &options, &source->store, err);
    }
    if (status >= 0)
        status = annal__index_open_plain(source->store, NULL, &source->index, err);
    source->pid = getpid();
    return status;
}

/* Close the store. In a child of fork(), to whose parent the store belongs, closing has no
 * effect. */
static void close_store(struct store_source *source)
{
    annal_index_close(source->index);
    (void)annal_store_close(source->store, NULL);
    source->index = NULL;
    source->store = NULL;
}

static annal_status ensure_store(struct store_source *source, annal_error *err)
{
    if (source->index != NULL && source->pid == getpid())
        return ANNAL_OK;
    close_store(source);
    source->newest = NULL;
    annal_status status = open_store(source, err);
    if (status < 0)
        close_store(source);
    return status;
}

/* ---- Views ---- */

/* Return whether exactly one statement of the host runs, so that its cursors may share a view (rule
 * 3). */
static bool one_statement_runs(sqlite3 *host)
{
    unsigned running = 0;
    for (sqlite3_stmt *stmt = sqlite3_next_stmt(host, NULL); stmt != NULL;
         stmt = sqlite3_next_stmt(host, stmt))
        running += sqlite3_stmt_busy(stmt) != 0;
    return running == 1;
}

/* Return whether the host's main database is this index, and the host is writing it (rule 5). */
static bool host_writes_index(const struct store_source *source)
{
    struct stat theirs, ours;
    const char *main_file = sqlite3_db_filename(source->host, "main");
    return sqlite3_txn_state(source->host, "main") == SQLITE_TXN_WRITE && main_file != NULL &&
           stat(main_file, &theirs) == 0 && stat(source->index->derived.path, &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* Rule 4. */
static annal_status read_index(struct store_source *source, struct reading *reading,
                               annal_error *err)
{
    annal_lag lag = {0};
    annal_status status = annal__reader_borrow(source->index, NULL, 0, host_writes_index(source), 0,
                                               &reading->db, &lag, err);
    if (status >= 0)
        status = annal__reader_add_rest(source->index, reading->db, NULL, 0, &lag,
                                        &reading->with_rest, err);
    if (status >= 0 && lag.bytes > 0)
        status = annal__fail(err, ANNAL_ERR_BUSY, "the answer would lack %llu bytes of events: %s",
                             (unsigned long long)lag.bytes, lag.message);
    if (status >= 0 && !reading->with_rest)
        status = annal__db_begin(reading->db, err);
    if (status >= 0 && !reading->with_rest)
        status = annal__readers_run(reading->db, "SELECT 1 FROM main._stamp", err);
    if (status < 0) {
        annal__derived_give(&source->index->derived, reading->db, false);
        *reading = (struct reading){0};
        return status;
    }
    reading->store = source->store;
    return ANNAL_OK;
}

static annal_status make_look(struct store_source *source, struct look **out, annal_error *err)
{
    struct look *look = annal__zalloc(sizeof *look);
    if (look == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "create the virtual table events: out of memory");
    annal_status status = read_index(source, &look->reading, err);
    if (status == ANNAL_ERR_CORRUPT && annal__derived_heal(&source->index->derived))
        status = read_index(source, &look->reading, err);
    if (status < 0) {
        annal__free(look);
        return status;
    }
    *out = look;
    return ANNAL_OK;
}

static annal_status begin_look(struct event_source *base, const struct reading **out,
                               annal_error *err)
{
    struct store_source *source = (struct store_source *)base;
    bool alone = one_statement_runs(source->host);
    annal_status status = ensure_store(source, err);
    if (status < 0)
        return status;
    struct look *look = alone && source->newest != NULL ? source->newest : NULL;
    if (look == NULL)
        status = make_look(source, &look, err);
    if (status < 0)
        return status;
    look->cursors++;
    source->newest = alone ? look : NULL;
    *out = &look->reading;
    return ANNAL_OK;
}

static void end_look(struct event_source *base, const struct reading *reading)
{
    struct store_source *source = (struct store_source *)base;
    /* the cast is valid because reading is the first member of struct look */
    struct look *look = (struct look *)reading;
    if (--look->cursors > 0)
        return;
    if (source->newest == look)
        source->newest = NULL;
    annal__derived_give(&source->index->derived, look->reading.db, !look->reading.with_rest);
    annal__free(look);
}

static void release_source(struct event_source *base)
{
    struct store_source *source = (struct store_source *)base;
    close_store(source);
    annal__free(source->path);
    annal__free(source);
}

static struct store_source *new_source(sqlite3 *host, annal_slice path)
{
    struct store_source *source = annal__zalloc(sizeof *source);
    if (source == NULL)
        return NULL;
    source->base = (struct event_source){begin_look, end_look, release_source};
    source->host = host;
    source->path = annal__strndup(path.ptr, path.len);
    if (source->path != NULL)
        return source;
    annal__free(source);
    return NULL;
}

/* ---- Choosing the store ---- */

/* Find out whether the main database of the host is the index of a store; *directory is then the
 * directory of the store. */
static bool is_index(sqlite3 *host, struct buf *directory)
{
    static const char name[] = "/sessions.db";
    const char *file = sqlite3_db_filename(host, "main");
    size_t bytes = file == NULL ? 0 : strlen(file);
    struct stat info;
    if (bytes < sizeof name || strcmp(file + bytes - (sizeof name - 1), name) != 0)
        return false;
    bytes -= sizeof name - 1;
    bool is = annal__buf_printf(directory, "%.*s/events", (int)bytes, file) >= 0 &&
              annal__buf_cstr(directory) != NULL && stat(directory->ptr, &info) == 0 &&
              S_ISDIR(info.st_mode);
    directory->len = is ? bytes : 0;
    return is && annal__buf_cstr(directory) != NULL;
}

static int connect_default(sqlite3 *host, void *arg, int count, const char *const *words,
                           sqlite3_vtab **out, char **out_message)
{
    (void)arg;
    (void)count;
    (void)words;
    SCOPED_BUF path = {0};
    struct store_source *source = NULL;
    annal_status status = ANNAL_OK;
    if (!is_index(host, &path))
        status = annal__default_store_place(getenv("ANNAL_STORE"), getenv("XDG_DATA_HOME"),
                                            getenv("HOME"), &path);
    if (status == ANNAL_ERR_NOTFOUND) {
        *out_message = sqlite3_mprintf("no store to open: set $ANNAL_STORE, or $HOME");
        return SQLITE_ERROR;
    }
    if (status >= 0)
        source = new_source(host, annal__buf_slice(&path));
    return source == NULL ? SQLITE_NOMEM : annal__events_connect(host, &source->base, out);
}

/* Append DIR, which may be quoted as 'DIR' or "DIR" as in SQL. */
static annal_status unquote(const char *word, struct buf *out)
{
    size_t len = strlen(word);
    char quote = word[0] == '\'' || word[0] == '"' ? word[0] : '\0';
    annal_status status = ANNAL_OK;
    if (quote == '\0' || len < 2 || word[len - 1] != quote)
        return annal__buf_printf(out, "%s", word);
    for (size_t i = 1; status >= 0 && i < len - 1; i++) {
        status = annal__buf_append(out, word + i, 1);
        if (word[i] == quote && word[i + 1] == quote)
            i++;
    }
    return status;
}

static int connect_named(sqlite3 *host, void *arg, int count, const char *const *words,
                         sqlite3_vtab **out, char **out_message)
{
    (void)arg;
    SCOPED_BUF path = {0};
    struct store_source *source = NULL;
    if (count == 4 && unquote(words[3], &path) < 0)
        return SQLITE_NOMEM;
    if (path.len == 0) {
        *out_message = sqlite3_mprintf("annal_events needs the directory of a store: CREATE "
                                       "VIRTUAL TABLE temp.x USING annal_events('DIR')");
        return SQLITE_ERROR;
    }
    source = new_source(host, annal__buf_slice(&path));
    return source == NULL ? SQLITE_NOMEM : annal__events_connect(host, &source->base, out);
}

/* Create a table as connect_named() does, but fail at once if the store cannot be opened. */
static int create_named(sqlite3 *host, void *arg, int count, const char *const *words,
                        sqlite3_vtab **out, char **out_message)
{
    annal_error err = {0};
    int rc = connect_named(host, arg, count, words, out, out_message);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_vtab *table = *out;
    const struct reading *reading = NULL;
    struct event_source *source = annal__events_source(table);
    if (source->begin(source, &reading, &err) >= 0) {
        source->end(source, reading);
        return SQLITE_OK;
    }
    *out_message = sqlite3_mprintf("%s", err.message);
    annal__events_methods.xDisconnect(table);
    *out = NULL;
    return SQLITE_ERROR;
}

/* ---- Loading ---- */

typedef int (*connect_fn)(sqlite3 *, void *, int, const char *const *, sqlite3_vtab **, char **);

/*
 * Register a virtual table. create NULL: the table exists without CREATE VIRTUAL TABLE.
 */
static int add_module(sqlite3 *host, const char *name, connect_fn create, connect_fn connect)
{
    sqlite3_module *module = annal__zalloc(sizeof *module);
    if (module == NULL)
        return SQLITE_NOMEM;
    *module = annal__events_methods;
    module->xCreate = create;
    module->xConnect = connect;
    return sqlite3_create_module_v2(host, name, module, module, annal__free);
}

/*
 * Prepare the connection of the host. A host without a busy timeout gets one, because it would
 * otherwise fail with "database is locked" on sessions.db. If the host's database is sessions.db,
 * it does not checkpoint on close, because it would otherwise remove the WAL of a file that has
 * replaced sessions.db.
 */
static int prepare_host(sqlite3 *host)
{
    sqlite3_stmt *stmt = NULL;
    SCOPED_BUF directory = {0};
    int timeout_ms = 0;
    int rc = sqlite3_prepare_v2(host, "PRAGMA busy_timeout", -1, &stmt, NULL);
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        timeout_ms = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    if (rc == SQLITE_OK && timeout_ms == 0)
        rc = sqlite3_busy_timeout(host, BUSY_TIMEOUT_MS);
    if (rc == SQLITE_OK && is_index(host, &directory))
        rc = sqlite3_db_config(host, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return rc;
}

__attribute__((visibility("default"))) int
sqlite3_annalsqlite_init(sqlite3 *host, char **out_message, const sqlite3_api_routines *api);

int sqlite3_annalsqlite_init(sqlite3 *host, char **out_message, const sqlite3_api_routines *api)
{
    SQLITE_EXTENSION_INIT2(api);
    if (sqlite3_libversion_number() < VERSION_LEAST) {
        *out_message = sqlite3_mprintf("annal_sqlite needs SQLite 3.38 or later, but this is %s",
                                       sqlite3_libversion());
        return SQLITE_ERROR;
    }
    int rc = add_module(host, "events", NULL, connect_default);
    if (rc == SQLITE_OK)
        rc = add_module(host, "annal_events", create_named, connect_named);
    if (rc == SQLITE_OK)
        rc = prepare_host(host);
    return rc == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : rc;
}
