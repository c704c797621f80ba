/* SPDX-License-Identifier: Apache-2.0 */
/* SQL cut into tokens, for SQL that we examine without SQLite. */
#pragma once

#include <annal/base.h>

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,   /* a keyword, a name or a number */
    TOKEN_NAME,   /* "name", `name`, [name] */
    TOKEN_STRING, /* 'text' */
    TOKEN_OTHER   /* one character */
};

struct token {
    enum token_kind kind;
    annal_slice text; /* text of the token, with quotes */
};

/* Return the next token that is not a comment, and move *at after it. After the last token its kind
 * is TOKEN_END. */
struct token annal__token_next(const char **at);

/* Return whether the token is this word, in any case of letters. */
bool annal__token_is(const struct token *token, const char *word);

/* Return a name without its quotes; doubled quotes inside stay doubled. */
annal_slice annal__token_name(const struct token *token);

/*
 * Return whether two texts of SQL have the same tokens; words are compared without regard to case.
 * Each text ends at a NUL, or is a part of a longer text that ends at one.
 */
bool annal__token_same(annal_slice a, annal_slice b);
