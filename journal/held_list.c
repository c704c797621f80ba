/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/held_list.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HELD_MAGIC         UINT64_C(0x31444c45484c4e41) /* "ANLHELD1" in little-endian bytes */
#define HELD_HEADER_BYTES  ((size_t)4096)
#define HELD_ENTRIES_FIRST 64
#define HELD_MAP_BYTES     (HELD_HEADER_BYTES + HELD_ENTRIES_MAX * sizeof(struct held_entry))

_Static_assert(sizeof(struct held_entry) == 256, "entries are 256 bytes");
_Static_assert(offsetof(struct held_header, named) == 96 &&
                   offsetof(struct held_header, next_inode) == 104,
               "see docs/format.md for the offsets");
_Static_assert(sizeof(struct held_header) <= 4096, "the header fits its page");

static size_t file_bytes(uint32_t entries)
{
    return HELD_HEADER_BYTES + entries * sizeof(struct held_entry);
}

/* Append zeros to the file up to this length, so that no access meets a hole (rule 6). */
static int grow_file(const struct io *io, int fd, uint64_t from, uint64_t to)
{
    static const char zeros[4096];
    while (from < to) {
        size_t piece = to - from < sizeof zeros ? (size_t)(to - from) : sizeof zeros;
        if (annal__io_write_all(io, fd, zeros, piece, from) < 0)
            return -1;
        from += piece;
    }
    return 0;
}

annal_status annal__held_open(const struct io *io, const char *path, bool create,
                              struct held *out_held, annal_error *err)
{
    annal_status status = ANNAL_OK;
    void *map = MAP_FAILED;
    struct stat file;
    int fd = io->open(io->arg, path, O_RDWR | (create ? O_CREAT : 0), 0660);
    if (fd < 0 && errno == ENOENT) {
        *out_held = (struct held){.io = io, .fd = -1};
        return ANNAL_OK;
    }
    if (fd < 0 || io->fstat(io->arg, fd, &file) < 0) {
        status = annal__fail_errno(err, "cannot open %s", path);
        goto done;
    }
    uint64_t least = file_bytes(HELD_ENTRIES_FIRST);
    if ((uint64_t)file.st_size < least && grow_file(io, fd, (uint64_t)file.st_size, least) < 0) {
        status = annal__fail_errno(err, "cannot write %s", path);
        goto done;
    }
    map = io->map_shared(io->arg, fd, HELD_MAP_BYTES);
    if (map == MAP_FAILED) {
        status = annal__fail_errno(err, "cannot map %s", path);
        goto done;
    }
    uint64_t bytes = (uint64_t)file.st_size < least ? least : (uint64_t)file.st_size;
    uint64_t room = (bytes - HELD_HEADER_BYTES) / sizeof(struct held_entry);
    *out_held =
        (struct held){.io = io,
                      .fd = fd,
                      .header = map,
                      .entries = room < HELD_ENTRIES_MAX ? (uint32_t)room : HELD_ENTRIES_MAX};
    fd = -1; /* the descriptor belongs to the list now */

done:
    if (fd >= 0)
        io->close(io->arg, fd);
    return status;
}

void annal__held_close(struct held *held)
{
    if (held->header != NULL)
        held->io->unmap(held->io->arg, held->header, HELD_MAP_BYTES);
    if (held->io != NULL && held->fd >= 0)
        held->io->close(held->io->arg, held->fd);
    *held = (struct held){.fd = -1};
}

bool annal__held_is_for(const struct held *held, const uint8_t boot[16], const struct stat *log)
{
    const struct held_header *header = held->header;
    return header != NULL && atomic_load(&header->magic) == HELD_MAGIC &&
           memcmp(header->boot, boot, 16) == 0 && header->device == (uint64_t)log->st_dev &&
           (atomic_load(&header->next_inode) == (uint64_t)log->st_ino ||
            atomic_load(&header->inode) == (uint64_t)log->st_ino);
}

struct held_entry *annal__held_entry(const struct held *held, uint32_t index)
{
    return (struct held_entry *)(void *)((char *)held->header + file_bytes(index));
}

uint32_t annal__held_entries(const struct held *held)
{
    return atomic_load(&held->entries);
}

void annal__held_clear(struct held *held)
{
    struct held_header *header = held->header;
    atomic_store(&header->magic, 0);
    atomic_store(&header->state, HELD_UNKNOWN);
    atomic_store(&header->alone, 0);
    atomic_store(&header->named, 0);
    annal__held_remove_all(held);
    header->entries = annal__held_entries(held);
    header->pid = (uint32_t)getpid();
}

void annal__held_bind(struct held *held, const uint8_t boot[16], const struct stat *log)
{
    struct held_header *header = held->header;
    memcpy(header->boot, boot, 16);
    header->device = (uint64_t)log->st_dev;
    annal__held_bind_done(held, log);
    atomic_store(&header->magic, HELD_MAGIC);
}

