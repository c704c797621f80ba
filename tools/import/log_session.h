/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the session of a log that has no id of its own, such as run1/katy/katy.traj: different logs
 * may have the same name, and one log may be copied, moved, or grow.
 *
 * (1) The session of such a log has the name of the log, or of the task in it. If the store has a
 *     session of that name with another log, the session's id also has a hash of the log's path.
 * (2) The event that begins such a session, and each event that adds a path to it, has two keys in
 *     source_keys, which the pack core keeps in record_origins: a hash of host and path, and a hash
 *     of the content of the log at that time. A log with one of these paths belongs to the session.
 * (3) A log elsewhere belongs to the session if it begins with that content, and the log of the
 *     session is gone; or if the log of the session exists, and one of both begins with the other.
 *     The value around the arrays of a document is not compared, because it changes with each step.
 * (4) A log that has many sessions, a line each, passes the hash of the line: instead of rule (3)
 *     the lines must be equal.
 * (5) A session without source_keys is of an older version: a log elsewhere belongs to it if the
 *     log of the session is gone.
 */
#pragma once

#include "journal/base/buf.h"
#include "tools/cli/places.h"

#include <annal/base.h>
#include <annal/store.h>

#include <stdint.h>

struct import_job;

struct log_session {
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t path, content; /* the keys; content 0: none */
};

struct log_sessions {
    struct log_session *all;
    size_t count;
    struct places by_id;
    /* hashes of the first line, the first two lines, ... of the log */
    uint64_t *heads;
    size_t head_count;
    bool has_heads;
};

/* Return the session with this name for the log of the job, for annal_import_source. */
annal_slice log_session_find(void *job, annal_slice name, annal_slice content);

/* Return the entry of a session that log_session_find() returned, or NULL. */
const struct log_session *log_session_of(const struct import_job *job, annal_slice session);

/* Record for this run that an event of the session has its keys, and append them to bytes, as a
 * member of a JSON object. */
annal_status log_session_say(struct import_job *job, const struct log_session *session,
                             struct buf *bytes);

void log_sessions_done(struct log_sessions *sessions);
