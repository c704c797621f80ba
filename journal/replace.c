/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/replace.h"

#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/checkpoint.h"
#include "journal/lease.h"
#include "journal/replace_sweep.h"
#include "journal/replace_tombstone.h"
#include "journal/slot.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/sys/delete.h"
#include "journal/sys/seam.h"
#include "journal/torn_tail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Tombstones ---- */

/* Write a durable tombstone with this header (rule 2). */
static annal_status put_tombstone(annal_store *store, const char *file, annal_slice header,
                                  annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = annal__context_path(&store->context, &path, "events", TOMBSTONES, err);
    if (status == ANNAL_OK)
        status = annal__io_make_dir(store->context.io, path.ptr, err);
    /* Another process may have created events/.gone just now, and died before it synced events/. */
    atomic_store(&store->events.dirty, true);
    if (status == ANNAL_OK)
        status = annal__checkpoint_events(&store->events, err);
    if (status == ANNAL_OK)
        status = annal__replace_tombstone_path(&store->context, file, &path, err);
    if (status == ANNAL_OK)
        status = annal__io_publish_file(store->context.io, path.ptr, header.ptr, header.len, err);
    atomic_store(&store->tombstones, true);
    return status;
}

struct tombstone_scope {
    annal_store *store;
    annal_slice session;
};

static annal_status put_record_tombstone(void *arg, const struct record *record, annal_error *err)
{
    const struct tombstone_scope *scope = arg;
    SCOPED_BUF frame = {.limit = FRAME_ENVELOPE_BYTES};
    struct frame_header header = {.session = record->session};
    char text[FILE_ID_TEXT + 1];
    uint64_t h;
    if (!annal__slice_same(record->session, scope->session))
        return ANNAL_OK;
    memcpy(header.file, record->file, sizeof header.file);
    annal__codec_file_id_text(record->file, text);
    annal_status status = annal__codec_of(record->format)->encode_header(&frame, &header, &h);
    if (status < 0)
        status = annal__fail(err, status, "make a tombstone: out of memory");
    else
        status = put_tombstone(scope->store, text, annal__buf_slice(&frame), err);
    return status;
}

static annal_status find_record(void *arg, const struct record *record, annal_error *err)
{
    struct change *change = arg;
    (void)err;
    if (annal__slice_same(record->session, annal__session_id(change->session)) &&
        memcmp(record->file, change->header.file, sizeof record->file) == 0)
        change->is_logged = true;
    return ANNAL_OK;
}

/* ---- Examining the journal ---- */

struct fork_search {
    annal_store *store;
    annal_slice session;
    annal_error *err;
};

static int refuse_fork(void *arg, annal_slice other, uint64_t bytes)
{
    (void)bytes;
    const struct fork_search *search = arg;
    SCOPED_BUF path = {0};
    SCOPED_BUF line = {.limit = FRAME_ENVELOPE_BYTES};
    struct frame_header header = {0};
    const struct codec *codec = NULL;
    annal_status status =
        annal__store_journal_find(&search->store->context, other, &path, &codec, search->err);
    if (status == ANNAL_OK && codec != NULL)
        status =
            annal__replace_read_header(search->store, path.ptr, codec, &line, &header, search->err);
    if (status == ANNAL_OK && line.len > 0 && annal__slice_same(header.fork, search->session))
        status = annal__fail(search->err, ANNAL_ERR_CONFLICT,
                             "session '%.*s' is needed by its fork '%.*s'; delete the fork first",
                             ANNAL_FMT(search->session), ANNAL_FMT(other));
    return status;
}

/* Find the session's journal and read its header. ANNAL_ERR_NOTFOUND: it does not exist. */
static annal_status look_at_journal(struct change *change, annal_error *err)
{
    annal_store *store = change->store;
    annal_slice id = annal__session_id(change->session);
    annal_status status =
        annal__store_journal_find(&store->context, id, &change->path, &change->codec, err);
    if (status == ANNAL_OK && change->codec == NULL)
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%s'", change->session->id);
    if (status == ANNAL_OK)
        status = annal__replace_read_header(store, change->path.ptr, change->codec, &change->frame,
                                            &change->header, err);
    /* If the file is a copy of another session's journal, its header does not describe this
     * session: ignore the header. */
    if (status == ANNAL_OK && change->frame.len > 0 &&
        annal__codec_check_owner(&change->header, id, NULL) < 0)
        annal__buf_clear(&change->frame);
    return status;
}

