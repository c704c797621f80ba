#include "tools/line.h"

#include "journal/base/error.h"
#include "journal/base/json.h"

#include <string.h>

enum { KEY_TYPE, KEY_DATA, KEY_ID, KEY_TS, KEY_CAUSE, KEY_COUNT };

static const char *const key_names[KEY_COUNT] = {"type", "data", "id", "ts", "cause"};

/* Walks over text that is known to be valid JSON. */
struct scanner {
    const char *at;
    const char *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct scanner *scanner)
{
    while (scanner->at < scanner->end && is_space(*scanner->at))
        scanner->at++;
}

static void skip_string(struct scanner *scanner)
{
    scanner->at++;
    while (*scanner->at != '"')
        scanner->at += *scanner->at == '\\' ? 2 : 1;
    scanner->at++;
}

/* Over an array or an object; brackets in strings do not count. */
static void skip_nested(struct scanner *scanner)
{
    size_t depth = 0;
    do {
        char c = *scanner->at;
        if (c == '"') {
            skip_string(scanner);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        scanner->at++;
    } while (depth > 0);
}

static annal_slice take_value(struct scanner *scanner)
{
    const char *begin = scanner->at;
    if (*begin == '"') {
        skip_string(scanner);
    } else if (*begin == '{' || *begin == '[') {
        skip_nested(scanner);
    } else {
        while (scanner->at < scanner->end && strchr(",}] \t\r\n", *scanner->at) == NULL)
            scanner->at++;
    }
    return (annal_slice){begin, (size_t)(scanner->at - begin)};
}

/* ---- Strings ---- */

static unsigned hex4(const char *digits)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        unsigned digit = (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        value = value << 4 | digit;
    }
    return value;
}

static annal_status put_utf8(struct buf *out, unsigned c)
{
    char bytes[4];
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(first[len] | c);
    return annal__buf_append(out, bytes, len);
}

/* The escape at at[0] == '\\'; *out_used is its length. A lone surrogate stands for no character.
 */
static annal_status unescape(const char *at, const char *end, struct buf *out, size_t *out_used)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    *out_used = 2;
    if (at[1] != 'u')
        return annal__buf_append(out, meanings + (strchr(letters, at[1]) - letters), 1);
    unsigned c = hex4(at + 2);
    *out_used = 6;
    if (c >= 0xd800 && c < 0xdc00 && end - at >= 12 && at[6] == '\\' && at[7] == 'u') {
        unsigned low = hex4(at + 8);
        if (low >= 0xdc00 && low < 0xe000) {
            *out_used = 12;
            return put_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    if (c >= 0xd800 && c < 0xe000)
        return ANNAL_ERR_INVALID;
    return put_utf8(out, c);
}

/* The text of a raw JSON string; without escapes it is the raw bytes themselves. */
static annal_status text_of(annal_slice raw, struct buf *scratch, annal_slice *out)
{
    const char *at = raw.ptr + 1, *end = raw.ptr + raw.len - 1;
    size_t begin = scratch->len;
    if (memchr(at, '\\', (size_t)(end - at)) == NULL) {
        *out = (annal_slice){at, (size_t)(end - at)};
        return ANNAL_OK;
    }
    while (at < end) {
        size_t used = 1;
        annal_status status =
            *at == '\\' ? unescape(at, end, scratch, &used) : annal__buf_append(scratch, at, 1);
        if (status < 0)
            return status;
        at += used;
    }
    *out = (annal_slice){scratch->ptr + begin, scratch->len - begin};
    return ANNAL_OK;
}

/* ---- Members ---- */

static annal_status check_json(annal_slice line, annal_error *err)
{
    size_t offset = 0;
    /* One level more than data may have: the line's own braces. The writer checks data itself. */
    json_fault fault = annal__json_check(line, ANNAL_DATA_DEPTH_MAX + 1, &offset);
    if (fault == JSON_VALID)
        return ANNAL_OK;
    if (fault == JSON_EMPTY)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the line is empty, and one JSON value was expected");
    return annal__fail(err, ANNAL_ERR_INVALID, "%s (at byte %zu of the line)",
                       annal__json_fault_text(fault), offset + 1);
}

static annal_status find_key(annal_slice raw, struct buf *scratch, int *out_key, annal_error *err)
{
    annal_slice name;
    annal_status status = text_of(raw, scratch, &name);
    for (int key = 0; status == ANNAL_OK && key < KEY_COUNT; key++) {
        if (strlen(key_names[key]) == name.len && memcmp(key_names[key], name.ptr, name.len) == 0) {
            *out_key = key;
            return ANNAL_OK;
        }
    }
    return annal__fail(err, ANNAL_ERR_INVALID,
                       "the key %.*s is not known: type, data, id, ts and cause are",
                       (int)(raw.len < 60 ? raw.len : 60), raw.ptr);
}

/* The raw values of the line's members; those that are missing stay empty. */
static annal_status find_members(annal_slice line, struct buf *scratch,
                                 annal_slice values[KEY_COUNT], annal_error *err)
{
    struct scanner scanner = {line.ptr, line.ptr + line.len};
    skip_space(&scanner);
    if (*scanner.at != '{')
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the line is no JSON object with \"type\" and \"data\" (with --type T a "
                           "line is the data itself)");
    scanner.at++;
    skip_space(&scanner);
    while (*scanner.at != '}') {
        int key = 0;
        annal_status status = find_key(take_value(&scanner), scratch, &key, err);
        if (status < 0)
            return status;
        if (values[key].ptr != NULL)
            return annal__fail(err, ANNAL_ERR_INVALID, "the key \"%s\" stands twice",
                               key_names[key]);
        skip_space(&scanner);
        scanner.at++; /* the colon */
        skip_space(&scanner);
        values[key] = take_value(&scanner);
        skip_space(&scanner);
        if (*scanner.at == ',')
            scanner.at++;
        skip_space(&scanner);
    }
    return ANNAL_OK;
}

