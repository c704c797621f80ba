/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/stray.h"

#include "journal/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- One file ---- */

struct found {
    bool is_present; /* whether the file exists and is not empty */
    bool denied;     /* whether this user may not read the file */
    bool has_header;
    struct frame_header header;
    char bytes[FRAME_ENVELOPE_BYTES]; /* bytes of the file, into which `header` points */
};

static void read_found(const struct context *context, annal_slice session,
                       const struct codec *codec, struct found *out)
{
    SCOPED_BUF path = {0};
    uint64_t h;
    out->is_present = out->has_header = out->denied = false;
    errno = 0;
    int fd = annal__context_journal_path(context, session, codec, &path, NULL) < 0
                 ? -1
                 : context->io->open(context->io->arg, path.ptr, O_RDONLY, 0);
    out->denied = fd < 0 && errno == EACCES;
    if (fd < 0)
        return;
    ssize_t got = annal__io_read_full(context->io, fd, out->bytes, sizeof out->bytes, 0);
    context->io->close(context->io->arg, fd);
    out->is_present = got > 0;
    out->has_header = got > 0 && annal__codec_first(codec, (annal_slice){out->bytes, (size_t)got},
                                                    &out->header, &h);
}

static bool is_anothers(const struct found *found, annal_slice session, annal_error *out_why)
{
    return found->has_header && annal__codec_check_owner(&found->header, session, out_why) < 0;
}

static bool replaces(const struct frame_header *one, const struct frame_header *other)
{
    return one->is_replacement && memcmp(one->replaces, other->file, sizeof other->file) == 0;
}

annal_status annal__stray_fail_denied(annal_error *err, annal_slice session)
{
    annal__fail(err, ANNAL_ERR_IO,
                "you may not read the journal of session '%.*s'; its owner or root can let the "
                "group of the store read it",
                ANNAL_FMT(session));
    if (err != NULL)
        err->os_errno = EACCES;
    return ANNAL_ERR_IO;
}

enum stray_kind annal__stray_look(const struct context *context, annal_slice session,
                                  annal_error *out_why)
{
    struct found found[CODEC_COUNT];
    const struct codec *read = NULL;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        read_found(context, session, annal__codecs[i], &found[i]);
        if (read == NULL && found[i].is_present && !is_anothers(&found[i], session, out_why))
            read = annal__codecs[i];
    }
    const struct found *a = &found[0], *b = &found[1];
    if (read == NULL && (a->denied || b->denied)) {
        (void)annal__stray_fail_denied(out_why, session);
        return DENIED;
    }
    if (read == NULL)
        return a->is_present || b->is_present ? STRAY : NO_STRAY;
    if (!a->is_present || !b->is_present ||
        (a->has_header && b->has_header &&
         (replaces(&a->header, &b->header) || replaces(&b->header, &a->header))))
        return NO_STRAY;
    (void)annal__fail(out_why, ANNAL_ERR_CORRUPT,
                      "session '%.*s' has two journals, of which '%.*s%s' is read: move the wrong "
                      "journal out of the store",
                      ANNAL_FMT(session), ANNAL_FMT(session), read->suffix);
    return DOUBLE;
}

bool annal__stray_is_anothers(const struct context *context, annal_slice session,
                              const struct codec *codec)
{
    struct found found;
    read_found(context, session, codec, &found);
    return is_anothers(&found, session, NULL);
}

bool annal__stray_is_strange(const struct context *context, const char *name, annal_error *out_why)
{
    SCOPED_BUF path = {0};
    size_t length = strlen(name);
    bool regular = false;
    uint64_t bytes = 0;
    for (size_t i = 0; i < CODEC_COUNT && name[0] != '.'; i++) {
        size_t suffix = strlen(annal__codecs[i]->suffix);
        if (length < suffix || strcmp(name + length - suffix, annal__codecs[i]->suffix) != 0 ||
            annal_session_id_check((annal_slice){name, length - suffix}, NULL) == ANNAL_OK)
            continue;
        if (annal__context_path(context, &path, "events", name, NULL) == ANNAL_OK)
            (void)context->io->measure(context->io->arg, path.ptr, geteuid(), &regular, &bytes);
    }
    if (!regular)
        return false;
    (void)annal__fail(out_why, ANNAL_ERR_CORRUPT,
                      "events/ contains '%.300s', which is not the name of a session's journal: "
                      "move this file out of the store",
                      name);
    return true;
}
