/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/faults.h"

#include "journal/sys/delete.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSIONS_MOST   16
#define RUN_SECONDS     60 /* a run that takes longer hangs */
#define TEXT_BYTES      40
#define LONG_TEXT_BYTES 90000
#define DATA_BYTES      (LONG_TEXT_BYTES + 100)
#define RUNS_QUICK      16                        /* of a scene and a source, in a quick run */
#define CALLS_MOST      300                       /* of a scene and a source, in a full run */
#define BEGIN_US        INT64_C(1767225600000000) /* 2026-01-01 */

static const char *const source_names[] = {"disk", "heap", "system", "sqlite-disk", "sqlite-heap"};

/* The run that is under way; one at a time. */
static struct run {
    const char *scene;
    enum source source;
    unsigned at;
    unsigned way;
    bool for_good;
    unsigned calls; /* that could have failed */
    char failed[64];
    struct failing_libc libc;
    struct failing_sqlite sqlite;
} run;

static char said[200];

static const char *run_text(void)
{
    snprintf(said, sizeof said, "ANNAL_FAULT='%s %s %u %u %s'", run.scene, source_names[run.source],
             run.at, run.way, run.for_good ? "ever" : "once");
    return said;
}

/* ---- Faults ---- */

static void arm(struct life *life)
{
    life->once = !run.for_good;
    life->silent = (run.at + run.way) % 3 == 0;
    switch (run.source) {
    case FROM_DISK:
        life->disk.calls = 0;
        life->disk.fail_at = run.at;
        life->disk.way = run.way;
        life->disk.for_good = run.for_good;
        break;
    case FROM_HEAP:
    case FROM_SYSTEM:
        run.libc =
            (struct failing_libc){.family = run.source == FROM_HEAP ? LIBC_HEAP : LIBC_SYSTEM,
                                  .fail_at = run.at,
                                  .for_good = run.for_good};
        failing_libc_arm(&run.libc);
        break;
    case FROM_SQLITE_DISK:
    case FROM_SQLITE_HEAP:
        run.sqlite = (struct failing_sqlite){.heap = run.source == FROM_SQLITE_HEAP,
                                             .fail_at = run.at,
                                             .way = run.way,
                                             .for_good = run.for_good};
        failing_sqlite_arm(&run.sqlite);
        break;
    case SOURCES:
        break;
    }
}

static void disarm(struct life *life)
{
    failing_libc_arm(NULL);
    failing_sqlite_arm(NULL);
    life->disk.fail_at = 0;
    life->disk.full = false;
    life->silent = false;
}

static const char *failed_what(const struct life *life)
{
    if (run.source == FROM_DISK)
        return life->disk.failed;
    return run.source == FROM_HEAP || run.source == FROM_SYSTEM ? run.libc.failed
                                                                : run.sqlite.failed;
}

/* In how many ways the call that failed may fail. */
static unsigned ways_of(const struct life *life)
{
    if (run.source == FROM_DISK)
        return life->disk.ways;
    return run.source == FROM_SQLITE_DISK ? run.sqlite.ways : 1;
}

static unsigned calls_of(const struct life *life)
{
    if (run.source == FROM_DISK)
        return life->disk.calls;
    return run.source == FROM_HEAP || run.source == FROM_SYSTEM ? run.libc.calls : run.sqlite.calls;
}

annal_error *err_for(const struct life *life, annal_error *err)
{
    return life->silent ? NULL : err;
}

bool fault_came(const struct life *life)
{
    return failed_what(life)[0] != '\0';
}

void ck_fault(bool holds, const char *format, ...)
{
    char what[600];
    va_list args;
    if (holds)
        return;
    failing_libc_arm(NULL);
    failing_sqlite_arm(NULL);
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (getenv("ANNAL_FAULTS_GO_ON") == NULL)
        ck_abort_msg("%s (%s): %s", run_text(), run.failed, what);
    printf("%s (%s): %s\n", run_text(), run.failed, what);
}

/* ---- Claims ---- */

