/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"

#include "index/pack/builtin.h"
#include "index/sys/state.h"
#include "tests/support/random.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Text ---- */

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
    ck_ok(annal__state_new(annal_slice_of(session), packs, m->count, &m->state, err));
}

void memory_init(struct memory *m, const char *session, ...)
{
    *m = (struct memory){0};
    va_list names;
    va_start(names, session);
    for (const char *name = va_arg(names, const char *); name != NULL;
         name = va_arg(names, const char *))
        memory_add(m, name, annal__builtin_pack(name));
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

/* ---- A store ---- */

static void open_store(struct packs *packs)
{
    const annal_store_options options = {.create = true, .no_keeper = true};
    ck_ok(annal_store_open(packs->path, &options, &packs->store, err));
    /* Under Valgrind and the thread sanitizer the default of ten seconds is short. */
    const annal_index_options patient = {.wait_ms = 120000};
    ck_ok(annal_index_open(packs->store, &patient, &packs->index, err));
}

void packs_close(struct packs *packs)
{
    annal_index_close(packs->index);
    ck_ok(annal_store_close(packs->store, err));
    packs->index = NULL;
    packs->store = NULL;
}

struct packs p;

void packs_setup(void)
{
    p = (struct packs){0};
    tmpdir_init(&p.dir);
    p.path = tmpdir_path(&p.dir, "store");
    open_store(&p);
}

void packs_teardown(void)
{
    packs_close(&p);
    tmpdir_done(&p.dir);
}

void packs_enable(struct packs *packs, const char *const *names)
{
    for (; *names != NULL; names++)
        ck_ok(annal_pack_enable(packs->store, *names, NULL, err));
}

void packs_reopen(struct packs *packs)
{
    packs_close(packs);
    open_store(packs);
}

void packs_add(struct packs *packs, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/packs", packs->path);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/packs/%s.sql", packs->path, name);
    file_write(path, text, strlen(text));
}

annal_status packs_append_id(struct packs *packs, const char *session, const char *type,
                             const char *data, const char *id, uint64_t *out_seq,
                             annal_error *error)
{
    annal_writer *writer = NULL;
    annal_appended appended;
    const annal_draft draft = {
        .type = annal_slice_of(type), .data = annal_slice_of(data), .id = annal_slice_of(id)};
    ck_ok(annal_writer_open(packs->store, annal_slice_of(session), NULL, &writer, err));
    annal_status status =
        annal_pack_append(packs->index, writer, &draft, 1, NULL, &appended, error);
    if (status >= 0) {
        if (out_seq != NULL)
            *out_seq = appended.seq;
        annal_free(appended.data.ptr);
    }
    annal_writer_close(writer);
    return status;
}

annal_status packs_append(struct packs *packs, const char *session, const char *type,
                          const char *data, annal_error *error)
{
    return packs_append_id(packs, session, type, data, NULL, NULL, error);
}

void packs_append_past(struct packs *packs, const char *session, const char *type, const char *data)
{
    annal_writer *writer = NULL;
    uint64_t seq;
    const annal_draft draft = {
        .type = annal_slice_of(type), .data = annal_slice_of(data), .ts_us = packs->past_us};
    packs->past_us += packs->past_us == 0 ? 0 : 1000000;
    ck_ok(annal_writer_open(packs->store, annal_slice_of(session),
                            &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, err));
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
}

char *packs_rows(struct packs *packs, const char *select)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_index_sql(packs->index, annal_slice_of(select), NULL, text_row, &text, err));
    return text.ptr;
}

char *packs_shell(struct packs *packs, const char *database, const char *sql)
{
    char command[700], bytes[4096];
    const char *script = tmpdir_path(&packs->dir, "shell.sql");
    struct text text = {0};
    text_add(&text, "", 0);
    file_write(script, sql, strlen(sql));
    /* The shell of some systems is defensive. */
    snprintf(command, sizeof command,
             "sqlite3 -batch -cmd '.output /dev/null' -cmd '.dbconfig defensive off' "
             "-cmd '.output stdout' '%s/%s' < '%s' 2>&1",
             packs->path, database, script);
    FILE *shell = popen(command, "r");
    ck_assert_ptr_nonnull(shell);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, shell)) > 0;)
        text_add(&text, bytes, got);
    ck_assert_int_ne(pclose(shell), -1);
    return text.ptr;
}

/* ---- A rebuild, to compare with ---- */

static const annal_catch_up_options with_packs = {.packs = true};

static void copy_file(const char *from, const char *to)
{
    size_t len;
    char *bytes = file_read(from, &len);
    file_write(to, bytes, len);
    free(bytes);
}

