/* SPDX-License-Identifier: Apache-2.0 */
/* Find the path of the store if the user gives none. */
#pragma once

#include "journal/base/buf.h"

/* Write the path of the default store to out_path, from the values of $ANNAL_STORE, $XDG_DATA_HOME
 * and $HOME, each of which may be NULL. ANNAL_ERR_NOTFOUND if none of them is usable. */
annal_status annal__default_store_place(const char *store, const char *data_home, const char *home,
                                        struct buf *out_path);
