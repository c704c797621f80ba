/* SPDX-License-Identifier: Apache-2.0 */
/* Answers whether a process watches the logs of agents, and how far the imports of logs are
 * unread. */
#include "journal/base/json.h"
#include "journal/base/lock_holder.h"
#include "tools/import/changes.h"
#include "tools/import/watcher.h"
#include "tools/serve/serve.h"

#include <inttypes.h>

#define LISTED 100u /* logs with bytes that are not imported */

struct unread {
    struct buf *out;
    uint64_t sources, bytes;
};

static int add_source(void *arg, const annal_row *row)
{
    struct unread *unread = arg;
    unread->bytes += (uint64_t)row->values[1].integer;
    if (unread->sources++ >= LISTED)
        return 0;
    return annal__json_put(unread->out, "#{\"path\":?,\"bytes\":#,\"since\":\"#\"}",
                           annal_slice_of(unread->sources > 1 ? "," : ""), row->values[0].bytes,
                           JSON_I64(row->values[1].integer), row->values[2].bytes);
}

void serve_watch_get(struct serve *serve, struct request *request)
{
    annal_error err = {0};
    struct watcher watcher;
    char name[HOLDER_BYTES], since[ANNAL_TIME_BYTES];
    struct unread unread = {.out = &request->answer};
    annal_status status;
    if (watcher_find(annal_store_path(serve->store), &watcher)) {
        annal_time_format(watcher.since_us, since);
        status = annal__buf_printf(unread.out, "{\"watch\":{\"process\":\"%s\",\"since\":\"%s\"}",
                                   annal__lock_holder_name(watcher.pid, name), since);
    } else {
        status = annal__buf_printf(unread.out, "{\"watch\":null");
    }
    status = annal__buf_printf(unread.out, ",\"unread\":[");
    if (status >= 0)
        status = changes_unread(serve->store, serve->index, add_source, &unread, &err);
    if (status >= 0)
        status = annal__buf_printf(unread.out, "],\"sources\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
                                   unread.sources, unread.bytes);
    answer_json(request, status, &err);
}
