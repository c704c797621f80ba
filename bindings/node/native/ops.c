/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations. Each takes its arguments in the order in which JavaScript writes them, and puts
 * its answer into the table of the job.
 */
#include "native.h"

#include <stdlib.h>
#include <string.h>

#define STOP         1         /* what a callback returns to end the call: no memory */
#define BLOCK_EVENTS 1024      /* a block has at most this many events, */
#define BLOCK_BYTES  (1 << 20) /* and ends with the event that reaches this size */

/* ---- Handles ---- */

static struct handle *add_handle(struct job *job, enum handle_kind kind, void *pointer)
{
    struct handle *handle = calloc(1, sizeof *handle);
    if (handle == NULL)
        return NULL;
    struct store *store = job->store;
    pthread_mutex_lock(&store->lock);
    *handle = (struct handle){.id = ++store->last_handle, .kind = kind, .pointer = pointer};
    handle->next = store->handles;
    store->handles = handle;
    pthread_mutex_unlock(&store->lock);
    return handle;
}

struct handle *handle_find(struct store *store, uint32_t id)
{
    pthread_mutex_lock(&store->lock);
    struct handle *handle = store->handles;
    while (handle != NULL && handle->id != id)
        handle = handle->next;
    pthread_mutex_unlock(&store->lock);
    return handle;
}

static void close_pointer(enum handle_kind kind, void *pointer)
{
    switch (kind) {
    case HANDLE_CURSOR:
        annal_cursor_close(pointer);
        break;
    case HANDLE_QUERY:
        annal_query_close(pointer);
        break;
    case HANDLE_TAIL:
        annal_tail_close(pointer);
        break;
    case HANDLE_STATE:
        annal_state_free(pointer);
        break;
    }
}

static void free_handle(struct handle *handle)
{
    close_pointer(handle->kind, handle->pointer);
    free((void *)handle->session.ptr);
    free(handle);
}

/* Take a handle out of the list; NULL if its id is unknown. */
static struct handle *take_handle(struct store *store, uint32_t id)
{
    pthread_mutex_lock(&store->lock);
    struct handle **at = &store->handles;
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    struct handle *handle = *at;
    if (handle != NULL)
        *at = handle->next;
    pthread_mutex_unlock(&store->lock);
    return handle;
}

/* The next argument is the id of a handle of this kind; NULL: it was closed. */
static void *take_pointer(struct job *job, enum handle_kind kind, annal_error *err)
{
    struct handle *handle = handle_find(job->store, (uint32_t)args_number(&job->args));
    if (handle != NULL && handle->kind == kind)
        return handle->pointer;
    strcpy(err->message, "this object was closed before");
    return NULL;
}

annal_status store_close(struct store *store, annal_error *err)
{
    struct waiters *waiters = base_waiters(store->base, false);
    if (waiters != NULL)
        waiters_cancel(waiters, store, 0);
    while (store->handles != NULL) {
        struct handle *gone = store->handles;
        store->handles = gone->next;
        free_handle(gone);
    }
    annal_status status = base_close(store->base, err);
    client_remove(store->client, store);
    return status;
}

static annal_status op_release(struct job *job, annal_error *err)
{
    (void)err;
    struct handle *handle = take_handle(job->store, (uint32_t)args_number(&job->args));
    if (handle != NULL)
        free_handle(handle);
    return ANNAL_OK;
}

/* ---- The store ---- */

static annal_status op_open(struct job *job, annal_error *err)
{
    struct args *args = &job->args;
    annal_slice path = args_slice(args);
    annal_store_options options = {0};
    options.create = args_number(args) != 0;
    options.read_only = args_number(args) != 0;
    options.format = (annal_format)args_number(args);
    options.batch_ms = (uint32_t)args_number(args);
    options.wait_ms = (uint32_t)args_number(args);
    options.unsafe_filesystem = args_number(args) != 0;
    bool follow = args_number(args) != 0;
    char *copy = strndup(path.ptr, path.len);
    struct base *base = NULL;
    annal_status status =
        copy == NULL ? ANNAL_ERR_NOMEM : base_open(copy, &options, follow, &base, err);
    free(copy);
    if (status < 0)
        return status;
    struct store *store = client_add(job->client, base);
    if (store == NULL) {
        annal_status closed = base_close(base, err);
        return closed < 0 ? closed : ANNAL_ERR_NOMEM;
    }
    table_number(&job->table, store->id);
    table_string(&job->table, annal_store_path(base_store(base)));
    return ANNAL_OK;
}

