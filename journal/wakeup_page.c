/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/wakeup_page.h"

#include "journal/base/alloc.h"
#include "journal/base/hash.h"
#include "journal/store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define BELL_MAGIC UINT64_C(0x314c4c45424c4e41) /* "ANLBELL1" */

_Static_assert(sizeof(struct bell_slot) == 256, "slots are 256 bytes");
_Static_assert(offsetof(struct bell_page, slots) == 4096, "the header is one page");

/* ---- The page ---- */

annal_status annal__bell_init(struct bell *bell)
{
    return pthread_mutex_init(&bell->lock, NULL) == 0 ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

void annal__bell_done(annal_store *store)
{
    struct bell_map *map = atomic_exchange(&store->bell.map, NULL);
    while (map != NULL) {
        struct bell_map *older = map->older;
        store->io->unmap(store->io->arg, map->page, sizeof *map->page);
        annal__free(map);
        map = older;
    }
    pthread_mutex_destroy(&store->bell.lock);
}

/*
 * Rule (6): fill the file to the length of a page. A process that may not write uses it unchanged.
 */
static bool fill(const annal_store *store, int fd, uint64_t bytes)
{
    static const char zeros[4096];
    const uint64_t whole = sizeof(struct bell_page);
    if (bytes < whole && store->read_only)
        return false;
    while (bytes < whole) {
        size_t piece = whole - bytes < sizeof zeros ? (size_t)(whole - bytes) : sizeof zeros;
        if (annal__write_all(store->io, fd, zeros, piece, bytes) < 0)
            return false;
        bytes += piece;
    }
    return true;
}

/* Rule (6): whether we may use it. */
static bool claim(const annal_store *store, struct bell_page *page)
{
    uint64_t boot[2];
    memcpy(boot, store->boot, sizeof boot);
    if (atomic_load(&page->boot[0]) == boot[0] && atomic_load(&page->boot[1]) == boot[1])
        return atomic_load(&page->magic) == BELL_MAGIC;
    if (store->read_only)
        return false;
    atomic_store(&page->magic, BELL_MAGIC);
    atomic_store(&page->boot[0], boot[0]);
    atomic_store(&page->boot[1], boot[1]);
    return true;
}

static struct bell_map *map_file(const annal_store *store, int fd)
{
    const struct io *io = store->io;
    struct stat file;
    struct bell_map *map = annal__zalloc(sizeof *map);
    if (map == NULL || io->fstat(io->arg, fd, &file) < 0 || !S_ISREG(file.st_mode) ||
        !fill(store, fd, (uint64_t)file.st_size))
        goto failed;
    map->device = file.st_dev;
    map->inode = file.st_ino;
    map->page = io->map_shared(io->arg, fd, sizeof *map->page);
    if (map->page == MAP_FAILED)
        goto failed;
    if (claim(store, map->page))
        return map;
    io->unmap(io->arg, map->page, sizeof *map->page);

failed:
    annal__free(map);
    return NULL;
}

/* Rule (7). Lock held. */
static void look_at_name(annal_store *store, const char *path, bool make)
{
    const struct io *io = store->io;
    struct bell_map *now = atomic_load(&store->bell.map);
    dev_t device;
    ino_t inode;
    if (now != NULL && io->identify(io->arg, path, &device, &inode) == 0 && device == now->device &&
        inode == now->inode)
        return;
    int fd = io->open(io->arg, path, O_RDWR | (make && !store->read_only ? O_CREAT : 0), 0660);
    if (fd < 0)
        return;
    struct bell_map *fresh = map_file(store, fd);
    io->close(io->arg, fd);
    if (fresh == NULL)
        return;
    fresh->older = now;
    atomic_store(&store->bell.map, fresh);
}

static void check_map(annal_store *store, int64_t now_us, bool make)
{
    struct bell *bell = &store->bell;
    struct buf path = {0};
    if (pthread_mutex_trylock(&bell->lock) != 0)
        return; /* another thread is doing it */
    if (annal__store_path(store, &path, "locks", "bell", NULL) == ANNAL_OK)
        look_at_name(store, path.ptr, make);
    atomic_store(&bell->checked_us, now_us == 0 ? 1 : now_us);
    pthread_mutex_unlock(&bell->lock);
    annal__buf_done(&path);
}

struct bell_page *annal__bell_page(annal_store *store, int64_t now_us, bool make)
{
    struct bell *bell = &store->bell;
    const struct bell_map *map = atomic_load_explicit(&bell->map, memory_order_acquire);
    int64_t checked_us = atomic_load_explicit(&bell->checked_us, memory_order_relaxed);
    int64_t every_us = map == NULL ? BELL_SEEK_US : BELL_CHECK_US;
    if (checked_us == 0 || now_us - checked_us >= every_us || (map == NULL && make)) {
        check_map(store, now_us, make);
        map = atomic_load_explicit(&bell->map, memory_order_acquire);
    }
    return map == NULL ? NULL : map->page;
}

/* ---- Ringing ---- */

static uint64_t check_of(const uint64_t *words, size_t count, uint64_t ticket)
{
    return annal__hash(words, count * sizeof *words, ticket);
}

static size_t words_of(uint64_t id_bytes)
{
    return 2 + (size_t)((id_bytes + 7) / 8);
}

void annal__bell_say(struct bell_page *page, annal_slice session, uint64_t end_seq)
{
    uint64_t words[BELL_ENTRY_WORDS];
    size_t count = words_of(session.len);
    if (page == NULL)
        return;
    words[0] = end_seq;
    words[1] = session.len;
    /* The id may fill only a part of the last word. */
    words[count - 1] = session.len > 0 ? 0 : words[count - 1];
    if (session.len > 0)
        memcpy(words + 2, session.ptr, session.len);
    uint64_t ticket = atomic_fetch_add(&page->tickets, 1);
    struct bell_slot *slot = &page->slots[ticket % BELL_SLOTS];
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->check, check_of(words, count, ticket), memory_order_relaxed);
    atomic_store_explicit(&slot->stamp, ticket + 1, memory_order_release);
}

void annal__bell_ring(struct bell_page *page)
{
    if (page == NULL)
        return;
    atomic_fetch_add(&page->word, 1);
    if (atomic_load(&page->asleep) != 0 && atomic_exchange(&page->asleep, 0) != 0)
        annal__futex_wake_some(&page->word, 1);
}

void annal__bell_ring_all(annal_store *store)
{
    struct bell_page *page = annal__bell_page(store, annal__now_us(store), false);
    annal__bell_say(page, (annal_slice){NULL, 0}, 0);
    annal__bell_ring(page);
}

/* ---- Listening ---- */

static bool read_entry(struct bell_slot *slot, uint64_t ticket, struct bell_entry *out)
{
    uint64_t words[BELL_ENTRY_WORDS];
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

enum bell_heard annal__bell_hear(struct bell_page *page, uint64_t ticket, struct bell_entry *out)
{
    uint64_t tickets = atomic_load(&page->tickets);
    if (tickets == ticket)
        return BELL_NOTHING;
    if (tickets - ticket > BELL_SLOTS)
        return BELL_LOST;
    struct bell_slot *slot = &page->slots[ticket % BELL_SLOTS];
    uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
    if (stamp != ticket + 1)
        return stamp > ticket + 1 ? BELL_LOST : BELL_NOT_YET;
    return read_entry(slot, ticket, out) ? BELL_ENTRY : BELL_LOST;
}

bool annal__bell_sleep(struct bell_page *page, uint32_t value, int64_t timeout_us)
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
