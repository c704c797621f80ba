/* Filling an annal_error, and the assertion that stays on in every build. */
#ifndef JOURNAL_BASE_ERROR_H
#define JOURNAL_BASE_ERROR_H

#include <annal/base.h>

#include <stdbool.h>

/* Fill err (which may be NULL) and return status, so that failing is one line. */
annal_status annal__fail(annal_error *err, annal_status status, const char *format, ...)
    ANNAL_PRINTF(3, 4);

/* The same as ANNAL_ERR_IO, with ": <text of errno>" behind the message, and errno kept. */
annal_status annal__fail_errno(annal_error *err, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Put words in front of a message that a lower floor wrote; only what this floor alone knows. */
void annal__error_context(annal_error *err, const char *format, ...) ANNAL_PRINTF(2, 3);

/* Whether the disk, or what we may have of it, is full. */
bool annal__error_is_no_space(const annal_error *err);

/* A bug in our own code. Ends the process: going on could write a wrong journal. */
#define ANNAL_ASSERT(condition)                                                                    \
    ((condition) ? (void)0 : annal__assert_failed(#condition, __FILE__, __LINE__))

_Noreturn void annal__assert_failed(const char *condition, const char *file, int line);

#endif
