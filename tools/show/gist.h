/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event says, on one line: "user", "Why is high water printed an hour late?"; "Grep",
 * "localtime src"; "Grep", "Found 2 files".
 *
 * The texts are for a line that is cut to its width: they end after GIST_CHARS characters. Without
 * memory they are shorter.
 */
#ifndef TOOLS_SHOW_GIST_H
#define TOOLS_SHOW_GIST_H

#include "tools/show/event_facts.h"

enum { GIST_CHARS = 400 };

/* Append the arguments of a call, raw: those that matter, of the tools that are known. */
void gist_input(struct buf *out, annal_slice input);

/* Append what a tool returned, raw, without the lines that some programs put before it. */
void gist_output(struct buf *out, annal_slice output);

/* Append what any event says. */
void gist(struct buf *out, const annal_event *event);

#endif
