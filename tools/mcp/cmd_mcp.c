/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal mcp: messages on stdin and stdout, a line each; and the configuration of clients.
 *
 * Messages are answered one after the other. Before a request runs, and before its answer is
 * written, the lines that have arrived by then are searched for its cancellation. A line that is
 * too long is answered with an error, and skipped.
 */
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/mcp/mcp.h"

#include "journal/base/io.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)65536)

struct stdio {
    struct mcp mcp;
    struct buf in;      /* bytes after the message */
    struct buf message; /* the line that is answered; empty for one that is too long */
    bool skips;         /* whether the rest of a line that is too long is skipped */
    bool at_end;
};

/* Read more of stdin, if waits is set or bytes have arrived. Returns whether it read any. */
static bool read_more(struct stdio *stdio, bool waits)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t got = -1;
    if (stdio->at_end || stdio->in.len > 2 * MCP_MESSAGE_BYTES ||
        (!waits && poll(&fd, 1, 0) <= 0) || annal__buf_reserve(&stdio->in, PIECE_BYTES) < 0)
        return false;
    do
        got = read(STDIN_FILENO, stdio->in.ptr + stdio->in.len, PIECE_BYTES);
    while (got < 0 && errno == EINTR);
    stdio->at_end = got <= 0;
    stdio->in.len += got > 0 ? (size_t)got : 0;
    return got > 0;
}

static bool next_line(const struct stdio *stdio, size_t *at, annal_slice *out)
{
    const char *from = stdio->in.len > *at ? stdio->in.ptr + *at : NULL;
    const char *end = from == NULL ? NULL : memchr(from, '\n', stdio->in.len - *at);
    if (end == NULL)
        return false;
    *out = (annal_slice){from, (size_t)(end - from)};
    *at += out->len + 1;
    return true;
}

/* Return whether a line that has arrived after the message cancels it. */
static bool is_cancelled(struct stdio *stdio)
{
    static const char word[] = "notifications/cancelled";
    annal_slice later, id = mcp_text_member(annal__buf_slice(&stdio->message), "id");
    size_t at = 0;
    while (read_more(stdio, false))
        ;
    /* The lines are only parsed if one of them may be a cancellation. */
    if (id.len == 0 || stdio->in.len == 0 ||
        memmem(stdio->in.ptr, stdio->in.len, word, sizeof word - 1) == NULL)
        return false;
    while (next_line(stdio, &at, &later)) {
        if (annal__slice_same(mcp_rpc_cancelled(later), id))
            return true;
    }
    return false;
}

/* For mcp.cancelled. */
static int ask_cancelled(void *arg)
{
    struct stdio *stdio = arg;
    if (is_cancelled(stdio))
        return 1;
    return stdio->at_end || stdio->in.len > 2 * MCP_MESSAGE_BYTES ? -1 : 0;
}

/* Answer the message, or a line that is too long. Returns false if the client has gone. */
static bool answer(struct stdio *stdio, bool is_too_long)
{
    SCOPED_BUF out = {0};
    annal_slice message = annal__buf_slice(&stdio->message);
    bool good = true;
    if (is_too_long || (annal__json_trim(message).len > 0 && !is_cancelled(stdio)))
        (void)mcp_rpc_answer(&stdio->mcp, message, &out);
    if (out.len > 0 && out.status >= 0 && !is_cancelled(stdio)) {
        annal__buf_printf(&out, "\n");
        good = annal__io_write_fd(STDOUT_FILENO, annal__buf_slice(&out));
    }
    return good;
}

/* Move the first line of the input to the message, and answer it; or skip it. Returns false at the
 * end. */
static bool take(struct stdio *stdio)
{
    annal_slice line;
    size_t bytes = 0;
    annal__buf_clear(&stdio->message);
    while (!next_line(stdio, &bytes, &line)) {
        if (stdio->in.len > MCP_MESSAGE_BYTES) {
            stdio->in.len = 0;
            if (!stdio->skips && !answer(stdio, true))
                return false;
            stdio->skips = true;
        } else if (!read_more(stdio, true)) {
            return false;
        }
    }
    bool is_too_long = line.len > MCP_MESSAGE_BYTES, skips = stdio->skips;
    bool good = skips || is_too_long || annal__buf_append_slice(&stdio->message, line) >= 0;
    stdio->skips = false;
    annal__buf_consume(&stdio->in, bytes);
    return good && (skips || answer(stdio, is_too_long));
}

static int answer_all(const struct args *args)
{
    static const char *const names[] = {"ANNAL_ASKING_SESSION", "CLAUDE_CODE_SESSION_ID",
                                        "CLAUDE_SESSION_ID", "CODEX_THREAD_ID"};
    struct stdio stdio = {
        .mcp = {.args = args, .all = args_has(args, "all"), .cancelled = ask_cancelled}};
    stdio.mcp.cancelled_arg = &stdio;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (stdio.mcp.asking == NULL)
            stdio.mcp.asking = getenv(names[i]);
    }
    if (isatty(STDIN_FILENO))
        say("mcp: reading messages of the protocol from this terminal; 'annal mcp install CLIENT' "
            "prints the configuration of a client");
    while (take(&stdio))
        ;
    annal__buf_done(&stdio.in);
    annal__buf_done(&stdio.message);
    annal_index_close(stdio.mcp.index);
    return store_close(stdio.mcp.store, 0);
}

static int run(const struct args *args)
{
    bool installs = args_get(args, "install") != NULL;
    if (installs && args_get(args, "CLIENT") == NULL)
        return fail_usage("mcp install needs a client: 'annal help mcp' lists them");
    if (!installs && args_has(args, "write"))
        return fail_usage("--write belongs to: annal mcp install CLIENT");
    return installs ? mcp_install(args) : answer_all(args);
}

static const struct field fields[] = {
    {.option = {.value = "install", .help = "print the configuration of a client, and end"},
     .kind = FIELD_TEXT,
     .choices = "install"},
    {.option = {.value = "CLIENT", .help = "the client"},
     .kind = FIELD_TEXT,
     .choices = "claude-code|codex|cursor|gemini-cli|opencode|vscode"},
    FLAG("all", NULL, "also the tools sql, verify, usage, diff, fix, how"),
    FLAG("write", NULL, "with install: write it, and keep a backup"),
    FIELDS_END};

const struct command cmd_mcp = {
    COMMAND("mcp", "let agents search and read past sessions (MCP)", mcp, fields, run)};
