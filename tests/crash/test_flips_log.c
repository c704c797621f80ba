/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every bit of a small commit log flipped, every length cut, every 512-byte block zeroed, every two
 * blocks of 4096 bytes swapped, and each written over each.
 *
 * The log has three sessions, seven groups in three epochs, the first of which is released and in
 * part overwritten. It is recovered into journals that hold what was released and nothing else:
 * what a power cut leaves at worst. For each damage: no session holds a wrong event; and one that
 * holds fewer than were acknowledged takes no more events and says why. There is one exception,
 * which no log can tell from the trace of a crash: the last group is damaged.
 */
#include "journal/base/alloc.h"
#include "journal/base/hash.h"
#include "tests/support/damage.h"
#include "tests/support/journals.h"
#include "tests/support/known.h"
#include "tests/support/page_io.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSIONS     3
#define EVENTS       5 /* most events of one session */
#define REGION_BYTES (5 * 4096)

/* A session as written, line by line. */
struct line {
    struct buf bytes;
    uint64_t offset;
    uint64_t h_before, h_after;
};

struct session_lines {
    const char *name;
    struct frame_header header;
    struct line lines[EVENTS + 1]; /* 0: the header */
    unsigned count;                /* events */
    unsigned released;             /* how many of them are in the journal for good */
    struct known known;
};

/* Events first to last of a session, the header too when first is 0. */
struct piece {
    unsigned session, first, last;
};

struct planned_group {
    bool new_region;
    uint64_t released;
    struct piece pieces[2];
    unsigned count;
};

static const struct planned_group plan[] = {
    {.new_region = true, .pieces = {{0, 0, 2}}, .count = 1},
    {.pieces = {{1, 0, 1}, {0, 3, 3}}, .count = 2},
    {.pieces = {{1, 2, 2}}, .count = 1},
    {.new_region = true, .pieces = {{0, 4, 4}, {2, 0, 1}}, .count = 2},
    {.released = 1, .pieces = {{1, 3, 3}}, .count = 1},
    {.new_region = true, .released = 1, .pieces = {{0, 5, 5}}, .count = 1},
    {.released = 1, .pieces = {{2, 2, 2}, {1, 4, 4}}, .count = 2},
};

struct bed {
    struct tmpdir dir;
    struct io io;
    const char *store;
    const char *log;
    const char *held;
    struct session_lines sessions[SESSIONS];
    const char *journals[SESSIONS];
    char *sound;
    size_t len;
    uint64_t signature;             /* of what the sound log says */
    uint64_t last_offset, last_end; /* of the last group */
    size_t recovered, refused, shorter;
};

/* ---- Making it ---- */

static void make_session(struct session_lines *session, unsigned index)
{
    static const char *const names[SESSIONS] = {"a", "b", "c"};
    static const unsigned counts[SESSIONS] = {5, 4, 2}, released[SESSIONS] = {3, 2, 0};
    session->name = names[index];
    session->count = counts[index];
    session->released = released[index];
    session->header = (struct frame_header){.session = annal_slice_of(names[index])};
    session->header.file[0] = (uint8_t)(index + 1);
    uint64_t h = 0, offset = 0;
    for (unsigned i = 0; i <= session->count; i++) {
        struct line *line = &session->lines[i];
        char data[200];
        const annal_draft draft = {.type = ANNAL_SLICE("test.event"),
                                   .data = event_data(data, sizeof data, i, 20)};
        const struct frame_place place = {.seq = i, .ts_us = i, .offset = offset, .h_before = h};
        line->offset = offset;
        line->h_before = h;
        ck_assert_int_eq(i == 0
                             ? annal__codec_json.encode_header(&line->bytes, &session->header, &h)
                             : annal__codec_json.encode_event(&line->bytes, &draft, &place, &h),
                         ANNAL_OK);
        line->h_after = h;
        offset += line->bytes.len;
    }
}

