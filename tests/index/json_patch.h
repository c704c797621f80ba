/* SPDX-License-Identifier: Apache-2.0 */
/* Apply a JSON patch (RFC 6902: add, remove, replace) to a document: an oracle for
 * state_diff.c. */
#pragma once

/*
 * Apply patch to document. The result has no blanks; numbers and strings keep their text. A
 * malformed argument, or a pointer to a missing value, fails the test. free() the result.
 */
char *json_patched(const char *document, const char *patch);
