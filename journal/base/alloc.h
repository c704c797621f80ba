/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, in one place. Every block is freed with annal__free(). */
#ifndef JOURNAL_BASE_ALLOC_H
#define JOURNAL_BASE_ALLOC_H

#include <stddef.h>

void *annal__zalloc(size_t bytes); /* zeroed; NULL if memory is exhausted */
void *annal__realloc_array(void *block, size_t count, size_t size); /* NULL also on overflow */
void *annal__alloc_aligned(size_t alignment, size_t bytes);         /* not zeroed */
char *annal__strndup(const char *string, size_t length);            /* NUL-terminated copy */
void annal__free(void *block);                                      /* block may be NULL */

/*
 * Add an item of zeros to an array of *count items, which may move: array is the address of the
 * pointer to them. NULL: no memory, and nothing changed. The room follows from *count alone, so all
 * items of an array are added this way.
 */
void *annal__array_add(void *array, size_t *count, size_t size);

#endif
