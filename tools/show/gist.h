/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summarizes an event on one line, such as "Why is high water printed an hour late?" for a message,
 * "localtime src" for a call of Grep, "Found 2 files" for its result.
 *
 * The texts are for a line that is cut to its width: they end after GIST_CHARS characters. If
 * memory runs out, they are shorter.
 */
#pragma once

#include "tools/show/event_facts.h"

enum { GIST_CHARS = 400 };

/* Append the arguments of a call, which are raw JSON; of known tools only the important
 * arguments. */
void gist_input(struct buf *out, annal_slice input);

/* Append the result of a tool, which is raw JSON, without the lines that some programs add before
 * it. */
void gist_output(struct buf *out, annal_slice output);

/* Append the summary of any event. */
void gist(struct buf *out, const annal_event *event);
