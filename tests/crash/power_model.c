/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/power_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_events(struct model_session *session, size_t count)
{
    while (session->count > count) {
        struct model_event *event = &session->events[--session->count];
        free(event->type);
        free(event->id);
        free(event->data);
    }
}

void model_done(struct model *model)
{
    for (size_t i = 0; i < model->count; i++) {
        drop_events(&model->sessions[i], 0);
        free(model->sessions[i].events);
    }
    *model = (struct model){0};
}

const struct model_session *model_find(const struct model *model, annal_slice name)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct model_session *session = &model->sessions[i];
        if (strlen(session->name) == name.len && memcmp(session->name, name.ptr, name.len) == 0)
            return session;
    }
    return NULL;
}

struct model_session *model_session(struct model *model, const char *name)
{
    size_t i = 0;
    while (i < model->count && strcmp(model->sessions[i].name, name) != 0)
        i++;
    if (i == model->count) {
        ck_assert_uint_lt(model->count, MODEL_SESSIONS);
        snprintf(model->sessions[model->count++].name, sizeof model->sessions[i].name, "%s", name);
    }
    return &model->sessions[i];
}

static char *copy(annal_slice slice)
{
    char *text = malloc(slice.len + 1);
    ck_assert_ptr_nonnull(text);
    if (slice.len > 0)
        memcpy(text, slice.ptr, slice.len);
    text[slice.len] = '\0';
    return text;
}

static void add_event(struct model_session *session, const struct model_event *event)
{
    if (session->count == session->room) {
        session->room = session->room == 0 ? 32 : session->room * 2;
        session->events = realloc(session->events, session->room * sizeof *session->events);
        ck_assert_ptr_nonnull(session->events);
    }
    session->events[session->count++] = *event;
}

void model_append(struct model *model, const char *name, const annal_draft *drafts, size_t count,
                  annal_level level)
{
    struct model_session *session = model_session(model, name);
    for (size_t i = 0; i < count; i++)
        add_event(session, &(struct model_event){.type = copy(drafts[i].type),
                                                 .id = copy(drafts[i].id),
                                                 .data = copy(drafts[i].data),
                                                 .joined = level != ANNAL_LEVEL_OS && i > 0});
    model->version++;
}

void model_acknowledge(struct model *model, const char *name, annal_level level)
{
    struct model_session *session = model_session(model, name);
    if (level == ANNAL_LEVEL_SYNC)
        session->durable = session->count;
    if (level != ANNAL_LEVEL_BATCH)
        session->kept = session->count;
    model->version++;
}

void model_refuse(struct model *model, const char *name, size_t count)
{
    struct model_session *session = model_session(model, name);
    drop_events(session, session->count - count);
    model->version++;
}

void model_delete(struct model *model, const char *name)
{
    model_session(model, name)->deleting = true;
    model->version++;
}

void model_deleted(struct model *model, const char *name, bool done)
{
    struct model_session *session = model_session(model, name);
    session->deleting = false;
    if (done) {
        drop_events(session, 0);
        session->durable = session->kept = 0;
    }
    model->version++;
}

void model_fork(struct model *model, const char *parent_name, size_t at_seq, const char *child_name)
{
    struct model_session *child = model_session(model, child_name);
    const struct model_session *parent = model_session(model, parent_name);
    ck_assert_uint_eq(child->count, 0);
    for (size_t i = 0; i < at_seq; i++)
        add_event(child,
                  &(struct model_event){.type = copy(annal_slice_of(parent->events[i].type)),
                                        .id = copy(annal_slice_of(parent->events[i].id)),
                                        .data = copy(annal_slice_of(parent->events[i].data))});
    child->durable = child->kept = at_seq;
    child->deleting = true;
    model->version++;
}

void model_forked(struct model *model, const char *parent_name, const char *child_name)
{
    struct model_session *child = model_session(model, child_name);
    struct model_session *parent = model_session(model, parent_name);
    child->deleting = false;
    if (parent->durable < child->count)
        parent->durable = child->count;
    if (parent->kept < child->count)
        parent->kept = child->count;
    model->version++;
}

void model_adopt(struct model *model, const struct model *from, const char *name)
{
    struct model_session *here = model_session(model, name);
    const struct model_session *there = model_find(from, annal_slice_of(name));
    ck_assert_uint_eq(here->count, 0);
    for (size_t i = 0; i < there->count; i++)
        add_event(here, &(struct model_event){.type = copy(annal_slice_of(there->events[i].type)),
                                              .id = copy(annal_slice_of(there->events[i].id)),
                                              .data = copy(annal_slice_of(there->events[i].data)),
                                              .joined = true});
    here->deleting = true;
    model->version++;
}

void model_adopted(struct model *model, const char *name)
{
    struct model_session *session = model_session(model, name);
    session->deleting = false;
    session->durable = session->kept = session->count;
    model->version++;
}

void model_copy(struct model *model, const char *name)
{
    struct model_session *session = model_session(model, name);
    session->copy = session->deleting = true;
    model->version++;
}

void model_sync(struct model *model)
{
    for (size_t i = 0; i < model->count; i++)
        model->sessions[i].durable = model->sessions[i].kept = model->sessions[i].count;
    model->version++;
}
