/* SPDX-License-Identifier: Apache-2.0 */
#include "index/pack/builtin.h"

#include <string.h>

const char *annal__builtin_pack(const char *name)
{
    for (const struct builtin_pack *pack = annal__builtin_packs; pack->name != NULL; pack++)
        if (strcmp(pack->name, name) == 0)
            return pack->text;
    return NULL;
}

const char *annal__builtin_name(size_t i)
{
    return annal__builtin_packs[i].name;
}
