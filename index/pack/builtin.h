/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in packs. */
#ifndef INDEX_PACK_BUILTIN_H
#define INDEX_PACK_BUILTIN_H

#include <stddef.h>

/* Return the text of a built-in pack (also of core), or NULL if none has this name. */
const char *annal__builtin_pack(const char *name);
/* Return name number i, or NULL at the end. */
const char *annal__builtin_name(size_t i);

#endif
