/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths of artifacts: STORE/artifacts/<session>/<64 hex>.zst; unfinished ones: .new-<random>.
 */
#ifndef JOURNAL_ARTIFACT_ARTIFACT_NAMES_H
#define JOURNAL_ARTIFACT_ARTIFACT_NAMES_H

#include "journal/base/buf.h"
#include "journal/base/sha256.h"

#include <annal/artifact.h>

#define ARTIFACT_SUFFIX ".zst"
#define UNFINISHED      ".new-"

/*
 * STORE/artifacts, and after it /<session> and /<name> if they are not empty. out is cleared first.
 */
annal_status annal__artifact_path(const annal_store *store, annal_slice session, const char *name,
                                  struct buf *out, annal_error *err);

/* Read 64 lower-case hex digits. */
bool annal__artifact_read_sha256(const char *text, size_t len, uint8_t out[SHA256_BYTES]);

/*
 * Names in order. Names that begin with a dot are included only if they are unfinished artifacts.
 */
struct artifact_names {
    char **list;
    size_t count;
    bool no_memory;
};

/* The names in a directory; none if it does not exist. */
annal_status annal__artifact_names(const annal_store *store, const char *path,
                                   struct artifact_names *out_names, annal_error *err);
void annal__artifact_names_done(struct artifact_names *names);

/* One artifact of a session: hex is 64 digits. ANNAL_ERR_NOTFOUND; out_info->bytes stays 0. */
annal_status annal__artifact_look(const annal_store *store, annal_slice session, const char *hex,
                                  annal_artifact_info *out_info, annal_error *err);

/*
 * The lock that separates sweeps from stores: STORE/locks/artifacts. operation: LOCK_SH to store,
 * LOCK_EX to remove. Close *out_fd to release it.
 */
annal_status annal__artifact_lock(annal_store *store, int operation, int *out_fd, annal_error *err);

#endif
