/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/shared.h"

#include "journal/base/below.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "journal/sys/seam.h"

#include <annal/lease.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- The address ---- */

static annal_status cluster_path(annal_store *store, struct buf *out, annal_error *err)
{
    if (annal__buf_printf(out, "%s/cluster", annal_store_path(store)) < 0 ||
        annal__buf_cstr(out) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "compose the path of the file 'cluster': out of memory");
    return ANNAL_OK;
}

bool shared_read_url(annal_slice text, char out[SHARED_URL_BYTES])
{
    annal_slice line = text;
    if (line.len > 0 && line.ptr[line.len - 1] == '\n')
        line.len--;
    bool good =
        line.len < SHARED_URL_BYTES && annal__json_is_utf8(line) &&
        (annal__slice_begins(line, "postgresql://") || annal__slice_begins(line, "postgres://"));
    for (size_t i = 0; i < line.len && good; i++)
        good = (unsigned char)line.ptr[i] > ' ' && line.ptr[i] != '\x7f';
    out[0] = '\0';
    if (!good)
        return false;
    memcpy(out, line.ptr, line.len);
    out[line.len] = '\0';
    return true;
}

annal_status shared_url(annal_store *store, char out[SHARED_URL_BYTES], annal_error *err)
{
    const char *root = annal_store_path(store);
    struct below below = {0};
    /* one byte more than allowed, to detect a file that is too long */
    SCOPED_BUF text = {.limit = SHARED_URL_BYTES + 1};
    out[0] = '\0';
    annal_status status = annal__below_open(root, &below, err);
    if (status >= 0)
        status = annal__below_read(&below, "cluster", &text, err);
    if (status == ANNAL_ERR_NOTFOUND || (status >= 0 && text.len == 0))
        status = annal__fail(
            err, ANNAL_ERR_NOTFOUND,
            "the file %s/cluster does not contain the address of a database: run 'annal "
            "home join' to write it",
            root);
    else if (status == ANNAL_ERR_LIMIT ||
             (status >= 0 && !shared_read_url(annal__buf_slice(&text), out)))
        status = annal__fail(
            err, ANNAL_ERR_UNSUPPORTED,
            "the file %s/cluster does not contain an address that begins with postgresql://: "
            "run 'annal home leave' and 'annal home join' to write it again",
            root);
    annal__below_close(&below);
    return status;
}

static bool has_password(const char *url)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    const char *at = memchr(host, '@', strcspn(host, "/?"));
    return strstr(url, "password=") != NULL ||
           (at != NULL && memchr(host, ':', (size_t)(at - host)) != NULL);
}

annal_status shared_check_url(annal_store *store, const char *url, annal_error *err)
{
    char there[SHARED_URL_BYTES];
    if (strlen(url) >= SHARED_URL_BYTES || strchr(url, '\n') != NULL)
        return annal__fail(
            err, ANNAL_ERR_INVALID,
            "the address of the cluster's database is too long, or contains a line break");
    if (has_password(url))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the address of the cluster's database contains a password, which would "
                           "be saved in %s/cluster: put the password into ~/.pgpass instead",
                           annal_store_path(store));
    annal_status status = shared_url(store, there, err);
    if (status >= 0 && strcmp(there, url) != 0)
        return annal__fail(
            err, ANNAL_ERR_CONFLICT,
            "this store already belongs to the cluster of %s: run 'annal home leave' first", there);
    return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
}

annal_status shared_set_url(annal_store *store, const char *url, annal_error *err)
{
    char line[SHARED_URL_BYTES + 1];
    SCOPED_BUF path = {0};
    int len = snprintf(line, sizeof line, "%s\n", url);
    annal_status status = cluster_path(store, &path, err);
    return status < 0
               ? status
               : annal__io_publish_file(annal__store_io(store), path.ptr, line, (size_t)len, err);
}

/* ---- Leaving ---- */

struct leaving {
    annal_store *store;
    uint64_t count;
    annal_error *err;
};

/* End the lease of a session if it is shared; an annal_session_fn. */
static int end_shared(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    struct leaving *leaving = arg;
    annal_lease lease = {0};
    annal_status status = annal_lease_get(leaving->store, session, &lease, leaving->err);
    if (status == ANNAL_ERR_NOTFOUND || (status >= 0 && !lease.shared))
        return ANNAL_OK;
    if (status < 0)
        return status;
    leaving->count++;
    return annal_lease_set(leaving->store, session, &(annal_lease){.epoch = lease.epoch},
                           leaving->err);
}

annal_status shared_leave(annal_store *store, uint64_t *out_sessions, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct leaving leaving = {.store = store, .err = err};
    annal_status status = annal_lease_each(store, end_shared, &leaving, err);
    if (status >= 0)
        status = cluster_path(store, &path, err);
    if (status >= 0 && unlink(path.ptr) != 0)
        status = annal__fail_errno(err, "cannot remove the file %s", path.ptr);
    *out_sessions = leaving.count;
    return status;
}
