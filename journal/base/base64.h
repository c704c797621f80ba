/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as in RFC 4648, with padding. Only the canonical form is accepted. */
#pragma once

#include "journal/base/buf.h"

/* Append bytes as base64 to out. Fails as annal__buf_append() does. */
annal_status annal__base64_put(struct buf *out, annal_slice bytes);

/* Return whether annal__base64_put() could have written the text. */
bool annal__base64_check(annal_slice text);

/* Append the bytes that the text encodes to out. The caller has checked the text. */
annal_status annal__base64_take(struct buf *out, annal_slice text);