/* A member that is text; null counts as missing. */
static annal_status text_member(annal_slice values[KEY_COUNT], int key, struct buf *scratch,
                                annal_slice *out, annal_error *err)
{
    annal_slice raw = values[key];
    if (raw.ptr == NULL || *raw.ptr == 'n')
        return ANNAL_OK;
    if (*raw.ptr != '"')
        return annal__fail(err, ANNAL_ERR_INVALID, "\"%s\" is not a string", key_names[key]);
    annal_status status = text_of(raw, scratch, out);
    if (status == ANNAL_ERR_INVALID)
        return annal__fail(err, ANNAL_ERR_INVALID, "\"%s\" has half a surrogate pair",
                           key_names[key]);
    if (status == ANNAL_OK && out->len == 0)
        return annal__fail(err, ANNAL_ERR_INVALID, "\"%s\" is empty", key_names[key]);
    return status;
}

static annal_status fill_draft(annal_slice values[KEY_COUNT], struct buf *scratch,
                               annal_draft *draft, annal_error *err)
{
    annal_slice ts = {0};
    annal_status status = text_member(values, KEY_TYPE, scratch, &draft->type, err);
    if (status == ANNAL_OK)
        status = text_member(values, KEY_ID, scratch, &draft->id, err);
    if (status == ANNAL_OK)
        status = text_member(values, KEY_CAUSE, scratch, &draft->cause, err);
    if (status == ANNAL_OK)
        status = text_member(values, KEY_TS, scratch, &ts, err);
    if (status < 0)
        return status;
    if (draft->type.ptr == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID, "\"type\" is missing (or use --type T)");
    if (values[KEY_DATA].ptr == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID, "\"data\" is missing");
    draft->data = values[KEY_DATA];
    if (ts.ptr == NULL)
        return ANNAL_OK;
    draft->has_ts = true;
    return annal_time_parse(ts, &draft->ts_us, err);
}

static annal_slice trim(annal_slice text)
{
    while (text.len > 0 && is_space(text.ptr[0]))
        text = (annal_slice){text.ptr + 1, text.len - 1};
    while (text.len > 0 && is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

annal_status line_to_draft(annal_slice line, annal_slice type, struct buf *scratch,
                           annal_draft *out_draft, annal_error *err)
{
    annal_slice values[KEY_COUNT] = {{0}};
    annal_draft draft = {0};
    annal__buf_clear(scratch);
    /* Texts are never longer than their escapes: slices of scratch stay where they are. */
    if (annal__buf_reserve(scratch, line.len) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "out of memory");
    annal_status status = check_json(line, err);
    if (status < 0)
        return status;
    if (type.ptr != NULL) {
        draft.type = type;
        draft.data = trim(line);
    } else {
        status = find_members(line, scratch, values, err);
        if (status == ANNAL_OK)
            status = fill_draft(values, scratch, &draft, err);
        if (status < 0)
            return status;
    }
    *out_draft = draft;
    return ANNAL_OK;
}
