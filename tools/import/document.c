/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/document.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/must.h"
#include "tools/cli/temporary.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEEK_BYTES ((size_t)64 << 10)
#define COPY_BYTES ((size_t)1 << 20)

/* maximum depth of a split array in its document */
enum { KEYS_MAX = 6 };

static bool is_value(annal_slice text)
{
    return annal__json_check(text, JSON_DEPTH_MAX, NULL) == JSON_VALID;
}

/* Find the next line that is not blank, without the spaces around it. Return false if no complete
 * line is left. */
static bool next_line(annal_slice *rest, annal_slice *out)
{
    for (;;) {
        const char *end = rest->len > 0 ? memchr(rest->ptr, '\n', rest->len) : NULL;
        if (end == NULL)
            return false;
        size_t len = (size_t)(end - rest->ptr);
        *out = annal__json_trim((annal_slice){rest->ptr, len});
        *rest = (annal_slice){end + 1, rest->len - len - 1};
        if (out->len > 0)
            return true;
    }
}

/* ---- Walking ---- */

/* callbacks of a walk over a document, each may be NULL */
struct walk;
struct visitor {
    void (*open)(void *arg, const struct walk *walk); /* at the '[' of a split array */
    /* a split array was read; end is after its ']' */
    void (*array)(void *arg, const char *begin, const char *end);
    void (*item)(void *arg, annal_slice path, uint64_t index, annal_slice value);
    void *arg;
};

struct walk {
    const struct document *document;
    const struct visitor *visitor;
    const char *at, *end;
    int depth;
    /* opening bracket at each depth of the current value; the outermost is kinds[1] */
    char kinds[KEYS_MAX];
    annal_slice keys[KEYS_MAX]; /* name of the current member at each depth */
    /* depth of the split array that is being read; 0: outside of such an array */
    int split_depth;
    annal_slice path;  /* path of the split array as written in the directive, such as $.messages */
    const char *array; /* place of the array's '[' */
    const char *item;  /* place at which the current item begins, or NULL between items */
    uint64_t index;    /* index of the current item in the array, from 0 */
};

/* Return whether the current value has this path. The value of "$.a.b" is at depth 3, in the
 * members "a" and "b". */
static bool stands_at(const struct walk *walk, annal_slice path)
{
    int depth = 1;
    const char *at = path.ptr + 1, *end = path.ptr + path.len;
    while (at < end) {
        const char *name = at + 1;
        const char *dot = memchr(name, '.', (size_t)(end - name));
        size_t len = (size_t)((dot != NULL ? dot : end) - name);
        if (depth >= KEYS_MAX || walk->kinds[depth] != '{' || walk->keys[depth].len != len ||
            memcmp(walk->keys[depth].ptr, name, len) != 0)
            return false;
        at = name + len;
        depth++;
    }
    return depth == walk->depth;
}

static bool find_split(struct walk *walk)
{
    size_t at = 0;
    for (annal_slice word;
         (word = importer_word(walk->document->importer, "split", &at)).len > 0;) {
        if (walk->depth <= KEYS_MAX && stands_at(walk, word)) {
            walk->path = word;
            return true;
        }
    }
    return false;
}

static void end_item(struct walk *walk)
{
    if (walk->item != NULL && walk->visitor->item != NULL)
        walk->visitor->item(
            walk->visitor->arg, walk->path, walk->index,
            annal__json_trim((annal_slice){walk->item, (size_t)(walk->at - walk->item)}));
    walk->index += walk->item != NULL;
    walk->item = NULL;
}

static void open_nested(struct walk *walk)
{
    walk->depth++;
    if (walk->depth < KEYS_MAX)
        walk->kinds[walk->depth] = *walk->at;
    if (*walk->at == '[' && walk->split_depth == 0 && find_split(walk)) {
        walk->split_depth = walk->depth;
        walk->array = walk->at;
        walk->index = 0;
        if (walk->visitor->open != NULL)
            walk->visitor->open(walk->visitor->arg, walk);
    }
}

