/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session as a page in one file, which opens without a server: share.html of the page of annal
 * serve, and what that page would ask a server for. Nothing in it is parsed before somebody looks
 * at it, so a large file opens as fast as a small one.
 *
 * (1) #annal-head has for each session what the routes session, outline, tools, turns and usage
 *     answer.
 * (2) The events follow in order, in elements of about 1 MiB, a line of JSON each.
 * (3) Every < in JSON is written as \u003c: no text of an event can end the element that it is in.
 */
#ifndef TOOLS_EXPORT_HTML_H
#define TOOLS_EXPORT_HTML_H

#include "journal/base/buf.h"

#include <annal/query.h>

struct html;

/* tree: with the sub-agents and forks below it. Both must stay open. One thread at a time. */
annal_status html_open(annal_store *store, annal_index *index, annal_slice session, bool tree,
                       struct html **out, annal_error *err);
void html_close(struct html *html);

/* Append a piece of some MiB at most (an event is never cut). ANNAL_END: that was all. */
annal_status html_next(struct html *html, struct buf *out, annal_error *err);

/* `annal export --format html`: on stdout. 0 or an exit status. */
int export_html(annal_store *store, annal_slice session, bool tree);

#endif
