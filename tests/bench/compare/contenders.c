/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/contender.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct contender contender_raw, contender_raw_cached, contender_jsonl,
    contender_jsonl_sync, contender_sqlite_full, contender_sqlite_normal, contender_annal,
    contender_annal_journals, contender_lmdb, contender_lmdb_checksum, contender_rocksdb,
    contender_redis, contender_nats, contender_postgresql, contender_turso_mvcc,
    contender_turso_wal;

/* Stands for a contender whose library was missing at build time. */
#define MISSING(symbol, title, library)                                                            \
    static bool symbol##_missing(char why[BENCH_WHY_BYTES])                                        \
    {                                                                                              \
        snprintf(why, BENCH_WHY_BYTES, "built without %s", library);                               \
        return false;                                                                              \
    }                                                                                              \
    const struct contender contender_##symbol = {.name = (title), .find = symbol##_missing};

#define SETUP " (cmake/setup.sh bench)"

#ifndef BENCH_LMDB
MISSING(lmdb, "lmdb", "liblmdb-dev" SETUP)
MISSING(lmdb_checksum, "lmdb-checksum", "liblmdb-dev" SETUP)
#endif
#ifndef BENCH_ROCKSDB
MISSING(rocksdb, "rocksdb", "librocksdb-dev" SETUP)
#endif
#ifndef BENCH_REDIS
MISSING(redis, "redis", "libhiredis-dev" SETUP)
#endif
#ifndef BENCH_NATS
MISSING(nats, "nats", "libnats-dev" SETUP)
#endif
#ifndef BENCH_POSTGRESQL
MISSING(postgresql, "postgresql", "libpq-dev" SETUP)
#endif
#ifndef BENCH_TURSO
MISSING(turso_mvcc, "turso-mvcc", "Turso (make bench PEERS=new)")
MISSING(turso_wal, "turso-wal", "Turso (make bench PEERS=new)")
#endif

const struct contender *const contenders[] = {&contender_raw,
                                              &contender_raw_cached,
                                              &contender_annal,
                                              &contender_annal_journals,
                                              &contender_jsonl_sync,
                                              &contender_jsonl,
                                              &contender_sqlite_full,
                                              &contender_sqlite_normal,
                                              &contender_turso_mvcc,
                                              &contender_turso_wal,
                                              &contender_lmdb,
                                              &contender_lmdb_checksum,
                                              &contender_rocksdb,
                                              &contender_redis,
                                              &contender_nats,
                                              &contender_postgresql,
                                              NULL};

void *bench_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        bench_fail("no memory for %zu bytes", bytes);
    return memory;
}
