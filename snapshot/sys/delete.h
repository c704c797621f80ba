/* SPDX-License-Identifier: Apache-2.0 */
/* annal_delete() in its two halves, for the verbs that do something of their own between them. */
#ifndef SNAPSHOT_SYS_DELETE_H
#define SNAPSHOT_SYS_DELETE_H

#include <annal/delete.h>

/* One session. Content of it stays in databases and commit logs until annal__delete_wipe(). */
annal_status annal__delete_session(annal_index *index, annal_slice session, annal_delete_fn fn,
                                   void *arg, annal_error *err);

/* These sessions were deleted: no byte of them stays. Once, after the last. */
void annal__delete_wipe(annal_index *index, const annal_slice *sessions, size_t count,
                        annal_delete_fn fn, void *arg);

#endif
