/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON patch (RFC 6902: add, remove, replace) applied to a document: an oracle for
 * state_diff.c. */
#ifndef TESTS_INDEX_JSON_PATCH_H
#define TESTS_INDEX_JSON_PATCH_H

/*
 * The document that patch makes of document, without blanks, numbers and strings as they stood.
 * What is wrong in either, or names what is not there, fails the test. free() it.
 */
char *json_patched(const char *document, const char *patch);

#endif
