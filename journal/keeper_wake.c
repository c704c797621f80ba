/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/keeper_wake.h"

#include "journal/base/futex.h"

void annal__keeper_wake(struct keeper_alarm *alarm)
{
    _Atomic uint32_t *word = atomic_load(&alarm->wakeup_word);
    atomic_fetch_add(word, 1);
    annal__futex_wake(word);
}

void annal__keeper_change_word(struct keeper_alarm *alarm, _Atomic uint32_t *word)
{
    /* The new word is stored before the old word changes: a keeper that already sleeps on the old
     * word is woken, and then sleeps on the new word. */
    _Atomic uint32_t *old = atomic_exchange(&alarm->wakeup_word, word);
    atomic_fetch_add(old, 1);
    annal__futex_wake(old);
}
