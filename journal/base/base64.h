/* Base64 as RFC 4648 has it, with padding, and only in the one way in which it is written. */
#ifndef JOURNAL_BASE_BASE64_H
#define JOURNAL_BASE_BASE64_H

#include "journal/base/buf.h"

/* Append bytes as base64. As annal__buf_append(). */
annal_status annal__base64_put(struct buf *out, annal_slice bytes);

/* Whether text is what annal__base64_put() writes for some bytes. */
bool annal__base64_check(annal_slice text);

/* Append the bytes that text, which was checked, stands for. */
annal_status annal__base64_take(struct buf *out, annal_slice text);

#endif
