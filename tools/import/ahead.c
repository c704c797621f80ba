/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/ahead.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"

/* Each part of an event or a question is a text in `texts`, one after the other. */
struct kept_event {
    size_t session, type, id, cause, data, formerly; /* lengths of the texts */
    int64_t ts_us;
    uint64_t line;
};

struct question {
    size_t origin, session, answer; /* lengths of the texts */
};

struct ahead {
    struct owners *owners;
    struct owners *own; /* the records of this log; NULL: none yet */
    struct buf events, event_texts;
    struct buf questions, question_texts;
};

struct ahead *ahead_new(struct owners *owners)
{
    struct ahead *ahead = must_zalloc(sizeof *ahead);
    ahead->owners = owners;
    return ahead;
}

static size_t keep(struct buf *texts, annal_slice text)
{
    must_append_slice(texts, text);
    return text.len;
}

void ahead_add(struct ahead *ahead, const annal_import_event *event)
{
    struct buf *texts = &ahead->event_texts;
    struct kept_event kept = {.ts_us = event->draft.ts_us, .line = event->line};
    kept.session = keep(texts, event->session);
    kept.type = keep(texts, event->draft.type);
    kept.id = keep(texts, event->draft.id);
    kept.cause = keep(texts, event->draft.cause);
    kept.data = keep(texts, event->draft.data);
    kept.formerly = keep(texts, event->formerly);
    must_append(&ahead->events, &kept, sizeof kept);
}

annal_slice ahead_owner(struct ahead *ahead, annal_slice origin, annal_slice session)
{
    struct buf *texts = &ahead->question_texts;
    annal_slice answer = owners_guess(ahead->owners, &ahead->own, origin, session);
    struct question question = {.origin = keep(texts, origin)};
    question.session = keep(texts, session);
    question.answer = keep(texts, answer);
    must_append(&ahead->questions, &question, sizeof question);
    return answer;
}

bool ahead_is_full(const struct ahead *ahead)
{
    return ahead->events.len + ahead->event_texts.len + ahead->questions.len +
               ahead->question_texts.len >=
           AHEAD_BYTES;
}

static annal_slice next_text(const char **at, size_t len)
{
    annal_slice text = {len > 0 ? *at : NULL, len};
    *at += len;
    return text;
}

bool ahead_holds(const struct ahead *ahead)
{
    const char *at = ahead->question_texts.ptr;
    const struct question *all = (const struct question *)(const void *)ahead->questions.ptr;
    bool holds = true;
    for (size_t i = 0; i < ahead->questions.len / sizeof *all && holds; i++) {
        annal_slice origin = next_text(&at, all[i].origin);
        annal_slice session = next_text(&at, all[i].session);
        annal_slice answer = next_text(&at, all[i].answer);
        holds = annal__slice_same(owners_find(ahead->owners, origin, session), answer);
    }
    return holds;
}

annal_status ahead_give(const struct ahead *ahead, annal_import_fn fn, void *arg, annal_error *err)
{
    const char *at = ahead->event_texts.ptr;
    const struct kept_event *all = (const struct kept_event *)(const void *)ahead->events.ptr;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < ahead->events.len / sizeof *all && status >= 0; i++) {
        annal_import_event event = {.line = all[i].line, .draft = {.ts_us = all[i].ts_us}};
        event.session = next_text(&at, all[i].session);
        event.draft.type = next_text(&at, all[i].type);
        event.draft.id = next_text(&at, all[i].id);
        event.draft.cause = next_text(&at, all[i].cause);
        event.draft.data = next_text(&at, all[i].data);
        event.formerly = next_text(&at, all[i].formerly);
        status = fn(arg, &event, err);
    }
    return status;
}

void ahead_free(struct ahead *ahead)
{
    if (ahead == NULL)
        return;
    owners_free(ahead->own);
    annal__buf_done(&ahead->events);
    annal__buf_done(&ahead->event_texts);
    annal__buf_done(&ahead->questions);
    annal__buf_done(&ahead->question_texts);
    annal__free(ahead);
}
