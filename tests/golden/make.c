/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write a store for the golden files, in the version of the format that this library writes.
 *
 *     make_golden DIR [msgpack]      creates DIR/store and DIR/expected
 *     manifest.sh --write DIR
 *
 * Run it once for each version; its files are never rewritten: see README.md. The sessions in the
 * store:
 *
 *   plain      each kind of event
 *   redo       three events in the journal, three more in the commit log only
 *   made       the commit log only
 *   loose      two events, then three of level os, of which the journal keeps one and a half
 *   torn       the journal ends in a piece of a line that is in no log
 *   replaced   its journal replaced another; the log has records for the old journal
 *   deleted    was deleted; without the tombstone, the log would restore it
 *   forked     a fork of plain at its second event, with one event in the journal and one in the
 *              commit log only
 *   again      a fork of forked, in the other format and without events of its own
 */
#include "index/sys/snapshot_rows.h"
#include "journal/json_msgpack.h"
#include "journal/store.h"

#include <annal/annal.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REGION_BYTES (16 * 4096) /* a whole log of the usual size would be 2 MiB of zeros */

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, reason.message);    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static annal_error reason;
static const char *root;
static annal_store *store;
static const struct codec *codec; /* of every journal in it */

/* DIR/<first><name>. Four at a time. */
static const char *path_of(const char *first, const char *name)
{
    static char paths[4][1024];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s%s", root, first, name);
    return path;
}

/* Of a session in the store; the same. */
static const char *journal_of(const char *session)
{
    char name[100];
    snprintf(name, sizeof name, "%s%s", session, codec->suffix);
    return path_of("store/events/", name);
}

static const annal_draft plain[] = {
    {.type = ANNAL_SLICE("session.created"),
     .ts_us = 1767684240123456,
     .data = ANNAL_SLICE("{\"agent_id\":\"demo\",\"title\":\"A session\"}")},
    {.type = ANNAL_SLICE("turn.started"),
     .ts_us = 1767684241000000,
     .data = ANNAL_SLICE("{\"turn_id\":\"t1\"}")},
    {.type = ANNAL_SLICE("tool.called"),
     .ts_us = 1767684241500000,
     .id = ANNAL_SLICE("call-1"),
     .cause = ANNAL_SLICE("plain:2"),
     .data = ANNAL_SLICE("{\"name\":\"Bash\",\"input\":[\"make\",-1.5e3,null,{\"a\":{}}]}")},
    {.type = ANNAL_SLICE("note.added"),
     .ts_us = 1767684240000000, /* earlier than the event before */
     .id = ANNAL_SLICE("caf\xC3\xA9"),
     .data = ANNAL_SLICE("\"caf\\u00e9, caf\xC3\xA9, \\ud800, \xF0\x9F\x98\x80\"")},
    {.type = ANNAL_SLICE("a"), .ts_us = 1, .data = ANNAL_SLICE("0")},
    {.type = ANNAL_SLICE("numbers"),
     .ts_us = 1767684242000000,
     .data = ANNAL_SLICE("[0,-0,1e400,123456789012345678901234567890,0.1,-9223372036854775808]")},
    {.type = ANNAL_SLICE("spaces"),
     .ts_us = 1767684243000000,
     .data = ANNAL_SLICE(" { \"b\" : 1 , \"b\" : 2 } ")},
    {.type = ANNAL_SLICE("turn.completed"),
     .ts_us = 1767684244000000,
     .data = ANNAL_SLICE("{\"turn_id\":\"t1\",\"usage\":{\"input_tokens\":3}}")},
};

static void append(const char *session, const annal_draft *drafts, size_t count, annal_level level)
{
    annal_writer *writer = NULL;
    const annal_writer_options options = {.level = level, .format = codec->format};
    uint64_t seq;
    MUST(annal_writer_open(store, annal_slice_of(session), &options, &writer, &reason) == ANNAL_OK);
    MUST(annal_writer_append(writer, drafts, count, NULL, &seq, &reason) == ANNAL_OK);
    annal_writer_close(writer);
}

/* Events that say which one they are. */
static void append_numbers(const char *session, unsigned first, unsigned last, annal_level level)
{
    for (unsigned number = first; number <= last; number++) {
        char data[100], id[20];
        int length =
            snprintf(data, sizeof data, "{\"session\":\"%s\",\"number\":%u}", session, number);
        snprintf(id, sizeof id, "id-%u", number);
        const annal_draft draft = {.type = ANNAL_SLICE("test.event"),
                                   .ts_us = 1767684240000000 + number,
                                   .id = annal_slice_of(number % 2 == 0 ? id : NULL),
                                   .data = {data, (size_t)length}};
        append(session, &draft, 1, level);
    }
}

/* ---- The expected content ---- */

