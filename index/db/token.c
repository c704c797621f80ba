/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/token.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static const char *skip_comments(const char *at)
{
    for (;;) {
        if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '-' && at[1] == '-') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end == NULL ? at + strlen(at) : end + 2;
        } else {
            return at;
        }
    }
}

/* Return the place after the closing quote; a doubled quote is a part of the text. */
static const char *skip_quoted(const char *at, char close)
{
    for (at++; *at != '\0'; at++)
        if (*at == close && at[1] != close)
            return at + 1;
        else if (*at == close)
            at++;
    return at;
}

struct token annal__token_next(const char **at)
{
    const char *begin = skip_comments(*at), *end = begin + 1;
    struct token token = {.kind = TOKEN_OTHER};
    if (*begin == '\0') {
        token.kind = TOKEN_END;
        end = begin;
    } else if (is_word_char(*begin)) {
        token.kind = TOKEN_WORD;
        while (is_word_char(*end))
            end++;
    } else if (*begin == '\'') {
        token.kind = TOKEN_STRING;
        end = skip_quoted(begin, '\'');
    } else if (*begin == '"' || *begin == '`') {
        token.kind = TOKEN_NAME;
        end = skip_quoted(begin, *begin);
    } else if (*begin == '[') {
        const char *close = strchr(begin, ']');
        token.kind = TOKEN_NAME;
        end = close == NULL ? begin + strlen(begin) : close + 1;
    }
    token.text = (annal_slice){begin, (size_t)(end - begin)};
    *at = end;
    return token;
}

bool annal__token_is(const struct token *token, const char *word)
{
    return token->kind == TOKEN_WORD && token->text.len == strlen(word) &&
           strncasecmp(token->text.ptr, word, token->text.len) == 0;
}

annal_slice annal__token_name(const struct token *token)
{
    annal_slice name = token->text;
    if ((token->kind == TOKEN_NAME || token->kind == TOKEN_STRING) && name.len >= 2) {
        name.ptr++;
        name.len -= 2;
    }
    return name;
}

/* Return the next token before the end of a slice; at its end, TOKEN_END. */
static struct token next_in(annal_slice slice, const char **at)
{
    struct token token = annal__token_next(at);
    if (token.kind != TOKEN_END && token.text.ptr >= slice.ptr + slice.len)
        token.kind = TOKEN_END;
    return token;
}

bool annal__token_same(annal_slice a, annal_slice b)
{
    const char *in_a = a.ptr, *in_b = b.ptr;
    for (;;) {
        struct token one = next_in(a, &in_a), other = next_in(b, &in_b);
        if (one.kind == TOKEN_END || other.kind == TOKEN_END)
            return one.kind == other.kind;
        if (one.kind != other.kind || one.text.len != other.text.len ||
            (one.kind == TOKEN_WORD ? strncasecmp(one.text.ptr, other.text.ptr, one.text.len) != 0
                                    : memcmp(one.text.ptr, other.text.ptr, one.text.len) != 0))
            return false;
    }
}
