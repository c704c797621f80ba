/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/library.h"

#include "journal/base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static annal_status load(const struct library *library, annal_error *err)
{
    void *handle = dlopen(library->file, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED, "cannot load a required library: %s",
                           dlerror());
    for (size_t i = 0; library->names[i] != NULL; i++) {
        void *found = dlsym(handle, library->names[i]);
        if (found == NULL)
            return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                               "the installed version of %s cannot be used: %s", library->file,
                               dlerror());
        memcpy((char *)library->table + i * sizeof found, &found, sizeof found);
    }
    return ANNAL_OK;
}

annal_status library_load(struct library *library, annal_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    annal_status status = library->is_loaded ? ANNAL_OK : load(library, err);
    library->is_loaded = status == ANNAL_OK;
    pthread_mutex_unlock(&lock);
    return status;
}
