/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All nouns: the nouns of the command itself, and the nouns in packs, which are converted to tables
 * of the command here.
 *
 * (1) A word that is neither a verb of one word nor a noun of the command is looked up in packs:
 *     first in the built-in packs, of which only the pack with this noun is read, then in the
 *     users' packs in the store. A list of nouns reads all packs. The store is not opened.
 * (2) If a name is used twice, the first of these has it: a verb of one word, a noun of the
 *     command, a noun of a built-in pack, a noun of a user's pack in the order of the files.
 * (3) A verb that is neither one event nor one SELECT has code (struct verb_code), which is found
 *     by the names of noun and verb. Verbs of users have no code.
 */
#include "index/sys/pack.h"
#include "tools/cli/must.h"
#include "tools/cli/verbs.h"

#include "journal/base/default_store.h"
#include "tools/cli/out.h"

#include <annal/verb.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct noun *const own[] = {&noun_pack, &noun_snapshot, &noun_artifact, &noun_cursor,
                                         &noun_ship, &noun_home,     &noun_source};

enum { OWN_COUNT = sizeof own / sizeof *own };

/* A pack with nouns. It is kept until the process ends. */
struct said {
    struct said *next;
    annal_pack *pack;
    struct noun *nouns; /* nouns of the pack; a noun without a name ends them */
};

static struct {
    /* packs that were read for one noun each, before all built-in packs were read */
    struct said *asked_for;
    struct said *built_in;
    struct said *of_users;
    /* whether all built-in packs, and all packs of users, were read */
    bool all_built_in, all_of_users;
    /* directory of --store, or NULL for the default store; from nouns_look_in() */
    const char *store;
    bool in_store;
} known;

/* ---- From a pack to tables ---- */

static struct field *fields_of(const annal_field *from)
{
    size_t count = 0;
    while (from[count].kind != ANNAL_FIELD_END)
        count++;
    struct field *fields = must_zalloc((count + 1) * sizeof *fields);
    for (size_t i = 0; i < count; i++)
        fields[i] = (struct field){
            .option = {.name = from[i].name,
                       .value = from[i].value,
                       .help = from[i].help,
                       .repeatable = from[i].name != NULL && from[i].kind == ANNAL_FIELD_LIST},
            .kind = (enum field_kind)from[i].kind,
            .to = from[i].to,
            .required = from[i].required,
            .preset = from[i].preset,
            .choices = from[i].choices};
    for (size_t i = 0; i < count; i++) {
        if (fields[i].kind != FIELD_NUMBER || fields[i].choices == NULL)
            continue;
        sscanf(fields[i].choices, "%" SCNu64 "..%" SCNu64, &fields[i].least, &fields[i].most);
        fields[i].choices = NULL;
    }
    return fields;
}

static void add_code(const char *noun, struct command *verb)
{
    for (size_t i = 0; verb_codes[i] != NULL; i++) {
        for (const struct verb_code *code = verb_codes[i]; code->noun != NULL; code++) {
            if (strcmp(code->noun, noun) != 0 || strcmp(code->verb, verb->name) != 0)
                continue;
            verb->prepare = code->prepare;
            verb->finish = code->finish;
            verb->run = code->run != NULL ? code->run : verb->run;
        }
    }
}

static struct command *verbs_of(const annal_noun *noun, bool has_code)
{
    static int (*const runs[])(const struct args *) = {
        [ANNAL_VERB_APPENDS] = verb_append,     [ANNAL_VERB_EACH] = verb_append_each,
        [ANNAL_VERB_SELECTS] = verb_select,     [ANNAL_VERB_LINES] = verb_lines,
        [ANNAL_VERB_WRITES] = verb_write_files, [ANNAL_VERB_RUNS] = NULL};
    const annal_verb *from = noun->verbs;
    size_t count = 0;
    while (from[count].name != NULL)
        count++;
    struct command *verbs = must_zalloc((count + 1) * sizeof *verbs);
    for (size_t i = 0; i < count; i++) {
        verbs[i] = (struct command){.name = from[i].name,
                                    .summary = from[i].summary,
                                    .about = from[i].about,
                                    .examples = from[i].examples,
                                    .fields = fields_of(from[i].fields),
                                    .type = from[i].type,
                                    .session = from[i].session,
                                    .said = from[i].said,
                                    .none = from[i].none,
                                    .needs = from[i].needs,
                                    .sql = from[i].sql,
                                    .params = from[i].params,
                                    .run = runs[from[i].kind]};
        if (has_code)
            add_code(noun->name, &verbs[i]);
    }
    return verbs;
}

/* ---- Reading packs (rule 1) ---- */

static const struct noun *find(const struct said *said, const char *name)
{
    for (; said != NULL; said = said->next) {
        for (const struct noun *noun = said->nouns; noun->name != NULL; noun++) {
            if (strcmp(noun->name, name) == 0)
                return noun;
        }
    }
    return NULL;
}

