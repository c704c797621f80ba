/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a fleet. A stream has each event at least once, and not always in order: what was sent
 * again after a failure comes later.
 *
 * (1) An event is printed when it continues what was printed of its session: the next seq, whose
 *     hash before it is that of the last one. A seq that was printed is skipped.
 * (2) What comes too early is held until what is before it arrives. If nothing more comes, the
 *     stream is read again from the last event of the session that was printed; if that does not
 *     have it either, the gap is said, and the session goes on after it. With follow a shipper has
 *     half a minute before that: after a failure it sends again what the stream did not take.
 * (3) The first event of a session that is seen need not be its first: the stream has limits. So
 *     unless nothing is before it, it is held for a moment, too.
 */
#include "tools/ship/nats_tail.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/ship/nats.h"
#include "tools/ship/ship.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { QUIET_MS = 5000, LOOK_MS = 250, AGAIN_MS = 500 };
/* An event has 64 MiB at most, and a part of it 8 KiB at least. */
enum { PARTS_MAX = 10000 };
#define SETTLE_US INT64_C(1000000) /* without a message, before a gap is one */
#define STUCK_US  INT64_C(5000000)
#define GAP_US    INT64_C(30000000)

struct held {
    uint64_t seq, h, before, stream_seq;
    size_t part_count, part_have;
    struct buf *parts;
    struct held *next; /* by seq */
};

struct followed {
    char *name; /* STORE\nSESSION */
    uint64_t seq, h, stream_seq;
    bool is_begun, was_read_again, was_told;
    int64_t read_again_us; /* when it was */
    struct held *held;
    struct followed *next;
};

struct following {
    const struct nats_tail_options *options;
    natsConnection *connection;
    jsCtx *js;
    natsSubscription *subscription;
    void *tree;                /* of tsearch(3) */
    struct followed *sessions; /* the same, as a list */
    uint64_t next;             /* in the stream */
    int64_t created;           /* the stream, which may be another one after a while */
    int64_t heard_us;          /* when the last message came */
    bool is_away, was_bad;
};

/* ---- Sessions ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct followed *)a)->name, ((const struct followed *)b)->name);
}

static void free_held(struct held *held)
{
    for (size_t i = 0; held->parts != NULL && i < held->part_count; i++)
        annal__buf_done(&held->parts[i]);
    annal__free(held->parts);
    annal__free(held);
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

static struct followed *session_of(struct following *following, const char *name)
{
    struct followed **found =
        tfind(&(struct followed){.name = (char *)(uintptr_t)name}, &following->tree, compare);
    if (found != NULL)
        return *found;
    struct followed *session = annal__zalloc(sizeof *session);
    if (session != NULL)
        session->name = annal__strndup(name, strlen(name));
    if (session == NULL || session->name == NULL ||
        tsearch(session, &following->tree, compare) == NULL) {
        if (session != NULL)
            free_followed(session);
        return NULL;
    }
    session->next = following->sessions;
    following->sessions = session;
    return session;
}

/* ---- Printing ---- */

static void print(const struct followed *session, const struct held *held)
{
    size_t store = strcspn(session->name, "\n");
    fputs("{\"store\":", stdout);
    out_json_string((annal_slice){session->name, store});
    putchar(',');
    for (size_t i = 0; i < held->part_count; i++) {
        size_t skip = i == 0; /* its brace */
        fwrite(held->parts[i].ptr + skip, 1, held->parts[i].len - skip, stdout);
    }
    putchar('\n');
}

static void say_of(struct following *following, const struct followed *session, const char *what)
{
    int store = (int)strcspn(session->name, "\n");
    say("session '%s' of '%.*s': %s", session->name + store + 1, store, session->name, what);
    following->was_bad = true;
}

/* Rule 1: everything that continues. */
static void print_ready(struct following *following, struct followed *session)
{
    for (struct held *held; (held = session->held) != NULL;) {
        bool is_old = session->is_begun && held->seq <= session->seq;
        bool is_next = session->is_begun ? held->seq == session->seq + 1 : held->before == 0;
        if (!is_old && (!is_next || held->part_have < held->part_count))
            return;
        bool is_other = is_old ? held->seq == session->seq && held->h != session->h
                               : session->is_begun && held->before != session->h;
        if (is_other && !session->was_told) {
            session->was_told = true;
            say_of(following, session, "another history of it was shipped, and is left out");
        }
        session->held = held->next;
        if (!is_old && !is_other) {
            print(session, held);
            session->is_begun = true;
            session->was_read_again = false;
            session->seq = held->seq;
            session->h = held->h;
            session->stream_seq = held->stream_seq;
        }
        free_held(held);
    }
}

