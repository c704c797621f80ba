/* SPDX-License-Identifier: Apache-2.0 */
/* Packs, as our layers and the command use them. */
#ifndef INDEX_SYS_PACK_H
#define INDEX_SYS_PACK_H

#include <annal/pack.h>

/* Create the pack that every store runs: sessions and turns. */
ANNAL_MUST_CHECK annal_status annal__pack_core(annal_pack **out_pack, annal_error *err);

/* Return the core pack of an open index, to save reading it again. Valid as long as the index. */
const annal_pack *annal__index_core(const annal_index *index);

/*
 * Find a pack by its name: a pack that is enabled in the store of this index, else one that is
 * built in. Free it with annal_pack_free(). Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no pack has this name
 * another status      the pack is wrong, as for annal_pack_parse()
 */
ANNAL_MUST_CHECK annal_status annal__pack_named(annal_index *index, const char *name,
                                                annal_pack **out_pack, annal_error *err);

const char *annal__pack_name(const annal_pack *pack); /* "core" */

uint32_t annal__pack_version(const annal_pack *pack); /* 1 */

const char *annal__pack_database(const annal_pack *pack); /* "sessions.db" */

/*
 * Check that a pack is enabled and can be run: ANNAL_OK. Looks only at packs/. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  it is not enabled
 * another status      it is enabled and wrong; the message says why
 */
ANNAL_MUST_CHECK annal_status annal__packs_have(annal_index *index, const char *name,
                                                annal_error *err);

/*
 * Return whether an append of this type to this session must go through annal_pack_append(): an
 * enabled pack guards or fills such events or moves large fields out of them, or the session is
 * shared (lease.h). The core pack, which every store runs, does not count: only annal_pack_append()
 * runs its guards, so that a plain append of a turn never waits for sessions.db. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__guard_pack_asks(annal_index *index, annal_slice session,
                                                     annal_slice type, bool *out_asks,
                                                     annal_error *err);

/*
 * Called with a pack that was read, which the callee owns and frees with annal_pack_free(). pack is
 * NULL if it is wrong, and *why says why. file is the file of a user's pack, or NULL if the pack is
 * built in. Return 0 to continue; any other value stops, and is returned. file and why are valid
 * until the callback returns.
 */
typedef int (*annal__pack_read_fn)(void *arg, annal_pack *pack, const char *file,
                                   const annal_error *why);

/* Read the built-in packs, or only the pack that has this noun (may be NULL). Any thread. */
ANNAL_MUST_CHECK annal_status annal__packs_built_in(const char *noun, annal__pack_read_fn fn,
                                                    void *arg, annal_error *err);

/*
 * Read the packs of users in a store, STORE/packs/NAME.sql, in the order of their names. Does not
 * compile their statements, does not open the store, and reads nothing if there is no store. Any
 * thread.
 */
ANNAL_MUST_CHECK annal_status annal__packs_of_users(const char *store, annal__pack_read_fn fn,
                                                    void *arg, annal_error *err);

#endif