static annal_status op_close(struct job *job, annal_error *err)
{
    return store_close(job->store, err);
}

static int put_session(void *arg, annal_slice session, uint64_t bytes)
{
    struct table *table = arg;
    (void)bytes;
    table_text(table, session);
    return table->failed;
}

static annal_status op_sessions(struct job *job, annal_error *err)
{
    return annal_session_each(base_store(job->store->base), put_session, &job->table, err);
}

static annal_status op_info(struct job *job, annal_error *err)
{
    annal_session_info info = {0};
    struct table *table = &job->table;
    annal_status status =
        annal_session_info_get(base_store(job->store->base), args_slice(&job->args), &info, err);
    if (status < 0)
        return status;
    table_number(table, info.format);
    table_number(table, info.created_us);
    table_number(table, (int64_t)info.bytes);
    table_number(table, (int64_t)info.last_seq);
    table_number(table, info.last_ts_us);
    table_number(table, info.torn);
    table_string(table, info.fork_session[0] != '\0' ? info.fork_session : NULL);
    table_number(table, (int64_t)info.fork_seq);
    table_string(table, info.file);
    return status;
}

static void put_note(void *arg, const annal_delete_note *note)
{
    if (note->error != NULL && note->part != ANNAL_DELETE_SESSION)
        table_string(arg, note->error->message);
}

static annal_status op_delete(struct job *job, annal_error *err)
{
    annal_slice *sessions = NULL;
    size_t count = 0;
    annal_index *index = NULL;
    annal_status status = args_slices(&job->args, &sessions, &count);
    if (status >= 0)
        status = base_index(job->store->base, &index, err);
    if (status >= 0)
        status = annal_session_delete(index, sessions, count, put_note, &job->table, err);
    free(sessions);
    return status;
}

static annal_status op_fork(struct job *job, annal_error *err)
{
    annal_slice session = args_slice(&job->args);
    uint64_t at = (uint64_t)args_number(&job->args);
    annal_slice child = args_slice(&job->args);
    return annal_session_fork(base_store(job->store->base), session, at, child, NULL, NULL, err);
}

static annal_status op_copy(struct job *job, annal_error *err)
{
    annal_repair_result result;
    annal_slice session = args_slice(&job->args);
    annal_slice to = args_slice(&job->args);
    return annal_session_repair(base_store(job->store->base), session, to, NULL, NULL, NULL,
                                &result, err);
}

static void put_finding(void *arg, const annal_finding *finding)
{
    table_number(arg, (int64_t)finding->seq);
    table_number(arg, (int64_t)finding->offset);
    table_number(arg, (int64_t)finding->length);
    table_string(arg, finding->what);
}

static annal_status op_verify(struct job *job, annal_error *err)
{
    annal_verify_result result;
    return annal_session_verify(base_store(job->store->base), args_slice(&job->args), put_finding,
                                &job->table, &result, err);
}

/* ---- Events ---- */

/* Session and type of the last event that was written: equal ones are not written again. */
struct before {
    char session[ANNAL_SESSION_ID_BYTES_MAX];
    size_t session_len;
    char type[ANNAL_TYPE_BYTES_MAX];
    size_t type_len;
};

static void put_again(struct table *table, annal_slice text, char *before, size_t *before_len,
                      size_t room)
{
    if (text.len == *before_len && memcmp(text.ptr, before, text.len) == 0 && text.len > 0) {
        table_kind(table, VALUE_AGAIN);
        return;
    }
    table_text(table, text);
    *before_len = text.len <= room ? text.len : 0;
    if (*before_len > 0)
        memcpy(before, text.ptr, *before_len);
}

static void put_event(struct table *table, struct before *before, annal_slice session,
                      const annal_event *event)
{
    put_again(table, session, before->session, &before->session_len, sizeof before->session);
    table_number(table, (int64_t)event->seq);
    table_number(table, event->ts_us);
    put_again(table, event->type, before->type, &before->type_len, sizeof before->type);
    table_text(table, event->id);
    table_text(table, event->cause);
    table_text(table, event->data);
}

