/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/log_places.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"

#include <glob.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool add(struct log_places *places, const struct importer *importer, const char *path,
                const struct stat *found)
{
    char *copy = annal__strndup(path, strlen(path));
    struct log_place *place =
        copy == NULL ? NULL : annal__array_add(&places->all, &places->count, sizeof *place);
    if (place == NULL) {
        annal__free(copy);
        return false;
    }
    *place = (struct log_place){.importer = *importer, .path = copy, .is_found = found != NULL};
    if (found != NULL) {
        place->device = found->st_dev;
        place->inode = found->st_ino;
    }
    return true;
}

bool log_places_add(struct log_places *places, const struct importer *importer, const char *path)
{
    return add(places, importer, path, NULL);
}

void log_places_done(struct log_places *places)
{
    for (size_t i = 0; i < places->count; i++)
        annal__free(places->all[i].path);
    annal__free(places->all);
    *places = (struct log_places){0};
}

/* ---- The places of the agents ---- */

static bool is_there(const struct log_places *places, const struct importer *importer,
                     const struct stat *st)
{
    for (size_t i = 0; i < places->count; i++) {
        const struct log_place *place = &places->all[i];
        if (place->is_found && place->inode == st->st_ino && place->device == st->st_dev &&
            strcmp(place->importer.kind, importer->kind) == 0)
            return true;
    }
    return false;
}

/* Append text of a user or a variable to a pattern, with its wildcards escaped. */
static annal_status append_plain(struct buf *pattern, const char *text)
{
    annal_status status = ANNAL_OK;
    for (; *text != '\0' && status >= 0; text++) {
        if (strchr("*?[\\", *text) != NULL)
            status = annal__buf_append(pattern, "\\", 1);
        if (status >= 0)
            status = annal__buf_append(pattern, text, 1);
    }
    return status;
}

/* Write the name of the variable that a place begins with. Return false if it does not begin with a
 * variable. */
static bool variable_of(annal_slice place, char name[64])
{
    const char *slash = memchr(place.ptr, '/', place.len);
    size_t len = slash != NULL ? (size_t)(slash - place.ptr) : place.len;
    if (place.ptr[0] != '$' || len > 64)
        return false;
    memcpy(name, place.ptr + 1, len - 1);
    name[len - 1] = '\0';
    return true;
}

/* Write the pattern of a place; empty if its variable is not set. variables: whether to expand
 * $VAR. */
static annal_status expand(annal_slice place, const char *home, bool variables, struct buf *out)
{
    char name[64];
    const char *slash = memchr(place.ptr, '/', place.len), *base = home;
    size_t len = slash != NULL ? (size_t)(slash - place.ptr) : place.len;
    annal__buf_clear(out);
    if (variable_of(place, name))
        base = variables ? getenv(name) : NULL;
    /* a variable that is not set, or a relative directory, which agents ignore, too */
    if (base == NULL || base[0] != '/')
        return ANNAL_OK;
    annal_status status = append_plain(out, base);
    return status < 0 ? status : annal__buf_append(out, place.ptr + len, place.len - len);
}

static bool add_matches(struct log_places *places, const struct importer *importer,
                        const char *pattern)
{
    glob_t found = {0};
    bool added = true;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && added; i++) {
            struct stat st;
            if (stat(found.gl_pathv[i], &st) == 0 && !is_there(places, importer, &st))
                added = add(places, importer, found.gl_pathv[i], &st);
        }
    globfree(&found);
    return added;
}

static bool find_in_home(struct log_places *places, const char *home, bool variables)
{
    struct buf pattern = {0};
    bool added = true;
    for (const struct importer_text *text = importer_texts; text->kind != NULL && added; text++) {
        const struct importer importer = {text->kind, annal_slice_of(text->sql)};
        size_t at = 0;
        for (annal_slice word; added && (word = importer_word(&importer, "places", &at)).len > 0;) {
            added = expand(word, home, variables, &pattern) >= 0;
            if (added && pattern.len > 0)
                added = annal__buf_cstr(&pattern) != NULL &&
                        add_matches(places, &importer, pattern.ptr);
        }
    }
    annal__buf_done(&pattern);
    return added;
}

bool log_places_find(struct log_places *places, bool all_users)
{
    const char *home = getenv("HOME");
    const struct passwd *user = home != NULL && home[0] != '\0' ? NULL : getpwuid(geteuid());
    bool added = find_in_home(places, user != NULL ? user->pw_dir : home, true);
    if (all_users && added) {
        setpwent();
        while (added && (user = getpwent()) != NULL)
            added = find_in_home(places, user->pw_dir, false);
        endpwent();
    }
    return added;
}

void log_places_variables(log_variable_fn fn, void *arg)
{
    char name[64], seen[1024] = " ";
    for (const struct importer_text *text = importer_texts; text->kind != NULL; text++) {
        const struct importer importer = {text->kind, annal_slice_of(text->sql)};
        size_t at = 0;
        for (annal_slice word; (word = importer_word(&importer, "places", &at)).len > 0;) {
            char key[66];
            size_t used = strlen(seen);
            if (!variable_of(word, name) || getenv(name) == NULL)
                continue;
            snprintf(key, sizeof key, " %s ", name);
            if (strstr(seen, key) != NULL)
                continue;
            snprintf(seen + used, sizeof seen - used, "%s ", name);
            fn(arg, name, getenv(name));
        }
    }
}