annal_status annal__replace_examine(struct change *change, annal_error *err)
{
    annal_store *store = change->store;
    annal_slice id = annal__session_id(change->session);
    struct stat file;
    annal_status status = look_at_journal(change, err);
    if (status < 0)
        return status;
    struct fork_search search = {store, id, err};
    status = annal__session_list_read(store, refuse_fork, &search, err);
    if (status < 0)
        return status;
    /* A damaged journal can be deleted, too: then less is reported about it. */
    if (annal_session_info_get(store, id, &change->info, NULL) < 0) {
        change->info = (annal_session_info){.format = change->codec->format};
        memcpy(change->info.session, id.ptr, id.len);
        if (store->context.io->stat(store->context.io->arg, change->path.ptr, &file) == 0)
            change->info.bytes = (uint64_t)file.st_size;
    }
    return ANNAL_OK;
}

annal_status annal__replace_put_tombstone(struct change *change, annal_error *err)
{
    char file[FILE_ID_TEXT + 1];
    if (change->frame.len > 0) {
        annal_error failure = {0};
        annal__codec_file_id_text(change->header.file, file);
        annal_status status =
            put_tombstone(change->store, file, annal__buf_slice(&change->frame), &failure);
        /* On a full disk no tombstone is needed if no log contains records that recovery would
         * write to the journal. */
        if (annal__error_is_no_space(&failure) &&
            annal__slots_each_record(change->store, SLOTS_ALL, find_record, change, NULL) ==
                ANNAL_OK &&
            !change->is_logged)
            return ANNAL_OK;
        return annal__error_pass(err, status, &failure);
    }
    /* The header is damaged, or belongs to another session: write a tombstone for every journal of
     * this session that a log names. */
    struct tombstone_scope scope = {change->store, annal__session_id(change->session)};
    return annal__slots_each_record(change->store, SLOTS_ALL, put_record_tombstone, &scope, err);
}

/* ---- Deleting ---- */

/* Write a tombstone, and remove the journal (rule 3). */
static annal_status remove_journal(struct change *change, annal_error *err)
{
    annal_store *store = change->store;
    annal_status status = annal__replace_put_tombstone(change, err);
    if (status < 0)
        return status;
    if (store->context.io->unlink(store->context.io->arg, change->path.ptr) < 0)
        return annal__fail_errno(err, "cannot delete %s", change->path.ptr);
    atomic_store(&store->events.dirty, true);
    return annal__checkpoint_events(&store->events, err);
}

/* Delete the journal. If this process's held list does not contain the session, keep other
 * processes from taking it by locking locks/claim, and then look for the journal again. */
static annal_status delete_journal(struct change *change, annal_error *err)
{
    const struct session *session = change->session;
    if (!session->unlisted)
        return remove_journal(change, err);
    annal_status status = annal__slot_keep_off(change->store, annal__session_id(session), err);
    if (status < 0)
        return status;
    status = look_at_journal(change, err);
    if (status == ANNAL_OK)
        status = remove_journal(change, err);
    annal__slot_let_on(change->store);
    return status;
}

/* ---- Deleting everything of a session ---- */

annal_status annal__replace_delete(annal_store *store, annal_slice session,
                                   annal_session_info *out_info, annal_error *err)
{
    struct change change;
    annal_status status = annal__replace_begin(&change, store, session, false, err);
    if (status == ANNAL_OK)
        status = annal__replace_examine(&change, err);
    /* The journal is removed last: after a failure, the session still exists and can be deleted
     * again. */
    if (status == ANNAL_OK)
        status = annal__torn_forget(&store->context, session, err);
    if (status == ANNAL_OK)
        status = annal__lease_forget(store, session, err);
    if (status == ANNAL_OK)
        annal__replace_remove_unfinished(store);
    if (status == ANNAL_OK)
        status = delete_journal(&change, err);
    /* An interrupted conversion may have left a second journal. */
    while (status == ANNAL_OK && annal__store_journal_is_double(&store->context, session, NULL)) {
        status = look_at_journal(&change, err);
        if (status == ANNAL_OK)
            status = delete_journal(&change, err);
    }
    if (status == ANNAL_OK && out_info != NULL)
        *out_info = change.info;
    annal__replace_end(&change);
    return status;
}

annal_status annal__replace_wipe_logs(annal_store *store, annal_error *err)
{
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status == ANNAL_OK)
        status = annal__slots_wipe(store, annal__context_deadline(&store->context), err);
    return status;
}