/* Read the next event; ANNAL_END also after the last that is wanted. */
static annal_status next_event(struct handle *handle, annal_slice *session, annal_event *event,
                               annal_error *err)
{
    if (handle->kind == HANDLE_QUERY)
        return annal_query_next(handle->pointer, session, event, err);
    *session = handle->session;
    annal_status status = annal_cursor_next(handle->pointer, event, err);
    return status == ANNAL_OK && event->seq > handle->to_seq ? ANNAL_END : status;
}

static void put_damage(struct table *table, const struct handle *handle, annal_slice session,
                       const annal_event *event)
{
    annal_damage damage = {.seq = event->seq, .offset = event->offset, .length = event->length};
    damage.what = "the line does not match its hash";
    if (handle->kind == HANDLE_CURSOR)
        damage = annal_cursor_damage(handle->pointer);
    table_text(table, session);
    table_number(table, (int64_t)damage.seq);
    table_number(table, (int64_t)damage.offset);
    table_number(table, (int64_t)damage.length);
    table_string(table, damage.what);
}

/*
 * Read a block: its events, VALUE_END, the handle to read on with (0: that was all, and it is
 * closed), and what is damaged after these events, if something is.
 */
static annal_status read_block(struct job *job, struct handle *handle, annal_error *err)
{
    struct before before = {.session_len = 0};
    struct table *table = &job->table;
    annal_slice session = {0};
    annal_event event = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < BLOCK_EVENTS && table->len < BLOCK_BYTES && !table->failed; i++) {
        status = next_event(handle, &session, &event, err);
        if (status != ANNAL_OK)
            break;
        put_event(table, &before, session, &event);
        if (handle->kind == HANDLE_CURSOR && event.seq == handle->to_seq) {
            status = ANNAL_END;
            break;
        }
    }
    bool more = status == ANNAL_OK || status == ANNAL_DAMAGE;
    table_kind(table, VALUE_END);
    table_number(table, more ? handle->id : 0);
    if (status == ANNAL_DAMAGE)
        put_damage(table, handle, session, &event);
    if (!more && take_handle(job->store, handle->id) != NULL)
        free_handle(handle);
    return status < 0 ? status : ANNAL_OK;
}

static annal_status op_events(struct job *job, annal_error *err)
{
    annal_slice session = args_slice(&job->args);
    uint64_t from_seq = (uint64_t)args_number(&job->args);
    uint64_t to_seq = (uint64_t)args_number(&job->args);
    annal_cursor *cursor = NULL;
    annal_status status =
        annal_cursor_open(base_store(job->store->base), session, from_seq, &cursor, err);
    if (status < 0)
        return status;
    struct handle *handle = add_handle(job, HANDLE_CURSOR, cursor);
    char *copy = strndup(session.ptr, session.len);
    if (handle == NULL || copy == NULL) {
        free(copy);
        if (handle == NULL)
            annal_cursor_close(cursor);
        return ANNAL_ERR_NOMEM;
    }
    handle->session = (annal_slice){.ptr = copy, .len = session.len};
    handle->to_seq = to_seq;
    return read_block(job, handle, err);
}

/* A filter and the arrays that it points at. */
struct filter {
    annal_filter filter;
    annal_slice *sessions;
    annal_slice *types;
};

static annal_status take_filter(struct args *args, struct filter *out)
{
    annal_filter *filter = &out->filter;
    annal_status status = args_slices(args, &out->sessions, &filter->session_count);
    if (status >= 0)
        status = args_slices(args, &out->types, &filter->type_count);
    filter->sessions = out->sessions;
    filter->types = out->types;
    filter->since_us = args_number(args);
    filter->until_us = args_number(args);
    filter->from_seq = (uint64_t)args_number(args);
    filter->to_seq = (uint64_t)args_number(args);
    filter->limit = (uint64_t)args_number(args);
    filter->descending = args_number(args) != 0;
    filter->where = args_slice(args);
    return status;
}

