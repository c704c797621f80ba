/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/replay_proof.h"

#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"

#include <inttypes.h>

static void print_hex(const uint8_t *hash)
{
    for (int i = 0; i < ANNAL_STATE_HASH_BYTES; i++)
        printf("%02x", hash[i]);
}

static void print_json(annal_slice session, const uint8_t *hash, uint64_t seq)
{
    out_json("{\"session_id\":?,\"seq\":#,\"hash\":\"", session, JSON_U64(seq));
    print_hex(hash);
    fputc('"', stdout);
}

int replay_print_hash(annal_slice session, annal_state *state, uint64_t seq, bool json)
{
    annal_error err = {0};
    uint8_t hash[ANNAL_STATE_HASH_BYTES];
    if (annal_state_hash(state, hash, &err) < 0)
        return fail_error(&err);
    if (json)
        print_json(session, hash, seq);
    else
        print_hex(hash);
    fputs(json ? "}\n" : "\n", stdout);
    return EXIT_DONE;
}

/* ---- Proving ---- */

struct proof {
    struct progress progress;
    bool json;
};

static void print_finding(void *arg, const annal_replay_finding *finding)
{
    struct proof *proof = arg;
    progress_hide(&proof->progress);
    if (!proof->json) {
        printf("%.*s: at seq %" PRIu64 ": %s\n", ANNAL_FMT(finding->session), finding->seq,
               finding->what);
        return;
    }
    out_json("{\"session_id\":?,\"seq\":#,\"problem\":?}\n", finding->session,
             JSON_U64(finding->seq), annal_slice_of(finding->what));
}

static int show_progress(void *arg, uint64_t seq, uint64_t last_seq)
{
    struct proof *proof = arg;
    char detail[HUMAN_BYTES + 10], total[HUMAN_BYTES];
    snprintf(detail, sizeof detail, "of %s", human_count(total, last_seq));
    progress_set(&proof->progress, seq, detail);
    return 0;
}

static void print_result(annal_slice session, const annal_replay_verify_result *result, bool json)
{
    char events[HUMAN_BYTES], snapshots[HUMAN_BYTES];
    if (json) {
        print_json(session, result->hash, result->seq);
        printf(",\"events\":%" PRIu64 ",\"damaged\":%" PRIu64 ",\"snapshots\":%" PRIu64
               ",\"stale\":%" PRIu64 ",\"findings\":%" PRIu64 "}\n",
               result->events, result->damaged, result->snapshots, result->stale, result->findings);
        return;
    }
    printf("%.*s: %s events folded, %s snapshots compared, %s\n", ANNAL_FMT(session),
           human_count(events, result->events), human_count(snapshots, result->snapshots),
           result->findings == 0 ? "all give the same state" : "something differs");
    printf("after seq %" PRIu64 " ", result->seq);
    print_hex(result->hash);
    fputc('\n', stdout);
}

int replay_prove(annal_index *index, annal_slice session, annal_moment at, bool json)
{
    annal_error err = {0};
    struct proof proof = {.json = json};
    annal_replay_verify_result result;
    const annal_replay_verify_options options = {
        .at = at, .finding = print_finding, .progress = show_progress, .arg = &proof};
    progress_begin(&proof.progress, "replay, events", 0);
    annal_status status = annal_replay_verify(index, session, &options, &result, &err);
    progress_hide(&proof.progress);
    if (status < 0)
        return fail_error(&err);
    print_result(session, &result, json);
    if (result.damaged > 0)
        say("session '%.*s': %" PRIu64 " damaged places were skipped; 'annal verify' lists them",
            ANNAL_FMT(session), result.damaged);
    return result.findings > 0 || result.damaged > 0 ? EXIT_REFUSED : EXIT_DONE;
}
