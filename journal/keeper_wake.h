/* SPDX-License-Identifier: Apache-2.0 */
/* Wake the keeper (keeper.h). */
#ifndef JOURNAL_KEEPER_WAKE_H
#define JOURNAL_KEEPER_WAKE_H

#include <annal/store.h>

#include <stdatomic.h>

/* Make the keeper sleep on another word from now on. */
void annal__keeper_change_word(annal_store *store, _Atomic uint32_t *word);

/* Wake the keeper, because it has work. */
void annal__keeper_wake(annal_store *store);

#endif
