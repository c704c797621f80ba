/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the manifests of a lake, separated by NUL bytes. Each manifest gets a correct
 * last line, since any writer of a lake can compute that.
 *
 * (1) The parser accepts them, or refuses them with a message.
 * (2) Accepted manifests name only files of the lake and valid sessions. Nothing is written.
 */
#include "tests/fuzz/lake_image.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const names[] = {"_log/00000001.json", "_log/00000002.json",
                                        "_log/00000003.json", "_log/00000004.json"};
    struct lake_files files = {0};
    struct ship_target lake;
    annal_error err = {0};
    annal_slice rest = {(const char *)bytes, len};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *end = rest.len > 0 ? memchr(rest.ptr, '\0', rest.len) : NULL;
        size_t count = end != NULL ? (size_t)(end - rest.ptr) : rest.len;
        lake_image_add(&files, names[i], (annal_slice){rest.ptr, count});
        rest = (annal_slice){rest.ptr + count, rest.len - count};
        if (end == NULL)
            break;
        rest = (annal_slice){rest.ptr + 1, rest.len - 1};
    }
    lake_image_begin(&lake, &files);
    lake.has_histories = len % 2 == 0;
    annal_status status = lake_read_log(&lake, &err);
    MUST(status == ANNAL_OK || (status == ANNAL_ERR_CORRUPT && err.message[0] != '\0'));
    lake_image_check(&lake);
    lake_image_done(&files, &lake);
    return 0;
}
