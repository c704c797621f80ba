/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/looking.h"

#include "journal/base/error.h"
#include "journal/base/sha256.h"
#include "journal/base/slice.h"
#include "tools/cli/out.h"
#include "tools/ship/shared.h"

#include <inttypes.h>
#include <string.h>

struct proof {
    struct looking *looking;
    annal_slice session;
    annal_cursor *cursor; /* opened at the first event that is there */
    uint64_t next_seq;
    uint64_t last_seq; /* what comes after it is not compared */
    uint64_t events;
};

static annal_status differs(const struct proof *proof, uint64_t seq, const char *what,
                            annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT, "session '%.*s': event %" PRIu64 " at the target %s",
                       ANNAL_FMT(proof->session), seq, what);
}

static annal_status compare_row(void *arg, const annal_event *there, annal_error *err)
{
    struct proof *proof = arg;
    annal_event here;
    annal_status status = ANNAL_OK;
    if (there->seq > proof->last_seq)
        return ANNAL_END;
    if (proof->cursor == NULL) {
        proof->next_seq = there->seq;
        status = annal_cursor_open(proof->looking->shipping->store, proof->session, there->seq,
                                   &proof->cursor, err);
    }
    if (status >= 0 && there->seq != proof->next_seq)
        return differs(proof, proof->next_seq,
                       there->seq < proof->next_seq ? "is there twice" : "is missing", err);
    while (status >= 0 && (status = annal_cursor_next(proof->cursor, &here, err)) == ANNAL_DAMAGE)
        ;
    if (status < 0)
        return status;
    if (status == ANNAL_END || here.seq != there->seq || here.h != there->h ||
        here.ts_us != there->ts_us || !annal__slice_same(here.type, there->type) ||
        !annal__slice_same(here.id, there->id) || !annal__slice_same(here.cause, there->cause) ||
        !annal__slice_same(here.data, there->data))
        return differs(proof, there->seq, "is not the event of the journal", err);
    proof->next_seq++;
    proof->events++;
    return proof->looking->want_artifacts
               ? annal__artifact_references(here.data, reference_note, &proof->looking->references,
                                            err)
               : ANNAL_OK;
}

/* What comes before the first event that is there, or all. Only what was dropped may be missing. */
static annal_status look_for_first(const struct proof *proof, struct ship_target *target,
                                   annal_error *err)
{
    annal_session_info info = {0};
    bool may_lack = false;
    uint64_t end = proof->events > 0 ? proof->next_seq - proof->events : proof->last_seq + 1;
    if (annal_session_info_get(proof->looking->shipping->store, proof->session, &info, NULL) < 0 ||
        info.first_seq >= end)
        return ANNAL_OK;
    annal_status status = proof->looking->shipping->options.kind->may_lack(
        target, proof->session, proof->events > 0 ? 0 : proof->last_seq, &may_lack, err);
    return status < 0 || may_lack ? status
                                  : differs(proof, info.first_seq,
                                            "is missing, and the day on which it arrived was not "
                                            "dropped",
                                            err);
}

/* The last event that is here and there. */
static uint64_t last_of_both(const struct lane *lane)
{
    bool is_less = lane->state == LANE_SHARED && lane->last_seq < lane->there.seq;
    return is_less ? lane->last_seq : lane->there.seq;
}

/* The target, by the name that has the head of the session. */
static annal_status target_of(struct looking *looking, const struct lane *lane,
                              struct ship_target **out, annal_error *err)
{
    const struct ship_options *options = &looking->shipping->options;
    struct ship_target **target = lane->state == LANE_SHARED ? &looking->shared : &looking->target;
    struct ship_where where = options->target;
    annal_status status = ANNAL_OK;
    where.store = SHARED_STORE;
    if (*target == NULL)
        status = options->kind->open(&where, false, target, err);
    *out = *target;
    return status;
}

/* ANNAL_ERR_CORRUPT and the like are about this session; ANNAL_ERR_BUSY ends everything. */
static int prove_lane(void *arg, struct lane *lane)
{
    struct looking *looking = arg;
    struct ship_target *target = NULL;
    struct proof proof = {.looking = looking,
                          .session = annal_slice_of(lane->session),
                          .last_seq = last_of_both(lane)};
    annal_error err = {0};
    if (!lane->has_head || lane->state == LANE_GONE)
        return 0;
    annal_status status = target_of(looking, lane, &target, &err);
    if (status >= 0)
        status = looking->shipping->options.kind->rows(target, proof.session, 0, compare_row,
                                                       &proof, &err);
    if (status >= 0 && proof.events > 0 && proof.next_seq != proof.last_seq + 1)
        status = differs(&proof, proof.next_seq, "is missing", &err);
    if (status >= 0)
        status = look_for_first(&proof, target, &err);
    annal_cursor_close(proof.cursor);
    looking->events += proof.events;
    if (status >= 0)
        return 0;
    looking->bad = true;
    if (status != ANNAL_ERR_BUSY)
        say("%s", err.message);
    looking->err = err;
    return status == ANNAL_ERR_BUSY ? 1 : 0;
}

static int say_conflict(void *arg, struct lane *lane)
{
    annal_error err = {0};
    looking_try_lane(arg, lane, &err);
    if (lane->state == LANE_CONFLICT || lane->state == LANE_DAMAGED)
        say("%s", err.message);
    return 0;
}

static int count_dropped(void *arg, struct lane *lane)
{
    struct looking *looking = arg;
    annal_session_info info;
    if ((lane->state == LANE_GOING || lane->state == LANE_SHARED) && lane->has_head &&
        annal_session_info_get(looking->lanes.store, annal_slice_of(lane->session), &info, NULL) ==
            ANNAL_OK)
        looking->shipped += last_of_both(lane) + 1 - info.first_seq;
    looking->behind += lane->state == LANE_GONE ? 0 : looking_behind(lane);
    return 0;
}

