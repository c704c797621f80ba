/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which packs a store runs.
 *
 * (1) STORE/packs/enabled lists built-in packs, one in each line: `NAME` or `NAME at DIR`; # begins
 *     a comment. STORE/packs/NAME.sql are packs of the user, which are enabled by their presence.
 *     core always runs, and has sessions.db to itself.
 * (2) A pack with an error (an unknown name, SQL that does not compile, the name of another pack)
 *     does not run: its slot contains the error. All other packs run.
 * (3) Each time the set is requested, the files in packs/ are compared with those of the last set
 *     (names, sizes, times, inodes). If it changed, a new set is read, with connections of its own;
 *     the old set lives until its last user releases it.
 * (4) FILE is in STORE, in STORE/DIR (`in DIR`), or in the directory that `at DIR` in the list
 *     names. Packs with the same file share one database.
 */
#include "index/pack/packs.h"
#include "index/pack/builtin.h"

#include "index/index.h"
#include "index/sys/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACK_NAME_BYTES_MAX 100

static const struct io *io_of(const annal_index *index)
{
    return annal__store_io(index->store);
}

/* ---- The content of packs/ ---- */

struct listing {
    struct buf names; /* names of the files, each followed by a NUL */
    size_t count;
};

static int note_name(void *arg, const char *name)
{
    struct listing *listing = arg;
    size_t len = strlen(name);
    bool counts = strcmp(name, "enabled") == 0 ||
                  (len > 4 && name[0] != '.' && strcmp(name + len - 4, ".sql") == 0);
    if (!counts)
        return 0;
    listing->count++;
    /* 1 ends the listing: memory ran out */
    return annal__buf_append(&listing->names, name, len + 1) < 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* List `enabled` and the files *.sql in STORE/packs/, sorted. The caller frees *out, which points
 * into listing->names. */
static annal_status list_packs(const struct io *io, const char *store, struct listing *listing,
                               const char ***out, annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = annal__buf_printf(&path, "%s/packs", store);
    if (status >= 0 && annal__buf_cstr(&path) == NULL)
        status = ANNAL_ERR_NOMEM;
    if (status >= 0) {
        int listed = io->list(io->arg, path.ptr, note_name, listing);
        if (listed > 0)
            status = ANNAL_ERR_NOMEM;
        else if (listed < 0 && errno != ENOENT)
            status = annal__fail_errno(err, "cannot list '%s'", path.ptr);
    }
    const char **names = status < 0 ? NULL : annal__zalloc((listing->count + 1) * sizeof *names);
    if (status >= 0 && names == NULL)
        status = ANNAL_ERR_NOMEM;
    if (status == ANNAL_ERR_NOMEM)
        return annal__fail(err, status, "cannot list the packs");
    if (status < 0)
        return status;
    const char *at = listing->names.ptr;
    for (size_t i = 0; i < listing->count; i++, at += strlen(at) + 1)
        names[i] = at;
    if (listing->count > 1)
        qsort(names, listing->count, sizeof *names, by_name);
    *out = names;
    return ANNAL_OK;
}

static annal_status pack_path(const char *store, const char *name, struct buf *out,
                              annal_error *err)
{
    annal__buf_clear(out);
    if (annal__buf_printf(out, "%s/packs/%s", store, name) < 0 || annal__buf_cstr(out) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compose a file name: out of memory");
    return ANNAL_OK;
}

static annal_status look(annal_index *index, const char *const *names, size_t count,
                         uint64_t *out_seen, annal_error *err)
{
    SCOPED_BUF path = {0};
    uint64_t seen = 0;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < count; i++) {
        struct stat file = {0};
        status = pack_path(annal_store_path(index->store), names[i], &path, err);
        if (status < 0 || io_of(index)->stat(io_of(index)->arg, path.ptr, &file) < 0)
            continue;
        const uint64_t facts[] = {(uint64_t)file.st_ino, (uint64_t)file.st_size,
                                  (uint64_t)file.st_mtim.tv_sec, (uint64_t)file.st_mtim.tv_nsec};
        seen = annal__hash(names[i], strlen(names[i]) + 1, seen);
        seen = annal__hash(facts, sizeof facts, seen);
    }
    *out_seen = seen;
    return status;
}

/* ---- Slots ---- */

static struct pack_slot *add_slot(struct pack_set *set, annal_slice name, const char *source)
{
    struct pack_slot *slot = annal__array_add(&set->slots, &set->slot_count, sizeof *slot);
    if (slot == NULL)
        return NULL;
    slot->name = annal__strndup(name.ptr, name.len);
    if (source != NULL)
        slot->source = annal__strndup(source, strlen(source));
    return slot->name == NULL || (source != NULL && slot->source == NULL) ? NULL : slot;
}

static bool is_taken(const struct pack_set *set, const struct pack_slot *by)
{
    for (const struct pack_slot *slot = set->slots; slot < by; slot++)
        if (strcmp(slot->name, by->name) == 0)
            return true;
    return false;
}

static annal_status fail_built_in(const char *file, const char *name, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_INVALID,
                       "%s:1: '%s' is the name of a built-in pack: give this pack another name, or "
                       "remove the file and run 'annal pack enable %s'",
                       file, name, name);
}