static void log_stop(void *arg, annal_log_level level, const char *message)
{
    struct life *life = arg;
    (void)level;
    if (strstr(message, "accepts no more work") != NULL)
        life->stopped = true;
    if (run.at != 0 && getenv("ANNAL_FAULT") != NULL && getenv("ANNAL_FAULTS") == NULL)
        fprintf(stderr, "log: %s\n", message);
}

bool open_store(struct life *life, const annal_store_options *options)
{
    annal_store_options mine = *options;
    mine.no_keeper = true;
    mine.wait_ms = 100;
    mine.log = log_stop;
    mine.log_arg = life;
    life->stopped = false;
    for (int tries = 0; tries < 2; tries++) {
        annal_error err = {0};
        bool came = fault_came(life);
        annal_status status =
            annal__store_open(life->path, &mine, &life->seams, &life->store, err_for(life, &err));
        if (status == ANNAL_OK)
            return true;
        life->store = NULL;
        ck_fault(fault_came(life), "open fails by itself: %s", err.message);
        ck_fault(!came || !life->once, "open fails after the fault: %s", err.message);
        ck_fault(life->silent || err.message[0] != '\0', "open does not say why it failed");
    }
    return false;
}

/* Batches that were not made durable may have been lost. */
static void doubt_pending(struct life *life)
{
    for (size_t i = 0; i < life->count; i++) {
        if (life->claims[i].answer == PENDING)
            life->claims[i].answer = IN_DOUBT;
    }
}

void record_answer(struct life *life, annal_status status, bool makes_durable)
{
    ck_fault(status == ANNAL_OK || fault_came(life), "%s without a fault",
             annal_status_name(status));
    if (status < 0)
        doubt_pending(life);
    if (status == ANNAL_ERR_UNKNOWN || status == ANNAL_ERR_CLOSED)
        life->stopped = true;
    /* What the keeper's work could not do shows in what is tried next. */
    if (life->store != NULL && annal__commit_check(&life->store->commit, NULL) < 0)
        life->stopped = true;
    for (size_t i = 0; i < life->count && status == ANNAL_OK && makes_durable; i++) {
        if (life->claims[i].answer == PENDING)
            life->claims[i].answer = ACKNOWLEDGED;
    }
}

static annal_slice number_data(char out[DATA_BYTES], uint64_t number, unsigned text_bytes)
{
    int length = snprintf(out, DATA_BYTES, "{\"number\":%" PRIu64 ",\"text\":\"", number);
    for (unsigned i = 0; i < text_bytes; i++)
        out[length++] = (char)('a' + (number * 7 + i) % 26);
    out[length++] = '"';
    out[length++] = '}';
    return (annal_slice){out, (size_t)length};
}

static enum answer answer_of(annal_status status, annal_level level)
{
    if (status == ANNAL_OK)
        return level == ANNAL_LEVEL_BATCH ? PENDING : ACKNOWLEDGED;
    return status == ANNAL_ERR_UNKNOWN ? IN_DOUBT : REFUSED;
}

static annal_status append(struct life *life, const struct claim *claim, annal_level level,
                           uint64_t *out_seq, annal_error *err)
{
    static char data[PARTS_MOST][DATA_BYTES];
    char ids[PARTS_MOST][40];
    annal_draft drafts[PARTS_MOST];
    annal_writer *writer = NULL;
    const annal_writer_options with = {.format = life->format};
    annal_status status =
        annal_writer_open(life->store, annal_slice_of(claim->session), &with, &writer, err);
    if (status < 0)
        return status;
    for (unsigned i = 0; i < claim->count; i++) {
        drafts[i] =
            (annal_draft){.type = ANNAL_SLICE("test.event"),
                          .data = number_data(data[i], claim->number + i, claim->text_bytes)};
        snprintf(ids[i], sizeof ids[i], "id-%" PRIu64, claim->number + i);
        if (claim->with_ids)
            drafts[i].id = annal_slice_of(ids[i]);
    }
    const annal_append_options options = {.level = level};
    annal_appended appended = {0};
    if (life->guards == NULL)
        status = annal_writer_append(writer, drafts, claim->count, &options, out_seq, err);
    else
        status =
            annal_pack_append(life->guards, writer, drafts, claim->count, &options, &appended, err);
    if (status >= 0 && life->guards != NULL)
        *out_seq = appended.seq;
    annal_free(appended.data.ptr);
    annal_writer_close(writer);
    return status;
}

