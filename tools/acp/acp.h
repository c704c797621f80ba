/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the messages of the Agent Client Protocol between an editor and an agent.
 *
 * (1) A line is passed on only after it is durable as an event. Lines that were read together
 *     become durable with a single sync.
 * (2) Lines are passed on byte for byte, unless acp.sql returns another message (acp.pass) or says
 *     that answer.sql answers it (acp.answer). A blank line is passed on, and is no event.
 * (3) Of a line of more than ACP_LINE_BYTES, the first ACP_HEAD_BYTES become an event; the rest is
 *     passed on as it arrives.
 * (4) If a line cannot be recorded, nothing more is passed on, and the agent is ended.
 *
 * Each direction has a thread. Both use one importer, under a lock.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/annal.h>
#include <annal/import.h>

#include <pthread.h>
#include <sys/types.h>

#define ACP_LINE_BYTES ((size_t)8 << 20)
#define ACP_HEAD_BYTES ((size_t)64 << 10)

/* What records: acp_record.c. */
struct acp_record {
    annal_store *store;
    annal_index *index; /* opened by the first answer */
    const char *agent;  /* name of the program, until the agent says its name */
    char file[48];      /* name of the connection */

    pthread_mutex_t lock; /* guards what follows */
    annal_import *import;
    uint64_t lines;
    struct buf line;                              /* the line for the importer */
    annal_writer *writer;                         /* of the last event */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* session of writer */
    char owner[ANNAL_SESSION_ID_BYTES_MAX + 1];   /* for the importer's record_owner() */
    bool ended;                                   /* set by the caller: recording failed */
};

/* Where lines go that were recorded. */
struct acp_out {
    struct buf *onward; /* to the receiver of the line */
    struct buf *back;   /* answers to its sender */
    bool instead;       /* whether acp.sql replaced the line */
};

/* Record a line with its line break, and append it, or what replaces it, to out. from is client or
 * agent. The line is durable after annal_store_sync(). */
annal_status acp_record_line(struct acp_record *record, const char *from, annal_slice line,
                             struct acp_out *out, annal_error *err);

/* Record the head of a line that is too long. */
annal_status acp_record_head(struct acp_record *record, const char *from, annal_slice head,
                             annal_error *err);

/* Record that the agent ended, with its exit status. */
annal_status acp_record_end(struct acp_record *record, int exit_status, annal_error *err);

void acp_record_done(struct acp_record *record);
