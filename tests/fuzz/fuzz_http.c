/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the address of a request.
 *
 * (1) An accepted address has few parameters and is not changed; a refused address has a message.
 * (2) An unescaped text is not longer, has the stated length, and is unchanged if it has no %.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/serve/http.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1), *copy = malloc(len + 1);
    MUST(text != NULL && copy != NULL);
    memcpy(text, bytes, len);
    text[len] = '\0';
    memcpy(copy, text, len + 1);
    size_t whole = strlen(text);
    if (http_limit_parameters(text)) {
        char *query = strchr(text, '?');
        MUST(whole > 100 && strlen(text) == whole);
        MUST(query == NULL || strchr(query, '&') == NULL);
    } else {
        MUST(memcmp(text, copy, len + 1) == 0);
    }
    size_t got = http_unescape(text);
    MUST(got <= whole && strlen(text) == got);
    MUST(strchr(copy, '%') != NULL || got == whole);
    free(text);
    free(copy);
    return 0;
}
