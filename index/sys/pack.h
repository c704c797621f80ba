/* SPDX-License-Identifier: Apache-2.0 */
/* Packs, for the layers above and the command annal. */
#pragma once

#include <annal/pack.h>

/* Create the core pack, which every store runs. Its tables are sessions, turns, … */
ANNAL_MUST_CHECK annal_status annal__pack_core(annal_pack **out_pack, annal_error *err);

/* Return the core pack of an open index, which saves parsing it again. Valid as long as the
 * index. */
const annal_pack *annal__index_core(const annal_index *index);

/*
 * Find a pack by its name: the pack that is enabled in the store of this index, else a built-in
 * pack. Free it with annal_pack_free(). Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no pack has this name
 * another status      the pack has an error, as for annal_pack_parse()
 */
ANNAL_MUST_CHECK annal_status annal__pack_named(annal_index *index, const char *name,
                                                annal_pack **out_pack, annal_error *err);

const char *annal__pack_name(const annal_pack *pack); /* name, such as "core" */

uint32_t annal__pack_version(const annal_pack *pack); /* version, such as 1 */

/* Return the path of the pack's database, such as "sessions.db". */
const char *annal__pack_database(const annal_pack *pack);

/*
 * Check that a pack is enabled and its file has no error. Only packs/ is read, no database. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  it is not enabled
 * another status      the pack is enabled, and its file has an error, which the message describes
 */
ANNAL_MUST_CHECK annal_status annal__packs_have(annal_index *index, const char *name,
                                                annal_error *err);

/*
 * Find out whether an append of this type to this session must go through annal_pack_append(): an
 * enabled pack guards or fills such events or moves large fields out of them, or the session is
 * shared (lease.h). The core pack, which every store runs, is left out: only annal_pack_append()
 * runs its guards, so that a plain append of a turn never waits for sessions.db. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__guard_pack_asks(annal_index *index, annal_slice session,
                                                     annal_slice type, bool *out_asks,
                                                     annal_error *err);

/*
 * A function that is called with a pack that was read, and which frees it with annal_pack_free().
 * pack is NULL if it has an error, and *why is the error. file is the file of a user's pack, or
 * NULL if the pack is built in. It returns 0 to continue; any other value ends the calls, and is
 * returned to the caller. file and why are valid until the callback returns.
 */
typedef int (*annal__pack_read_fn)(void *arg, annal_pack *pack, const char *file,
                                   const annal_error *why);

/* Read the built-in packs. If noun is not NULL: only the pack that defines this noun. Any
 * thread. */
ANNAL_MUST_CHECK annal_status annal__packs_built_in(const char *noun, annal__pack_read_fn fn,
                                                    void *arg, annal_error *err);

/*
 * Read the packs of users in a store, STORE/packs/NAME.sql, in the order of their names. Does not
 * compile their statements, does not open the store, and reads nothing if there is no store. Any
 * thread.
 */
ANNAL_MUST_CHECK annal_status annal__packs_of_users(const char *store, annal__pack_read_fn fn,
                                                    void *arg, annal_error *err);
