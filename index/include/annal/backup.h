/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backups: a directory that contains everything in a store that cannot be rebuilt, and from which a
 * store can be restored.
 *
 * It has the layout of a store, events/, artifacts/ and packs/, so that jq, zstdcat and a text
 * editor can read it, and a file `manifest` with the length and the hash of each file. The manifest
 * is written last: a directory without a manifest is not a backup.
 */
#ifndef ANNAL_BACKUP_H
#define ANNAL_BACKUP_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function that is called repeatedly during the work. If it returns a value other than 0, the
 * work stops, and the result is ANNAL_END. */
typedef int (*annal_backup_progress_fn)(void *arg, uint64_t bytes_done, uint64_t bytes_total);

typedef struct annal_backup_options {
    annal_backup_progress_fn progress;
    void *arg;
} annal_backup_options;

typedef struct annal_backup_result {
    uint64_t sessions;
    uint64_t artifacts;
    uint64_t files; /* number of files, with the settings of packs */
    uint64_t bytes; /* size of all files */
} annal_backup_result;

/*
 * Copy a store into directory, which must be missing or empty, while the store is in use.
 *
 * The copy of each session is a prefix of its journal that contains at least everything that was
 * acknowledged before this was called, and the rows that users had written into tables of packs by
 * then. Also copied are the artifacts that the copied events name, the settings of packs, and the
 * user's packs. Sessions are copied one after the other, so one may end a little later than
 * another. A damaged journal is copied byte for byte; rows that users wrote into the tables of a
 * pack whose session is damaged, or that cannot be run, are left out, and the store's log says so.
 * The copy is durable when this returns. After a failure the files written so far stay, without a
 * manifest. Any thread.
 *
 * ANNAL_ERR_CONFLICT  directory is not empty
 * ANNAL_ERR_BUSY      durable events could not be written into their journals yet, or the tables of
 *                     packs could not be caught up; or a session was deleted after its fork was
 *                     copied: begin again
 * ANNAL_ERR_FULL      the disk of the backup has no room
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_backup_create(annal_index *index,
                                                            const char *directory,
                                                            const annal_backup_options *options,
                                                            annal_backup_result *out_result,
                                                            annal_error *err);

/*
 * Read a whole backup and compare it with its manifest. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no manifest: not a backup, or an interrupted backup
 * ANNAL_ERR_CORRUPT   a file is missing or differs from the manifest; the message names the first
 *                     such file
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_backup_check(const char *directory,
                                                           const annal_backup_options *options,
                                                           annal_backup_result *out_result,
                                                           annal_error *err);

/*
 * Restore a store from the backup in directory to path, which must be missing or an empty
 * directory. The store is created beside path under another name and renamed to path when it is
 * complete and durable, so that path never contains an incomplete store. Its index and snapshots
 * are rebuilt when they are first needed. Any thread.
 *
 * ANNAL_ERR_CONFLICT  path exists
 * ANNAL_ERR_NOTFOUND, ANNAL_ERR_CORRUPT   as for annal_backup_check(); path does not exist then
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_backup_restore(const char *directory,
                                                             const char *path,
                                                             const annal_backup_options *options,
                                                             annal_backup_result *out_result,
                                                             annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
