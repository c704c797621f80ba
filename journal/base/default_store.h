/* SPDX-License-Identifier: Apache-2.0 */
/* The path of the store if the user names none. */
#ifndef JOURNAL_BASE_DEFAULT_STORE_H
#define JOURNAL_BASE_DEFAULT_STORE_H

#include "journal/base/buf.h"

/*
 * Takes the values of $ANNAL_STORE, $XDG_DATA_HOME and $HOME (each may be NULL).
 * ANNAL_ERR_NOTFOUND: none of them is set.
 */
annal_status annal__default_store_place(const char *store, const char *data_home, const char *home,
                                        struct buf *out_path);

#endif
