/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a store: its subdirectories, its version and its filesystem. */
#pragma once

#include <annal/store.h>

/* Return ANNAL_ERR_NOTFOUND unless the path has a directory events/. */
annal_status annal__layout_find(const annal_store *store, annal_error *err);

/* Create the directories of the store that are missing. The parent of the store's directory must
 * exist. */
annal_status annal__layout_make(const annal_store *store, annal_error *err);

/* Open the directory events/, to sync it and to examine its filesystem. */
annal_status annal__layout_open_events(annal_store *store, annal_error *err);

/* Refuse to write on a network filesystem, unless the store was opened with unsafe_filesystem. Set
 * keep_free_bytes, unless the caller chose it. */
annal_status annal__layout_check_filesystem(annal_store *store, annal_error *err);

/* Refuse to write a store of a newer version, warn when reading such a store; write the version
 * into a new store. */
annal_status annal__layout_check_version(annal_store *store, annal_error *err);
