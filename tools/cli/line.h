/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses one line of input as a draft: {"type":…,"data":…[,"id":…,"ts":…,"cause":…]}.
 *
 * The bytes of data are not changed: the line is checked as JSON, then its members are found in it;
 * no JSON is written again.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/event.h>

/*
 * Read a line without its line break. If type is not empty, the whole line is the data of an event
 * of that type. The slices of the draft point into line, type and scratch. ANNAL_ERR_INVALID with a
 * sentence if the line is refused; the writer checks the bytes of type, id and cause.
 */
annal_status line_to_draft(annal_slice line, annal_slice type, struct buf *scratch,
                           annal_draft *out_draft, annal_error *err);
