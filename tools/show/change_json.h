/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a difference between two states as JSON: {"table","change","key","before","after"}. */
#pragma once

#include "journal/base/buf.h"

#include <annal/diff.h>

/* Append one change; values have the form of 'annal replay --json'. */
annal_status change_json(struct buf *out, const annal_change *change, annal_error *err);
