/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a JSON text, and the value at a path of SQLite's. */
#ifndef INDEX_IMPORT_JSON_TOKENS_H
#define INDEX_IMPORT_JSON_TOKENS_H

#include <annal/base.h>

/*
 * A string, a number, a word, an array or an object. Names of members are strings before a value.
 */
struct json_token {
    uint32_t at, len;
    uint32_t next; /* index of the token after it and its content */
};

struct json_tokens {
    annal_slice json; /* owned by the caller */
    struct json_token *tokens;
    size_t count;
    bool spaced;    /* whether white space separates tokens */
    bool odd_names; /* whether a name has an escape */
    /* whether all tokens are listed; false: there are too many, or memory is short */
    bool whole;
};

/* List the tokens of JSON that was checked. */
struct json_tokens annal__json_tokens(annal_slice json);
void annal__json_tokens_done(struct json_tokens *tokens);

static inline annal_slice annal__json_token_raw(const struct json_tokens *tokens, uint32_t token)
{
    const struct json_token *found = &tokens->tokens[token];
    return (annal_slice){tokens->json.ptr + found->at, found->len};
}

/* JSON_ASK: only SQLite knows what this path means here. */
enum json_found { JSON_MISSING, JSON_FOUND, JSON_ASK };

/*
 * Find the token of the value at a path like $.a."b c"[0], which begins at *inout_token.
 * *out_around: the token of the array or object around it.
 */
enum json_found annal__json_tokens_find(const struct json_tokens *tokens, annal_slice path,
                                        uint32_t *out_around, uint32_t *inout_token);

#endif
