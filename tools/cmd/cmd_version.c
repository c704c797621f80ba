/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"

#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXE_BYTES_MAX 4096

/* Print the path of the extension. It is next to this program, in an installed tree (any prefix) or
 * a build tree. Return the exit status. */
static int print_extension(void)
{
    static const char *const places[] = {"/../" ANNAL_LIBDIR "/annal", "/.."};
    char exe[EXE_BYTES_MAX];
    ssize_t bytes = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[bytes < 0 ? 0 : bytes] = '\0';
    const char *directory = dirname(exe);
    SCOPED_BUF path = {0};
    bool found = false;
    for (size_t i = 0; !found && i < sizeof places / sizeof *places; i++) {
        annal__buf_clear(&path);
        must_printf(&path, "%s%s/annal_sqlite.so", directory, places[i]);
        found = access(path.ptr, R_OK) == 0;
    }
    if (found)
        printf("%s\n", path.ptr);
    return found ? EXIT_DONE
                 : fail_refused("the extension annal_sqlite.so is missing beside this program: an "
                                "installation "
                                "has the extension at LIBDIR/annal/annal_sqlite.so");
}

static int run(const struct args *args)
{
    if (args_has(args, "extension"))
        return print_extension();
    if (args->json)
        printf("{\"version\":\"%s\"}\n", annal_version());
    else
        printf("annal %s\n", annal_version());
    return EXIT_DONE;
}

static const struct field fields[] = {FLAG("extension", NULL, "path of the extension for SQLite"),
                                      FIELDS_END};

const struct command cmd_version = {COMMAND("version", "print the version", version, fields, run)};
