/* SPDX-License-Identifier: Apache-2.0 */
/* Allocate and free memory. Every block is freed with annal__free(). */
#pragma once

#include <stddef.h>

void *annal__zalloc(size_t bytes); /* zeroed; NULL: out of memory */
/* NULL: out of memory, or count * size is too large */
void *annal__realloc_array(void *block, size_t count, size_t size);
/* not zeroed; NULL: out of memory */
void *annal__alloc_aligned(size_t alignment, size_t bytes);
char *annal__strndup(const char *string, size_t length); /* NUL-terminated copy */
void annal__free(void *block);                           /* block may be NULL */

/*
 * Add an item of zeros to an array of *count items, and return it. `array` is the address of the
 * pointer to the items, which may move. NULL: out of memory, and nothing changed. The allocated
 * size follows from *count, so every item of an array must be added by this function.
 */
void *annal__array_add(void *array, size_t *count, size_t size);
