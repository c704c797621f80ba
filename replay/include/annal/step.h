/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: work under a key that a session records, so that a program that is started again after a
 * crash does only what is missing. docs/steps.md has the rules, which Python and Node share.
 *
 *     status = annal_step_begin(steps, ANNAL_SLICE("pay-7"), &answer, &err);
 *     if (status == ANNAL_OK) {
 *         … pay …
 *         status = annal_step_complete(steps, ANNAL_SLICE("pay-7"), result, &answer, &err);
 *     }
 *     if (status >= 0 && !answer.is_failed)
 *         … use answer.result …
 */
#ifndef ANNAL_STEP_H
#define ANNAL_STEP_H

#include <annal/recovery.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The steps of a session under one owner. One thread at a time; the work of a step may run while
 * other threads use the object.
 */
typedef struct annal_steps annal_steps;

/* The recorded end of a step. Its slices are valid until the next call with the same annal_steps.
 */
typedef struct annal_step_answer {
    bool is_failed;
    annal_slice result;        /* JSON; of a failed step empty */
    annal_slice error_type;    /* of a failed step: name of the kind of error; may be empty */
    annal_slice error_message; /* of a failed step */
    uint64_t seq;              /* seq of the tool.returned or tool.failed */
} annal_step_answer;

/* Why an attempt failed. */
typedef struct annal_step_error {
    annal_slice type; /* name of the kind of error; default: "Error" */
    annal_slice message;
    /* 0: the step has failed. Otherwise, the number of the failed attempt, from 1 on: the caller
     * will try again, and then completes the step or fails it */
    uint32_t attempt;
} annal_step_error;

/*
 * Claim a session: append session.created if it has no events, with name (may be empty) as agent_id
 * and title, or else session.resumed. Both name this object as the owner of the session. From then
 * on, steps of earlier owners cannot end any more, in any process. Call
 * annal_recovery_get() before, to learn what an earlier owner left open.
 *
 * Reads the session from its first event. Close the object with annal_steps_close() before the
 * index. This does not end the session: append session.ended at the end of the work.
 *
 * ANNAL_ERR_INVALID  session is not a session id
 * ANNAL_ERR_CORRUPT  the journal is damaged, so that it is not known which steps ended
 * and the statuses of annal_pack_append().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_steps_open(annal_index *index, annal_slice session,
                                                         annal_slice name, annal_steps **out_steps,
                                                         annal_error *err);

/* Free the object. Steps that were begun stay begun. NULL is accepted. */
ANNAL_API void annal_steps_close(annal_steps *steps);

/*
 * Begin a step, whose key is any text of UTF-8.
 *
 * ANNAL_OK   do the work now, then call annal_step_complete() or annal_step_fail(). That the step
 *            began is durable. If an earlier process ended during the step, its work may have had
 *            its effect.
 * ANNAL_END  the step has ended, and *out_answer is its recorded end: do nothing
 *
 * ANNAL_ERR_CONFLICT  another owner has claimed the session; or this object has begun the step
 *                     already
 * ANNAL_ERR_INVALID   the key is empty or not UTF-8
 * and the statuses of annal_pack_append().
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_step_begin(annal_steps *steps, annal_slice key,
                                                         annal_step_answer *out_answer,
                                                         annal_error *err);

/*
 * Record the result of a step that was begun: one JSON value on one line. It is durable when this
 * returns. A result of more than 48 MiB becomes an artifact. *out_answer (out_answer may be NULL)
 * is what is recorded.
 *
 * ANNAL_ERR_CONFLICT  another owner has claimed the session: nothing was recorded
 * ANNAL_ERR_INVALID   the result is not JSON, or the step was not begun
 * and the statuses of annal_pack_append(). After any failure except ANNAL_ERR_CONFLICT the step is
 * still begun, and this may be called again.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_step_complete(annal_steps *steps, annal_slice key,
                                                            annal_slice result,
                                                            annal_step_answer *out_answer,
                                                            annal_error *err);

/*
 * Record that a step that was begun has failed, or only an attempt of it (error->attempt). A failed
 * step does not run again: use another key. Fails as annal_step_complete() does.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_step_fail(annal_steps *steps, annal_slice key,
                                                        const annal_step_error *error,
                                                        annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
