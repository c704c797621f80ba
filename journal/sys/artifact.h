/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts, for callers that store one and then append the event that names it. */
#pragma once

#include <annal/artifact.h>

/* Prevent sweeps: while a process has such a hold, no artifact is removed. For callers that store
 * an artifact and then append the event that names it. Release it soon, from any thread. */
typedef struct annal__artifact_hold annal__artifact_hold;

ANNAL_MUST_CHECK annal_status annal__artifact_hold_new(annal_store *store,
                                                       annal__artifact_hold **out_hold,
                                                       annal_error *err);

void annal__artifact_hold_free(annal__artifact_hold *hold); /* NULL is accepted */

/*
 * Store a large member of an event's data as an artifact. data is a JSON object. If its member
 * `field` is larger than over_bytes, its value is stored (a string as its text, anything else as
 * JSON), and
 * *out_data is data with the member "<field>_ref", the reference, in its place; free it with
 * annal_free(). Otherwise, and if data already has a member "<field>_ref", nothing is stored and
 * *out_data is empty. The same data always yields the same *out_data. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__artifact_externalize(annal_store *store, annal_slice session,
                                                          const char *field, uint64_t over_bytes,
                                                          annal_slice data, annal_slice *out_data,
                                                          annal_error *err);

/* Call fn for each reference to an artifact in an event's data (JSON): with the session whose
 * directory contains the artifact, and the artifact's hash, 64 hex digits without a NUL. */
typedef annal_status (*annal__artifact_reference_fn)(void *arg, annal_slice session,
                                                     annal_slice sha256, annal_error *err);
ANNAL_MUST_CHECK annal_status annal__artifact_references(annal_slice data,
                                                         annal__artifact_reference_fn fn, void *arg,
                                                         annal_error *err);

/* Called with the path in a reference, "artifacts/…", if that artifact does not exist. Return 0 to
 * continue; any other value stops, and is returned. */
typedef int (*annal__artifact_missing_fn)(void *arg, annal_slice path);

/* Check whether the artifacts exist to which an event's data refers (JSON, as cursors return it);
 * their content is not read. Any thread. */
ANNAL_MUST_CHECK annal_status annal__artifact_check_data(annal_store *store, annal_slice data,
                                                         annal__artifact_missing_fn fn, void *arg,
                                                         annal_error *err);

/* Remove the artifacts of a session that was deleted; a session that has a journal keeps them. */
ANNAL_MUST_CHECK annal_status annal__artifact_drop(annal_store *store, annal_slice session,
                                                   annal_error *err);
