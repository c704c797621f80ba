/* SPDX-License-Identifier: Apache-2.0 */
/* What a pack that was read declares: its types, its sections, and the sessions that it is for. */
#include "index/pack/pack.h"

#include "journal/base/alloc.h"

#include <string.h>

bool annal__pack_section_takes(const struct pack_section *section, annal_slice type)
{
    const char *at = section->types == NULL ? "" : section->types;
    for (size_t len; (len = strlen(at)) > 0; at += len + 1) {
        bool same = type.len >= len - 1 && memcmp(type.ptr, at, len - 1) == 0;
        if (same && (at[len - 1] == '*' || (type.len == len && type.ptr[len - 1] == at[len - 1])))
            return true;
    }
    return false;
}

static bool has_section(const annal_pack *pack, enum pack_section_kind kind)
{
    for (size_t i = 0; i < pack->section_count; i++)
        if (pack->sections[i].kind == kind)
            return true;
    return false;
}

bool annal__pack_forgets(const annal_pack *pack)
{
    return has_section(pack, PACK_FORGET);
}

bool annal__pack_settles(const annal_pack *pack)
{
    return has_section(pack, PACK_SETTLE);
}

/* Return whether a glob matches a session. *out_star: the text that the * matches, or empty. */
static bool glob_matches(annal_slice glob, annal_slice session, annal_slice *out_star)
{
    const char *star = memchr(glob.ptr, '*', glob.len);
    size_t before = star == NULL ? glob.len : (size_t)(star - glob.ptr);
    size_t after = star == NULL ? 0 : glob.len - before - 1;
    if (session.len < before + after || (star == NULL && session.len != before) ||
        memcmp(session.ptr, glob.ptr, before) != 0 ||
        memcmp(session.ptr + session.len - after, glob.ptr + glob.len - after, after) != 0)
        return false;
    *out_star = (annal_slice){session.ptr + before, session.len - before - after};
    return true;
}

bool annal__pack_feeds(const annal_pack *pack, annal_slice session, annal_slice *out_star)
{
    annal_slice star = {session.ptr, 0};
    if (pack->sessions != NULL) {
        if (!glob_matches(annal_slice_of(pack->sessions), session, &star))
            return false;
        if (strchr(pack->database, '*') != NULL &&
            (!annal__pack_is_path(star, 0) ||
             (pack->folder == NULL &&
              annal__pack_path_is_kept(annal_slice_of(pack->database), star))))
            return false;
    }
    if (out_star != NULL)
        *out_star = star;
    return true;
}

bool annal__pack_shares(const annal_pack *pack, annal_slice session)
{
    if (pack->cluster == NULL)
        return false;
    annal_slice rest = annal_slice_of(pack->cluster), glob, star;
    do
        glob = annal__pack_take_word(&rest);
    while (glob.len > 0 && !glob_matches(glob, session, &star));
    return glob.len > 0;
}

char *annal__pack_stem(const annal_pack *pack, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = pack->writable ? pack->name : slash == NULL ? path : slash + 1;
    char *stem = annal__strndup(name, strcspn(name, "."));
    for (char *c = stem; c != NULL && *c != '\0'; c++)
        if (pack->writable && *c == '-')
            *c = '_';
    return stem;
}