static void print_text(FILE *out, const char *name, annal_slice text)
{
    if (text.len > 0)
        fprintf(out, ",\"%s\":\"%.*s\"", name, ANNAL_FMT(text));
}

/* One line an event: seq, ts_us, type, id, cause, and the data as it stands. */
static void expect(const char *session, uint64_t last)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    char name[100];
    snprintf(name, sizeof name, "%s.jsonl", session);
    FILE *out = fopen(path_of("expected/", name), "w");
    MUST(out != NULL);
    MUST(annal_cursor_open(store, annal_slice_of(session), 1, &cursor, &reason) == ANNAL_OK);
    for (uint64_t seq = 1; seq <= last; seq++) {
        MUST(annal_cursor_next(cursor, &event, &reason) == ANNAL_OK && event.seq == seq);
        fprintf(out, "{\"seq\":%" PRIu64 ",\"ts_us\":%" PRId64, event.seq, event.ts_us);
        print_text(out, "type", event.type);
        print_text(out, "id", event.id);
        print_text(out, "cause", event.cause);
        fprintf(out, ",\"data\":%.*s}\n", ANNAL_FMT(event.data));
    }
    annal_cursor_close(cursor);
    MUST(fclose(out) == 0);
}

/* ---- Damage that a crash leaves ---- */

/* Where event seq of a session ends. */
static uint64_t end_of(const char *session, uint64_t seq)
{
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    MUST(annal_cursor_open(store, annal_slice_of(session), seq, &cursor, &reason) == ANNAL_OK);
    MUST(annal_cursor_next(cursor, &event, &reason) == ANNAL_OK && event.seq == seq);
    annal_cursor_close(cursor);
    return event.offset + event.length;
}

