/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the file of tokens.
 *
 * (1) The file is refused with a message, or each of its tokens is a word of a line of at most 511
 *     bytes: the words of the text have the right in their line, and no other text has a right.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/serve/access.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES_MAX 511

/* Whether no end of a token, nor a longer one, opens the door. */
static void check_neighbours(const struct access *access, const char *token, enum right right)
{
    char longer[2 * LINE_BYTES_MAX];
    int found;
    if (access_right(access, token, &found) != right)
        return; /* the same token in another line */
    snprintf(longer, sizeof longer, "%s\n", token);
    MUST(access_right(access, longer, &found) == RIGHT_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct access access = {0};
    annal_error err = {0};
    if (len == 0)
        return 0;
    FILE *file = fmemopen((void *)(uintptr_t)bytes, len, "r");
    MUST(file != NULL);
    annal_status status = access_read(&access, file, "serve.token", &err);
    fclose(file);
    MUST((status < 0) == (err.message[0] != '\0'));
    size_t lines = 0;
    for (size_t at = 0; status >= 0 && at < len; lines++) {
        const uint8_t *newline = memchr(bytes + at, '\n', len - at);
        size_t line = newline == NULL ? len - at : (size_t)(newline - (bytes + at));
        MUST(line <= LINE_BYTES_MAX);
        char text[LINE_BYTES_MAX + 1] = "";
        memcpy(text, bytes + at, line);
        text[strcspn(text, "#\r")] = '\0';
        size_t begin = strspn(text, " \t");
        const char *word = text + begin;
        if (strcspn(word, " \t") == strlen(word) && *word != '\0')
            check_neighbours(&access, word, RIGHT_WRITE);
        at += line + 1;
    }
    MUST(status < 0 || access.token_count <= lines);
    access_done(&access);
    return 0;
}
