/* SPDX-License-Identifier: Apache-2.0 */
/* annal pack: the packs that a store runs, and whether they are correct. */
#include "index/sys/pack.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_open.h"
#include "tools/cli/verbs.h"
#include "tools/cmd/pack_test.h"

#include <annal/verb.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- list ---- */

static const struct column columns[] = {
    {.name = "name", .title = "NAME"},
    {.name = "version", .title = "VERSION", .right = true},
    {.name = "state", .title = "STATE"},
    {.name = "database", .title = "DATABASE", .flexible = true, .cut_left = true},
    {.name = "source", .title = "SOURCE", .flexible = true, .cut_left = true, .spare = 1},
    {.name = "sessions", .title = "SESSIONS", .right = true},
    {.name = "events", .title = "EVENTS", .right = true, .spare = 2},
    {.name = "behind", .title = "BEHIND", .right = true},
    {.name = "findings", .title = "FINDINGS", .right = true},
    {.name = "error"}};

static const char *state_name(const annal_pack_info *info)
{
    static const char *const names[] = {"ready", "building", "failed"};
    return names[info->state];
}

struct list {
    struct table *table;
    const char *store; /* path of the store */
    bool failed;       /* whether a pack of the user has a mistake */
};

static void add_text(struct table *table, const char *text)
{
    if (text == NULL)
        table_null(table);
    else
        table_text(table, annal_slice_of(text));
}

/* Add the path; for people, without the path of the store if the file is in the store. */
static void add_path(const struct list *list, const char *path)
{
    size_t len = strlen(list->store);
    add_text(list->table, path);
    if (path != NULL && strncmp(path, list->store, len) == 0 && path[len] == '/')
        table_shown(list->table, "%s", path + len + 1);
}

static int add_row(void *arg, const annal_pack_info *info)
{
    struct list *list = arg;
    struct table *table = list->table;
    add_text(table, info->name);
    if (info->version > 0)
        table_number(table, info->version);
    else
        table_null(table);
    add_text(table, state_name(info));
    add_path(list, info->database);
    add_path(list, info->source);
    if (info->source == NULL)
        table_shown(table, "built in");
    table_count(table, info->sessions);
    table_count(table, info->events_applied);
    table_count(table, info->events_behind);
    table_count(table, info->findings);
    add_text(table, info->error);
    table_row(table);
    list->failed = list->failed || info->error != NULL;
    if (info->error != NULL &&
        info->source == NULL) /* mistakes in a file were reported when the file was read */
        say("pack %s: %s", info->name, info->error);
    return 0;
}

static int list(const struct args *args)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_error err = {0};
    struct list list = {0};
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0 && annal_index_open(store, NULL, &index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status != 0)
        goto done;
    list.store = annal_store_path(store);
    list.table =
        table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, sizeof columns / sizeof columns[0]);
    if (annal_pack_each(index, add_row, &list, &err) < 0)
        exit_status = fail_error(&err);
    table_free(list.table);
    if (exit_status == 0 && list.failed)
        exit_status = EXIT_REFUSED;

done:
    annal_index_close(index);
    return store_close(store, exit_status);
}

/* ---- check ---- */

/* Refuse nouns that annal itself uses, because their verbs would never run. Return the exit
 * status. */
static int check_nouns(const annal_pack *pack, const char *file)
{
    int exit_status = 0;
    for (const annal_noun *noun = annal_pack_nouns(pack); noun->name != NULL; noun++) {
        const struct noun *other = noun_find_built_in(noun->name);
        bool is_same = other != NULL && other->pack != NULL &&
                       strcmp(other->pack, annal__pack_name(pack)) == 0;
        if (command_find(noun->name) != NULL || (other != NULL && !is_same))
            exit_status =
                fail_refused("%s:%u: '%s' is a %s of annal itself, which takes precedence: give "
                             "the noun another name",
                             file, noun->line, noun->name, other != NULL ? "noun" : "verb");
    }
    return exit_status;
}

