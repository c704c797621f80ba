/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of verbs_team.c and team_io.c for each other and for tests: finding a team by the name
 * that a person gives. */
#pragma once

#include "tools/cli/verbs.h"

/* Maximum length of a team's id: the id of its session is "team_" and the id. */
#define TEAM_ID_BYTES_MAX (ANNAL_SESSION_ID_BYTES_MAX - 5)

/* Run a SELECT, and call fn for each row as annal_index_sql() does. Returns 0 or an exit status. */
int verbs_team_rows(struct verb_call *call, const char *sql, const annal_value *params,
                    size_t count, annal_row_fn fn, void *arg);

/*
 * Find the team that a word of the command line means: its id; else the name, or the beginning of
 * the id, of only one team. Returns 0, or an exit status after a message that lists the candidates.
 */
int verbs_team_find(struct verb_call *call, const char *word, char out_id[TEAM_ID_BYTES_MAX + 1]);

/* team_import() runs annal team import FILE..., team_export() runs annal team export [TEAM]. */
int team_import(const struct args *args);
int team_export(const struct args *args);
