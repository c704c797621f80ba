/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a fleet. A stream contains each event at least once, and not always in order: events that
 * were sent again after a failure arrive later.
 *
 * (1) An event is printed if it continues the last printed event of its session: it has the next
 *     seq, and its hash of the event before equals the hash of the last one. An event whose seq was
 *     already printed is skipped.
 * (2) An event that arrives too early is held until the events before it arrive. If no message
 *     arrives for a while, the stream is read again from the session's last printed event; if the
 *     missing events are not there either, the gap is reported, and the session continues after it.
 *     With follow, this happens only after half a minute: after a failure a shipper sends again
 *     what the stream did not accept. When HELD_MAX events of a session, or HELD_BYTES_MAX bytes of
 *     all, are held, gaps are reported without waiting.
 * (3) The first event of a session that arrives need not be its first event, because the stream has
 *     limits. Unless the event is the first of its session, it is held for a moment, too.
 * (4) Other programs may write to the stream. Messages with headers or events that annal would not
 *     have written are skipped, which is reported once; at most SESSIONS_MAX sessions are followed.
 */
#include "tools/ship/nats_tail.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/outside.h"
#include "tools/ship/nats.h"
#include "tools/ship/ship.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { QUIET_MS = 5000, LOOK_MS = 250, AGAIN_MS = 500 };
/* An event has at most 64 MiB, and each part has at least 8 KiB. */
enum { PARTS_MAX = 10000 };
enum { SESSIONS_MAX = 1000000, HELD_MAX = 10000 };
/* how often a stream is opened again that delivers nothing although it contains more */
enum { STUCK_MAX = 3 };
/* maximum size of the messages that the library holds until we take them; with more, the
 * subscription fails. A server sends at most 32 MiB before it waits for us. */
#define PENDING_BYTES_MAX (128 << 20)
#define HELD_BYTES_MAX    ((size_t)512 << 20)
#define SETTLE_US         INT64_C(1000000) /* silence in us before a gap is reported */
#define STUCK_US          INT64_C(5000000)
#define GAP_US            INT64_C(30000000)

/* The values of a message's headers. */
struct sent {
    uint64_t seq, h, before, stream_seq;
    /* number of the message's part, from 1, and the number of parts of the event */
    size_t part, part_count;
};

struct held {
    struct sent sent;
    size_t part_have, bytes;
    struct buf *parts;
    struct held *next; /* held events, in the order of seq */
};

#define NAME_BYTES (SHIP_STORE_BYTES_MAX + ANNAL_SESSION_ID_BYTES_MAX + 2)

struct followed {
    char *name; /* name of the store, a line break, and id of the session */
    uint64_t seq, h, stream_seq;
    bool is_begun, was_reported;
    /* seq of the last held event when the stream was last read again for missing events, or 0 */
    uint64_t read_to;
    int64_t read_again_us; /* time when the stream was last read again, in us (monotonic) */
    struct held *held;
    size_t held_count;
    struct followed *next;
};

struct following {
    const struct nats_tail_options *options;
    natsConnection *connection;
    jsCtx *js;
    natsSubscription *subscription;
    void *tree;                /* struct followed by name; root of tsearch(3) */
    struct followed *sessions; /* the sessions in `tree` as a list */
    uint64_t next;             /* position in the stream of the next message to read */
    int64_t created;           /* creation time of the stream, to notice a new stream */
    int64_t received_us;       /* time when the last message arrived, in us (monotonic) */
    size_t session_count, held_bytes;
    int stuck; /* number of times the stream was opened again since the last message */
    bool is_unreachable, was_bad, was_not_ours, was_full, was_many;
};

/* ---- Sessions ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct followed *)a)->name, ((const struct followed *)b)->name);
}

static void free_held(struct held *held)
{
    for (size_t i = 0; held->parts != NULL && i < held->sent.part_count; i++)
        annal__buf_done(&held->parts[i]);
    annal__free(held->parts);
    annal__free(held);
}

/* Remove the first held event from the list, and free it. */
static void drop_first(struct following *following, struct followed *session)
{
    struct held *held = session->held;
    session->held = held->next;
    session->held_count--;
    following->held_bytes -= held->bytes;
    free_held(held);
}

static void free_followed(void *arg)
{
    struct followed *session = arg;
    while (session->held != NULL) {
        struct held *held = session->held;
        session->held = held->next;
        free_held(held);
    }
    annal__free(session->name);
    annal__free(session);
}

