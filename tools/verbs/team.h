/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by verbs_team.c, team_io.c and their tests: find a team by the name that a person
 * gives. */
#ifndef TOOLS_VERBS_TEAM_H
#define TOOLS_VERBS_TEAM_H

#include "tools/cli/verbs.h"

/* The session of a team is team_<id>. */
#define TEAM_ID_BYTES_MAX (ANNAL_SESSION_ID_BYTES_MAX - 5)

/* Query rows, as annal_sql() does; 0 or an exit status. */
int verbs_team_rows(struct verb_call *call, const char *sql, const annal_value *params,
                    size_t count, annal_row_fn fn, void *arg);

/*
 * Find the team that a word of the command line names: its id; or else a name, or the beginning of
 * an id, of only one team. 0 or an exit status, after a sentence that lists the candidates.
 */
int verbs_team_find(struct verb_call *call, const char *word, char out_id[TEAM_ID_BYTES_MAX + 1]);

/* Run annal team import FILE..., annal team export [TEAM]. */
int team_import(const struct args *args);
int team_export(const struct args *args);

#endif
