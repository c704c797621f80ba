/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/detect.h"

#include "index/sys/import.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/import/directory.h"
#include "tools/import/runs.h"

#include <annal/import.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* maximum number of lines of a log that are read to detect its kind */
#define LINES_MAX    64
#define LINES_FEW    8
#define BYTES_MAX    ((size_t)4 << 20)
#define SURE_OF_RUNS 100
/* If even the surest importer is less sure than this (of 100), its lines are JSON, but no importer
 * knows the kind of the log. */
#define SURE_ENOUGH 20

/* The first lines of a log. */
struct head {
    struct buf begin;
    annal_import_line lines[LINES_MAX];
    size_t count;
    size_t most; /* the maximum for count; 0: nothing is read yet */
    bool is_log; /* whether these are lines of the log itself, the same for each importer */
};

static annal_status read_begin(int fd, struct buf *out, annal_error *err)
{
    annal__buf_clear(out);
    while (out->len < BYTES_MAX) {
        must_reserve(out, 65536);
        ssize_t got = pread(fd, out->ptr + out->len, 65536, (off_t)out->len);
        if (got < 0)
            return annal__fail_errno(err, "cannot read the log");
        if (got == 0)
            break;
        out->len += (size_t)got;
    }
    return ANNAL_OK;
}

/* List the first lines of text, at most max. The last line is left out if it may be cut and other
 * lines precede it. */
static size_t find_lines(annal_slice text, annal_import_line lines[LINES_MAX], size_t max)
{
    size_t count = 0;
    if (text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0)
        text = (annal_slice){text.ptr + 3, text.len - 3};
    while (text.len > 0 && count < max) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.ptr) : text.len;
        if (end == NULL && text.len >= BYTES_MAX / 2 && count > 0)
            break;
        annal_slice bytes = {text.ptr, len};
        if (bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\r')
            bytes.len--;
        lines[count] = (annal_import_line){.number = count + 1, .bytes = bytes};
        count++;
        len += end != NULL ? 1 : 0;
        text = (annal_slice){text.ptr + len, text.len - len};
    }
    return count;
}

/* Run the section "-- detect" of an importer on the first lines of a log. If it is surer than
 * out->sure, store the importer in *out. head is empty at first, and has lines of the same log
 * later. */
static annal_status ask_of(annal_import **spare, const struct importer *importer, const char *path,
                           size_t lines_max, struct head *head, struct detected *out,
                           annal_error *err)
{
    const char *slash = strrchr(path, '/');
    const struct container_options few = {.rows = lines_max};
    struct lines opened;
    int sure = 0;
    annal_status status = source_container_open(importer, path, &few, &opened, err);
    if (status < 0)
        return status;
    bool is_log = opened.is_log && opened.container == CONTAINER_LINES;
    bool same = is_log && head->is_log && head->most == lines_max;
    if (!same) {
        status = read_begin(opened.fd, &head->begin, err);
        head->count = find_lines(annal__buf_slice(&head->begin), head->lines, lines_max);
        head->most = lines_max;
        head->is_log = is_log;
    }
    close(opened.fd);
    annal_import_source source = {.kind = importer->kind,
                                  .file = slash != NULL ? slash + 1 : path,
                                  .container = source_container_name(opened.container)};
    if (status >= 0)
        status = annal__import_detect(spare, importer->sql, &source, head->lines, head->count, same,
                                      &sure, err);
    if (status >= 0 && (sure > out->sure || out->sure == 0))
        *out = (struct detected){.importer = sure > 0 ? *importer : out->importer,
                                 .container = opened.container,
                                 .whole = opened.whole,
                                 .sure = sure};
    return status;
}

static annal_status ask(annal_import **spare, const struct importer *importer, const char *path,
                        struct head *head, struct detected *out, annal_error *err)
{
    return ask_of(spare, importer, path, LINES_MAX, head, out, err);
}

annal_status detect_how_sure(annal_import **spare, const struct importer *importer,
                             const char *path, int *out_sure, annal_error *err)
{
    struct head head = {0};
    struct detected detected = {0};
    annal_status status = ask(spare, importer, path, &head, &detected, err);
    *out_sure = detected.sure;
    annal__buf_done(&head.begin);
    return status;
}

static bool reads_directory(const struct importer *importer, const char *path)
{
    return runs_is_importer(importer) ? run_is_here(path) : directory_is_log(importer, path);
}

annal_status detect_log(annal_import **spare, const char *path, struct detected *out,
                        annal_error *err)
{
    struct head head = {0};
    struct stat st;
    annal_status status =
        stat(path, &st) < 0 ? annal__fail_errno(err, "query the log '%s'", path) : ANNAL_OK;
    *out = (struct detected){0};
    for (size_t i = 0; status >= 0 && importer_texts[i].kind != NULL; i++) {
        struct importer importer;
        if (!importer_find(importer_texts[i].kind, &importer))
            continue;
        if (S_ISDIR(st.st_mode) && !reads_directory(&importer, path))
            continue;
        bool is_text = S_ISREG(st.st_mode) && importer_wants_text(&importer, path);
        if (is_text)
            *out = (struct detected){
                .importer = importer, .container = CONTAINER_TEXT, .sure = SURE_OF_RUNS};
        else if (S_ISDIR(st.st_mode) && runs_is_importer(&importer))
            *out = (struct detected){
                .importer = importer, .container = CONTAINER_DIRECTORY, .sure = SURE_OF_RUNS};
        else
            status = ask(spare, &importer, path, &head, out, err);
    }
    if (out->sure > 0 && out->sure < SURE_ENOUGH)
        *out = (struct detected){.plain = true};
    annal__buf_done(&head.begin);
    return status;
}