static void put_lines(struct buf *toc, struct buf *payload, const struct session_lines *session,
                      unsigned first, unsigned last)
{
    struct record record = {.type = first == 0 ? RECORD_CREATE : RECORD_BYTES,
                            .format = ANNAL_FORMAT_JSON,
                            .session = annal_slice_of(session->name),
                            .offset = session->lines[first].offset,
                            .first_seq = first,
                            .last_seq = last,
                            .h_before = session->lines[first].h_before,
                            .h_after = session->lines[last].h_after};
    memcpy(record.file, session->header.file, sizeof record.file);
    for (unsigned i = first; i <= last; i++) {
        record.length += session->lines[i].bytes.len;
        ck_assert_int_eq(
            annal__buf_append_slice(payload, annal__buf_slice(&session->lines[i].bytes)), ANNAL_OK);
    }
    ck_assert_int_eq(annal__log_put_record(toc, &record), ANNAL_OK);
}

static void write_group(struct bed *bed, struct log *log, const struct planned_group *group)
{
    struct buf toc = {0}, payload = {0};
    uint32_t records = 0;
    if (group->new_region)
        annal__log_switch(log);
    for (unsigned i = 0; i < group->count; i++) {
        const struct piece *piece = &group->pieces[i];
        const struct session_lines *session = &bed->sessions[piece->session];
        unsigned first = piece->first;
        if (first == 0) {
            put_lines(&toc, &payload, session, 0, 0);
            first = 1;
            records++;
        }
        put_lines(&toc, &payload, session, first, piece->last);
        records++;
    }
    bed->last_offset = log->regions[log->current].offset + log->end;
    ck_ok(annal__log_write_group(log, records, &toc, &payload, group->released, err));
    bed->last_end = log->regions[log->current].offset + log->end;
    annal__buf_done(&toc);
    annal__buf_done(&payload);
}

/* ---- What a log says ---- */

/* A hash over all that recovery takes from a log; 0 when it cannot be opened or read. */
static uint64_t signature_of(const struct bed *bed)
{
    struct log log = {.fd = -1};
    struct log_group *groups = NULL;
    struct buf bytes = {0};
    size_t count = 0;
    uint64_t signature = 0;
    if (annal__log_open(&bed->io, bed->log, true, &log, NULL) < 0)
        return 0;
    if (annal__log_find_groups(&log, &groups, &count, NULL) == ANNAL_OK) {
        signature = annal__hash(&log.seed, sizeof log.seed, log.block);
        signature = annal__hash(log.regions, sizeof log.regions, signature);
    }
    for (size_t i = 0; signature != 0 && i < count; i++) {
        const uint64_t fields[] = {groups[i].region,   groups[i].offset,   groups[i].epoch,
                                   groups[i].group,    groups[i].released, groups[i].records,
                                   groups[i].toc_bytes};
        signature = annal__hash(fields, sizeof fields, signature);
        ck_ok(annal__log_read_group(&log, &groups[i], &bytes, err));
        signature = annal__hash(bytes.ptr, bytes.len, signature);
    }
    annal__buf_done(&bytes);
    annal__free(groups);
    annal__log_close(&log);
    return signature;
}

/* ---- Recovering it ---- */

static void put_journals(const struct bed *bed)
{
    for (unsigned i = 0; i < SESSIONS; i++) {
        const struct session_lines *session = &bed->sessions[i];
        struct buf bytes = {0};
        unlink(bed->journals[i]);
        for (unsigned n = 0; session->released > 0 && n <= session->released; n++)
            ck_assert_int_eq(
                annal__buf_append_slice(&bytes, annal__buf_slice(&session->lines[n].bytes)),
                ANNAL_OK);
        if (bytes.len > 0)
            file_write(bed->journals[i], bytes.ptr, bytes.len);
        annal__buf_done(&bytes);
    }
}