/* Return whether a name is in use, so that a noun of a user's pack cannot have it (rule 2). */
static bool is_taken(const struct said *by_users, const char *name)
{
    return command_find(name) != NULL || noun_find_built_in(name) != NULL ||
           find(by_users, name) != NULL;
}

/* Add the nouns of a pack to the list in arg; a callback for reading packs. Returns 0 to
 * continue. */
static int add_pack(void *arg, annal_pack *pack, const char *file, const annal_error *why)
{
    struct said **last = arg, *said = NULL;
    size_t count = 0, kept = 0;
    if (pack == NULL)
        say("the commands of a pack file are skipped: %s", why->message);
    if (pack == NULL || annal_pack_nouns(pack)->name == NULL) {
        annal_pack_free(pack);
        return 0;
    }
    const annal_noun *from = annal_pack_nouns(pack);
    while (from[count].name != NULL)
        count++;
    said = must_zalloc(sizeof *said);
    said->nouns = must_zalloc((count + 1) * sizeof *said->nouns);
    said->pack = pack;
    for (size_t i = 0; i < count; i++) {
        if (file != NULL && is_taken(*(struct said **)arg, from[i].name))
            continue;
        struct noun *noun = &said->nouns[kept++];
        *noun = (struct noun){.name = from[i].name,
                              .summary = from[i].summary,
                              .pack = annal__pack_name(pack),
                              .of_user = file != NULL,
                              .verbs = verbs_of(&from[i], file == NULL)};
    }
    while (*last != NULL)
        last = &(*last)->next;
    *last = said;
    return 0;
}

static void say_failure(annal_status status, const annal_error *err)
{
    if (status < 0)
        say("%s", err->message[0] != '\0' ? err->message : "read the packs: out of memory");
}

static void read_all_built_in(void)
{
    annal_error err = {0};
    if (!known.all_built_in)
        say_failure(annal__packs_built_in(NULL, add_pack, &known.built_in, &err), &err);
    known.all_built_in = true;
}

static void read_of_users(void)
{
    SCOPED_BUF store = {0};
    annal_error err = {0};
    if (!known.all_of_users && known.in_store &&
        annal__default_store_place(known.store, getenv("XDG_DATA_HOME"), getenv("HOME"), &store) >=
            0)
        say_failure(annal__packs_of_users(store.ptr, add_pack, &known.of_users, &err), &err);
    known.all_of_users = known.in_store;
}

void nouns_look_in(const char *store)
{
    known.store = store;
    known.in_store = true;
}

bool noun_is_on(const struct noun *noun)
{
    SCOPED_BUF path = {0};
    char line[256];
    bool on = noun->pack == NULL || noun->of_user || strcmp(noun->pack, "core") == 0;
    FILE *enabled = NULL;
    if (!on && annal__default_store_place(known.store, getenv("XDG_DATA_HOME"), getenv("HOME"),
                                          &path) >= 0) {
        must_printf(&path, "/packs/enabled");
        enabled = fopen(path.ptr, "re");
    }
    while (!on && enabled != NULL && fgets(line, sizeof line, enabled) != NULL) {
        const char *name = line + strspn(line, " \t");
        size_t len = strlen(noun->pack);
        on = strncmp(name, noun->pack, len) == 0 && strchr(" \t\r\n#", name[len]) != NULL;
    }
    if (enabled != NULL)
        fclose(enabled);
    return on;
}

/* ---- Lookup ---- */

const struct noun *noun_find_built_in(const char *name)
{
    annal_error err = {0};
    for (size_t i = 0; i < OWN_COUNT; i++) {
        if (strcmp(own[i]->name, name) == 0)
            return own[i];
    }
    if (known.all_built_in)
        return find(known.built_in, name);
    if (find(known.asked_for, name) == NULL)
        say_failure(annal__packs_built_in(name, add_pack, &known.asked_for, &err), &err);
    return find(known.asked_for, name);
}

const struct noun *noun_find(const char *name)
{
    const struct noun *noun = noun_find_built_in(name);
    if (noun == NULL)
        read_of_users();
    return noun == NULL ? find(known.of_users, name) : noun;
}

const struct noun *noun_at(size_t i)
{
    read_all_built_in();
    read_of_users();
    const struct said *const lists[] = {known.built_in, known.of_users};
    if (i < OWN_COUNT)
        return own[i];
    i -= OWN_COUNT;
    for (size_t list = 0; list < 2; list++) {
        for (const struct said *said = lists[list]; said != NULL; said = said->next) {
            for (const struct noun *noun = said->nouns; noun->name != NULL; noun++) {
                if (i-- == 0)
                    return noun;
            }
        }
    }
    return NULL;
}

const struct command *noun_verb(const struct noun *noun, const char *name)
{
    for (const struct command *verb = noun->verbs; verb->name != NULL; verb++) {
        if (strcmp(verb->name, name) == 0)
            return verb;
    }
    return NULL;
}
