/* Which verbs there are. */
#include "tools/command.h"

#include <string.h>

const struct command *const commands[] = {
    &cmd_append,  &cmd_import,  &cmd_cat,      &cmd_ls,    &cmd_show,    &cmd_query,  &cmd_sql,
    &cmd_replay,  &cmd_tail,    &cmd_snapshot, &cmd_stats, &cmd_verify,  &cmd_repair, &cmd_doctor,
    &cmd_reindex, &cmd_convert, &cmd_delete,   &cmd_help,  &cmd_version, NULL};

const struct command *command_find(const char *name)
{
    for (int i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}