/* Copy the regular files of a folder of a store into another store. */
static void copy_folder(const char *from, const char *to, const char *folder)
{
    char source[600], target[600], a[1200], b[1200];
    snprintf(source, sizeof source, "%s/%s", from, folder);
    snprintf(target, sizeof target, "%s/%s", to, folder);
    (void)mkdir(target, 0700);
    DIR *entries = opendir(source);
    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        snprintf(a, sizeof a, "%s/%s", source, entry->d_name);
        snprintf(b, sizeof b, "%s/%s", target, entry->d_name);
        if (entry->d_type == DT_REG)
            copy_file(a, b);
    }
    if (entries != NULL)
        closedir(entries);
}

#define SESSIONS_MAX 4096

struct names {
    char *names[SESSIONS_MAX];
    size_t count;
};

static int note_session(void *arg, annal_slice session, uint64_t bytes)
{
    struct names *names = arg;
    (void)bytes;
    ck_assert_uint_lt(names->count, SESSIONS_MAX);
    names->names[names->count++] = strndup(session.ptr, session.len);
    return 0;
}

/* Catch up on the sessions one by one, in an order that the seed gives. */
static void catch_up_shuffled(annal_store *store, annal_index *index, uint64_t seed)
{
    struct names names = {.count = 0};
    struct random random = {.state = seed};
    ck_ok(annal_session_each(store, note_session, &names, err));
    for (size_t left = names.count; left > 0; left--) {
        size_t pick = (size_t)random_below(&random, left);
        char *name = names.names[pick];
        names.names[pick] = names.names[left - 1];
        ck_ok(annal_index_catch_up(index, annal_slice_of(name), &with_packs, err));
        free(name);
    }
}

static void add_table(struct text *text, sqlite3 *db, const char *table)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(sql);
    struct text *rows = NULL;
    size_t count = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        rows = realloc(rows, (count + 1) * sizeof *rows);
        struct text *row = &rows[count++];
        *row = (struct text){0};
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            const char *value = (const char *)sqlite3_column_text(stmt, i);
            text_add(row, "|", 1);
            text_add(row, value == NULL ? "NULL" : value, strlen(value == NULL ? "NULL" : value));
        }
    }
    sqlite3_finalize(stmt);
    /* by content, as rowids differ */
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && strcmp(rows[j - 1].ptr, rows[j].ptr) > 0; j--) {
            struct text swap = rows[j];
            rows[j] = rows[j - 1];
            rows[j - 1] = swap;
        }
    for (size_t i = 0; i < count; i++) {
        text_add(text, table, strlen(table));
        text_add(text, rows[i].ptr, rows[i].len);
        text_add(text, "\n", 1);
        free(rows[i].ptr);
    }
    free(rows);
}

static char *dump(const char *store, const char *database)
{
    char path[600];
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    struct text text = {0};
    text_add(&text, "", 0);
    snprintf(path, sizeof path, "%s/%s", store, database);
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT name FROM sqlite_schema WHERE type = 'table' AND "
                                        "name NOT GLOB '_*' AND name NOT GLOB 'sqlite_*' "
                                        "ORDER BY name",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        add_table(&text, db, (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return text.ptr;
}

/* Assert that two texts are equal; prints only their difference, as Check truncates messages. */
static void ck_same(const char *expected, const char *got)
{
    size_t at = 0;
    while (expected[at] != '\0' && expected[at] == got[at])
        at++;
    size_t from = at > 200 ? at - 200 : 0;
    ck_assert_msg(expected[at] == got[at], "at %zu: …%.400s\n\nanew: …%.400s", at, expected + from,
                  got + from);
}

void packs_ck_rebuild(struct packs *packs, const char *database, uint64_t seed)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    const annal_store_options options = {.create = true, .no_keeper = true};
    char *copy = strdup(tmpdir_path(&packs->dir, "copy-XXXXXX"));
    ck_assert_ptr_nonnull(mkdtemp(copy));
    ck_ok(annal_index_catch_up(packs->index, (annal_slice){0}, &with_packs, err));
    ck_ok(annal_store_sync(packs->store, err));
    copy_folder(packs->path, copy, "commit");
    copy_folder(packs->path, copy, "events");
    copy_folder(packs->path, copy, "packs");
    ck_ok(annal_store_open(copy, &options, &store, err));
    const annal_index_options patient = {.wait_ms = 120000};
    ck_ok(annal_index_open(store, &patient, &index, err));
    catch_up_shuffled(store, index, seed);
    char *now = dump(packs->path, database), *anew = dump(copy, database);
    ck_same(now, anew);
    free(now);
    free(anew);
    annal_index_close(index);
    ck_ok(annal_store_close(store, err));
    free(copy);
}