static void free_filter(struct filter *filter)
{
    free(filter->sessions);
    free(filter->types);
}

static annal_status op_query(struct job *job, annal_error *err)
{
    struct filter filter = {0};
    annal_index *index = NULL;
    annal_query *query = NULL;
    annal_status status = take_filter(&job->args, &filter);
    if (status >= 0)
        status = base_index(job->store->base, &index, err);
    if (status >= 0)
        status = annal_query_open(index, &filter.filter, &query, err);
    free_filter(&filter);
    if (status < 0)
        return status;
    struct handle *handle = add_handle(job, HANDLE_QUERY, query);
    if (handle == NULL) {
        annal_query_close(query);
        return ANNAL_ERR_NOMEM;
    }
    return read_block(job, handle, err);
}

static annal_status op_count(struct job *job, annal_error *err)
{
    struct filter filter = {0};
    annal_index *index = NULL;
    uint64_t count = 0;
    annal_status status = take_filter(&job->args, &filter);
    if (status >= 0)
        status = base_index(job->store->base, &index, err);
    if (status >= 0)
        status = annal_query_count(index, &filter.filter, &count, NULL, err);
    free_filter(&filter);
    table_number(&job->table, (int64_t)count);
    return status;
}

static annal_status op_read(struct job *job, annal_error *err)
{
    struct handle *handle = handle_find(job->store, (uint32_t)args_number(&job->args));
    if (handle == NULL) {
        strcpy(err->message, "this object was closed before");
        return ANNAL_ERR_CLOSED;
    }
    return read_block(job, handle, err);
}

/* ---- SQL ---- */

static int put_columns(void *arg, const annal_row *row)
{
    struct table *table = arg;
    table_number(table, (int64_t)row->count);
    for (size_t i = 0; i < row->count; i++)
        table_string(table, row->names[i]);
    return table->failed ? STOP : 0;
}

static int put_row(void *arg, const annal_row *row)
{
    struct table *table = arg;
    for (size_t i = 0; i < row->count; i++)
        table_value(table, &row->values[i]);
    return table->failed ? STOP : 0;
}

static annal_status take_params(struct args *args, annal_sql_options *options, annal_value **out)
{
    size_t count = (size_t)args_number(args);
    annal_value *values = calloc(count + 1, sizeof *values);
    if (values == NULL)
        return ANNAL_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        values[i].kind = (annal_value_kind)args_number(args);
        if (values[i].kind == ANNAL_VALUE_INTEGER) {
            values[i].integer = args_number(args);
        } else if (values[i].kind == ANNAL_VALUE_REAL) {
            int64_t bits = args_number(args);
            memcpy(&values[i].real, &bits, sizeof bits);
        } else if (values[i].kind != ANNAL_VALUE_NULL) {
            values[i].bytes = args_slice(args);
        }
    }
    options->columns = put_columns;
    options->params = values;
    options->param_count = count;
    *out = values;
    return ANNAL_OK;
}

static annal_status op_sql(struct job *job, annal_error *err)
{
    annal_slice sql = args_slice(&job->args);
    annal_sql_options options = {.session = args_slice(&job->args)};
    annal_value *values = NULL;
    annal_index *index = NULL;
    annal_status status = take_params(&job->args, &options, &values);
    if (status >= 0)
        status = base_index(job->store->base, &index, err);
    if (status >= 0)
        status = annal_index_sql(index, sql, &options, put_row, &job->table, err);
    free(values);
    return status;
}

static int put_hit(void *arg, const annal_search_hit *hit)
{
    struct table *table = arg;
    table_text(table, hit->session);
    table_number(table, (int64_t)hit->seq);
    table_number(table, hit->ts_us);
    table_text(table, hit->type);
    table_text(table, hit->role);
    table_text(table, hit->tool);
    table_text(table, hit->snippet);
    table_value(table, &(annal_value){.kind = ANNAL_VALUE_REAL, .real = hit->rank});
    return table->failed ? STOP : 0;
}

