#include "tests/packs/packed.h"

#include "tests/support/journals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_store(struct packed *p, const char *path)
{
    const annal_store_options options = {.create = true, .no_keeper = true};
    ck_ok(annal_store_open(path, &options, &p->store, err));
    for (const char *const *name = p->packs; *name != NULL; name++)
        ck_ok(annal_pack_enable(p->store, *name, NULL, err));
    ck_ok(annal_index_open(p->store, NULL, &p->index, err));
}

static void close_store(struct packed *p)
{
    annal_index_close(p->index);
    ck_ok(annal_store_close(p->store, err));
}

void packed_init(struct packed *p, const char *file, int line, const char *const *packs)
{
    *p = (struct packed){.packs = packs, .ts_us = 1767684240000000};
    tmpdir_init(&p->dir, file, line);
    open_store(p, tmpdir_path(&p->dir, "store"));
}

void packed_done(struct packed *p)
{
    close_store(p);
    tmpdir_done(&p->dir);
}

void packed_append(struct packed *p, const char *session, const char *type, const char *data)
{
    annal_writer *writer = NULL;
    uint64_t seq;
    const annal_draft draft = {.type = annal_slice_of(type),
                               .data = annal_slice_of(data),
                               .ts_us = p->ts_us,
                               .has_ts = true};
    p->ts_us += 1000000;
    ck_ok(annal_writer_open(p->store, annal_slice_of(session),
                            &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, err));
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
}

char *packed_rows(struct packed *p, const char *select)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_sql(p->index, annal_slice_of(select),
                    &(annal_sql_options){.timeout_ms = ANNAL_NO_TIMEOUT}, text_row, &text, err));
    return text.ptr;
}

char *packed_shell(struct packed *p, const char *database, const char *sql)
{
    struct text text = {0};
    char command[700], bytes[4096];
    const char *script = tmpdir_path(&p->dir, "script.sql");
    size_t count;
    file_write(script, sql, strlen(sql));
    snprintf(command, sizeof command, "sqlite3 -batch '%s/store/%s' <'%s' 2>&1", p->dir.path,
             database, script);
    FILE *shell = popen(command, "r");
    ck_assert_ptr_nonnull(shell);
    text_add(&text, "", 0);
    while ((count = fread(bytes, 1, sizeof bytes, shell)) > 0)
        text_add(&text, bytes, count);
    pclose(shell);
    return text.ptr;
}

/* ---- All tables ---- */

static void add_table(struct packed *p, struct text *all, const char *database, const char *table)
{
    char select[400];
    snprintf(select, sizeof select,
             "SELECT group_concat(cid + 1, ',') FROM pragma_table_info('%s', '%s')", table,
             database);
    char *order = packed_rows(p, select);
    order[strcspn(order, "\n")] = '\0';
    snprintf(select, sizeof select, "SELECT * FROM \"%s\".\"%s\" ORDER BY %s", database, table,
             order);
    char *rows = packed_rows(p, select);
    text_add(all, database, strlen(database));
    text_add(all, ".", 1);
    text_add(all, table, strlen(table));
    text_add(all, "\n", 1);
    text_add(all, rows, strlen(rows));
    free(rows);
    free(order);
}

char *packed_tables(struct packed *p)
{
    struct text all = {0};
    text_add(&all, "", 0);
    char *databases = packed_rows(
        p, "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp') ORDER BY 1");
    char *next_database = NULL;
    for (char *database = strtok_r(databases, "\n", &next_database); database != NULL;
         database = strtok_r(NULL, "\n", &next_database)) {
        char select[300], *next_table = NULL;
        snprintf(select, sizeof select,
                 "SELECT name FROM \"%s\".sqlite_master WHERE type = 'table' AND "
                 "substr(name, 1, 1) <> '_' AND name NOT LIKE 'sqlite!_%%' ESCAPE '!' ORDER BY 1",
                 database);
        char *tables = packed_rows(p, select);
        for (char *table = strtok_r(tables, "\n", &next_table); table != NULL;
             table = strtok_r(NULL, "\n", &next_table))
            add_table(p, &all, database, table);
        free(tables);
    }
    free(databases);
    return all.ptr;
}

/* ---- Anew ---- */

struct names {
    char (*ids)[ANNAL_SESSION_ID_BYTES_MAX + 1];
    size_t count;
};

static int add_name(void *arg, annal_slice session, uint64_t bytes)
{
    struct names *names = arg;
    (void)bytes;
    names->ids = realloc(names->ids, (names->count + 1) * sizeof *names->ids);
    ck_assert_ptr_nonnull(names->ids);
    snprintf(names->ids[names->count++], sizeof *names->ids, "%.*s", ANNAL_FMT(session));
    return 0;
}

/* Where two texts part, for a message that can be read. */
static void ck_same(const char *expected, const char *got)
{
    size_t at = 0;
    while (expected[at] != '\0' && expected[at] == got[at])
        at++;
    size_t from = at > 200 ? at - 200 : 0;
    ck_assert_msg(expected[at] == got[at], "at %zu: …%.400s\n\nanew: …%.400s", at, expected + from,
                  got + from);
}

void packed_compare_rebuild(struct packed *p, struct random *random)
{
    static unsigned copies;
    char name[30];
    struct packed other = {.packs = p->packs};
    struct names names = {0};
    char *expected = packed_tables(p);
    ck_ok(annal_checkpoint(p->store, err));
    snprintf(name, sizeof name, "copy-%u", copies++);
    const char *path = tmpdir_path(&p->dir, name);
    copy_store(tmpdir_path(&p->dir, "store"), path);
    open_store(&other, path);
    ck_ok(annal_store_sessions(other.store, add_name, &names, err));
    for (size_t left = names.count; left > 0; left--) {
        size_t chosen = random_below(random, left);
        ck_ok(annal_index_catch_up(
            other.index, annal_slice_of(names.ids[chosen]),
            &(annal_catch_up_options){.timeout_ms = ANNAL_NO_TIMEOUT, .packs = true}, err));
        memmove(names.ids[chosen], names.ids[left - 1], sizeof *names.ids);
    }
    char *got = packed_tables(&other);
    ck_same(expected, got);
    close_store(&other);
    free(names.ids);
    free(got);
    free(expected);
}
