/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that we own and that grow, up to a limit. The only such type of the library.
 *
 * struct buf b = {.limit = N}; … annal__buf_done(&b);   A limit of 0 means BUF_LIMIT_DEFAULT.
 */
#ifndef JOURNAL_BASE_BUF_H
#define JOURNAL_BASE_BUF_H

#include <annal/base.h>

#define BUF_LIMIT_DEFAULT ((size_t)1 << 30)

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t limit;
};

/* ANNAL_ERR_NOMEM, or ANNAL_ERR_LIMIT beyond the limit; the contents are unchanged then. */
annal_status annal__buf_reserve(struct buf *buf, size_t more);
annal_status annal__buf_append(struct buf *buf, const void *bytes, size_t len);
annal_status annal__buf_append_slice(struct buf *buf, annal_slice slice);
annal_status annal__buf_append_zeros(struct buf *buf, size_t len);
annal_status annal__buf_printf(struct buf *buf, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Drop the first len bytes. */
void annal__buf_consume(struct buf *buf, size_t len);
void annal__buf_clear(struct buf *buf); /* keeps the memory */
void annal__buf_done(struct buf *buf);  /* frees it; the buf is empty and usable again */

annal_slice annal__buf_slice(const struct buf *buf); /* valid until the buf changes */

/* Add a NUL after the contents, not counted in len; NULL if memory is exhausted. */
const char *annal__buf_cstr(struct buf *buf);

#endif
