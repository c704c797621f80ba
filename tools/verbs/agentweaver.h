/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of the packs agentweaver and memory that need more than SQL. */
#pragma once

#include "tools/cli/args.h"

int mirror_import(const struct args *args); /* annal project import */
