/* The heap, in one place. Every block is freed with annal__free(). */
#ifndef JOURNAL_BASE_ALLOC_H
#define JOURNAL_BASE_ALLOC_H

#include <stddef.h>

void *annal__zalloc(size_t bytes); /* zeroed; NULL if there is no memory */
void *annal__realloc_array(void *block, size_t count, size_t size); /* NULL also on overflow */
void *annal__alloc_aligned(size_t alignment, size_t bytes);         /* not zeroed */
char *annal__strndup(const char *string, size_t length);            /* NUL-terminated copy */
void annal__free(void *block);                                      /* block may be NULL */

#endif
