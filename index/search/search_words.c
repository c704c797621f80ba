/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokenizer of search.db.
 *
 * A character in these rules is a base character with the marks that follow it.
 *
 * (1) Characters are compared in Unicode's normal form NFKC, with case folded (UAX #15, utf8proc).
 *     So a text is found in whatever form it was written. Accents are dropped, and the strokes of
 *     letters such as ł, đ and ø, which Unicode does not regard as accents. œ and æ are oe and
 *     ae.
 * (2) Letters and digits in a row are a word, as in FTS5's unicode61. A change of script between
 *     (3) and the others ends a word.
 * (3) Some scripts put no spaces between words: Chinese, Japanese, Korean, Thai and others. There,
 *     every two letters in a row are a token, so that any part of two letters is found as a phrase
 *     of these pairs. n letters have n - 1 places. The last letter is also a token of its own, at
 *     the place of the last pair: what follows it in a phrase, such as a Latin word, stands at the
 *     next place, whether the phrase begins at that letter or before it.
 * (4) A question does not have that last token, unless it has no other. Then annal_search_each()
 *     makes it a prefix, which finds the letter at the begin of a pair as well.
 * (5) Texts about code have line breaks as a backslash and a letter: "\nword" is the word "nword",
 *     and at the same place "word".
 * (6) A name such as parseHttpRequest or HTTPServer is one word, and at the same place each of its
 *     parts in ASCII is a word, too: parse, http, request.
 * (7) The control sequences of a terminal, such as ESC [31m for red, separate words, whether the
 *     escape is the character or written as \u001b, \x1b or \033.
 */
#include "index/search/search_words.h"

#include "index/db/db.h"
#include "journal/base/error.h"

#include <string.h>
#include <utf8proc.h>

/* maximum number of marks of one character; a further mark begins the next character */
#define MARKS_MAX      30
#define DECOMPOSED_MAX (20 * (MARKS_MAX + 1))
/* maximum number of bytes of a word; the rest of a longer word is not indexed */
#define WORD_BYTES_MAX 1024
/* maximum number of parts of a name (rule 6); the last one contains the rest */
#define PARTS_MAX 16

/* Scripts that are written without spaces between words, or whose words people also search for by
 * their syllables. */
static const struct {
    int32_t first, last;
} unspaced[] = {
    {0x0e00, 0x109f},   /* Thai, Lao, Tibetan, Myanmar */
    {0x1100, 0x11ff},   /* Hangul */
    {0x1780, 0x17ff},   /* Khmer */
    {0x1950, 0x19ff},   /* Tai */
    {0x1a20, 0x1aaf},   /* Tai Tham */
    {0x1b00, 0x1b7f},   /* Balinese */
    {0x2e80, 0x2fdf},   /* parts of Han characters */
    {0x3005, 0x3007},   /* Han */
    {0x3021, 0x3029},   /* Han */
    {0x3031, 0x318f},   /* kana, Bopomofo, Hangul */
    {0x31a0, 0x31ff},   /* Bopomofo, Han strokes, kana */
    {0x3400, 0x4dbf},   /* Han */
    {0x4e00, 0xa4cf},   /* Han, Yi */
    {0xa960, 0xa9ff},   /* Hangul, Javanese, Myanmar */
    {0xaa60, 0xaadf},   /* Myanmar, Tai Viet */
    {0xac00, 0xd7ff},   /* Hangul */
    {0xf900, 0xfaff},   /* Han */
    {0x16fe0, 0x1b2ff}, /* Tangut, Khitan, kana, Nüshu */
    {0x20000, 0x3fffd}, /* Han */
};

/* Marks that people may omit when they search: accents, points of Hebrew, vowels of Arabic. */
static const struct {
    int32_t first, last;
} accents[] = {
    {0x0300, 0x036f}, {0x0483, 0x0487}, {0x0591, 0x05bd}, {0x05bf, 0x05c7},
    {0x0610, 0x061a}, {0x064b, 0x065f}, {0x0670, 0x0670}, {0x06d6, 0x06ed},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe20, 0xfe2f},
};

