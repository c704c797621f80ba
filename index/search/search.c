/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How search.db is filled.
 *
 * (1) search.db is a derived database with one follower, like the database of a pack: it has a
 *     cursor for each session, which moves in the transaction that writes the rows.
 * (2) FTS5 stores words and their positions. The texts are not stored: the view texts reads them
 *     from the journals, for snippets.
 * (3) To remove words, FTS5 needs the text from which they were added. So the words of a session
 *     are removed while its journal exists: at its events session.pruned and telemetry.superseded,
 *     after which its log tells the same again, and before the session is deleted. If the journal
 *     no longer exists, only the rows of documents are deleted; words without a document are never
 *     found, and are removed when the file is rebuilt. If words cannot be removed before a
 *     deletion, the file is deleted, and the next search rebuilds it.
 * (4) Search is switched off while the file STORE/search.off exists.
 */
#include "index/search/search.h"

#include "index/db/db.h"
#include "index/db/files.h"
#include "index/index.h"
#include "index/search/search_id.h"
#include "index/search/search_text.h"
#include "index/search/search_words.h"
#include "index/sys/search_fill.h"
#include "index/sys/wipe.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "journal/sys/event_at.h"
#include "journal/sys/seam.h"

#include <annal/search.h>

#include <string.h>
#include <sys/stat.h>

#define APPLICATION_ID 0x416e6e73 /* "Anns" */
/* version of the indexed text; raise it when search_text.c or search_words.c changes, so that
 * search.db is rebuilt */
#define TEXT_VERSION 8

extern const char annal__sql_search[];

/* ---- annal_said() ---- */

struct said {
    annal_store *store;
    annal__event_buffer *buffer;
    struct buf text;
};

static void free_said(void *arg)
{
    struct said *said = arg;
    annal__event_buffer_free(said->buffer);
    annal__buf_done(&said->text);
    annal__free(said);
}

/* The SQL function annal_said(session, seq, offset, length): return the searchable text of an
 * event; NULL if the event cannot be read. */
static void sql_said(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct said *said = sqlite3_user_data(context);
    annal_event event;
    (void)count;
    annal_slice session = {(const char *)sqlite3_value_text(values[0]),
                           (size_t)sqlite3_value_bytes(values[0])};
    if (session.ptr == NULL)
        return;
    annal_status status =
        annal__event_read_at(said->store, session, (uint64_t)sqlite3_value_int64(values[1]),
                             (uint64_t)sqlite3_value_int64(values[2]),
                             (uint64_t)sqlite3_value_int64(values[3]), &said->buffer, &event, NULL);
    if (status != ANNAL_OK && status != ANNAL_ERR_NOMEM)
        return;
    annal__buf_clear(&said->text);
    if (status >= 0)
        status = annal__search_text(said->store, session, &event, &said->text);
    if (status < 0)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_text64(context, said->text.len == 0 ? "" : said->text.ptr, said->text.len,
                              SQLITE_TRANSIENT, SQLITE_UTF8);
}

annal_status annal__search_add_functions(sqlite3 *db, annal_store *store, annal_error *err)
{
    struct said *said = annal__zalloc(sizeof *said);
    if (said == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "add the functions of search: out of memory");
    said->store = store;
    /* SQLite frees `said`, even if sqlite3_create_function_v2() fails */
    int rc = sqlite3_create_function_v2(db, "annal_said", 4, SQLITE_UTF8 | SQLITE_INNOCUOUS, said,
                                        sql_said, NULL, NULL, free_said);
    return rc == SQLITE_OK ? annal__search_words_add(db, err)
                           : annal__db_fail(err, db, rc, "cannot add the SQL functions of search");
}

/* ---- Rows of an event ---- */

/* Copy a member of data that is a string to out; out is empty if there is none. */
static annal_status get_text(annal_slice data, const char *name, struct buf *out)
{
    annal_slice text = {0};
    SCOPED_BUF scratch = {0};
    annal_slice raw = annal__json_member(data, name);
    annal_status status = ANNAL_OK;
    annal__buf_clear(out);
    if (raw.len >= 2 && raw.ptr[0] == '"')
        status = annal__json_text(raw, &scratch, &text);
    if (status == ANNAL_ERR_INVALID)
        status = ANNAL_OK;
    else if (status >= 0)
        status = annal__buf_append_slice(out, text);
    return status;
}

