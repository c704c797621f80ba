/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in packs. Each pack has a declaration and a row here, in the order in which help lists
 * the packs' nouns, and a line in CMakeLists.txt, which names the files of its text.
 */
#include "index/pack/builtin.h"

#include "index/db/db.h"

#include <string.h>

extern const char annal__sql_agentweaver[];
extern const char annal__sql_annotations[];
extern const char annal__sql_lionagi[];
extern const char annal__sql_memory[];
extern const char annal__sql_prose[];
extern const char annal__sql_prose_agents[];
extern const char annal__sql_prose_user[];
extern const char annal__sql_teams[];

static const struct {
    const char *name;
    const char *text;
} packs[] = {
    {"core", annal__sql_core},
    {"lionagi", annal__sql_lionagi},
    {"teams", annal__sql_teams},
    {"prose", annal__sql_prose},
    {"prose-agents", annal__sql_prose_agents},
    {"prose-user", annal__sql_prose_user},
    {"agentweaver", annal__sql_agentweaver},
    {"memory", annal__sql_memory},
    {"annotations", annal__sql_annotations},
};

const char *annal__builtin_pack(const char *name)
{
    for (size_t i = 0; i < sizeof packs / sizeof *packs; i++)
        if (strcmp(packs[i].name, name) == 0)
            return packs[i].text;
    return NULL;
}

const char *annal__builtin_name(size_t i)
{
    return i < sizeof packs / sizeof *packs ? packs[i].name : NULL;
}