/* The list of the process that died, in this boot. */
static void hold_sessions(const struct bed *bed, const uint8_t boot[16])
{
    struct held held;
    struct stat log;
    ck_ok(annal__held_open(&bed->io, bed->held, true, &held, err));
    ck_assert_int_eq(stat(bed->log, &log), 0);
    annal__held_clear(&held);
    for (unsigned i = 0; i < SESSIONS; i++) {
        uint32_t index;
        ck_ok(annal__held_add(&held, annal_slice_of(bed->sessions[i].name), &index, err));
    }
    atomic_store(&held.header->state, HELD_OWNED);
    annal__held_bind(&held, boot, &log);
    annal__held_close(&held);
}

static void keep_warning(void *arg, annal_log_level level, const char *message)
{
    char *warning = arg;
    if (level == ANNAL_LOG_WARNING && warning[0] == '\0')
        snprintf(warning, 512, "%s", message);
}

/* One session after recovery. */
static void ck_session(struct bed *bed, annal_store *store, unsigned index,
                       const struct damage *damage, const char *warning, bool last_is_hit)
{
    const struct session_lines *session = &bed->sessions[index];
    struct known_walk walk = {0};
    struct stat file;
    char what[200];
    snprintf(what, sizeof what, "%s, session %s", damage->what, session->name);
    if (stat(bed->journals[index], &file) == 0 && file.st_size > 0) {
        known_walk(&session->known, store, session->name, 1, what, &walk);
        ck_assert_msg(walk.damages == 0 && walk.stood_at == (uint64_t)file.st_size,
                      "%s: the journal is damaged", what);
    }
    ck_assert_msg(walk.count == walk.last && walk.last >= session->released,
                  "%s: %zu events, the last is %llu", what, walk.count,
                  (unsigned long long)walk.last);
    annal_error reason = {0};
    uint64_t seq = 0;
    annal_status status = append_slice(store, session->name, ANNAL_SLICE("\"more\""), NULL,
                                       ANNAL_LEVEL_SYNC, &seq, &reason);
    bool refused = status != ANNAL_OK;
    bool shorter = walk.last < session->count;
    ck_assert_msg(!refused || reason.message[0] != '\0', "%s: refused without a word", what);
    ck_assert_msg(!refused || warning[0] != '\0', "%s: refused, and opening was silent", what);
    ck_assert_msg(refused || seq == walk.last + 1, "%s: event %llu behind %llu", what,
                  (unsigned long long)seq, (unsigned long long)walk.last);
    ck_assert_msg(!shorter || refused || last_is_hit, "%s: %llu of %u events, and no word of it",
                  what, (unsigned long long)walk.last, session->count);
    bed->refused += refused;
    bed->shorter += shorter;
}

static void ck_recovery(struct bed *bed, const struct damage *damage, bool this_boot)
{
    static const uint8_t boot[16] = "a boot";
    const struct seams seams = page_seams(&bed->io, boot);
    char warning[512] = "";
    const annal_store_options options = {
        .no_keeper = true, .wait_ms = 1, .log = keep_warning, .log_arg = warning};
    annal_store *store = NULL;
    bool last_is_hit = damage_hits(damage, bed->last_offset, bed->last_end);
    put_journals(bed);
    unlink(bed->held);
    file_write(bed->log, damage->bytes, damage->len);
    if (this_boot)
        hold_sessions(bed, boot);
    ck_ok(annal__store_open(bed->store, &options, &seams, &store, err));
    for (unsigned i = 0; i < SESSIONS; i++)
        ck_session(bed, store, i, damage, warning, last_is_hit);
    (void)annal_store_close(store, NULL);
    bed->recovered++;
    /* The log of the appends stays: the next case finds it empty, and need not create a log. */
}