enum about { ABOUT_NOTHING, ABOUT_CALL, ABOUT_RESULT };

static enum about about_tool(annal_slice type)
{
    if (annal__slice_is(type, "tool.called") || annal__slice_is(type, "tool_call"))
        return ABOUT_CALL;
    if (annal__slice_is(type, "tool.returned") || annal__slice_is(type, "tool.failed") ||
        annal__slice_is(type, "tool_result") || annal__slice_is(type, "tool_error"))
        return ABOUT_RESULT;
    return ABOUT_NOTHING;
}

static annal_status put_call(struct search *search, annal_slice session, annal_slice call_id,
                             annal_slice tool, annal_error *err)
{
    if (call_id.len == 0 || tool.len == 0)
        return ANNAL_OK;
    annal__db_bind_text(search->add_call, 1, session);
    annal__db_bind_text(search->add_call, 2, call_id);
    annal__db_bind_text(search->add_call, 3, tool);
    return annal__db_run(search->add_call, err);
}

static annal_status find_tool(struct search *search, annal_slice session, annal_slice call_id,
                              struct buf *out, annal_error *err)
{
    sqlite3_stmt *stmt = search->get_tool;
    annal_status status = ANNAL_OK;
    annal__db_bind_text(stmt, 1, session);
    annal__db_bind_text(stmt, 2, call_id);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        status = annal__buf_append_slice(out, annal__db_column(stmt, 0));
    else if (rc != SQLITE_DONE)
        status =
            annal__db_fail(err, search->derived.db, rc,
                           "cannot index the words of a tool's result: its call cannot be found");
    sqlite3_reset(stmt);
    return status;
}

/* Find out the role of the event's author, and the tool that the event is about; both may be empty.
 * The tool of a call is stored, because results may lack it. */
static annal_status attribute(struct search *search, annal_slice session, const annal_event *event,
                              struct buf *role, struct buf *tool, annal_error *err)
{
    SCOPED_BUF call_id = {0};
    enum about about = about_tool(event->type);
    annal_status status = get_text(event->data, "role", role);
    if (status >= 0 && role->len == 0 && about != ABOUT_NOTHING)
        status = annal__buf_printf(role, "%s", about == ABOUT_CALL ? "assistant" : "tool");
    if (status >= 0 && about != ABOUT_NOTHING) {
        status = get_text(event->data, "tool", tool);
        if (status >= 0)
            status = get_text(event->data, "call_id", &call_id);
        if (status >= 0 && about == ABOUT_CALL)
            status =
                put_call(search, session, annal__buf_slice(&call_id), annal__buf_slice(tool), err);
        else if (status >= 0 && tool->len == 0)
            status = find_tool(search, session, annal__buf_slice(&call_id), tool, err);
    }
    return status;
}

static annal_status ask_number(struct search *search, sqlite3_stmt *stmt, annal_slice session,
                               annal_error *err)
{
    annal__db_bind_text(stmt, 1, session);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        search->current.number = sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE
               ? ANNAL_OK
               : annal__db_fail(err, search->derived.db, rc, "cannot index the words of a session");
}

/* Count a document of the session; its first one adds the session. The row of the session is
 * changed once for many documents, by flush(). */
static annal_status count_document(struct search *search, annal_slice session, int64_t ts_us,
                                   annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (search->current.number == 0) {
        search->current.last_us = INT64_MIN;
        status = ask_number(search, search->get_session, session, err);
    }
    if (status >= 0 && search->current.number == 0)
        status = ask_number(search, search->add_session, session, err);
    search->current.documents++;
    if (ts_us > search->current.last_us)
        search->current.last_us = ts_us;
    return status;
}

static enum search_kind kind_of(annal_slice type, annal_slice role)
{
    if (annal__slice_begins(type, "import.") || annal__slice_is(type, "agent.turn.usage"))
        return SEARCH_BOOKKEEPING;
    if (annal__slice_is(role, "user"))
        return SEARCH_ASKED;
    return annal__slice_is(role, "assistant") && about_tool(type) == ABOUT_NOTHING ? SEARCH_ANSWER
                                                                                   : SEARCH_OTHER;
}

static int size_of(annal_slice text)
{
    int size = 0;
    while (size < 15 && text.len >> (size + 5) > 0)
        size++;
    return size;
}

