/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guards of a user's pack when its file was last valid.
 *
 * A file that is empty, incomplete or misspelt does not show which events its pack guards. So each
 * time a valid file is read, the types that it guards or fills are written to
 * STORE/packs/.NAME.guards, one in each line. Without this list only the file itself is used.
 */
#include "index/pack/packs.h"

#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <string.h>

static annal_status note_path(const char *source, struct buf *out, annal_error *err)
{
    const char *name = strrchr(source, '/') + 1;
    annal_status status = annal__buf_printf(out, "%.*s.%.*s.guards", (int)(name - source), source,
                                            (int)(strlen(name) - strlen(".sql")), name);
    if (status < 0 || annal__buf_cstr(out) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compose a file name: out of memory");
    return ANNAL_OK;
}

static annal_status list_types(const annal_pack *pack, struct buf *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < pack->section_count; i++) {
        const struct pack_section *section = &pack->sections[i];
        if (section->kind != PACK_FILL && section->guard == NULL)
            continue;
        for (const char *at = section->types; status >= 0 && *at != '\0'; at += strlen(at) + 1)
            status = annal__buf_printf(out, "%s\n", at);
    }
    return status < 0 ? annal__fail(err, status, "cannot list the guards of a pack") : ANNAL_OK;
}

annal_status annal__kept_guards_note(const struct io *io, const struct pack_slot *slot,
                                     annal_error *err)
{
    SCOPED_BUF path = {0}, old = {0}, fresh = {0};
    annal_error unused;
    annal_status status = note_path(slot->source, &path, err);
    if (status >= 0)
        status = list_types(slot->pack, &fresh, err);
    if (status >= 0 && annal__packs_read_text(io, path.ptr, &old, &unused) == ANNAL_ERR_NOMEM)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list the guards of a pack: out of memory");
    if (status >= 0 && !annal__slice_same(annal__buf_slice(&old), annal__buf_slice(&fresh)) &&
        annal__io_publish_file(io, path.ptr, fresh.len == 0 ? "" : fresh.ptr, fresh.len, &unused) ==
            ANNAL_ERR_NOMEM)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list the guards of a pack: out of memory");
    return status;
}

annal_status annal__kept_guards_add(const struct io *io, const char *source, struct buf *list,
                                    bool *out_known, annal_error *err)
{
    SCOPED_BUF path = {0}, text = {0};
    annal_error why = {0};
    annal_status status = note_path(source, &path, err);
    annal_status got = status < 0 ? status : annal__packs_read_text(io, path.ptr, &text, &why);
    *out_known = got >= 0;
    for (size_t i = 0; got >= 0 && i < text.len; i++)
        if (text.ptr[i] == '\n')
            text.ptr[i] = '\0';
    if (got >= 0)
        status = annal__buf_append_slice(list, annal__buf_slice(&text));
    if (status < 0 || got == ANNAL_ERR_NOMEM)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list the guards of a pack: out of memory");
    return status;
}
