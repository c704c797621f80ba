/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles: sessions as one file that another store imports, with proof that they are the same.
 *
 * (1) A bundle is a sealed tar archive (tar.h). Its first file is manifest.json, the others are
 *     those that it lists, in its order: the journals, then the artifacts of their sessions, byte
 *     for byte as in a store.
 * (2) With a fork come those that it was forked from, each before its forks.
 * (3) The manifest has one spelling: what is read is written again, and must be the same bytes. It
 *     has the length of each file and its SHA-256; of each session its last event and that event's
 *     hash.
 * (4) Of a journal that is being written, everything that was durable when the export began is
 *     there, and whole events only. A damaged one is refused.
 * (5) What is read is checked in this order: the seal, the manifest, the names and sizes of files,
 *     their SHA-256, the chain of each journal, the content of each artifact, what the store has.
 *     Then it is moved in: artifacts first, each journal by one rename.
 */
#ifndef TOOLS_EXPORT_BUNDLE_H
#define TOOLS_EXPORT_BUNDLE_H

#include "journal/base/buf.h"
#include "journal/base/open_below.h"
#include "journal/base/sha256.h"
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
    char file[33];                             /* the id of the journal */
    char fork[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* "": it is not a fork */
    uint64_t fork_seq;
    uint64_t last_seq;
    uint64_t h;
    bool is_whole;    /* while it is imported: all its ancestors came, too, */
    size_t ancestors; /* which are so many, with those that are here */
};

struct bundle_artifact {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char name[SHA256_TEXT_BYTES]; /* the SHA-256 of its content */
    uint64_t bytes;               /* of its file, and their SHA-256 */
    char sha256[SHA256_TEXT_BYTES];
};

struct bundle {
    struct bundle_session *sessions; /* by fork_seq, then by id */
    size_t session_count;
    struct bundle_artifact *artifacts; /* by session, then by name */
    size_t artifact_count;
};

/* NULL: no memory. */
struct bundle_session *bundle_add_session(struct bundle *bundle);
struct bundle_artifact *bundle_add_artifact(struct bundle *bundle);
void bundle_sort(struct bundle *bundle);
void bundle_done(struct bundle *bundle);

/* Bytes of all files. */
uint64_t bundle_bytes(const struct bundle *bundle);

/* Their paths, in a bundle and in a store. */
void bundle_session_path(const struct bundle_session *session, char path[BUNDLE_PATH_BYTES]);
void bundle_artifact_path(const struct bundle_artifact *artifact, char path[BUNDLE_PATH_BYTES]);

annal_status bundle_manifest_write(const struct bundle *bundle, struct buf *out, annal_error *err);

/* Rule (3). ANNAL_ERR_CORRUPT, ANNAL_ERR_UNSUPPORTED. */
annal_status bundle_manifest_read(annal_slice text, struct bundle *out, annal_error *err);

/* Compute the SHA-256 of the first bytes of an open file; name is for messages. ANNAL_ERR_CORRUPT:
 * it has fewer. */
annal_status bundle_hash_file(int fd, const char *name, uint64_t bytes,
                              char text[SHA256_TEXT_BYTES], annal_error *err);

/* The same of a file below a directory; no link is followed. */
annal_status bundle_hash_below(const struct below *below, const char *path, uint64_t bytes,
                               char text[SHA256_TEXT_BYTES], annal_error *err);

/* ---- The verbs; 0 or an exit status, after one line on stderr ---- */

/* Of the sessions in the list, on stdout. */
int bundle_export(annal_store *store, const struct session_list *list);

/* Run annal import bundle FILE. name: of the bundle, for messages. only: the session that a server
 * was asked for; the bundle may contain no others than it and its ancestors. NULL: any. */
int bundle_import(const struct args *args, const char *file, const char *name, const char *only);

/* Remove what interrupted imports left. */
void bundle_remove_stale(const annal_store *store);

#endif