static annal_status add_document(struct search *search, annal_slice session,
                                 const annal_event *event, annal_slice role, annal_slice tool,
                                 annal_slice text, annal_error *err)
{
    sqlite3_stmt *stmt = search->add_document;
    char ts[ANNAL_TIME_BYTES];
    if (event->seq > SEARCH_SEQ_MAX)
        return ANNAL_OK;
    annal_status status = count_document(search, session, event->ts_us, err);
    if (status < 0)
        return status;
    int64_t id =
        search_id(search->current.number, event->seq, kind_of(event->type, role), size_of(text));
    annal_time_format(event->ts_us, ts);
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_text(stmt, 2, ts, ANNAL_TIME_BYTES - 1, SQLITE_STATIC);
    annal__db_bind_text(stmt, 3, event->type);
    annal__db_bind_text(stmt, 4, role);
    annal__db_bind_text(stmt, 5, tool);
    sqlite3_bind_int64(stmt, 6, (sqlite3_int64)event->offset);
    sqlite3_bind_int64(stmt, 7, (sqlite3_int64)event->length);
    status = annal__db_run(stmt, err);
    if (status < 0)
        return status;
    sqlite3_bind_int64(search->add_text, 1, id);
    annal__db_bind_text(search->add_text, 2, text);
    return annal__db_run(search->add_text, err);
}

static void begin_session(struct search *search)
{
    memset(&search->current, 0, sizeof search->current);
}

/* Delete the rows of a session (rule 3). with_words: delete its words, too, which needs the
 * journal. */
static annal_status drop_session(struct search *search, annal_slice session, bool with_words,
                                 annal_error *err)
{
    sqlite3_stmt *const stmts[] = {with_words ? search->drop_texts : NULL, search->drop_documents,
                                   search->drop_vectors, search->drop_session, search->drop_calls};
    annal_status status = ANNAL_OK;
    begin_session(search);
    for (size_t i = 0; status >= 0 && i < sizeof stmts / sizeof *stmts; i++) {
        if (stmts[i] == NULL)
            continue;
        annal__db_bind_text(stmts[i], 1, session);
        status = annal__db_run(stmts[i], err);
    }
    return status;
}

/* Add the vector of an event embedding.added. One that is not valid is not added. */
static annal_status add_vector(struct search *search, annal_slice session, const annal_event *event,
                               annal_error *err)
{
    annal__db_bind_text(search->add_vector, 1, session);
    annal__db_bind_text(search->add_vector, 2, event->data);
    sqlite3_bind_int64(search->add_vector, 3, (sqlite3_int64)event->seq);
    return annal__db_run(search->add_vector, err);
}

static annal_status add_event(struct follower *follower, annal_slice session,
                              const annal_event *event, annal_error *err)
{
    struct search *search = follower->own;
    SCOPED_BUF role = {0}, tool = {0}, text = {0};
    if (annal__slice_is(event->type, "session.pruned") ||
        annal__slice_is(event->type, "telemetry.superseded"))
        return drop_session(search, session, true, err);
    if (annal__slice_is(event->type, "embedding.added"))
        return add_vector(search, session, event, err);
    annal_status status = attribute(search, session, event, &role, &tool, err);
    if (status >= 0)
        status = annal__search_text(follower->derived->store, session, event, &text);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "cannot index the words of an event");
    if (status >= 0 && text.len > 0)
        status = add_document(search, session, event, annal__buf_slice(&role),
                              annal__buf_slice(&tool), annal__buf_slice(&text), err);
    return status;
}

static annal_status flush(struct follower *follower, annal_slice session, annal_error *err)
{
    struct search *search = follower->own;
    annal_status status = ANNAL_OK;
    if (search->current.documents > 0) {
        annal__db_bind_text(search->count_documents, 1, session);
        sqlite3_bind_int64(search->count_documents, 2, search->current.documents);
        sqlite3_bind_int64(search->count_documents, 3, search->current.last_us);
        status = annal__db_run(search->count_documents, err);
    }
    begin_session(search);
    return status;
}

