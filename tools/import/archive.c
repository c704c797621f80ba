/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/archive.h"

#include "journal/base/error.h"
#include "tools/cli/must.h"
#include "tools/import/unzst.h"

#include <fnmatch.h>
#include <loaded/archive.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10, PATTERN_BYTES = 256 };

struct unzip {
    struct archive *archive;
    FILE *lines;
    uint64_t packed;   /* size of the archive, in bytes */
    uint64_t unpacked; /* bytes written so far */
    size_t left;       /* number of files that may still be written */
};

static annal_status fail_damaged(const struct unzip *unzip, annal_error *err)
{
    const char *why = archive_error_string(unzip->archive);
    why = why != NULL ? why : "it ends early";
    return annal__fail(err, ANNAL_ERR_CORRUPT, "the zip archive of the log is damaged: %.*s",
                       (int)strcspn(why, "\n"), why);
}

static annal_status write_value(struct unzip *unzip, annal_error *err)
{
    char piece[PIECE_BYTES];
    la_ssize_t got;
    while ((got = archive_read_data(unzip->archive, piece, sizeof piece)) > 0) {
        unzip->unpacked += (uint64_t)got;
        if (unzst_is_bomb(unzip->packed, unzip->unpacked))
            return annal__fail(err, ANNAL_ERR_CORRUPT,
                               "the zip archive of the log decompresses to more than %d times "
                               "the size of the file",
                               UNZST_RATIO_MAX);
        for (la_ssize_t i = 0; i < got; i++)
            if (piece[i] == '\n' || piece[i] == '\r')
                piece[i] = ' ';
        if (fwrite(piece, 1, (size_t)got, unzip->lines) != (size_t)got)
            return annal__fail_errno(err, "write the decompressed log to a temporary file");
    }
    return got < 0 ? fail_damaged(unzip, err) : ANNAL_OK;
}

static annal_status write_file(struct unzip *unzip, const char *name, annal_error *err)
{
    SCOPED_BUF head = {0};
    must_quote(&head, annal_slice_of(name));
    fprintf(unzip->lines, "{\"file\":%.*s,\"value\":", ANNAL_FMT(annal__buf_slice(&head)));
    annal_status status = write_value(unzip, err);
    fputs(status < 0 ? "\n" : "}\n", unzip->lines);
    return status;
}

/* Write the files whose names match the pattern. */
static annal_status write_files(struct unzip *unzip, const char *pattern, annal_error *err)
{
    struct archive_entry *entry = NULL;
    int result = ARCHIVE_EOF;
    annal_status status = ANNAL_OK;
    while (status >= 0 && unzip->left > 0 &&
           (result = archive_read_next_header(unzip->archive, &entry)) >= ARCHIVE_WARN &&
           result != ARCHIVE_EOF) {
        const char *name = archive_entry_pathname_utf8(entry);
        name = name != NULL ? name : archive_entry_pathname(entry);
        if (name == NULL || archive_entry_filetype(entry) != AE_IFREG ||
            fnmatch(pattern, name, FNM_PATHNAME | FNM_PERIOD) != 0)
            continue;
        status = write_file(unzip, name, err);
        unzip->left--;
    }
    return status >= 0 && result < ARCHIVE_WARN ? fail_damaged(unzip, err) : status;
}

static annal_status read_once(struct unzip *unzip, int fd, const char *pattern, annal_error *err)
{
    annal_status status;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return annal__fail_errno(err, "cannot be read");
    unzip->archive = archive_read_new();
    must_true(unzip->archive != NULL);
    if (archive_read_support_format_zip(unzip->archive) != ARCHIVE_OK ||
        archive_read_open_fd(unzip->archive, fd, PIECE_BYTES) != ARCHIVE_OK)
        status = fail_damaged(unzip, err);
    else
        status = write_files(unzip, pattern, err);
    archive_read_free(unzip->archive);
    return status;
}

annal_status archive_write_lines(const struct importer *importer, int fd, size_t files_max,
                                 FILE *lines, annal_error *err)
{
    struct unzip unzip = {.lines = lines, .left = files_max > 0 ? files_max : SIZE_MAX};
    struct stat st;
    size_t at = 0;
    annal_status status = library_load(&library_archive, err);
    if (status >= 0 && fstat(fd, &st) < 0)
        status = annal__fail_errno(err, "cannot be read");
    if (status >= 0)
        unzip.packed = (uint64_t)st.st_size;
    /* kept until all patterns were handled: files of the next patterns may be before the damage */
    annal_status damage = ANNAL_OK;
    for (annal_slice word;
         status >= 0 && (word = importer_word(importer, "archive", &at)).len > 0;) {
        char pattern[PATTERN_BYTES];
        snprintf(pattern, sizeof pattern, "%.*s", ANNAL_FMT(word));
        status = read_once(&unzip, fd, pattern, err);
        damage = status == ANNAL_ERR_CORRUPT ? status : damage;
        status = status == ANNAL_ERR_CORRUPT ? ANNAL_OK : status;
    }
    return status < 0 ? status : damage;
}
