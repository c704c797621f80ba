/* SPDX-License-Identifier: Apache-2.0 */
/* What was appended to each session and what was promised about it: what a crash is judged by. */
#ifndef TESTS_CRASH_POWER_MODEL_H
#define TESTS_CRASH_POWER_MODEL_H

#include <annal/journal.h>

#define MODEL_SESSIONS 8

struct model_event {
    char *type, *id, *data;
    bool joined; /* to the one before: both are there or none is */
};

struct model_session {
    char name[40];
    struct model_event *events; /* event seq n is events[n - 1] */
    size_t count, room;
    size_t durable; /* that survive a power cut */
    size_t kept;    /* that survive the end of the process */
    bool deleting;  /* all of it may be gone */
    bool copy;      /* no session: a copy of the journal of one, made by hand under this name */
};

struct model {
    struct model_session sessions[MODEL_SESSIONS];
    size_t count;
    uint64_t version; /* counts promises */
};

void model_done(struct model *model);

struct model_session *model_session(struct model *model, const char *name); /* added if need be */
const struct model_session *model_find(const struct model *model, annal_slice name); /* or NULL */

/* An append begins: from now on it may be there, and nothing else may. */
void model_append(struct model *model, const char *session, const annal_draft *drafts, size_t count,
                  annal_level level);
/* It returned: at a level; or it was refused, and never will be there. */
void model_acknowledge(struct model *model, const char *session, annal_level level);
void model_refuse(struct model *model, const char *session, size_t count);
/* A deletion begins: until it returns all may be there or nothing. It returned: done, or
 * refused. */
void model_delete(struct model *model, const char *session);
void model_deleted(struct model *model, const char *session, bool done);
/* A fork with the first at_seq events of a session begins to be made: until that returns it may be
 * there or not, with all of them. It returned: so it is, and they are durable in both. */
void model_fork(struct model *model, const char *parent, size_t at_seq, const char *child);
void model_forked(struct model *model, const char *parent, const char *child);
/* A session of another store begins to be taken over from there: until that returns it may be here
 * or not, whole. model_adopted(): so it is, and durable. */
void model_adopt(struct model *model, const struct model *from, const char *name);
void model_adopted(struct model *model, const char *name);
/* Somebody copies a journal to this name. Until it is deleted it may be there, whole or not. */
void model_copy(struct model *model, const char *name);
/* annal_sync(), a checkpoint or a close returned. */
void model_sync(struct model *model);

#endif
