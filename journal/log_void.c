/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/log_void.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define VOID_VERSION 1u
#define VOID_BYTES   48u
#define VOID_HASH_AT 40u

static const char void_magic[8] = {'A', 'N', 'N', 'A', 'L', 'V', 'O', 'I'};

/* Compose the path of the void file, "commit/<nn>.void", from the path of the log,
 * "commit/<nn>.log". */
static void void_path(const struct log *log, char out[sizeof log->path + 8])
{
    snprintf(out, sizeof log->path + 8, "%.*s.void", (int)(strlen(log->path) - strlen(".log")),
             log->path);
}

static void encode(char out[VOID_BYTES], const struct log *log, uint64_t group)
{
    memset(out, 0, VOID_BYTES);
    memcpy(out, void_magic, sizeof void_magic);
    annal__log_put(out + 8, VOID_VERSION, 4);
    memcpy(out + 16, log->slot_id, LOG_SLOT_ID_BYTES);
    annal__log_put(out + 32, group, 8);
    annal__log_put(out + VOID_HASH_AT, annal__hash(out, VOID_HASH_AT, 0), 8);
}

annal_status annal__log_void_write(const struct log *log, uint64_t group, annal_error *err)
{
    char path[sizeof log->path + 8];
    char bytes[VOID_BYTES];
    void_path(log, path);
    encode(bytes, log, group);
    return annal__io_publish_file(log->io, path, bytes, sizeof bytes, err);
}

annal_status annal__log_void_read(const struct log *log, uint64_t *out_group, annal_error *err)
{
    char path[sizeof log->path + 8];
    char bytes[VOID_BYTES];
    const struct io *io = log->io;
    annal_status status = ANNAL_OK;
    void_path(log, path);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0 && errno == ENOENT) {
        *out_group = VOID_NOTHING;
        return ANNAL_OK;
    }
    if (fd < 0)
        return annal__fail_errno(err, "cannot open %s", path);
    ssize_t got = annal__io_read_full(io, fd, bytes, sizeof bytes, 0);
    if (got < 0)
        status = annal__fail_errno(err, "cannot read %s", path);
    else if (got < (ssize_t)sizeof bytes || memcmp(bytes, void_magic, sizeof void_magic) != 0 ||
             annal__log_take(bytes + VOID_HASH_AT, 8) != annal__hash(bytes, VOID_HASH_AT, 0))
        status =
            annal__fail(err, ANNAL_ERR_CORRUPT,
                        "the file %s is damaged, so it is unknown which groups of its commit log "
                        "were undone; to accept all groups, move this file out of the store",
                        path);
    else if (annal__log_take(bytes + 8, 4) != VOID_VERSION)
        status =
            annal__fail(err, ANNAL_ERR_UNSUPPORTED, "the file %s has the unknown format version %u",
                        path, (unsigned)annal__log_take(bytes + 8, 4));
    else if (memcmp(bytes + 16, log->slot_id, LOG_SLOT_ID_BYTES) != 0)
        *out_group = VOID_NOTHING; /* the void file belongs to another log (rule 2) */
    else
        *out_group = annal__log_take(bytes + 32, 8);
    io->close(io->arg, fd);
    return status;
}

annal_status annal__log_void_find_groups(struct log *log, struct log_group **out_groups,
                                         size_t *out_count, bool *out_void, annal_error *err)
{
    uint64_t never = VOID_NOTHING;
    annal_status status = annal__log_void_read(log, &never, err);
    if (status == ANNAL_OK)
        status = annal__log_find_groups(log, out_groups, out_count, err);
    if (status < 0)
        return status;
    while (*out_count > 0 && (*out_groups)[*out_count - 1].group >= never)
        --*out_count;
    *out_void = never != VOID_NOTHING;
    return ANNAL_OK;
}

void annal__log_void_remove(const struct log *log)
{
    char path[sizeof log->path + 8];
    void_path(log, path);
    log->io->unlink(log->io->arg, path);
}
