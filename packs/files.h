/* Files of the user's, outside the store. */
#ifndef PACKS_FILES_H
#define PACKS_FILES_H

#include "journal/base/buf.h"

/*
 * All of a file that the caller named, behind out; ANNAL_ERR_LIMIT when out's limit is too small.
 * That it cannot be read is ANNAL_ERR_INVALID: nothing is wrong with the store.
 */
annal_status annal__read_file(const char *path, struct buf *out, annal_error *err);

/* ANNAL_ERR_INVALID, with the text of errno: "read '/no/such': No such file or directory". */
annal_status annal__fail_read(annal_error *err, const char *path);

/* A file's new bytes, by rename: a reader finds the old ones or these. Not synced. */
annal_status annal__replace_file(const char *path, annal_slice content, annal_error *err);

#endif
