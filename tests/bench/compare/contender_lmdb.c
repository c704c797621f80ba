/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB: one tree, key session and seq; each transaction is synced. lmdb-checksum, from LMDB 1.0 on,
 * also writes a checksum in each page, with the hash function that Annal uses, and checks it when
 * it reads the page, which LMDB does only when it maps pieces of the file.
 */
#include "tests/bench/compare/contender.h"

#include <endian.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef MDB_BAD_CHECKSUM
#include <xxhash.h>
#endif

#define MAP_BYTES ((size_t)256 << 30) /* of addresses, not of disk */

struct tree {
    const struct place *place;
    MDB_env *env;
    MDB_dbi dbi;
};

struct key {
    uint32_t session; /* both big-endian: bytes sort like numbers */
    uint32_t seq_high, seq_low;
};

struct value {
    int64_t ts_us;
    uint64_t type_bytes;
};

static void check(int code, const char *what)
{
    if (code != MDB_SUCCESS)
        bench_fail("lmdb: %s: %s", what, mdb_strerror(code));
}

static struct key key_of(unsigned session, uint64_t seq)
{
    return (struct key){htobe32(session), htobe32((uint32_t)(seq >> 32)), htobe32((uint32_t)seq)};
}

static void lmdb_version(char out[BENCH_VERSION_BYTES])
{
    int major, minor, patch;
    mdb_version(&major, &minor, &patch);
    snprintf(out, BENCH_VERSION_BYTES, "%d.%d.%d", major, minor, patch);
}

#ifdef MDB_BAD_CHECKSUM
static void hash(const MDB_val *page, MDB_val *out, const MDB_val *key)
{
    (void)key;
    XXH64_hash_t sum = XXH3_64bits(page->mv_data, page->mv_size);
    memcpy(out->mv_data, &sum, sizeof sum);
}
#endif

static unsigned set_checksum(MDB_env *env)
{
#ifdef MDB_BAD_CHECKSUM
    check(mdb_env_set_checksum(env, hash, sizeof(XXH64_hash_t)), "checksum");
    return MDB_REMAP_CHUNKS;
#else
    (void)env;
    return 0;
#endif
}

static bool has_checksum(char why[BENCH_WHY_BYTES])
{
#ifdef MDB_BAD_CHECKSUM
    (void)why;
    return true;
#else
    snprintf(why, BENCH_WHY_BYTES, "LMDB %d.%d has no checksums: PEERS=new", MDB_VERSION_MAJOR,
             MDB_VERSION_MINOR);
    return false;
#endif
}

static void *open_tree(const struct place *place, bool checksum)
{
    struct tree *tree = bench_alloc(sizeof *tree);
    MDB_txn *txn;
    *tree = (struct tree){.place = place};
    check(mdb_env_create(&tree->env), "create");
    check(mdb_env_set_mapsize(tree->env, MAP_BYTES), "map size");
    unsigned flags = checksum ? set_checksum(tree->env) : 0;
    check(mdb_env_open(tree->env, place->dir, flags, 0600), "open");
    check(mdb_txn_begin(tree->env, NULL, 0, &txn), "begin");
    check(mdb_dbi_open(txn, NULL, MDB_CREATE, &tree->dbi), "open tree");
    check(mdb_txn_commit(txn), "commit");
    return tree;
}

static void *plain_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_tree(place, false);
}

static void *checksum_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_tree(place, true);
}

static void lmdb_close(void *handle)
{
    struct tree *tree = handle;
    mdb_env_close(tree->env);
    free(tree);
}

static void *lmdb_writer_open(void *handle)
{
    return handle;
}

static void lmdb_writer_close(void *writer)
{
    (void)writer;
}

static void put(struct tree *tree, MDB_txn *txn, const struct bench_event *event)
{
    struct key key = key_of(event->session, event->seq);
    struct value head = {event->ts_us, event->type.len};
    MDB_val at = {sizeof key, &key};
    MDB_val room = {sizeof head + event->type.len + event->data.len, NULL};
    check(mdb_put(txn, tree->dbi, &at, &room, MDB_RESERVE), "put");
    char *to = room.mv_data;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, event->type.ptr, event->type.len);
    memcpy(to + sizeof head + event->type.len, event->data.ptr, event->data.len);
}

static void lmdb_append(void *writer, const struct bench_event *events, size_t count)
{
    struct tree *tree = writer;
    MDB_txn *txn;
    check(mdb_txn_begin(tree->env, NULL, 0, &txn), "begin");
    for (size_t i = 0; i < count; i++)
        put(tree, txn, &events[i]);
    check(mdb_txn_commit(txn), "commit");
}

static void lmdb_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                      bench_event_fn fn, void *arg)
{
    struct tree *tree = handle;
    struct key key = key_of(session, from_seq);
    MDB_val at = {sizeof key, &key}, found;
    MDB_txn *txn;
    MDB_cursor *cursor;
    check(mdb_txn_begin(tree->env, NULL, MDB_RDONLY, &txn), "begin");
    check(mdb_cursor_open(txn, tree->dbi, &cursor), "cursor");
    int code = mdb_cursor_get(cursor, &at, &found, MDB_SET_RANGE);
    for (; code == MDB_SUCCESS && count > 0; count--) {
        struct value head;
        memcpy(&key, at.mv_data, sizeof key);
        memcpy(&head, found.mv_data, sizeof head);
        if (be32toh(key.session) != session)
            break;
        const char *type = (const char *)found.mv_data + sizeof head;
        fn(arg,
           &(struct bench_event){
               .session = session,
               .name = payloads_name(tree->place->payloads, session),
               .seq = (uint64_t)be32toh(key.seq_high) << 32 | be32toh(key.seq_low),
               .ts_us = head.ts_us,
               .type = {type, head.type_bytes},
               .data = {type + head.type_bytes, found.mv_size - sizeof head - head.type_bytes}});
        code = mdb_cursor_get(cursor, &at, &found, MDB_NEXT);
    }
    if (code != MDB_SUCCESS && code != MDB_NOTFOUND)
        check(code, "read");
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

#define LMDB                                                                                       \
    .promise = "on the disk", .durable = true, .version = lmdb_version, .close = lmdb_close,       \
    .writer_open = lmdb_writer_open, .writer_close = lmdb_writer_close, .append = lmdb_append,     \
    .read = lmdb_read

const struct contender contender_lmdb = {.name = "lmdb", .open = plain_open, LMDB};
const struct contender contender_lmdb_checksum = {
    .name = "lmdb-checksum", .find = has_checksum, .open = checksum_open, LMDB};
