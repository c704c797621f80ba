/* SPDX-License-Identifier: Apache-2.0 */
/* Listing the tokens of a JSON text, and finding the value at a path as SQLite does. */
#pragma once

#include <annal/base.h>

/*
 * A token of JSON: a string, a number, true, false, null, a complete array or object. The name of a
 * member is the token before its value.
 */
struct json_token {
    uint32_t at, len;
    uint32_t next; /* index of the next token after this token and the tokens within it */
};

struct json_tokens {
    annal_slice json; /* the text, which the caller owns */
    struct json_token *tokens;
    size_t count;
    bool spaced;    /* whether white space separates any tokens */
    bool odd_names; /* whether the name of a member contains an escape */
    /* whether all tokens are listed; false: there are too many, or memory ran out */
    bool whole;
};

/* List the tokens of a text that is known to be JSON. */
struct json_tokens annal__json_tokens(annal_slice json);
void annal__json_tokens_done(struct json_tokens *tokens);

static inline annal_slice annal__json_token_raw(const struct json_tokens *tokens, uint32_t token)
{
    const struct json_token *found = &tokens->tokens[token];
    return (annal_slice){tokens->json.ptr + found->at, found->len};
}

/* The result of a search. JSON_ASK: only SQLite can tell what this path means in this text. */
enum json_found { JSON_MISSING, JSON_FOUND, JSON_ASK };

/*
 * Find the value at a path like $.a."b c"[0] in the value *inout_token, which is then set to its
 * token. *out_around: token of the array or object that contains it.
 */
enum json_found annal__json_tokens_find(const struct json_tokens *tokens, annal_slice path,
                                        uint32_t *out_around, uint32_t *inout_token);
