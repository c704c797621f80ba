/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/wakeup_page.h"

#include "journal/base/alloc.h"
#include "journal/base/futex.h"
#include "journal/base/hash.h"
#include "journal/context.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define WAKEUP_MAGIC UINT64_C(0x314c4c45424c4e41) /* "ANLBELL1" in little-endian bytes */

_Static_assert(sizeof(struct wakeup_slot) == 256, "slots are 256 bytes");
_Static_assert(offsetof(struct wakeup_page, slots) == 4096, "the header is one page");

/* ---- The page ---- */

annal_status annal__wakeup_init(struct wakeup *wakeup, const struct context *context)
{
    wakeup->context = context;
    return pthread_mutex_init(&wakeup->lock, NULL) == 0 ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

void annal__wakeup_done(struct wakeup *wakeup)
{
    struct wakeup_map *map = atomic_exchange(&wakeup->map, NULL);
    while (map != NULL) {
        struct wakeup_map *older = map->older;
        wakeup->context->io->unmap(wakeup->context->io->arg, map->page, sizeof *map->page);
        annal__free(map);
        map = older;
    }
    pthread_mutex_destroy(&wakeup->lock);
}

/* Append zeros to the file up to the length of a page (rule 6). Return false if that is not
 * possible; a process that may not write uses only a complete file. */
static bool fill(const struct context *context, int fd, uint64_t bytes)
{
    static const char zeros[4096];
    const uint64_t whole = sizeof(struct wakeup_page);
    if (bytes < whole && context->read_only)
        return false;
    while (bytes < whole) {
        size_t piece = whole - bytes < sizeof zeros ? (size_t)(whole - bytes) : sizeof zeros;
        if (annal__io_write_all(context->io, fd, zeros, piece, bytes) < 0)
            return false;
        bytes += piece;
    }
    return true;
}

/* Return whether this process may use the page: a process of this boot and version wrote it, or it
 * is of an earlier boot, and then this process writes the present boot into it (rule 6). */
static bool claim(const struct context *context, struct wakeup_page *page)
{
    uint64_t boot[2];
    memcpy(boot, context->boot, sizeof boot);
    if (atomic_load(&page->boot[0]) == boot[0] && atomic_load(&page->boot[1]) == boot[1])
        return atomic_load(&page->magic) == WAKEUP_MAGIC;
    if (context->read_only)
        return false;
    atomic_store(&page->magic, WAKEUP_MAGIC);
    atomic_store(&page->boot[0], boot[0]);
    atomic_store(&page->boot[1], boot[1]);
    return true;
}

static struct wakeup_map *map_file(const struct context *context, int fd)
{
    const struct io *io = context->io;
    struct stat file;
    struct wakeup_map *map = annal__zalloc(sizeof *map);
    if (map == NULL || io->fstat(io->arg, fd, &file) < 0 || !S_ISREG(file.st_mode) ||
        !fill(context, fd, (uint64_t)file.st_size))
        goto failed;
    map->device = file.st_dev;
    map->inode = file.st_ino;
    map->page = io->map_shared(io->arg, fd, sizeof *map->page);
    if (map->page == MAP_FAILED)
        goto failed;
    if (claim(context, map->page))
        return map;
    io->unmap(io->arg, map->page, sizeof *map->page);

failed:
    annal__free(map);
    return NULL;
}

/* Map the file that has the name locks/bell now, unless it is mapped already (rule 7). With `make`,
 * create it if it is missing. The caller holds wakeup->lock. */
static void look_at_name(struct wakeup *wakeup, const char *path, bool make)
{
    const struct io *io = wakeup->context->io;
    struct wakeup_map *now = atomic_load(&wakeup->map);
    dev_t device;
    ino_t inode;
    if (now != NULL && io->identify(io->arg, path, &device, &inode) == 0 && device == now->device &&
        inode == now->inode)
        return;
    int fd =
        io->open(io->arg, path, O_RDWR | (make && !wakeup->context->read_only ? O_CREAT : 0), 0660);
    if (fd < 0)
        return;
    struct wakeup_map *fresh = map_file(wakeup->context, fd);
    io->close(io->arg, fd);
    if (fresh == NULL)
        return;
    fresh->older = now;
    atomic_store(&wakeup->map, fresh);
}

static void check_map(struct wakeup *wakeup, int64_t now_us, bool make)
{
    SCOPED_BUF path = {0};
    if (pthread_mutex_trylock(&wakeup->lock) != 0)
        /* another thread is already checking whether the name still belongs to the mapped file */
        return;
    if (annal__context_path(wakeup->context, &path, "locks", "bell", NULL) == ANNAL_OK)
        look_at_name(wakeup, path.ptr, make);
    atomic_store(&wakeup->checked_us, now_us == 0 ? 1 : now_us);
    pthread_mutex_unlock(&wakeup->lock);
}

struct wakeup_page *annal__wakeup_page(struct wakeup *wakeup, int64_t now_us, bool make)
{
    const struct wakeup_map *map = atomic_load_explicit(&wakeup->map, memory_order_acquire);
    int64_t checked_us = atomic_load_explicit(&wakeup->checked_us, memory_order_relaxed);
    int64_t every_us = map == NULL ? WAKEUP_SEEK_US : WAKEUP_CHECK_US;
    if (checked_us == 0 || now_us - checked_us >= every_us || (map == NULL && make)) {
        check_map(wakeup, now_us, make);
        map = atomic_load_explicit(&wakeup->map, memory_order_acquire);
    }
    return map == NULL ? NULL : map->page;
}

/* ---- Announcing ---- */

static uint64_t check_of(const uint64_t *words, size_t count, uint64_t ticket)
{
    return annal__hash(words, count * sizeof *words, ticket);
}

static size_t words_of(uint64_t id_bytes)
{
    return 2 + (size_t)((id_bytes + 7) / 8);
}

void annal__wakeup_announce(struct wakeup_page *page, annal_slice session, uint64_t end_seq)
{
    uint64_t words[WAKEUP_ENTRY_WORDS];
    size_t count = words_of(session.len);
    if (page == NULL)
        return;
    words[0] = end_seq;
    words[1] = session.len;
    /* The id may fill only a part of the last word, whose other bytes are zeros. */
    words[count - 1] = session.len > 0 ? 0 : words[count - 1];
    if (session.len > 0)
        memcpy(words + 2, session.ptr, session.len);
    uint64_t ticket = atomic_fetch_add(&page->tickets, 1);
    struct wakeup_slot *slot = &page->slots[ticket % WAKEUP_SLOTS];
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->check, check_of(words, count, ticket), memory_order_relaxed);
    atomic_store_explicit(&slot->stamp, ticket + 1, memory_order_release);
}

