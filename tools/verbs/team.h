/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by verbs_team.c, team_io.c and their tests: teams as a person names them. */
#ifndef TOOLS_VERBS_TEAM_H
#define TOOLS_VERBS_TEAM_H

#include "tools/cli/verbs.h"

/* team_<id> is a session's id. */
#define TEAM_ID_BYTES_MAX (ANNAL_SESSION_ID_BYTES_MAX - 5)

/* Ask for rows, as annal_sql() does; 0 or an exit status. */
int team_rows(struct verb_call *call, const char *sql, const annal_value *params, size_t count,
              annal_row_fn fn, void *arg);

/*
 * The team that a word of the command line means: its id; or else a name, or the beginning of an
 * id, that only one team has. 0 or an exit status, after a sentence that lists the teams that it
 * may mean.
 */
int team_find(struct verb_call *call, const char *word, char out_id[TEAM_ID_BYTES_MAX + 1]);

/* annal team import FILE..., annal team export [TEAM]. */
int team_import(const struct args *args);
int team_export(const struct args *args);

#endif
