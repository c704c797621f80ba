/* SPDX-License-Identifier: Apache-2.0 */
/* The packs that are built in. */
#ifndef INDEX_PACK_BUILTIN_H
#define INDEX_PACK_BUILTIN_H

#include <stddef.h>

/* The text of a pack that is built in; NULL if there is none of that name. core is one. */
const char *annal__builtin_pack(const char *name);
/* Name number i, NULL at the end. */
const char *annal__builtin_name(size_t i);

#endif