static int put_found(void *arg, const annal_search_session *found)
{
    struct table *table = arg;
    table_text(table, found->session);
    table_number(table, found->last_us);
    table_number(table, (int64_t)found->events);
    table_value(table, &(annal_value){.kind = ANNAL_VALUE_REAL, .real = found->score});
    table_text(table, found->why);
    table_number(table, (int64_t)found->place_count);
    for (size_t i = 0; i < found->place_count; i++)
        put_hit(table, &found->places[i]);
    return table->failed ? STOP : 0;
}

/* The events that contain words or, with a number of places, the sessions. */
static annal_status op_search(struct job *job, annal_error *err)
{
    struct args *args = &job->args;
    annal_slice *lists[3] = {NULL, NULL, NULL}; /* words, sessions, types */
    annal_search_options options = {0};
    annal_index *index = NULL;
    annal_status status = args_slices(args, &lists[0], &options.word_count);
    if (status >= 0)
        status = args_slices(args, &lists[1], &options.session_count);
    if (status >= 0)
        status = args_slices(args, &lists[2], &options.type_count);
    if (status >= 0)
        status = base_index(job->store->base, &index, err);
    if (status >= 0) {
        options.words = lists[0];
        options.sessions = lists[1];
        options.types = lists[2];
        options.expression = args_slice(args);
        options.role = args_slice(args);
        options.tool = args_slice(args);
        options.since_us = args_number(args);
        options.until_us = args_number(args);
        options.limit = (uint64_t)args_number(args);
        options.order = args_number(args) != 0 ? ANNAL_SEARCH_NEWEST : ANNAL_SEARCH_BEST;
        options.places = (uint32_t)args_number(args);
        status = options.places > 0
                     ? annal_search_session_each(index, &options, put_found, &job->table, NULL, err)
                     : annal_search_each(index, &options, put_hit, &job->table, NULL, err);
    }
    for (size_t i = 0; i < 3; i++)
        free(lists[i]);
    return status;
}

/* ---- States ---- */

static annal_status op_state(struct job *job, annal_error *err)
{
    annal_slice session = args_slice(&job->args);
    annal_moment at = {.kind = (annal_moment_kind)args_number(&job->args)};
    int64_t number = args_number(&job->args);
    if (at.kind == ANNAL_AT_TIME)
        at.time_us = number;
    else
        at.seq = (uint64_t)number;
    annal_index *index = NULL;
    annal_state *state = NULL;
    annal_status status = base_index(job->store->base, &index, err);
    if (status >= 0)
        status = annal_replay_open(index, session, at, NULL, &state, NULL, err);
    if (status < 0)
        return status;
    struct handle *handle = add_handle(job, HANDLE_STATE, state);
    if (handle == NULL) {
        annal_state_free(state);
        return ANNAL_ERR_NOMEM;
    }
    table_number(&job->table, handle->id);
    table_number(&job->table, (int64_t)annal_state_seq(state));
    return ANNAL_OK;
}

static annal_status op_state_sql(struct job *job, annal_error *err)
{
    annal_state *state = take_pointer(job, HANDLE_STATE, err);
    if (state == NULL)
        return ANNAL_ERR_CLOSED;
    annal_slice sql = args_slice(&job->args);
    annal_sql_options options = {0};
    annal_value *values = NULL;
    annal_status status = take_params(&job->args, &options, &values);
    if (status >= 0)
        status = annal_state_sql(state, sql, &options, put_row, &job->table, err);
    free(values);
    return status;
}

static int put_piece(void *arg, const char *bytes, size_t len)
{
    struct table *table = arg;
    table_text(table, (annal_slice){.ptr = bytes, .len = len});
    return table->failed ? STOP : 0;
}

static annal_status op_state_json(struct job *job, annal_error *err)
{
    annal_state *state = take_pointer(job, HANDLE_STATE, err);
    if (state == NULL)
        return ANNAL_ERR_CLOSED;
    return annal_state_json(state, put_piece, &job->table, err);
}

static annal_status op_state_hash(struct job *job, annal_error *err)
{
    annal_state *state = take_pointer(job, HANDLE_STATE, err);
    uint8_t hash[ANNAL_STATE_HASH_BYTES] = {0};
    if (state == NULL)
        return ANNAL_ERR_CLOSED;
    annal_status status = annal_state_hash(state, hash, err);
    const annal_value value = {.kind = ANNAL_VALUE_BLOB,
                               .bytes = {.ptr = (const char *)hash, .len = sizeof hash}};
    table_value(&job->table, &value);
    return status;
}

