/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/default_store.h"

annal_status annal__default_store_place(const char *store, const char *data_home, const char *home,
                                        struct buf *out_path)
{
    annal_status status = ANNAL_ERR_NOTFOUND;
    if (store != NULL && store[0] != '\0')
        status = annal__buf_printf(out_path, "%s", store);
    else if (data_home != NULL && data_home[0] == '/')
        status = annal__buf_printf(out_path, "%s/annal", data_home);
    else if (home != NULL && home[0] == '/')
        status = annal__buf_printf(out_path, "%s/.local/share/annal", home);
    if (status == ANNAL_OK && annal__buf_cstr(out_path) == NULL)
        status = ANNAL_ERR_NOMEM;
    return status;
}
