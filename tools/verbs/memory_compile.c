/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal memory compile: prints the context of an agent. */
#include "tools/cli/rows.h"
#include "tools/cli/verbs.h"
#include "tools/verbs/agentweaver.h"

#include <annal/packs/memory.h>

#include <inttypes.h>

struct compiled {
    bool json;
    annal_memory_layer layer; /* layer of the item that was printed last */
};

static void print_text(const annal_memory_item *item)
{
    printf("%s%.*s: ", item->included ? "- " : "x ", ANNAL_FMT(item->label));
    out_plain(item->title);
    if (item->title.len > 0 && item->content.len > 0)
        printf(" - ");
    out_plain(item->content);
    printf("\n");
    if (item->rationale.ptr != NULL) {
        printf("    rationale: ");
        out_plain(item->rationale);
        printf("\n");
    }
    printf("    why: ");
    out_plain(item->why);
    printf("\n");
}

static void print_member(const char *name, annal_slice text)
{
    printf(",\"%s\":", name);
    if (text.ptr != NULL)
        out_json_string(text);
    else
        printf("null");
}

static void print_json(const annal_memory_item *item)
{
    static const char *const layers[] = {[ANNAL_MEMORY_BOUNDARY] = "boundary",
                                         [ANNAL_MEMORY_MEMORY] = "memory",
                                         [ANNAL_MEMORY_SESSION] = "session"};
    printf("{\"place\":%" PRIu64, item->place);
    print_member("layer", annal_slice_of(layers[item->layer]));
    print_member("id", item->id);
    print_member("label", item->label);
    print_member("title", item->title);
    print_member("content", item->content);
    print_member("rationale", item->rationale);
    if (item->layer == ANNAL_MEMORY_MEMORY)
        printf(",\"score\":%" PRId64 ",\"cost\":%" PRId64, item->score, item->cost);
    else
        printf(",\"score\":null,\"cost\":null");
    print_member("created_at", item->created);
    printf(",\"included\":%d", item->included);
    print_member("why", item->why);
    printf("}\n");
}

static int print_item(void *arg, const annal_memory_item *item)
{
    static const char *const titles[] = {[ANNAL_MEMORY_BOUNDARY] = "Boundaries",
                                         [ANNAL_MEMORY_MEMORY] = "Memory",
                                         [ANNAL_MEMORY_SESSION] = "Current session"};
    struct compiled *compiled = arg;
    if (compiled->json) {
        print_json(item);
        return 0;
    }
    if (item->layer != compiled->layer)
        printf("%s## %s\n", compiled->layer == 0 ? "" : "\n", titles[item->layer]);
    compiled->layer = item->layer;
    print_text(item);
    return 0;
}

/* Read an option that is a number of at least 1; *out is unchanged if it was not given. Returns 0
 * or an exit status. */
static int read_count(const struct args *args, const char *name, uint32_t *out)
{
    uint64_t count = 1;
    int exit_status = args_number(args, name, &count);
    if (exit_status == 0 && (count == 0 || count > UINT32_MAX))
        exit_status = fail_usage("--%s needs a number from 1 to %u", name, UINT32_MAX);
    if (exit_status == 0 && args_has(args, name))
        *out = (uint32_t)count;
    return exit_status;
}

int memory_compile(const struct args *args)
{
    struct verb_call call;
    annal_memory_options options = {.child = args_has(args, "child"), .all = args_has(args, "all")};
    annal_error err = {0};
    struct compiled compiled = {.json = args->json};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = read_count(args, "items", &options.items);
    if (exit_status == 0)
        exit_status = read_count(args, "tokens", &options.tokens);
    if (exit_status == 0 &&
        annal_memory_compile(call.index, annal_slice_of(args_get(args, "PROJECT")),
                             annal_slice_of(args_get(args, "agent")), &options, print_item,
                             &compiled, &err) < 0)
        exit_status = fail_error(&err);
    return verb_close(&call, exit_status);
}