static int check_file(const struct args *args, const char *path)
{
    SCOPED_BUF text = {0};
    annal_pack *pack = NULL;
    annal_error err = {0};
    int exit_status = verb_read_file(path, &text);
    if (exit_status == 0 && annal_pack_parse(path, annal__buf_slice(&text), &pack, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = check_nouns(pack, path);
    if (exit_status == 0 && args->json)
        printf("{\"name\":\"%s\",\"version\":%" PRIu32 ",\"database\":\"%s\"}\n",
               annal__pack_name(pack), annal__pack_version(pack), annal__pack_database(pack));
    else if (exit_status == 0)
        printf("pack %s, version %" PRIu32 ", database %s: its statements are correct\n",
               annal__pack_name(pack), annal__pack_version(pack), annal__pack_database(pack));
    annal_pack_free(pack);
    return exit_status;
}

/* an enabled pack, found by its name */
struct found {
    const char *name;
    bool is_there;
    bool has_error;
    annal_pack_state state;
    uint32_t version;
    uint64_t findings;
    char error[512];
    /* path without symbolic links, owned; NULL: the pack has no database, or one for each
     * session */
    char *database;
};

static int find(void *arg, const annal_pack_info *info)
{
    struct found *found = arg;
    if (strcmp(info->name, found->name) != 0)
        return 0;
    found->is_there = true;
    found->version = info->version;
    found->state = info->state;
    found->findings = info->findings;
    found->has_error = info->error != NULL;
    snprintf(found->error, sizeof found->error, "%s", info->error ? info->error : "");
    if (info->database != NULL && strchr(info->database, '*') == NULL)
        found->database = realpath(info->database, NULL);
    return 0;
}

static int say_key(void *arg, const annal_row *row)
{
    uint64_t *count = arg;
    *count += (uint64_t)row->values[2].integer;
    say("%.*s: %" PRId64 " row%s of %.*s that %s missing", ANNAL_FMT(row->values[0].bytes),
        row->values[2].integer, row->values[2].integer == 1 ? " names a row" : "s name rows",
        ANNAL_FMT(row->values[1].bytes), row->values[2].integer == 1 ? "is" : "are");
    return 0;
}

struct keys {
    annal_index *index;
    const char *pack;
    uint64_t count;
};

/* Report foreign keys without a target, of the pack's tables in the database with the schema name
 * of the row. */
static int check_keys_in(void *arg, const annal_row *row)
{
    struct keys *keys = arg;
    SCOPED_BUF sql = {0};
    annal_error err = {0};
    const annal_value params[] = {row->values[0],
                                  {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(keys->pack)}};
    const annal_sql_options options = {.params = params, .param_count = 2};
    must_printf(&sql,
                "SELECT f.\"table\", f.parent, count(*) "
                "FROM pragma_foreign_key_check(NULL, ?1) AS f WHERE f.\"table\" IN ("
                " SELECT name FROM \"%.*s\"._object WHERE pack = ?2 AND type = 'table') "
                "GROUP BY 1, 2",
                ANNAL_FMT(row->values[0].bytes));
    annal_status status =
        annal_index_sql(keys->index, annal__buf_slice(&sql), &options, say_key, &keys->count, &err);
    return status < 0 ? fail_error(&err) : 0;
}

/* Report and count foreign keys of the pack's tables without a target. Return the exit status. */
static int check_keys(annal_index *index, const struct found *found, uint64_t *out_count)
{
    struct keys keys = {.index = index, .pack = found->name};
    annal_error err = {0};
    if (found->database == NULL || strcmp(found->name, "core") == 0)
        return 0;
    int status = (int)annal_index_sql(index,
                                      ANNAL_SLICE("SELECT schema FROM pragma_table_list "
                                                  "WHERE name = '_object' AND schema <> 'main'"),
                                      NULL, check_keys_in, &keys, &err);
    *out_count += keys.count;
    return status < 0 ? fail_error(&err) : status;
}

static int check_nouns_of(annal_index *index, const char *name)
{
    annal_pack *pack = NULL;
    annal_error err = {0};
    if (annal__pack_named(index, name, &pack, &err) < 0)
        return fail_error(&err);
    int exit_status = check_nouns(pack, name);
    annal_pack_free(pack);
    return exit_status;
}

static int check_name(const struct args *args, const char *name)
{
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_error err = {0};
    uint64_t keys = 0;
    struct found found = {.name = name};
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0)
        exit_status = catch_up_open_with_packs(store, &index);
    if (exit_status == 0 && annal_pack_each(index, find, &found, &err) < 0)
        exit_status = fail_error(&err);
    else if (exit_status == 0 && !found.is_there)
        exit_status =
            fail_refused("'%s' is neither a pack that is enabled in this store nor a file", name);
    else if (exit_status == 0 && found.has_error)
        exit_status = fail_refused("pack %s: %s", name, found.error);
    if (exit_status == 0)
        exit_status = check_nouns_of(index, name);
    if (exit_status == 0)
        exit_status = check_keys(index, &found, &keys);
    if (exit_status == 0 && args->json)
        printf("{\"name\":\"%s\",\"version\":%" PRIu32 ",\"findings\":%" PRIu64
               ",\"foreign_keys\":%" PRIu64 "}\n",
               name, found.version, found.findings, keys);
    else if (exit_status == 0)
        printf("pack %s, version %" PRIu32 ": %" PRIu64 " finding%s, %" PRIu64
               " foreign key%s without a target\n",
               name, found.version, found.findings, found.findings == 1 ? "" : "s", keys,
               keys == 1 ? "" : "s");
    if (exit_status == 0 && (found.findings > 0 || keys > 0))
        exit_status = EXIT_REFUSED;
    free(found.database);
    annal_index_close(index);
    return store_close(store, exit_status);
}

static int check(const struct args *args)
{
    int exit_status = 0;
    const char *what;
    for (int at = 0; (what = args_next(args, "PACK", &at)) != NULL;) {
        bool is_file =
            strchr(what, '/') != NULL || strchr(what, '.') != NULL || access(what, F_OK) == 0;
        int checked = is_file ? check_file(args, what) : check_name(args, what);
        exit_status = checked > exit_status ? checked : exit_status;
    }
    return exit_status;
}

/* ---- rebuild ---- */

struct rebuild {
    struct progress line;
};

static int show(void *arg, const annal_index_progress *progress)
{
    struct rebuild *rebuild = arg;
    rebuild->line.total = progress->bytes_total;
    progress_set(&rebuild->line, progress->bytes_done, NULL);
    return 0;
}

/* name of a pack, and the number of events that were applied to its tables */
struct made_from {
    const char *name;
    uint64_t events;
};

static int count_events(void *arg, const annal_pack_info *info)
{
    struct made_from *made = arg;
    if (strcmp(info->name, made->name) == 0)
        made->events = info->events_applied;
    return 0;
}

static int rebuild_pack(const struct args *args, annal_index *index)
{
    annal_error err = {0};
    struct rebuild work = {0};
    char events[HUMAN_BYTES];
    const char *name = args_get(args, "NAME");
    struct made_from made = {.name = name};
    const annal_catch_up_options options = {.progress = show, .arg = &work};
    progress_begin(&work.line, name, 0);
    annal_status status = annal_pack_rebuild(index, name, &options, &err);
    progress_hide(&work.line);
    if (status >= 0)
        status = annal_pack_each(index, count_events, &made, &err);
    if (status < 0)
        return fail_error(&err);
    if (args->json)
        printf("{\"name\":\"%s\",\"events\":%" PRIu64 "}\n", name, made.events);
    else
        printf("pack %s: tables rebuilt from %s events\n", name, human_count(events, made.events));
    return EXIT_DONE;
}

static int rebuild(const struct args *args)
{
    return store_with_index(args, OPEN_WRITE, rebuild_pack);
}

/* ---- enable, disable ---- */

static int change(const struct args *args, enum open_mode mode, const char *done,
                  annal_status (*change_pack)(annal_store *, const struct args *, annal_error *))
{
    annal_store *store = NULL;
    annal_error err = {0};
    int exit_status = store_open(args, mode, 0, &store);
    if (exit_status == 0 && change_pack(store, args, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && args->json) {
        out_json("{\"name\":?,\"#\":true}\n", annal_slice_of(args_get(args, "NAME")),
                 annal_slice_of(done));
    } else if (exit_status == 0) {
        printf("pack %s is %s\n", args_get(args, "NAME"), done);
    }
    return store_close(store, exit_status);
}

static annal_status enable_pack(annal_store *store, const struct args *args, annal_error *err)
{
    return annal_pack_enable(store, args_get(args, "NAME"), args_get(args, "at"), err);
}

static annal_status disable_pack(annal_store *store, const struct args *args, annal_error *err)
{
    return annal_pack_disable(store, args_get(args, "NAME"), err);
}

static int enable(const struct args *args)
{
    return change(args, OPEN_CREATE, "enabled", enable_pack);
}

static int disable(const struct args *args)
{
    return change(args, OPEN_WRITE, "disabled", disable_pack);
}

/* ---- The table ---- */

static const struct field check_fields[] = {
    OPERAND("PACK", FIELD_LIST, NULL, "a SQL file, or the name of an enabled pack"), FIELDS_END};

static const struct field test_fields[] = {OPERAND("FILE", FIELD_LIST, NULL, "a file of cases"),
                                           FIELDS_END};

static const struct field enable_fields[] = {
    OPERAND("NAME", FIELD_TEXT, NULL, "an included pack, such as teams or memory"),
    OPTION("at", "DIR", FIELD_TEXT, NULL, "directory of its database (default: the store)"),
    CREATE_OPTION, FIELDS_END};

static const struct field no_fields[] = {FIELDS_END};

static const struct field name_fields[] = {OPERAND("NAME", FIELD_TEXT, NULL, "the pack"),
                                           FIELDS_END};

static const struct command verbs[] = {
    {COMMAND("enable", "enable an included pack", pack_enable, enable_fields, enable)},
    {COMMAND("disable", "disable a pack", pack_disable, name_fields, disable)},
    {COMMAND("list", "list the enabled packs, and their state", pack_list, no_fields, list)},
    {COMMAND("check", "check a pack", pack_check, check_fields, check)},
    {COMMAND("test", "run the cases of a test file of packs", pack_test, test_fields, pack_test)},
    {COMMAND("rebuild", "rebuild the tables of a pack from the journals", pack_rebuild, name_fields,
             rebuild)},
    {0}};

const struct noun noun_pack = {
    .name = "pack", .summary = "packs of a store, and whether they are correct", .verbs = verbs};
