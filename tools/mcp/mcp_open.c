/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handle names, as text for models.
 *
 *     SESSION          facts, and what the user asked, turn by turn
 *     SESSION:12       event 12, every member of its data on a line "path: value"
 *     SESSION:5-20     events 5 to 20 (SESSION:5- to the end), each up to EVENT_BYTES
 *     SESSION@12       the tables of the session after event 12, as JSON
 *     …+OFFSET         the same, without the first OFFSET bytes of the content
 *
 * The same as URIs: annal://session/ID, …/event/12, …/events/5-20, …/state/12.
 */
#include "tools/mcp/mcp.h"

#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/store_open.h"
#include "tools/show/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URI         "annal://session/"
#define EVENT_BYTES ((size_t)1500)
#define TAIL_BYTES  ((size_t)400) /* room for the sentence that continues an answer */
#define ROWS_MAX    200u

bool mcp_open_store(struct mcp *mcp, annal_error *err)
{
    if (mcp->index != NULL)
        return true;
    if (mcp->store == NULL && store_try(mcp->args, OPEN_READ, 0, &mcp->store, err) != 0)
        return false;
    store_wait_each(mcp->store);
    return annal_index_open(mcp->store, NULL, &mcp->index, err) >= 0;
}

/* ---- Handles ---- */

static bool read_number(const char **at, uint64_t *out)
{
    char *end = NULL;
    if (**at < '0' || **at > '9' || strspn(*at, "0123456789") > 18)
        return false;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return true;
}

/* Skip a word if the text begins with it. */
static bool skip(const char **at, const char *word)
{
    size_t len = strlen(word);
    if (strncmp(*at, word, len) != 0)
        return false;
    *at += len;
    return true;
}

static bool read_events(const char **at, struct mcp_handle *out)
{
    out->kind = MCP_EVENT;
    if (!read_number(at, &out->from))
        return false;
    if (skip(at, "-") || skip(at, "..")) {
        out->kind = MCP_RANGE;
        return **at == '\0' || (read_number(at, &out->to) && out->to >= out->from && out->to > 0);
    }
    return true;
}

bool mcp_open_parse(annal_slice text, struct mcp_handle *out)
{
    char copy[512];
    const char *at = copy;
    bool good = text.len > 0 && text.len < sizeof copy && memchr(text.ptr, '\0', text.len) == NULL;
    *out = (struct mcp_handle){.kind = MCP_SESSION};
    if (!good)
        return false;
    snprintf(copy, sizeof copy, "%.*s", ANNAL_FMT(text));
    bool is_uri = skip(&at, URI);
    size_t len = strcspn(at, is_uri ? "/" : ":@+");
    if (len == 0 || len > ANNAL_SESSION_ID_BYTES_MAX)
        return false;
    snprintf(out->session, sizeof out->session, "%.*s", (int)len, at);
    at += len;
    if (annal_session_id_check(annal_slice_of(out->session), NULL) < 0)
        return false;
    if (skip(&at, is_uri ? "/state/" : "@")) {
        out->kind = MCP_STATE;
        good = read_number(&at, &out->from);
    } else if (is_uri ? skip(&at, "/events/") || skip(&at, "/event/") : skip(&at, ":")) {
        good = read_events(&at, out);
    }
    if (good && skip(&at, "+"))
        good = read_number(&at, &out->offset);
    return good && *at == '\0';
}

static int take_id(void *arg, const annal_row *row)
{
    struct mcp_handle *handle = arg;
    annal_slice id = row->values[0].bytes;
    bool first = handle->session[0] == '\0';
    snprintf(handle->session, sizeof handle->session, "%.*s", first ? (int)id.len : 0, id.ptr);
    return first ? 0 : 1;
}

