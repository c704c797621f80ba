/* SPDX-License-Identifier: Apache-2.0 */
#include "index/import/foreign.h"

#include "index/db/connect.h"
#include "index/db/db.h"
#include "index/import/import.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_MS_USUAL 10000

static bool wants_a_copy(int rc)
{
    return (rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY;
}

static int begin_reading(struct foreign *foreign)
{
    return sqlite3_exec(foreign->db, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
}

static int open_at(struct foreign *foreign, const char *path, int flags)
{
    int rc =
        annal__connect_open(annal__patience_vfs(&foreign->patience), path, flags, &foreign->db);
    if (rc == SQLITE_OK) {
        annal__patience_on(&foreign->patience, foreign->db);
        sqlite3_db_config(foreign->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        rc = begin_reading(foreign);
    }
    if (rc == SQLITE_CORRUPT) { /* the file is incomplete: let SQLite read the pages that exist */
        foreign->damaged = true;
        sqlite3_db_config(foreign->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
        sqlite3_exec(foreign->db, "ROLLBACK; PRAGMA writable_schema = ON", NULL, NULL, NULL);
        rc = begin_reading(foreign);
    }
    return rc;
}

static annal_status copy_file(const char *from, const char *to, const char *suffix, bool *out_found,
                              annal_error *err)
{
    SCOPED_BUF source = {0}, target = {0};
    char bytes[65536];
    FILE *in = NULL, *out = NULL;
    annal_status status = ANNAL_OK;
    *out_found = false;
    if (annal__buf_printf(&source, "%s%s", from, suffix) < 0 || annal__buf_cstr(&source) == NULL ||
        annal__buf_printf(&target, "%s%s", to, suffix) < 0 || annal__buf_cstr(&target) == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "copy '%s': out of memory", from);
        goto done;
    }
    in = fopen(source.ptr, "re");
    if (in == NULL)
        goto done;
    *out_found = true;
    out = fopen(target.ptr, "wxe");
    for (size_t got; out != NULL && (got = fread(bytes, 1, sizeof bytes, in)) > 0;)
        if (fwrite(bytes, 1, got, out) != got)
            break;
    if (out == NULL || ferror(in) || ferror(out) || fflush(out) != 0)
        status = annal__fail_errno(err, "cannot copy '%s'", from);

done:
    if (in != NULL)
        fclose(in);
    if (out != NULL)
        fclose(out);
    return status;
}

static void remove_copy(const char *directory, const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    rmdir(directory);
}

/* Copy the database to a temporary directory and open the copy; its names are then removed. */
static annal_status open_copy(struct foreign *foreign, const char *path, int *out_rc,
                              annal_error *err)
{
    char directory[] = P_tmpdir "/annal-import-XXXXXX", copy[sizeof directory + 16];
    bool found = false;
    if (mkdtemp(directory) == NULL)
        return annal__fail_errno(err, "cannot make a temporary directory");
    snprintf(copy, sizeof copy, "%s/log.db", directory);
    annal_status status = copy_file(path, copy, "", &found, err);
    if (status >= 0)
        status = copy_file(path, copy, "-wal", &found, err);
    if (status >= 0)
        status = copy_file(path, copy, "-journal", &found, err);
    if (status >= 0)
        *out_rc = open_at(foreign, copy, SQLITE_OPEN_READWRITE);
    remove_copy(directory, copy);
    return status;
}

static annal_status open_database(struct foreign *foreign, const char *path, annal_error *err)
{
    int rc = open_at(foreign, path, SQLITE_OPEN_READONLY);
    if (wants_a_copy(rc)) {
        sqlite3_close(foreign->db);
        foreign->db = NULL;
        annal_status status = open_copy(foreign, path, &rc, err);
        if (status < 0)
            return status;
    }
    if (rc == SQLITE_OK)
        rc = annal__import_functions(foreign->db);
    if (rc == SQLITE_OK)
        return ANNAL_OK;
    return annal__db_fail(err, foreign->db, rc, "cannot read this SQLite database");
}

annal_status annal__foreign_open(struct foreign *foreign, const char *path, uint32_t wait_ms,
                                 annal_error *err)
{
    *foreign = (struct foreign){.wait_ms = wait_ms == 0 ? WAIT_MS_USUAL : wait_ms};
    annal_status status = annal__patience_init(&foreign->patience, NULL, &foreign->wait_ms, err);
    return status < 0 ? status : open_database(foreign, path, err);
}

void annal__foreign_close(struct foreign *foreign)
{
    sqlite3_close(foreign->db);
    annal__patience_done(&foreign->patience);
}
