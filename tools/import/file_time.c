/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/file_time.h"

#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/cli/must.h"

#include <annal/base.h>

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* maximum bytes of the member "time" */
#define TIME_BYTES_MAX 64

/* Compare text with a pattern, in which 0 is a digit, _ the separator of date and time, and : a
 * colon or a dash. */
static bool looks_like(const char *text, const char *pattern)
{
    for (; *pattern != '\0'; pattern++, text++) {
        bool fits = *pattern == '0'   ? isdigit((unsigned char)*text) != 0
                    : *pattern == '_' ? *text != '\0' && strchr("Tt_", *text) != NULL
                                      : *text == *pattern || (*pattern == ':' && *text == '-');
        if (!fits)
            return false;
    }
    return true;
}

static int64_t date_at(const char *text)
{
    char iso[] = "0000-00-00T00:00:00Z";
    int64_t time_us = 0;
    if (!looks_like(text, "0000-00-00"))
        return 0;
    memcpy(iso, text, 10);
    if (looks_like(text + 10, "_00:00")) {
        memcpy(iso + 11, text + 11, 2);
        memcpy(iso + 14, text + 14, 2);
        if (looks_like(text + 16, ":00"))
            memcpy(iso + 17, text + 17, 2);
    }
    return annal_time_parse(annal_slice_of(iso), &time_us, NULL) < 0 ? 0 : time_us;
}

int64_t file_time_us(const char *path, const char **out_from)
{
    struct stat file;
    const char *slash = strrchr(path, '/');
    *out_from = "of the name of the file";
    for (const char *at = slash != NULL ? slash + 1 : path; *at != '\0'; at++) {
        int64_t time_us = date_at(at);
        if (time_us > 0)
            return time_us;
    }
    *out_from = "of the file";
    if (stat(path, &file) < 0)
        return 0;
    return (int64_t)file.st_mtim.tv_sec * 1000000 + file.st_mtim.tv_nsec / 1000;
}

void file_time_say(struct buf *bytes, const char *from, size_t *inout_at, size_t *inout_len)
{
    annal_slice data = {bytes->ptr + *inout_at, *inout_len};
    if (data.len < 2 || data.ptr[0] != '{' || annal__json_member(data, "time").len > 0)
        return;
    must_reserve(bytes, data.len + TIME_BYTES_MAX);
    size_t at = bytes->len, len = data.len - 1; /* without the closing brace */
    must_append(bytes, bytes->ptr + *inout_at, len);
    must_printf(bytes, "%s\"time\":\"%s\"}", len > 1 ? "," : "", from);
    *inout_at = at;
    *inout_len = bytes->len - at;
}

void file_time_say_source(struct buf *bytes, const char *path, size_t *inout_at, size_t *inout_len)
{
    char host[HOST_NAME_MAX + 1] = "";
    annal_slice data = {bytes->ptr + *inout_at, *inout_len};
    if (data.len < 2 || data.ptr[0] != '{' || annal__json_member(data, "source_host").len > 0)
        return;
    char *absolute = realpath(path, NULL);
    size_t at = bytes->len, len = data.len - 1; /* without the closing brace */
    (void)gethostname(host, sizeof host - 1);
    /* reserve the space first, so that appending does not move the data that is read */
    must_reserve(bytes, len);
    must_append(bytes, bytes->ptr + *inout_at, len);
    must_json(bytes, "#\"source_host\":?,\"source_path\":?}", annal_slice_of(len > 1 ? "," : ""),
              annal_slice_of(host), annal_slice_of(absolute != NULL ? absolute : path));
    free(absolute);
    *inout_at = at;
    *inout_len = bytes->len - at;
}
