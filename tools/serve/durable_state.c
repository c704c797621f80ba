/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a stream, from the events of its session; and the copies in memory (durable.h, rule
 * 3). */
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "journal/base/slice.h"
#include "tools/serve/durable.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define STATES_MAX 256u /* copies in memory; the copy that was not used for longest is dropped */

struct entry {
    struct durable_state state; /* first, so that a state is its entry */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    pthread_mutex_t lock;
    unsigned users; /* guarded by the lock of struct durable, as the list */
    struct entry *next;
};

struct durable {
    pthread_mutex_t lock;
    struct entry *first; /* the entry that was used last */
    unsigned count;
};

struct durable *durable_state_new(void)
{
    struct durable *durable = annal__zalloc(sizeof *durable);
    if (durable != NULL)
        pthread_mutex_init(&durable->lock, NULL);
    return durable;
}

static void free_entry(struct entry *entry)
{
    annal__free(entry->state.producers);
    pthread_mutex_destroy(&entry->lock);
    annal__free(entry);
}

void durable_state_free(struct durable *durable)
{
    if (durable == NULL)
        return;
    while (durable->first != NULL) {
        struct entry *entry = durable->first;
        durable->first = entry->next;
        free_entry(entry);
    }
    pthread_mutex_destroy(&durable->lock);
    annal__free(durable);
}

/* ---- Copies in memory ---- */

static struct entry *new_entry(annal_slice session)
{
    struct entry *entry = annal__zalloc(sizeof *entry);
    if (entry == NULL)
        return NULL;
    memcpy(entry->session, session.ptr, session.len);
    pthread_mutex_init(&entry->lock, NULL);
    return entry;
}

/* Drop the last entry in the list that no request uses. Call with the lock. */
static void drop_oldest(struct durable *durable)
{
    struct entry **oldest = NULL;
    for (struct entry **at = &durable->first; *at != NULL; at = &(*at)->next)
        oldest = (*at)->users == 0 ? at : oldest;
    if (oldest == NULL)
        return;
    struct entry *entry = *oldest;
    *oldest = entry->next;
    durable->count--;
    free_entry(entry);
}

/* Return the entry of a session, at the front of the list, with another user; NULL if memory ran
 * out. */
static struct entry *find_entry(struct durable *durable, annal_slice session)
{
    struct entry **at = &durable->first;
    pthread_mutex_lock(&durable->lock);
    while (*at != NULL && !annal__slice_is(session, (*at)->session))
        at = &(*at)->next;
    struct entry *entry = *at;
    if (entry != NULL) {
        *at = entry->next;
    } else if ((entry = new_entry(session)) != NULL) {
        if (durable->count >= STATES_MAX)
            drop_oldest(durable);
        durable->count++;
    }
    if (entry != NULL) {
        entry->next = durable->first;
        durable->first = entry;
        entry->users++;
    }
    pthread_mutex_unlock(&durable->lock);
    return entry;
}

void durable_state_forget(struct durable_state *state)
{
    int64_t used_us = state->used_us;
    annal__free(state->producers);
    *state = (struct durable_state){.used_us = used_us};
}

void durable_state_give(struct serve *serve, struct durable_state *state)
{
    struct entry *entry = (struct entry *)state;
    if (state == NULL)
        return;
    pthread_mutex_unlock(&entry->lock);
    pthread_mutex_lock(&serve->durable->lock);
    entry->users--;
    pthread_mutex_unlock(&serve->durable->lock);
}

/* ---- Reading the events ---- */

