/* Nothing of a deleted session stays in a file of the store: for the verbs that delete. */
#ifndef TOOLS_CMD_WIPE_H
#define TOOLS_CMD_WIPE_H

#include <annal/index.h>

/*
 * A session is about to be deleted: only its journal can say which words are its, so this comes
 * first. That it could not be done is a remark.
 */
void index_forget_words(annal_index *index, annal_slice session);

/*
 * These sessions were deleted: no byte of them stays in a commit log, a database or what an import
 * left that broke off. What may remain is a remark.
 */
void wipe_deleted(annal_store *store, annal_index *index, const annal_slice *sessions,
                  size_t count);

#endif
