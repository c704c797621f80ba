/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/inspection.h"

#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "tools/cli/out.h"
#include "tools/ship/shared.h"

#include <inttypes.h>
#include <string.h>

struct proof {
    struct inspection *inspection;
    annal_slice session;
    /* cursor opened at the first event that the target has; NULL before the first row */
    annal_cursor *cursor;
    uint64_t next_seq;
    uint64_t last_seq; /* seq of the last event to compare */
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
        status = annal_cursor_open(proof->inspection->shipping->store, proof->session, there->seq,
                                   &proof->cursor, err);
    }
    if (status >= 0 && there->seq != proof->next_seq)
        return differs(proof, proof->next_seq,
                       there->seq < proof->next_seq ? "is stored twice" : "is missing", err);
    while (status >= 0 && (status = annal_cursor_next(proof->cursor, &here, err)) == ANNAL_DAMAGE)
        ;
    if (status < 0)
        return status;
    if (status == ANNAL_END || here.seq != there->seq || here.h != there->h ||
        here.ts_us != there->ts_us || !annal__slice_same(here.type, there->type) ||
        !annal__slice_same(here.id, there->id) || !annal__slice_same(here.cause, there->cause) ||
        !annal__slice_same(here.data, there->data))
        return differs(proof, there->seq, "differs from the journal", err);
    proof->next_seq++;
    proof->events++;
    return proof->inspection->want_artifacts
               ? annal__artifact_references(here.data, references_note,
                                            &proof->inspection->references, err)
               : ANNAL_OK;
}

/* Check the local events before the first event that the target returned (all local events if it
 * returned none): the target may lack them only if its owner dropped old events. */
static annal_status look_for_first(const struct proof *proof, struct ship_target *target,
                                   annal_error *err)
{
    annal_session_info info = {0};
    bool may_lack = false;
    uint64_t end = proof->events > 0 ? proof->next_seq - proof->events : proof->last_seq + 1;
    if (annal_session_info_get(proof->inspection->shipping->store, proof->session, &info, NULL) <
            0 ||
        info.first_seq >= end)
        return ANNAL_OK;
    annal_status status = proof->inspection->shipping->options.kind->database->may_lack(
        target, proof->session, proof->events > 0 ? 0 : proof->last_seq, &may_lack, err);
    return status < 0 || may_lack
               ? status
               : differs(proof, info.first_seq,
                         "is missing, although its day of arrival was not dropped", err);
}

/* Return the seq of the last event that exists both in the journal and at the target. */
static uint64_t last_of_both(const struct shipment *shipment)
{
    bool is_less = shipment->state == SHIPMENT_SHARED && shipment->last_seq < shipment->head.seq;
    return is_less ? shipment->last_seq : shipment->head.seq;
}

/* Return in *out the connection to the target that serves the session: shared sessions are read
 * under the store name SHARED_STORE. */
static annal_status target_of(struct inspection *inspection, const struct shipment *shipment,
                              struct ship_target **out, annal_error *err)
{
    const struct ship_options *options = &inspection->shipping->options;
    struct ship_target **target =
        shipment->state == SHIPMENT_SHARED ? &inspection->shared : &inspection->target;
    struct ship_where where = options->target;
    annal_status status = ANNAL_OK;
    where.store = SHARED_STORE;
    if (*target == NULL)
        status = options->kind->open(&where, false, target, err);
    *out = *target;
    return status;
}

/* Compare one session. Errors such as ANNAL_ERR_CORRUPT concern this session only; ANNAL_ERR_BUSY
 * ends the check. */
static int prove_shipment(void *arg, struct shipment *shipment)
{
    struct inspection *inspection = arg;
    struct ship_target *target = NULL;
    struct proof proof = {.inspection = inspection,
                          .session = annal_slice_of(shipment->session),
                          .last_seq = last_of_both(shipment)};
    annal_error err = {0};
    if (!shipment->has_head || shipment->state == SHIPMENT_GONE)
        return 0;
    annal_status status = target_of(inspection, shipment, &target, &err);
    if (status >= 0)
        status = inspection->shipping->options.kind->source->rows(target, proof.session, 0,
                                                                  compare_row, &proof, &err);
    if (status >= 0 && proof.events > 0 && proof.next_seq != proof.last_seq + 1)
        status = differs(&proof, proof.next_seq, "is missing", &err);
    if (status >= 0)
        status = look_for_first(&proof, target, &err);
    annal_cursor_close(proof.cursor);
    inspection->events += proof.events;
    if (status >= 0)
        return 0;
    inspection->bad = true;
    if (status != ANNAL_ERR_BUSY)
        say("%s", err.message);
    inspection->err = err;
    return status == ANNAL_ERR_BUSY ? 1 : 0;
}

static int say_conflict(void *arg, struct shipment *shipment)
{
    annal_error err = {0};
    ship_inspection_try(arg, shipment, &err);
    if (shipment->state == SHIPMENT_CONFLICT || shipment->state == SHIPMENT_DAMAGED)
        say("%s", err.message);
    return 0;
}

static int count_dropped(void *arg, struct shipment *shipment)
{
    struct inspection *inspection = arg;
    annal_session_info info;
    if ((shipment->state == SHIPMENT_ACTIVE || shipment->state == SHIPMENT_SHARED) &&
        shipment->has_head &&
        annal_session_info_get(inspection->shipments.store, annal_slice_of(shipment->session),
                               &info, NULL) == ANNAL_OK)
        inspection->shipped += last_of_both(shipment) + 1 - info.first_seq;
    inspection->behind += shipment->state == SHIPMENT_GONE ? 0 : ship_inspection_behind(shipment);
    return 0;
}

