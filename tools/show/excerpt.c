/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/excerpt.h"

#include "journal/base/json_walk.h"
#include "tools/cli/must.h"
#include "tools/cli/width.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- The characters of a raw value ---- */

struct letters excerpt_letters_of(annal_slice raw)
{
    if (raw.len >= 2 && raw.ptr[0] == '"')
        return (struct letters){raw.ptr + 1, raw.ptr + raw.len - 1, true};
    return (struct letters){raw.ptr, raw.ptr + raw.len, false};
}

/* Return the next character, which is not escaped. */
static struct letter take_bytes(struct letters *letters)
{
    struct letter letter = {.len = 1};
    while (letters->at + letter.len < letters->end && letter.len < 4 &&
           ((unsigned char)letters->at[letter.len] & 0xc0) == 0x80)
        letter.len++;
    memcpy(letter.bytes, letters->at, letter.len);
    letters->at += letter.len;
    return letter;
}

struct letter excerpt_letter_next(struct letters *letters)
{
    if (letters->at >= letters->end)
        return (struct letter){.len = 0};
    struct letter letter;
    if (letters->escaped && *letters->at == '\\') {
        unsigned code = annal__json_unescape(&letters->at, letters->end);
        letter.len = annal__json_utf8_put(annal__is_half(code) ? 0xfffd : code, letter.bytes);
    } else {
        letter = take_bytes(letters);
    }
    if (letter.bytes[0] == '\t' || letter.bytes[0] == '\r')
        letter.bytes[0] = ' ';
    return letter;
}

size_t excerpt_letters_plain(const struct letters *letters, size_t most)
{
    size_t left = (size_t)(letters->end - letters->at), len = 0;
    const char *at = letters->at;
    most = left < most ? left : most;
    while (len < most && at[len] >= 0x20 && at[len] < 0x7f &&
           (at[len] != '\\' || !letters->escaped))
        len++;
    return len;
}

bool excerpt_is_text(annal_slice raw)
{
    return raw.len > 2 && raw.ptr[0] == '"';
}

/* ---- A block ---- */

/* Return the number of the remaining lines that are not empty. */
static uint64_t count_lines(struct letters *letters)
{
    uint64_t lines = 0;
    bool in_line = false;
    struct letter letter;
    while ((letter = excerpt_letter_next(letters)).len > 0) {
        if (letter.bytes[0] != '\n' && !in_line)
            lines++;
        in_line = letter.bytes[0] != '\n';
        if (in_line)
            letters->at += excerpt_letters_plain(letters, SIZE_MAX);
    }
    return lines;
}

/* Print the rest of a line, or its first `room` characters. Returns false if the line is longer. */
static bool print_line(struct letters *letters, size_t room)
{
    while (letters->at < letters->end) {
        size_t run = excerpt_letters_plain(letters, room);
        fwrite(letters->at, 1, run, stdout);
        letters->at += run;
        room -= run;
        struct letters here = *letters;
        struct letter letter = excerpt_letter_next(letters);
        if (letter.len == 0 || letter.bytes[0] == '\n') {
            *letters = here;
            return true;
        }
        if (room == 0) {
            *letters = here;
            return false;
        }
        fwrite(letter.bytes, 1, letter.len, stdout);
        room--;
    }
    return true;
}

static void skip_line(struct letters *letters)
{
    struct letters here = *letters;
    for (struct letter letter; (letter = excerpt_letter_next(letters)).len > 0; here = *letters) {
        if (letter.bytes[0] == '\n')
            break;
        letters->at += excerpt_letters_plain(letters, SIZE_MAX);
    }
    *letters = here;
}

static void print_up_to(struct letters *letters, const char *end)
{
    while (letters->at < end) {
        struct letter letter = excerpt_letter_next(letters);
        fwrite(letter.bytes, 1, letter.len, stdout);
    }
}

/* Print as many words as fit into a line; break a word that is longer than the line. Returns true
 * if the line ends at a line break of the text. */
