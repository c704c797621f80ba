/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/open.h"
#include "tools/cli/out.h"

#ifdef ANNAL_SERVE
#include "tools/serve/question.h"
#include "tools/serve/server.h"
#endif

#include <stdio.h>

#define LISTEN_USUAL "127.0.0.1:7117"

static int run(const struct args *args)
{
#ifdef ANNAL_SERVE
    return question_is_asked() ? question_run(args) : server_run(args);
#else
    (void)args;
    return fail_refused("serve: this annal was built without libmicrohttpd");
#endif
}

static const struct field fields[] = {
    OPTION("listen", "HOST:PORT", FIELD_LIST, NULL,
           "where (" LISTEN_USUAL "); unix:PATH is a socket"),
    OPTION("token-file", "FILE", FIELD_TEXT, NULL,
           "the tokens (STORE/serve.token); made when it is missing"),
    OPTION_WITH("cert", "FILE", FIELD_TEXT, NULL, "a certificate with its chain, PEM: TLS",
                .with = "key"),
    OPTION_WITH("key", "FILE", FIELD_TEXT, NULL, "its private key, PEM", .with = "cert"),
    FLAG("read-only", NULL, "nobody may write, whatever the token"),
    OPTION("host", "NAME", FIELD_LIST, NULL, "another name that the server is known by"),
    OPTION("log", "FILE", FIELD_TEXT, NULL, "a line of JSON for each request; - is standard error"),
    FLAG("open", NULL, "open the page in a browser"),
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_serve = {
    .name = "serve",
    .summary = "sessions in a browser, and HTTP for other programs",
    .about = "Serves the store until it is interrupted: a page that shows the sessions, and an\n"
             "API under /api/v1 by which other programs read, follow and write them;\n"
             "/api/v1/openapi.json describes it. docs/serve.md says how to run a service.\n"
             "\n"
             "Every request needs a token, on this host too, for other users of it could read\n"
             "what the store keeps from them: Authorization: Bearer TOKEN. The file of tokens\n"
             "is made at the first start, and only you can read it. It has a token a line, and\n"
             "read or write before it. --open gives it to the browser; over a Unix socket\n"
             "none is needed. The server answers only to the names that it is known by.",
    .examples = "  annal serve --open\n"
                "  annal serve --listen 0.0.0.0:7117 --host sessions.example.org --read-only\n"
                "  annal serve --listen 0.0.0.0:7117 --host example.org --cert a.pem --key a.key\n"
                "  annal serve --listen unix:/run/user/1000/annal.sock\n",
    .fields = fields,
    .run = run};
