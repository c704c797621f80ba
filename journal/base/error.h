/* SPDX-License-Identifier: Apache-2.0 */
/* Fill an annal_error, and assert what must always hold. */
#pragma once

#include <annal/base.h>

#include <stdbool.h>

/*
 * Fill err (which may be NULL) and return status, so that failing takes one line. For
 * ANNAL_ERR_NOMEM, ": out of memory" is added to a message without a colon and without the word
 * memory.
 */
annal_status annal__fail(annal_error *err, annal_status status, const char *format, ...)
    ANNAL_PRINTF(3, 4);

/*
 * Value of errno after a file could not be created because the disk has free bytes, but no free
 * inode. The system has no errno for this and does not use ENOSR for files; os_errno of the error
 * becomes ENOSPC.
 */
#define NO_INODE ENOSR

/* Return the status for an errno: ANNAL_ERR_FULL, _READONLY, _DISK or ANNAL_ERR_IO. */
annal_status annal__error_of_errno(int os_errno);

/* Return whether a status is one of those. */
static inline bool annal__error_is_io(annal_status status)
{
    return status == ANNAL_ERR_IO || status == ANNAL_ERR_FULL || status == ANNAL_ERR_READONLY ||
           status == ANNAL_ERR_DISK;
}

/* As annal__fail() with the status of errno; adds ": <text of errno>" to the message, and keeps
 * errno. */
annal_status annal__fail_errno(annal_error *err, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Return status. If it is a failure, copy its error, which was kept apart, to err, which may be
 * NULL. */
annal_status annal__error_pass(annal_error *err, annal_status status, const annal_error *why);

/* Put words before the message of an error that another function has filled: what only this caller
 * knows, such as the session. */
void annal__error_context(annal_error *err, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Return whether an error was caused by a full disk, or by a full quota of this user. */
bool annal__error_is_no_space(const annal_error *err);

/* Assert what only a bug in this library can violate. A violation ends the process, because
 * continuing could write a wrong journal. */
#define ANNAL_ASSERT(condition)                                                                    \
    ((condition) ? (void)0 : annal__assert_failed(#condition, __FILE__, __LINE__))

_Noreturn void annal__assert_failed(const char *condition, const char *file, int line);