static struct followed *find_session(const struct following *following, const char *name)
{
    struct followed **found =
        tfind(&(struct followed){.name = (char *)(uintptr_t)name}, &following->tree, compare);
    return found != NULL ? *found : NULL;
}

static struct followed *add_session(struct following *following, const char *name)
{
    struct followed *session = must_zalloc(sizeof *session);
    session->name = must_strndup(name, strlen(name));
    must_true(tsearch(session, &following->tree, compare) != NULL);
    session->next = following->sessions;
    following->sessions = session;
    following->session_count++;
    return session;
}

/* ---- Printing ---- */

/* Report, once, a message that annal did not send (rule 4). */
static void say_not_ours(struct following *following, uint64_t stream_seq)
{
    if (!following->was_not_ours)
        say("message %" PRIu64
            " of the stream is not an event that annal shipped; such messages are skipped",
            stream_seq);
    following->was_not_ours = true;
}

/* Check that the text can be an event that annal shipped: an object on one line. */
static bool is_event(annal_slice text)
{
    return text.len > 2 && text.ptr[0] == '{' && text.ptr[1] == '"' &&
           memchr(text.ptr, '\n', text.len) == NULL &&
           annal__json_check(text, JSON_DEPTH_MAX, NULL) == JSON_VALID;
}

static void print(struct following *following, const struct followed *session, struct held *held)
{
    struct buf *text = &held->parts[0];
    size_t store = strcspn(session->name, "\n");
    for (size_t i = 1; i < held->sent.part_count; i++) {
        must_append_slice(text, annal__buf_slice(&held->parts[i]));
        annal__buf_done(&held->parts[i]);
    }
    if (!is_event(annal__buf_slice(text))) {
        say_not_ours(following, held->sent.stream_seq);
        return;
    }
    out_json("{\"store\":?,", (annal_slice){session->name, store});
    /* the text without its opening brace, which was printed with the name of the store */
    fwrite(text->ptr + 1, 1, text->len - 1, stdout);
    putchar('\n');
}

static void say_of(struct following *following, const struct followed *session, const char *what)
{
    int store = (int)strcspn(session->name, "\n");
    say("session '%s' of store '%.*s': %s", session->name + store + 1, store, session->name, what);
    following->was_bad = true;
}

/* Print the held events that continue the session (rule 1). */
static void print_ready(struct following *following, struct followed *session)
{
    for (struct held *held; (held = session->held) != NULL;) {
        const struct sent *sent = &held->sent;
        bool is_old = session->is_begun && sent->seq <= session->seq;
        bool is_next = session->is_begun ? sent->seq == session->seq + 1 : sent->before == 0;
        if (!is_old && (!is_next || held->part_have < sent->part_count))
            break;
        bool is_other = is_old ? sent->seq == session->seq && sent->h != session->h
                               : session->is_begun && sent->before != session->h;
        if (is_other && !session->was_reported) {
            session->was_reported = true;
            say_of(following, session,
                   "the stream contains a different history of this session, too; that history is "
                   "skipped");
        }
        if (!is_old && !is_other) {
            print(following, session, held);
            session->is_begun = true;
            session->seq = sent->seq;
            session->h = sent->h;
            session->stream_seq = sent->stream_seq;
        }
        drop_first(following, session);
    }
}

/* ---- A message ---- */

static struct outside header_of(natsMsg *message, const char *header)
{
    const char *text = NULL;
    return natsMsgHeader_Get(message, header, &text) == NATS_OK ? (struct outside){.at = text}
                                                                : (struct outside){"", true};
}

/* Read the names of the store and the session, and the position of a message, from its headers.
 * Returns false if annal did not send the message. */