/* ---- A message ---- */

static uint64_t number_of(natsMsg *message, const char *header, int base)
{
    const char *text = NULL;
    return natsMsgHeader_Get(message, header, &text) == NATS_OK ? strtoull(text, NULL, base) : 0;
}

static const char *text_of(natsMsg *message, const char *header)
{
    const char *text = NULL;
    return natsMsgHeader_Get(message, header, &text) == NATS_OK ? text : NULL;
}

static struct held *hold(struct followed *session, natsMsg *message, size_t part_count)
{
    uint64_t seq = number_of(message, "Annal-Seq", 10), h = number_of(message, "Annal-H", 16);
    struct held **at = &session->held;
    while (*at != NULL && ((*at)->seq < seq || ((*at)->seq == seq && (*at)->h != h)))
        at = &(*at)->next;
    if (*at != NULL && (*at)->seq == seq)
        return *at;
    struct held *held = annal__zalloc(sizeof *held);
    struct buf *parts = annal__zalloc(part_count * sizeof *parts);
    if (held == NULL || parts == NULL) {
        annal__free(held);
        annal__free(parts);
        return NULL;
    }
    *held = (struct held){.seq = seq,
                          .h = h,
                          .before = number_of(message, "Annal-H-Before", 16),
                          .part_count = part_count,
                          .parts = parts,
                          .next = *at};
    *at = held;
    return held;
}

static bool take_part(struct followed *session, natsMsg *message, uint64_t stream_seq)
{
    size_t number = 1, count = 1;
    const char *part = text_of(message, "Annal-Part");
    if (natsMsg_GetDataLength(message) < 1 ||
        (part != NULL && (sscanf(part, "%zu/%zu", &number, &count) != 2 || number < 1 ||
                          number > count || count > PARTS_MAX)))
        return true; /* not ours */
    struct held *held = hold(session, message, count);
    if (held == NULL || held->part_count != count)
        return held != NULL;
    struct buf *piece = &held->parts[number - 1];
    held->stream_seq = stream_seq;
    if (piece->len > 0)
        return true; /* again */
    held->part_have++;
    return annal__buf_append(piece, natsMsg_GetData(message),
                             (size_t)natsMsg_GetDataLength(message)) >= 0;
}

static bool is_wanted(const struct following *following, const char *session)
{
    const struct nats_tail_options *options = following->options;
    for (size_t i = 0; i < options->session_count; i++)
        if (strlen(session) == options->sessions[i].len &&
            memcmp(session, options->sessions[i].ptr, options->sessions[i].len) == 0)
            return true;
    return options->session_count == 0;
}

static bool take(struct following *following, natsMsg *message)
{
    char name[SHIP_STORE_BYTES_MAX + ANNAL_SESSION_ID_BYTES_MAX + 2];
    jsMsgMetaData *meta = NULL;
    const char *store = text_of(message, "Annal-Store"), *id = text_of(message, "Annal-Session");
    if (natsMsg_GetMetaData(&meta, message) != NATS_OK)
        return true;
    uint64_t stream_seq = meta->Sequence.Stream;
    jsMsgMetaData_Destroy(meta);
    following->next = stream_seq + 1;
    following->heard_us = annal__monotonic_us();
    if (store == NULL || id == NULL || !is_wanted(following, id))
        return true;
    snprintf(name, sizeof name, "%s\n%s", store, id);
    struct followed *session = session_of(following, name);
    if (session == NULL)
        return false;
    if (session->is_begun && number_of(message, "Annal-Seq", 10) < session->seq)
        return true;
    bool good = take_part(session, message, stream_seq);
    print_ready(following, session);
    return good;
}

/* ---- Gaps ---- */

/* True: the stream has to be read again, from following->next on. */
static bool settle_gap(struct following *following, struct followed *session)
{
    char what[200];
    struct held *held = session->held;
    if (held == NULL)
        return false;
    if (session->is_begun && !session->was_read_again) {
        session->was_read_again = true;
        session->read_again_us = annal__monotonic_us();
        following->next =
            session->stream_seq + 1 < following->next ? session->stream_seq + 1 : following->next;
        return true;
    }
    if (session->is_begun && following->options->follow &&
        annal__monotonic_us() < session->read_again_us + GAP_US)
        return false;
    if (held->part_have < held->part_count) {
        session->held = held->next;
        free_held(held);
        return settle_gap(following, session);
    }
    if (session->is_begun) {
        snprintf(what, sizeof what,
                 "events %" PRIu64 " to %" PRIu64 " are not in the stream; it goes on after them",
                 session->seq + 1, held->seq - 1);
        say_of(following, session, what);
    }
    session->is_begun = true; /* rule 3 */
    session->seq = held->seq - 1;
    session->h = held->before;
    print_ready(following, session);
    return settle_gap(following, session);
}