static annal_status forget(struct follower *follower, annal_slice session, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = drop_session(follower->own, session, false, err);
    if (status >= 0)
        status = annal__db_prepare(follower->derived->db,
                                   "DELETE FROM _cursor WHERE session_id = ?1", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, session);
    status = annal__db_run(stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

static const struct follower_ops follower_ops = {
    .event = add_event, .flush = flush, .forget = forget};

/* ---- The database ---- */

static annal_status make(void *arg, sqlite3 *db, annal_error *err)
{
    (void)arg;
    annal_status status = annal__search_words_add(db, err);
    if (status >= 0)
        status = annal__db_exec(db, annal__sql_packs_schema, err);
    return status < 0 ? status : annal__db_exec(db, annal__sql_search, err);
}

static annal_status add_functions(void *arg, sqlite3 *db, annal_error *err)
{
    struct search *search = arg;
    return annal__search_add_functions(db, search->derived.store, err);
}

/* Create the tables of search.db in memory to learn their shape, because FTS5 creates some of
 * them. */
static annal_status find_shape(struct shape *shape, annal_error *err)
{
    sqlite3 *db = NULL;
    annal_status status =
        annal__db_open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db, err);
    if (status >= 0)
        status = make(NULL, db, err);
    if (status >= 0)
        status = annal__shape_of_database(shape, db, err);
    annal__db_close(db);
    return status;
}

static annal_status check(void *arg, sqlite3 *db, const char *schema, annal_error *err)
{
    struct search *search = arg;
    struct shape_part part = {.shape = &search->shape, .ours = true};
    annal_status status = ANNAL_OK;
    pthread_mutex_lock(&search->mutex);
    if (search->shape.count == 0)
        status = find_shape(&search->shape, err);
    pthread_mutex_unlock(&search->mutex);
    return status < 0 ? status : annal__shape_compare(db, schema, &part, 1, false, err);
}

/* the ids of session ?1 */
#define OF_SESSION                                                                                 \
    " BETWEEN (SELECT number << 37 FROM sessions WHERE session_id = ?1)"                           \
    " AND (SELECT ((number + 1) << 37) - 1 FROM sessions WHERE session_id = ?1)"

static annal_status opened(void *arg, sqlite3 *db, annal_error *err)
{
    struct search *search = arg;
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } all[] = {
        {&search->add_document, "INSERT INTO documents VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
        {&search->get_session, "SELECT number FROM sessions WHERE session_id = ?1"},
        {&search->add_session, "INSERT INTO sessions (session_id, documents, last_us) "
                               "VALUES (?1, 0, -9223372036854775808) RETURNING number"},
        {&search->count_documents,
         "UPDATE sessions SET documents = documents + ?2, last_us = max(last_us, ?3) "
         "WHERE session_id = ?1"},
        {&search->add_text, "INSERT INTO said (rowid, text) VALUES (?1, ?2)"},
        {&search->add_call, "INSERT INTO calls VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET tool "
                            "= excluded.tool"},
        {&search->get_tool, "SELECT tool FROM calls WHERE session_id = ?1 AND call_id = ?2"},
        {&search->drop_texts,
         "INSERT INTO said (said, rowid, text) SELECT 'delete', t.id, t.text FROM texts t "
         "WHERE t.id" OF_SESSION " AND t.text IS NOT NULL"},
        {&search->drop_documents, "DELETE FROM documents WHERE id" OF_SESSION},
        {&search->drop_session, "DELETE FROM sessions WHERE session_id = ?1"},
        {&search->drop_calls, "DELETE FROM calls WHERE session_id = ?1"},
        {&search->drop_vectors, "DELETE FROM vectors WHERE id" OF_SESSION},
        {&search->add_vector,
         "INSERT OR REPLACE INTO vectors (id, model, vector) SELECT (number << 37) | (of << 6), "
         "model, "
         "vector FROM (SELECT ?2 ->> '$.of' AS of, ?2 ->> '$.model' AS model, "
         "annal_blob(?2 ->> '$.vector') AS vector) JOIN sessions ON session_id = ?1 "
         "WHERE typeof(of) = 'integer' AND of BETWEEN 1 AND ?3 AND typeof(model) = 'text' "
         "AND length(vector) BETWEEN 4 AND 4 * 65536 AND length(vector) % 4 = 0"},
    };
    annal_status status = add_functions(search, db, err);
    for (size_t i = 0; status >= 0 && i < sizeof all / sizeof *all; i++)
        status = annal__db_prepare(db, all[i].sql, all[i].stmt, err);
    return status < 0 ? status : annal__follower_open(&search->follower, err);
}

static void closing(void *arg)
{
    struct search *search = arg;
    sqlite3_stmt **const all[] = {
        &search->add_document,    &search->get_session,  &search->add_session, &search->add_text,
        &search->count_documents, &search->add_call,     &search->get_tool,    &search->drop_texts,
        &search->drop_documents,  &search->drop_session, &search->drop_calls,  &search->add_vector,
        &search->drop_vectors};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sqlite3_finalize(*all[i]);
        *all[i] = NULL;
    }
    annal__follower_close(&search->follower);
    begin_session(search);
}

