/* SPDX-License-Identifier: Apache-2.0 */
/* Compare slices, byte for byte. The ptr of an empty slice may be NULL, which memcmp() does not
 * accept. */
#pragma once

#include <annal/base.h>

#include <string.h>

static inline bool annal__slice_same(annal_slice a, annal_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool annal__slice_is(annal_slice slice, const char *text)
{
    return annal__slice_same(slice, (annal_slice){text, strlen(text)});
}

static inline bool annal__slice_begins(annal_slice slice, const char *text)
{
    size_t len = strlen(text);
    return slice.len >= len && annal__slice_is((annal_slice){slice.ptr, len}, text);
}
