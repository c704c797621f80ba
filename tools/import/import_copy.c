/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/row_text.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "tools/cli/fields.h"
#include "tools/cli/must.h"
#include "tools/import/directory.h"
#include "tools/import/import.h"
#include "tools/source/copies.h"
#include "tools/source/copies_file.h"
#include "tools/source/copies_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TRIES 20

struct copying {
    const struct import_copy *copy;
    char *path; /* of the log, without links */
    struct copies_session *sessions;
    size_t count;
    struct copies_text text;
    bool *settled;
};

/* Copy what belongs to some of the sessions. text NULL: the log is a file. */
static annal_status take(struct copying *copying, size_t first, size_t count,
                         struct copies_text *text, annal_error *err)
{
    const struct import_copy *copy = copying->copy;
    return copies_take(
        copy->store,
        &(struct copies_log){.path = copying->path,
                             .kind = copy->importer->kind,
                             .sessions = copying->sessions + first,
                             .session_count = count,
                             .text = text,
                             .zstd = copy->spares != NULL ? &copy->spares->zstd : NULL,
                             .sync = (copy->flags & IMPORT_COPY_SYNC) != 0,
                             .waits = (copy->flags & IMPORT_COPY_WAIT) != 0},
        copying->settled, err);
}

/* Return whether the copies of some of the sessions are not read again. */
static bool is_current(const struct copying *copying, size_t first, size_t count,
                       struct timespec mtime)
{
    bool current = (copying->copy->flags & IMPORT_COPY_IF_OLD) != 0;
    for (size_t i = first; i < first + count && current; i++)
        current = copies_are_current(copying->copy->store, copying->path, copying->sessions[i].id,
                                     copies_file_ns(mtime));
    return current;
}

/* ---- The time of a log ---- */

/* Return the directive that names the files of a directory. */
static const char *directive_of(const struct importer *importer)
{
    return importer_word(importer, "keeps", &(size_t){0}).len > 0 ? "keeps" : "directory";
}

static annal_status note_file(void *arg, const char *path, const char *name, const struct stat *st,
                              annal_error *err)
{
    struct stat *log = arg;
    (void)path;
    (void)name;
    (void)err;
    log->st_size++;
    if (copies_file_ns(st->st_mtim) > copies_file_ns(log->st_mtim))
        log->st_mtim = st->st_mtim;
    return ANNAL_OK;
}

annal_status import_copy_stat(const struct importer *importer, const char *path, const char *form,
                              struct stat *out, annal_error *err)
{
    SCOPED_BUF wal = {0};
    struct stat st;
    if (stat(path, out) < 0)
        return annal__fail_errno(err, "look at '%s'", path);
    if (strcmp(form, COPIES_FILES) == 0) {
        out->st_mtim = (struct timespec){0};
        out->st_size = 0;
        return directory_each_file(importer, directive_of(importer), path, note_file, out, err);
    }
    must_printf(&wal, "%s-wal", path);
    if (stat(wal.ptr, &st) == 0 && copies_file_ns(st.st_mtim) > copies_file_ns(out->st_mtim))
        out->st_mtim = st.st_mtim;
    return ANNAL_OK;
}

/* ---- Databases ---- */

static annal_status add_row(void *text, annal_slice line, annal_error *err)
{
    return copies_text_add(text, line, err);
}

static annal_status copy_session(struct copying *copying, annal__row_text *rows, size_t i,
                                 annal_error *err)
{
    annal_slice session = annal_slice_of(copying->sessions[i].id);
    annal_status status = copies_text_begin(&copying->text, err);
    if (status >= 0)
        status = annal__row_text_read(rows, session, add_row, &copying->text, err);
    if (status == ANNAL_END) {
        copying->copy->report->uncopied++;
        return ANNAL_OK;
    }
    if (status >= 0)
        status = copies_text_end(&copying->text, err);
    return status < 0 ? status : take(copying, i, 1, &copying->text, err);
}

