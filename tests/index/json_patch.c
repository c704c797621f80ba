/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/json_patch.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value: '{' and '[' have children, any other value is its text. */
struct node {
    char kind;
    char *text; /* of a leaf; strings with their quotes */
    char *name; /* name of an object's member, with its quotes */
    struct node **children;
    size_t count;
};

/* ---- Reading ---- */

static void node_free(struct node *node)
{
    for (size_t i = 0; i < node->count; i++)
        node_free(node->children[i]);
    free(node->children);
    free(node->text);
    free(node->name);
    free(node);
}

static void insert(struct node *node, size_t at, struct node *child)
{
    ck_assert_uint_le(at, node->count);
    node->children = realloc(node->children, (node->count + 1) * sizeof(struct node *));
    ck_assert_ptr_nonnull(node->children);
    memmove(&node->children[at + 1], &node->children[at],
            (node->count - at) * sizeof(struct node *));
    node->children[at] = child;
    node->count++;
}

static char *take_string(const char **at)
{
    const char *begin = *at;
    ck_assert_int_eq(*begin, '"');
    for (++*at; **at != '"'; ++*at) {
        ck_assert_int_ne(**at, '\0');
        *at += **at == '\\';
    }
    ++*at;
    return strndup(begin, (size_t)(*at - begin));
}

static struct node *take_value(const char **at)
{
    struct node *node = calloc(1, sizeof *node);
    ck_assert_ptr_nonnull(node);
    node->kind = **at;
    if (node->kind == '"') {
        node->text = take_string(at);
    } else if (node->kind != '{' && node->kind != '[') {
        size_t len = strcspn(*at, ",]}");
        ck_assert_uint_gt(len, 0);
        node->text = strndup(*at, len);
        *at += len;
    } else {
        char end = node->kind == '{' ? '}' : ']';
        ++*at;
        while (**at != end) {
            char *name = node->kind == '{' ? take_string(at) : NULL;
            if (name != NULL)
                ck_assert_int_eq(*(*at)++, ':');
            struct node *child = take_value(at);
            child->name = name;
            insert(node, node->count, child);
            ck_assert(**at == ',' || **at == end);
            *at += **at == ',';
        }
        ++*at;
    }
    return node;
}

static struct node *parse(const char *text)
{
    struct node *node = take_value(&text);
    ck_assert_str_eq(text, "");
    return node;
}

static void print(const struct node *node, FILE *out)
{
    if (node->text != NULL)
        fputs(node->text, out);
    else
        fputc(node->kind, out);
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            fputc(',', out);
        if (node->children[i]->name != NULL)
            fprintf(out, "%s:", node->children[i]->name);
        print(node->children[i], out);
    }
    if (node->text == NULL)
        fputc(node->kind == '{' ? '}' : ']', out);
}

/* ---- Applying ---- */

/* Index of the child that a token of a pointer names; after the last child, count. */
static size_t find(const struct node *node, const char *token)
{
    if (node->kind == '[') {
        char *end = NULL;
        size_t at = strtoull(token, &end, 10);
        ck_assert(token[0] != '\0' && *end == '\0');
        ck_assert(at == 0 || token[0] != '0');
        return at;
    }
    ck_assert_int_eq(node->kind, '{');
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->children[i]->name;
        if (strlen(name) == strlen(token) + 2 && strncmp(name + 1, token, strlen(token)) == 0)
            return i;
    }
    return node->count;
}

static void unescape(char *token)
{
    char *out = token;
    for (; *token != '\0'; token++) {
        bool escaped = *token == '~';
        token += escaped;
        *out++ = escaped ? (*token == '0' ? '~' : '/') : *token;
    }
    *out = '\0';
}

static void drop(struct node *node, size_t at)
{
    ck_assert_uint_lt(at, node->count);
    node_free(node->children[at]);
    node->count--;
    memmove(&node->children[at], &node->children[at + 1],
            (node->count - at) * sizeof(struct node *));
}

static const struct node *member(const struct node *node, const char *name)
{
    size_t at = find(node, name);
    ck_assert_uint_lt(at, node->count);
    return node->children[at];
}

static struct node *copy(const struct node *node)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    print(node, out);
    fclose(out);
    struct node *made = parse(text);
    free(text);
    return made;
}

static void apply(struct node *document, const struct node *operation)
{
    const char *op = member(operation, "op")->text, *path = member(operation, "path")->text;
    char *tokens = strndup(path + 1, strlen(path) - 2), *rest = tokens, *token;
    ck_assert_int_eq(*rest++, '/');
    struct node *parent = document;
    while ((token = strsep(&rest, "/")) != NULL) {
        unescape(token);
        size_t at = find(parent, token);
        if (rest != NULL) {
            ck_assert_uint_lt(at, parent->count);
            parent = parent->children[at];
        } else if (strcmp(op, "\"remove\"") == 0) {
            drop(parent, at);
        } else if (strcmp(op, "\"replace\"") == 0) {
            struct node *value = copy(member(operation, "value"));
            ck_assert_uint_lt(at, parent->count);
            value->name =
                parent->children[at]->name == NULL ? NULL : strdup(parent->children[at]->name);
            drop(parent, at);
            insert(parent, at, value);
        } else {
            ck_assert_str_eq(op, "\"add\"");
            ck_assert_int_eq(parent->kind, '[');
            insert(parent, at, copy(member(operation, "value")));
        }
    }
    free(tokens);
}

char *json_patched(const char *document, const char *patch)
{
    struct node *tree = parse(document), *operations = parse(patch);
    char *text = NULL;
    size_t len;
    ck_assert_int_eq(operations->kind, '[');
    for (size_t i = 0; i < operations->count; i++)
        apply(tree, operations->children[i]);
    FILE *out = open_memstream(&text, &len);
    print(tree, out);
    fclose(out);
    node_free(tree);
    node_free(operations);
    return text;
}