static void close_nested(struct walk *walk)
{
    if (walk->split_depth != 0 && walk->depth == walk->split_depth) {
        end_item(walk);
        walk->split_depth = 0;
        if (walk->visitor->array != NULL)
            walk->visitor->array(walk->visitor->arg, walk->array, walk->at + 1);
    }
    walk->depth--;
}

/* Move from the opening quote of a string to its closing quote. */
static void take_string(struct walk *walk)
{
    const char *begin = walk->at + 1, *next = annal__json_string_end(walk->at, walk->end);
    walk->at = next - 1;
    while (next < walk->end && annal__json_is_space(*next))
        next++;
    if (next < walk->end && *next == ':' && walk->depth < KEYS_MAX)
        walk->keys[walk->depth] = (annal_slice){begin, (size_t)(walk->at - begin)};
}

/* Walk over the text before the first error, where all tokens are valid, by counting brackets and
 * quotes. */
static void walk_document(const struct document *document, const struct visitor *visitor)
{
    struct walk walk = {.document = document,
                        .visitor = visitor,
                        .at = document->text.ptr,
                        .end = document->text.ptr + document->sound};
    for (; walk.at < walk.end; walk.at++) {
        char c = *walk.at;
        bool in_array = walk.split_depth != 0 && walk.depth == walk.split_depth;
        if (in_array && walk.item == NULL && !annal__json_is_space(c) && c != ',' && c != ']')
            walk.item = walk.at;
        if (c == '"')
            take_string(&walk);
        else if (c == '{' || c == '[')
            open_nested(&walk);
        else if (c == '}' || c == ']')
            close_nested(&walk);
        else if (c == ',' && in_array)
            end_item(&walk);
    }
}

/* ---- Opening ---- */

/* Return whether the first bytes prove that the file consists of lines (rule 2 of document.h). */
static bool begins_with_lines(int fd)
{
    char head[PEEK_BYTES];
    ssize_t got = pread(fd, head, sizeof head, 0);
    annal_slice rest = {head, got > 0 ? (size_t)got : 0}, line;
    return next_line(&rest, &line) && is_value(line) && annal__json_trim(rest).len > 0;
}

static annal_status map_copy(struct document *document, int fd, annal_error *err)
{
    struct stat st;
    FILE *copy = temporary_stream(NULL);
    char *bytes = must_realloc_array(NULL, COPY_BYTES, 1);
    annal_status status = ANNAL_OK;
    off_t at = 0;
    if (copy == NULL)
        status = annal__fail_errno(err, "create a temporary file for a copy of the log");
    while (status >= 0) {
        ssize_t got = pread(fd, bytes, COPY_BYTES, at);
        if (got == 0)
            break;
        if (got < 0)
            status = annal__fail_errno(err, "cannot read the log");
        else if (fwrite(bytes, 1, (size_t)got, copy) != (size_t)got)
            status = annal__fail_errno(err, "write a temporary copy of the log");
        at += got;
    }
    if (status >= 0 && (fflush(copy) != 0 || fstat(fileno(copy), &st) < 0))
        status = annal__fail_errno(err, "write a temporary copy of the log");
    if (status >= 0 && st.st_size > 0) {
        document->map_bytes = (size_t)st.st_size;
        document->map = mmap(NULL, document->map_bytes, PROT_READ, MAP_PRIVATE, fileno(copy), 0);
        if (document->map == MAP_FAILED) {
            document->map = NULL;
            status = annal__fail_errno(err, "map a temporary copy of the log");
        }
    }
    if (copy != NULL)
        fclose(copy);
    annal__free(bytes);
    return status;
}

static void note_array(void *arg, const char *begin, const char *end)
{
    (void)begin;
    (void)end;
    *(bool *)arg = true;
}

