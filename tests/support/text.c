/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/text.h"

#include <stdlib.h>
#include <string.h>

static size_t capacity_for(size_t len)
{
    size_t capacity = 64;
    while (capacity <= len)
        capacity *= 2;
    return capacity;
}

void text_add(struct text *text, const char *bytes, size_t len)
{
    size_t capacity = capacity_for(text->len + len);
    if (text->ptr == NULL || capacity != capacity_for(text->len))
        text->ptr = realloc(text->ptr, capacity);
    ck_assert_ptr_nonnull(text->ptr);
    if (len > 0)
        memcpy(text->ptr + text->len, bytes, len);
    text->len += len;
    text->ptr[text->len] = '\0';
}

int text_write(void *arg, const char *bytes, size_t len)
{
    text_add(arg, bytes, len);
    return 0;
}