/* ---- The session that a log names first ---- */

#define HEAD_BYTES ((size_t)1 << 20)

/* Append the session id of a line: the value of the first member listed in "-- session:" that is a
 * string or a number. */
static void add_session(const struct importer *importer, annal_slice line, struct buf *out)
{
    char path[64];
    bool half;
    size_t at = 0;
    for (annal_slice word; (word = importer_word(importer, "session", &at)).len > 0;) {
        snprintf(path, sizeof path, "%.*s", ANNAL_FMT(word));
        annal_slice id = annal__json_member(line, path);
        if (id.len > 2 && id.ptr[0] == '"') {
            must_status(annal__json_decode(id, out, &half));
            return;
        }
        if (id.len > 0 && id.ptr[0] >= '0' && id.ptr[0] <= '9') {
            must_append_slice(out, id);
            return;
        }
    }
}

void detect_session(const struct importer *importer, int fd, struct buf *out)
{
    size_t at = 0, seen = 0, searched = 0;
    SCOPED_BUF head = {0};
    bool at_end = importer_word(importer, "session", &at).len == 0;
    /* read until the first line is complete, up to the maximum size of a line */
    while (!at_end && out->len == 0 &&
           head.len < (seen == 0 ? ANNAL_IMPORT_LINE_BYTES_MAX : HEAD_BYTES)) {
        must_reserve(&head, 65536);
        ssize_t got = pread(fd, head.ptr + head.len, 65536, (off_t)head.len);
        at_end = got <= 0;
        head.len += got > 0 ? (size_t)got : 0;
        for (const char *end;
             out->len == 0 && head.len > searched &&
             (end = memchr(head.ptr + searched, '\n', head.len - searched)) != NULL;) {
            const annal_slice line = {head.ptr + seen, (size_t)(end - head.ptr) - seen};
            searched = seen += line.len + 1;
            if (line.len > 0 && line.ptr[0] == '{')
                add_session(importer, line, out);
        }
        searched = head.len;
    }
}

void detect_say_left_out(const char *path, bool plain)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        say("the file '%s' is empty: left out", path);
    else
        say("the log '%s' is of an unknown kind: left out%s", path,
            plain ? "; the file contains JSON lines, which 'annal import jsonl --map ...' reads"
                  : "");
}

void detect_say_other(const char *path, const char *kind)
{
    say("the file '%s' has the name of a log of %s, but not the content of such a log: left out",
        path, kind);
}

static bool any_importer(bool (*takes)(const struct importer *, const char *), const char *path)
{
    struct importer importer;
    for (size_t i = 0; importer_texts[i].kind != NULL; i++)
        if (importer_find(importer_texts[i].kind, &importer) && takes(&importer, path))
            return true;
    return false;
}

bool detect_directory(const char *path)
{
    return any_importer(reads_directory, path);
}

bool detect_wants_file(const char *path)
{
    return any_importer(importer_wants_file, path);
}

bool detect_wants_text(const char *path)
{
    return any_importer(importer_wants_text, path);
}

/* ---- Files beside logs ---- */

static bool is_database(int fd)
{
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic];
    return pread(fd, head, sizeof head, 0) == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

bool detect_database(const struct importer *importer, const char *path)
{
    struct detected detected = {0};
    annal_import *spare = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool found = fd >= 0 && is_database(fd);
    if (fd >= 0)
        close(fd);
    if (found && importer->kind != NULL)
        found = detect_how_sure(&spare, importer, path, &detected.sure, NULL) >= 0 &&
                detected.sure >= SURE_ENOUGH;
    else if (found)
        found = detect_log(&spare, path, &detected, NULL) >= 0 && detected.importer.kind != NULL;
    annal_import_close(spare);
    return found;
}

bool detect_keeps_beside(const char *path)
{
    struct importer importer;
    for (size_t i = 0; importer_texts[i].kind != NULL; i++)
        if (importer_find(importer_texts[i].kind, &importer) &&
            importer_keeps_beside(&importer, path))
            return true;
    return false;
}

/* Return whether the beginning of the file proves its kind: it names a session as this kind does,
 * or is a database. Also true for an empty or unreadable file. */
static bool is_known_by_its_head(const struct importer *importer, const char *path)
{
    char first;
    SCOPED_BUF session = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool known = fd < 0 || pread(fd, &first, 1, 0) <= 0 || is_database(fd);
    if (!known)
        detect_session(importer, fd, &session);
    known = known || session.len > 0;
    if (fd >= 0)
        close(fd);
    return known;
}

annal_status detect_is_other(annal_import **spare, const struct importer *importer,
                             const char *path, bool *out_other, annal_error *err)
{
    struct detected own = {0}, plain = {0};
    struct importer jsonl;
    struct stat st;
    struct head head = {0};
    *out_other = false;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || runs_is_importer(importer) ||
        importer_wants_text(importer, path) || !importer_detects(importer) ||
        !importer_find("jsonl", &jsonl) || is_known_by_its_head(importer, path))
        return ANNAL_OK;
    /* a few lines are enough for most logs */
    annal_status status = ask_of(spare, importer, path, LINES_FEW, &head, &own, err);
    if (status >= 0 && own.sure == 0)
        status = ask(spare, importer, path, &head, &own, err);
    if (status >= 0 && own.sure == 0 && own.container == CONTAINER_LINES)
        status = ask(spare, &jsonl, path, &head, &plain, err);
    *out_other = status >= 0 && own.sure == 0 &&
                 (plain.sure > 0 || (own.container == CONTAINER_DOCUMENT && own.whole));
    annal__buf_done(&head.begin);
    return status;
}