static bool read_sent(natsMsg *message, char name[NAME_BYTES], struct sent *out)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct outside store = header_of(message, "Annal-Store");
    struct outside session = header_of(message, "Annal-Session");
    struct outside seq = header_of(message, "Annal-Seq"), h = header_of(message, "Annal-H");
    struct outside before = header_of(message, "Annal-H-Before");
    struct outside part = header_of(message, "Annal-Part");
    size_t store_bytes = strlen(store.at);
    if (part.is_bad) /* an event that fits into one message has no header Annal-Part */
        part = (struct outside){.at = "1/1"};
    outside_session(&session, id);
    out->seq = outside_number(&seq, OUTSIDE_SEQ_MAX);
    out->h = outside_hash(&h);
    out->before = outside_hash(&before);
    out->part = outside_number(&part, PARTS_MAX);
    outside_skip(&part, "/");
    out->part_count = outside_number(&part, PARTS_MAX);
    snprintf(name, NAME_BYTES, "%s\n%s", store.at, id);
    return store_bytes > 0 && store_bytes < SHIP_STORE_BYTES_MAX &&
           strchr(store.at, '\n') == NULL && outside_end(&session) && outside_end(&seq) &&
           outside_end(&h) && outside_end(&before) && outside_end(&part) && out->seq > 0 &&
           out->part > 0 && out->part <= out->part_count && natsMsg_GetDataLength(message) > 0;
}

static struct held *hold(struct following *following, struct followed *session,
                         const struct sent *sent)
{
    uint64_t seq = sent->seq;
    struct held **at = &session->held;
    while (*at != NULL &&
           ((*at)->sent.seq < seq || ((*at)->sent.seq == seq && (*at)->sent.h != sent->h)))
        at = &(*at)->next;
    if (*at != NULL && (*at)->sent.seq == seq)
        return *at;
    struct held *held = must_zalloc(sizeof *held);
    struct buf *parts = must_zalloc(sent->part_count * sizeof *parts);
    *held = (struct held){.sent = *sent,
                          .bytes = sizeof *held + sent->part_count * sizeof *parts,
                          .parts = parts,
                          .next = *at};
    session->held_count++;
    following->held_bytes += held->bytes;
    *at = held;
    return held;
}

static void take_part(struct following *following, struct followed *session, natsMsg *message,
                      const struct sent *sent)
{
    size_t bytes = (size_t)natsMsg_GetDataLength(message);
    struct held *held = hold(following, session, sent);
    if (held->sent.part_count != sent->part_count)
        return;
    struct buf *piece = &held->parts[sent->part - 1];
    held->sent.stream_seq = sent->stream_seq;
    if (piece->len > 0)
        return; /* the same part of the event was received already: ignore it */
    held->part_have++;
    held->bytes += bytes;
    following->held_bytes += bytes;
    must_append(piece, natsMsg_GetData(message), bytes);
}

static bool is_wanted(const struct following *following, const char *session)
{
    const struct nats_tail_options *options = following->options;
    for (size_t i = 0; i < options->session_count; i++)
        if (annal__slice_is(options->sessions[i], session))
            return true;
    return options->session_count == 0;
}

/* ---- Gaps ---- */

/* NO_WAIT: report gaps at once; NO_WHOLE: also drop a last event whose parts have not all
 * arrived */
enum patience { WAIT, NO_WAIT, NO_WHOLE };

/* Return whether to wait for the missing events before the first held event. *out_again: the stream
 * must be read again, from following->next. */
static bool must_wait(struct following *following, struct followed *session, bool *out_again)
{
    const struct held *last = session->held;
    if (session->is_begun && last->sent.seq > session->read_to) {
        while (last->next != NULL)
            last = last->next;
        session->read_to = last->sent.seq;
        session->read_again_us = annal__clock_monotonic_us();
        following->next =
            session->stream_seq + 1 < following->next ? session->stream_seq + 1 : following->next;
        return *out_again = true;
    }
    return session->is_begun && following->options->follow &&
           annal__clock_monotonic_us() < session->read_again_us + GAP_US;
}

/* Print held events and report gaps in a session (rule 2). */
static void settle_gaps(struct following *following, struct followed *session,
                        enum patience patience, bool *out_again)
{
    char what[200];
    for (struct held *held; (held = session->held) != NULL;) {
        bool is_whole = held->part_have == held->sent.part_count;
        if (patience == WAIT && must_wait(following, session, out_again))
            break;
        if (patience == NO_WAIT && !is_whole && held->next == NULL)
            break; /* keep the last held event: its other parts may still arrive */
        if (!is_whole) {
            drop_first(following, session);
            continue;
        }
        if (session->is_begun && held->sent.seq > session->seq + 1) {
            snprintf(what, sizeof what,
                     "events %" PRIu64 " to %" PRIu64
                     " are not in the stream; the session continues after these events",
                     session->seq + 1, held->sent.seq - 1);
            say_of(following, session, what);
        }
        /* the stream does not contain the events before this event any more (rule 3) */
        session->is_begun = true;
        session->seq = held->sent.seq - 1;
        session->h = held->sent.before;
        print_ready(following, session);
    }
}