/* Return whether the file is a document, judged by all of its text (rule 2 of document.h). */
static bool is_document(struct document *document)
{
    annal_slice rest = document->text, line;
    document->known = true;
    if (rest.len == 0 || (rest.ptr[0] != '{' && rest.ptr[0] != '['))
        return false;
    if (document->whole) {
        document->known = false;
        walk_document(document, &(struct visitor){.array = note_array, .arg = &document->known});
        return document->known || memchr(rest.ptr, '\n', rest.len) != NULL;
    }
    bool value = next_line(&rest, &line) && is_value(line);
    if (!value && next_line(&rest, &line) && (line.ptr[0] == '{' || line.ptr[0] == '['))
        value = is_value(line);
    return !value && memchr(document->text.ptr, '\n', document->text.len) != NULL;
}

annal_status document_open(struct document *document, const struct importer *importer, int fd,
                           annal_error *err)
{
    struct stat st;
    size_t none = 0;
    document->importer = importer;
    if (importer_word(importer, "split", &none).len == 0 || fstat(fd, &st) < 0 ||
        !S_ISREG(st.st_mode) || begins_with_lines(fd))
        return ANNAL_OK;
    annal_status status = map_copy(document, fd, err);
    if (status < 0)
        return status;
    annal_slice text = {document->map, document->map_bytes};
    if (text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0)
        text = (annal_slice){text.ptr + 3, text.len - 3};
    document->text = annal__json_trim(text);
    document->sound = document->text.len;
    document->whole =
        annal__json_check(document->text, JSON_DEPTH_MAX, &document->sound) == JSON_VALID;
    if (document->whole)
        document->sound = document->text.len;
    document->split = is_document(document);
    return ANNAL_OK;
}

void document_close(struct document *document)
{
    if (document->map != NULL)
        munmap(document->map, document->map_bytes);
    *document = (struct document){0};
}

/* ---- Lines ---- */

void document_put_on_one_line(annal_slice json, FILE *lines)
{
    size_t from = 0;
    for (size_t i = 0; i < json.len; i++) {
        if (json.ptr[i] != '\n' && json.ptr[i] != '\r')
            continue;
        fwrite(json.ptr + from, 1, i - from, lines);
        putc(' ', lines);
        from = i + 1;
    }
    if (json.len > from)
        fwrite(json.ptr + from, 1, json.len - from, lines);
}

struct writing {
    FILE *lines;
    /* path of the only array whose items are written; empty: the items of all arrays */
    annal_slice only;
    const char *done; /* end of the part of the document that was handled already */
    size_t left;      /* maximum number of items to write from here on */
};

static void put_on_one_line(FILE *lines, const char *begin, const char *end)
{
    document_put_on_one_line((annal_slice){begin, (size_t)(end - begin)}, lines);
}

static void put_emptied_array(void *arg, const char *begin, const char *end)
{
    struct writing *writing = arg;
    put_on_one_line(writing->lines, writing->done, begin);
    fputs("[]", writing->lines);
    writing->done = end;
}

static void put_item(void *arg, annal_slice path, uint64_t index, annal_slice value)
{
    struct writing *writing = arg;
    if ((writing->only.len > 0 && !annal__slice_same(writing->only, path)) || writing->left == 0)
        return;
    writing->left--;
    fprintf(writing->lines, "{\"at\":\"%.*s\",\"index\":%llu,\"value\":", ANNAL_FMT(path),
            (unsigned long long)index);
    put_on_one_line(writing->lines, value.ptr, value.ptr + value.len);
    fputs("}\n", writing->lines);
}

/* Write the text since `done`, without the commas and spaces between items, as a line of its own
 * (rule 3 of document.h: damaged files). */
static void put_rest(struct writing *writing, const char *until)
{
    annal_slice rest = {writing->done, (size_t)(until - writing->done)};
    while (rest.len > 0 && (annal__json_is_space(rest.ptr[0]) || rest.ptr[0] == ','))
        rest = (annal_slice){rest.ptr + 1, rest.len - 1};
    if (rest.len > 0) {
        fwrite(rest.ptr, 1, rest.len, writing->lines);
        putc('\n', writing->lines);
    }
}

