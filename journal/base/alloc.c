/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"

#include <annal/base.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST 8

void *annal__zalloc(size_t bytes)
{
    return calloc(1, bytes == 0 ? 1 : bytes);
}

void *annal__realloc_array(void *block, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    return realloc(block, count * size == 0 ? 1 : count * size);
}

void *annal__array_add(void *array, size_t *count, size_t size)
{
    char *items;
    memcpy(&items, array, sizeof items);
    bool full = *count == 0 || (*count >= ROOM_LEAST && (*count & (*count - 1)) == 0);
    if (full) {
        items = annal__realloc_array(items, *count == 0 ? ROOM_LEAST : *count * 2, size);
        if (items == NULL)
            return NULL;
        memcpy(array, &items, sizeof items);
    }
    return memset(items + (*count)++ * size, 0, size);
}

void *annal__alloc_aligned(size_t alignment, size_t bytes)
{
    void *block = NULL;
    return posix_memalign(&block, alignment, bytes == 0 ? alignment : bytes) == 0 ? block : NULL;
}

char *annal__strndup(const char *string, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, string, length);
    copy[length] = '\0';
    return copy;
}

void annal__free(void *block)
{
    free(block);
}

void annal_free(const void *bytes)
{
    free((void *)(uintptr_t)bytes);
}
