/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every bit of a small journal, in either format, flipped, every length cut, every 512-byte block
 * zeroed.
 *
 * For each: every way of reading gives right events or reports the damage. An append is refused, or
 * continues after the last event that exists; it removes only bytes that it keeps in events/.torn,
 * with a warning. A damaged journal may look undamaged in one case only: cut at the end of a line,
 * it is the journal of an earlier moment.
 */
#include "journal/session_own.h"
#include "journal/sys/event_at.h"
#include "tests/support/damage.h"
#include "tests/support/journals.h"
#include "tests/support/known.h"
#include "tests/support/page_io.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S "s"

struct bed {
    struct tmpdir dir;
    annal_format format;
    struct io io;
    annal_store *store;
    const char *journal; /* its path */
    const char *torn;    /* the directory */
    struct known known;
    char *sound;
    size_t len;
    size_t warnings; /* of the store */
};

static void count_warning(void *arg, annal_log_level level, const char *message)
{
    size_t *warnings = arg;
    (void)message;
    *warnings += level == ANNAL_LOG_WARNING;
}

static void open_bed(struct bed *bed)
{
    bed->io = page_io();
    const struct seams seams = page_seams(&bed->io, NULL);
    const annal_store_options options = {.create = true,
                                         .no_keeper = true,
                                         .format = bed->format,
                                         .log = count_warning,
                                         .log_arg = &bed->warnings};
    ck_ok(annal__store_open(tmpdir_path(&bed->dir, "store"), &options, &seams, &bed->store, err));
    bed->torn = tmpdir_path(&bed->dir, "store/events/.torn");
}

/* One of each kind of event, and more than two blocks of 512 bytes. */
static void fill(struct bed *bed)
{
    char long_text[400];
    memset(long_text, 'x', sizeof long_text);
    const annal_draft drafts[] = {
        {.type = ANNAL_SLICE("session.created"), .data = ANNAL_SLICE("{\"agent_id\":\"demo\"}")},
        {.type = ANNAL_SLICE("tool.called"),
         .id = ANNAL_SLICE("call-1"),
         .cause = ANNAL_SLICE("s:1"),
         .data = ANNAL_SLICE("{\"name\":\"Bash\",\"input\":[\"make\",-1.5e3,null,{\"a\":{}}]}")},
        {.type = ANNAL_SLICE("note.added"), .data = ANNAL_SLICE("\"caf\\u00e9 and caf\xC3\xA9\"")},
        {.type = ANNAL_SLICE("a"), .data = ANNAL_SLICE("0")},
        {.type = ANNAL_SLICE("test.long"), .data = {long_text, sizeof long_text}},
        {.type = ANNAL_SLICE("tool.returned"),
         .id = ANNAL_SLICE("call-1-result"),
         .data = ANNAL_SLICE("{\"h\":\"0123456789abcdef\"}")},
        {.type = ANNAL_SLICE("test.event"), .data = ANNAL_SLICE(" [ ] ")},
        {.type = ANNAL_SLICE("test.last"), .data = ANNAL_SLICE("{\"text\":\"the last one\"}")},
    };
    long_text[0] = long_text[sizeof long_text - 1] = '"';
    annal_writer *writer = NULL;
    ck_ok(annal_writer_open(bed->store, ANNAL_SLICE(S), NULL, &writer, err));
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++) {
        uint64_t seq;
        ck_ok(annal_writer_append(writer, &drafts[i], 1, NULL, &seq, err));
    }
    annal_writer_close(writer);
}

/* Release the session, so that the next append reads the journal again. */
static void release(const struct bed *bed)
{
    struct session *session = annal__session_get(&bed->store->sessions, ANNAL_SLICE(S), NULL);
    ck_assert_ptr_nonnull(session);
    pthread_mutex_lock(&session->lock);
    ck_ok(annal__session_release(bed->store, session, err));
    pthread_mutex_unlock(&session->lock);
}

static void bed_init(struct bed *bed)
{
    open_bed(bed);
    fill(bed);
    release(bed);
    known_read(&bed->known, bed->store, S);
    bed->journal =
        tmpdir_path(&bed->dir, bed->format == ANNAL_FORMAT_JSON ? "store/events/" S ".jsonl"
                                                                : "store/events/" S ".mpk");
    bed->sound = file_read(bed->journal, &bed->len);
}

static void bed_done(struct bed *bed)
{
    file_write(bed->journal, bed->sound, bed->len);
    known_done(&bed->known);
    free(bed->sound);
    store_close(bed->store);
    tmpdir_done(&bed->dir);
}

/* The last event whose bytes are whole below len. */
static uint64_t last_below(const struct known *known, size_t len)
{
    uint64_t last = 0;
    while (last < known->count && known->events[last].offset + known->events[last].length <= len)
        last++;
    return last;
}

/* Check that the event at each offset is the original event, or is refused. */
static void ck_places(const struct bed *bed, const struct damage *damage, const bool *came)
{
    annal__event_buffer *buffer = NULL;
    for (size_t i = 0; i < bed->known.count; i++) {
        const annal_event *was = &bed->known.events[i];
        annal_event event;
        annal_status status = annal__event_read_at(bed->store, ANNAL_SLICE(S), was->seq,
                                                   was->offset, was->length, &buffer, &event, NULL);
        ck_assert_msg(status == ANNAL_ERR_CORRUPT ||
                          (status == ANNAL_OK && known_same(&bed->known, &event)),
                      "%s: a wrong event at the place of %zu: %s", damage->what, i + 1,
                      annal_status_name(status));
        ck_assert_msg(!came[i] || status == ANNAL_OK, "%s: event %zu is not at its place",
                      damage->what, i + 1);
    }
    annal__event_buffer_free(buffer);
}

