/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/verify.h"

#include "journal/base/error.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/sys/cursor.h"
#include "journal/sys/lineage.h"
#include "journal/sys/verify.h"

#include <inttypes.h>
#include <string.h>

/* Number and pause (in microseconds) of looks at the end of a journal: a line that is being written
 * is complete a moment later. */
#define SETTLE_TRIES 20
#define SETTLE_US    10000

struct verification {
    annal_slice session;
    annal__proved *proved;
    annal_finding_fn fn;
    annal__verified_fn event_fn;
    void *arg;
    bool passed; /* whether damage was found since the last event */
    annal_verify_result result;
};

static void find(struct verification *verification, uint64_t seq, uint64_t offset, uint64_t length,
                 const char *what)
{
    annal_finding finding = {.session = verification->session,
                             .seq = seq,
                             .offset = offset,
                             .length = length,
                             .what = what};
    verification->result.findings++;
    verification->passed = true;
    if (verification->fn != NULL)
        verification->fn(verification->arg, &finding);
}

static void check_event(struct verification *verification, const annal_event *event)
{
    bool passed = verification->passed;
    verification->result.events++;
    if (verification->event_fn != NULL)
        verification->event_fn(verification->arg, event, passed);
    verification->passed = false;
}

annal_status annal__verify_settle(annal_store *store, annal_slice session,
                                  const annal_cursor *cursor, int *tries, uint64_t *out_bytes,
                                  annal_error *err)
{
    annal_session_info info;
    annal_position here = annal_cursor_position(cursor);
    annal_status status = annal_session_info_get(store, session, &info, err);
    if (status < 0)
        return status;
    *out_bytes = info.bytes;
    if (info.bytes <= here.offset)
        return ANNAL_END;
    if ((*tries)++ == SETTLE_TRIES)
        return ANNAL_DAMAGE;
    _Atomic uint32_t never = 0;
    annal__futex_wait(&never, 0, SETTLE_US);
    return ANNAL_OK;
}

static annal_status check_end(struct verification *verification, const annal_cursor *cursor,
                              annal_store *store, int *tries, annal_error *err)
{
    annal_position here = annal_cursor_position(cursor);
    uint64_t bytes = 0;
    annal_status status =
        annal__verify_settle(store, verification->session, cursor, tries, &bytes, err);
    if (status < 0)
        return status;
    verification->result.bytes = bytes;
    if (status != ANNAL_DAMAGE)
        return status;
    find(verification, here.offset == 0 ? 0 : here.seq, here.offset, bytes - here.offset,
         here.offset == 0 ? "nothing proves these bytes: the header is damaged"
                          : "nothing proves these bytes at the end: a damaged or unfinished line");
    return ANNAL_END;
}

static void check_double(struct verification *verification, const annal_store *store)
{
    SCOPED_BUF path = {0};
    const struct codec *codec = NULL;
    if (annal__store_journal_find(&store->context, verification->session, &path, &codec, NULL) ==
            ANNAL_OK &&
        codec != NULL &&
        annal__store_journal_is_double(&store->context, verification->session, codec))
        find(verification, 0, 0, 0,
             "there is a second journal of this session, in the other format");
}

/* For a fork, check that the journals of its ancestors still contain its history. */
static annal_status check_lineage(struct verification *verification, annal_store *store,
                                  annal_error *err)
{
    annal_error why = {0};
    annal_status status =
        annal__lineage_check(store, verification->session, verification->proved, &why);
    if (status == ANNAL_ERR_CORRUPT || status == ANNAL_ERR_LIMIT) {
        find(verification, 0, 0, 0, why.message);
        return ANNAL_OK;
    }
    return annal__error_pass(err, status, &why);
}

annal_status annal_session_verify(annal_store *store, annal_slice session, annal_finding_fn fn,
                                  void *arg, annal_verify_result *out_result, annal_error *err)
{
    return annal__verify_events(store, session, NULL, fn, NULL, arg, out_result, err);
}

annal_status annal__verify_events(annal_store *store, annal_slice session, annal__proved *proved,
                                  annal_finding_fn fn, annal__verified_fn event_fn, void *arg,
                                  annal_verify_result *out_result, annal_error *err)
{
    struct verification verification = {
        .session = session, .proved = proved, .fn = fn, .event_fn = event_fn, .arg = arg};
    annal_cursor *cursor = NULL;
    uint64_t next_seq = 0;
    int tries = 0;
    bool ended = false;
    annal_error failure = {0};
    annal_status status = annal_cursor_open_at(store, session, 1, 0, 0, &cursor, &failure);
    if (status == ANNAL_OK)
        next_seq = annal_cursor_position(cursor).seq;
    if (status == ANNAL_ERR_CORRUPT) { /* the journal belongs to another session */
        find(&verification, 0, 0, 0, failure.message);
        status = ANNAL_OK;
        ended = true;
    } else if (status < 0 && err != NULL) {
        *err = failure;
    }
    while (status >= 0 && !ended) {
        annal_event event;
        status = annal__cursor_next_json(cursor, &event, err);
        if (status == ANNAL_OK) {
            if (event.seq != next_seq)
                find(&verification, next_seq, event.offset, 0,
                     "events are missing before this line");
            check_event(&verification, &event);
            next_seq = event.seq + 1;
            tries = 0;
        } else if (status == ANNAL_DAMAGE) {
            annal_damage damage = annal_cursor_damage(cursor);
            find(&verification, damage.seq, damage.offset, damage.length, damage.what);
            next_seq = annal_cursor_position(cursor).seq;
        } else if (status == ANNAL_END) {
            status = check_end(&verification, cursor, store, &tries, err);
            ended = status == ANNAL_END;
        }
    }
    if (status >= 0 && cursor != NULL)
        status = check_lineage(&verification, store, err);
    annal_cursor_close(cursor);
    if (status >= 0)
        check_double(&verification, store);
    if (status < 0)
        return status;
    verification.result.last_seq = next_seq - 1;
    *out_result = verification.result;
    return ANNAL_OK;
}
