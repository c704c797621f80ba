/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damage, exhaustively, on a small journal. Each damaged copy stands in a store of its thread; a
 * few threads prove them side by side, since verify gives the end of a journal time to become
 * whole.
 */
#include "tests/support/journals.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENTS  6
#define LINES   (EVENTS + 1) /* the header is line 0 */
#define THREADS 128

struct original {
    struct tmpdir dir;
    annal_store *store;
    char *bytes;
    size_t len;
    size_t starts[LINES + 1];
};

static void original_init(struct original *original)
{
    const char *path = tmpdir_path(&original->dir, "store");
    original->store = store_open(path);
    uint64_t seq;
    for (uint64_t number = 1; number <= EVENTS; number++) {
        char data[100], id[8];
        snprintf(id, sizeof id, "id%d", (int)number);
        ck_ok(append_slice(original->store, "s", event_data(data, sizeof data, number, number),
                           number % 2 == 0 ? id : NULL, ANNAL_LEVEL_SYNC, &seq, err));
    }
    original->bytes =
        file_read(tmpdir_path(&original->dir, "store/events/s.jsonl"), &original->len);
    size_t line = 0;
    for (size_t i = 0; i < original->len; i++) {
        if (i == 0 || original->bytes[i - 1] == '\n')
            original->starts[line++] = i;
    }
    ck_assert_uint_eq(line, LINES);
    original->starts[LINES] = original->len;
}

static void original_done(struct original *original)
{
    free(original->bytes);
    store_close(original->store);
    tmpdir_done(&original->dir);
}

/* A damaged copy, and the expected result. */
struct variant {
    const struct original *original;
    char *bytes;
    size_t len;
    /* Only events first to last may be lost; a finding has one of these seqs. 0: the header. */
    uint64_t first, last;
    /* A finding touches these bytes. */
    size_t from, to;
    uint64_t end; /* the last event that may be read */
    bool sound;   /* nothing is to be found */
    /* What was wrong, for the test to say: threads must not call Check. */
    char wrong[200];
};

struct findings {
    const struct variant *variant;
    uint64_t count;
    bool fits;
};

static void note(void *arg, const annal_finding *finding)
{
    struct findings *findings = arg;
    const struct variant *v = findings->variant;
    findings->count++;
    uint64_t length = finding->length == 0 ? 1 : finding->length;
    if (finding->seq >= v->first && finding->seq <= v->last && finding->offset < v->to &&
        finding->offset + length > v->from)
        findings->fits = true;
}

static bool same_event(const struct original *original, const annal_event *event)
{
    char data[100];
    annal_slice expected = event_data(data, sizeof data, event->seq, event->seq);
    size_t start = original->starts[event->seq];
    return expected.len == event->data.len && memcmp(data, event->data.ptr, expected.len) == 0 &&
           original->starts[event->seq + 1] - start == event->length &&
           event->id.len == (event->seq % 2 == 0 ? 3u : 0u) && event->type.len == 10;
}

static void ck_events(struct variant *v, annal_store *store)
{
    annal_cursor *cursor = NULL;
    annal_error err = {0};
    bool came[LINES] = {false};
    uint64_t last = 0;
    annal_status status = annal_cursor_open(store, ANNAL_SLICE("s"), 1, &cursor, &err);
    while (status >= 0 && status != ANNAL_END) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, &err);
        if (status != ANNAL_OK)
            continue;
        if (event.seq <= last || event.seq > EVENTS || !same_event(v->original, &event))
            snprintf(v->wrong, sizeof v->wrong, "a wrong event %d came", (int)event.seq);
        last = event.seq <= EVENTS ? event.seq : last;
        came[last] = true;
    }
    annal_cursor_close(cursor);
    if (status < 0)
        snprintf(v->wrong, sizeof v->wrong, "cursor: %.150s", err.message);
    for (uint64_t seq = 1; seq <= v->end && seq <= EVENTS; seq++) {
        if (!came[seq] && (v->sound || seq < v->first || seq > v->last))
            snprintf(v->wrong, sizeof v->wrong, "event %d did not come", (int)seq);
    }
}