static void settle_all(struct following *following, enum patience patience, bool *out_again)
{
    for (struct followed *session = following->sessions; session != NULL; session = session->next)
        settle_gaps(following, session, patience, out_again);
}

/* If too many events or bytes wait for missing events (rule 2), print those that wait, and report
 * the gaps between them. */
static void limit_held(struct following *following, struct followed *session)
{
    bool again = false, is_full = following->held_bytes > HELD_BYTES_MAX;
    if (session->held_count <= HELD_MAX && !is_full)
        return;
    if (!following->was_full)
        say("more than %d events of a session, or %zu MiB in total, arrived before the events that "
            "they continue; gaps are now reported without waiting",
            HELD_MAX, HELD_BYTES_MAX >> 20);
    following->was_full = true;
    settle_gaps(following, session, NO_WAIT, &again);
    if (is_full)
        settle_all(following, NO_WAIT, &again);
    if (following->held_bytes > HELD_BYTES_MAX)
        settle_all(following, NO_WHOLE, &again);
}

static void say_too_many(struct following *following)
{
    if (!following->was_many)
        say("the stream has more than %d sessions; further sessions are skipped", SESSIONS_MAX);
    following->was_many = following->was_bad = true;
}

/* Hold the event in a message, and print what can be printed. */
static void take(struct following *following, natsMsg *message)
{
    char name[NAME_BYTES];
    struct sent sent;
    jsMsgMetaData *meta = NULL;
    if (natsMsg_GetMetaData(&meta, message) != NATS_OK)
        return;
    sent.stream_seq = meta->Sequence.Stream;
    jsMsgMetaData_Destroy(meta);
    following->next = sent.stream_seq + 1;
    following->received_us = annal__clock_monotonic_us();
    following->stuck = 0;
    if (!read_sent(message, name, &sent)) {
        say_not_ours(following, sent.stream_seq);
        return;
    }
    if (!is_wanted(following, strchr(name, '\n') + 1))
        return;
    struct followed *session = find_session(following, name);
    if (session == NULL && following->session_count >= SESSIONS_MAX) {
        say_too_many(following);
        return;
    }
    if (session == NULL)
        session = add_session(following, name);
    if (session->is_begun && sent.seq < session->seq)
        return;
    take_part(following, session, message, &sent);
    print_ready(following, session);
    limit_held(following, session);
}

/* ---- The stream ---- */

static void disconnect(struct following *following)
{
    natsSubscription_Destroy(following->subscription);
    jsCtx_Destroy(following->js);
    natsConnection_Destroy(following->connection);
    following->subscription = NULL;
    following->js = NULL;
    following->connection = NULL;
}

static natsStatus subscribe(struct following *following)
{
    jsSubOptions options;
    natsSubscription_Destroy(following->subscription);
    following->subscription = NULL;
    natsStatus code = jsSubOptions_Init(&options);
    options.Stream = NATS_STREAM;
    options.Ordered = true;
    options.Config.DeliverPolicy = js_DeliverByStartSequence;
    options.Config.OptStartSeq = following->next;
    if (code == NATS_OK)
        code = js_SubscribeSync(&following->subscription, following->js, NATS_SUBJECTS, NULL,
                                &options, NULL);
    if (code == NATS_OK)
        code = natsSubscription_SetPendingLimits(following->subscription, -1, PENDING_BYTES_MAX);
    following->received_us = annal__clock_monotonic_us();
    return code;
}

/* Open the stream. A stream that was created again is read from its beginning; events that were
 * printed before are recognized by seq and hash. */
static natsStatus open_stream(struct following *following)
{
    jsStreamInfo *info = NULL;
    natsStatus code = js_GetStreamInfo(&info, following->js, NATS_STREAM, NULL, NULL);
    if (code != NATS_OK)
        return code;
    if (info->Created != following->created || following->next > info->State.LastSeq + 1) {
        following->next = 1;
        for (struct followed *session = following->sessions; session != NULL;
             session = session->next)
            session->stream_seq = 0;
    }
    following->created = info->Created;
    jsStreamInfo_Destroy(info);
    return subscribe(following);
}

