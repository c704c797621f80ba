/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which clients of the protocol name their servers.
 *
 * (1) A file of JSON is changed only where the server is inserted: every other byte stays. A file
 *     that is not strict JSON, as one with comments, is refused.
 * (2) To a file of TOML a table is appended.
 * (3) A file that names a server annal is refused, whatever it says about it.
 */
#include "journal/base/alloc.h"
#include "journal/base/io.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/cli/out.h"
#include "tools/cli/target.h"
#include "tools/cli/whole_file.h"
#include "tools/mcp/mcp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)64 << 20)
#define JSON_DEPTH     200
#define BACKUP         ".annal-backup"

/* The file of a client is $variable/below, or else ~/home. An entry is the text `before`, the path
 * of the command, `between`, its arguments, `after`. */
static const struct client {
    const char *name;
    const char *variable, *below, *home;
    const char *member; /* object of JSON whose members are servers; NULL for TOML */
    const char *before, *between, *after;
} clients[] = {
    {"claude-code", "CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json", "mcpServers",
     "{\"type\": \"stdio\", \"command\": ", ", \"args\": [", "], \"env\": {}}"},
    {"codex", "CODEX_HOME", "config.toml", ".codex/config.toml", NULL,
     "[mcp_servers.annal]\ncommand = ", "\nargs = [", "]\n"},
    {"cursor", NULL, NULL, ".cursor/mcp.json", "mcpServers", "{\"command\": ", ", \"args\": [",
     "]}"},
    {"gemini-cli", NULL, NULL, ".gemini/settings.json", "mcpServers",
     "{\"command\": ", ", \"args\": [", "]}"},
    {"opencode", "XDG_CONFIG_HOME", "opencode/opencode.json", ".config/opencode/opencode.json",
     "mcp", "{\"type\": \"local\", \"command\": [", ", ", "], \"enabled\": true}"},
    {"vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json", ".config/Code/User/mcp.json", "servers",
     "{\"type\": \"stdio\", \"command\": ", ", \"args\": [", "]}"},
};

static const struct client *find_client(const char *name)
{
    size_t i = 0;
    while (strcmp(clients[i].name, name) != 0)
        i++;
    return &clients[i];
}

static char *find_file(const struct client *client)
{
    struct buf path = {.limit = PATH_MAX};
    const char *home = getenv("HOME");
    const char *given = client->variable == NULL ? NULL : getenv(client->variable);
    annal_status status = ANNAL_ERR_INVALID;
    if (given != NULL && given[0] == '/')
        status = annal__buf_printf(&path, "%s/%s", given, client->below);
    else if (home != NULL && home[0] == '/')
        status = annal__buf_printf(&path, "%s/%s", home, client->home);
    if (status >= 0 && annal__buf_cstr(&path) != NULL)
        return path.ptr;
    annal__buf_done(&path);
    return NULL;
}

