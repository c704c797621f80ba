/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of the packs agentweaver and memory that need more than one event or one SELECT. */
#ifndef TOOLS_VERBS_AGENTWEAVER_H
#define TOOLS_VERBS_AGENTWEAVER_H

#include "tools/cli/args.h"

int memory_compile(const struct args *args);      /* annal memory compile */
int verbs_mirror_export(const struct args *args); /* annal project export */
int verbs_mirror_import(const struct args *args); /* annal project import */

#endif
