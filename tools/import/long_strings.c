/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/long_strings.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "tools/cli/must.h"
#include "tools/cli/temporary.h"

#include <annal/artifact.h>

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define COPY_BYTES 65536

/* a reference has a fixed length, so that its space can be reserved before its string was read */
#define REFERENCE "{\"sha256\":\"%s\",\"bytes\":%-20" PRIu64 ",\"media_type\":%-18s}"
#define REFERENCE_BYTES                                                                            \
    (sizeof "{\"sha256\":\"\",\"bytes\":,\"media_type\":}" - 1 + SHA256_TEXT_BYTES - 1 + 20 + 18)

static annal_status fail_file(annal_error *err)
{
    return annal__fail_errno(err, "write a long string of the log to a temporary file");
}

/* ---- One string ---- */

/* Return the end of the string: after its quote, or before a line break. */
static size_t find_end(struct long_strings *strings, annal_slice bytes, bool *out_ended)
{
    size_t at = 0;
    *out_ended = false;
    for (; at < bytes.len && !*out_ended; at++) {
        char c = bytes.ptr[at];
        if (c == '\n')
            break;
        *out_ended = c == '"' && !strings->escaped;
        strings->escaped = c == '\\' && !strings->escaped;
        strings->escapes |= c == '\\';
    }
    return at;
}

static annal_status begin_string(struct long_strings *strings, size_t place, annal_error *err)
{
    if (strings->file == NULL && (strings->file = temporary_stream(NULL)) == NULL)
        return annal__fail_errno(err, "create a temporary file for a long string of the log");
    struct long_string *string = must_array_add(&strings->all, &strings->count, sizeof *string);
    *string = (struct long_string){.at = (uint64_t)ftello(strings->file)};
    strings->open = true;
    strings->place = place;
    return ANNAL_OK;
}

static annal_status add_bytes(struct long_strings *strings, annal_slice bytes, annal_error *err)
{
    if (fwrite(bytes.ptr, 1, bytes.len, strings->file) != bytes.len)
        return fail_file(err);
    strings->all[strings->count - 1].bytes += bytes.len;
    return ANNAL_OK;
}

/* source of the content of an artifact */
struct reading {
    int fd;
    uint64_t at, end;
};

static int64_t read_some(void *arg, char *bytes, size_t room, annal_error *err)
{
    struct reading *reading = arg;
    uint64_t left = reading->end - reading->at;
    ssize_t got = pread(reading->fd, bytes, left < room ? (size_t)left : room, (off_t)reading->at);
    if (got < 0 || (got == 0 && left > 0))
        return annal__fail_errno(err, "read a long string of the log from a temporary file");
    reading->at += (uint64_t)got;
    return got;
}

static annal_status hash_string(struct long_string *string, int fd, annal_error *err)
{
    struct reading reading = {fd, string->at, string->at + string->bytes};
    struct sha256 *hash = annal__sha256_begin();
    uint8_t digest[SHA256_BYTES];
    char bytes[COPY_BYTES];
    int64_t got = 1;
    must_true(hash != NULL);
    while (got > 0) {
        got = read_some(&reading, bytes, sizeof bytes, err);
        annal__sha256_add(hash, bytes, got > 0 ? (size_t)got : 0);
    }
    annal__sha256_end(hash, digest);
    annal__sha256_text(digest, string->sha256);
    return got < 0 ? (annal_status)got : ANNAL_OK;
}

/* End the open string, and write its reference into text (rules 1 and 2 of long_strings.h). */
static annal_status end_string(struct long_strings *strings, struct buf *text, bool ended,
                               annal_error *err)
{
    struct long_string *string = &strings->all[strings->count - 1];
    char reference[REFERENCE_BYTES + 1];
    bool plain = ended && !strings->escapes;
    if (plain) { /* a string without backslashes is stored as its text, without the quotes */
        string->at++;
        string->bytes -= 2;
    }
    if (fflush(strings->file) != 0)
        return fail_file(err);
    annal_status status = hash_string(string, fileno(strings->file), err);
    if (status < 0)
        return status;
    snprintf(reference, sizeof reference, REFERENCE, string->sha256, string->bytes,
             plain ? "\"text/plain\"" : "\"application/json\"");
    memcpy(text->ptr + strings->place, reference, REFERENCE_BYTES);
    strings->open = strings->escaped = strings->escapes = false;
    return ANNAL_OK;
}

/* ---- A text ---- */

/* Return whether a JSON value may begin after the first len bytes of text. */
static bool may_be_value(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL && text[len - 1] != '\0')
        len--;
    return len > 0 && strchr(":[,", text[len - 1]) != NULL && text[len - 1] != '\0';
}

annal_status long_strings_move(struct long_strings *strings, struct buf *text, annal_error *err)
{
    size_t to = strings->scanned, from = to;
    annal_status status = ANNAL_OK;
    strings->escaped = strings->escapes = false;
    while (from < text->len && status >= 0 && !strings->open) {
        const char *quote = memchr(text->ptr + from, '"', text->len - from);
        size_t len = quote != NULL ? (size_t)(quote - text->ptr) - from : text->len - from;
        bool ended = true;
        memmove(text->ptr + to, text->ptr + from, len);
        to += len;
        from += len;
        strings->scanned = to;
        if (quote == NULL)
            break;
        strings->escaped = strings->escapes = false;
        annal_slice rest = {text->ptr + from + 1, text->len - from - 1};
        len = 1 + find_end(strings, rest, &ended);
        if (len > LONG_STRING_BYTES && may_be_value(text->ptr, to)) {
            status = begin_string(strings, to, err);
            if (status >= 0)
                status = add_bytes(strings, (annal_slice){text->ptr + from, len}, err);
            memset(text->ptr + to, ' ', REFERENCE_BYTES);
            to += REFERENCE_BYTES;
            if (status >= 0 && (ended || from + len < text->len))
                status = end_string(strings, text, ended, err);
        } else {
            memmove(text->ptr + to, text->ptr + from, len);
            to += len;
        }
        strings->scanned = ended || strings->open ? to : strings->scanned;
        from += len;
    }
    text->len = to;
    return status;
}

annal_status long_strings_more(struct long_strings *strings, struct buf *text, size_t from,
                               annal_error *err)
{
    bool ended = false;
    annal_slice more = {text->ptr + from, text->len - from};
    size_t len = find_end(strings, more, &ended);
    annal_status status = add_bytes(strings, (annal_slice){more.ptr, len}, err);
    if (status >= 0 && (ended || len < more.len))
        status = end_string(strings, text, ended, err);
    memmove(text->ptr + from, more.ptr + len, more.len - len);
    text->len -= len;
    return status;
}

annal_status long_strings_store(struct long_strings *strings, annal_store *store,
                                annal_slice session, annal_slice data, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < strings->count && status >= 0; i++) {
        struct long_string *string = &strings->all[i];
        struct reading reading = {.at = string->at, .end = string->at + string->bytes};
        annal_artifact_info info;
        reading.fd = fileno(strings->file);
        if (string->sha256[0] != '\0' &&
            memmem(data.ptr, data.len, string->sha256, SHA256_TEXT_BYTES - 1) != NULL)
            status = annal_artifact_put_stream(store, session, read_some, &reading, &info, err);
    }
    return status;
}

void long_strings_done(struct long_strings *strings)
{
    if (strings->file != NULL)
        fclose(strings->file);
    annal__free(strings->all);
    *strings = (struct long_strings){0};
}
