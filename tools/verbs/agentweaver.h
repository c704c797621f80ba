/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of the packs agentweaver and memory that need more than SQL. */
#ifndef TOOLS_VERBS_AGENTWEAVER_H
#define TOOLS_VERBS_AGENTWEAVER_H

#include "tools/cli/args.h"

int mirror_import(const struct args *args); /* annal project import */

#endif
