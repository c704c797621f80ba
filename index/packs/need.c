/* SPDX-License-Identifier: Apache-2.0 */
#include "index/packs/need.h"

#include "index/sys/pack.h"
#include "journal/base/error.h"

#include <annal/pack.h>

annal_status annal__need_pack(annal_index *index, const char *pack, annal_error *err)
{
    annal_status status = annal__packs_have(index, pack, err);
    if (status == ANNAL_ERR_NOTFOUND)
        annal__fail(err, status, "pack %s is not enabled in this store", pack);
    return status;
}

annal_slice annal__need_text_or_none(const annal_value *value)
{
    if (value->kind == ANNAL_VALUE_NULL)
        return (annal_slice){0};
    return value->bytes.len > 0 ? value->bytes : ANNAL_SLICE("");
}
