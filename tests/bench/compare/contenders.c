/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/contender.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct contender contender_raw, contender_raw_cached, contender_jsonl,
    contender_jsonl_sync, contender_sqlite_full, contender_sqlite_normal, contender_annal,
    contender_annal_journals, contender_lmdb, contender_lmdb_checksum, contender_rocksdb,
    contender_redis, contender_nats, contender_postgresql;

/* Stands for a contender whose library was missing at build time. */
#define MISSING(symbol, title, package)                                                            \
    static bool symbol##_missing(char why[BENCH_WHY_BYTES])                                        \
    {                                                                                              \
        snprintf(why, BENCH_WHY_BYTES, "built without %s (cmake/setup.sh bench)", package);        \
        return false;                                                                              \
    }                                                                                              \
    const struct contender contender_##symbol = {.name = (title), .find = symbol##_missing};

#ifndef BENCH_LMDB
MISSING(lmdb, "lmdb", "liblmdb-dev")
MISSING(lmdb_checksum, "lmdb-checksum", "liblmdb-dev")
#endif
#ifndef BENCH_ROCKSDB
MISSING(rocksdb, "rocksdb", "librocksdb-dev")
#endif
#ifndef BENCH_REDIS
MISSING(redis, "redis", "libhiredis-dev")
#endif
#ifndef BENCH_NATS
MISSING(nats, "nats", "libnats-dev")
#endif
#ifndef BENCH_POSTGRESQL
MISSING(postgresql, "postgresql", "libpq-dev")
#endif

const struct contender *const contenders[] = {&contender_raw,
                                              &contender_raw_cached,
                                              &contender_annal,
                                              &contender_annal_journals,
                                              &contender_jsonl_sync,
                                              &contender_jsonl,
                                              &contender_sqlite_full,
                                              &contender_sqlite_normal,
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
