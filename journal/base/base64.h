/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as in RFC 4648, with padding, and only in its canonical form. */
#ifndef JOURNAL_BASE_BASE64_H
#define JOURNAL_BASE_BASE64_H

#include "journal/base/buf.h"

/* Append bytes as base64. Fails as annal__buf_append() does. */
annal_status annal__base64_put(struct buf *out, annal_slice bytes);

/* Whether text is what annal__base64_put() writes for some bytes. */
bool annal__base64_check(annal_slice text);

/* Append the bytes that text encodes; text was checked. */
annal_status annal__base64_take(struct buf *out, annal_slice text);

#endif