static void try_claim(struct life *life, struct claim *claim, annal_level level)
{
    annal_error err = {0};
    uint64_t seq = 0;
    bool came = fault_came(life);
    bool stopped = life->stopped;
    life->now_us += 200000;
    annal_status status = append(life, claim, level, &seq, err_for(life, &err));
    ck_fault(status == ANNAL_OK || fault_came(life), "append to '%s' without a fault: %s",
             claim->session, err.message);
    ck_fault(status <= 0 && (status == ANNAL_OK || life->silent || err.message[0] != '\0'),
             "append to '%s' answers %d without a reason", claim->session, status);
    ck_fault(status == ANNAL_OK || !came || !life->once || stopped,
             "append to '%s' after the fault: %s: %s", claim->session, annal_status_name(status),
             err.message);
    if (getenv("ANNAL_FAULT") != NULL)
        fprintf(stderr, "append %" PRIu64 " to '%s' at level %d: %s %s\n", claim->number,
                claim->session, level, annal_status_name(status), err.message);
    record_answer(life, status, false);
    enum answer answer = answer_of(status, level);
    if (status == ANNAL_OK) {
        ck_fault(claim->seq == 0 || claim->seq == seq, "seq %" PRIu64 " became %" PRIu64,
                 claim->seq, seq);
        claim->seq = seq;
    }
    if (answer > claim->answer)
        claim->answer = answer;
    if (level == ANNAL_LEVEL_OS && claim->count > 1 && answer == IN_DOUBT)
        claim->in_parts = true;
}

size_t attempt(struct life *life, const char *session, unsigned count, annal_level level,
               bool with_ids)
{
    ck_fault(life->count < CLAIMS_MOST, "too many claims");
    struct claim *claim = &life->claims[life->count];
    *claim = (struct claim){.number = life->numbers + 1,
                            .count = count,
                            .with_ids = with_ids,
                            .text_bytes = life->long_texts ? LONG_TEXT_BYTES : TEXT_BYTES};
    snprintf(claim->session, sizeof claim->session, "%s", session);
    life->numbers += count;
    life->count++;
    if (life->store != NULL)
        try_claim(life, claim, level);
    return life->count - 1;
}

void attempt_again(struct life *life, size_t claim, annal_level level)
{
    if (life->store != NULL)
        try_claim(life, &life->claims[claim], level);
}

void delete_session(struct life *life, const char *session)
{
    annal_error err = {0};
    if (life->store == NULL)
        return;
    bool came = fault_came(life);
    bool stopped = life->stopped;
    annal_status status =
        delete_wiped(life->store, annal_slice_of(session), NULL, err_for(life, &err));
    ck_fault(status == ANNAL_OK || fault_came(life), "delete '%s' without a fault: %s", session,
             err.message);
    ck_fault(status == ANNAL_OK || life->silent || err.message[0] != '\0',
             "delete does not say why it failed");
    ck_fault(status == ANNAL_OK || status == ANNAL_ERR_NOTFOUND || !came || !life->once || stopped,
             "delete '%s' after the fault: %s", session, err.message);
    record_answer(life, status, false);
    for (size_t i = 0; i < life->count; i++) {
        struct claim *claim = &life->claims[i];
        if (strcmp(claim->session, session) != 0 || claim->answer == REFUSED)
            continue;
        claim->answer = status == ANNAL_OK ? REFUSED : IN_DOUBT;
        claim->seq = 0;
    }
}

void convert_session(struct life *life, const char *session, annal_format format)
{
    annal_error err = {0};
    annal_convert_result result;
    const annal_convert_options options = {.format = format};
    if (life->store == NULL)
        return;
    bool came = fault_came(life);
    bool stopped = life->stopped;
    annal_status status = annal_session_convert(life->store, annal_slice_of(session), &options,
                                                &result, err_for(life, &err));
    ck_fault(status == ANNAL_OK || fault_came(life), "convert '%s' without a fault: %s", session,
             err.message);
    ck_fault(status == ANNAL_OK || life->silent || err.message[0] != '\0',
             "convert does not say why it failed");
    ck_fault(status == ANNAL_OK || !came || !life->once || stopped, "convert after the fault: %s",
             err.message);
    record_answer(life, status, false);
}