static void undone(void *arg)
{
    begin_session(arg);
}

static const struct derived_ops derived_ops = {.check = check,
                                               .make = make,
                                               .opened = opened,
                                               .add_functions = add_functions,
                                               .closing = closing,
                                               .undone = undone};

annal_status annal__search_init(struct search *search, annal_store *store, uint32_t wait_ms,
                                annal_error *err)
{
    SCOPED_BUF path = {0};
    uint64_t layout =
        annal__hash(annal__sql_packs_schema, strlen(annal__sql_packs_schema), TEXT_VERSION);
    layout = annal__hash(annal__sql_search, strlen(annal__sql_search), layout);
    search->derived.wait_ms = wait_ms;
    search->derived.application_id = APPLICATION_ID;
    search->derived.user_version = (int64_t)(layout & INT32_MAX);
    search->derived.ops = &derived_ops;
    search->derived.arg = search;
    search->follower = (struct follower){
        .derived = &search->derived, .ops = &follower_ops, .pack = "search", .own = search};
    if (pthread_mutex_init(&search->mutex, NULL) != 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare the search index: out of memory");
    search->has_mutex = true;
    annal_status status = annal__buf_printf(&path, "%s/search.db", annal_store_path(store));
    if (status < 0 || annal__buf_cstr(&path) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare the search index: out of memory");
    return status < 0 ? status
                      : annal__derived_init(&search->derived, store, path.ptr, "search", err);
}

void annal__search_done(struct search *search)
{
    annal__derived_done(&search->derived);
    annal__shape_done(&search->shape);
    if (search->has_mutex)
        pthread_mutex_destroy(&search->mutex);
    search->has_mutex = false;
}

/* ---- On and off ---- */

static annal_status off_path(const struct search *search, struct buf *out, annal_error *err)
{
    annal_status status =
        annal__buf_printf(out, "%s/search.off", annal_store_path(search->derived.store));
    if (status < 0 || annal__buf_cstr(out) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compose a file name: out of memory");
    return ANNAL_OK;
}

bool annal__search_is_off(const struct search *search)
{
    SCOPED_BUF path = {0};
    return off_path(search, &path, NULL) >= 0 &&
           annal__file_is_there(annal__store_io(search->derived.store), path.ptr);
}

bool annal__search_is_kept(const struct search *search)
{
    return annal__file_is_there(annal__store_io(search->derived.store), search->derived.path) &&
           !annal__search_is_off(search);
}

bool annal__search_is_used(const annal_index *index)
{
    return annal__search_is_kept(&index->search);
}

annal_status annal__search_fill(annal_index *index, const annal_catch_up_options *options,
                                annal_error *err)
{
    struct search *search = &index->search;
    struct stamp stamp;
    bool stuck;
    return annal__search_is_off(search) || annal__session_list_is_read_only(index->store)
               ? ANNAL_OK
               : annal__indexer_run(&search->follower, NULL, 0, NULL, options, &stamp, &stuck, err);
}

annal_status annal_search_enable(annal_index *index, bool on, annal_error *err)
{
    struct search *search = &index->search;
    const struct io *io = annal__store_io(index->store);
    SCOPED_BUF path = {0};
    if (annal__session_list_is_read_only(index->store))
        return annal__fail(err, ANNAL_ERR_READONLY,
                           "cannot enable or disable search: the store is open for reading only");
    annal_status status = off_path(search, &path, err);
    if (status >= 0 && on)
        status = annal__files_remove(io, path.ptr, err);
    else if (status >= 0)
        status = annal__io_publish_file(io, path.ptr, "", 0, err);
    if (status >= 0 && !on)
        status = annal__derived_discard(&search->derived,
                                        annal__deadline_after(search->derived.wait_ms), err);
    return status;
}

annal_status annal_search_rebuild(annal_index *index, const annal_catch_up_options *options,
                                  annal_error *err)
{
    struct search *search = &index->search;
    annal_catch_up_options own = {.timeout_ms = ANNAL_NO_TIMEOUT};
    struct stamp stamp;
    bool stuck;
    if (options != NULL)
        own = *options;
    if (annal__search_is_off(search))
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "rebuild the search index: search is disabled in this store; 'annal "
                           "search --on' enables search");
    annal_status status = annal__derived_discard(
        &search->derived, annal__deadline_after(search->derived.wait_ms), err);
    if (status >= 0)
        status = annal__indexer_run(&search->follower, NULL, 0, NULL, &own, &stamp, &stuck, err);
    return status;
}

annal_status annal_search_info_get(annal_index *index, annal_search_info *out_info,
                                   annal_error *err)
{
    struct search *search = &index->search;
    struct stat file;
    struct stamp stamp;
    sqlite3 *db = NULL;
    int64_t documents = 0;
    *out_info = (annal_search_info){.on = !annal__search_is_off(search)};
    if (lstat(search->derived.path, &file) != 0)
        return ANNAL_OK;
    out_info->exists = true;
    out_info->bytes = (uint64_t)file.st_size;
    annal_status status =
        annal__derived_reader(&search->derived, search->derived.wait_ms, &db, &stamp, err);
    if (status >= 0)
        status = annal__db_integer(db, "SELECT COUNT(*) FROM documents", &documents, err);
    annal__db_close(db);
    out_info->documents = (uint64_t)documents;
    return status;
}

annal_status annal__search_check(struct search *search, annal__damaged_fn fn, void *arg,
                                 annal_error *err)
{
    annal_error why = {0};
    if (search->derived.frozen || search->derived.private ||
        !annal__file_is_there(annal__store_io(search->derived.store), search->derived.path))
        return ANNAL_OK;
    annal_status status =
        annal__derived_hold(&search->derived, annal__deadline_after(search->derived.wait_ms), &why);
    if (status >= 0) {
        status = annal__db_exec(search->derived.db,
                                "INSERT INTO said (said) VALUES ('integrity-check')", &why);
        annal__derived_release(&search->derived);
    }
    if (status == ANNAL_ERR_CORRUPT) {
        (void)annal__derived_heal(&search->derived);
        return (annal_status)fn(arg, "search.db", false, why.message);
    }
    if (status < 0 && status != ANNAL_ERR_NOTFOUND && err != NULL)
        *err = why;
    return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
}

static annal_status merge_all(struct search *search, int64_t deadline_us)
{
    sqlite3 *db = search->derived.db;
    annal_status status = annal__db_exec(db, "INSERT INTO said (said) VALUES ('optimize')", NULL);
    if (status >= 0) /* VACUUM writes a copy of the database: into a file, not into memory */
        status = annal__db_exec(db, "PRAGMA temp_store = FILE; VACUUM", NULL);
    (void)annal__db_exec(db, "PRAGMA temp_store = MEMORY", NULL);
    return status < 0 ? status : annal__derived_empty_wal(&search->derived, deadline_us, NULL);
}

annal_status annal__search_wipe(struct search *search, int64_t deadline_us, annal_error *err)
{
    if (!annal__file_is_there(annal__store_io(search->derived.store), search->derived.path))
        return ANNAL_OK;
    annal_status status = annal__derived_hold(&search->derived, deadline_us, err);
    if (status >= 0) {
        status = merge_all(search, deadline_us);
        annal__derived_release(&search->derived);
        if (status < 0)
            status = annal__derived_discard(&search->derived, deadline_us, err);
    }
    return status;
}

annal_status annal__search_forget(annal_index *index, annal_slice session, annal_error *err)
{
    struct search *search = &index->search;
    annal_error why;
    if (!annal__file_is_there(annal__store_io(index->store), search->derived.path))
        return ANNAL_OK;
    annal_status status = annal__derived_begin(
        &search->derived, annal__deadline_after(search->derived.wait_ms), &why);
    if (status >= 0) {
        status = drop_session(search, session, true, &why);
        /* delete the session's cursor, too, so that the session is read again if it is not deleted
         * after all */
        if (status >= 0)
            status = forget(&search->follower, session, &why);
        annal_status ended =
            annal__derived_end(&search->derived, status >= 0, status >= 0 ? &why : NULL);
        status = status < 0 ? status : ended;
    }
    /* delete search.db if words cannot be removed from it (rule 3) */
    if (status < 0 && status != ANNAL_ERR_BUSY && status != ANNAL_ERR_NOMEM)
        status = annal__derived_discard(&search->derived,
                                        annal__deadline_after(search->derived.wait_ms), &why);
    return annal__error_pass(err, status, &why);
}
