/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the SQLite database of another program, to read it. If it cannot be read at its path
 * (because of a write-ahead log without its index in a directory that we cannot write, or a journal
 * that must be rolled back), it is first copied with its -wal and -journal.
 */
#pragma once

#include "index/db/patience.h"

#include <annal/base.h>

#include <sqlite3.h>

struct foreign {
    sqlite3 *db;
    struct patience patience;
    uint32_t wait_ms;
    bool damaged; /* whether the file is incomplete, so that only the existing pages are read */
};

/* Open a database, with the functions of an importer, in a transaction that reads. wait_ms 0: 10 s.
 * Must be closed even after a failure, and not be moved before. */
annal_status annal__foreign_open(struct foreign *foreign, const char *path, uint32_t wait_ms,
                                 annal_error *err);
void annal__foreign_close(struct foreign *foreign);