void close_store(struct life *life)
{
    annal_error err = {0};
    if (life->store == NULL)
        return;
    annal_status status = annal_store_close(life->store, err_for(life, &err));
    life->store = NULL;
    ck_fault(status == ANNAL_OK || fault_came(life), "close without a fault: %s", err.message);
    ck_fault(status == ANNAL_OK || life->silent || err.message[0] != '\0',
             "close does not say why it failed");
    record_answer(life, status, true);
}

/* ---- The proof ---- */

uint64_t expected_events(const struct life *life, const char *session)
{
    uint64_t events = 0;
    for (size_t i = 0; i < life->count; i++) {
        if (strcmp(life->claims[i].session, session) == 0 && life->claims[i].answer == ACKNOWLEDGED)
            events += life->claims[i].count;
    }
    return events;
}

bool is_certain(const struct life *life, const char *session)
{
    for (size_t i = 0; i < life->count; i++) {
        enum answer answer = life->claims[i].answer;
        if (strcmp(life->claims[i].session, session) == 0 && answer != ACKNOWLEDGED &&
            answer != REFUSED)
            return false;
    }
    return true;
}

static bool is_number(const annal_event *event, const struct claim *claim, uint64_t part)
{
    static char room[DATA_BYTES];
    annal_slice data = number_data(room, claim->number + part, claim->text_bytes);
    return data.len == event->data.len && memcmp(data.ptr, event->data.ptr, data.len) == 0;
}

void ck_event(const struct life *life, const char *session, const annal_event *event)
{
    uint64_t before = 0;
    for (size_t i = 0; i < life->count; i++) {
        const struct claim *claim = &life->claims[i];
        if (strcmp(claim->session, session) != 0 || claim->answer == REFUSED)
            continue;
        if (event->seq <= before + claim->count) {
            ck_fault(is_number(event, claim, event->seq - before - 1),
                     "session '%s': a wrong event stands at seq %" PRIu64, session, event->seq);
            return;
        }
        before += claim->count;
    }
    ck_fault(false, "session '%s': seq %" PRIu64 " was never appended", session, event->seq);
}

/* The next event of a session, or false at its end. */
static bool next_event(annal_cursor *cursor, const char *session, annal_event *out_event)
{
    annal_error err = {0};
    annal_status status = annal_cursor_next(cursor, out_event, &err);
    ck_fault(status == ANNAL_OK || status == ANNAL_END, "read session '%s': %s %s", session,
             annal_status_name(status), err.message);
    return status == ANNAL_OK;
}

/* Rules 1 to 3 for one session: its events against the claims, which stand in the order of their
 * appends. */
static uint64_t ck_session(struct life *life, const char *session)
{
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    annal_error err = {0};
    annal_status status = annal_cursor_open(life->store, annal_slice_of(session), 1, &cursor, &err);
    ck_fault(status == ANNAL_OK || status == ANNAL_ERR_NOTFOUND, "open session '%s': %s", session,
             err.message);
    bool some = status == ANNAL_OK && next_event(cursor, session, &event);
    uint64_t seq = 0;
    for (size_t i = 0; i < life->count; i++) {
        struct claim *claim = &life->claims[i];
        unsigned there = 0;
        if (strcmp(claim->session, session) != 0)
            continue;
        while (some && there < claim->count && is_number(&event, claim, there)) {
            seq++;
            ck_fault(event.seq == seq, "session '%s': seq %" PRIu64 " follows %" PRIu64, session,
                     event.seq, seq - 1);
            ck_fault(claim->seq == 0 || event.seq == claim->seq + there,
                     "number %" PRIu64 " stands at seq %" PRIu64, claim->number + there, event.seq);
            there++;
            some = next_event(cursor, session, &event);
        }
        ck_fault(claim->answer != ACKNOWLEDGED || there == claim->count,
                 "session '%s': number %" PRIu64 " was acknowledged, and %u of %u events are there",
                 session, claim->number, there, claim->count);
        ck_fault(claim->answer != REFUSED || there == 0,
                 "session '%s': number %" PRIu64 " was refused and is there", session,
                 claim->number);
        ck_fault(there == 0 || there == claim->count || claim->in_parts,
                 "session '%s': %u of %u events of number %" PRIu64 " are there", session, there,
                 claim->count, claim->number);
        /* From now on its answer is known. */
        if (claim->in_parts && there < claim->count)
            claim->count = there;
        claim->answer = there > 0 ? ACKNOWLEDGED : REFUSED;
        claim->seq = there > 0 ? seq - there + 1 : 0;
    }
    ck_fault(!some, "session '%s' holds an event that was not appended there, seq %" PRIu64,
             session, event.seq);
    annal_cursor_close(cursor);
    return seq;
}

