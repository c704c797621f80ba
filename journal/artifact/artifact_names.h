/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of artifacts: STORE/artifacts/<session>/<64 hex>.zst; an unfinished artifact has the
 * name .new-<random> there. */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/sha256.h"

#include <annal/artifact.h>

#define ARTIFACT_SUFFIX ".zst"
#define UNFINISHED      ".new-"

/* Compose the path STORE/artifacts, followed by /<session> and /<name> unless they are empty. out
 * is cleared first. */
annal_status annal__artifact_path(const annal_store *store, annal_slice session, const char *name,
                                  struct buf *out, annal_error *err);

/* Read 64 lower-case hex digits; false if the text is anything else. */
bool annal__artifact_read_sha256(const char *text, size_t len, uint8_t out[SHA256_BYTES]);

/* The names in a directory, sorted. Names that begin with a dot are included only if they are of
 * unfinished artifacts. */
struct artifact_names {
    char **list;
    size_t count;
    bool no_memory;
};

/* List the names in STORE/artifacts or in a directory below it; none if it does not exist. */
annal_status annal__artifact_names(const annal_store *store, const char *path,
                                   struct artifact_names *out_names, annal_error *err);
void annal__artifact_names_done(struct artifact_names *names);

/* Find one artifact of a session; hex is 64 digits. ANNAL_ERR_NOTFOUND if it does not exist.
 * out_info->bytes stays 0, because the file is not read. */
annal_status annal__artifact_look(const annal_store *store, annal_slice session, const char *hex,
                                  annal_artifact_info *out_info, annal_error *err);

/* Take the lock STORE/locks/artifacts, which keeps sweeps from removing what is being stored.
 * operation: LOCK_SH to store, LOCK_EX to remove. Close *out_fd to release it. */
annal_status annal__artifact_lock(annal_store *store, int operation, int *out_fd, annal_error *err);