/* Check the conditions of a store for a pack that annal_pack_parse() does not check. */
static annal_status check_slot(const struct pack_set *set, const struct pack_slot *slot,
                               annal_error *err)
{
    const annal_pack *pack = slot->pack;
    if (strlen(pack->name) > PACK_NAME_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "%s:1: the name of a pack can have at most %d bytes", pack->file,
                           PACK_NAME_BYTES_MAX);
    const char *sessions = pack->sessions == NULL ? "*" : pack->sessions;
    if (pack->writable && strchr(sessions, '*') != NULL && strchr(pack->database, '*') == NULL)
        return annal__fail(
            err, ANNAL_ERR_INVALID,
            "%s:1: rows that users write into a database must belong to one session: name this "
            "session (sessions NAME), or put the * of the glob into FILE too",
            pack->file);
    if (is_taken(set, slot))
        return annal__fail(err, ANNAL_ERR_INVALID, "%s:1: another pack is named '%s'", pack->file,
                           pack->name);
    if (slot->source != NULL && annal__builtin_pack(pack->name) != NULL)
        return fail_built_in(pack->file, pack->name, err);
    if (slot->at != NULL && annal__pack_path_is_kept(annal_slice_of(slot->at), (annal_slice){0}))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "pack '%s' at '%s': this path belongs to the store itself", pack->name,
                           slot->at);
    return ANNAL_OK;
}

static bool is_text(annal_slice bytes)
{
    return bytes.len > 0 && memchr(bytes.ptr, '\0', bytes.len) == NULL;
}

/*
 * Set slot->guarded, which is used if the pack has an error. It stays NULL if neither the text nor
 * the list beside the file shows the types. If a user's pack is valid, the list beside its file is
 * updated.
 */
static annal_status list_guards(const annal_index *index, struct pack_slot *slot, annal_slice text,
                                annal_error *err)
{
    SCOPED_BUF list = {0};
    bool known = false;
    annal_status status = ANNAL_OK;
    if (slot->source != NULL && slot->pack == NULL)
        status = annal__kept_guards_add(io_of(index), slot->source, &list, &known, err);
    else if (slot->source != NULL && !annal__session_list_is_read_only(index->store))
        status = annal__kept_guards_note(io_of(index), slot, err);
    if (status >= 0 && is_text(text))
        status = annal__pack_guarded(text, &list, err);
    if (status >= 0 && (known || is_text(text))) {
        status = annal__buf_append(&list, "", 1) < 0
                     ? annal__fail(err, ANNAL_ERR_NOMEM, "list the guards of a pack: out of memory")
                     : ANNAL_OK;
        slot->guarded = list.ptr;
        list = (struct buf){0};
    }
    return status;
}

/* Parse the pack of a slot. Every failure is stored in the slot (rule 2), except if memory ran
 * out. */