static bool is_unspaced(int32_t code)
{
    if (code < unspaced[0].first)
        return false;
    for (size_t i = 0; i < sizeof unspaced / sizeof *unspaced; i++)
        if (code >= unspaced[i].first && code <= unspaced[i].last)
            return true;
    return false;
}

static bool is_accent(int32_t code)
{
    for (size_t i = 0; i < sizeof accents / sizeof *accents; i++)
        if (code >= accents[i].first && code <= accents[i].last)
            return true;
    return false;
}

static bool is_mark(int32_t code)
{
    utf8proc_category_t category = utf8proc_category(code);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

static bool is_letter(int32_t code)
{
    utf8proc_category_t category = utf8proc_category(code);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
           category == UTF8PROC_CATEGORY_CO;
}

/* ---- Tokens ---- */

/* A letter after normalizing, and its place in the text. */
struct letter {
    char bytes[4];
    /* length of bytes; 0: there is no letter. Offsets in the text of its begin and end */
    int len, begin, end;
};

struct tokenizer {
    search_word_fn fn;
    void *arg;
    bool is_question;
    bool has_parts; /* whether the parts of names are words: in texts, not in questions */
    int rc;
    const char *text;
    /* last letter in a script without spaces, until a letter of another script or another character
     * follows */
    struct letter last;
    bool is_paired; /* whether `last` is the second letter of a pair that was added as a token */
    char word[WORD_BYTES_MAX];
    int word_len, word_begin, word_end;
    int parts[PARTS_MAX], part_count; /* offsets in the word of its second and later parts */
};

static void put_token(struct tokenizer *tokenizer, int flags, const char *token, int len, int begin,
                      int end)
{
    if (tokenizer->rc == SQLITE_OK)
        tokenizer->rc = tokenizer->fn(tokenizer->arg, flags, token, len, begin, end);
}

/* Return whether the word begins with the letter of an escape: a line break or tab, written as a
 * backslash and n, r or t (rule 5). */
static bool is_after_backslash(const struct tokenizer *tokenizer)
{
    const char *begin = tokenizer->text + tokenizer->word_begin;
    return tokenizer->word_begin > 0 && begin[-1] == '\\' &&
           (*begin == 'n' || *begin == 'r' || *begin == 't');
}

/* Add the parts of the name that ends (rule 6). A word whose letters change case all the time, such
 * as random letters, has no parts. */
static void put_parts(struct tokenizer *tokenizer)
{
    int begin = 0;
    if (tokenizer->word_len < 3 * (tokenizer->part_count + 1))
        return;
    for (int i = 0; i <= tokenizer->part_count; i++) {
        int end = i < tokenizer->part_count ? tokenizer->parts[i] : tokenizer->word_len;
        if (end - begin > 1)
            put_token(tokenizer, FTS5_TOKEN_COLOCATED, tokenizer->word + begin, end - begin,
                      tokenizer->word_begin, tokenizer->word_end);
        begin = end;
    }
}

static void end_word(struct tokenizer *tokenizer)
{
    if (tokenizer->word_len > 0)
        put_token(tokenizer, 0, tokenizer->word, tokenizer->word_len, tokenizer->word_begin,
                  tokenizer->word_end);
    if (tokenizer->word_len > 1 && !tokenizer->is_question && is_after_backslash(tokenizer))
        put_token(tokenizer, FTS5_TOKEN_COLOCATED, tokenizer->word + 1, tokenizer->word_len - 1,
                  tokenizer->word_begin + 1, tokenizer->word_end);
    if (tokenizer->word_len > 0 && tokenizer->part_count > 0)
        put_parts(tokenizer);
    tokenizer->word_len = tokenizer->part_count = 0;
}

/* End the current letters in a script without spaces, with the token of the last letter (rules 3
 * and 4). */
static void end_run(struct tokenizer *tokenizer)
{
    struct letter *last = &tokenizer->last;
    if (last->len > 0 && !(tokenizer->is_paired && tokenizer->is_question))
        put_token(tokenizer, tokenizer->is_paired ? FTS5_TOKEN_COLOCATED : 0, last->bytes,
                  last->len, last->begin, last->end);
    last->len = 0;
    tokenizer->is_paired = false;
}

static void end_all(struct tokenizer *tokenizer)
{
    end_word(tokenizer);
    end_run(tokenizer);
}

static void put_pair(struct tokenizer *tokenizer, const struct letter *letter)
{
    const struct letter *last = &tokenizer->last;
    char pair[8];
    end_word(tokenizer);
    if (last->len > 0) {
        memcpy(pair, last->bytes, (size_t)last->len);
        memcpy(pair + last->len, letter->bytes, (size_t)letter->len);
        put_token(tokenizer, 0, pair, last->len + letter->len, last->begin, letter->end);
        tokenizer->is_paired = true;
    }
    tokenizer->last = *letter;
}

static void put_letter(struct tokenizer *tokenizer, const struct letter *letter)
{
    if (tokenizer->last.len > 0)
        end_run(tokenizer);
    if (tokenizer->word_len == 0)
        tokenizer->word_begin = letter->begin;
    tokenizer->word_end = letter->end;
    if (tokenizer->word_len + letter->len <= WORD_BYTES_MAX) {
        memcpy(tokenizer->word + tokenizer->word_len, letter->bytes, (size_t)letter->len);
        tokenizer->word_len += letter->len;
    }
}

static void put_code(struct tokenizer *tokenizer, int32_t code, int begin, int end)
{
    struct letter letter = {.begin = begin, .end = end};
    if (!is_letter(code) && !is_mark(code)) {
        end_all(tokenizer);
        return;
    }
    letter.len = (int)utf8proc_encode_char(code, (utf8proc_uint8_t *)letter.bytes);
    if (is_unspaced(code))
        put_pair(tokenizer, &letter);
    else
        put_letter(tokenizer, &letter);
}

/* ---- Characters ---- */

/*
 * Read the code point at text. Returns its length in bytes. A byte that is not UTF-8 counts as a
 * space.
 */
static int read_code(const char *text, int len, int32_t *out_code)
{
    utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text, len, out_code);
    if (bytes > 0)
        return (int)bytes;
    *out_code = ' ';
    return 1;
}