static bool wrap_line(struct letters *letters, int columns)
{
    struct letters at = *letters, end = *letters, rest = *letters;
    bool in_text = false, can_break = false;
    for (int used = 0;;) {
        struct letters here = at;
        struct letter letter = excerpt_letter_next(&at);
        wchar_t c;
        if (letter.len == 0 || letter.bytes[0] == '\n') {
            print_up_to(letters, here.at);
            *letters = here;
            return true;
        }
        letter.bytes[letter.len] = '\0';
        (void)width_decode(letter.bytes, &c);
        used += width_of(c);
        if (letter.bytes[0] == ' ' && in_text) {
            end = here;
            rest = at;
            can_break = true;
        } else if (used > columns) {
            print_up_to(letters, can_break ? end.at : here.at);
            *letters = can_break ? rest : here;
            return false;
        }
        in_text = in_text || letter.bytes[0] != ' ';
    }
}

static uint64_t print_wrapped(const struct excerpt *excerpt, annal_slice raw)
{
    struct letters letters = excerpt_letters_of(raw);
    for (int lines = 1;; lines++) {
        if (wrap_line(&letters, excerpt->columns - (lines == 1 ? excerpt->used : 0)))
            (void)excerpt_letter_next(&letters);
        fputc('\n', stdout);
        if (letters.at >= letters.end)
            return 0;
        if (excerpt->lines_max > 0 && lines == excerpt->lines_max)
            return count_lines(&letters);
        struct letters here = letters;
        if (excerpt_letter_next(&here).bytes[0] != '\n')
            printf("%*s", excerpt->indent, "");
    }
}

uint64_t excerpt_print(const struct excerpt *excerpt, annal_slice raw)
{
    if (excerpt->columns > 0)
        return print_wrapped(excerpt, raw);
    struct letters letters = excerpt_letters_of(raw);
    uint64_t cut = 0;
    for (int lines = 1;; lines++) {
        if (!print_line(&letters,
                        excerpt->line_chars == 0 ? SIZE_MAX : (size_t)excerpt->line_chars)) {
            fputs("…", stdout);
            skip_line(&letters);
            cut = 1;
        }
        fputc('\n', stdout);
        (void)excerpt_letter_next(&letters);
        /* a line break at the end of a text does not begin another line */
        if (letters.at == letters.end)
            return cut;
        if (excerpt->lines_max > 0 && lines == excerpt->lines_max)
            return cut + count_lines(&letters);
        struct letters here = letters;
        if (excerpt_letter_next(&here).bytes[0] != '\n') /* an empty line needs no indentation */
            printf("%*s", excerpt->indent, "");
    }
}

/* ---- A line ---- */

/* Append a character. The last character of the room becomes "…", because the text is longer. */
static void put(struct buf *out, size_t *room, const char *bytes, size_t len)
{
    if (*room == 0)
        return;
    if (--*room == 0) {
        bytes = "…";
        len = strlen("…");
    }
    must_append(out, bytes, len);
}

static void put_raw(struct buf *out, size_t *room, annal_slice raw)
{
    struct letters letters = excerpt_letters_of(raw);
    while (*room > 0 && letters.at < letters.end) {
        size_t run = excerpt_letters_plain(&letters, *room - 1);
        must_append(out, letters.at, run);
        letters.at += run;
        *room -= run;
        struct letter letter = excerpt_letter_next(&letters);
        if (letter.len > 0)
            put(out, room, letter.bytes[0] == '\n' ? " " : letter.bytes, letter.len);
    }
}

static void put_text(struct buf *out, size_t *room, const char *text)
{
    for (; *text != '\0'; text++)
        put(out, room, text, 1);
}

void excerpt_line(struct buf *out, annal_slice raw, size_t chars)
{
    struct json_walk walk;
    annal_slice name, value;
    /* one character more than chars, to find out whether the text is longer; then "…" replaces the
     * last */
    size_t room = chars + 1;
    if (raw.len > 0 && raw.ptr[0] == '{' && annal__json_walk_object(&walk, raw)) {
        for (int i = 0; room > 0 && annal__json_walk_next(&walk, &name, &value); i++) {
            put_text(out, &room, i == 0 ? "" : ", ");
            put_raw(out, &room, name);
            put_text(out, &room, ": ");
            put_raw(out, &room, value);
        }
        return;
    }
    put_raw(out, &room, raw);
}

uint64_t excerpt_lines(annal_slice raw)
{
    struct letters letters = excerpt_letters_of(raw);
    return count_lines(&letters);
}

void excerpt_print_line(annal_slice raw, size_t chars)
{
    SCOPED_BUF line = {0};
    excerpt_line(&line, raw, chars);
    fwrite(line.ptr == NULL ? "" : line.ptr, 1, line.len, stdout);
}