/* Append one event to the journal. */
static void ck_append(struct bed *bed, const struct damage *damage, const struct known_walk *before)
{
    uint64_t seq = 0;
    size_t torn = count_names(bed->torn, ""), warnings = bed->warnings;
    struct known_walk after = {0};
    annal_error reason = {0};
    annal_status status = append_slice(bed->store, S, ANNAL_SLICE("\"one more\""), NULL,
                                       ANNAL_LEVEL_SYNC, &seq, &reason);
    if (status != ANNAL_OK) {
        size_t len;
        char *bytes = file_read(bed->journal, &len);
        ck_assert_msg(status == ANNAL_ERR_CORRUPT && reason.message[0] != '\0', "%s: append: %s",
                      damage->what, reason.message);
        ck_assert_msg(len == damage->len && memcmp(bytes, damage->bytes, len) == 0,
                      "%s: a refused append changed the journal", damage->what);
        free(bytes);
        return;
    }
    release(bed);
    ck_assert_msg(seq == before->last + 1, "%s: event %llu is appended behind %llu", damage->what,
                  (unsigned long long)seq, (unsigned long long)before->last);
    bool lost = before->last < last_below(&bed->known, damage->len);
    bool cut = count_names(bed->torn, "") > torn;
    ck_assert_msg(!cut || bed->warnings > warnings, "%s: cut without a word", damage->what);
    ck_assert_msg(!lost || (cut && damage->kind == DAMAGE_ZERO),
                  "%s: events behind %llu are gone without a word", damage->what,
                  (unsigned long long)before->last);
    /* Every event that was read before is still read, and so is the new event. */
    struct known longer = bed->known;
    longer.events = malloc((longer.count + 1) * sizeof *longer.events);
    ck_assert_ptr_nonnull(longer.events);
    memcpy(longer.events, bed->known.events, longer.count * sizeof *longer.events);
    annal_cursor *cursor = NULL;
    annal_event event;
    ck_ok(annal_cursor_open(bed->store, ANNAL_SLICE(S), seq, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert(event.seq == seq && event.data.len == 10);
    longer.events[seq - 1] = event;
    if (seq > longer.count)
        longer.count = seq;
    known_walk(&longer, bed->store, S, 1, damage->what, &after);
    ck_assert_msg(after.count == before->count + 1, "%s: an append took events away", damage->what);
    annal_cursor_close(cursor);
    free(longer.events);
}

static void ck_damage(struct bed *bed, const struct damage *damage)
{
    bool came[32];
    struct known_walk walk = {.came = came}, from = {0};
    size_t count = bed->known.count;
    ck_assert_uint_le(count, sizeof came / sizeof *came);
    file_write(bed->journal, damage->bytes, damage->len);
    if (damage->len == 0) { /* no journal at all, to every reader */
        ck_append(bed, damage, &walk);
        unlink(bed->journal);
        return;
    }
    known_walk(&bed->known, bed->store, S, 1, damage->what, &walk);
    bool reported = walk.damages > 0 || walk.stood_at < damage->len;
    uint64_t line_end = last_below(&bed->known, damage->len);
    bool earlier =
        damage->kind == DAMAGE_CUT && (line_end > 0 ? bed->known.events[line_end - 1].offset +
                                                          bed->known.events[line_end - 1].length
                                                    : bed->known.events[0].offset) == damage->len;
    ck_assert_msg(reported != earlier, "%s: %s", damage->what,
                  reported ? "reported, but it is a sound journal" : "not reported");
    /* Damage costs its line and no other. */
    for (size_t i = 0; i < count && damage->kind != DAMAGE_CUT; i++) {
        const annal_event *was = &bed->known.events[i];
        bool hit = damage_hits(damage, was->offset, was->offset + was->length);
        ck_assert_msg(hit || came[i], "%s: event %zu does not come", damage->what, i + 1);
    }
    ck_places(bed, damage, came);
    known_walk(&bed->known, bed->store, S, count / 2, damage->what, &from);
    ck_append(bed, damage, &walk);
    unlink(bed->journal);
}

START_TEST(damage_to_a_journal_is_reported_and_never_gives_a_wrong_event)
{
    struct bed bed = {.format = _i == 0 ? ANNAL_FORMAT_JSON : ANNAL_FORMAT_MSGPACK};
    struct damage damage;
    tmpdir_init(&bed.dir);
    bed_init(&bed);
    damage_init(&damage, bed.sound, bed.len);
    damage.steps[DAMAGE_FLIP] = full_or(1, many_or(7, 101));
    while (damage_next(&damage))
        ck_damage(&bed, &damage);
    damage_done(&damage, _i == 0 ? "journal" : "msgpack journal");
    bed_done(&bed);
}
END_TEST

Suite *suite_flips(void)
{
    Suite *suite = suite_create("flips");
    TCase *journal = suite_case(suite, "journal", NULL, NULL);
    tcase_add_loop_test(journal, damage_to_a_journal_is_reported_and_never_gives_a_wrong_event, 0,
                        2);
    return suite;
}
