#include "tests/packs/fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

void text_add(struct text *text, const char *bytes, size_t len)
{
    char *grown = realloc(text->ptr, text->len + len + 1);
    ck_assert_ptr_nonnull(grown);
    text->ptr = grown;
    if (len > 0)
        memcpy(grown + text->len, bytes, len);
    text->len += len;
    grown[text->len] = '\0';
}

static void add_value(struct text *text, const annal_value *value)
{
    char number[64] = "";
    if (value->kind == ANNAL_VALUE_INTEGER)
        snprintf(number, sizeof number, "%lld", (long long)value->integer);
    else if (value->kind == ANNAL_VALUE_REAL)
        snprintf(number, sizeof number, "%.17g", value->real);
    text_add(text, number, strlen(number));
    if (value->kind == ANNAL_VALUE_TEXT)
        text_add(text, value->bytes.ptr, value->bytes.len);
    for (size_t i = 0; value->kind == ANNAL_VALUE_BLOB && i < value->bytes.len; i++) {
        snprintf(number, sizeof number, "%02x", (unsigned)(unsigned char)value->bytes.ptr[i]);
        text_add(text, number, 2);
    }
}

int text_row(void *arg, const annal_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        if (i > 0)
            text_add(arg, "|", 1);
        add_value(arg, &row->values[i]);
    }
    text_add(arg, "\n", 1);
    return 0;
}

/* ---- In memory ---- */

char *pack_text(const char *name)
{
    char path[512];
    size_t len;
    snprintf(path, sizeof path, "%s/%s.sql", SOURCE_PACKS, name);
    return file_read(path, &len);
}

static void memory_add(struct memory *m, const char *name, const char *text)
{
    ck_assert_uint_lt(m->count, MEMORY_PACKS_MAX);
    ck_ok(annal_pack_parse(name, annal_slice_of(text), &m->packs[m->count], err));
    m->count++;
}

static void memory_begin(struct memory *m, const char *session)
{
    const annal_pack *packs[MEMORY_PACKS_MAX];
    for (size_t i = 0; i < m->count; i++)
        packs[i] = m->packs[i];
    m->ts_us = 1767684240000000; /* 2026-01-06T07:24:00Z */
    ck_ok(annal_state_new(annal_slice_of(session), packs, m->count, &m->state, err));
}

void memory_init(struct memory *m, const char *session, ...)
{
    *m = (struct memory){0};
    va_list names;
    va_start(names, session);
    for (const char *name = va_arg(names, const char *); name != NULL;
         name = va_arg(names, const char *)) {
        char *text = pack_text(name);
        memory_add(m, name, text);
        free(text);
    }
    va_end(names);
    memory_begin(m, session);
}

void memory_init_text(struct memory *m, const char *session, const char *pack)
{
    *m = (struct memory){0};
    memory_add(m, "p.sql", pack);
    memory_begin(m, session);
}

void memory_done(struct memory *m)
{
    annal_state_free(m->state);
    for (size_t i = 0; i < m->count; i++)
        annal_pack_free(m->packs[i]);
}

void memory_apply(struct memory *m, const char *type, const char *data)
{
    const annal_event event = {.seq = ++m->seq,
                               .ts_us = m->ts_us,
                               .type = annal_slice_of(type),
                               .data = annal_slice_of(data)};
    m->ts_us += 1000000;
    ck_ok(annal_state_apply(m->state, &event, err));
}

char *memory_rows(struct memory *m, const char *select)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_state_sql(m->state, annal_slice_of(select), NULL, text_row, &text, err));
    return text.ptr;
}