static size_t list_sessions(const struct life *life, const char *out_names[SESSIONS_MOST])
{
    size_t count = 0;
    for (size_t i = 0; i < life->count; i++) {
        size_t j = 0;
        while (j < count && strcmp(out_names[j], life->claims[i].session) != 0)
            j++;
        if (j < count)
            continue;
        ck_assert_uint_lt(count, SESSIONS_MOST);
        out_names[count++] = life->claims[i].session;
    }
    return count;
}

/* Rule 4. */
static void ck_takes_events(struct life *life)
{
    const char *names[SESSIONS_MOST];
    size_t sessions = list_sessions(life, names);
    size_t claims = life->count;
    for (size_t i = 0; i < claims; i++) {
        if (life->claims[i].with_ids && life->claims[i].count == 1 &&
            life->claims[i].answer == ACKNOWLEDGED)
            attempt_again(life, i, ANNAL_LEVEL_SYNC);
    }
    for (size_t i = 0; i < sessions; i++)
        attempt(life, names[i], 1, ANNAL_LEVEL_SYNC, false);
}

struct listing {
    const char **names;
    size_t count;
    size_t listed; /* of them */
};

static int count_session(void *arg, annal_slice session, uint64_t journal_bytes)
{
    struct listing *listing = arg;
    for (size_t i = 0; i < listing->count && journal_bytes > 0; i++)
        listing->listed += strlen(listing->names[i]) == session.len &&
                           memcmp(listing->names[i], session.ptr, session.len) == 0;
    return 0;
}

static void ck_sessions(struct life *life, bool verify)
{
    const char *names[SESSIONS_MOST];
    size_t sessions = list_sessions(life, names);
    struct listing listing = {names, sessions, 0};
    size_t there = 0;
    for (size_t i = 0; i < sessions; i++) {
        annal_verify_result result = {0};
        annal_error err = {0};
        uint64_t last = ck_session(life, names[i]);
        there += last > 0;
        if (!verify || last == 0)
            continue;
        annal_status status =
            annal_session_verify(life->store, annal_slice_of(names[i]), NULL, NULL, &result, &err);
        ck_fault(status == ANNAL_OK, "verify session '%s': %s", names[i], err.message);
        ck_fault(result.findings == 0 && result.last_seq == last && result.events == last,
                 "verify session '%s': %" PRIu64 " findings, last seq %" PRIu64, names[i],
                 result.findings, result.last_seq);
    }
    annal_error err = {0};
    annal_status status = annal_session_each(life->store, count_session, &listing, &err);
    ck_fault(status == ANNAL_OK, "list the sessions: %s", err.message);
    ck_fault(!verify || listing.listed == there, "%zu sessions are listed and %zu are there",
             listing.listed, there);
}

static void prove(struct life *life)
{
    const annal_store_options writing = {.create = true};
    const annal_store_options reading = {.read_only = true};
    life->once = true; /* nothing fails any more */
    doubt_pending(life);
    ck_fault(open_store(life, &writing), "the store does not open");
    ck_sessions(life, false);
    ck_takes_events(life);
    ck_sessions(life, true);
    close_store(life);
    ck_fault(open_store(life, &reading), "the store does not open for reading");
    ck_sessions(life, true);
    close_store(life);
}

/* ---- One run ---- */

