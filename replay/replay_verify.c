/* SPDX-License-Identifier: Apache-2.0 */
/* Verify that snapshots never change an answer: compare a fold from event 1 with each snapshot. */
#include "index/sys/state.h"
#include "replay/fold.h"
#include "snapshot/sys/snapshot.h"

#include <annal/diff.h>

#include <stdio.h>
#include <string.h>

enum { STEP_EVENTS = 10000 }; /* number of events between two calls of the progress callback */

struct proof {
    annal_index *index;
    annal_slice session;
    const annal_replay_verify_options *options;
    annal_replay_verify_result result;
    struct folding folding; /* the fold from event 1 */
    annal_error *err;
};

static void find(struct proof *proof, uint64_t seq, const char *what)
{
    const annal_replay_finding finding = {proof->session, seq, what};
    proof->result.findings++;
    if (proof->options->finding != NULL)
        proof->options->finding(proof->options->arg, &finding);
}

static annal_status fold_to(struct proof *proof, uint64_t seq)
{
    const annal_replay_verify_options *options = proof->options;
    for (;;) {
        uint64_t next = annal_cursor_position(proof->folding.cursor).seq;
        if (next > seq)
            return ANNAL_OK;
        uint64_t to = seq - next < STEP_EVENTS ? seq : next + STEP_EVENTS - 1;
        annal_status status = annal__fold_to(&proof->folding, to, proof->err);
        if (status < 0 || annal_cursor_position(proof->folding.cursor).seq <= to)
            return status; /* the fold failed, or the journal ends before event `to` */
        if (options->progress != NULL) {
            int verdict = options->progress(options->arg, to, proof->result.seq);
            if (verdict != 0)
                return (annal_status)verdict;
        }
    }
}

/* Record the table of the first difference: an annal_change_fn. */
static int note_table(void *arg, const annal_change *change)
{
    char *table = arg;
    snprintf(table, 100, "%.*s", ANNAL_FMT(change->table));
    return ANNAL_END;
}

/* Compare the folded state with a state that was computed in another way. A difference is a finding
 * whose text begins with `whose`. */
static annal_status compare(struct proof *proof, uint64_t seq, annal_state *other,
                            const char *whose)
{
    char table[100] = "", what[200];
    annal_status status =
        annal_state_diff(proof->folding.state, other, note_table, table, proof->err);
    if (status < 0)
        return status;
    if (status == ANNAL_END)
        snprintf(what, sizeof what, "%s another state than folding the events does: table %s",
                 whose, table);
    else if (annal__state_refused(other) != annal__state_refused(proof->folding.state))
        snprintf(what, sizeof what, "%s another count of refused events than folding does", whose);
    else
        return ANNAL_OK;
    find(proof, seq, what);
    return ANNAL_OK;
}

static annal_status compare_snapshot(struct proof *proof, uint64_t seq)
{
    annal_state *loaded = NULL;
    annal_cursor *cursor = NULL;
    annal_status status =
        annal__load_begin(proof->index, proof->session, seq, NULL, 0, &loaded, &cursor, proof->err);
    annal_cursor_close(cursor);
    if (status == ANNAL_OK && annal_state_seq(loaded) != seq) {
        annal_state_free(loaded);
        return ANNAL_OK; /* nothing to compare: the snapshot was deleted after it was listed */
    }
    if (status == ANNAL_OK)
        status = fold_to(proof, seq);
    if (status == ANNAL_OK) {
        proof->result.snapshots++;
        status = compare(proof, seq, loaded, "it gives");
    }
    annal_state_free(loaded);
    return status;
}

/* Check a snapshot: an annal_snapshot_fn. */
static int prove_one(void *arg, annal_slice session, const annal_snapshot_info *info,
                     const char *problem)
{
    (void)session;
    struct proof *proof = arg;
    if (info->seq > proof->result.seq)
        return ANNAL_OK;
    if (problem == NULL)
        return compare_snapshot(proof, info->seq);
    if (info->stale)
        proof->result.stale++;
    else
        find(proof, info->seq, problem);
    return 0;
}

/* Compare the folded state with the answer of annal_replay_open(), which uses the existing
 * snapshots. */
static annal_status compare_answer(struct proof *proof)
{
    annal_state *answer = NULL;
    const annal_moment at = {.kind = ANNAL_AT_SEQ, .seq = proof->result.seq};
    annal_status status =
        annal_replay_open(proof->index, proof->session, at, NULL, &answer, NULL, proof->err);
    if (status == ANNAL_OK)
        status = compare(proof, proof->result.seq, answer, "replay gives");
    annal_state_free(answer);
    return status;
}

annal_status annal_replay_verify(annal_index *index, annal_slice session,
                                 const annal_replay_verify_options *options,
                                 annal_replay_verify_result *out_result, annal_error *err)
{
    static const annal_replay_verify_options defaults = {0};
    static const annal_replay_options from_event_1 = {.no_snapshots = true};
    struct proof proof = {.index = index, .session = session, .err = err};
    proof.options = options == NULL ? &defaults : options;
    annal_status status =
        annal_replay_seq(index, session, proof.options->at, &proof.result.seq, err);
    if (status >= 0)
        status = annal__fold_begin(&proof.folding, index, session, &from_event_1, 0, err);
    if (status >= 0)
        status = annal_snapshot_each(index, session, prove_one, &proof, err);
    if (status == ANNAL_OK)
        status = fold_to(&proof, proof.result.seq);
    if (status == ANNAL_OK)
        status = compare_answer(&proof);
    if (status == ANNAL_OK)
        status = annal_state_hash(proof.folding.state, proof.result.hash, err);
    proof.result.events = proof.folding.folded;
    proof.result.damaged = proof.folding.damaged;
    annal__fold_done(&proof.folding);
    if (status == ANNAL_OK)
        *out_result = proof.result;
    return status;
}
