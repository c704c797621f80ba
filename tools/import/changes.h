/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to the logs from which sessions were imported, as events in their journals.
 *
 * (1) A source is a log that this host imported, by its path: session_sources of the pack core.
 *     Sessions of other hosts are left alone.
 * (2) source.deleted: the path does not exist, and the nearest existing directory above it was
 *     written since the log was last seen, so something was removed from it. If that directory was
 *     not written, a file system is not mounted, and the source is unreachable. A source is also
 *     unreachable if stat() fails in another way. Nothing is noted about an unreachable source.
 *     source.returned: a deleted source exists again.
 * (3) The end of a generation of copies shows the other changes. source.shrank: the log has only
 *     the beginning of its former bytes. source.replaced: it has other bytes. An agent rewrites a
 *     document with each message: a document shrank if it lost more than a tenth of its bytes, and
 *     other changes of it are not noted.
 * (4) Each event has an id, from the path and from the number of the generation or of the deletion,
 *     so processes that notice the same change write it once.
 * (5) An event has the time of the event before it, so it changes no time of its session;
 *     noticed_at is the time of the notice.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/query.h>

/* Write the events that are missing. */
annal_status changes_note(annal_store *store, annal_index *index, annal_error *err);

/*
 * Append JSON about sources that are gone, unreachable, or have bytes that are not imported yet:
 * [{"session","path","is","bytes","copy","unread","since","lost"},…], an object for each session.
 * is: there, gone or unreachable. copy: whether the store has a copy. unread: number of bytes that
 * are not imported. since: mtime of the log. lost: whether no source of the session exists. A
 * source of another host is gone if its journal says so.
 */
annal_status changes_look(annal_store *store, annal_index *index, struct buf *out,
                          annal_error *err);

/* Call fn for each source with bytes that are not imported yet, the oldest first. A row has the
 * path, the number of these bytes, and the mtime of the log. */
annal_status changes_unread(annal_store *store, annal_index *index, annal_row_fn fn, void *arg,
                            annal_error *err);
