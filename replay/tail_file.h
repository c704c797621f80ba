/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named cursors: how far a consumer has read.
 *
 * (1) STORE/cursors/NAME.json is one JSON object: {"annal_cursor":1,"name":…,"committed":…,
 *     "sessions":{ID:{"seq":…,"h":…,"file":…},…},"h":…}, with a line for each session. The last h
 *     is the XXH3-64 of the bytes before its line. docs/format.md.
 * (2) It is replaced as a whole, durably: written under another name, synced, renamed, the
 *     directory synced. So the file always has a complete version, or does not exist.
 * (3) It cannot be rebuilt from the journals, and belongs in a backup. It can be lost without
 *     losing an event: its consumer receives the events again.
 * (4) A process that uses a cursor holds a lock (flock) on STORE/locks/cursor.NAME, which the
 *     kernel releases if it dies. The file of the lock stays.
 */
#ifndef REPLAY_TAIL_FILE_H
#define REPLAY_TAIL_FILE_H

#include "journal/base/buf.h"

#include <annal/tail.h>

struct cursor_entry {
    annal_slice session;
    uint64_t seq;
    uint64_t h;
    bool has_h;
    char file[33];
};

typedef annal_status (*cursor_entry_fn)(void *arg, const struct cursor_entry *entry,
                                        int64_t committed_us, annal_error *err);

/*
 * Take the lock of rule (4). Close *out_fd to release it; -1 in a store that is open for reading
 * only.
 */
annal_status annal__tail_file_lock(annal_store *store, annal_slice name, int *out_fd,
                                   annal_error *err);

/* Read a cursor. ANNAL_ERR_NOTFOUND, ANNAL_ERR_CORRUPT. fn may be NULL. */
annal_status annal__tail_file_read(annal_store *store, annal_slice name, cursor_entry_fn fn,
                                   void *arg, int64_t *out_committed_us, annal_error *err);

/* Begin to write a cursor; then add an entry for each session, and publish it. */
annal_status annal__tail_file_begin(struct buf *out, annal_slice name, int64_t now_us);
annal_status annal__tail_file_add(struct buf *out, const struct cursor_entry *entry);
annal_status annal__tail_file_publish(annal_store *store, annal_slice name, struct buf *text,
                                      annal_error *err);

#endif