void annal__wakeup_wake(struct wakeup_page *page)
{
    if (page == NULL)
        return;
    atomic_fetch_add(&page->word, 1);
    if (atomic_load(&page->asleep) != 0 && atomic_exchange(&page->asleep, 0) != 0)
        annal__futex_wake_some(&page->word, 1);
}

void annal__wakeup_announce_all(struct wakeup *wakeup)
{
    struct wakeup_page *page =
        annal__wakeup_page(wakeup, annal__context_now_us(wakeup->context), false);
    annal__wakeup_announce(page, (annal_slice){NULL, 0}, 0);
    annal__wakeup_wake(page);
}

/* ---- Listening ---- */

static bool read_entry(struct wakeup_slot *slot, uint64_t ticket, struct wakeup_entry *out)
{
    uint64_t words[WAKEUP_ENTRY_WORDS];
    uint64_t id_bytes = atomic_load_explicit(&slot->words[1], memory_order_relaxed);
    if (id_bytes > ANNAL_SESSION_ID_BYTES_MAX)
        return false;
    size_t count = words_of(id_bytes);
    for (size_t i = 0; i < count; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
    if (words[1] != id_bytes ||
        check_of(words, count, ticket) != atomic_load_explicit(&slot->check, memory_order_relaxed))
        return false;
    memcpy(out->id, words + 2, (count - 2) * sizeof *words);
    out->session = (annal_slice){(const char *)out->id, (size_t)id_bytes};
    out->end_seq = words[0];
    return id_bytes == 0 || annal_session_id_check(out->session, NULL) == ANNAL_OK;
}

enum wakeup_found annal__wakeup_read(struct wakeup_page *page, uint64_t ticket,
                                     struct wakeup_entry *out)
{
    uint64_t tickets = atomic_load(&page->tickets);
    if (tickets == ticket)
        return WAKEUP_NOTHING;
    if (tickets - ticket > WAKEUP_SLOTS)
        return WAKEUP_LOST;
    struct wakeup_slot *slot = &page->slots[ticket % WAKEUP_SLOTS];
    uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
    if (stamp != ticket + 1)
        return stamp > ticket + 1 ? WAKEUP_LOST : WAKEUP_NOT_YET;
    return read_entry(slot, ticket, out) ? WAKEUP_ENTRY : WAKEUP_LOST;
}

bool annal__wakeup_sleep(struct wakeup_page *page, uint32_t value, int64_t timeout_us)
{
    atomic_store(&page->asleep, 1);
    if (atomic_load(&page->word) == value)
        annal__futex_wait(&page->word, value, timeout_us);
    if (atomic_load(&page->word) == value)
        return false;
    annal__futex_wake_some(&page->word, 2);
    atomic_fetch_add_explicit(&page->woken, 1, memory_order_relaxed);
    return true;
}