/* Headers of answers contain these texts, and any writer may have appended the event. */
static bool is_printable(annal_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

/* Copy the text of a member into a member of the state; "" if it is missing, too long, or has
 * control characters. */
static void copy_text(annal_slice data, const char *path, char *out, size_t bytes)
{
    SCOPED_BUF scratch = {0};
    annal_slice text = {0}, raw = annal__json_member(data, path);
    out[0] = '\0';
    if (raw.len > 1 && raw.ptr[0] == '"' && annal__json_text(raw, &scratch, &text) >= 0 &&
        text.len < bytes && is_printable(text)) {
        memcpy(out, text.ptr, text.len);
        out[text.len] = '\0';
    }
}

static uint64_t number_of(annal_slice data, const char *path, uint64_t missing)
{
    struct number number = annal__number_read(annal__json_member(data, path));
    return number.kind == NUMBER_UINT ? number.uint : missing;
}

static bool is_true(annal_slice data, const char *path)
{
    return annal__slice_same(annal__json_member(data, path), ANNAL_SLICE("true"));
}

/* Begin the state of a stream. A fork has neither producers nor Stream-Seq of its source. */
static void apply_created(struct durable_state *state, annal_slice data)
{
    state->is_stream = true;
    copy_text(data, "content_type", state->type, sizeof state->type);
    copy_text(data, "expires_at", state->expires, sizeof state->expires);
    copy_text(data, "fork.from", state->from, sizeof state->from);
    if (annal_time_parse(annal_slice_of(state->expires), &state->expires_us, NULL) < 0)
        state->expires_us = 0;
    state->ttl_s = (int64_t)number_of(data, "ttl", UINT64_MAX);
    state->from_offset = number_of(data, "fork.offset", 0);
    state->from_sub = number_of(data, "fork.sub_offset", 0);
    state->tail = state->begin_tail = number_of(data, "fork.tail", 0);
}

struct durable_producer *durable_state_producer(struct durable_state *state, const char *id)
{
    for (size_t i = 0; i < state->producer_count; i++) {
        if (strcmp(state->producers[i].id, id) == 0)
            return &state->producers[i];
    }
    return NULL;
}

static annal_status apply_producer(struct durable_state *state, const struct durable_producer *of,
                                   annal_error *err)
{
    struct durable_producer *producer = durable_state_producer(state, of->id);
    if (producer == NULL && state->producer_count == DURABLE_PRODUCERS_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "the stream has more than %u producers",
                           DURABLE_PRODUCERS_MAX);
    if (producer == NULL)
        producer = annal__array_add(&state->producers, &state->producer_count, sizeof *producer);
    if (producer == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "streams: out of memory");
    *producer = *of;
    return ANNAL_OK;
}

static annal_status apply_control(struct durable_state *state, annal_slice data, annal_error *err)
{
    struct durable_producer producer = {.epoch = number_of(data, "producer.epoch", 0),
                                        .seq = number_of(data, "producer.seq", 0)};
    copy_text(data, "producer.id", producer.id, sizeof producer.id);
    annal_status status = producer.id[0] == '\0' ? ANNAL_OK : apply_producer(state, &producer, err);
    if (annal__json_member(data, "stream_seq").len > 0)
        copy_text(data, "stream_seq", state->stream_seq, sizeof state->stream_seq);
    if (is_true(data, "closed")) {
        state->is_closed = true;
        state->closed_by = producer;
    }
    return status;
}

annal_status durable_state_apply(struct durable_state *state, annal_slice type, annal_slice data,
                                 uint64_t seq, int64_t ts_us, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (seq == state->first_seq && annal__slice_same(type, DURABLE_CREATED))
        apply_created(state, data);
    else if (annal__slice_same(type, DURABLE_JSON) || annal__slice_same(type, DURABLE_BYTES))
        state->tail = seq;
    else if (annal__slice_same(type, DURABLE_CONTROL))
        status = apply_control(state, data, err);
    else if (annal__slice_same(type, ANNAL_SLICE("stream.deleted")))
        state->is_deleted = true;
    state->seq = seq;
    state->touched_us = ts_us;
    state->used_us = ts_us > state->used_us ? ts_us : state->used_us;
    return status;
}

annal_status durable_state_next(annal_cursor *cursor, annal_slice session, annal_event *out,
                                annal_error *err)
{
    annal_status status = annal_cursor_next(cursor, out, err);
    if (status == ANNAL_DAMAGE && annal_cursor_damage(cursor).event_lost)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "an event of session '%.*s' is damaged: 'annal verify' says which",
                           ANNAL_FMT(session));
    return status;
}

/* Read the events after state->seq. Those of a session that is not a stream are not read. */
static annal_status read_on(struct serve *serve, annal_slice session, struct durable_state *state,
                            annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = annal_cursor_open(serve->store, session, state->seq + 1, &cursor, err);
    while (status >= 0 &&
           (status = durable_state_next(cursor, session, &event, err)) != ANNAL_END) {
        if (status == ANNAL_OK)
            status =
                durable_state_apply(state, event.type, event.data, event.seq, event.ts_us, err);
        if (status < 0 || !state->is_stream)
            break;
    }
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}

void durable_state_begin(struct durable_state *state, const annal_session_info *info)
{
    memcpy(state->file, info->file, sizeof state->file);
    memcpy(state->fork_session, info->fork_session, sizeof state->fork_session);
    state->first_seq = info->first_seq;
    state->seq = info->first_seq - 1;
}

