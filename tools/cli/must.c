/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/must.h"

#include "journal/base/alloc.h"
#include "journal/base/json.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/cli/target.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* End the command. Other threads may be running, so nothing is called at the exit. */
static _Noreturn void end(void)
{
    (void)fail_storage("out of memory");
    target_remove_unfinished();
    _exit(EXIT_STORAGE);
}

void must_status(annal_status status)
{
    if (status < 0)
        end();
}

void must_true(bool done)
{
    if (!done)
        end();
}

static void *checked(void *block)
{
    must_true(block != NULL);
    return block;
}

void *must_zalloc(size_t bytes)
{
    return checked(annal__zalloc(bytes));
}

void *must_realloc_array(void *block, size_t count, size_t size)
{
    return checked(annal__realloc_array(block, count, size));
}

void *must_array_add(void *array, size_t *count, size_t size)
{
    return checked(annal__array_add(array, count, size));
}

char *must_strndup(const char *string, size_t length)
{
    return checked(annal__strndup(string, length));
}

void must_reserve(struct buf *buf, size_t more)
{
    must_status(annal__buf_reserve(buf, more));
}

void must_append(struct buf *buf, const void *bytes, size_t len)
{
    must_status(annal__buf_append(buf, bytes, len));
}

void must_append_text(struct buf *buf, const char *text)
{
    must_append(buf, text, strlen(text));
}

void must_append_slice(struct buf *buf, annal_slice slice)
{
    must_append(buf, slice.ptr, slice.len);
}

void must_printf(struct buf *buf, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    must_status(annal__buf_vprintf(buf, format, list));
    va_end(list);
}

const char *must_cstr(struct buf *buf)
{
    return checked((void *)(uintptr_t)annal__buf_cstr(buf));
}

void must_quote(struct buf *buf, annal_slice text)
{
    must_status(annal__json_quote(buf, text));
}