/* Check that all data at the target is unchanged, and compare the last event that it records for
 * each session with the journal. */
static void prove_whole(struct inspection *inspection)
{
    annal_error err = {0};
    const struct ship_kind *kind = inspection->shipping->options.kind;
    (void)shipments_each(&inspection->shipments, say_conflict, inspection);
    if (kind->files->prove(inspection->target, &inspection->events, &err) >= 0)
        return;
    say("%s", err.message);
    inspection->bad = true;
}

/* ---- Artifacts ---- */

/* Collect the artifacts that the shipped events of a session refer to, according to its journal. */
static int note_artifacts(void *arg, struct shipment *shipment)
{
    struct inspection *inspection = arg;
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    if (shipment->state != SHIPMENT_ACTIVE || !shipment->has_head)
        return 0;
    annal_status status =
        annal_cursor_open(inspection->shipments.store, annal_slice_of(shipment->session), 0,
                          &cursor, &inspection->err);
    while (status >= 0 &&
           (status = annal_cursor_next(cursor, &event, &inspection->err)) != ANNAL_END &&
           event.seq <= shipment->head.seq)
        if (status == ANNAL_OK)
            status = annal__artifact_references(event.data, references_note,
                                                &inspection->references, &inspection->err);
    annal_cursor_close(cursor);
    return status < 0;
}

/* Report that the target lacks an artifact, unless this store lacks it too or it is too large to be
 * shipped. */
static void look_for_absent(struct inspection *inspection, const struct reference *same,
                            size_t count)
{
    annal_slice content = {0};
    size_t i = 0;
    while (i < count &&
           annal_artifact_get(inspection->shipments.store, annal_slice_of(same[i].session),
                              annal_slice_of(same[i].sha256), SHIP_ARTIFACT_BYTES_MAX, &content,
                              NULL) < 0)
        i++;
    annal_free((void *)(uintptr_t)content.ptr);
    if (i == count) {
        inspection->absent++;
        return;
    }
    say("session '%s': artifact %s is missing at the target", same[i].session, same[i].sha256);
    inspection->bad = true;
}

static annal_status prove_artifact(struct inspection *inspection, const struct reference *same,
                                   size_t count)
{
    SCOPED_BUF content = {0};
    annal_status status = inspection->shipping->options.kind->source->fetch(
        inspection->target, same->sha256, &content, &inspection->err);
    if (status == ANNAL_ERR_NOTFOUND) {
        look_for_absent(inspection, same, count);
        status = ANNAL_OK;
    } else if (status >= 0) {
        bool is_good = references_is_content(annal__buf_slice(&content), same->sha256);
        inspection->artifacts += is_good;
        inspection->bad = inspection->bad || !is_good;
        if (!is_good)
            say("session '%s': artifact %s has different content at the target", same->session,
                same->sha256);
    }
    return status;
}

static annal_status prove_artifacts(struct inspection *inspection)
{
    struct references *references = &inspection->references;
    annal_status status = ANNAL_OK;
    if (inspection->shipping->options.kind->files != NULL &&
        shipments_each(&inspection->shipments, note_artifacts, inspection) != 0)
        return inspection->err.status;
    references_sort(references);
    for (size_t i = 0, count; i < references->count && status >= 0; i += count) {
        const struct reference *same = &references->all[i];
        for (count = 1; i + count < references->count; count++)
            if (strcmp(same[count].sha256, same->sha256) != 0)
                break;
        status = prove_artifact(inspection, same, count);
    }
    return status;
}

static void print_proved(const struct inspection *inspection)
{
    char events[HUMAN_BYTES], later[HUMAN_BYTES], dropped[HUMAN_BYTES];
    uint64_t gone =
        inspection->shipped > inspection->events ? inspection->shipped - inspection->events : 0;
    if (inspection->shipping->options.json) {
        printf("{\"events\":%" PRIu64 ",\"behind\":%" PRIu64 ",\"dropped\":%" PRIu64,
               inspection->events, inspection->behind, inspection->bad ? 0 : gone);
        if (inspection->want_artifacts)
            printf(",\"artifacts\":%" PRIu64 ",\"absent_artifacts\":%" PRIu64,
                   inspection->artifacts, inspection->absent);
        printf(",\"sound\":%s}\n", inspection->bad ? "false" : "true");
        return;
    }
    if (inspection->bad)
        return;
    printf("proved: %s events equal those in the journals; %s not shipped yet, %s dropped\n",
           human_count(events, inspection->events), human_count(later, inspection->behind),
           human_count(dropped, gone));
    if (inspection->want_artifacts)
        printf("proved: %s artifacts; %s more are missing at the target and cannot be shipped\n",
               human_count(events, inspection->artifacts), human_count(later, inspection->absent));
}

int check_target(struct inspection *inspection)
{
    if (ship_inspection_say_rows(inspection) < 0 ||
        ship_inspection_ask_homes(inspection, ship_inspection_note_shared) < 0)
        return ship_fail_target(&inspection->err);
    (void)shipments_each(&inspection->shipments, count_dropped, inspection);
    if (inspection->shipping->options.kind->files != NULL)
        prove_whole(inspection);
    else if (shipments_each(&inspection->shipments, prove_shipment, inspection) != 0)
        return fail_storage("%s", inspection->err.message);
    if (inspection->want_artifacts && prove_artifacts(inspection) < 0)
        return fail_storage("%s", inspection->err.message);
    print_proved(inspection);
    return inspection->bad ? EXIT_REFUSED : EXIT_DONE;
}