static void write_bytes(const char *path, const void *bytes, size_t len, bool at_end)
{
    FILE *file = fopen(path, at_end ? "ab" : "wb");
    MUST(file != NULL && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
    MUST(chmod(path, 0600) == 0);
}

/* Write the tombstone that tells every log that the journal is gone for good. Returns the journal's
 * header. */
static struct frame_header write_tombstone(const char *session)
{
    annal_session_info info;
    struct buf line = {0};
    struct frame_header header = {.session = annal_slice_of(session)};
    uint64_t h;
    char name[100];
    MUST(annal_session_info_get(store, annal_slice_of(session), &info, &reason) == ANNAL_OK);
    for (int i = 0; i < FRAME_FILE_ID_BYTES; i++) {
        unsigned byte;
        MUST(sscanf(info.file + (size_t)i * 2, "%2x", &byte) == 1);
        header.file[i] = (uint8_t)byte;
    }
    header.created_us = info.created_us;
    MUST(codec->encode_header(&line, &header, &h) == ANNAL_OK);
    (void)mkdir(path_of("store/events/.gone", ""), 0700);
    snprintf(name, sizeof name, "store/events/.gone/%s", info.file);
    write_bytes(path_of(name, ""), line.ptr, line.len, false);
    annal__buf_done(&line);
    return header;
}

/* Another journal takes the place of the session's, as a conversion leaves it. */
static void replace(const char *session)
{
    struct buf journal = {0};
    struct frame_header old = write_tombstone(session);
    struct frame_header header = {.session = annal_slice_of(session),
                                  .file = {0x9a, 0x01, 0xd0, 0x1d},
                                  .created_us = 1767684250000000,
                                  .is_replacement = true};
    uint64_t h;
    struct buf data = {0};
    const annal_slice text = ANNAL_SLICE("{\"written\":\"by a conversion\"}");
    MUST((codec->format == ANNAL_FORMAT_JSON
              ? annal__buf_append_slice(&data, text)
              : annal__json_msgpack_from_json(text, &data, &reason)) == ANNAL_OK);
    memcpy(header.replaces, old.file, sizeof old.file);
    MUST(codec->encode_header(&journal, &header, &h) == ANNAL_OK);
    for (unsigned number = 1; number <= 3; number++) {
        const annal_draft draft = {.type = ANNAL_SLICE("test.event"),
                                   .data = annal__buf_slice(&data),
                                   .data_format = codec->format};
        const struct frame_place place = {.seq = number,
                                          .ts_us = 1767684240000000 + number,
                                          .offset = journal.len,
                                          .h_before = h};
        MUST(codec->encode_event(&journal, &draft, &place, &h) == ANNAL_OK);
    }
    write_bytes(journal_of(session), journal.ptr, journal.len, false);
    annal__buf_done(&journal);
    annal__buf_done(&data);
}

/* ---- The store ---- */

static void make_directories(void)
{
    MUST(mkdir(root, 0755) == 0 && mkdir(path_of("expected", ""), 0755) == 0);
    static const char *const names[] = {"", "/events", "/commit", "/locks"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        MUST(mkdir(path_of("store", names[i]), 0700) == 0);
}

static void make_small_log(void)
{
    struct log log;
    MUST(annal__log_create(&annal__system_io, path_of("store/commit/00.log", ""), REGION_BYTES,
                           1767684240000000, &log, &reason) == ANNAL_OK);
    annal__log_close(&log);
}

/* The newest snapshot of a session, as a file. */
static void keep_snapshot(const char *session)
{
    annal_index *index = NULL;
    annal_snapshot_info info;
    annal_slice row;
    uint64_t seq;
    MUST(annal_index_open(store, NULL, &index, &reason) == ANNAL_OK);
    MUST(annal_snapshot_take(index, annal_slice_of(session), NULL, &info, &reason) >= 0);
    MUST(annal__snapshot_rows_newest(index, annal_slice_of(session), UINT64_MAX, &seq, &row,
                                     &reason) == ANNAL_OK);
    write_bytes(path_of("snapshot", ""), row.ptr, row.len, false);
    annal_free(row.ptr);
    annal_index_close(index);
}

static void fork_at(const char *session, uint64_t seq, const char *child, annal_format format)
{
    MUST(annal_session_fork(store, annal_slice_of(session), seq, annal_slice_of(child),
                            &(annal_fork_options){.format = format}, NULL, &reason) == ANNAL_OK);
}

static void fill(void)
{
    append("plain", plain, sizeof plain / sizeof *plain, ANNAL_LEVEL_SYNC);
    append_numbers("redo", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers("loose", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers("torn", 1, 2, ANNAL_LEVEL_SYNC);
    fork_at("plain", 2, "forked", codec->format);
    append_numbers("forked", 3, 3, ANNAL_LEVEL_SYNC);
    fork_at("forked", 3, "again",
            codec->format == ANNAL_FORMAT_JSON ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON);
    keep_snapshot("plain");
    MUST(annal_store_checkpoint(store, &reason) == ANNAL_OK);
    usleep(500000); /* who needs the next region sooner gets a larger log */
    append_numbers("redo", 4, 6, ANNAL_LEVEL_SYNC);
    append_numbers("made", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers("forked", 4, 4, ANNAL_LEVEL_SYNC);
    append_numbers("loose", 3, 5, ANNAL_LEVEL_OS);
    append_numbers("replaced", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers("deleted", 1, 2, ANNAL_LEVEL_SYNC);
}

/* Locks and lists belong to this machine; the index is built from the journals. */
static void remove_derived(void)
{
    static const char *const names[] = {
        "locks/claim",   "locks/recovery", "locks/index", "locks/structure", "locks/metrics",
        "locks/00.held", "locks/bell",     "sessions.db", "sessions.db-wal", "sessions.db-shm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unlink(path_of("store/", names[i]));
}

/* The first bytes of its last event stand once more at the end of its journal. */
static void tear(const char *session)
{
    char bytes[1024];
    uint64_t end = end_of(session, 1);
    FILE *file = fopen(journal_of(session), "rb");
    MUST(file != NULL && fseek(file, (long)end, SEEK_SET) == 0);
    MUST(fread(bytes, 1, 40, file) == 40 && fclose(file) == 0);
    write_bytes(journal_of(session), bytes, 40, true);
}

/* The process dies here, and the power fails. */
static void die(void)
{
    uint64_t redo = end_of("redo", 3), loose = end_of("loose", 3) + 40,
             forked = end_of("forked", 3);
    MUST(truncate(journal_of("forked"), (off_t)forked) == 0);
    MUST(truncate(journal_of("redo"), (off_t)redo) == 0);
    MUST(truncate(journal_of("loose"), (off_t)loose) == 0);
    MUST(unlink(journal_of("made")) == 0);
    MUST(unlink(journal_of("deleted")) == 0);
    tear("torn");
    remove_derived();
    _exit(0); /* without closing the store: its log stays unchanged */
}

int main(int argc, char **argv)
{
    const annal_store_options options = {.create = true, .no_keeper = true};
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s DIR [msgpack]\n", argv[0]);
        return 2;
    }
    codec =
        argc > 2 && strcmp(argv[2], "msgpack") == 0 ? &annal__codec_msgpack : &annal__codec_json;
    root = argv[1];
    make_directories();
    make_small_log();
    MUST(annal_store_open(path_of("store", ""), &options, &store, &reason) == ANNAL_OK);
    fill();
    expect("plain", sizeof plain / sizeof *plain);
    expect("redo", 6);
    expect("made", 2);
    expect("loose", 3);
    expect("torn", 2);
    expect("forked", 4);
    expect("again", 3);
    replace("replaced");
    expect("replaced", 3);
    (void)write_tombstone("deleted");
    die();
}
