/* SPDX-License-Identifier: Apache-2.0 */
/* Wake the keeper (keeper.h). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct keeper_alarm {
    bool running; /* whether there is a keeper */
    /* whether the keeper may sleep for long, so that an append must wake it */
    _Atomic bool idle;
    /* futex on which the keeper sleeps until this process has a slot */
    _Atomic uint32_t local_word;
    _Atomic uint32_t
        /* futex on which the keeper sleeps: local_word or, after this process has a slot, the word
         * in its held list */
        *_Atomic wakeup_word;
};

/* Make the keeper sleep on another word from now on. */
void annal__keeper_change_word(struct keeper_alarm *alarm, _Atomic uint32_t *word);

/* Wake the keeper, because it has work. */
void annal__keeper_wake(struct keeper_alarm *alarm);
