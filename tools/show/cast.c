/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/cast.h"

#include "journal/base/json.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <string.h>

/* Quote text as a JSON string. A line break becomes "\r\n", as a terminal driver writes it, so that
 * the next line starts in the first column. */
static void quote_terminal(struct buf *out, annal_slice text)
{
    SCOPED_BUF raw = {0};
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);
        must_append(&raw, text.ptr, len);
        must_append_text(&raw, end != NULL ? "\r\n" : "");
        text.ptr += len + (end != NULL);
        text.len -= len + (end != NULL);
    }
    must_quote(out, annal__buf_slice(&raw));
}

int cast_begin(struct cast *cast, const char *path, annal_slice title)
{
    int exit_status = target_begin(&cast->target, path);
    if (exit_status != 0)
        return exit_status;
    out_json("{\"version\":2,\"width\":#,\"height\":#,\"title\":?,\"env\":{\"TERM\":\"xterm-"
             "256color\"}}\n",
             JSON_I64(CAST_COLUMNS), JSON_I64(CAST_ROWS), title);
    cast->open = true;
    out_capture(&cast->text);
    return 0;
}

void cast_pass(struct cast *cast, double seconds)
{
    SCOPED_BUF quoted = {0};
    fflush(stdout);
    if (cast->text.len > 0) {
        quote_terminal(&quoted, annal__buf_slice(&cast->text));
        out_capture(NULL);
        printf("[%.6f,\"o\",", cast->seconds);
        out_slice(annal__buf_slice(&quoted));
        fputs("]\n", stdout);
        out_capture(&cast->text);
    }
    annal__buf_clear(&cast->text);
    cast->seconds += seconds;
}

int cast_end(struct cast *cast, bool whole)
{
    if (!cast->open)
        return 0;
    cast_pass(cast, 0);
    out_capture(NULL);
    annal__buf_done(&cast->text);
    return target_end(&cast->target, whole);
}
