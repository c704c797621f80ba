/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Model Context Protocol: agents search and read sessions. docs/mcp.md says what they are
 * given.
 *
 * (1) Nothing is written to the store. Every message is hostile: it is checked as JSON, up to a
 *     depth and a length, before it is read.
 * (2) A message is answered in the revision that it names: 2026-07-28 in _meta of each request, the
 *     earlier ones after `initialize` (stdio) or in a header (HTTP).
 * (3) An answer of a tool is a text for models. A line that begins with "| " quotes a journal; no
 *     text of a journal is outside of such lines, except ids, times, types and names of agents,
 *     models, tools and directories, without control characters. Verbs answer with lines of JSON,
 *     which quote journals as a whole.
 * (4) An answer has at most max_bytes; if something was left out, it says so, and how to continue.
 *     A failure is never an empty answer.
 */
#pragma once

#include "journal/base/buf.h"
#include "tools/cli/args.h"

#include <annal/annal.h>

/* annal mcp install CLIENT: print what to add to the client's file, or add it. Returns an exit
 * status. */
int mcp_install(const struct args *args);

#define MCP_MESSAGE_BYTES ((size_t)1 << 20)
#define MCP_DEPTH         64
#define MCP_VERSION_BYTES 32
#define MCP_LATEST        "2026-07-28"

/* The store and one client. On stdio the store is opened by the first message that needs it, so
 * that a store may be created later. */
struct mcp {
    annal_store *store;
    annal_index *index;
    const struct args *args; /* command line with which the store is opened; NULL: it is open */
    bool all;                /* whether all tools are offered */
    const char *asking;      /* id of the client's session, or NULL */
    /* revision of `initialize`; "" before it. In an answer by HTTP: of the header */
    char version[MCP_VERSION_BYTES];
    bool over_http;
    int socket; /* of a client by HTTP, which may disconnect; 0 for none */
    /* on stdio, whether the request that runs was cancelled: child_options.is_unwanted */
    int (*cancelled)(void *arg);
    void *cancelled_arg;
    /* headers of a request by HTTP, or NULL */
    const char *header_version, *header_method, *header_name;
};

/* ---- Text: mcp_text.c ---- */

/* Append a text on one line, without control characters, up to `most` bytes. */
void mcp_text_put_line(struct buf *out, annal_slice text, size_t most);

/* A callback for annal_index_sql(), whose arg is a struct buf: append the first two columns of
 * a row, facts and a text of a journal, as two lines. */
int mcp_text_row(void *arg, const annal_row *row);

/* Return a member of an object, as raw JSON; empty if it is missing. Unlike annal__json_member(),
 * the name may contain dots. */
annal_slice mcp_text_member(annal_slice object, const char *name);

/* ---- Tools: mcp_call.c ---- */

/* A call of a tool, whose arguments were checked against its schema. */
struct mcp_call {
    struct mcp *mcp;
    annal_slice arguments, meta; /* raw JSON */
    struct buf *text;
    size_t max_bytes;
    annal_error err;
    struct buf strings; /* memory for texts of arguments */
};

/* Append the tools that the client may call as items of a JSON array. */
void mcp_call_list(const struct mcp *mcp, struct buf *out);

/* Call a tool. Returns false if no tool has this name; otherwise text receives the answer, and
 * *out_failed whether it says why the call failed. */
bool mcp_call_tool(struct mcp *mcp, annal_slice name, annal_slice arguments, annal_slice meta,
                   struct buf *text, bool *out_failed);

/* Append a page of sessions as resources, from number `from` on. *out_next is where the next page
 * begins; 0 after the last. */
annal_status mcp_call_resources(struct mcp *mcp, uint64_t from, struct buf *out, uint64_t *out_next,
                                annal_error *err);

/* ---- Handles and the store: mcp_open.c ---- */

enum mcp_handle_kind { MCP_SESSION, MCP_EVENT, MCP_RANGE, MCP_STATE };

struct mcp_handle {
    enum mcp_handle_kind kind;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t from, to; /* MCP_EVENT, MCP_STATE: from is the seq. MCP_RANGE: to is 0 for the end */
    uint64_t offset;   /* bytes of the content to skip */
};

/* Open the store and the index unless they are open. Returns whether they are. */
bool mcp_open_store(struct mcp *mcp, annal_error *err);

/* Read a handle or a URI "annal://session/…". Returns false if it is not one. */
bool mcp_open_parse(annal_slice text, struct mcp_handle *out);

/* Find the session of a handle: its id, or the first letters of one id. */
annal_status mcp_open_session(struct mcp_call *call, annal_slice text, struct mcp_handle *out);

/* Append what a handle names. all: also the members that importers add. */
annal_status mcp_open(struct mcp_call *call, annal_slice handle, bool all);

/* ---- Messages: mcp_rpc.c ---- */

/* Answer one message, or a batch. out receives JSON without a line break, or nothing if the message
 * needs no answer. Returns the HTTP status. */
unsigned mcp_rpc_answer(struct mcp *mcp, annal_slice message, struct buf *out);

/* Return the id of a request that a message cancels, as raw JSON; empty if it cancels none. */
annal_slice mcp_rpc_cancelled(annal_slice message);
