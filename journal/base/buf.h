/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array of bytes, up to a limit. The library has no other such type.
 *
 *     struct buf b = {.limit = N}; … annal__buf_done(&b); A limit of 0 means BUF_LIMIT_DEFAULT.
 *     SCOPED_BUF b = {.limit = N}; in a function: freed where its scope ends, on every path.
 *
 * (1) A buffer remembers the first append that failed: every later append changes nothing and
 *     returns the same status, and annal__buf_cstr() returns NULL, until it is
 *     cut, emptied or freed. So of several appends in a row only the last result is checked.
 */
#pragma once

#include <annal/base.h>

#include <stdarg.h>

#define BUF_LIMIT_DEFAULT ((size_t)1 << 30)

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t limit;
    annal_status status; /* of the first append that failed (1) */
};

#define SCOPED_BUF __attribute__((cleanup(annal__buf_done))) struct buf

/* Make room for more bytes. ANNAL_ERR_NOMEM, or ANNAL_ERR_LIMIT beyond the limit: such a failure is
 * returned, and not remembered (1). */
annal_status annal__buf_reserve(struct buf *buf, size_t more);

/* Append bytes. ANNAL_ERR_NOMEM, or ANNAL_ERR_LIMIT beyond the limit; the contents are unchanged
 * then. annal__buf_extend() appends bytes that the caller writes: *out is their place. */
annal_status annal__buf_extend(struct buf *buf, size_t len, char **out);
annal_status annal__buf_append(struct buf *buf, const void *bytes, size_t len);
annal_status annal__buf_append_slice(struct buf *buf, annal_slice slice);
annal_status annal__buf_append_zeros(struct buf *buf, size_t len);
annal_status annal__buf_printf(struct buf *buf, const char *format, ...) ANNAL_PRINTF(2, 3);
annal_status annal__buf_vprintf(struct buf *buf, const char *format, va_list list)
    ANNAL_PRINTF(2, 0);

/* Remove the first len bytes; if nothing is left, forget a failure (1). */
void annal__buf_consume(struct buf *buf, size_t len);
/* Remove what follows the first len bytes, or everything. Keep the memory, forget a failure (1). */
void annal__buf_cut(struct buf *buf, size_t len);
void annal__buf_clear(struct buf *buf);
/* Free the memory of buf, which is empty and usable afterwards. */
void annal__buf_done(struct buf *buf);

annal_slice annal__buf_slice(const struct buf *buf); /* the contents; valid until buf changes */

/* Return the contents as a string: writes a NUL after them, which is not counted in len. NULL: out
 * of memory, or beyond the limit, now or in an append before (1). */
const char *annal__buf_cstr(struct buf *buf);
