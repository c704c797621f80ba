/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session as a web page in one file, which opens without a server: share.html of the page of
 * annal serve, and the data that the page would request from a server. The data is parsed only when
 * it is shown, so a large file opens as fast as a small one.
 *
 * (1) The element #annal-head contains for each session the answers of the routes session, outline,
 *     tools, turns and usage.
 * (2) The events follow in order, in elements of about 1 MiB, each event as a line of JSON. An
 *     element of more than 16 KiB is gzip in base64, if zlib is present.
 * (3) Every < in JSON is written as \u003c, so that no text of an event can end its element.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/query.h>

struct html;

/* Begin a page. tree: whether to include the sub-agents and forks of the session. store and index
 * must stay open until html_close(). One thread at a time. */
annal_status html_open(annal_store *store, annal_index *index, annal_slice session, bool tree,
                       struct html **out, annal_error *err);
void html_close(struct html *html);

/* Append the next piece of the page, of some MiB at most; an event is never cut. ANNAL_END: the
 * page is complete. */
annal_status html_next(struct html *html, struct buf *out, annal_error *err);

/* Run `annal export --format html`, on stdout. Returns 0 or an exit status. */
int html_export(annal_store *store, annal_slice session, bool tree);
