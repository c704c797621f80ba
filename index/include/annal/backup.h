/*
 * Backups: a directory that holds all of a store that cannot be made again, and from which a store
 * can be made.
 *
 * It has the layout of a store, events/, artifacts/ and packs/, so that jq, zstdcat and a text
 * editor read it, and a file `manifest` that says of each file how long it is and what it hashes
 * to. The manifest is written last: a directory without one is no backup.
 */
#ifndef ANNAL_BACKUP_H
#define ANNAL_BACKUP_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called now and then. Anything but 0 stops it, and ANNAL_END is the answer. */
typedef int (*annal_backup_progress_fn)(void *arg, uint64_t bytes_done, uint64_t bytes_total);

typedef struct annal_backup_options {
    annal_backup_progress_fn progress;
    void *arg;
} annal_backup_options;

typedef struct annal_backup_result {
    uint64_t sessions;
    uint64_t artifacts;
    uint64_t files; /* in all, with the settings of packs */
    uint64_t bytes; /* of all files */
} annal_backup_result;

/*
 * Copy a store into directory, which must be missing or empty, while it is in use.
 *
 * Each session is a prefix of its journal that holds at least everything that was acknowledged
 * before this was called, and what the sqlite3 shell had written into tables of packs by then; the
 * artifacts that the events name; the settings of packs, and packs of the user's. Sessions are
 * copied one after the other, so that one may end a little later than another. A damaged journal is
 * copied as it is; so what was written into the tables of a pack whose session is damaged, or that
 * cannot be run, is left out, and the store's log is told. The copy is durable when this returns.
 * On failure what was written stays, without a manifest. Any thread.
 *
 * ANNAL_ERR_CONFLICT  there is something in directory
 * ANNAL_ERR_BUSY      events that are durable could not be brought into their journals yet, or the
 *                     tables of packs could not be caught up; or a session went after its fork was
 *                     copied: begin again
 * ANNAL_ERR_IO        for instance no space left on the device
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_backup(annal_index *index, const char *directory,
                                                     const annal_backup_options *options,
                                                     annal_backup_result *out_result,
                                                     annal_error *err);

/*
 * Read a backup whole and compare it with its manifest. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  there is no manifest: no backup, or one that broke off
 * ANNAL_ERR_CORRUPT   a file is missing or is not what was written; the message names the first
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_backup_check(const char *directory,
                                                           const annal_backup_options *options,
                                                           annal_backup_result *out_result,
                                                           annal_error *err);

/*
 * Make a store at path, which must be missing or an empty directory, from a backup. It is made
 * beside it under another name and takes its name when it is whole and durable, so that a store
 * that is there is never a half one. Index and snapshots come back when they are asked for. Any
 * thread.
 *
 * ANNAL_ERR_CONFLICT  there is something at path
 * ANNAL_ERR_NOTFOUND, ANNAL_ERR_CORRUPT   as for annal_backup_check(); then there is no store
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_restore(const char *directory, const char *path,
                                                      const annal_backup_options *options,
                                                      annal_backup_result *out_result,
                                                      annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
