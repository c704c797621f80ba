/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: what was in progress when the process of a session ended.
 *
 *     annal_recovery *recovery = NULL;
 *     status = annal_recovery_get(index, session, &recovery, &err);
 *     for (size_t i = 0; status >= 0 && i < recovery->call_count; i++)
 *         … find out what became of recovery->calls[i], and append its result …
 *     annal_recovery_free(recovery);
 *
 * In Python and Node this is session.recovery(), and `annal show --recovery` prints it.
 */
#ifndef ANNAL_RECOVERY_H
#define ANNAL_RECOVERY_H

#include <annal/replay.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Slices of this header belong to the annal_recovery. After a text stands a NUL, which is not
 * counted. The ptr of a text that the events do not state is NULL. */

/* A call of a tool without a result: it may have had its effect. */
typedef struct annal_open_call {
    annal_slice call_id;
    annal_slice tool;
    annal_slice input;     /* input or arguments of its tool.called, as JSON; see call_count */
    annal_slice called_at; /* ISO 8601 */
    annal_slice turn_id;
    uint64_t seq; /* seq of its tool.called */
} annal_open_call;

/* A turn that has not ended. */
typedef struct annal_open_turn {
    annal_slice turn_id;
    annal_slice status;
    annal_slice created_at; /* ISO 8601 */
    uint64_t seq;           /* seq of its turn.started */
    int64_t sequence;       /* number of the turn in the session */
} annal_open_turn;

/* The last message of a role. */
typedef struct annal_last_message {
    uint64_t seq; /* seq of its message.added; 0: none in the newest ANNAL_RECOVERY_EVENTS events */
    int64_t ts_us;
    annal_slice data; /* data of the event, as JSON */
} annal_last_message;

#define ANNAL_RECOVERY_EVENTS 20480 /* number of events in which the last messages are looked for */
#define ANNAL_RECOVERY_INPUTS 1000  /* number of calls whose input is read */
#define ANNAL_RECOVERY_BYTES  (64 << 20) /* size of all inputs */

typedef struct annal_recovery {
    uint64_t seq;       /* the last event: the expected_seq of the next append; 0: no event */
    annal_slice status; /* of the session, such as "running"; "" before its first event */
    /* Calls, oldest first. The input is read of the newest ANNAL_RECOVERY_INPUTS calls, and of as
     * many as fit into ANNAL_RECOVERY_BYTES; of the others it is empty: read event seq. */
    const annal_open_call *calls;
    size_t call_count;
    const annal_open_turn *turns; /* oldest first */
    size_t turn_count;
    annal_last_message user;
    annal_last_message assistant;
    annal_replay_info replay; /* how the state at the end was computed */
} annal_recovery;

/*
 * Return what a new process needs to continue a session: its last event, its status, and what was
 * in progress. It is computed from the journal, also for a fork and in a store that is open for
 * reading only. Free *out_recovery with annal_recovery_free(), before or after the index is closed.
 * Any thread.
 *
 * To let no other process append in the meantime unseen, append the next event with
 * ANNAL_EXPECT_SEQ and recovery->seq.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_recovery_get(annal_index *index, annal_slice session,
                                                           annal_recovery **out_recovery,
                                                           annal_error *err);

/* Free a recovery with everything in it. NULL is accepted. Any thread. */
ANNAL_API void annal_recovery_free(annal_recovery *recovery);

#ifdef __cplusplus
}
#endif

#endif
