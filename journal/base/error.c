/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The switch has no default, so that the compiler warns of a status without a name. */
const char *annal_status_name(annal_status status)
{
    switch (status) {
    case ANNAL_OK:
        return "ok";
    case ANNAL_END:
        return "end";
    case ANNAL_DAMAGE:
        return "damage";
    case ANNAL_ERR_NOMEM:
        return "out of memory";
    case ANNAL_ERR_IO:
        return "input/output";
    case ANNAL_ERR_CORRUPT:
        return "corrupt";
    case ANNAL_ERR_NOTFOUND:
        return "not found";
    case ANNAL_ERR_INVALID:
        return "invalid";
    case ANNAL_ERR_BUSY:
        return "busy";
    case ANNAL_ERR_LIMIT:
        return "limit";
    case ANNAL_ERR_CLOSED:
        return "closed";
    case ANNAL_ERR_CONFLICT:
        return "conflict";
    case ANNAL_ERR_UNKNOWN:
        return "unknown";
    case ANNAL_ERR_UNSUPPORTED:
        return "unsupported";
    case ANNAL_ERR_SQL:
        return "sql";
    case ANNAL_ERR_REFUSED:
        return "refused";
    case ANNAL_ERR_FULL:
        return "disk full";
    case ANNAL_ERR_READONLY:
        return "read-only";
    case ANNAL_ERR_DISK:
        return "disk failed";
    }
    return "no such status";
}

const char *annal_version(void)
{
    return ANNAL_VERSION;
}

annal_slice annal_slice_of(const char *string)
{
    return string == NULL ? (annal_slice){NULL, 0} : (annal_slice){string, strlen(string)};
}

ANNAL_PRINTF(4, 0)
static void fill(annal_error *err, annal_status status, int os_errno, const char *format,
                 va_list args)
{
    err->status = status;
    err->os_errno = os_errno;
    int length = vsnprintf(err->message, sizeof err->message, format, args);
    if (length < 0)
        err->message[0] = '\0';
}

annal_status annal__fail(annal_error *err, annal_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        fill(err, status, 0, format, args);
        va_end(args);
        size_t used = strlen(err->message);
        if (status == ANNAL_ERR_NOMEM && strstr(format, "memory") == NULL &&
            strchr(format, ':') == NULL)
            snprintf(err->message + used, sizeof err->message - used, ": out of memory");
    }
    return status;
}

annal_status annal__error_of_errno(int os_errno)
{
    switch (os_errno) {
    case ENOSPC:
    case EDQUOT:
    case NO_INODE:
        return ANNAL_ERR_FULL;
    case EROFS:
        return ANNAL_ERR_READONLY;
    case EIO:
    case ENODEV:
    case ENXIO:
        return ANNAL_ERR_DISK;
    default:
        return ANNAL_ERR_IO;
    }
}

annal_status annal__fail_errno(annal_error *err, const char *format, ...)
{
    int os_errno = errno;
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        fill(err, annal__error_of_errno(os_errno), os_errno == NO_INODE ? ENOSPC : os_errno, format,
             args);
        va_end(args);
        char space[128];
/* the GNU function returns the text, and uses `space` only for an unknown number */
#ifdef __GLIBC__
        const char *reason = strerror_r(os_errno, space, sizeof space);
#else
        const char *reason =
            strerror_r(os_errno, space, sizeof space) == 0 ? space : "unknown error";
#endif
        if (os_errno == NO_INODE)
            reason =
                "the disk has free bytes, but no inode is free for another file: remove files, "
                "'df -i' counts them";
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, ": %s", reason);
    }
    errno = os_errno;
    return annal__error_of_errno(os_errno);
}

annal_status annal__error_pass(annal_error *err, annal_status status, const annal_error *why)
{
    if (status < 0 && err != NULL)
        *err = *why;
    return status;
}

void annal__error_context(annal_error *err, const char *format, ...)
{
    if (err == NULL)
        return;
    char below[sizeof err->message];
    memcpy(below, err->message, sizeof below);
    va_list args;
    va_start(args, format);
    fill(err, err->status, err->os_errno, format, args);
    va_end(args);
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %.*s", (int)(sizeof below - 1),
             below);
}

_Noreturn void annal__assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "annal: %s:%d: this must hold and does not: %s\n", file, line, condition);
    abort();
}

bool annal__error_is_no_space(const annal_error *err)
{
    return err->status < 0 && (err->os_errno == ENOSPC || err->os_errno == EDQUOT);
}