static void prove_variant(struct variant *v, annal_store *store)
{
    char path[400];
    snprintf(path, sizeof path, "%s/events/s.jsonl", annal_store_path(store));
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(v->bytes, 1, v->len, file) != v->len || fclose(file) != 0)
        abort();
    struct findings findings = {.variant = v};
    annal_verify_result result = {0};
    annal_error err = {0};
    if (annal_session_verify(store, ANNAL_SLICE("s"), note, &findings, &result, &err) < 0)
        snprintf(v->wrong, sizeof v->wrong, "verify: %.150s", err.message);
    else if (v->sound ? findings.count != 0 : !findings.fits)
        snprintf(v->wrong, sizeof v->wrong, "%d findings, of which none fits", (int)findings.count);
    if (v->wrong[0] == '\0')
        ck_events(v, store);
}

struct variants {
    struct variant *all;
    size_t count, room;
    _Atomic size_t next;
    const char *path; /* directory for stores */
};

static struct variant *add(struct variants *variants, const struct original *original)
{
    if (variants->count == variants->room) {
        variants->room = variants->room == 0 ? 1024 : variants->room * 2;
        variants->all = realloc(variants->all, variants->room * sizeof *variants->all);
        ck_assert_ptr_nonnull(variants->all);
    }
    struct variant *v = &variants->all[variants->count++];
    variants->path = original->dir.path;
    *v = (struct variant){.original = original, .len = original->len, .end = EVENTS};
    v->bytes = malloc(2 * original->len);
    ck_assert_ptr_nonnull(v->bytes);
    memcpy(v->bytes, original->bytes, original->len);
    return v;
}

static void *prove_some(void *arg)
{
    struct variants *variants = arg;
    static _Atomic int names;
    char path[300];
    snprintf(path, sizeof path, "%s/%d", variants->path, atomic_fetch_add(&names, 1));
    const annal_store_options options = {.create = true, .no_keeper = true};
    annal_store *store = NULL;
    if (annal_store_open(path, &options, &store, NULL) < 0)
        abort();
    size_t i;
    while ((i = atomic_fetch_add(&variants->next, 1)) < variants->count)
        prove_variant(&variants->all[i], store);
    if (annal_store_close(store, NULL) < 0)
        abort();
    return NULL;
}

static void prove_all(struct variants *variants)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, prove_some, variants), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < variants->count; i++) {
        struct variant *v = &variants->all[i];
        ck_assert_msg(v->wrong[0] == '\0', "variant %d, bytes %d to %d, events %d to %d: %s\n%.*s",
                      (int)i, (int)v->from, (int)v->to, (int)v->first, (int)v->last, v->wrong,
                      (int)v->len, v->bytes);
        free(v->bytes);
    }
    free(variants->all);
}

static uint64_t line_of(const struct original *original, size_t at)
{
    uint64_t line = 0;
    while (original->starts[line + 1] <= at)
        line++;
    return line;
}

START_TEST(verification_finds_a_flipped_byte_at_its_place_and_loses_at_most_its_event)
{
    struct original original = {0};
    struct variants variants = {0};
    tmpdir_init(&original.dir);
    original_init(&original);
    for (size_t at = 0; at < original.len; at += many_or(1, 23)) {
        static const char others[] = {'\n', '"', '}', '0', 'f', '\0', ',', '\xff'};
        uint64_t line = line_of(&original, at);
        /* At the end each look takes its time: fewer values. */
        size_t step = line == EVENTS ? 5 : 1;
        for (size_t i = at % step; i < 8 + sizeof others; i += step) {
            char flipped = original.bytes[at];
            flipped = (char)(flipped ^ (1 << (i & 7)));
            char value = i < 8 ? flipped : others[i - 8];
            if (value == original.bytes[at])
                continue;
            struct variant *v = add(&variants, &original);
            v->bytes[at] = value;
            v->first = v->last = line;
            v->from = original.starts[line];
            v->to = original.starts[line + 1];
        }
    }
    prove_all(&variants);
    original_done(&original);
}
END_TEST

