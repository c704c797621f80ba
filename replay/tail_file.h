/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named cursors: files with the events up to which a consumer has read each session.
 *
 * (1) STORE/cursors/NAME.json is one JSON object: {"annal_cursor":1,"name":…,"committed":…,
 *     "sessions":{ID:{"seq":…,"h":…,"file":…},…},"h":…}, with one line for each session. The last h
 *     is the XXH3-64 of the bytes before its line. docs/format.md describes the file.
 * (2) The file is replaced durably: the new file is written under another name, synced and renamed,
 *     and the directory is synced. So the file is always complete, or does not exist.
 * (3) The file cannot be rebuilt from the journals, and belongs in a backup. If it is lost, no
 *     event is lost: its consumer receives the events again.
 * (4) A process that uses a cursor holds a lock (flock) on STORE/locks/cursor.NAME, which the
 *     kernel releases if the process dies. The lock file is not removed.
 */
#pragma once

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

/* Lock the named cursor, so that no other tail uses it, rule (4). Close *out_fd to unlock it;
 * *out_fd is -1 in a store that is open for reading only. ANNAL_ERR_BUSY: another tail has the
 * lock. */
annal_status annal__tail_file_lock(annal_store *store, annal_slice name, int *out_fd,
                                   annal_error *err);

/* Read a cursor, and call fn (may be NULL) for each session. ANNAL_ERR_NOTFOUND: no such cursor.
 * ANNAL_ERR_CORRUPT: its file is damaged. */
annal_status annal__tail_file_read(annal_store *store, annal_slice name, cursor_entry_fn fn,
                                   void *arg, int64_t *out_committed_us, annal_error *err);

/* Write a cursor: begin, add an entry for each session, and publish the text as the cursor's
 * file. */
annal_status annal__tail_file_begin(struct buf *out, annal_slice name, int64_t now_us);
annal_status annal__tail_file_add(struct buf *out, const struct cursor_entry *entry);
annal_status annal__tail_file_publish(annal_store *store, annal_slice name, struct buf *text,
                                      annal_error *err);
