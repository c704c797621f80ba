/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that few verbs need are loaded by these verbs. If they were linked, the system would
 * load them for every verb, which is most of what a short verb would take.
 *
 * tools/CMakeLists.txt lists the functions that we use of each. From that is made <loaded/NAME.h>,
 * which includes the library's own header and redirects calls of these functions to a table, and
 * library_NAME, which has to be loaded before the first call.
 */
#ifndef TOOLS_LOAD_LIBRARY_H
#define TOOLS_LOAD_LIBRARY_H

#include <annal/base.h>

struct library {
    const char *file;         /* its name when this was built, with its version */
    const char *const *names; /* of the functions; the last one is NULL */
    void *table;              /* pointers to them, in this order */
    bool is_loaded;
};

/*
 * Load it, unless that is done; it stays until the process ends. Any thread.
 *
 * ANNAL_ERR_UNSUPPORTED   it is not installed, or has not all of the functions
 */
annal_status library_load(struct library *library, annal_error *err);

#endif
