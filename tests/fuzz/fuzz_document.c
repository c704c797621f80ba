/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a document, split into lines as an importer's directive says.
 *
 * (1) Of a valid document every line is one JSON value.
 * (2) No byte is lost: each that is neither a space nor a comma nor a bracket stands in the lines
 *     at least as often as in the document, also when that is damaged.
 */
#include "journal/base/json.h"
#include "tests/fuzz/fuzz.h"
#include "tools/import/document.h"

#include <annal/event.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void count_bytes(annal_slice text, size_t counts[256])
{
    for (size_t i = 0; i < text.len; i++)
        counts[(unsigned char)text.ptr[i]]++;
}

static void check_nothing_lost(annal_slice before, annal_slice after)
{
    size_t had[256] = {0}, has[256] = {0};
    count_bytes(before, had);
    count_bytes(after, has);
    for (int c = 0; c < 256; c++)
        MUST(strchr(" \t\r\n,[]{}", c) != NULL || has[c] >= had[c]);
    MUST(has[0] >= had[0]);
}

static void check_lines(annal_slice lines)
{
    while (lines.len > 0) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        MUST(end != NULL);
        size_t len = (size_t)(end - lines.ptr);
        MUST(annal__json_check((annal_slice){lines.ptr, len}, JSON_DEPTH_MAX + 8, NULL) ==
             JSON_VALID);
        lines = (annal_slice){end + 1, lines.len - len - 1};
    }
}

static void split(const struct document *document)
{
    char *bytes = NULL;
    size_t len = 0;
    FILE *lines = open_memstream(&bytes, &len);
    MUST(lines != NULL);
    MUST(document_write_lines(document, 0, lines, NULL) == ANNAL_OK);
    MUST(fclose(lines) == 0);
    if (document->whole)
        check_lines((annal_slice){bytes, len});
    check_nothing_lost(document->text, (annal_slice){bytes, len});
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const kinds[] = {"gemini-cli", "autogen", "otel", "swe-agent", "lionagi"};
    struct importer importer;
    struct document document = {0};
    annal_slice input = {(const char *)bytes, len};
    const char *kind = kinds[take_byte(&input) % (sizeof kinds / sizeof *kinds)];
    int fd = memfd_create("document", MFD_CLOEXEC);
    MUST(fd >= 0);
    MUST(write(fd, input.ptr, input.len) == (ssize_t)input.len);
    MUST(importer_find(kind, &importer));
    MUST(document_open(&document, &importer, fd, NULL) == ANNAL_OK);
    if (document.split)
        split(&document);
    document_close(&document);
    close(fd);
    return 0;
}
