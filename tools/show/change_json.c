/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/change_json.h"

#include "index/sys/state.h"
#include "journal/base/json.h"

#include <inttypes.h>

enum members { OF_KEY, THAT_DIFFER };

static int append(void *arg, const char *bytes, size_t len)
{
    return annal__buf_append(arg, bytes, len);
}

static annal_status add_members(struct buf *out, const annal_change *change, const annal_value *row,
                                enum members which, annal_error *err)
{
    bool begun = false;
    if (row == NULL)
        return annal__buf_append(out, "null", 4);
    annal_status status = annal__buf_append(out, "{", 1);
    for (size_t i = 0; status >= 0 && i < change->column_count; i++) {
        if (which == OF_KEY ? !change->in_key[i] : !change->differs[i])
            continue;
        status = annal__json_put(out, begun ? ",?:" : "?:", change->columns[i]);
        if (status >= 0)
            status = annal__state_value_json(&row[i], append, out, err);
        begun = true;
    }
    if (status >= 0 && !begun && which == OF_KEY)
        status = annal__buf_printf(out, "\"rowid\":%" PRId64, change->rowid);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

annal_status change_json(struct buf *out, const annal_change *change, annal_error *err)
{
    static const char *const names[] = {[ANNAL_ROW_INSERTED] = "inserted",
                                        [ANNAL_ROW_UPDATED] = "updated",
                                        [ANNAL_ROW_DELETED] = "deleted"};
    const annal_value *key = change->after != NULL ? change->after : change->before;
    annal_status status =
        annal__json_put(out, "{\"table\":?,\"change\":\"#\",\"key\":", change->table,
                        annal_slice_of(names[change->kind]));
    if (status >= 0)
        status = add_members(out, change, key, OF_KEY, err);
    if (status >= 0)
        status = annal__buf_append(out, ",\"before\":", 10);
    if (status >= 0)
        status = add_members(out, change, change->before, THAT_DIFFER, err);
    if (status >= 0)
        status = annal__buf_append(out, ",\"after\":", 9);
    if (status >= 0)
        status = add_members(out, change, change->after, THAT_DIFFER, err);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}
