/* SPDX-License-Identifier: Apache-2.0 */
/* The Model Context Protocol at POST /mcp: a message in the body, its answer as JSON. */
#include "tools/mcp/mcp.h"
#include "tools/serve/serve.h"

#include <stdio.h>
#include <string.h>

void serve_mcp_post(struct serve *serve, struct request *request)
{
    static const char *const no_yes[] = {"0", "1", NULL};
    struct buf out = {0};
    struct mcp mcp = {.store = serve->store,
                      .index = serve->index,
                      .over_http = true,
                      .socket = http_socket(request),
                      .header_version = http_header(request, "MCP-Protocol-Version"),
                      .header_method = http_header(request, "Mcp-Method"),
                      .header_name = http_header(request, "Mcp-Name")};
    int all = 0;
    if (!answer_choice(request, "all", no_yes, &all))
        return;
    mcp.all = all == 1;
    if (mcp.header_version != NULL)
        snprintf(mcp.version, sizeof mcp.version, "%s", mcp.header_version);
    request->status = mcp_rpc_answer(&mcp, annal__buf_slice(&request->body), &out);
    if (out.status < 0) {
        annal__buf_done(&out);
        answer_no_memory(request);
        return;
    }
    if (out.len > 0)
        request->type = JSON_TYPE;
    request->answer = out;
}
