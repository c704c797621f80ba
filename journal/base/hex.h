/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as lower-case hex digits, two digits for each byte. */
#pragma once

#include "journal/base/buf.h"

static inline bool annal__is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Return whether the text consists of exactly len hex digits. */
bool annal__hex_fits(const char *text, size_t len);

/* Write len bytes as 2 * len digits and a NUL to out. */
void annal__hex_text(const uint8_t *bytes, size_t len, char *out);

/* Read len bytes from 2 * len digits; false if another character is among them. */
bool annal__hex_read(const char *digits, size_t len, uint8_t *out);

annal_status annal__hex_append(struct buf *buf, annal_slice bytes);
annal_status annal__hex_quote(struct buf *buf, annal_slice bytes); /* between quotation marks */
