/* The data of a draft in the other format. */
#ifndef JOURNAL_SYS_DRAFT_H
#define JOURNAL_SYS_DRAFT_H

#include <annal/event.h>

/*
 * The data of a draft as JSON, whatever its format; free it with annal__draft_free(). Fails as
 * annal_draft_check() does. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__draft_json(const annal_draft *draft, annal_slice *out_json,
                                                annal_error *err);

void annal__draft_free(const void *json); /* NULL is accepted */

#endif
