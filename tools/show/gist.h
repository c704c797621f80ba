/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summarize an event on one line: "user", "Why is high water printed an hour late?"; "Grep",
 * "localtime src"; "Grep", "Found 2 files".
 *
 * The texts are for a line that is cut to its width: they end after GIST_CHARS characters. Without
 * memory they are shorter.
 */
#ifndef TOOLS_SHOW_GIST_H
#define TOOLS_SHOW_GIST_H

#include "tools/show/event_facts.h"

enum { GIST_CHARS = 400 };

/* Append the arguments of a call, raw: only the important ones, if the tool is known. */
void gist_input(struct buf *out, annal_slice input);

/* Append the result of a tool, raw, without the lines that some programs add before it. */
void gist_output(struct buf *out, annal_slice output);

/* Append the text of any event. */
void gist(struct buf *out, const annal_event *event);

#endif
