/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/map.h"

#include "journal/base/slice.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <string.h>

static size_t span(annal_slice text, size_t at, const char *set, bool in_set)
{
    size_t len = 0;
    while (at + len < text.len && (strchr(set, text.ptr[at + len]) != NULL) == in_set)
        len++;
    return len;
}

/* Skip a step of a path at *at: .key, ."key", [7] or [#-1]. Return whether it is valid. */
static bool take_step(annal_slice path, size_t *at)
{
    bool is_key = path.ptr[(*at)++] == '.';
    size_t len;
    if (is_key && *at < path.len && path.ptr[*at] == '"') {
        len = span(path, ++*at, "\"", false);
        *at += len + 1;
        return *at <= path.len;
    }
    if (is_key) {
        len = span(path, *at, ".[", false);
        *at += len;
        return len > 0;
    }
    bool from_end = span(path, *at, "#", true) == 1;
    *at += from_end ? 1 : 0;
    bool minus = from_end && span(path, *at, "-", true) == 1;
    *at += minus ? 1 : 0;
    len = span(path, *at, "0123456789", true);
    *at += len + 1;
    return *at <= path.len && path.ptr[*at - 1] == ']' && (from_end ? minus == (len > 0) : len > 0);
}

static bool is_path(annal_slice text)
{
    size_t at = 1;
    while (at < text.len)
        if (strchr(".[", text.ptr[at]) == NULL || !take_step(text, &at))
            return false;
    return true;
}

static bool is_time(annal_slice text)
{
    int64_t us;
    return annal_time_parse(text, &us, NULL) >= 0 ||
           (text.len > 0 && span(text, 0, "0123456789.eE+-", true) == text.len &&
            span(text, 0, ".eE+-", true) < text.len);
}

static int fail_name(const struct importer *importer, const annal_import_option *option)
{
    SCOPED_BUF names = {0};
    size_t at = 0;
    for (annal_slice word; (word = importer_word(importer, "map", &at)).len > 0;)
        must_printf(&names, "%s%.*s", names.len > 0 ? ", " : "", ANNAL_FMT(word));
    return fail_usage("--map %.*s=%.*s: --map of %s names one of %.*s", ANNAL_FMT(option->name),
                      ANNAL_FMT(option->value), importer->kind, (int)names.len, names.ptr);
}

static int check(const struct importer *importer, const annal_import_option *option)
{
    annal_slice name = option->name, value = option->value, word;
    size_t at = 0;
    do
        word = importer_word(importer, "map", &at);
    while (word.len > 0 && !annal__slice_same(word, name));
    if (word.len == 0)
        return fail_name(importer, option);
    if (value.len > 0 && value.ptr[0] == '$')
        return is_path(value)
                   ? EXIT_DONE
                   : fail_usage("--map %.*s=%.*s: the value must be a JSON path, such as $.at",
                                ANNAL_FMT(name), ANNAL_FMT(value));
    if (annal__slice_is(name, "ts") && !is_time(value))
        return fail_usage(
            "--map ts=%.*s: the value must be a time; write ts=$.%.*s for the member %.*s",
            ANNAL_FMT(value), ANNAL_FMT(value), ANNAL_FMT(value));
    return EXIT_DONE;
}

int map_check(const struct importer *importer, const annal_import_option *options, size_t count)
{
    size_t at = 0;
    if (importer->kind == NULL || importer_word(importer, "map", &at).len == 0)
        return EXIT_DONE;
    int exit_status = EXIT_DONE;
    for (size_t i = 0; i < count && exit_status == EXIT_DONE; i++)
        exit_status = check(importer, &options[i]);
    return exit_status;
}
