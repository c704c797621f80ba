/* SPDX-License-Identifier: Apache-2.0 */
/* The journals of a session: in which formats they exist, and which one is read (stray.h, rule
 * 5). */
#pragma once

#include "journal/context.h"

/*
 * Find the journal of a session: its path, and its format. If it has no journal, *out_codec is NULL
 * and the path is the one in the default format. An empty file counts only if no other journal
 * exists.
 */
annal_status annal__store_journal_find(const struct context *context, annal_slice session,
                                       struct buf *out_path, const struct codec **out_codec,
                                       annal_error *err);

/* Find the journal of a session and open it for reading. ANNAL_ERR_NOTFOUND if it does not
 * exist. */
annal_status annal__store_journal_open(const struct context *context, annal_slice session,
                                       int *out_fd, const struct codec **out_codec,
                                       annal_error *err);

/* Return whether the session also has a journal in another format than this. */
bool annal__store_journal_is_double(const struct context *context, annal_slice session,
                                    const struct codec *codec);