static annal_status op_state_patch(struct job *job, annal_error *err)
{
    annal_state *before = take_pointer(job, HANDLE_STATE, err);
    annal_state *after = take_pointer(job, HANDLE_STATE, err);
    if (before == NULL || after == NULL)
        return ANNAL_ERR_CLOSED;
    return annal_state_patch(before, after, put_piece, &job->table, err);
}

/* A text that the events may not state. */
static void put_maybe(struct table *table, annal_slice text)
{
    if (text.ptr == NULL)
        table_string(table, NULL);
    else
        table_text(table, text);
}

static annal_status op_recovery(struct job *job, annal_error *err)
{
    struct table *table = &job->table;
    annal_index *index = NULL;
    annal_recovery *found = NULL;
    annal_status status = base_index(job->store->base, &index, err);
    if (status >= 0)
        status = annal_recovery_get(index, args_slice(&job->args), &found, err);
    if (status < 0)
        return status;
    table_number(table, (int64_t)found->seq);
    table_text(table, found->status);
    table_number(table, (int64_t)found->user.seq);
    table_number(table, (int64_t)found->assistant.seq);
    table_number(table, (int64_t)found->call_count);
    for (size_t i = 0; i < found->call_count; i++) {
        const annal_open_call *call = &found->calls[i];
        table_text(table, call->call_id);
        table_text(table, call->tool);
        put_maybe(table, call->input);
        table_number(table, (int64_t)call->seq);
        table_text(table, call->called_at);
        put_maybe(table, call->turn_id);
    }
    for (size_t i = 0; i < found->turn_count; i++) {
        const annal_open_turn *turn = &found->turns[i];
        table_text(table, turn->turn_id);
        table_number(table, (int64_t)turn->seq);
        table_text(table, turn->status);
        table_text(table, turn->created_at);
        table_number(table, turn->sequence);
    }
    annal_recovery_free(found);
    return status;
}

/* ---- Tails ---- */

static annal_status op_tail(struct job *job, annal_error *err)
{
    struct args *args = &job->args;
    annal_slice *sessions = NULL, *types = NULL;
    annal_tail_options options = {0};
    annal_tail *tail = NULL;
    struct handle *handle = NULL;
    annal_status status = args_slices(args, &sessions, &options.session_count);
    if (status >= 0)
        status = args_slices(args, &types, &options.type_count);
    options.sessions = sessions;
    options.types = types;
    options.from_seq = (uint64_t)args_number(args);
    options.from_us = args_number(args);
    options.last = (uint64_t)args_number(args);
    options.from_now = args_number(args) != 0;
    options.cursor = args_slice(args);
    if (status >= 0)
        status = annal_tail_open(base_store(job->store->base), &options, &tail, err);
    if (status >= 0 && (handle = add_handle(job, HANDLE_TAIL, tail)) == NULL) {
        annal_tail_close(tail);
        status = ANNAL_ERR_NOMEM;
    }
    if (status >= 0)
        table_number(&job->table, handle->id);
    free(sessions);
    free(types);
    return status;
}

annal_status tail_read(struct handle *handle, size_t max, struct table *table, annal_error *err)
{
    struct before before = {.session_len = 0};
    annal_event event;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < max && table->len < BLOCK_BYTES && !table->failed; i++) {
        status = annal_tail_next(handle->pointer, 0, &event, err);
        if (status < 0 || status == ANNAL_END)
            break;
        if (status == ANNAL_OK)
            put_event(table, &before, annal_tail_session(handle->pointer), &event);
    }
    return status < 0 ? status : ANNAL_OK;
}

static annal_status op_tail_commit(struct job *job, annal_error *err)
{
    annal_tail *tail = take_pointer(job, HANDLE_TAIL, err);
    return tail == NULL ? ANNAL_ERR_CLOSED : annal_tail_commit(tail, err);
}

/* ---- Artifacts and packs ---- */