static unsigned count_descriptors(void)
{
    DIR *entries = opendir("/proc/self/fd");
    unsigned count = 0;
    ck_assert_ptr_nonnull(entries);
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count;
}

static int64_t life_now_us(void *arg)
{
    struct life *life = arg;
    return life->now_us += 100;
}

static int64_t life_wall_us(void *arg)
{
    return BEGIN_US + life_now_us(arg);
}

/* A copy without the blocks that are zero: logs are mostly those. */
static void copy_file(const char *from, const char *to, off_t bytes)
{
    static char block[65536];
    static const char zeros[sizeof block];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert(in >= 0 && out >= 0 && ftruncate(out, bytes) == 0);
    for (off_t at = 0; at < bytes; at += (off_t)sizeof block) {
        ssize_t got = pread(in, block, sizeof block, at);
        ck_assert_int_gt(got, 0);
        if (memcmp(block, zeros, (size_t)got) != 0)
            ck_assert_int_eq(pwrite(out, block, (size_t)got, at), got);
    }
    close(in);
    close(out);
}

static void copy_directory(const char *from, const char *to)
{
    DIR *entries = opendir(from);
    ck_assert_msg(entries != NULL && mkdir(to, 0700) == 0, "copy %s", from);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        char source[1024], target[1024];
        struct stat file;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        ck_assert_int_eq(lstat(source, &file), 0);
        if (S_ISDIR(file.st_mode))
            copy_directory(source, target);
        else
            copy_file(source, target, file.st_size);
    }
    closedir(entries);
}

static void on_alarm(int number)
{
    (void)number;
    static const char text[] = "\na run hangs: ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, said, strlen(said));
    (void)!write(STDERR_FILENO, "\n", 1);
    abort();
}

static const struct clock life_clock_init = {.wall_us = life_wall_us, .monotonic_us = life_now_us};

static void life_init(struct life *life, struct clock *clock, const char *path)
{
    static const uint8_t boot[16] = "the same boot..";
    life->path = path;
    failing_io_init(&life->disk);
    life->disk.by_table = true;
    life->disk.lazy = true;
    *clock = life_clock_init;
    clock->arg = life;
    life->seams = (struct seams){&life->disk.io, clock, boot};
}

/* What every run begins with: the store, and the claims about it. */
struct beginning {
    const char *path; /* NULL: no store */
    struct life life;
};

/* True if the fault occurred. *out_ways is the number of ways in which that call may fail. */
static bool run_once(const struct scene *scene, const struct beginning *beginning,
                     unsigned *out_ways)
{
    struct tmpdir folder;
    struct clock clock;
    struct life *life = calloc(1, sizeof *life);
    ck_assert_ptr_nonnull(life);
    run.failed[0] = '\0';
    run.libc = (struct failing_libc){0};
    run.sqlite = (struct failing_sqlite){0};
    (void)run_text();
    alarm(RUN_SECONDS);
    tmpdir_init(&folder);
    if (beginning->path != NULL) {
        *life = beginning->life;
        life_init(life, &clock, tmpdir_path(&folder, "store"));
        copy_directory(beginning->path, life->path);
    } else {
        life_init(life, &clock, tmpdir_path(&folder, "store"));
    }
    unsigned descriptors = count_descriptors();
    /* No assertion of Check from here on: it has memory of its own. */
    long blocks = failing_libc_blocks();
    int64_t bytes = failing_sqlite_bytes();
    if (scene->prepare != NULL)
        scene->prepare(life);
    arm(life);
    scene->live(life);
    disarm(life);
    snprintf(run.failed, sizeof run.failed, "%s", failed_what(life));
    long blocks_left = failing_libc_blocks() - blocks;
    ck_fault(life->store == NULL, "the scene leaves the store open");
    ck_fault(count_descriptors() == descriptors, "%u descriptors became %u", descriptors,
             count_descriptors());
    ck_fault(failing_sqlite_bytes() == bytes, "%" PRId64 " bytes of SQLite's are left",
             failing_sqlite_bytes() - bytes);
    ck_fault(blocks_left == 0, "%ld blocks of memory are left", blocks_left);
    bool came = fault_came(life);
    *out_ways = ways_of(life);
    run.calls = calls_of(life);
    prove(life);
    if (scene->prove != NULL)
        scene->prove(life);
    tmpdir_done(&folder);
    free(life);
    alarm(0);
    return came;
}

