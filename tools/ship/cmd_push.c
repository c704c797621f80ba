/* SPDX-License-Identifier: Apache-2.0 */
/* The verb annal push, and the options and checks that it shares with annal pull. */
#include "tools/cli/command.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/ship/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool push_is_url(const char *url)
{
    return strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0;
}

/* Read the token, which is the last word of the first line, so that the token file of annal serve
 * can be used, too. */
static int read_token(const char *path, char out[512])
{
    char line[512] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return fail_refused("read the token file '%s': %s", path, strerror(errno));
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    const char *word = strrchr(line, ' ');
    snprintf(out, 512, "%s", word != NULL ? word + 1 : line);
    return out[0] != '\0' ? 0 : fail_refused("the token file '%s' does not contain a token", path);
}

int push_where_read(const struct args *args, const char *url, struct remote_where *out)
{
    const char *file = args_get(args, "token-file"), *token = getenv("ANNAL_TOKEN");
    *out = (struct remote_where){.url = url,
                                 .ca = args_get(args, "ca"),
                                 .quiet_ms = (uint32_t)fields_count(args, "timeout", 30) * 1000};
    if (file != NULL)
        return read_token(file, out->token);
    snprintf(out->token, sizeof out->token, "%s", token != NULL ? token : "");
    return 0;
}

#ifndef ANNAL_SHIP_S3
int push_run(const struct args *args, const struct remote_where *where)
{
    (void)args;
    (void)where;
    return fail_refused(
        "this annal was built without libcurl: install libcurl4-openssl-dev and build annal again");
}

int push_pull_remote(const struct args *args, const struct remote_where *where)
{
    return push_run(args, where);
}
#endif

static int run(const struct args *args)
{
    struct remote_where where;
    const char *url = args_get(args, "to");
    if (url == NULL || !push_is_url(url))
        return fail_usage("--to needs the address of a server: https://host:port");
    int exit_status = push_where_read(args, url, &where);
    return exit_status != 0 ? exit_status : push_run(args, &where);
}

static const struct field fields[] = {
    OPERAND("SESSION", FIELD_SESSION, NULL, "session to push"),
    OPTION("to", "URL", FIELD_TEXT, NULL, "address of the server: https://host:port"),
    REMOTE_OPTIONS, FIELDS_END};

const struct command cmd_push = {
    COMMAND("push", "copy a session to the server of another store", push, fields, run),
};
