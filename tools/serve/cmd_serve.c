/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"

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
    return fail_refused("this annal was built without libmicrohttpd: install libmicrohttpd-dev and "
                        "build annal again");
#endif
}

static const struct field fields[] = {
    OPTION("listen", "HOST:PORT", FIELD_LIST, NULL, "address (" LISTEN_USUAL "), or unix:PATH"),
    OPTION("token-file", "FILE", FIELD_TEXT, NULL,
           "token file (STORE/serve.token); created if missing"),
    OPTION_WITH("cert", "FILE", FIELD_TEXT, NULL, "TLS certificate with its chain, as PEM",
                .with = "key"),
    OPTION_WITH("key", "FILE", FIELD_TEXT, NULL, "private key of the certificate, as PEM",
                .with = "cert"),
    FLAG("read-only", NULL, "refuse all writes, whatever the token"),
    FLAG("streams", NULL, "serve Durable Streams at /v1/stream/"),
    OPTION_WITH("watch", NULL, FIELD_FLAG, NULL, "import agent logs while they are written",
                .without = "read-only"),
    OPTION("host", "NAME", FIELD_LIST, NULL, "another host name of the server"),
    OPTION("log", "FILE", FIELD_TEXT, NULL, "log file, a line of JSON per request; - is stderr"),
    FLAG("open", NULL, "open the page in a browser"),
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_serve = {
    COMMAND("serve", "show sessions in a browser, and serve them to programs", serve, fields, run)};