/* Only the bytes that differ: to write the whole file would take most of the time. */
static void patch_log(const struct bed *bed, const struct damage *damage, const char *bytes)
{
    int fd = bed->io.open(bed->io.arg, bed->log, O_RDWR, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(annal__io_write_all(&bed->io, fd, bytes + damage->from,
                                         damage->to - damage->from, damage->from),
                     0);
    ck_assert_int_eq(annal__io_write_all(&bed->io, fd, bytes + damage->from_2,
                                         damage->to_2 - damage->from_2, damage->from_2),
                     0);
    bed->io.close(bed->io.arg, fd);
}

static void ck_damage(struct bed *bed, const struct damage *damage)
{
    bool same_length = damage->len == bed->len;
    if (same_length)
        patch_log(bed, damage, damage->bytes);
    else
        file_write(bed->log, damage->bytes, damage->len);
    if (signature_of(bed) == bed->signature) { /* all that recovery takes from it is the same */
        if (same_length)
            patch_log(bed, damage, bed->sound);
        else
            file_write(bed->log, bed->sound, bed->len);
        return;
    }
    ck_recovery(bed, damage, false);
    ck_recovery(bed, damage, true);
    file_write(bed->log, bed->sound, bed->len);
}

/* ---- The bed ---- */

static void bed_init(struct bed *bed)
{
    struct log log;
    tmpdir_init(&bed->dir);
    bed->io = page_io();
    bed->store = tmpdir_path(&bed->dir, "store");
    bed->log = tmpdir_path(&bed->dir, "store/commit/00.log");
    bed->held = tmpdir_path(&bed->dir, "store/locks/00.held");
    store_close(store_open(bed->store));
    unlink(bed->log);
    for (unsigned i = 0; i < SESSIONS; i++) {
        char name[40];
        make_session(&bed->sessions[i], i);
        snprintf(name, sizeof name, "store/events/%s.jsonl", bed->sessions[i].name);
        bed->journals[i] = tmpdir_path(&bed->dir, name);
    }
    ck_ok(annal__log_create(&bed->io, bed->log, REGION_BYTES, 1, &log, err));
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++)
        write_group(bed, &log, &plan[i]);
    annal__log_close(&log);
    bed->sound = file_read(bed->log, &bed->len);
    bed->signature = signature_of(bed);
    ck_assert_uint_ne(bed->signature, 0);
}

/* The sound log gives back everything, and is the source of what is compared later. */
static void learn(struct bed *bed)
{
    const struct seams seams = page_seams(&bed->io, NULL);
    put_journals(bed);
    annal_store *store = store_open_seams(bed->store, &seams);
    for (unsigned i = 0; i < SESSIONS; i++) {
        known_read(&bed->sessions[i].known, store, bed->sessions[i].name);
        ck_assert_uint_eq(bed->sessions[i].known.count, bed->sessions[i].count);
    }
    store_close(store);
    file_write(bed->log, bed->sound,
               bed->len); /* a log of another boot goes when it is recovered */
}

static void bed_done(struct bed *bed)
{
    for (unsigned i = 0; i < SESSIONS; i++) {
        known_done(&bed->sessions[i].known);
        for (unsigned n = 0; n <= bed->sessions[i].count; n++)
            annal__buf_done(&bed->sessions[i].lines[n].bytes);
    }
    free(bed->sound);
    tmpdir_done(&bed->dir);
}

START_TEST(damage_to_a_commit_log_loses_nothing_silently)
{
    struct bed bed = {0};
    struct damage damage;
    bed_init(&bed);
    learn(&bed);
    damage_init(&damage, bed.sound, bed.len);
    damage.steps[DAMAGE_FLIP] = full_or(1, many_or(29, 1009));
    damage.steps[DAMAGE_CUT] = full_or(1, many_or(101, 1009));
    damage.steps[DAMAGE_SWAP] = damage.steps[DAMAGE_DOUBLE] = 1;
    while (damage_next(&damage))
        ck_damage(&bed, &damage);
    damage_done(&damage, "commit log");
    printf("commit log: %zu recoveries; sessions: %zu refused, %zu shorter\n", bed.recovered,
           bed.refused, bed.shorter);
    bed_done(&bed);
}
END_TEST

Suite *suite_flips_log(void)
{
    Suite *suite = suite_create("flips_log");
    TCase *log = suite_case(suite, "log", NULL, NULL);
    tcase_set_timeout(log, full_or(3600, 240));
    tcase_add_test(log, damage_to_a_commit_log_loses_nothing_silently);
    return suite;
}
