/* SPDX-License-Identifier: Apache-2.0 */
/* Filling an annal_error, and the assertion that is on in every build. */
#ifndef JOURNAL_BASE_ERROR_H
#define JOURNAL_BASE_ERROR_H

#include <annal/base.h>

#include <stdbool.h>

/*
 * Fill err (which may be NULL) and return status, so that failing takes one line. A message about
 * ANNAL_ERR_NOMEM that names only an object gets ": out of memory".
 */
annal_status annal__fail(annal_error *err, annal_status status, const char *format, ...)
    ANNAL_PRINTF(3, 4);

/*
 * In errno after a name could not be created: the disk has free bytes, and no inode is free. The
 * system has no errno for this and does not use this value for files; os_errno is ENOSPC.
 */
#define NO_INODE ENOSR

/* As annal__fail() with ANNAL_ERR_IO; adds ": <text of errno>" to the message, and keeps errno. */
annal_status annal__fail_errno(annal_error *err, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Add words before the message of a lower layer; only what this layer alone knows. */
void annal__error_context(annal_error *err, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Whether the disk, or our quota of it, is full. */
bool annal__error_is_no_space(const annal_error *err);

/* A bug in our own code. Ends the process: continuing could write a wrong journal. */
#define ANNAL_ASSERT(condition)                                                                    \
    ((condition) ? (void)0 : annal__assert_failed(#condition, __FILE__, __LINE__))

_Noreturn void annal__assert_failed(const char *condition, const char *file, int line);

#endif
