/* SPDX-License-Identifier: Apache-2.0 */
/* RocksDB with its defaults; each write is synced, and writes of several threads share syncs. */
#include "tests/bench/compare/contender.h"

#include <endian.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rocks {
    const struct place *place;
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_writeoptions_t *synced;
    rocksdb_readoptions_t *read;
};

struct key {
    uint32_t session; /* all big-endian: bytes sort like numbers */
    uint32_t seq_high, seq_low;
};

struct value {
    int64_t ts_us;
    uint64_t type_bytes;
};

static void check(char *error, const char *what)
{
    if (error != NULL)
        bench_fail("rocksdb: %s: %s", what, error);
}

static struct key key_of(unsigned session, uint64_t seq)
{
    return (struct key){htobe32(session), htobe32((uint32_t)(seq >> 32)), htobe32((uint32_t)seq)};
}

/* The header for C has no version: that of pkg-config. */
static void rocks_version(char out[BENCH_VERSION_BYTES])
{
    snprintf(out, BENCH_VERSION_BYTES, "%s", BENCH_ROCKSDB);
}

static void *rocks_open(const struct place *place, unsigned process)
{
    (void)process;
    char *error = NULL;
    struct rocks *rocks = bench_alloc(sizeof *rocks);
    *rocks = (struct rocks){place, NULL, rocksdb_options_create(), rocksdb_writeoptions_create(),
                            rocksdb_readoptions_create()};
    rocksdb_options_set_create_if_missing(rocks->options, 1);
    rocksdb_writeoptions_set_sync(rocks->synced, 1);
    rocks->db = rocksdb_open(rocks->options, place->dir, &error);
    check(error, "open");
    return rocks;
}

static void rocks_close(void *handle)
{
    struct rocks *rocks = handle;
    rocksdb_close(rocks->db);
    rocksdb_options_destroy(rocks->options);
    rocksdb_writeoptions_destroy(rocks->synced);
    rocksdb_readoptions_destroy(rocks->read);
    free(rocks);
}

static void *rocks_writer_open(void *handle)
{
    return handle;
}

static void rocks_writer_close(void *writer)
{
    (void)writer;
}

static void put(rocksdb_writebatch_t *batch, const struct bench_event *event)
{
    struct key key = key_of(event->session, event->seq);
    struct value head = {event->ts_us, event->type.len};
    const char *keys[] = {(const char *)&key};
    const char *values[] = {(const char *)&head, event->type.ptr, event->data.ptr};
    const size_t key_lens[] = {sizeof key};
    const size_t value_lens[] = {sizeof head, event->type.len, event->data.len};
    rocksdb_writebatch_putv(batch, 1, keys, key_lens, 3, values, value_lens);
}

static void rocks_append(void *writer, const struct bench_event *events, size_t count)
{
    struct rocks *rocks = writer;
    char *error = NULL;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    for (size_t i = 0; i < count; i++)
        put(batch, &events[i]);
    rocksdb_write(rocks->db, rocks->synced, batch, &error);
    rocksdb_writebatch_destroy(batch);
    check(error, "write");
}

static void rocks_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                       bench_event_fn fn, void *arg)
{
    struct rocks *rocks = handle;
    char *error = NULL;
    struct key key = key_of(session, from_seq);
    rocksdb_iterator_t *at = rocksdb_create_iterator(rocks->db, rocks->read);
    rocksdb_iter_seek(at, (const char *)&key, sizeof key);
    for (; count > 0 && rocksdb_iter_valid(at); count--, rocksdb_iter_next(at)) {
        size_t len;
        struct value head;
        memcpy(&key, rocksdb_iter_key(at, &len), sizeof key);
        if (be32toh(key.session) != session)
            break;
        const char *value = rocksdb_iter_value(at, &len);
        memcpy(&head, value, sizeof head);
        const char *type = value + sizeof head;
        fn(arg, &(struct bench_event){
                    .session = session,
                    .name = payloads_name(rocks->place->payloads, session),
                    .seq = (uint64_t)be32toh(key.seq_high) << 32 | be32toh(key.seq_low),
                    .ts_us = head.ts_us,
                    .type = {type, head.type_bytes},
                    .data = {type + head.type_bytes, len - sizeof head - head.type_bytes}});
    }
    rocksdb_iter_get_error(at, &error);
    check(error, "read");
    rocksdb_iter_destroy(at);
}

const struct contender contender_rocksdb = {.name = "rocksdb",
                                            .promise = "on the disk",
                                            .durable = true,
                                            .no_processes = "one process alone may open it",
                                            .version = rocks_version,
                                            .open = rocks_open,
                                            .close = rocks_close,
                                            .writer_open = rocks_writer_open,
                                            .writer_close = rocks_writer_close,
                                            .append = rocks_append,
                                            .read = rocks_read};
