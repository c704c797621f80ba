/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a word of memory, which other processes may share. */
#ifndef JOURNAL_BASE_FUTEX_H
#define JOURNAL_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Sleep until *word is not value any more, at most timeout_us; the second function wakes the
 * sleepers.
 */
void annal__futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_us);
void annal__futex_wake(_Atomic uint32_t *word);
void annal__futex_wake_some(_Atomic uint32_t *word, int sleepers);

#endif
