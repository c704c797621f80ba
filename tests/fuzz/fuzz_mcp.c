/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a message of the Model Context Protocol, to a store of two sessions.
 *
 * The first byte chooses the transport and the revision; with its lowest bit set, the rest is not a
 * message but the arguments of a tool.
 *
 * (1) An answer is JSON on one line, and has the id of the request; a message that is not JSON is
 *     answered with an error.
 * (2) An answer of a tool has at most max_bytes and a little, and outside of lines that begin with
 *     "| " it has no text of the sessions' messages.
 */
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tests/fuzz/fuzz.h"
#include "tools/mcp/mcp.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "FORGED"

static struct mcp mcp;

static void add(const char *session, annal_store *store)
{
    static const char *const datas[][2] = {
        {"session.created", "{\"agent_id\":\"a\",\"title\":\"t\\n" SECRET "\"}"},
        {"turn.started", "{\"turn_id\":\"1\"}"},
        {"message.added",
         "{\"role\":\"user\",\"content\":\"walrus\\n" SECRET " \\ud83d\\u0000x\"}"},
        {"n", "[1,[2,{\"a\\n" SECRET "\":\"\\n" SECRET "\"}],{},[]]"},
        {"n", "1e400"}};
    annal_writer *writer;
    annal_error err;
    uint64_t seq;
    MUST(annal_writer_open(store, annal_slice_of(session), NULL, &writer, &err) >= 0);
    for (size_t i = 0; i < sizeof datas / sizeof *datas; i++) {
        const annal_draft draft = {.type = annal_slice_of(datas[i][0]),
                                   .data = annal_slice_of(datas[i][1])};
        MUST(annal_writer_append(writer, &draft, 1, NULL, &seq, &err) >= 0);
    }
    annal_writer_close(writer);
}

static char path[100];

static int remove_one(const char *name, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(name);
}

static void close_store(void)
{
    annal_index_close(mcp.index);
    (void)!annal_store_close(mcp.store, NULL);
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_store(void)
{
    const annal_store_options options = {
        .create = true, .no_keeper = true, .level = ANNAL_LEVEL_OS, .keep_free_bytes = 1};
    annal_error err;
    const char *parent = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/annal-mcp-XXXXXX", parent == NULL ? "/tmp" : parent);
    MUST(mkdtemp(path) != NULL);
    MUST(annal_store_open(path, &options, &mcp.store, &err) >= 0);
    (void)atexit(close_store);
    add("s-1", mcp.store);
    add("s-2", mcp.store);
    MUST(annal_index_open(mcp.store, NULL, &mcp.index, &err) >= 0);
}

static void check_answer(annal_slice answer, annal_slice id)
{
    if (answer.len == 0)
        return;
    MUST(memchr(answer.ptr, '\n', answer.len) == NULL);
    MUST(annal__json_check(answer, 100, NULL) == JSON_VALID);
    if (answer.ptr[0] == '{' && id.len > 0 && mcp_text_member(answer, "error").len == 0) {
        annal_slice given = mcp_text_member(answer, "id");
        MUST(given.len == id.len && memcmp(given.ptr, id.ptr, id.len) == 0);
    }
}

static void fuzz_message(annal_slice text, uint8_t choice)
{
    static const char *const versions[] = {"", "2025-03-26", "2025-11-25", "2026-07-28"};
    struct buf out = {0};
    const char *version = versions[choice >> 1 & 3];
    mcp.over_http = (choice & 8) != 0;
    mcp.header_version = mcp.header_method = mcp.header_name = NULL;
    snprintf(mcp.version, sizeof mcp.version, "%s", version);
    if (mcp.over_http && (choice & 16) != 0)
        mcp.header_version = version, mcp.header_method = "tools/list";
    bool valid = annal__json_check(text, MCP_DEPTH, NULL) == JSON_VALID;
    unsigned status = mcp_rpc_answer(&mcp, text, &out);
    MUST(out.status >= 0 && status >= 200 && (valid || (status == 400 && out.len > 0)));
    check_answer(annal__buf_slice(&out), valid ? mcp_text_member(text, "id") : (annal_slice){0});
    (void)mcp_rpc_cancelled(text);
    annal__buf_done(&out);
}

static void fuzz_arguments(annal_slice text, uint8_t choice)
{
    static const char *const names[] = {"\"search\"", "\"open\"", "\"list\"", "\"open\""};
    struct buf out = {0};
    bool failed = false;
    if (annal__json_check(text, MCP_DEPTH, NULL) != JSON_VALID ||
        annal__json_trim(text).ptr[0] != '{')
        return;
    MUST(mcp_call_tool(&mcp, annal_slice_of(names[choice >> 1 & 3]), annal__json_trim(text),
                       (annal_slice){0}, &out, &failed));
    MUST(out.status >= 0 && out.len > 0 && annal__buf_cstr(&out) != NULL);
    for (const char *line = out.ptr; !failed && line != NULL;) {
        const char *end = strchr(line, '\n'), *secret = strstr(line, SECRET);
        MUST(secret == NULL || (end != NULL && secret > end) || strncmp(line, "| ", 2) == 0);
        line = end == NULL ? NULL : end + 1;
    }
    annal__buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice text = {(const char *)bytes, len};
    uint8_t choice = take_byte(&text);
    if (mcp.store == NULL)
        open_store();
    if ((choice & 1) != 0)
        fuzz_arguments(text, choice);
    else
        fuzz_message(text, choice);
    return 0;
}
