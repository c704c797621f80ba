/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/store_journal.h"

#include "journal/base/error.h"
#include "journal/stray.h"

#include <errno.h>
#include <fcntl.h>

/* Return the format of the first journal whose header does not name another session (stray.h), or
 * of the first journal. */
static const struct codec *choose_journal(const struct context *context, annal_slice session,
                                          const struct codec *const *there, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!annal__stray_is_anothers(context, session, there[i]))
            return there[i];
    return there[0];
}

annal_status annal__store_journal_find(const struct context *context, annal_slice session,
                                       struct buf *out_path, const struct codec **out_codec,
                                       annal_error *err)
{
    const struct codec *there[CODEC_COUNT], *empty = NULL;
    size_t count = 0;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        struct stat file;
        annal_status status =
            annal__context_journal_path(context, session, annal__codecs[i], out_path, err);
        if (status < 0)
            return status;
        if (context->io->stat(context->io->arg, out_path->ptr, &file) == 0) {
            if (file.st_size > 0)
                there[count++] = annal__codecs[i];
            else if (empty == NULL)
                empty = annal__codecs[i];
        } else if (errno != ENOENT && count == 0) {
            return annal__fail_errno(err, "cannot examine %s", out_path->ptr);
        }
    }
    *out_codec = count == 0   ? empty
                 : count == 1 ? there[0]
                              : choose_journal(context, session, there, count);
    return annal__context_journal_path(
        context, session, *out_codec == NULL ? annal__codecs[0] : *out_codec, out_path, err);
}

annal_status annal__store_journal_open(const struct context *context, annal_slice session,
                                       int *out_fd, const struct codec **out_codec,
                                       annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = ANNAL_OK;
    int fd = -1;
    /*
     * Try twice, because one journal may replace the other between the two attempts to open them.
     */
    for (int tries = 0; tries < 2 && fd < 0 && status == ANNAL_OK; tries++) {
        status = annal__store_journal_find(context, session, &path, out_codec, err);
        if (status == ANNAL_OK && *out_codec != NULL) {
            fd = context->io->open(context->io->arg, path.ptr, O_RDONLY, 0);
            if (fd < 0 && errno == EACCES)
                status = annal__stray_fail_denied(err, session);
            else if (fd < 0 && errno != ENOENT)
                status = annal__fail_errno(err, "cannot open %s", path.ptr);
        }
    }
    if (status == ANNAL_OK && fd < 0)
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%.*s'", ANNAL_FMT(session));
    if (status == ANNAL_OK)
        *out_fd = fd;
    return status;
}

bool annal__store_journal_is_double(const struct context *context, annal_slice session,
                                    const struct codec *codec)
{
    SCOPED_BUF path = {0};
    bool found = false;
    for (size_t i = 0; i < CODEC_COUNT && !found; i++) {
        struct stat file;
        found = annal__codecs[i] != codec &&
                annal__context_journal_path(context, session, annal__codecs[i], &path, NULL) ==
                    ANNAL_OK &&
                context->io->stat(context->io->arg, path.ptr, &file) == 0 &&
                S_ISREG(file.st_mode) && file.st_size > 0;
    }
    return found;
}
