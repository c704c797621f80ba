/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that only few verbs need are loaded by these verbs. If they were linked, the system
 * would load them for every verb, which would take most of the time of a short verb.
 *
 * tools/CMakeLists.txt lists the functions used from each library. The build creates
 * <loaded/NAME.h>, which includes the library's own header and redirects calls of these functions
 * to a table, and library_NAME, which must be loaded before the first call.
 */
#ifndef TOOLS_LOAD_LIBRARY_H
#define TOOLS_LOAD_LIBRARY_H

#include <annal/base.h>

struct library {
    const char *file;         /* file name with version at build time */
    const char *const *names; /* names of the functions; the last one is NULL */
    void *table;              /* pointers to them, in the same order */
    bool is_loaded;
};

/*
 * Load the library, unless it is loaded already; it stays loaded until the process ends. Any
 * thread.
 *
 *     ANNAL_ERR_UNSUPPORTED   it is not installed, or lacks one of the functions
 */
annal_status library_load(struct library *library, annal_error *err);

#endif
