/* SPDX-License-Identifier: Apache-2.0 */
/* What every function of the packs checks first. */
#ifndef INDEX_PACKS_NEED_H
#define INDEX_PACKS_NEED_H

#include <annal/query.h>

/* Whether a pack is on and can be run. ANNAL_ERR_NOTFOUND: it is not on. */
annal_status annal__need_pack(annal_index *index, const char *pack, annal_error *err);

/* A column's text; without bytes (ptr NULL) if it is NULL. */
annal_slice annal__need_text_or_none(const annal_value *value);

#endif
