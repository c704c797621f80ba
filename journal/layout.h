/* SPDX-License-Identifier: Apache-2.0 */
/* The store's directory: what is in it, and whether it may be used. */
#ifndef JOURNAL_LAYOUT_H
#define JOURNAL_LAYOUT_H

#include "journal/store.h"

/* Whether there is a store at the path. */
annal_status annal__layout_find(const annal_store *store, annal_error *err);

/* Create the directories that are missing, including those above the store. */
annal_status annal__layout_make(const annal_store *store, annal_error *err);

/* Open events/, to sync it and to ask about the filesystem. */
annal_status annal__layout_open_events(annal_store *store, annal_error *err);

/* Refuse network filesystems; warn of copy-on-write filesystems. */
annal_status annal__layout_check_filesystem(annal_store *store, annal_error *err);

/* Refuse to write a store of a newer version, warn when reading one; write the version into a new
 * store. */
annal_status annal__layout_check_version(annal_store *store, annal_error *err);

#endif