static annal_status copy_database(struct copying *copying, annal_error *err)
{
    const struct import_copy *copy = copying->copy;
    const annal_limits *limits = copy->limits != NULL ? copy->limits : &limits_usual;
    annal__row_text *rows = NULL;
    if (is_current(copying, 0, copying->count, copying->text.st.st_mtim))
        return ANNAL_OK;
    annal_status status =
        annal__row_text_open(copy->importer->sql, copying->path, limits, &rows, err);
    if (status == ANNAL_END) {
        copy->report->uncopied = copying->count;
        return ANNAL_OK;
    }
    for (size_t i = 0; i < copying->count && status >= 0; i++)
        if (!copy->report->sessions[i].left_out)
            status = copy_session(copying, rows, i, err);
    annal__row_text_close(rows);
    if (status < 0 && err != NULL)
        annal__error_context(err, "copy the rows of '%s'", copying->path);
    return status;
}

/* ---- Directories ---- */

static annal_status add_file(void *arg, const char *path, const char *name, const struct stat *st,
                             annal_error *err)
{
    struct copying *copying = arg;
    (void)st;
    return copies_files_add(&copying->text, path, name, err);
}

/* ANNAL_END: a file is being written. */
static annal_status read_files(struct copying *copying, const char *directive, annal_error *err)
{
    annal_status status = copies_text_begin(&copying->text, err);
    if (status >= 0)
        status = copies_files_head(&copying->text, err);
    if (status >= 0)
        status = directory_each_file(copying->copy->importer, directive, copying->path, add_file,
                                     copying, err);
    return status == ANNAL_OK ? copies_text_end(&copying->text, err) : status;
}

static annal_status copy_directory(struct copying *copying, annal_error *err)
{
    const struct import_copy *copy = copying->copy;
    const struct timespec pause = {.tv_nsec = COPIES_QUIET_NS + COPIES_QUIET_NS / 4};
    const char *directive = directive_of(copy->importer);
    if (copying->text.st.st_size == 0)
        copy->report->uncopied = copying->count;
    if (copying->text.st.st_size == 0 ||
        is_current(copying, 0, copying->count, copying->text.st.st_mtim))
        return ANNAL_OK;
    annal_status status = read_files(copying, directive, err);
    for (int i = 1; status == ANNAL_END && i < TRIES && (copy->flags & IMPORT_COPY_WAIT) != 0;
         i++) {
        nanosleep(&pause, NULL);
        status = read_files(copying, directive, err);
    }
    *copying->settled = status != ANNAL_END;
    return status == ANNAL_OK ? take(copying, 0, copying->count, &copying->text, err) : status;
}

/* ---- All of them ---- */

static annal_status copy_log(struct copying *copying, annal_error *err)
{
    const struct import_copy *copy = copying->copy;
    struct stat *st = &copying->text.st;
    bool is_database = strcmp(copy->report->container, "sqlite") == 0;
    for (size_t i = 0; i < copying->count; i++) {
        copying->sessions[i] = (struct copies_session){copy->report->sessions[i].id,
                                                       copy->report->sessions[i].journal};
        if (copy->report->sessions[i].left_out && !is_database)
            return ANNAL_OK;
    }
    if (stat(copying->path, st) < 0)
        return annal__fail_errno(err, "copy '%s'", copy->path);
    if (!is_database && !S_ISDIR(st->st_mode))
        return is_current(copying, 0, 1, st->st_mtim) ? ANNAL_OK
                                                      : take(copying, 0, copying->count, NULL, err);
    copying->text.form = is_database ? COPIES_ROWS : COPIES_FILES;
    annal_status status =
        import_copy_stat(copy->importer, copying->path, copying->text.form, st, err);
    if (status < 0)
        return status;
    return is_database ? copy_database(copying, err) : copy_directory(copying, err);
}

annal_status import_copy(const struct import_copy *copy, bool *out_settled, annal_error *err)
{
    struct copying copying = {
        .copy = copy, .count = copy->report->session_count, .settled = out_settled};
    annal_status status = ANNAL_OK;
    *out_settled = true;
    copy->report->uncopied = 0;
    if (copying.count == 0)
        return ANNAL_OK;
    copying.sessions = must_zalloc(copying.count * sizeof *copying.sessions);
    copying.path = realpath(copy->path, NULL);
    if (copying.path == NULL)
        status = annal__fail_errno(err, "copy '%s'", copy->path);
    else
        status = copy_log(&copying, err);
    copies_text_done(&copying.text);
    free(copying.path);
    annal__free(copying.sessions);
    return status;
}