START_TEST(a_journal_truncated_anywhere_keeps_its_complete_events)
{
    struct original original = {0};
    struct variants variants = {0};
    tmpdir_init(&original.dir);
    original_init(&original);
    for (size_t len = 0; len < original.len; len += many_or(1, 19)) {
        struct variant *v = add(&variants, &original);
        uint64_t line = line_of(&original, len);
        v->len = len;
        v->first = v->last = line;
        v->from = original.starts[line];
        v->to = original.starts[line + 1];
        v->sound = len == original.starts[line];
        v->end = line == 0 ? 0 : line - 1;
    }
    prove_all(&variants);
    original_done(&original);
}
END_TEST

/* Build the copy from these lines of the original. */
static struct variant *add_lines(struct variants *variants, const struct original *original,
                                 const unsigned *lines, size_t count)
{
    struct variant *v = add(variants, original);
    v->len = 0;
    for (size_t i = 0; i < count; i++) {
        size_t start = original->starts[lines[i]];
        size_t length = original->starts[lines[i] + 1] - start;
        memcpy(v->bytes + v->len, original->bytes + start, length);
        v->len += length;
    }
    v->to = v->len;
    return v;
}

START_TEST(a_dropped_doubled_or_swapped_line_is_found_and_the_others_are_read)
{
    struct original original = {0};
    struct variants variants = {0};
    tmpdir_init(&original.dir);
    original_init(&original);
    for (unsigned line = 0; line < LINES; line++) {
        unsigned lines[LINES + 1];
        struct variant *v;
        size_t n = 0;
        for (unsigned i = 0; i < LINES; i++)
            if (i != line)
                lines[n++] = i;
        v = add_lines(&variants, &original, lines, n);
        v->first = line;
        v->last = line + 1;
        v->sound = line == EVENTS; /* cannot be detected: the journal looks as before the append */
        v->end = v->sound ? EVENTS - 1 : EVENTS;

        n = 0;
        for (unsigned i = 0; i < LINES; i++) {
            lines[n++] = i;
            if (i == line)
                lines[n++] = i;
        }
        v = add_lines(&variants, &original, lines, n);
        v->first = line;
        v->last = line + 1;

        if (line + 1 == LINES)
            continue;
        for (unsigned i = 0; i < LINES; i++)
            lines[i] = i == line ? line + 1 : i == line + 1 ? line : i;
        v = add_lines(&variants, &original, lines, LINES);
        v->first = line;
        v->last = line + 2;
    }
    prove_all(&variants);
    original_done(&original);
}
END_TEST

/* Several changed bytes anywhere: no wrong event is read, and the damage is found. */
START_TEST(random_damage_never_gives_a_wrong_event)
{
    struct original original = {0};
    struct variants variants = {0};
    struct random random = random_init(21);
    tmpdir_init(&original.dir);
    original_init(&original);
    for (unsigned round = 0; round < many_or(2000, 100); round++) {
        struct variant *v = add(&variants, &original);
        uint64_t hits = 1 + random_below(&random, 6);
        v->to = v->len;
        v->last = EVENTS + 1;
        for (uint64_t i = 0; i < hits; i++) {
            size_t room = round % 10 == 0 ? v->len : original.starts[EVENTS];
            size_t at = random_below(&random, room);
            size_t len = 1 + random_below(&random, 40);
            for (size_t k = at; k < at + len && k < room; k++)
                v->bytes[k] = (char)(v->bytes[k] + 1 + (char)random_below(&random, 255));
        }
        v->sound = memcmp(v->bytes, original.bytes, v->len) == 0;
    }
    prove_all(&variants);
    original_done(&original);
}
END_TEST

Suite *suite_verify(void)
{
    Suite *suite = suite_create("verify");
    TCase *damage = suite_case(suite, "damage", NULL, NULL);
    tcase_add_test(damage,
                   verification_finds_a_flipped_byte_at_its_place_and_loses_at_most_its_event);
    tcase_add_test(damage, a_journal_truncated_anywhere_keeps_its_complete_events);
    tcase_add_test(damage, a_dropped_doubled_or_swapped_line_is_found_and_the_others_are_read);
    tcase_add_test(damage, random_damage_never_gives_a_wrong_event);
    return suite;
}
