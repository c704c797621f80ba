/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as STORE/cluster: an address of a database on one line, or refused. */
#include "tests/fuzz/fuzz.h"
#include "tools/ship/shared.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char url[SHARED_URL_BYTES];
    if (!shared_read_url((annal_slice){(const char *)bytes, len}, url)) {
        MUST(url[0] == '\0');
        return 0;
    }
    MUST(strlen(url) == len || strlen(url) + 1 == len);
    MUST(memcmp(url, bytes, strlen(url)) == 0);
    MUST(strncmp(url, "postgres", 8) == 0 && strpbrk(url, "\r\n\t ") == NULL);
    return 0;
}