static bool settle(struct following *following)
{
    bool again = false;
    for (struct followed *session = following->sessions; session != NULL; session = session->next)
        again = settle_gap(following, session) || again;
    return again;
}

/* ---- The stream ---- */

static void leave(struct following *following)
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
        code = natsSubscription_SetPendingLimits(following->subscription, -1, -1);
    following->heard_us = annal__monotonic_us();
    return code;
}

/* All that was printed is known by seq and hash; so a new stream is read from its beginning. */
static natsStatus meet(struct following *following)
{
    jsStreamInfo *info = NULL;
    natsStatus code = js_GetStreamInfo(&info, following->js, NATS_STREAM, NULL, NULL);
    if (code != NATS_OK)
        return code;
    if (info->Created != following->created || following->next > info->State.LastSeq + 1) {
        following->next = 1;
        for (struct followed *one = following->sessions; one != NULL; one = one->next)
            one->stream_seq = 0;
    }
    following->created = info->Created;
    jsStreamInfo_Destroy(info);
    return subscribe(following);
}

static annal_status come(struct following *following, annal_error *err)
{
    annal_status status = nats_connect(following->options->url, QUIET_MS, &following->connection,
                                       &following->js, err);
    natsStatus code = status >= 0 ? meet(following) : NATS_OK;
    if (code == NATS_OK)
        return status;
    err->status = code == NATS_NOT_FOUND ? ANNAL_ERR_NOTFOUND : ANNAL_ERR_BUSY;
    snprintf(err->message, sizeof err->message, "tail of %s: %s",
             nats_name(following->options->url),
             code == NATS_NOT_FOUND ? "nothing was shipped to it yet" : natsStatus_GetText(code));
    return err->status;
}

/* Nothing came for a moment. ANNAL_END: there is nothing more. */
static annal_status rest(struct following *following)
{
    int64_t silent_us = annal__monotonic_us() - following->heard_us;
    if (silent_us < SETTLE_US)
        return ANNAL_OK;
    jsStreamInfo *info = NULL;
    if (js_GetStreamInfo(&info, following->js, NATS_STREAM, NULL, NULL) != NATS_OK)
        return ANNAL_ERR_BUSY;
    bool at_end = following->next > info->State.LastSeq || info->State.Msgs == 0;
    bool is_another = info->Created != following->created;
    jsStreamInfo_Destroy(info);
    if (is_another || (!at_end && silent_us > STUCK_US))
        return meet(following) == NATS_OK ? ANNAL_OK : ANNAL_ERR_BUSY;
    if (at_end && settle(following))
        return subscribe(following) == NATS_OK ? ANNAL_OK : ANNAL_ERR_BUSY;
    return at_end && !following->options->follow ? ANNAL_END : ANNAL_OK;
}

static annal_status step(struct following *following, annal_error *err)
{
    natsMsg *message = NULL;
    if (following->connection == NULL) {
        annal_status status = come(following, err);
        if (status < 0)
            return status;
        if (following->is_away)
            say("the stream answers again");
        following->is_away = false;
    }
    natsStatus code = natsSubscription_NextMsg(&message, following->subscription, LOOK_MS);
    if (code == NATS_OK) {
        bool good = take(following, message);
        natsMsg_Destroy(message);
        return good ? ANNAL_OK : ANNAL_ERR_NOMEM;
    }
    err->status = ANNAL_ERR_BUSY;
    snprintf(err->message, sizeof err->message, "tail of %s: %s",
             nats_name(following->options->url), natsStatus_GetText(code));
    if (code != NATS_TIMEOUT)
        return ANNAL_ERR_BUSY;
    return out_flush() && !out_reader_is_gone() ? rest(following) : ANNAL_END;
}

/* With follow, one that is away is tried again. */
static annal_status wait_for_it(struct following *following, const annal_error *err)
{
    leave(following);
    if ((err->status != ANNAL_ERR_BUSY && err->status != ANNAL_ERR_NOTFOUND) ||
        !following->options->follow)
        return err->status;
    if (!following->is_away)
        say("%s; trying again until it answers", err->message);
    following->is_away = true;
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
        if (status == ANNAL_ERR_NOMEM)
            snprintf(err.message, sizeof err.message, "tail: out of memory");
        if (status < 0)
            status = wait_for_it(&following, &err);
    }
    leave(&following);
    tdestroy(following.tree, free_followed);
    err.status = status;
    if (status < 0)
        return out_finish(fail_target(&err));
    return out_finish(following.was_bad ? EXIT_REFUSED : EXIT_DONE);
}
