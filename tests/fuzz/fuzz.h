/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers share: a check that says on what it failed, and an input that is read from the
 * front. */
#pragma once

#include <annal/base.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Told past stdio, which a fuzzer may have sent elsewhere. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Take one byte off the front; 0 when no byte is left. */
static inline uint8_t take_byte(annal_slice *input)
{
    if (input->len == 0)
        return 0;
    input->len--;
    return (uint8_t)*input->ptr++;
}
