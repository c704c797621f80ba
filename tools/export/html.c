/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/html.h"

#include "journal/base/alloc.h"
#include "journal/base/base64.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"
#include "tools/otlp/gzip.h"
#include "tools/show/event_out.h"
#include "tools/show/session_rows.h"
#include "tools/show/timeline_rows.h"
#include "tools/show/web_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

extern const char annal__sql_html_below[]; /* html/below.sql */

#define BLOCK_BYTES  ((size_t)1 << 20)
#define PACKED_BYTES ((size_t)16 << 10) /* a smaller block is not compressed */
#define MARK         "<!--annal:data-->\n"

struct html {
    annal_store *store;
    annal_index *index;
    struct session_findings findings;
    annal_slice before, after; /* parts of the template before and after the data */
    struct buf ids; /* ids of the sessions, each with a NUL; the requested session is the first */
    size_t at;      /* offset in ids of the session that is written next */
    enum { BEFORE, HEAD, EVENTS, AFTER } next;
    annal_query *query; /* query of the events of the current session, or NULL */
    struct buf text;    /* JSON of the next part of the page, in which < is not escaped yet */
    uint64_t left_out;
};

static annal_status find_template(struct html *html, annal_error *err)
{
    const struct web_file *file = web_files;
    while (file->name != NULL && strcmp(file->name, "share.html") != 0)
        file++;
    const char *mark =
        file->name == NULL ? NULL : memmem(file->bytes, file->len, MARK, strlen(MARK));
    if (mark == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "this annal was built without the page that HTML needs: build it again "
                           "with npm installed");
    const char *rest = mark + strlen(MARK);
    html->before = (annal_slice){file->bytes, (size_t)(mark - file->bytes)};
    html->after = (annal_slice){rest, file->len - (size_t)(rest - file->bytes)};
    return ANNAL_OK;
}

static int add_id(void *arg, const annal_row *row)
{
    struct buf *ids = arg;
    annal__buf_append_slice(ids, row->values[0].bytes);
    return annal__buf_append(ids, "", 1);
}

static annal_status find_sessions(struct html *html, annal_slice session, bool tree,
                                  annal_error *err)
{
    const annal_value id = {.kind = ANNAL_VALUE_TEXT, .bytes = session};
    return annal_index_sql(html->index, annal_slice_of(tree ? annal__sql_html_below : "SELECT ?1"),
                           &(annal_sql_options){.params = &id, .param_count = 1}, add_id,
                           &html->ids, err);
}

annal_status html_open(annal_store *store, annal_index *index, annal_slice session, bool tree,
                       struct html **out, annal_error *err)
{
    annal_session_info info;
    struct html *html = annal__zalloc(sizeof *html);
    if (html == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "export session '%.*s': out of memory",
                           ANNAL_FMT(session));
    html->store = store;
    html->index = index;
    annal_status status = annal_session_info_get(store, session, &info, err);
    if (status >= 0)
        status = find_template(html, err);
    if (status >= 0)
        status = session_findings_read(index, &html->findings, err);
    if (status >= 0)
        status = find_sessions(html, session, tree, err);
    if (status >= 0)
        *out = html;
    else
        html_close(html);
    return status;
}

void html_close(struct html *html)
{
    if (html == NULL)
        return;
    annal_query_close(html->query);
    session_findings_done(&html->findings);
    annal__buf_done(&html->ids);
    annal__buf_done(&html->text);
    annal__free(html);
}

/* Append html->text in a form that may be inside a script element, and empty it. */
static annal_status flush(struct html *html, struct buf *out)
{
    annal_slice rest = annal__buf_slice(&html->text);
    annal_status status = ANNAL_OK;
    while (status >= 0 && rest.len > 0) {
        const char *less = memchr(rest.ptr, '<', rest.len);
        size_t len = less == NULL ? rest.len : (size_t)(less - rest.ptr);
        status = annal__buf_append(out, rest.ptr, len);
        if (status >= 0 && less != NULL)
            status = annal__buf_append(out, "\\u003c", 6);
        len += less != NULL;
        rest = (annal_slice){rest.ptr + len, rest.len - len};
    }
    annal__buf_clear(&html->text);
    return status;
}

static annal_slice current(const struct html *html)
{
    return annal_slice_of(html->ids.ptr + html->at);
}

/* Move to the next session. Returns false after the last one, and moves to the first. */
static bool next_session(struct html *html)
{
    html->at += strlen(html->ids.ptr + html->at) + 1;
    if (html->at < html->ids.len)
        return true;
    html->at = 0;
    return false;
}

/* ---- The head ---- */

static annal_status put_before(struct html *html, struct buf *out)
{
    char now[ANNAL_TIME_BYTES];
    annal_time_format((int64_t)time(NULL) * 1000000, now);
    annal__buf_append_slice(out, html->before);
    annal_status status = annal__buf_printf(
        out,
        "<script type=\"application/json\" id=\"annal-head\">"
        "{\"version\":1,\"annal\":\"%s\",\"made_at\":\"%.19sZ\",\"root\":\"%s\",\"sessions\":[",
        annal_version(), now, html->ids.ptr);
    html->next = HEAD;
    return status;
}

static int put_session(void *arg, const annal_row *row)
{
    struct html *html = arg;
    return session_row_json(&html->text, row, row->count, &html->findings, NULL);
}