static void put_entry(const struct client *client, const struct args *args, struct buf *out)
{
    char self[PATH_MAX], store[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    snprintf(self + (len > 0 ? len : 0), len > 0 ? 1 : sizeof self, "%s", len > 0 ? "" : "annal");
    annal__json_put(out, "#?#\"mcp\"", annal_slice_of(client->before), annal_slice_of(self),
                    annal_slice_of(client->between));
    if (args_has(args, "all"))
        annal__buf_printf(out, ", \"--all\"");
    if (args->store != NULL)
        annal__json_put(out, ", \"--store\", ?",
                        annal_slice_of(realpath(args->store, store) != NULL ? store : args->store));
    annal__buf_append_slice(out, annal_slice_of(client->after));
}

/* Return why a server cannot be added to a file of JSON; NULL after adding it to out. */
static const char *add_to_json(const struct client *client, annal_slice old, annal_slice entry,
                               struct buf *out)
{
    annal_slice text = annal__json_trim(old.len > 0 ? old : ANNAL_SLICE("{}"));
    if (annal__json_check(text, JSON_DEPTH, NULL) != JSON_VALID || text.ptr[0] != '{')
        return "it is not an object of strict JSON, without comments";
    annal_slice servers = mcp_text_member(text, client->member);
    if (servers.len > 0 && servers.ptr[0] != '{')
        return "its member for servers is not an object";
    if (mcp_text_member(servers, "annal").len > 0)
        return "it has a server named annal";
    annal_slice into = servers.len > 0 ? servers : text;
    struct json_walk walk;
    annal_slice name, value;
    bool is_empty =
        !annal__json_walk_object(&walk, into) || !annal__json_walk_next(&walk, &name, &value);
    size_t before = (size_t)(into.ptr + 1 - text.ptr);
    annal__buf_append_slice(out, (annal_slice){text.ptr, before});
    if (servers.len == 0)
        annal__buf_printf(out, "\n  \"%s\": {", client->member);
    annal__buf_printf(out, "\n    \"annal\": ");
    annal__buf_append_slice(out, entry);
    annal__buf_printf(out, servers.len == 0 ? "\n  }" : "");
    annal__buf_printf(out, is_empty ? "\n" : ",");
    annal__buf_append_slice(out, (annal_slice){text.ptr + before, text.len - before});
    annal__buf_printf(out, "\n");
    return NULL;
}

static const char *add_to_toml(annal_slice old, annal_slice entry, struct buf *out)
{
    static const char *const names[] = {"mcp_servers.annal", "mcp_servers.\"annal\"",
                                        "mcp_servers.'annal'"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (old.len > 0 && memmem(old.ptr, old.len, names[i], strlen(names[i])) != NULL)
            return "it has a server named annal";
    }
    const char *end = old.len == 0 ? NULL : old.ptr + old.len;
    for (const char *line = old.ptr; line != NULL && line < end;) {
        line += strspn(line, " \t");
        if (strncmp(line, "mcp_servers", 11) == 0 && line[11 + strspn(line + 11, " \t")] == '=')
            return "mcp_servers is a value, not a table";
        line = memchr(line, '\n', (size_t)(end - line));
        line = line == NULL ? NULL : line + 1;
    }
    annal__buf_append_slice(out, old);
    annal__buf_printf(out, old.len == 0 ? "" : old.ptr[old.len - 1] == '\n' ? "\n" : "\n\n");
    annal__buf_append_slice(out, entry);
    return NULL;
}

/* Keep the old text beside the file, readable only by its owner. */
static int keep_backup(const char *path, annal_slice old)
{
    char backup[PATH_MAX + sizeof BACKUP];
    snprintf(backup, sizeof backup, "%s" BACKUP, path);
    int fd = open(backup, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = fd >= 0 && annal__io_write_all(&annal__system_io, fd, old.ptr, old.len, 0) == 0 &&
                fsync(fd) == 0;
    int exit_status =
        good ? 0 : fail_storage("mcp install: write the backup '%s': %s", backup, strerror(errno));
    if (fd >= 0)
        close(fd);
    return exit_status;
}

static int write_file(const char *path, annal_slice text)
{
    struct aside aside = {0};
    int fd = -1;
    int exit_status = target_aside_begin(&aside, path, &fd);
    if (exit_status == 0 && annal__io_write_all(&annal__system_io, fd, text.ptr, text.len, 0) != 0)
        exit_status = fail_storage("mcp install: write '%s': %s", path, strerror(errno));
    if (exit_status == 0)
        exit_status = target_aside_finish(&aside);
    target_aside_done(&aside);
    return exit_status;
}

static int add_server(const struct client *client, char *path, annal_slice entry)
{
    SCOPED_BUF old = {0};
    SCOPED_BUF text = {0};
    int exit_status = 0;
    const char *why = NULL;
    bool is_there = access(path, F_OK) == 0;
    if (is_there && (!whole_file_read(path, FILE_BYTES_MAX, &old) || annal__buf_cstr(&old) == NULL))
        exit_status = fail_refused("mcp install: read '%s': %s", path, strerror(errno));
    if (exit_status == 0)
        why = client->member != NULL ? add_to_json(client, annal__buf_slice(&old), entry, &text)
                                     : add_to_toml(annal__buf_slice(&old), entry, &text);
    if (why != NULL)
        exit_status = fail_refused("mcp install: '%s' is unchanged: %s; 'annal mcp install %s' "
                                   "prints what it needs",
                                   path, why, client->name);
    else if (exit_status == 0 && text.status < 0)
        exit_status = fail_storage("mcp install: out of memory");
    if (exit_status == 0 && !is_there && !target_make_parents(path))
        exit_status =
            fail_storage("mcp install: create the directory of '%s': %s", path, strerror(errno));
    if (exit_status == 0 && is_there)
        exit_status = keep_backup(path, annal__buf_slice(&old));
    if (exit_status == 0)
        exit_status = write_file(path, annal__buf_slice(&text));
    if (exit_status == 0)
        say("mcp install: wrote %s%s; restart the client", path,
            is_there ? ", and kept the old file as the same name with " BACKUP : "");
    return exit_status;
}

int mcp_install(const struct args *args)
{
    const struct client *client = find_client(args_get(args, "CLIENT"));
    SCOPED_BUF entry = {0};
    int exit_status = 0;
    char *path = find_file(client);
    put_entry(client, args, &entry);
    if (path == NULL || entry.status < 0) {
        exit_status = fail_refused("mcp install: HOME names no directory");
    } else if (args_has(args, "write")) {
        exit_status = add_server(client, path, annal__buf_slice(&entry));
    } else {
        say("mcp install: to be added to %s; --write does so, and keeps the old file", path);
        if (client->member != NULL)
            printf("{\n  \"%s\": {\n    \"annal\": %.*s\n  }\n}\n", client->member, (int)entry.len,
                   entry.ptr);
        else
            out_slice(annal__buf_slice(&entry));
        exit_status = out_finish(0);
    }
    annal__free(path);
    return exit_status;
}
