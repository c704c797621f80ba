/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in packs. */
#ifndef INDEX_PACK_BUILTIN_H
#define INDEX_PACK_BUILTIN_H

#include <stddef.h>

/* Return the text of a built-in pack (including core), or NULL if there is no pack with this
 * name. */
const char *annal__builtin_pack(const char *name);
/* Return the name of built-in pack number i, or NULL after the last. */
const char *annal__builtin_name(size_t i);

#endif
