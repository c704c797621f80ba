/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in packs, which index/CMakeLists.txt lists. */
#pragma once

#include <stddef.h>

/* all of them, in the order in which help lists their nouns; the last has the name NULL */
extern const struct builtin_pack {
    const char *name;
    const char *text;
} annal__builtin_packs[];

/* Return the text of a built-in pack (including core), or NULL if there is no pack with this
 * name. */
const char *annal__builtin_pack(const char *name);
/* Return the name of built-in pack number i, or NULL if i is the number of packs. */
const char *annal__builtin_name(size_t i);
