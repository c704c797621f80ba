/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/buf.h"

#include "journal/base/alloc.h"

#include <stdio.h>
#include <string.h>

#define PRINTF_BYTES 128

annal_status annal__buf_reserve(struct buf *buf, size_t more)
{
    size_t limit = buf->limit == 0 ? BUF_LIMIT_DEFAULT : buf->limit;
    if (more > limit || buf->len > limit - more)
        return ANNAL_ERR_LIMIT;
    size_t need = buf->len + more;
    if (need <= buf->cap)
        return ANNAL_OK;

    size_t cap = buf->cap == 0 ? 64 : buf->cap;
    while (cap < need)
        cap = cap > limit / 2 ? limit : cap * 2;
    char *ptr = annal__realloc_array(buf->ptr, cap, 1);
    if (ptr == NULL)
        return ANNAL_ERR_NOMEM;
    buf->ptr = ptr;
    buf->cap = cap;
    return ANNAL_OK;
}

annal_status annal__buf_extend(struct buf *buf, size_t len, char **out)
{
    if (buf->status >= 0)
        buf->status = annal__buf_reserve(buf, len);
    if (buf->status < 0)
        return buf->status;
    *out = buf->ptr == NULL ? NULL : buf->ptr + buf->len;
    buf->len += len;
    return ANNAL_OK;
}

annal_status annal__buf_append(struct buf *buf, const void *bytes, size_t len)
{
    char *to;
    annal_status status = annal__buf_extend(buf, len, &to);
    if (status >= 0 && len > 0)
        memcpy(to, bytes, len);
    return status;
}

annal_status annal__buf_append_slice(struct buf *buf, annal_slice slice)
{
    return annal__buf_append(buf, slice.ptr, slice.len);
}

annal_status annal__buf_append_zeros(struct buf *buf, size_t len)
{
    char *to;
    annal_status status = annal__buf_extend(buf, len, &to);
    if (status >= 0 && len > 0)
        memset(to, 0, len);
    return status;
}

annal_status annal__buf_printf(struct buf *buf, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    annal_status status = annal__buf_vprintf(buf, format, list);
    va_end(list);
    return status;
}

annal_status annal__buf_vprintf(struct buf *buf, const char *format, va_list list)
{
    bool was_empty = buf->cap == 0;
    if (buf->status < 0)
        return buf->status;
    /* Most texts fit into PRINTF_BYTES, and reserving them takes less time than first computing the
     * length. */
    annal_status status = annal__buf_reserve(buf, PRINTF_BYTES);
    if (status == ANNAL_ERR_NOMEM)
        return buf->status = status;
    for (;;) { /* at most twice: the first time computes the length, if it did not fit */
        size_t room = buf->cap - buf->len;
        va_list args;
        va_copy(args, list);
        int length = vsnprintf(room == 0 ? NULL : buf->ptr + buf->len, room, format, args);
        va_end(args);
        status = length < 0 ? ANNAL_ERR_INVALID : annal__buf_reserve(buf, (size_t)length + 1);
        if (status < 0)
            break;
        if ((size_t)length < room) {
            buf->len += (size_t)length;
            return ANNAL_OK;
        }
    }
    if (was_empty) /* after a failure, a buf that was empty needs no annal__buf_done() */
        annal__buf_done(buf);
    else if (buf->cap > buf->len)
        buf->ptr[buf->len] = '\0'; /* a string that annal__buf_cstr() has returned stays valid */
    return buf->status = status;
}

void annal__buf_consume(struct buf *buf, size_t len)
{
    if (len >= buf->len) {
        annal__buf_clear(buf);
        return;
    }
    memmove(buf->ptr, buf->ptr + len, buf->len - len);
    buf->len -= len;
}

void annal__buf_cut(struct buf *buf, size_t len)
{
    buf->len = len;
    buf->status = ANNAL_OK;
}

void annal__buf_clear(struct buf *buf)
{
    annal__buf_cut(buf, 0);
}

void annal__buf_done(struct buf *buf)
{
    annal__free(buf->ptr);
    buf->ptr = NULL;
    buf->len = buf->cap = 0;
    buf->status = ANNAL_OK;
}

annal_slice annal__buf_slice(const struct buf *buf)
{
    return (annal_slice){buf->ptr, buf->len};
}

const char *annal__buf_cstr(struct buf *buf)
{
    if (buf->status < 0 || annal__buf_reserve(buf, 1) < 0)
        return NULL;
    buf->ptr[buf->len] = '\0';
    return buf->ptr;
}
