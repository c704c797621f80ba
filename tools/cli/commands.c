/* SPDX-License-Identifier: Apache-2.0 */
/* The list of verbs. */
#include "tools/cli/command.h"
#include "tools/cli/verbs.h"

#include <string.h>

const struct command *const commands[] = {
    &cmd_append, &cmd_import,  &cmd_watch,   &cmd_export,     &cmd_handoff,
    &cmd_cat,    &cmd_ls,      &cmd_show,    &cmd_query,      &cmd_sql,
    &cmd_schema, &cmd_search,  &cmd_fix,     &cmd_how,        &cmd_blame,
    &cmd_log,    &cmd_replay,  &cmd_diff,    &cmd_tail,       &cmd_serve,
    &cmd_mcp,    &cmd_acp,     &cmd_stats,   &cmd_report,     &cmd_verify,
    &cmd_repair, &cmd_doctor,  &cmd_reindex, &cmd_checkpoint, &cmd_vacuum,
    &cmd_backup, &cmd_restore, &cmd_prune,   &cmd_convert,    &cmd_fork,
    &cmd_pull,   &cmd_push,    &cmd_delete,  &cmd_help,       &cmd_version,
    NULL};

const struct command *command_find(const char *name)
{
    for (int i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

const struct verb_code *const verb_codes[] = {team_code,        lionagi_code, prose_code,
                                              agentweaver_code, note_code,    NULL};

const struct option *command_option(const struct command *command, int *at)
{
    int i = 0;
    for (; command->fields != NULL && command->fields[i].kind != FIELD_END; i++) {
        const struct option *option = &command->fields[i].option;
        if (i >= *at && option->name != NULL) {
            *at = i + 1;
            return option;
        }
    }
    /* the options of a verb that appends an event: first those in its table, then those that all
     * such verbs have */
    const struct option *option = &verb_common[*at > i ? *at - i : 0];
    if (command->type == NULL || option->name == NULL)
        return NULL;
    *at = (*at > i ? *at : i) + 1;
    return option;
}

const char *command_choices(const struct command *command, const struct option *option)
{
    const struct field *field = command->fields;
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (&field->option == option)
            return field->choices;
    }
    return NULL;
}

int command_operands_min(const struct command *command)
{
    int count = 0;
    const struct field *field = command->fields;
    for (; field != NULL && field->kind != FIELD_END; field++)
        count += field_is_operand(field) && field->required ? 1 : 0;
    return count;
}

int command_operands_max(const struct command *command)
{
    int count = 0;
    const struct field *field = command->fields;
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (field_is_operand(field) && FIELD_IS_LIST(field->kind))
            return -1;
        count += field_is_operand(field) ? 1 : 0;
    }
    return count;
}
