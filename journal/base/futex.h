/* SPDX-License-Identifier: Apache-2.0 */
/* Sleep on a word of memory, which other processes may share. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* annal__futex_wait() sleeps while *word has this value, at most timeout_us, and may return early.
 * annal__futex_wake() wakes all sleepers, annal__futex_wake_some() at most `sleepers`. */
void annal__futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_us);
void annal__futex_wake(_Atomic uint32_t *word);
void annal__futex_wake_some(_Atomic uint32_t *word, int sleepers);
