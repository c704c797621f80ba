/* Verbs of packs agentweaver and memory that are more than an event or a SELECT. */
#ifndef TOOLS_VERBS_AGENTWEAVER_H
#define TOOLS_VERBS_AGENTWEAVER_H

#include "tools/cli/args.h"

int run_tail(const struct args *args);       /* annal run tail */
int run_recover(const struct args *args);    /* annal run recover */
int promote_all(const struct args *args);    /* annal decision promote-all */
int memory_compile(const struct args *args); /* annal memory compile */
int mirror_export(const struct args *args);  /* annal project export */
int mirror_import(const struct args *args);  /* annal project import */

#endif