static annal_status parse_slot(const annal_index *index, struct pack_set *set,
                               struct pack_slot *slot, const char *file, annal_slice text,
                               annal_error *err)
{
    /* a built-in pack is correct: it is only read, and compiled when it is used */
    annal_status status = slot->source == NULL
                              ? annal__pack_read(file, text, &slot->pack, &slot->error)
                              : annal_pack_parse(file, text, &slot->pack, &slot->error);
    if (status >= 0 && slot->source == NULL)
        status = annal__shape_of_text(&slot->pack->shape, slot->pack->tables, &slot->error);
    if (status >= 0 && strcmp(slot->name, slot->pack->name) != 0) {
        char *name = annal__strndup(slot->pack->name, strlen(slot->pack->name));
        if (name == NULL)
            status =
                annal__fail(&slot->error, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", file);
        else {
            annal__free(slot->name);
            slot->name = name;
        }
    }
    if (status >= 0)
        status = check_slot(set, slot, &slot->error);
    if (status == ANNAL_ERR_NOMEM) {
        if (err != NULL)
            *err = slot->error;
        return status;
    }
    if (status < 0) {
        annal_pack_free(slot->pack);
        slot->pack = NULL;
    }
    return list_guards(index, slot, text, err);
}

bool annal__packs_slot_bars(const struct pack_slot *slot, annal_slice type)
{
    const struct pack_section guarded = {.types = slot->guarded};
    return slot->pack == NULL &&
           (slot->guarded == NULL ? slot->is_file : annal__pack_section_takes(&guarded, type));
}

/* Add the pack in one line of packs/enabled. */
static annal_status add_enabled(const annal_index *index, struct pack_set *set, annal_slice line,
                                const char *path, unsigned number, annal_error *err)
{
    const char *end = memchr(line.ptr, '#', line.len);
    size_t len = end == NULL ? line.len : (size_t)(end - line.ptr);
    while (len > 0 && strchr(" \t\r", line.ptr[len - 1]) != NULL)
        len--;
    size_t skip = strspn(line.ptr, " \t");
    if (skip >= len)
        return ANNAL_OK;
    annal_slice name = {line.ptr + skip, strcspn(line.ptr + skip, " \t\r\n#")};
    const char *rest = name.ptr + name.len;
    rest += strspn(rest, " \t");
    struct pack_slot *slot = add_slot(set, name, NULL);
    if (slot == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%.*s': out of memory",
                           ANNAL_FMT(name));
    size_t left = rest >= line.ptr + len ? 0 : (size_t)(line.ptr + len - rest);
    if (left > 3 && strncmp(rest, "at", 2) == 0 && (rest[2] == ' ' || rest[2] == '\t')) {
        const char *at = rest + 3 + strspn(rest + 3, " \t");
        slot->at = annal__strndup(at, (size_t)(line.ptr + len - at));
        if (slot->at == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%.*s': out of memory",
                               ANNAL_FMT(name));
    } else if (left > 0) {
        annal__fail(&slot->error, ANNAL_ERR_INVALID,
                    "%s:%u: a line must be 'NAME' or 'NAME at DIR'", path, number);
        return ANNAL_OK;
    }
    const char *text = annal__builtin_pack(slot->name);
    char file[160];
    snprintf(file, sizeof file, "packs/%.100s.sql", slot->name);
    if (text == NULL) {
        annal__fail(&slot->error, ANNAL_ERR_NOTFOUND, "%s:%u: no built-in pack is named '%.100s'",
                    path, number, slot->name);
        return ANNAL_OK;
    }
    return parse_slot(index, set, slot, file, annal_slice_of(text), err);
}

/* Add a slot with an error for a file that cannot be read (rule 2). */
static annal_status add_wrong(struct pack_set *set, annal_slice name, const annal_error *why,
                              annal_error *err)
{
    struct pack_slot *slot = why->status == ANNAL_ERR_NOMEM ? NULL : add_slot(set, name, NULL);
    if (slot == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%.*s': out of memory",
                           ANNAL_FMT(name));
    slot->error = *why;
    slot->is_file = true;
    set->again = set->again || annal__error_is_io(why->status);
    return ANNAL_OK;
}

static annal_status read_enabled(annal_index *index, struct pack_set *set, const char *path,
                                 annal_error *err)
{
    SCOPED_BUF text = {0};
    annal_error why = {0};
    annal_status status = annal__packs_read_text(io_of(index), path, &text, &why);
    if (status >= 0 && text.len > 0 && !is_text(annal__buf_slice(&text)))
        status = annal__fail(&why, ANNAL_ERR_INVALID,
                             "%s: the list of packs contains a byte 0; 'annal pack enable' cannot "
                             "repair this list: correct the file with an editor",
                             path);
    if (status < 0)
        return add_wrong(set, ANNAL_SLICE("enabled"), &why, err);
    const char *at = annal__buf_cstr(&text);
    for (unsigned number = 1; status >= 0 && *at != '\0'; number++) {
        annal_slice line = {at, strcspn(at, "\n")};
        at += line.len + (at[line.len] == '\n');
        if (line.len >= 4 && strncmp(line.ptr, "core", 4) == 0 &&
            strspn(line.ptr + 4, " \t\r") == line.len - 4)
            continue; /* core is always enabled */
        status = add_enabled(index, set, line, path, number, err);
    }
    return status;
}

static annal_status read_user_pack(annal_index *index, struct pack_set *set, const char *name,
                                   const char *path, annal_error *err)
{
    SCOPED_BUF text = {0};
    annal_error why = {0};
    struct pack_slot *slot = add_slot(set, (annal_slice){name, strlen(name) - 4}, path);
    if (slot == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", name);
    slot->is_file = true;
    annal_status status = annal__packs_read_text(io_of(index), path, &text, &why);
    if (status >= 0)
        status = parse_slot(index, set, slot, path, annal__buf_slice(&text), err);
    else
        slot->error = why;
    set->again = set->again || annal__error_is_io(why.status);
    if (why.status == ANNAL_ERR_NOMEM && err != NULL)
        *err = why;
    return status == ANNAL_ERR_NOMEM ? status : ANNAL_OK;
}

/* ---- Databases ---- */

/* Compose the path of a pack's database (rule 4), with star in place of the * in the file name. */
annal_status annal__packs_path(const annal_index *index, const struct pack_slot *slot,
                               annal_slice star, struct buf *out, annal_error *err)
{
    const annal_pack *pack = slot->pack;
    const char *at = slot->at;
    annal_status status = ANNAL_OK;
    annal__buf_clear(out);
    if (at == NULL || at[0] != '/')
        status = annal__buf_printf(out, "%s/", annal_store_path(index->store));
    if (status >= 0 && at != NULL)
        status = annal__buf_printf(out, "%s/", at);
    else if (status >= 0 && pack->folder != NULL)
        status = annal__buf_printf(out, "%s/", pack->folder);
    for (const char *c = pack->database; status >= 0 && *c != '\0'; c++)
        status = *c == '*' ? annal__buf_append_slice(out, star) : annal__buf_append(out, c, 1);
    if (status < 0 || annal__buf_cstr(out) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compose a file name: out of memory");
    return ANNAL_OK;
}

bool annal__packs_slot_has_star(const struct pack_slot *slot)
{
    return slot->pack != NULL && strchr(slot->pack->database, '*') != NULL;
}

/* Create a database for all packs of the set whose file is at this path. */
static annal_status make_database(annal_index *index, struct pack_set *set, const char *path,
                                  annal_slice star, struct pack_database **out, annal_error *err)
{
    SCOPED_BUF other = {0};
    const struct pack_slot **slots = annal__zalloc((set->slot_count + 1) * sizeof *slots);
    char *star_text = star.len == 0 ? NULL : annal__strndup(star.ptr, star.len);
    size_t count = 0;
    annal_status status =
        slots == NULL || (star.len > 0 && star_text == NULL)
            ? annal__fail(err, ANNAL_ERR_NOMEM, "prepare the database '%s': out of memory", path)
            : ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < set->slot_count; i++) {
        const struct pack_slot *slot = &set->slots[i];
        if (slot->pack == NULL || annal__packs_slot_has_star(slot) != (star.len > 0))
            continue;
        status = annal__packs_path(index, slot, star, &other, err);
        if (status >= 0 && strcmp(other.ptr, path) == 0)
            slots[count++] = slot;
    }
    if (status >= 0)
        status = annal__pack_database_new(index, path, star_text, slots, count, out, err);
    annal__free(star_text);
    annal__free(slots);
    return status;
}

/* Find or create a database. The caller holds packs.mutex, or no other thread uses the set yet. */
static annal_status get_database(annal_index *index, struct pack_set *set,
                                 const struct pack_slot *slot, annal_slice star,
                                 struct pack_database **out, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct pack_database **at = &set->databases;
    annal_status status = annal__packs_path(index, slot, star, &path, err);
    while (status >= 0 && *at != NULL) {
        for (size_t i = 0; i < (*at)->fill_count; i++)
            if ((*at)->fills[i].slot == slot &&
                ((*at)->star == NULL ? star.len == 0 : annal__slice_is(star, (*at)->star))) {
                *out = *at;
                return status;
            }
        at = &(*at)->next;
    }
    if (status >= 0)
        status = make_database(index, set, path.ptr, star, at, err);
    if (status >= 0)
        *out = *at;
    return status;
}

/* ---- Sets ---- */

static void free_set(struct pack_set *set)
{
    if (set == NULL)
        return;
    while (set->databases != NULL) {
        struct pack_database *next = set->databases->next;
        annal__pack_database_free(set->databases);
        set->databases = next;
    }
    for (size_t i = 0; i < set->slot_count; i++) {
        annal__free(set->slots[i].name);
        annal__free(set->slots[i].source);
        annal__free(set->slots[i].at);
        annal__free(set->slots[i].guarded);
        annal_pack_free(set->slots[i].pack);
    }
    annal__free(set->slots);
    annal__free(set);
}

static annal_status fill_set(annal_index *index, struct pack_set *set, const char *const *names,
                             size_t count, annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < count; i++) {
        status = pack_path(annal_store_path(index->store), names[i], &path, err);
        if (status >= 0 && strcmp(names[i], "enabled") == 0)
            status = read_enabled(index, set, path.ptr, err);
        else if (status >= 0)
            status = read_user_pack(index, set, names[i], path.ptr, err);
    }
    for (size_t i = 0; status >= 0 && i < set->slot_count; i++) {
        struct pack_database *unused;
        struct pack_slot *slot = &set->slots[i];
        if (slot->pack != NULL && !annal__packs_slot_has_star(slot))
            status = get_database(index, set, slot, (annal_slice){0}, &unused, &slot->error);
        if (status == ANNAL_ERR_NOMEM) {
            annal__fail(err, status, "cannot prepare pack '%s'", slot->name);
        } else if (status < 0) {
            annal_pack_free(slot->pack);
            slot->pack = NULL;
            status = ANNAL_OK;
        }
        if (slot->pack == NULL)
            annal__say(index->store, ANNAL_LOG_WARNING, "a pack is skipped: %s",
                       slot->error.message);
    }
    return status;
}

annal_status annal__packs_get(annal_index *index, struct pack_set **out_set, annal_error *err)
{
    struct listing listing = {0};
    const char **names = NULL;
    struct pack_set *fresh = NULL;
    uint64_t seen = 0;
    annal_status status =
        list_packs(io_of(index), annal_store_path(index->store), &listing, &names, err);
    if (status >= 0)
        status = look(index, names, listing.count, &seen, err);
    pthread_mutex_lock(&index->packs.mutex);
    if (status >= 0 &&
        (index->packs.set == NULL || index->packs.set->seen != seen || index->packs.set->again)) {
        fresh = annal__zalloc(sizeof *fresh);
        if (fresh == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "list the packs: out of memory");
        else
            status = fill_set(index, fresh, names, listing.count, err);
        if (status >= 0) {
            struct pack_set *old = index->packs.set;
            fresh->seen = seen;
            fresh->refs = 1;
            index->packs.set = fresh;
            fresh = old != NULL && --old->refs == 0 ? old : NULL;
        }
    }
    if (status >= 0) {
        index->packs.set->refs++;
        *out_set = index->packs.set;
    }
    pthread_mutex_unlock(&index->packs.mutex);
    free_set(fresh);
    annal__free(names);
    annal__buf_done(&listing.names);
    return status;
}

void annal__packs_put(annal_index *index, struct pack_set *set)
{
    if (set == NULL)
        return;
    pthread_mutex_lock(&index->packs.mutex);
    bool last = --set->refs == 0;
    pthread_mutex_unlock(&index->packs.mutex);
    if (last)
        free_set(set);
}

void annal__packs_done(annal_index *index)
{
    annal__packs_put(index, index->packs.set);
    index->packs.set = NULL;
}

annal_status annal__packs_database(annal_index *index, struct pack_set *set,
                                   const struct pack_slot *slot, annal_slice session,
                                   struct pack_database **out_database, annal_error *err)
{
    annal_slice star = {0};
    annal_status status = ANNAL_OK;
    *out_database = NULL;
    if (slot->pack == NULL || !annal__pack_feeds(slot->pack, session, &star))
        return ANNAL_OK;
    if (!annal__packs_slot_has_star(slot))
        star = (annal_slice){0};
    pthread_mutex_lock(&index->packs.mutex);
    status = get_database(index, set, slot, star, out_database, err);
    pthread_mutex_unlock(&index->packs.mutex);
    return status;
}

struct pack_database *annal__packs_next(annal_index *index, struct pack_set *set,
                                        struct pack_database *before)
{
    pthread_mutex_lock(&index->packs.mutex);
    struct pack_database *database = before == NULL ? set->databases : before->next;
    while (database != NULL && database->star != NULL)
        database = database->next;
    pthread_mutex_unlock(&index->packs.mutex);
    return database;
}

/* ---- Reading packs for their verbs ---- */

/* Read the file of a user's pack, and call fn with the pack, or with the reason why it cannot be
 * read. */
static annal_status read_for_verbs(const char *path, annal__pack_read_fn fn, void *arg,
                                   annal_error *err)
{
    SCOPED_BUF text = {0};
    annal_pack *pack = NULL;
    annal_error why = {0};
    annal_status status = annal__packs_read_text(&annal__system_io, path, &text, &why);
    if (status >= 0)
        status = annal__pack_read(path, annal__buf_slice(&text), &pack, &why);
    if (status >= 0 && annal__builtin_pack(pack->name) != NULL) {
        status = fail_built_in(path, pack->name, &why);
        annal_pack_free(pack);
        pack = NULL;
    }
    if (status == ANNAL_ERR_NOMEM)
        return annal__error_pass(err, status, &why);
    return (annal_status)fn(arg, pack, path, &why);
}

annal_status annal__packs_of_users(const char *store, annal__pack_read_fn fn, void *arg,
                                   annal_error *err)
{
    struct listing listing = {0};
    SCOPED_BUF path = {0};
    const char **names = NULL;
    annal_status status = list_packs(&annal__system_io, store, &listing, &names, err);
    for (size_t i = 0; status == ANNAL_OK && i < listing.count; i++) {
        if (strcmp(names[i], "enabled") == 0)
            continue;
        status = pack_path(store, names[i], &path, err);
        if (status >= 0)
            status = read_for_verbs(path.ptr, fn, arg, err);
    }
    annal__free(names);
    annal__buf_done(&listing.names);
    return status;
}

annal_status annal__packs_built_in(const char *noun, annal__pack_read_fn fn, void *arg,
                                   annal_error *err)
{
    static const annal_error none = {0};
    annal_status status = ANNAL_OK;
    const char *name;
    char file[160], line[160];
    snprintf(line, sizeof line, "\n-- noun %.100s ", noun == NULL ? "" : noun);
    for (size_t i = 0; status == ANNAL_OK && (name = annal__builtin_name(i)) != NULL; i++) {
        annal_pack *pack = NULL;
        if (noun != NULL && strstr(annal__builtin_pack(name), line) == NULL)
            continue;
        snprintf(file, sizeof file, "packs/%.100s.sql", name);
        status = annal__pack_read(file, annal_slice_of(annal__builtin_pack(name)), &pack, err);
        if (status >= 0)
            status = (annal_status)fn(arg, pack, NULL, &none);
    }
    return status;
}
