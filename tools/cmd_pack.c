/* annal pack: which packs a store runs, and whether they are right. */
#include "journal/base/buf.h"
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

static const struct field check_fields[] = {
    OPERAND("FILE", FIELD_LIST, NULL, "a pack: one SQL file"), FIELDS_END};

static const struct command verbs[] = {
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
