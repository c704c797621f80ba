/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with a session as one HTML file (tools/export/html.h). */
#include "tools/export/html.h"

#include "tools/serve/produce.h"

static annal_status fill(void *arg, struct buf *out)
{
    return html_next(arg, out, NULL);
}

static void drop(void *arg)
{
    html_close(arg);
}

void share_get(struct serve *serve, struct request *request)
{
    static const char *const no_yes[] = {"0", "1", NULL};
    annal_error err = {0};
    struct html *html = NULL;
    int tree = 0;
    if (!answer_choice(request, "tree", no_yes, &tree))
        return;
    if (html_open(serve->store, serve->index, request->id, tree == 1, &html, &err) < 0) {
        answer_failure(request, &err);
        return;
    }
    (void)annal__buf_printf(&request->headers,
                            "Content-Disposition: attachment; filename=\"%.*s.html\"\n",
                            ANNAL_FMT(request->id));
    produce(serve, request, "text/html; charset=utf-8",
            &(struct producer){.queue = QUEUE_QUICK, .arg = html, .fill = fill, .free = drop});
}