static annal_status refresh(struct serve *serve, annal_slice session, struct durable_state *state,
                            annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(serve->store, session, &info, err);
    if (status == ANNAL_ERR_NOTFOUND) {
        durable_state_forget(state);
        return ANNAL_OK;
    }
    if (status < 0)
        return status;
    if (strcmp(info.file, state->file) != 0) {
        durable_state_forget(state);
        state->used_us = 0;
        durable_state_begin(state, &info);
    }
    if (info.last_seq > state->seq && (state->is_stream || state->seq < state->first_seq))
        status = read_on(serve, session, state, err);
    return status;
}

struct durable_state *durable_state_take(struct serve *serve, annal_slice session, annal_error *err)
{
    struct entry *entry = find_entry(serve->durable, session);
    if (entry == NULL) {
        annal__fail(err, ANNAL_ERR_NOMEM, "streams: out of memory");
        return NULL;
    }
    pthread_mutex_lock(&entry->lock);
    if (refresh(serve, annal_slice_of(entry->session), &entry->state, err) >= 0)
        return &entry->state;
    durable_state_forget(&entry->state);
    durable_state_give(serve, &entry->state);
    return NULL;
}

/* ---- Questions ---- */

/* The reads of another server are known up to an eighth of the time to live (touch() in
 * durable_read.c). */
bool durable_state_is_expired(const struct durable_state *state)
{
    int64_t now_us = annal__system_clock.wall_us(NULL);
    if (!state->is_stream || state->is_deleted)
        return false;
    return (state->expires_us != 0 && now_us >= state->expires_us) ||
           (state->ttl_s >= 0 &&
            now_us - state->used_us >= state->ttl_s * INT64_C(1000000) / 8 * 9);
}

bool durable_state_exists(struct request *request, const struct durable_state *state)
{
    if (state->is_deleted)
        answer_error(request, 410, "gone", "the stream was deleted; streams forked from it remain");
    else if (!state->is_stream || durable_state_is_expired(state))
        answer_error(request, 404, "not_found", "no such stream");
    return request->status == 0;
}

static size_t media_length(const char *type)
{
    size_t len = strcspn(type, ";");
    while (len > 0 && type[len - 1] == ' ')
        len--;
    return len;
}

bool durable_state_same_type(const char *a, const char *b)
{
    size_t len = media_length(a);
    return len == media_length(b) && strncasecmp(a, b, len) == 0;
}

bool durable_state_is_json(const char *type)
{
    return durable_state_same_type(type, "application/json");
}

/* ---- Names ---- */

#define CODED "ds."

/* A name that is a session id is the session. Any other name, and one that begins as such a session
 * would, is "ds." and the name with _xx for each byte other than a letter, a digit, '.' and '-'. So
 * no two names are the same session. */
bool durable_state_name(struct request *request, annal_slice name,
                        char out[ANNAL_SESSION_ID_BYTES_MAX + 1])
{
    size_t len = 0;
    bool plain = annal_session_id_check(name, NULL) >= 0 && !annal__slice_begins(name, CODED);
    if (name.len == 0 || annal__slice_is(name, "__ds") || annal__slice_begins(name, "__ds/"))
        return answer_error(request, 404, "not_found", "no stream can have this name");
    if (!plain)
        len = (size_t)snprintf(out, 4, CODED);
    for (size_t i = 0; i < name.len && len <= ANNAL_SESSION_ID_BYTES_MAX; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (plain || (c < 128 && isalnum(c)) || c == '.' || c == '-')
            out[len++] = (char)c;
        else if (len + 3 <= ANNAL_SESSION_ID_BYTES_MAX)
            len += (size_t)snprintf(out + len, 4, "_%02x", c);
        else
            len = ANNAL_SESSION_ID_BYTES_MAX + 1;
    }
    if (len > ANNAL_SESSION_ID_BYTES_MAX)
        return answer_error(request, 414, "limit", "the name of the stream is longer than %d bytes",
                            ANNAL_SESSION_ID_BYTES_MAX);
    out[len] = '\0';
    return true;
}

void durable_state_admit(struct request *request)
{
    if (durable_state_name(request, request->id, request->session))
        request->id = annal_slice_of(request->session);
    (void)annal__buf_printf(&request->headers, "Cross-Origin-Resource-Policy: same-origin\n"
                                               "Content-Security-Policy: sandbox\n");
}
