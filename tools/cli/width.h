/* SPDX-License-Identifier: Apache-2.0 */
/* Count the columns of a terminal that a text takes. */
#ifndef TOOLS_CLI_WIDTH_H
#define TOOLS_CLI_WIDTH_H

#include <stddef.h>
#include <wchar.h>

/* Decode one character of valid or invalid UTF-8; returns its bytes. */
size_t width_decode(const char *text, wchar_t *out);

/* Return the width of one character, and of a text that ends with a NUL. */
int width_of(wchar_t c);
int width_of_text(const char *text);

/* Count the bytes of a text that fit in this many columns. */
size_t width_fitting(const char *text, int columns);

#endif