/* Write the text before the first array as a line, because it may name the session of the items
 * (rule 3 of document.h: damaged files). */
static void put_head_of_damaged(void *arg, const struct walk *walk)
{
    struct writing *writing = arg;
    SCOPED_BUF head = {0};
    if (writing->done != walk->document->text.ptr)
        return;
    must_append(&head, writing->done, (size_t)(walk->at - writing->done));
    must_append_text(&head, "[]");
    for (int depth = walk->depth - 1; depth > 0; depth--)
        must_append_text(&head, walk->kinds[depth] == '{' ? "}" : "]");
    if (annal__slice_is(annal__buf_slice(&head), "[]")) {
        writing->done = walk->at + 1;
    } else if (is_value(annal__buf_slice(&head))) {
        fputs("{\"at\":\"$\",\"value\":", writing->lines);
        put_on_one_line(writing->lines, head.ptr, head.ptr + head.len);
        fputs("}\n", writing->lines);
        writing->done = walk->at + 1;
    }
}

static void put_item_of_damaged(void *arg, annal_slice path, uint64_t index, annal_slice value)
{
    struct writing *writing = arg;
    put_rest(writing, value.ptr);
    put_item(writing, path, index, value);
    writing->done = value.ptr + value.len;
}

static bool is_split(const struct document *document, annal_slice path)
{
    annal_slice word;
    size_t at = 0;
    while ((word = importer_word(document->importer, "split", &at)).len > 0)
        if (annal__slice_same(word, path))
            return true;
    return false;
}

/* Return whether the value consists only of split arrays, and at least one of them has an item. */
static bool has_only_items(const struct document *document)
{
    struct json_walk walk;
    annal_slice name, value, item;
    bool has_item = false;
    if (annal__json_walk_array(&walk, document->text))
        return is_split(document, ANNAL_SLICE("$")) && annal__json_walk_item(&walk, &item);
    if (!annal__json_walk_object(&walk, document->text))
        return false;
    while (annal__json_walk_next(&walk, &name, &value)) {
        char path[80];
        struct json_walk items;
        int len = snprintf(path, sizeof path, "$.%.*s", ANNAL_FMT(annal__json_inside(name)));
        if (len >= (int)sizeof path || !is_split(document, annal_slice_of(path)) ||
            !annal__json_walk_array(&items, value))
            return false;
        has_item = has_item || annal__json_walk_item(&items, &item);
    }
    return has_item;
}

static void put_value(const struct document *document, struct writing *writing)
{
    fputs("{\"at\":\"$\",\"value\":", writing->lines);
    walk_document(document, &(struct visitor){.array = put_emptied_array, .arg = writing});
    put_on_one_line(writing->lines, writing->done, document->text.ptr + document->text.len);
    fputs("}\n", writing->lines);
}

annal_status document_write_lines(const struct document *document, size_t items_max, FILE *lines,
                                  annal_error *err)
{
    const char *end = document->text.ptr + document->text.len;
    struct writing writing = {
        .lines = lines, .done = document->text.ptr, .left = items_max > 0 ? items_max : SIZE_MAX};
    size_t at = 0;
    if (document->whole) {
        if (!has_only_items(document))
            put_value(document, &writing);
        while ((writing.only = importer_word(document->importer, "split", &at)).len > 0)
            walk_document(document, &(struct visitor){.item = put_item, .arg = &writing});
    } else {
        walk_document(document, &(struct visitor){.open = put_head_of_damaged,
                                                  .item = put_item_of_damaged,
                                                  .arg = &writing});
        put_rest(&writing, end);
    }
    return !ferror(lines) ? ANNAL_OK : annal__fail_errno(err, "write a temporary copy of the log");
}