/*
 * Return whether a code point continues a character: a mark, or, although Unicode does not count
 * them as marks, a medial vowel or final consonant of Hangul, or a halfwidth sound mark of kana.
 */
static bool continues(int32_t code)
{
    return is_mark(code) || (code >= 0x1160 && code <= 0x11ff) || code == 0xff9e || code == 0xff9f;
}

/* Return the letter without its stroke, or the dot that ı lacks. */
static int32_t without_stroke(int32_t code)
{
    static const struct {
        int32_t code, letter;
    } letters[] = {
        {0xf0, 'd'},  {0xf8, 'o'},  {0x111, 'd'}, {0x127, 'h'}, {0x131, 'i'}, {0x142, 'l'},
        {0x167, 't'}, {0x180, 'b'}, {0x19a, 'l'}, {0x1b6, 'z'}, {0x1e5, 'g'}, {0x23c, 'c'},
        {0x247, 'e'}, {0x249, 'j'}, {0x24d, 'r'}, {0x24f, 'y'}, {0x268, 'i'}, {0x289, 'u'},
    };
    for (size_t i = 0; code >= 0xf0 && code <= 0x289 && i < sizeof letters / sizeof *letters; i++)
        if (letters[i].code == code)
            return letters[i].letter;
    return code;
}

/* Normalize the character text[begin..end) (rule 1), and pass its code points to put_code(). */
static void put_character(struct tokenizer *tokenizer, const char *text, int begin, int end)
{
    int32_t codes[DECOMPOSED_MAX + 1];
    utf8proc_ssize_t kept = 0;
    utf8proc_ssize_t count = utf8proc_decompose(
        (const utf8proc_uint8_t *)text + begin, end - begin, codes, DECOMPOSED_MAX,
        UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
    if (count < 0 || count > DECOMPOSED_MAX) {
        put_code(tokenizer, ' ', begin, end);
        return;
    }
    for (utf8proc_ssize_t i = 0; i < count; i++)
        if (!is_accent(codes[i]))
            codes[kept++] = codes[i];
    kept = utf8proc_normalize_utf32(codes, kept, UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < kept; i++) {
        bool is_ligature = codes[i] == 0xe6 || codes[i] == 0x153;
        if (is_ligature)
            put_code(tokenizer, codes[i] == 0xe6 ? 'a' : 'o', begin, end);
        put_code(tokenizer, is_ligature ? 'e' : without_stroke(codes[i]), begin, end);
    }
}

/* Return the end of the character whose base ends at `at`, after its marks. */
static int end_of_character(const char *text, int len, int at)
{
    for (int marks = 0; at < len && (signed char)text[at] < 0 && marks < MARKS_MAX; marks++) {
        int32_t code;
        int bytes = read_code(text + at, len - at, &code);
        if (!continues(code))
            break;
        at += bytes;
    }
    return at;
}

/* Return a letter or digit of ASCII in lower case, or 0 for any other character. */
static char ascii_letter(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        return c;
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : 0;
}

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Begin a part of a name at the letter text[at], if it is one (rule 6): the R of httpRequest, the
 * S of HTTPServer. */
static void begin_part(struct tokenizer *tokenizer, const char *text, int len, int at)
{
    bool begins = at > 0 && is_upper(text[at]) &&
                  (is_lower(text[at - 1]) || (is_upper(text[at - 1]) && at + 1 < len &&
                                              text[at + 1] >= 'a' && text[at + 1] <= 'z'));
    if (begins && tokenizer->word_len > 0 && tokenizer->part_count < PARTS_MAX &&
        tokenizer->word_len < WORD_BYTES_MAX)
        tokenizer->parts[tokenizer->part_count++] = tokenizer->word_len;
}

/* Return the length of the control sequence of a terminal at `at`; 0 if there is none (rule 7). */
static int control_sequence(const char *text, int len, int at)
{
    static const char *const escapes[] = {"\033[",  "\\u001b[", "\\u001B[",
                                          "\\x1b[", "\\x1B[",   "\\033["};
    int end = 0;
    for (size_t i = 0; end == 0 && i < sizeof escapes / sizeof *escapes; i++) {
        int bytes = (int)strlen(escapes[i]);
        if (len - at > bytes && memcmp(text + at, escapes[i], (size_t)bytes) == 0)
            end = at + bytes;
    }
    while (end > 0 && end < len && text[end] >= 0x20 && text[end] < 0x40)
        end++;
    return end > 0 && end < len && text[end] >= 0x40 && text[end] < 0x7f ? end + 1 - at : 0;
}

/* Return the offset of the first character from `at` on that is not ASCII, or has marks, so that it
 * must be normalized. */
static int end_of_ascii(const char *text, int len, int at)
{
    int end = at;
    for (uint64_t eight; end + 8 <= len; end += 8) {
        memcpy(&eight, text + end, sizeof eight);
        if ((eight & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    while (end < len && (signed char)text[end] >= 0)
        end++;
    return end > at && end < len && end_of_character(text, len, end) > end ? end - 1 : end;
}

/* Add letters and digits of ASCII from `at` on, up to `end`. Returns the offset of the first
 * other character. */
static int put_ascii_letters(struct tokenizer *tokenizer, const char *text, int len, int at,
                             int end)
{
    if (tokenizer->last.len > 0)
        end_run(tokenizer);
    if (tokenizer->word_len == 0)
        tokenizer->word_begin = at;
    for (char c; at < end && (c = ascii_letter(text[at])) != 0; at++) {
        if (c != text[at] && tokenizer->has_parts)
            begin_part(tokenizer, text, len, at);
        if (tokenizer->word_len < WORD_BYTES_MAX)
            tokenizer->word[tokenizer->word_len++] = c;
    }
    tokenizer->word_end = at;
    return at;
}

/* Add the ASCII characters from `at` on. Returns the offset of the first character that is not
 * ASCII, or has marks. */
static int put_ascii(struct tokenizer *tokenizer, const char *text, int len, int at)
{
    int end = end_of_ascii(text, len, at);
    while (at < end) {
        if (ascii_letter(text[at]) != 0) {
            at = put_ascii_letters(tokenizer, text, len, at, end);
            continue;
        }
        if (tokenizer->word_len > 0 || tokenizer->last.len > 0)
            end_all(tokenizer);
        int bytes = text[at] == '\033' || text[at] == '\\' ? control_sequence(text, len, at) : 0;
        at += bytes > 0 ? bytes : 1;
    }
    return at;
}

static int tokenize(struct tokenizer *tokenizer, const char *text, int len)
{
    tokenizer->text = text;
    for (int at = 0; at < len && tokenizer->rc == SQLITE_OK;) {
        at = put_ascii(tokenizer, text, len, at);
        if (at == len)
            break;
        int32_t code;
        int end = end_of_character(text, len, at + read_code(text + at, len - at, &code));
        put_character(tokenizer, text, at, end);
        at = end;
    }
    end_all(tokenizer);
    return tokenizer->rc;
}

static int count_token(void *arg, int flags, const char *token, int len, int begin, int end)
{
    struct search_words *words = arg;
    int32_t code;
    (void)flags, (void)begin, (void)end;
    words->count++;
    words->is_short = read_code(token, len, &code) == len && is_unspaced(code);
    return SQLITE_OK;
}

struct search_words annal__search_words_count(annal_slice text)
{
    struct search_words words = {0};
    struct tokenizer tokenizer = {.fn = count_token, .arg = &words, .is_question = true};
    words.rc = tokenize(&tokenizer, text.ptr, text.len > INT32_MAX ? INT32_MAX : (int)text.len);
    return words;
}

int annal__search_words_split(annal_slice text, search_word_fn fn, void *arg)
{
    struct tokenizer tokenizer = {.fn = fn, .arg = arg, .is_question = true, .has_parts = true};
    return tokenize(&tokenizer, text.ptr, text.len > INT32_MAX ? INT32_MAX : (int)text.len);
}

/* ---- For FTS5 ---- */

static int create_tokenizer(void *context, const char **args, int count, Fts5Tokenizer **out)
{
    (void)context, (void)args, (void)count;
    /* FTS5 needs a pointer that is not NULL; nothing reads what it points to */
    *out = (Fts5Tokenizer *)&unspaced;
    return SQLITE_OK;
}

static void delete_tokenizer(Fts5Tokenizer *fts)
{
    (void)fts;
}

static int run_tokenizer(Fts5Tokenizer *fts, void *arg, int flags, const char *text, int len,
                         search_word_fn fn)
{
    struct tokenizer tokenizer = {
        .fn = fn, .arg = arg, .is_question = (flags & FTS5_TOKENIZE_QUERY) != 0};
    tokenizer.has_parts = !tokenizer.is_question;
    (void)fts;
    return tokenize(&tokenizer, text, len);
}

annal_status annal__search_fts5(sqlite3 *db, fts5_api **out_api, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    *out_api = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_pointer(stmt, 1, out_api, "fts5_api_ptr", NULL);
        rc = sqlite3_step(stmt);
    }
    if ((rc & 0xff) == SQLITE_NOMEM)
        (void)!annal__db_fail(err, db, rc, "prepare a search");
    sqlite3_finalize(stmt);
    if ((rc & 0xff) == SQLITE_NOMEM)
        return ANNAL_ERR_NOMEM;
    return *out_api != NULL
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_UNSUPPORTED, "search: this SQLite has no FTS5");
}

annal_status annal__search_words_add(sqlite3 *db, annal_error *err)
{
    fts5_tokenizer words = {create_tokenizer, delete_tokenizer, run_tokenizer};
    fts5_api *api;
    annal_status status = annal__search_fts5(db, &api, err);
    if (status < 0)
        return status;
    int rc = api->xCreateTokenizer(api, "annal_words", NULL, &words, NULL);
    return rc == SQLITE_OK ? ANNAL_OK
                           : annal__db_fail(err, db, rc, "cannot add the SQL functions of search");
}
