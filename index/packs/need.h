/* SPDX-License-Identifier: Apache-2.0 */
/* A check with which the functions of packs begin, and reading a column. */
#ifndef INDEX_PACKS_NEED_H
#define INDEX_PACKS_NEED_H

#include <annal/query.h>

/* Check that a pack is enabled and can be run. ANNAL_ERR_NOTFOUND: it is not enabled. */
annal_status annal__need_pack(annal_index *index, const char *pack, annal_error *err);

/* Return the text of a column's value. If the value is NULL, the ptr of the result is NULL. */
annal_slice annal__need_text_or_none(const annal_value *value);

#endif
