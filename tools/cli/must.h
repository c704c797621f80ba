/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates memory for the command. If memory runs out, or a text is too long for its buffer, these
 * functions end the command with one message and EXIT_STORAGE, so their callers check nothing.
 *
 * The server, and code that it shares with the command, call journal/base/alloc.h and
 * journal/base/buf.h instead, and return the failure: one request fails, and the server continues.
 */
#pragma once

#include "journal/base/buf.h"
#include "journal/base/json.h"

#include <stdbool.h>

/* As the functions in journal/base/alloc.h. */
void *must_zalloc(size_t bytes);
void *must_realloc_array(void *block, size_t count, size_t size);
void *must_array_add(void *array, size_t *count, size_t size);
char *must_strndup(const char *string, size_t length);

/* As the functions in journal/base/buf.h. After must_printf(), a NUL follows the contents. */
void must_reserve(struct buf *buf, size_t more);
void must_append(struct buf *buf, const void *bytes, size_t len);
void must_append_text(struct buf *buf, const char *text);
void must_append_slice(struct buf *buf, annal_slice slice);
void must_printf(struct buf *buf, const char *format, ...) ANNAL_PRINTF(2, 3);
const char *must_cstr(struct buf *buf);

/* As annal__json_quote() and annal__json_put(). */
void must_quote(struct buf *buf, annal_slice text);
#define must_json(buf, format, ...) must_status(annal__json_put(buf, format, __VA_ARGS__))

/* End the command, if the status of another function that needs memory is a failure, or if its
 * result is false or NULL. */
void must_status(annal_status status);
void must_true(bool done);