static annal_status put_head(struct html *html, struct buf *out, annal_error *err)
{
    static const char *const parts[] = {"outline", "tools", "turns", "usage"};
    const annal_value id = {.kind = ANNAL_VALUE_TEXT, .bytes = current(html)};
    annal_status status =
        annal__buf_printf(&html->text, "%s\n{\"session\":", html->at > 0 ? "," : "");
    if (status >= 0)
        status = annal_index_sql(html->index, ANNAL_SLICE(SESSION_ONE),
                                 &(annal_sql_options){.params = &id, .param_count = 1}, put_session,
                                 html, err);
    for (size_t i = 0; status >= 0 && i < sizeof parts / sizeof *parts; i++) {
        status = annal__buf_printf(&html->text, ",\"%s\":", parts[i]);
        if (status >= 0)
            status = timeline_part(html->index, parts[i], id.bytes, 1, &html->text, err);
    }
    if (status >= 0)
        status = annal__buf_append(&html->text, "}", 1);
    if (status >= 0)
        status = flush(html, out);
    if (status < 0 || next_session(html))
        return status;
    html->next = EVENTS;
    return annal__buf_printf(out, "]}</script>\n");
}

/* ---- Events ---- */

static annal_status open_events(struct html *html, annal_error *err)
{
    annal_slice session = current(html);
    const annal_filter filter = {.sessions = &session, .session_count = 1};
    return html->query != NULL ? ANNAL_OK
                               : annal_query_open(html->index, &filter, &html->query, err);
}

static annal_status add_event(struct html *html, const annal_event *event)
{
    char head[EVENT_HEAD_BYTES];
    size_t len = event_head(event, current(html), head);
    annal_status status = annal__buf_append(&html->text, head, len);
    if (status >= 0)
        status = event_put_data(&html->text, event->data);
    return status < 0 ? status : annal__buf_append(&html->text, "}\n", 2);
}

/* Add a block of events to html->text. ANNAL_END after the last event of the session. */
static annal_status collect(struct html *html, uint64_t *out_from, uint64_t *out_to,
                            annal_error *err)
{
    annal_slice journal;
    annal_event event;
    while (html->text.len < BLOCK_BYTES) {
        annal_status how = annal_query_next(html->query, &journal, &event, err);
        if (how < 0 || how == ANNAL_END)
            return how;
        if (how == ANNAL_DAMAGE) {
            html->left_out++;
            continue;
        }
        if (html->text.len == 0)
            *out_from = event.seq;
        *out_to = event.seq;
        if (add_event(html, &event) < 0)
            return annal__fail(err, ANNAL_ERR_NOMEM, "export session '%.*s': out of memory",
                               ANNAL_FMT(current(html)));
    }
    return ANNAL_OK;
}

/* Compress html->text to packed. Returns false if it is small, or zlib is missing. */
static bool pack(const struct html *html, struct buf *packed)
{
#ifdef ANNAL_GZIP
    return html->text.len >= PACKED_BYTES &&
           gzip_deflate(annal__buf_slice(&html->text), packed, NULL) >= 0;
#else
    (void)html;
    (void)packed;
    return false;
#endif
}

/* Append html->text as an element with the events from to to, and empty it. */
static annal_status put_block(struct html *html, uint64_t from, uint64_t to, struct buf *out)
{
    SCOPED_BUF packed = {0};
    bool is_packed = pack(html, &packed);
    annal_status status = annal__buf_printf(
        out,
        "<script type=\"application/x-ndjson\" data-session=\"%.*s\""
        " data-from=\"%" PRIu64 "\" data-to=\"%" PRIu64 "\"%s>\n",
        ANNAL_FMT(current(html)), from, to, is_packed ? " data-packed=\"1\"" : "");
    if (status >= 0 && is_packed) {
        annal__buf_clear(&html->text);
        status = annal__base64_put(out, annal__buf_slice(&packed));
    } else if (status >= 0) {
        status = flush(html, out);
    }
    return status < 0 ? status : annal__buf_printf(out, "</script>\n");
}

static annal_status put_events(struct html *html, struct buf *out, annal_error *err)
{
    uint64_t from = 0, to = 0;
    annal_status status = open_events(html, err);
    annal_status how = status < 0 ? status : collect(html, &from, &to, err);
    if (how < 0)
        return how;
    if (html->text.len > 0)
        status = put_block(html, from, to, out);
    if (status < 0 || how != ANNAL_END)
        return status;
    annal_query_close(html->query);
    html->query = NULL;
    html->next = next_session(html) ? EVENTS : AFTER;
    return ANNAL_OK;
}

annal_status html_next(struct html *html, struct buf *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    switch (html->next) {
    case BEFORE:
        status = put_before(html, out);
        break;
    case HEAD:
        status = put_head(html, out, err);
        break;
    case EVENTS:
        status = put_events(html, out, err);
        break;
    case AFTER:
        status = annal__buf_append_slice(out, html->after);
        status = status < 0 ? status : ANNAL_END;
        break;
    }
    if (status < 0 && (err == NULL || err->status == 0))
        annal__fail(err, status, "export as html: out of memory");
    return status;
}

/* ---- The command ---- */

static int print_all(struct html *html)
{
    SCOPED_BUF out = {0};
    annal_error err = {0};
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && out_wanted()) {
        annal__buf_clear(&out);
        status = html_next(html, &out, &err);
        fwrite(out.ptr, 1, out.len, stdout);
    }
    if (status < 0)
        return fail_error(&err);
    return html->left_out == 0
               ? EXIT_DONE
               : fail_refused("%" PRIu64 " damaged events were left out: 'annal verify' lists them",
                              html->left_out);
}

int html_export(annal_store *store, annal_slice session, bool tree)
{
    annal_index *index = NULL;
    struct html *html = NULL;
    annal_error err = {0};
    int exit_status = catch_up_open(store, NULL, &index);
    if (exit_status == EXIT_DONE && html_open(store, index, session, tree, &html, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == EXIT_DONE)
        exit_status = print_all(html);
    html_close(html);
    annal_index_close(index);
    return exit_status;
}
