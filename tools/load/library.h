/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libraries that only few verbs need when these verbs run. If they were linked, the system
 * would load them for every verb, which would take most of the time of a short verb.
 *
 * tools/CMakeLists.txt lists the functions used from each library. The build creates
 * <loaded/NAME.h>, which includes the library's own header and redirects calls of these functions
 * to a table, and library_NAME, which must be loaded before the first call.
 */
#pragma once

#include <annal/base.h>

struct library {
    const char *file;         /* file name of the library with the version at build time */
    const char *const *names; /* names of the functions; the last one is NULL */
    void *table;              /* pointers to the functions, in the order of names */
    bool is_loaded;
};

/*
 * Load the library, unless it is loaded already; it stays loaded until the process ends. Any thread
 * may call it. ANNAL_ERR_UNSUPPORTED: the library is not installed, or lacks one of the functions.
 */
annal_status library_load(struct library *library, annal_error *err);