static annal_status connect_stream(struct following *following, annal_error *err)
{
    annal_status status = nats_connect(following->options->url, QUIET_MS, &following->connection,
                                       &following->js, err);
    natsStatus code = status >= 0 ? open_stream(following) : NATS_OK;
    if (code == NATS_OK)
        return status;
    err->status = code == NATS_NOT_FOUND ? ANNAL_ERR_NOTFOUND : ANNAL_ERR_BUSY;
    snprintf(err->message, sizeof err->message, "tail of %s: %s",
             nats_name(following->options->url),
             code == NATS_NOT_FOUND ? "nothing was shipped to it yet" : natsStatus_GetText(code));
    return err->status;
}

/*
 * Called when no message arrived for a moment. After SETTLE_US of silence at the end of the stream,
 * decide about events that are still missing. If the stream was replaced, or delivers nothing
 * although it contains more, open it again, at most STUCK_MAX times. Returns ANNAL_END at the end
 * of the stream, unless the command follows it.
 */
static annal_status handle_silence(struct following *following)
{
    bool again = false;
    int64_t silent_us = annal__clock_monotonic_us() - following->received_us;
    if (silent_us < SETTLE_US)
        return ANNAL_OK;
    jsStreamInfo *info = NULL;
    if (js_GetStreamInfo(&info, following->js, NATS_STREAM, NULL, NULL) != NATS_OK)
        return ANNAL_ERR_BUSY;
    bool at_end = following->next > info->State.LastSeq || info->State.Msgs == 0;
    bool is_another = info->Created != following->created;
    jsStreamInfo_Destroy(info);
    bool is_stuck = !at_end && silent_us > STUCK_US;
    if (is_stuck && !is_another && following->stuck++ >= STUCK_MAX)
        return ANNAL_ERR_BUSY;
    if (is_another || is_stuck)
        return open_stream(following) == NATS_OK ? ANNAL_OK : ANNAL_ERR_BUSY;
    if (at_end)
        settle_all(following, WAIT, &again);
    if (again)
        return subscribe(following) == NATS_OK ? ANNAL_OK : ANNAL_ERR_BUSY;
    return at_end && !following->options->follow ? ANNAL_END : ANNAL_OK;
}

static annal_status step(struct following *following, annal_error *err)
{
    natsMsg *message = NULL;
    if (following->connection == NULL) {
        annal_status status = connect_stream(following, err);
        if (status < 0)
            return status;
        if (following->is_unreachable)
            say("the stream at %s answers again", nats_name(following->options->url));
        following->is_unreachable = false;
    }
    natsStatus code = natsSubscription_NextMsg(&message, following->subscription, LOOK_MS);
    if (code == NATS_OK) {
        take(following, message);
        natsMsg_Destroy(message);
        return ANNAL_OK;
    }
    err->status = ANNAL_ERR_BUSY;
    snprintf(err->message, sizeof err->message, "tail of %s: %s",
             nats_name(following->options->url), natsStatus_GetText(code));
    if (code != NATS_TIMEOUT)
        return ANNAL_ERR_BUSY;
    return out_flush() && !out_reader_is_gone() ? handle_silence(following) : ANNAL_END;
}

/* Disconnect. With follow, wait before the next attempt; otherwise return the failure. */
static annal_status wait_for_it(struct following *following, const annal_error *err)
{
    disconnect(following);
    if ((err->status != ANNAL_ERR_BUSY && err->status != ANNAL_ERR_NOTFOUND) ||
        !following->options->follow)
        return err->status;
    if (!following->is_unreachable)
        say("%s; retrying until the stream answers", err->message);
    following->is_unreachable = true;
    nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
    return out_wanted() && !out_reader_is_gone() ? ANNAL_OK : ANNAL_END;
}

int nats_tail(const struct nats_tail_options *options)
{
    struct following following = {.options = options, .next = 1};
    annal_error err = {0};
    annal_status status = library_load(&library_nats, &err);
    if (status < 0)
        return fail_error(&err);
    while (status == ANNAL_OK && out_wanted()) {
        status = step(&following, &err);
        if (status < 0)
            status = wait_for_it(&following, &err);
    }
    disconnect(&following);
    tdestroy(following.tree, free_followed);
    err.status = status;
    if (status < 0)
        return out_finish(ship_fail_target(&err));
    return out_finish(following.was_bad ? EXIT_REFUSED : EXIT_DONE);
}
