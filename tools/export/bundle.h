/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle: sessions in one file that another store imports and proves to be the same.
 *
 * (1) A bundle is a sealed tar archive (tar.h). Its first file is manifest.json, which lists the
 *     other files in their order: the journals, then the artifacts of their sessions, then the
 *     copies of their logs (tools/source/copies.h), byte for byte as in a store. A bundle with
 *     copies of logs has version 2.
 * (2) A fork is preceded by its ancestors.
 * (3) There is one way to write a manifest: a reader writes it again, and must get the same bytes.
 *     It contains the length and SHA-256 of each file, and the last event of each session with its
 *     hash.
 * (4) For a journal that is being written, the bundle contains all events that were durable when
 *     the export began, and only complete events. A damaged journal is refused.
 * (5) An import checks in this order: the seal, the manifest, the names and sizes of files, their
 *     SHA-256, the chain of hashes of each journal, the content of each artifact, and the sessions
 *     of the store. Then it moves the files into the store: artifacts first, each journal by one
 *     rename.
 */
#pragma once

#include "journal/base/below.h"
#include "journal/base/buf.h"
#include "journal/base/sha256.h"
#include "journal/sys/sources.h"
#include "tools/cli/args.h"
#include "tools/cli/sessions.h"
#include "tools/export/tar.h"

#include <annal/artifact.h>

#define BUNDLE_PATH_BYTES     512
#define BUNDLE_MANIFEST       "manifest.json"
#define BUNDLE_MANIFEST_BYTES ((size_t)256 << 20)

struct bundle_session {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_format format;
    uint64_t bytes;
    char sha256[SHA256_TEXT_BYTES];
    char file[33]; /* id of the journal */
    /* id of the parent session; "" if it is not a fork */
    char fork[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t fork_seq;
    uint64_t last_seq;
    uint64_t h;
    /* during an import: whether the bundle contained all ancestors of the session */
    bool is_whole;
    /*
     * during an import: number of ancestors of the session, including those that only the store has
     */
    size_t ancestors;
};

struct bundle_artifact {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char name[SHA256_TEXT_BYTES]; /* SHA-256 of the content */
    /* length of the artifact's file in the bundle, and the SHA-256 of that file */
    uint64_t bytes;
    char sha256[SHA256_TEXT_BYTES];
};

/* A file of a copy of a log, all of whose sessions are in the bundle. */
struct bundle_source {
    char name[SOURCES_NAME_BYTES];
    uint64_t bytes;
    char sha256[SHA256_TEXT_BYTES];
};

struct bundle {
    struct bundle_session *sessions; /* sorted by fork_seq, then by id */
    size_t session_count;
    struct bundle_artifact *artifacts; /* sorted by session, then by name */
    size_t artifact_count;
    struct bundle_source *sources; /* sorted by name */
    size_t source_count;
    const struct bundle_session **by_id; /* the sessions, for bundle_find() */
};

/* Add an empty entry to a bundle, and return it: bundle_add_session() of a session,
 * bundle_add_artifact() of an artifact. Returns NULL if memory ran out. */
struct bundle_session *bundle_add_session(struct bundle *bundle);
struct bundle_artifact *bundle_add_artifact(struct bundle *bundle);
struct bundle_source *bundle_add_source(struct bundle *bundle);
void bundle_sort(struct bundle *bundle);

/* Sort the sessions of a complete bundle by id, unless they are sorted. Then bundle_find() returns
 * the session with an id, or NULL. */
annal_status bundle_sort_ids(struct bundle *bundle, annal_error *err);
const struct bundle_session *bundle_find(const struct bundle *bundle, const char *id);

void bundle_done(struct bundle *bundle);

/* Return the sum of the sizes of all files, in bytes. */
uint64_t bundle_bytes(const struct bundle *bundle);

/* Write the path of the session's journal, or of the artifact's file, to path; a file has the same
 * path in a bundle and in a store. */
void bundle_session_path(const struct bundle_session *session, char path[BUNDLE_PATH_BYTES]);
void bundle_artifact_path(const struct bundle_artifact *artifact, char path[BUNDLE_PATH_BYTES]);

void bundle_source_path(const struct bundle_source *source, char path[BUNDLE_PATH_BYTES]);

annal_status bundle_manifest_write(const struct bundle *bundle, struct buf *out, annal_error *err);

/* Read a manifest, and check that it is written in the only way (rule 3). ANNAL_ERR_CORRUPT: it is
 * invalid; ANNAL_ERR_UNSUPPORTED: a newer annal wrote it. */
annal_status bundle_manifest_read(annal_slice text, struct bundle *out, annal_error *err);

/* Compute the SHA-256 of the first `bytes` bytes of an open file, and write it to text; name is for
 * messages. ANNAL_ERR_CORRUPT: the file is shorter. */
annal_status bundle_hash_file(int fd, const char *name, uint64_t bytes,
                              char text[SHA256_TEXT_BYTES], annal_error *err);

/* As bundle_hash_file(), for a file below a directory; links are not followed. */
annal_status bundle_hash_below(const struct below *below, const char *path, uint64_t bytes,
                               char text[SHA256_TEXT_BYTES], annal_error *err);

/* ---- The verbs: each returns 0, or an exit status after one line on stderr ---- */

/* Write a bundle of the sessions in the list to stdout. */
int bundle_export(annal_store *store, const struct session_list *list);

/* Run annal import bundle FILE. name: name of the bundle in messages. only: id of the session that
 * was requested from a server; the bundle may contain only this session and its ancestors. NULL:
 * any sessions. */
int bundle_import(const struct args *args, const char *file, const char *name, const char *only);

/* Remove the files that interrupted imports have left in the store. */
void staging_remove_stale(const annal_store *store);
