#include "journal/base/alloc.h"
#include "tools/args.h"
#include "tools/open.h"
#include "tools/out.h"
#include "tools/progress.h"
#include "tools/sessions.h"
#include "tools/verify_index.h"

#include <annal/journal.h>
#include <annal/replay.h>

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

struct verify {
    const struct args *args;
    annal_store *store;
    annal_index *index; /* NULL: there is none yet */
    struct index_check check;
    struct progress progress;
    uint64_t sessions, events, bytes, findings;
};

static void print_finding(void *arg, const annal_finding *finding)
{
    struct verify *verify = arg;
    progress_hide(&verify->progress);
    if (verify->args->json) {
        printf("{\"session_id\":\"%.*s\",\"seq\":%" PRIu64 ",\"offset\":%" PRIu64
               ",\"length\":%" PRIu64 ",\"what\":",
               ANNAL_FMT(finding->session), finding->seq, finding->offset, finding->length);
        out_json_string(annal_slice_of(finding->what));
        fputs("}\n", stdout);
    } else {
        printf("%.*s: event %" PRIu64 " at byte %" PRIu64 ": %s\n", ANNAL_FMT(finding->session),
               finding->seq, finding->offset, finding->what);
    }
    verify->findings++;
}

static int found_in_snapshot(void *arg, annal_slice session, const annal_snapshot_info *info,
                             const char *problem)
{
    if (problem != NULL)
        print_finding(arg, &(annal_finding){.session = session, .seq = info->seq, .what = problem});
    return 0;
}

static void found_in_replay(void *arg, const annal_replay_finding *finding)
{
    print_finding(
        arg,
        &(annal_finding){.session = finding->session, .seq = finding->seq, .what = finding->what});
}

/* What is made from the journal: rows, tables, snapshots. */
static annal_status verify_derived(struct verify *verify, annal_slice session, uint64_t last_seq,
                                   annal_error *err)
{
    annal_replay_verify_result result;
    bool has_snapshots = false;
    if (verify->index == NULL)
        return ANNAL_OK;
    annal_status status =
        verify_index_session(&verify->check, session, last_seq, print_finding, verify, err);
    if (status == ANNAL_OK)
        status = verify_index_has_snapshots(&verify->check, session, &has_snapshots, err);
    if (status == ANNAL_OK && args_has(verify->args, "replay"))
        status = annal_replay_verify(verify->index, session, found_in_replay, verify, &result, err);
    else if (status == ANNAL_OK && has_snapshots)
        status = annal_snapshot_each(verify->index, session, found_in_snapshot, verify, err);
    return status;
}

static int verify_session(struct verify *verify, const struct session_name *session)
{
    annal_verify_result result = {0};
    annal_error err = {0};
    progress_set(&verify->progress, verify->bytes, session->id);
    if (annal_verify_session(verify->store, annal_slice_of(session->id), print_finding, verify,
                             &result, &err) < 0) {
        progress_hide(&verify->progress);
        return fail_error(&err);
    }
    if (verify_derived(verify, annal_slice_of(session->id), result.last_seq, &err) < 0) {
        progress_hide(&verify->progress);
        return fail_error(&err);
    }
    verify->sessions++;
    verify->events += result.events;
    verify->bytes += result.bytes;
    return EXIT_DONE;
}

static void print_summary(const struct verify *verify)
{
    char sessions[HUMAN_BYTES], events[HUMAN_BYTES], bytes[HUMAN_BYTES], findings[HUMAN_BYTES];
    if (verify->args->json) {
        printf("{\"sessions\":%" PRIu64 ",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"findings\":%" PRIu64 "}\n",
               verify->sessions, verify->events, verify->bytes, verify->findings);
        return;
    }
    char lag[60] = "";
    if (verify->check.lagging > 0)
        snprintf(lag, sizeof lag, " (the index lags behind %s of them)",
                 human_count(findings, verify->check.lagging));
    printf("verified %s session%s%s, %s event%s, %s: %s%s\n",
           human_count(sessions, verify->sessions), verify->sessions == 1 ? "" : "s", lag,
           human_count(events, verify->events), verify->events == 1 ? "" : "s",
           human_bytes(bytes, verify->bytes),
           verify->findings == 0 ? "nothing found" : human_count(findings, verify->findings),
           verify->findings == 0   ? ""
           : verify->findings == 1 ? " finding"
                                   : " findings");
}

/* An index that is not there is no finding, and verify does not make one. */
static int open_index(struct verify *verify)
{
    annal_error err = {0};
    struct buf path = {0};
    struct stat info;
    int exit_status = EXIT_DONE;
    if (annal__buf_printf(&path, "%s/sessions.db", annal_store_path(verify->store)) < 0 ||
        annal__buf_cstr(&path) == NULL)
        exit_status = fail_storage("verify the index: out of memory");
    else if (stat(path.ptr, &info) == 0 &&
             annal_index_open(verify->store, NULL, &verify->index, &err) < 0)
        exit_status = fail_error(&err);
    annal__buf_done(&path);
    return exit_status;
}

static int verify_all(struct verify *verify)
{
    struct session_list list = {0};
    int exit_status = sessions_collect(verify->store, verify->args, &list);
    progress_begin(&verify->progress, "verify", list.bytes);
    for (size_t i = 0; exit_status == 0 && i < list.count && out_wanted(); i++)
        exit_status = verify_session(verify, &list.names[i]);
    progress_hide(&verify->progress);
    if (exit_status == 0) {
        print_summary(verify);
        exit_status = verify->findings > 0 ? EXIT_REFUSED : EXIT_DONE;
    }
    sessions_done(&list);
    return exit_status;
}

static int run(const struct args *args)
{
    struct verify verify = {.args = args};
    int exit_status = store_open(args, OPEN_READ, 0, &verify.store);
    if (exit_status == 0)
        exit_status = open_index(&verify);
    verify.check = (struct index_check){.store = verify.store, .index = verify.index};
    if (exit_status == 0)
        exit_status = verify_all(&verify);
    verify_index_done(&verify.check);
    annal_index_close(verify.index);
    return store_close(verify.store, exit_status);
}

static const struct option options[] = {
    {"replay", NULL, "also that each snapshot gives what its events give", false},
    {NULL, NULL, NULL, false}};

const struct command cmd_verify = {
    .name = "verify",
    .operands = "[SESSION...]",
    .operands_max = -1,
    .summary = "prove that nothing is damaged",
    .about = "Reads the journals of the sessions (without SESSION: of all) from the first\n"
             "byte to the last, and checks every hash, every seq, and that every data is\n"
             "JSON. Changes nothing. Each finding names session, seq and offset. Exit\n"
             "status: 0 nothing found, 1 findings. Where there is an index it is compared as\n"
             "far as it goes; one that lags is told, and is no finding.",
    .examples = "  annal verify\n  annal verify --replay\n  annal verify sess_1 --json\n",
    .options = options,
    .run = run};
