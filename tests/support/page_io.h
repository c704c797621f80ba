/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's I/O without the disk: no O_DIRECT, and a sync returns at once. For tests that build
 * thousands of states and never lose one.
 */
#pragma once

#include "journal/store.h"

struct io page_io(void);

/* Seams over it; io and boot must live as long as the store. boot NULL: the system's. */
struct seams page_seams(const struct io *io, const uint8_t *boot);
