/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Artifacts: content too large for an event, stored beside the journals and named by events.
 *
 * An artifact is a file of its session, STORE/artifacts/<session>/<sha256>.zst: the content as one
 * zstd frame, so that zstdcat reads it, named by the SHA-256 of the content. The event that names
 * it contains a reference, {"sha256":"<64 hex>","bytes":N,"media_type":"…","path":"artifacts/…"}.
 * In a session the same content is stored once.
 *
 * An artifact is durable before the call that stores it returns. So an event that is appended after
 * that call names content that exists, even after a power cut. Content that no event names is
 * removed by annal_artifact_sweep().
 */
#ifndef ANNAL_ARTIFACT_H
#define ANNAL_ARTIFACT_H

#include <annal/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANNAL_SHA256_TEXT_BYTES 65 /* 64 hex digits and a NUL */

typedef struct annal_artifact_info {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char sha256[ANNAL_SHA256_TEXT_BYTES]; /* hash of the content, lower case */
    /* size of the content in bytes; 0 if only the file was examined */
    uint64_t bytes;
    uint64_t stored_bytes; /* size of the file in bytes */
    int64_t stored_us;     /* time in us when the artifact was last stored */
} annal_artifact_info;

/* ---- Storing ---- */

/*
 * Store content. Content that exists already is not written again, unless it is damaged, or old
 * enough that a sweep could delete it before an event names it. Any thread.
 *
 * ANNAL_ERR_INVALID  session is not a session id
 * ANNAL_ERR_BUSY     a sweep is removing artifacts, and did not finish in time
 * ANNAL_ERR_FULL     the disk has no room; nothing was stored
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_artifact_put(annal_store *store, annal_slice session,
                                                           annal_slice content,
                                                           annal_artifact_info *out_info,
                                                           annal_error *err);

/* Write at most room bytes of the content to bytes, and return their number; 0 means the end. A
 * value below 0 is an annal_status that ends storing; put the reason into err. */
typedef int64_t (*annal_artifact_source)(void *arg, char *bytes, size_t room, annal_error *err);

/* Store content from a stream of any size, as annal_artifact_put() does, in little memory. */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_artifact_put_stream(annal_store *store, annal_slice session, annal_artifact_source source,
                          void *arg, annal_artifact_info *out_info, annal_error *err);

/* ---- Reading ---- */

/* Receive a piece of the content of an artifact. Return 0 to continue; any other value stops, and
 * is returned. */
typedef int (*annal_artifact_sink)(void *arg, annal_slice piece);

/*
 * Pass the content of an artifact to fn (may be NULL) piece by piece, and check that its hash is
 * sha256 (64 hex digits). Memory is bounded whatever the size. Damage may be found only at the end,
 * so use the content that fn received only if this returns ANNAL_OK. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  the session has no such artifact
 * ANNAL_ERR_CORRUPT   its content is damaged
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_artifact_read(annal_store *store, annal_slice session,
                                                            annal_slice sha256,
                                                            annal_artifact_sink fn, void *arg,
                                                            annal_artifact_info *out_info,
                                                            annal_error *err);

/* Read the content of an artifact, as annal_artifact_read() does, into memory; free it with
 * annal_free(). ANNAL_ERR_LIMIT if it has more than bytes_max bytes. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_artifact_get(annal_store *store, annal_slice session,
                                                           annal_slice sha256, uint64_t bytes_max,
                                                           annal_slice *out_content,
                                                           annal_error *err);

/* Receive an artifact. Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_artifact_fn)(void *arg, const annal_artifact_info *info);

/*
 * Call fn for each artifact of a session, or of all sessions if session is empty, sorted by session
 * and hash. No artifact is opened. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_artifact_each(annal_store *store, annal_slice session,
                                                            annal_artifact_fn fn, void *arg,
                                                            annal_error *err);

/* ---- Removing and proving ---- */

typedef struct annal_artifact_sweep_options {
    /* Least age in microseconds of the artifacts to remove; default: a day; below 0: any age. After
     * storing an artifact, a caller has this long to append the event that names it. */
    int64_t older_than_us;
    bool dry_run; /* whether to remove nothing, and only count */
    /* called for each artifact that is removed; may be NULL; its result is ignored */
    annal_artifact_fn fn;
    void *arg;
} annal_artifact_sweep_options;

typedef struct annal_artifact_sweep_result {
    /* number of artifacts before the sweep, including those that were removed */
    uint64_t artifacts;
    uint64_t removed;
    uint64_t removed_bytes; /* size of the removed files, in bytes */
} annal_artifact_sweep_result;

/*
 * Remove the artifacts whose hash is in no event of the store, and what interrupted stores left.
 * Reads every journal. Any thread.
 *
 * ANNAL_ERR_CORRUPT  a journal is damaged, and its lost events may have named any artifact: nothing
 *                    was removed
 * ANNAL_ERR_BUSY     other processes kept storing artifacts; nothing was removed
 */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_artifact_sweep(annal_store *store, const annal_artifact_sweep_options *options,
                     annal_artifact_sweep_result *out_result, annal_error *err);

/* Called for each damaged artifact. what is one sentence, valid until the callback returns. */
typedef void (*annal_artifact_damage_fn)(void *arg, const annal_artifact_info *info,
                                         const char *what);

typedef struct annal_artifact_verify_result {
    uint64_t artifacts; /* number of artifacts that were read */
    uint64_t bytes;     /* size of the undamaged content, in bytes */
    uint64_t damaged;
} annal_artifact_verify_result;

/* Read every artifact and check its hash. fn (may be NULL) is called for each damaged artifact;
 * damage is not a failure of the function. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_artifact_verify(annal_store *store, annal_artifact_damage_fn fn, void *arg,
                      annal_artifact_verify_result *out_result, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
