/* The store's directory: what is in it, whether it may be used. */
#ifndef JOURNAL_LAYOUT_H
#define JOURNAL_LAYOUT_H

#include "journal/store.h"

/* Whether there is a store at the path. */
annal_status annal__layout_find(const annal_store *store, annal_error *err);

/* Make the directories that are missing, also those above the store. */
annal_status annal__layout_make(const annal_store *store, annal_error *err);

/* Open events/, for syncing it and for asking about the filesystem. */
annal_status annal__layout_open_events(annal_store *store, annal_error *err);

/* Refuse network filesystems, warn of those that copy on write. */
annal_status annal__layout_check_filesystem(const annal_store *store, annal_error *err);

/* Refuse to write a store of a newer version, warn of reading one; write the version into a new
 * one. */
annal_status annal__layout_check_version(annal_store *store, annal_error *err);

#endif