static annal_status op_put_artifact(struct job *job, annal_error *err)
{
    annal_slice session = args_slice(&job->args);
    annal_artifact_info info = {0};
    annal_status status = annal_artifact_put(base_store(job->store->base), session,
                                             args_slice(&job->args), &info, err);
    table_string(&job->table, info.sha256);
    table_number(&job->table, (int64_t)info.bytes);
    return status;
}

static annal_status op_get_artifact(struct job *job, annal_error *err)
{
    annal_slice session = args_slice(&job->args);
    annal_slice sha256 = args_slice(&job->args);
    uint64_t bytes_max = (uint64_t)args_number(&job->args);
    annal_value content = {.kind = ANNAL_VALUE_BLOB};
    annal_status status = annal_artifact_get(base_store(job->store->base), session, sha256,
                                             bytes_max, &content.bytes, err);
    if (status < 0)
        return status;
    table_value(&job->table, &content);
    annal_free(content.bytes.ptr);
    return status;
}

static int put_pack(void *arg, const annal_pack_info *info)
{
    struct table *table = arg;
    table_string(table, info->name);
    table_number(table, info->version);
    table_number(table, info->state);
    table_string(table, info->source);
    table_string(table, info->error);
    table_number(table, (int64_t)info->events_applied);
    table_number(table, (int64_t)info->events_behind);
    return table->failed ? STOP : 0;
}

static annal_status op_packs(struct job *job, annal_error *err)
{
    annal_index *index = NULL;
    annal_status status = base_index(job->store->base, &index, err);
    return status < 0 ? status : annal_pack_each(index, put_pack, &job->table, err);
}

/* Two arguments: the pack, and where its database is; off without a third one that is 1. */
static annal_status op_switch_pack(struct job *job, annal_error *err)
{
    annal_slice pack = args_slice(&job->args);
    annal_slice place = args_slice(&job->args);
    bool on = args_number(&job->args) != 0;
    annal_store *store = base_store(job->store->base);
    char *name = strndup(pack.ptr, pack.len);
    char *at = place.len > 0 ? strndup(place.ptr, place.len) : NULL;
    annal_status status = ANNAL_ERR_NOMEM;
    if (name != NULL && (at != NULL || place.len == 0))
        status =
            on ? annal_pack_enable(store, name, at, err) : annal_pack_disable(store, name, err);
    free(name);
    free(at);
    return status;
}

/* ---- What never waits ---- */

static annal_status op_time(struct job *job, annal_error *err)
{
    int64_t time_us = 0;
    annal_status status = annal_time_parse(args_slice(&job->args), &time_us, err);
    table_number(&job->table, time_us);
    return status;
}

static annal_status op_check_id(struct job *job, annal_error *err)
{
    return annal_session_id_check(args_slice(&job->args), err);
}

static annal_status op_hash(struct job *job, annal_error *err)
{
    (void)err;
    annal_slice bytes = args_slice(&job->args);
    table_number(&job->table, (int64_t)libannal_hash(bytes.ptr, bytes.len));
    return ANNAL_OK;
}

static annal_status op_version(struct job *job, annal_error *err)
{
    (void)err;
    table_string(&job->table, annal_version());
    return ANNAL_OK;
}

static const struct {
    const char *name;
    op_fn run;
} ops[] = {
    {"check_id", op_check_id},
    {"close", op_close},
    {"copy", op_copy},
    {"count", op_count},
    {"delete", op_delete},
    {"events", op_events},
    {"fork", op_fork},
    {"get_artifact", op_get_artifact},
    {"hash", op_hash},
    {"info", op_info},
    {"open", op_open},
    {"packs", op_packs},
    {"put_artifact", op_put_artifact},
    {"query", op_query},
    {"read", op_read},
    {"recovery", op_recovery},
    {"release", op_release},
    {"search", op_search},
    {"sessions", op_sessions},
    {"sql", op_sql},
    {"state", op_state},
    {"state_hash", op_state_hash},
    {"state_json", op_state_json},
    {"state_patch", op_state_patch},
    {"state_sql", op_state_sql},
    {"switch_pack", op_switch_pack},
    {"tail", op_tail},
    {"tail_commit", op_tail_commit},
    {"time", op_time},
    {"verify", op_verify},
    {"version", op_version},
};

op_fn op_find(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, name) == 0)
            return ops[i].run;
    return NULL;
}