/* Record in the list the log that replaces the present log. A process that is stopped or dies
 * before annal__held_bind_done() leaves a list that is valid for both logs. */
void annal__held_bind_next(const struct held *held, const struct stat *next)
{
    atomic_store(&held->header->named, 0);
    atomic_store(&held->header->next_inode, (uint64_t)next->st_ino);
}

void annal__held_bind_done(const struct held *held, const struct stat *log)
{
    atomic_store(&held->header->inode, (uint64_t)log->st_ino);
    atomic_store(&held->header->next_inode, 0);
}

annal_slice annal__held_id(const struct held_entry *entry)
{
    size_t bytes = entry->id_bytes;
    return (annal_slice){entry->id, bytes <= ANNAL_SESSION_ID_BYTES_MAX ? bytes : 0};
}

static uint64_t id_hash(annal_slice session)
{
    uint64_t hash = annal__hash(session.ptr, session.len, 0);
    return hash == 0 ? 1 : hash;
}

int annal__held_find(const struct held *held, annal_slice session)
{
    uint32_t entries = annal__held_entries(held);
    uint64_t hash = id_hash(session);
    for (uint32_t i = 0; i < entries; i++) {
        struct held_entry *entry = annal__held_entry(held, i);
        if (atomic_load(&entry->hash) == hash && entry->id_bytes == session.len &&
            memcmp(entry->id, session.ptr, session.len) == 0)
            return (int)i;
    }
    return -1;
}

static void fill_entry(struct held_entry *entry, annal_slice session)
{
    atomic_store(&entry->word, HELD_QUIET);
    atomic_store(&entry->loose, 0);
    memcpy(entry->id, session.ptr, session.len);
    entry->id_bytes = (uint32_t)session.len;
    /* last, because the hash makes the entry valid (rule 3) */
    atomic_store(&entry->hash, id_hash(session));
}

/* Return the index of a free entry, or the number of entries. */
static uint32_t find_free(const struct held *held, uint32_t entries)
{
    for (uint32_t i = 0; i < entries; i++) {
        uint32_t index = (held->next + i) % entries;
        if (atomic_load(&annal__held_entry(held, index)->hash) == 0)
            return index;
    }
    return entries;
}

annal_status annal__held_add(struct held *held, annal_slice session, uint32_t *out_index,
                             annal_error *err)
{
    uint32_t entries = annal__held_entries(held);
    uint32_t index = find_free(held, entries);
    if (index == HELD_ENTRIES_MAX)
        return annal__fail(
            err, ANNAL_ERR_LIMIT,
            "take session '%.*s': this process already owns %d sessions, the maximum",
            ANNAL_FMT(session), HELD_ENTRIES_MAX);
    if (index == entries) {
        /* An interrupted growth may leave room for any number of entries, so twice as many may be
         * more than HELD_ENTRIES_MAX. */
        uint32_t more = entries * 2 < HELD_ENTRIES_MAX ? entries * 2 : HELD_ENTRIES_MAX;
        if (grow_file(held->io, held->fd, file_bytes(entries), file_bytes(more)) < 0)
            return annal__fail_errno(err,
                                     "take session '%.*s': cannot enlarge the list of sessions "
                                     "that this process owns, in locks/",
                                     ANNAL_FMT(session));
        atomic_store(&held->entries, more);
        held->header->entries = more;
    }
    fill_entry(annal__held_entry(held, index), session);
    held->next = index + 1;
    *out_index = index;
    return ANNAL_OK;
}

void annal__held_remove(const struct held *held, uint32_t index)
{
    struct held_entry *entry = annal__held_entry(held, index);
    atomic_store(&entry->hash, 0);
    /* Wake all processes that sleep on the word; adding 2 changes every value it can have. */
    atomic_fetch_add(&entry->word, 2);
    annal__futex_wake(&entry->word);
}

void annal__held_remove_all(const struct held *held)
{
    uint32_t entries = annal__held_entries(held);
    for (uint32_t i = 0; i < entries; i++) {
        if (atomic_load(&annal__held_entry(held, i)->hash) != 0)
            annal__held_remove(held, i);
    }
}

bool annal__held_has_note(const struct held *held, uint64_t whole)
{
    uint32_t entries = annal__held_entries(held);
    for (uint32_t i = 0; whole != 0 && i < entries; i++)
        if (atomic_load(&annal__held_entry(held, i)->whole) == whole)
            return true;
    return false;
}

bool annal__held_is_to_wipe(const struct held *held, uint32_t *out_wanted)
{
    uint32_t wanted = atomic_load(&held->header->wipe_wanted);
    if (out_wanted != NULL)
        *out_wanted = wanted;
    return wanted != atomic_load(&held->header->wipe_done);
}

void annal__held_wiped(const struct held *held, uint32_t wanted)
{
    atomic_store(&held->header->wipe_done, wanted);
    annal__futex_wake(&held->header->wipe_done);
}
