/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check artifacts: that those which events name exist, and that their files are undamaged.
 *
 * (1) An artifact is missing if its path is in a reference, a member "path" of an event's data, and
 *     that file does not exist. A hash alone may mean anything.
 * (2) A file is undamaged if the hash of its content is its name.
 */
#include "journal/artifact/artifact_names.h"
#include "journal/sys/artifact.h"

#include <string.h>

#define HEX         ((size_t)2 * SHA256_BYTES)
#define PATH_MEMBER "\"path\":\""
#define FOLDER      "artifacts/"

/* Read which artifact a path names: its session, and its hash as hex digits. rest begins with the
 * path, which ends with a quote. Return false if it is not the path of an artifact. */
static bool read_path(annal_slice rest, annal_slice *out_session, const char **out_hex)
{
    uint8_t sha256[SHA256_BYTES];
    const size_t folder = strlen(FOLDER), suffix = strlen(ARTIFACT_SUFFIX "\"");
    if (rest.len < folder || memcmp(rest.ptr, FOLDER, folder) != 0)
        return false;
    rest.ptr += folder;
    rest.len -= folder;
    const char *slash = memchr(rest.ptr, '/', rest.len);
    if (slash == NULL)
        return false;
    *out_session = (annal_slice){rest.ptr, (size_t)(slash - rest.ptr)};
    *out_hex = slash + 1;
    size_t left = rest.len - out_session->len - 1;
    return left >= HEX + suffix && annal_session_id_check(*out_session, NULL) == ANNAL_OK &&
           annal__artifact_read_sha256(*out_hex, HEX, sha256) &&
           memcmp(*out_hex + HEX, ARTIFACT_SUFFIX "\"", suffix) == 0;
}

annal_status annal__artifact_references(annal_slice data, annal__artifact_reference_fn fn,
                                        void *arg, annal_error *err)
{
    const size_t len = strlen(PATH_MEMBER);
    const char *end = data.ptr + data.len;
    annal_status status = ANNAL_OK;
    for (const char *at = data.ptr; status == ANNAL_OK;) {
        const char *found = memmem(at, (size_t)(end - at), PATH_MEMBER, len);
        annal_slice session;
        const char *hex = NULL;
        if (found == NULL)
            break;
        at = found + len;
        if (found > data.ptr && found[-1] == '\\')
            /* the quote is escaped: PATH_MEMBER is within a string here, and is not a member of the
             * data */
            continue;
        if (read_path((annal_slice){at, (size_t)(end - at)}, &session, &hex))
            status = fn(arg, session, (annal_slice){hex, HEX}, err);
    }
    return status;
}

struct checking {
    annal_store *store;
    annal__artifact_missing_fn fn;
    void *arg;
};

static annal_status check_reference(void *arg, annal_slice session, annal_slice sha256,
                                    annal_error *err)
{
    const struct checking *checking = arg;
    annal_artifact_info info;
    annal_status status = annal__artifact_look(checking->store, session, sha256.ptr, &info, err);
    if (status != ANNAL_ERR_NOTFOUND)
        return status;
    const char *path = session.ptr - strlen(FOLDER);
    const char *stop = sha256.ptr + HEX + strlen(ARTIFACT_SUFFIX);
    return (annal_status)checking->fn(checking->arg, (annal_slice){path, (size_t)(stop - path)});
}

annal_status annal__artifact_check_data(annal_store *store, annal_slice data,
                                        annal__artifact_missing_fn fn, void *arg, annal_error *err)
{
    return annal__artifact_references(data, check_reference, &(struct checking){store, fn, arg},
                                      err);
}

struct proving {
    annal_store *store;
    annal_artifact_damage_fn fn;
    void *arg;
    annal_artifact_verify_result result;
    annal_error *err;
};

/* Read one artifact and check its hash, as an annal_artifact_fn. */
static int prove_one(void *arg, const annal_artifact_info *info)
{
    struct proving *proving = arg;
    annal_artifact_info read;
    annal_error why = {0};
    annal_status status =
        annal_artifact_read(proving->store, annal_slice_of(info->session),
                            annal_slice_of(info->sha256), NULL, NULL, &read, &why);
    if (status == ANNAL_ERR_NOTFOUND) /* a sweep removed the artifact after it was listed */
        return ANNAL_OK;
    if (status < 0 && status != ANNAL_ERR_CORRUPT) {
        if (proving->err != NULL)
            *proving->err = why;
        return status;
    }
    proving->result.artifacts++;
    proving->result.bytes += status == ANNAL_OK ? read.bytes : 0;
    proving->result.damaged += status != ANNAL_OK;
    if (status != ANNAL_OK && proving->fn != NULL)
        proving->fn(proving->arg, info, why.message);
    return ANNAL_OK;
}

annal_status annal_artifact_verify(annal_store *store, annal_artifact_damage_fn fn, void *arg,
                                   annal_artifact_verify_result *out_result, annal_error *err)
{
    struct proving proving = {.store = store, .fn = fn, .arg = arg, .err = err};
    annal_status status =
        annal_artifact_each(store, (annal_slice){NULL, 0}, prove_one, &proving, err);
    if (status == ANNAL_OK)
        *out_result = proving.result;
    return status;
}
