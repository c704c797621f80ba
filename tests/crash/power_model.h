/* SPDX-License-Identifier: Apache-2.0 */
/* What was appended to each session and what was promised about it: what a crash is judged by. */
#pragma once

#include <annal/journal.h>

#define MODEL_SESSIONS 8

struct model_event {
    char *type, *id, *data;
    bool joined; /* to the previous event: both exist or neither does */
};

struct model_session {
    char name[40];
    struct model_event *events; /* event seq n is events[n - 1] */
    size_t count, room;
    size_t durable; /* that survive a power cut */
    size_t kept;    /* that survive the end of the process */
    bool deleting;  /* all of it may be gone */
    bool copy;      /* not a session, but a copy of a session's journal under this name */
};

struct model {
    struct model_session sessions[MODEL_SESSIONS];
    size_t count;
    uint64_t version; /* counts promises */
};

void model_done(struct model *model);

struct model_session *model_session(struct model *model, const char *name); /* added if need be */
const struct model_session *model_find(const struct model *model, annal_slice name); /* or NULL */

/* An append begins: from now on these events may exist, and no other event may. */
void model_append(struct model *model, const char *session, const annal_draft *drafts, size_t count,
                  annal_level level);
/* The append returned: acknowledged at a level, or refused, so that its events never exist. */
void model_acknowledge(struct model *model, const char *session, annal_level level);
void model_refuse(struct model *model, const char *session, size_t count);
/* A deletion begins: until it returns, all events may exist or none. It returned: done, or
 * refused. */
void model_delete(struct model *model, const char *session);
void model_deleted(struct model *model, const char *session, bool done);
/* The creation of a fork with the first at_seq events of a session begins: until it returns, the
 * fork may exist or not, with all of them. It returned: the fork exists, and its events are durable
 * in both sessions. */
void model_fork(struct model *model, const char *parent, size_t at_seq, const char *child);
void model_forked(struct model *model, const char *parent, const char *child);
/* The adoption of a session from another store begins: until it returns, the session may exist here
 * or not, complete. model_adopted(): it exists, and is durable. */
void model_adopt(struct model *model, const struct model *from, const char *name);
void model_adopted(struct model *model, const char *name);
/* A user copies a journal to this name. Until its deletion the copy may exist, complete or not. */
void model_copy(struct model *model, const char *name);
/* annal_store_sync(), a checkpoint or a close returned. */
void model_sync(struct model *model);
