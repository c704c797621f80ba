/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/log_places.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "tools/cli/must.h"

#include <glob.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(struct log_places *places, const struct importer *importer, const char *path,
                const struct stat *found)
{
    struct log_place *place = must_array_add(&places->all, &places->count, sizeof *place);
    *place = (struct log_place){
        .importer = *importer, .path = must_strndup(path, strlen(path)), .is_found = found != NULL};
    if (found != NULL) {
        place->device = found->st_dev;
        place->inode = found->st_ino;
    }
}

void log_places_add(struct log_places *places, const struct importer *importer, const char *path)
{
    add(places, importer, path, NULL);
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
static void append_plain(struct buf *pattern, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("*?[\\", *text) != NULL)
            must_append_text(pattern, "\\");
        must_append(pattern, text, 1);
    }
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

/* Return the root of the git repository in which the command runs, else the directory in which it
 * runs; NULL if that is unknown. The caller frees it. */
static char *project(void)
{
    struct stat st;
    SCOPED_BUF git = {0};
    char *root = getcwd(NULL, 0);
    size_t len = root != NULL ? strlen(root) : 0;
    bool found = false;
    while (len > 0 && !found) {
        annal__buf_clear(&git);
        must_printf(&git, "%.*s/.git", (int)len, root);
        found = stat(must_cstr(&git), &st) == 0;
        if (found)
            root[len] = '\0';
        while (len > 0 && root[--len] != '/')
            continue;
    }
    return root;
}

/* Write the pattern of a place; empty if its variable is not set. variables: whether to expand $VAR
 * and the current directory. */
static void expand(annal_slice place, const char *home, bool variables, struct buf *out)
{
    char name[64];
    const char *slash = memchr(place.ptr, '/', place.len), *base = home;
    size_t len = slash != NULL ? (size_t)(slash - place.ptr) : place.len;
    char *here = variables && place.ptr[0] == '.' ? project() : NULL;
    annal__buf_clear(out);
    if (variable_of(place, name))
        base = variables ? getenv(name) : NULL;
    else if (place.ptr[0] == '.')
        base = here;
    /* a variable that is not set, or a relative directory, which agents ignore, too */
    if (base != NULL && base[0] == '/') {
        append_plain(out, base);
        must_append(out, place.ptr + len, place.len - len);
    }
    free(here); /* of getcwd(3) */
}

static void add_matches(struct log_places *places, const struct importer *importer,
                        const char *pattern)
{
    glob_t found = {0};
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct stat st;
            if (stat(found.gl_pathv[i], &st) == 0 && !is_there(places, importer, &st))
                add(places, importer, found.gl_pathv[i], &st);
        }
    globfree(&found);
}

static void find_in_home(struct log_places *places, const char *home, bool variables)
{
    SCOPED_BUF pattern = {0};
    for (const struct importer_text *text = importer_texts; text->kind != NULL; text++) {
        const struct importer importer = {text->kind, annal_slice_of(text->sql)};
        size_t at = 0;
        for (annal_slice word; (word = importer_word(&importer, "places", &at)).len > 0;) {
            expand(word, home, variables, &pattern);
            if (pattern.len > 0)
                add_matches(places, &importer, must_cstr(&pattern));
        }
    }
}

void log_places_find(struct log_places *places, bool all_users)
{
    const char *home = getenv("HOME");
    const struct passwd *user = home != NULL && home[0] != '\0' ? NULL : getpwuid(geteuid());
    find_in_home(places, user != NULL ? user->pw_dir : home, true);
    if (all_users) {
        setpwent();
        while ((user = getpwent()) != NULL)
            find_in_home(places, user->pw_dir, false);
        endpwent();
    }
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
