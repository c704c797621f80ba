/* annal pack: which packs a store runs, and whether they are right. */
#include "journal/base/buf.h"
#include "tools/open.h"
#include "tools/out.h"
#include "tools/verbs.h"

#include <annal/pack.h>

#include <inttypes.h>

static int check_file(const struct args *args, const char *path)
{
    struct buf text = {0};
    annal_pack *pack = NULL;
    annal_error err = {0};
    int exit_status = verb_read_file(path, &text);
    if (exit_status == 0 && annal_pack_parse(path, annal__buf_slice(&text), &pack, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && args->json)
        printf("{\"pack\":\"%s\",\"version\":%" PRIu32 ",\"database\":\"%s\"}\n",
               annal_pack_name(pack), annal_pack_version(pack), annal_pack_database(pack));
    else if (exit_status == 0)
        printf("pack %s, version %" PRIu32 ", database %s: its statements are sound\n",
               annal_pack_name(pack), annal_pack_version(pack), annal_pack_database(pack));
    annal_pack_free(pack);
    annal__buf_done(&text);
    return exit_status;
}

static int check(const struct args *args)
{
    int exit_status = 0;
    const char *path;
    for (int at = 0; (path = verb_next(args, "FILE", &at)) != NULL;) {
        int checked = check_file(args, path);
        exit_status = checked > exit_status ? checked : exit_status;
    }
    return exit_status;
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
        printf("{\"name\":");
        out_json_string(annal_slice_of(verb_text(args, "NAME")));
        printf(",\"%s\":true}\n", done);
    } else if (exit_status == 0) {
        printf("pack %s is %s\n", verb_text(args, "NAME"), done);
    }
    return store_close(store, exit_status);
}

static annal_status enable_pack(annal_store *store, const struct args *args, annal_error *err)
{
    return annal_pack_enable(store, verb_text(args, "NAME"), verb_text(args, "at"), err);
}

static annal_status disable_pack(annal_store *store, const struct args *args, annal_error *err)
{
    return annal_pack_disable(store, verb_text(args, "NAME"), err);
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
    OPERAND("FILE", FIELD_LIST, NULL, "a pack: one SQL file"), FIELDS_END};

static const struct field enable_fields[] = {
    OPERAND("NAME", FIELD_TEXT, NULL, "lionagi, teams, prose, agentweaver, memory"),
    OPTION("at", "DIR", FIELD_TEXT, NULL, "where its database stands, if not in the store"),
    FIELDS_END};

static const struct field name_fields[] = {OPERAND("NAME", FIELD_TEXT, NULL, "the pack"),
                                           FIELDS_END};

static const struct command verbs[] = {
    {.name = "enable",
     .summary = "run a pack that comes with Annal",
     .about = "From now on the store keeps the pack's tables; the next question fills them from\n"
              "what there is. A pack of your own is on when its file stands in STORE/packs/.\n"
              "The store is made when it is missing.",
     .examples = "  annal pack enable teams\n"
                 "  annal pack enable prose --at .prose\n",
     .fields = enable_fields,
     .run = enable},
    {.name = "disable",
     .summary = "stop running a pack",
     .about = "Its tables stay as they are, and nobody reads them; when the pack is enabled\n"
              "again they are brought up to date.",
     .examples = "  annal pack disable teams\n",
     .fields = name_fields,
     .run = disable},
    {.name = "check",
     .summary = "whether a pack's file is right",
     .about = "Makes its tables and compiles its statements, in memory. What is wrong is\n"
              "said with file and line, and exit status 1.",
     .examples = "  annal pack check tools-per-day.sql\n",
     .fields = check_fields,
     .run = check},
    {0}};

const struct noun noun_pack = {.name = "pack",
                               .summary = "which packs a store runs, and whether they are right",
                               .verbs = verbs};