/* ---- The loops ---- */

struct tally {
    unsigned calls;
    unsigned runs;
};

/* Try every way of one call; false if the scene makes fewer calls. */
static bool fail_at(const struct scene *scene, const struct beginning *beginning, bool all,
                    struct tally *tally)
{
    unsigned ways = 1;
    if (!all) {
        run.way = run.at * 7 + run.at / 5;
        run.for_good = (run.at * 5 + run.at / 3) % 2 == 0;
        tally->runs++;
        return run_once(scene, beginning, &ways);
    }
    for (run.way = 0; run.way < ways; run.way++) {
        for (int for_good = 0; for_good < 2; for_good++) {
            run.for_good = for_good;
            tally->runs++;
            if (!run_once(scene, beginning, &ways))
                return false;
        }
    }
    return true;
}

/* How many there are while nothing fails. */
static unsigned count_calls(const struct scene *scene, const struct beginning *beginning)
{
    unsigned ways;
    run.at = 0;
    (void)run_once(scene, beginning, &ways);
    return run.calls;
}

/* SQLite asks for memory tens of thousands of times: not even a full run tries each. */
static unsigned step_of(const struct scene *scene, bool all, unsigned calls)
{
    unsigned most = all ? CALLS_MOST : many_or(scene->runs == 0 ? RUNS_QUICK : scene->runs, 10);
    return calls <= most ? 1 : calls / most;
}

/* ANNAL_FAULT names one run, or a scene; true when nothing is left to do here. */
static bool repeat_one(const struct scene *scene, const struct beginning *beginning)
{
    const char *wanted = getenv("ANNAL_FAULT");
    char name[32], source[32], times[32];
    unsigned ways;
    if (wanted == NULL)
        return false;
    int words = sscanf(wanted, "%31s %31s %u %u %31s", name, source, &run.at, &run.way, times);
    if (words < 1 || strcmp(name, scene->name) != 0)
        return true;
    if (words < 5)
        return false;
    for (unsigned i = 0; i < SOURCES; i++) {
        if (strcmp(source_names[i], source) == 0)
            run.source = (enum source)i;
    }
    run.for_good = strcmp(times, "ever") == 0;
    bool came = run_once(scene, beginning, &ways);
    printf("%s: %s\n", run_text(), came ? run.failed : "no fault came");
    return true;
}

void fail_everywhere(const struct scene *scene)
{
    struct tmpdir folder;
    struct clock clock;
    struct beginning *beginning = calloc(1, sizeof *beginning);
    ck_assert_ptr_nonnull(beginning);
    tmpdir_init(&folder);
    run = (struct run){.scene = scene->name};
    signal(SIGALRM, on_alarm);
    setvbuf(stdout, NULL, _IOLBF, 0);
    failing_sqlite_install();
    if (scene->build != NULL) {
        beginning->path = tmpdir_path(&folder, "store");
        life_init(&beginning->life, &clock, beginning->path);
        scene->build(&beginning->life);
    }
    const char *wanted = getenv("ANNAL_FAULTS"); /* all, calls, or none */
    bool all_ways = wanted != NULL && strcmp(wanted, "all") == 0;
    bool repeated = repeat_one(scene, beginning);
    for (unsigned i = 0; i < SOURCES && !repeated; i++) {
        struct tally tally = {0};
        if ((scene->sources & 1u << i) == 0)
            continue;
        run.source = (enum source)i;
        tally.calls = count_calls(scene, beginning);
        unsigned step = step_of(scene, wanted != NULL, tally.calls);
        run.at = 1;
        while (fail_at(scene, beginning, all_ways, &tally))
            run.at += step;
        printf("faults: %s, %s: %u calls in steps of %u, %u runs\n", scene->name, source_names[i],
               tally.calls, step, tally.runs);
    }
    signal(SIGALRM, SIG_DFL);
    tmpdir_done(&folder);
    free(beginning);
}
