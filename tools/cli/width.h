/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the width of text on a terminal, in columns. */
#pragma once

#include <stddef.h>
#include <wchar.h>

/* Decode one character, and return its number of bytes. Invalid UTF-8 gives a '?'. */
size_t width_decode(const char *text, wchar_t *out);

/* Return the width in columns: width_of() of one character, width_of_text() of a text that ends
 * with a NUL. */
int width_of(wchar_t c);
int width_of_text(const char *text);

/* Return how many bytes of a text fit into this many columns. */
size_t width_fitting(const char *text, int columns);
