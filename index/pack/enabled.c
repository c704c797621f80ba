/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STORE/packs/enabled, with a line `NAME` or `NAME at DIR` for each enabled pack. A change writes a
 * new file that replaces the old file, under the lock locks/packs; lines about other packs stay
 * unchanged.
 */
#include "index/pack/builtin.h"
#include "index/pack/packs.h"

#include "index/db/index_lock.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOCK_WAIT_MS 10000

struct change {
    annal_store *store;
    const char *name;
    const char *at;
    bool on;
};

static bool is_about(annal_slice line, const char *name)
{
    size_t skip = 0;
    while (skip < line.len && (line.ptr[skip] == ' ' || line.ptr[skip] == '\t'))
        skip++;
    size_t len = strlen(name);
    return line.len - skip >= len && memcmp(line.ptr + skip, name, len) == 0 &&
           (line.len - skip == len || strchr(" \t\r#", line.ptr[skip + len]) != NULL);
}

/* Copy the old text of the list of enabled packs without the lines about this pack, and add the new
 * line. *out_was_on is set to whether the old text had a line about the pack. */
static annal_status write_lines(const struct change *change, annal_slice old, struct buf *out,
                                bool *out_was_on, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t at = 0; status >= 0 && at < old.len;) {
        const char *newline = memchr(old.ptr + at, '\n', old.len - at);
        size_t len = newline == NULL ? old.len - at : (size_t)(newline - (old.ptr + at));
        annal_slice line = {old.ptr + at, len};
        at += len + 1;
        if (is_about(line, change->name))
            *out_was_on = true;
        else
            status = annal__buf_printf(out, "%.*s\n", ANNAL_FMT(line));
    }
    if (status >= 0 && change->on)
        status = change->at == NULL
                     ? annal__buf_printf(out, "%s\n", change->name)
                     : annal__buf_printf(out, "%s at %s\n", change->name, change->at);
    return status < 0 ? annal__fail(err, status, "cannot write the list of enabled packs")
                      : ANNAL_OK;
}

static annal_status rewrite(const struct change *change, annal_error *err)
{
    const struct io *io = annal__store_io(change->store);
    SCOPED_BUF path = {0}, old = {0}, fresh = {0};
    bool was_on = false;
    annal_status status = annal__buf_printf(&path, "%s/packs", annal_store_path(change->store));
    if (status >= 0 && annal__buf_cstr(&path) != NULL)
        status = annal__io_make_dir(io, path.ptr, err);
    if (status >= 0)
        status = annal__buf_printf(&path, "/enabled");
    if (status >= 0 && annal__buf_cstr(&path) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "compose a file name: out of memory");
    if (status >= 0)
        status = annal__packs_read_text(io, path.ptr, &old, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = ANNAL_OK;
    if (status >= 0)
        status = write_lines(change, annal__buf_slice(&old), &fresh, &was_on, err);
    if (status >= 0 && !change->on && !was_on)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "disable pack '%s': the pack is not enabled",
                             change->name);
    if (status >= 0)
        status =
            annal__io_publish_file(io, path.ptr, fresh.len == 0 ? "" : fresh.ptr, fresh.len, err);
    return status;
}

static annal_status run_change(const struct change *change, annal_error *err)
{
    struct index_lock lock;
    if (annal__session_list_is_read_only(change->store))
        return annal__fail(err, ANNAL_ERR_READONLY,
                           "cannot enable or disable pack '%s': the store is open for reading only",
                           change->name);
    annal_status status =
        annal__index_lock_init(&lock, annal__store_io(change->store), "packs", err);
    if (status < 0)
        return status;
    annal__store_wait_begin(change->store);
    status = annal__index_lock_take(
        &lock, annal_store_path(change->store),
        annal__deadline_after(annal__store_may_wait_ms(change->store, LOCK_WAIT_MS)), err);
    annal__store_wait_end(change->store);
    if (status >= 0) {
        status = rewrite(change, err);
        annal__index_lock_give(&lock);
    }
    annal__index_lock_done(&lock);
    return status;
}

annal_status annal_pack_enable(annal_store *store, const char *name, const char *at,
                               annal_error *err)
{
    const struct change change = {.store = store, .name = name, .at = at, .on = true};
    if (annal__builtin_pack(name) == NULL)
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           "no built-in pack is named '%s'; put a pack of your own into '%s/packs'",
                           name, annal_store_path(store));
    if (at != NULL && (at[0] == '\0' || strpbrk(at, "\n#") != NULL))
        return annal__fail(err, ANNAL_ERR_INVALID, "enable a pack: '%s' is not a valid directory",
                           at);
    if (strcmp(name, "core") == 0)
        return at == NULL
                   ? ANNAL_OK
                   : annal__fail(err, ANNAL_ERR_INVALID,
                                 "the database of pack 'core' cannot be moved out of the store");
    return run_change(&change, err);
}

annal_status annal_pack_disable(annal_store *store, const char *name, annal_error *err)
{
    const struct change change = {.store = store, .name = name};
    if (strcmp(name, "core") == 0)
        return annal__fail(err, ANNAL_ERR_INVALID, "pack 'core' is always enabled");
    return run_change(&change, err);
}
