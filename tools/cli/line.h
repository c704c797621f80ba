/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parse one line of input as a draft: {"type":…,"data":…[,"id":…,"ts":…,"cause":…]}.
 *
 * data keeps its bytes: the line is checked as JSON, then its members are found by walking over it;
 * it is never built again.
 */
#ifndef TOOLS_CLI_LINE_H
#define TOOLS_CLI_LINE_H

#include "journal/base/buf.h"

#include <annal/event.h>

/*
 * Read a line without its line break. With a type, the line is the data itself. The draft's slices
 * point into line, type and scratch. ANNAL_ERR_INVALID with a sentence if it is refused; the writer
 * checks the rest (the alphabet of type, id and cause).
 */
annal_status line_to_draft(annal_slice line, annal_slice type, struct buf *scratch,
                           annal_draft *out_draft, annal_error *err);

#endif