/* Replace the first letters of an id by the id, if one session begins with them. */
static annal_status resolve(struct mcp_call *call, struct mcp_handle *handle,
                            annal_session_info *info)
{
    char given[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_status status =
        annal_session_info_get(call->mcp->store, annal_slice_of(handle->session), info, &call->err);
    if (status != ANNAL_ERR_NOTFOUND || strlen(handle->session) < 4)
        return status;
    strcpy(given, handle->session);
    const annal_value param = string_value(given);
    handle->session[0] = '\0';
    annal_status asked = annal_index_sql(
        call->mcp->index,
        ANNAL_SLICE("SELECT id FROM sessions WHERE substr(id, 1, length(?1)) = ?1 AND"
                    " instr(substr(id, length(?1)), '.') = 0 LIMIT 2"),
        &(annal_sql_options){.params = &param, .param_count = 1}, take_id, handle, NULL);
    if (asked != ANNAL_OK || handle->session[0] == '\0')
        return asked > 0 ? annal__fail(&call->err, ANNAL_ERR_INVALID,
                                       "several sessions begin with '%s': give more letters", given)
                         : status;
    return annal_session_info_get(call->mcp->store, annal_slice_of(handle->session), info,
                                  &call->err);
}

/* ---- A window of a content ---- */

/* The bytes of a content after the first `skip`, up to `keep`, and how many there are in all. */
struct window {
    struct buf kept;
    size_t skip, keep;
    uint64_t total;
    bool failed;
};

/* Begin a window for an answer of `most` bytes; a few more show where a character ends. */
static struct window window_of(const struct mcp_handle *handle, size_t most)
{
    return (struct window){.skip = handle->offset, .keep = most + 4};
}

static void put(struct window *window, annal_slice text)
{
    size_t from = window->total >= window->skip ? 0 : (size_t)(window->skip - window->total);
    window->total += text.len;
    if (from >= text.len || window->kept.len >= window->keep)
        return;
    size_t room = window->keep - window->kept.len;
    size_t len = text.len - from < room ? text.len - from : room;
    window->failed = window->failed || annal__buf_append(&window->kept, text.ptr + from, len) < 0;
}

/* Quote the content in at most `most` bytes, each line after "| ", and say what was cut and how to
 * continue. */
static void quote(struct buf *out, struct window *window, size_t most,
                  const struct mcp_handle *handle, uint64_t seq)
{
    const struct buf *kept = &window->kept;
    size_t at = 0, begin = out->len;
    while (at < kept->len && out->len - begin + 4 < most && out->status >= 0) {
        const char *line = kept->ptr + at, *end = memchr(line, '\n', kept->len - at);
        size_t len = end == NULL ? kept->len - at : (size_t)(end - line);
        size_t room = most - (out->len - begin) - 3;
        bool cut = len > room;
        for (len = cut ? room : len; cut && len > 0 && ((unsigned char)line[len] & 0xc0) == 0x80;)
            len--;
        annal__buf_printf(out, "| ");
        annal__buf_append_slice(out, (annal_slice){line, len});
        annal__buf_printf(out, "\n");
        at += len + (cut ? 0 : 1);
    }
    if (window->skip + at < window->total)
        annal__buf_printf(
            out, "cut: bytes %zu to %zu of %" PRIu64 "; continue: open %s%c%" PRIu64 "+%zu\n",
            window->skip, window->skip + at, window->total, handle->session,
            handle->kind == MCP_STATE ? '@' : ':', seq, window->skip + at);
    out->status = window->failed ? ANNAL_ERR_NOMEM : out->status;
    annal__buf_done(&window->kept);
}

/* ---- An event's data ---- */

/* Members that are left out unless the whole event is asked for: of every event, of a range, and at
 * any depth. */
static const char *const imported[] = {"source", "extra", NULL};
static const char *const ids[] = {"id", "message_id", "turn_id", "model", "stop_reason", NULL};
static const char *const hidden[] = {"signature", "encrypted_content", NULL};

struct rendering {
    struct window *window;
    struct buf path, text;
    bool all, of_range;
    uint64_t left_out; /* bytes of the members that are left out */
};

static bool is_one_of(const char *const *names, annal_slice name)
{
    while (*names != NULL && !annal__slice_is(name, *names))
        names++;
    return *names != NULL;
}

static bool leaves_out(const struct rendering *of, annal_slice name)
{
    bool top = of->path.len == 0;
    return !of->all && ((top && is_one_of(imported, name)) || is_one_of(hidden, name) ||
                        (top && of->of_range && is_one_of(ids, name)));
}

static void put_string(struct rendering *of, annal_slice raw)
{
    bool half = false;
    annal__buf_clear(&of->text);
    of->window->failed = of->window->failed || annal__json_decode(raw, &of->text, &half) < 0;
    bool lines = of->text.len > 0 && memchr(of->text.ptr, '\n', of->text.len) != NULL;
    put(of->window, lines ? ANNAL_SLICE(":\n") : ANNAL_SLICE(": "));
    put(of->window, annal__buf_slice(&of->text));
}

/* Render a value; its depth is limited by that of an event's data. */
static void render(struct rendering *of, annal_slice raw) // NOLINT(misc-no-recursion)
{
    struct json_walk walk;
    annal_slice name = {0}, value;
    size_t before = of->path.len;
    unsigned index = 0;
    raw = annal__json_trim(raw);
    bool is_object = raw.len > 2 && annal__json_walk_object(&walk, raw);
    bool is_array = raw.len > 2 && !is_object && annal__json_walk_array(&walk, raw);
    while (is_object ? annal__json_walk_next(&walk, &name, &value)
                     : is_array && annal__json_walk_item(&walk, &value)) {
        name = annal__json_inside(name);
        if (is_object && leaves_out(of, name)) {
            of->left_out += value.len;
            continue;
        }
        annal_status status =
            is_object ? annal__buf_printf(&of->path, "%s%.*s", before > 0 ? "." : "",
                                          (int)(name.len < 200 ? name.len : 200), name.ptr)
                      : annal__buf_printf(&of->path, "[%u]", index++);
        of->window->failed = of->window->failed || status < 0;
        render(of, value);
        of->path.len = before;
    }
    if (is_object || is_array || raw.len == 0)
        return;
    put(of->window, annal__buf_slice(&of->path));
    if (raw.ptr[0] == '"') {
        put_string(of, raw);
    } else {
        put(of->window, ANNAL_SLICE(": "));
        put(of->window, raw);
    }
    put(of->window, ANNAL_SLICE("\n"));
}

/* ---- Events ---- */

/* Append one event, its content in at most `most` bytes. */
static void put_event(struct mcp_call *call, const struct mcp_handle *handle,
                      const annal_event *event, size_t most, bool all)
{
    char time[ANNAL_TIME_BYTES];
    struct buf *out = call->text;
    struct window window = window_of(handle, most);
    struct rendering of = {.window = &window, .all = all, .of_range = handle->kind == MCP_RANGE};
    annal_slice tool = annal__json_member(event->data, "tool");
    annal_slice who =
        annal__json_inside(tool.len > 0 ? tool : annal__json_member(event->data, "role"));
    annal_time_format(event->ts_us, time);
    annal__buf_printf(out, ":%" PRIu64 "  %016" PRIx64 "  %.19sZ  %.*s  %.*s\n", event->seq,
                      event->h, time, ANNAL_FMT(event->type), (int)(who.len < 100 ? who.len : 100),
                      who.ptr);
    if (of.of_range && (annal__slice_begins(event->type, "import.") ||
                        annal__slice_is(event->type, "agent.turn.usage")))
        return;
    render(&of, event->data);
    quote(out, &window, most, handle, event->seq);
    if (of.left_out > 0 && !of.of_range)
        annal__buf_printf(out,
                          "left out: %" PRIu64
                          " bytes of members that importers and providers add; "
                          "all:true shows them\n",
                          of.left_out);
    annal__buf_done(&of.path);
    annal__buf_done(&of.text);
}

static annal_status put_events(struct mcp_call *call, const struct mcp_handle *handle, bool all)
{
    const annal_slice id = annal_slice_of(handle->session);
    struct buf *out = call->text;
    bool one = handle->kind == MCP_EVENT;
    const annal_filter filter = {.sessions = &id,
                                 .session_count = 1,
                                 .from_seq = handle->from,
                                 .to_seq = one ? handle->from : handle->to};
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    uint64_t count = 0;
    annal_status status = annal_query_open(call->mcp->index, &filter, &query, &call->err);
    annal__buf_printf(out, "session %s\n", handle->session);
    while (status >= 0 && (status = annal_query_next(query, &session, &event, &call->err)) >= 0 &&
           status != ANNAL_END) {
        size_t used = out->len + TAIL_BYTES;
        size_t room = call->max_bytes > used + 200 ? call->max_bytes - used : 200;
        if (count++ > 0 && room < EVENT_BYTES) {
            char to[24] = "";
            if (handle->to > 0)
                snprintf(to, sizeof to, "%" PRIu64, handle->to);
            annal__buf_printf(out, "cut: the answer is full; continue: open %s:%" PRIu64 "-%s\n",
                              handle->session, event.seq, to);
            break;
        }
        if (status == ANNAL_DAMAGE)
            annal__buf_printf(out, ":%" PRIu64 "  damaged: the journal does not prove this event\n",
                              event.seq);
        else
            put_event(call, handle, &event, one || room < EVENT_BYTES ? room : EVENT_BYTES, all);
    }
    annal_query_close(query);
    if (status >= 0 && count == 0)
        status = annal__fail(&call->err, ANNAL_ERR_NOTFOUND, "session '%s' has no event %" PRIu64,
                             handle->session, handle->from);
    return status < 0 ? status : ANNAL_OK;
}

/* ---- A state ---- */

static int put_piece(void *arg, const char *bytes, size_t len)
{
    put(arg, (annal_slice){bytes, len});
    return 0;
}

static annal_status put_state(struct mcp_call *call, const struct mcp_handle *handle)
{
    struct buf *out = call->text;
    size_t most = call->max_bytes - TAIL_BYTES;
    struct window window = window_of(handle, most);
    annal_state *state = NULL;
    annal_replay_info info = {0};
    annal_status status = annal_replay_open(
        call->mcp->index, annal_slice_of(handle->session),
        (annal_moment){.kind = ANNAL_AT_SEQ, .seq = handle->from}, NULL, &state, &info, &call->err);
    if (status >= 0)
        status = annal_state_json(state, put_piece, &window, &call->err);
    if (status >= 0) {
        annal__buf_printf(out, "The tables of %s after event %" PRIu64 ", as JSON.\n",
                          handle->session, info.seq);
        quote(out, &window, most, handle, handle->from);
    }
    annal__buf_done(&window.kept);
    annal_state_free(state);
    return status;
}

/* ---- A session ---- */

extern const char annal__sql_mcp_session[]; /* session.sql, embedded */

struct overview {
    struct mcp_call *call;
    uint64_t rows, next; /* next: seq of the first turn that had no room; 0 for none */
};

static int put_row(void *arg, const annal_row *row)
{
    struct overview *overview = arg;
    bool full = overview->call->text->len + 2000 + TAIL_BYTES > overview->call->max_bytes;
    if (overview->rows++ > 0 && (full || overview->rows > ROWS_MAX)) {
        overview->next = (uint64_t)row->values[2].integer;
        return 1;
    }
    return mcp_text_row(overview->call->text, row);
}

static annal_status put_session(struct mcp_call *call, const struct mcp_handle *handle,
                                const annal_session_info *info)
{
    const char *id = handle->session;
    struct buf *out = call->text;
    struct overview overview = {.call = call};
    annal_lag lag = {0};
    const annal_value params[] = {string_value(id), integer_value((int64_t)handle->offset)};
    const annal_sql_options options = {.params = params, .param_count = 2, .out_lag = &lag};
    annal__buf_printf(out, "last event %s:%" PRIu64 "  %016" PRIx64 "\n", id, info->last_seq,
                      info->last_h);
    annal_status status = annal_index_sql(call->mcp->index, annal_slice_of(annal__sql_mcp_session),
                                          &options, put_row, &overview, &call->err);
    if (overview.next > 0)
        annal__buf_printf(out, "cut: more turns; continue: open %s+%" PRIu64 "\n", id,
                          overview.next);
    if (lag.bytes > 0)
        annal__buf_printf(out, "Left out: %" PRIu64 " bytes that are not in the tables yet\n",
                          lag.bytes);
    annal__buf_printf(out, "Next: open %s:SEQ, or %s:A-B\n", id, id);
    return status < 0 ? status : ANNAL_OK;
}

annal_status mcp_open_session(struct mcp_call *call, annal_slice text, struct mcp_handle *out)
{
    annal_session_info info;
    if (!mcp_open_parse(text, out) || out->kind != MCP_SESSION)
        return annal__fail(&call->err, ANNAL_ERR_INVALID,
                           "'%.*s' is not a session: give its id, or the first letters of it",
                           (int)(text.len < 100 ? text.len : 100), text.ptr);
    return resolve(call, out, &info);
}

annal_status mcp_open(struct mcp_call *call, annal_slice text, bool all)
{
    struct mcp_handle handle;
    annal_session_info info;
    if (!mcp_open_parse(text, &handle))
        return annal__fail(&call->err, ANNAL_ERR_INVALID,
                           "'%.*s' is not a handle: give SESSION, SESSION:SEQ, SESSION:A-B or "
                           "SESSION@SEQ",
                           (int)(text.len < 100 ? text.len : 100), text.ptr);
    if (handle.from == 0 && (handle.kind == MCP_EVENT || handle.kind == MCP_RANGE))
        return annal__fail(&call->err, ANNAL_ERR_NOTFOUND,
                           "session '%s' has no event 0: the first event is %s:1", handle.session,
                           handle.session);
    annal_status status = resolve(call, &handle, &info);
    if (status < 0)
        return status;
    if (handle.kind == MCP_SESSION)
        return put_session(call, &handle, &info);
    return handle.kind == MCP_STATE ? put_state(call, &handle) : put_events(call, &handle, all);
}