/* What is there is as it was written, and its heads are those of the journals. */
static void prove_whole(struct looking *looking)
{
    annal_error err = {0};
    const struct ship_kind *kind = looking->shipping->options.kind;
    (void)lanes_each(&looking->lanes, say_conflict, looking);
    if (kind->prove(looking->target, &looking->events, &err) >= 0)
        return;
    say("%s", err.message);
    looking->bad = true;
}

/* ---- Artifacts ---- */

/* Those that the shipped events of a session name, as its journal says. */
static int note_artifacts(void *arg, struct lane *lane)
{
    struct looking *looking = arg;
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    if (lane->state != LANE_GOING || !lane->has_head)
        return 0;
    annal_status status = annal_cursor_open(looking->lanes.store, annal_slice_of(lane->session), 0,
                                            &cursor, &looking->err);
    while (status >= 0 &&
           (status = annal_cursor_next(cursor, &event, &looking->err)) != ANNAL_END &&
           event.seq <= lane->there.seq)
        if (status == ANNAL_OK)
            status = annal__artifact_references(event.data, reference_note, &looking->references,
                                                &looking->err);
    annal_cursor_close(cursor);
    return status < 0;
}

/* The target has none of this content; whether that is right. */
static void look_for_absent(struct looking *looking, const struct reference *same, size_t count)
{
    annal_slice content = {0};
    size_t i = 0;
    while (i < count && annal_artifact_get(looking->lanes.store, annal_slice_of(same[i].session),
                                           annal_slice_of(same[i].sha256), SHIP_ARTIFACT_BYTES_MAX,
                                           &content, NULL) < 0)
        i++;
    annal_free((void *)(uintptr_t)content.ptr);
    if (i == count) {
        looking->absent++;
        return;
    }
    say("session '%s': artifact %s is missing at the target", same[i].session, same[i].sha256);
    looking->bad = true;
}

static bool has_hash(annal_slice content, const char *want)
{
    uint8_t sum[SHA256_BYTES];
    char text[SHA256_TEXT_BYTES];
    annal__sha256_of(content.ptr, content.len, sum);
    annal__sha256_text(sum, text);
    return strcmp(text, want) == 0;
}

static annal_status prove_artifact(struct looking *looking, const struct reference *same,
                                   size_t count)
{
    struct buf content = {0};
    annal_status status = looking->shipping->options.kind->fetch(looking->target, same->sha256,
                                                                 &content, &looking->err);
    if (status == ANNAL_ERR_NOTFOUND) {
        look_for_absent(looking, same, count);
        status = ANNAL_OK;
    } else if (status >= 0) {
        bool is_good = has_hash(annal__buf_slice(&content), same->sha256);
        looking->artifacts += is_good;
        looking->bad = looking->bad || !is_good;
        if (!is_good)
            say("session '%s': artifact %s has other content at the target", same->session,
                same->sha256);
    }
    annal__buf_done(&content);
    return status;
}

static annal_status prove_artifacts(struct looking *looking)
{
    struct references *references = &looking->references;
    annal_status status = ANNAL_OK;
    if (looking->shipping->options.kind->prove != NULL &&
        lanes_each(&looking->lanes, note_artifacts, looking) != 0)
        return looking->err.status;
    references_sort(references);
    for (size_t i = 0, count; i < references->count && status >= 0; i += count) {
        const struct reference *same = &references->all[i];
        for (count = 1; i + count < references->count; count++)
            if (strcmp(same[count].sha256, same->sha256) != 0)
                break;
        status = prove_artifact(looking, same, count);
    }
    return status;
}

static void print_proved(const struct looking *looking)
{
    char events[HUMAN_BYTES], later[HUMAN_BYTES], dropped[HUMAN_BYTES];
    uint64_t gone = looking->shipped > looking->events ? looking->shipped - looking->events : 0;
    if (looking->shipping->options.json) {
        printf("{\"events\":%" PRIu64 ",\"behind\":%" PRIu64 ",\"dropped\":%" PRIu64,
               looking->events, looking->behind, looking->bad ? 0 : gone);
        if (looking->want_artifacts)
            printf(",\"artifacts\":%" PRIu64 ",\"absent_artifacts\":%" PRIu64, looking->artifacts,
                   looking->absent);
        printf(",\"sound\":%s}\n", looking->bad ? "false" : "true");
        return;
    }
    if (looking->bad)
        return;
    printf("proved: %s events are those of the journals; %s not shipped yet, %s dropped\n",
           human_count(events, looking->events), human_count(later, looking->behind),
           human_count(dropped, gone));
    if (looking->want_artifacts)
        printf("proved: %s artifacts; %s more are neither at the target nor can be shipped\n",
               human_count(events, looking->artifacts), human_count(later, looking->absent));
}

int looking_check(struct looking *looking)
{
    if (looking_say_rows(looking) < 0 || looking_ask_homes(looking, looking_note_shared) < 0)
        return fail_target(&looking->err);
    (void)lanes_each(&looking->lanes, count_dropped, looking);
    if (looking->shipping->options.kind->prove != NULL)
        prove_whole(looking);
    else if (lanes_each(&looking->lanes, prove_lane, looking) != 0)
        return fail_storage("%s", looking->err.message);
    if (looking->want_artifacts && prove_artifacts(looking) < 0)
        return fail_storage("%s", looking->err.message);
    print_proved(looking);
    return looking->bad ? EXIT_REFUSED : EXIT_DONE;
}
