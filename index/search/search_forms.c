/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.db contains only the words of the texts. The other forms of a word are composed when it is
 * searched for, so the index needs no room and no time for them:
 *
 * (1) Stems. The endings of English are appended to the stem; FTS5's own tokenizer `porter` says
 *     which of these words have the stem of the word that was typed.
 * (2) Typing errors. All words at one error from the word are composed and sorted, some hundred; a
 *     walk through the words of the index, which are sorted, too, skips from one to the next that
 *     is not smaller. So it reads few words, however many the index contains.
 */
#include "index/search/search_forms.h"

#include "index/db/db.h"
#include "index/search/search_words.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <stdlib.h>
#include <string.h>

/* maximum number of words of the index that are read for one typing error */
#define STEPS_MAX  600
#define LETTERS    "abcdefghijklmnopqrstuvwxyz0123456789"
#define LETTER_MIN 4 /* a shorter word is not taken for a typing error of another */

struct search_forms {
    sqlite3_stmt *next; /* first word of the texts that is not smaller than ?1 */
    fts5_tokenizer porter;
    Fts5Tokenizer *stemmer;
    annal_error *err; /* of the search */
};

annal_status annal__search_forms_new(sqlite3 *db, struct search_forms **out_forms, annal_error *err)
{
    const char *inner[] = {"ascii"};
    struct search_forms *forms = annal__zalloc(sizeof *forms);
    fts5_api *api = NULL;
    void *context = NULL;
    if (forms == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare a search: out of memory");
    annal_status status = annal__search_fts5(db, &api, err);
    if (status >= 0)
        status = annal__db_exec(
            db, "CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'said', 'instance')", err);
    if (status >= 0)
        status = annal__db_prepare(db, "SELECT term FROM temp.words WHERE term >= ?1 LIMIT 1",
                                   &forms->next, err);
    if (status >= 0 && (api->xFindTokenizer(api, "porter", &context, &forms->porter) != SQLITE_OK ||
                        forms->porter.xCreate(context, inner, 1, &forms->stemmer) != SQLITE_OK)) {
        forms->stemmer = NULL;
        status = annal__fail(err, ANNAL_ERR_NOMEM, "prepare a search: out of memory");
    }
    forms->err = err;
    if (status < 0) {
        annal__search_forms_free(forms);
        return status;
    }
    *out_forms = forms;
    return ANNAL_OK;
}

void annal__search_forms_free(struct search_forms *forms)
{
    if (forms == NULL)
        return;
    sqlite3_finalize(forms->next);
    if (forms->stemmer != NULL)
        forms->porter.xDelete(forms->stemmer);
    annal__free(forms);
}

/* ---- Stems ---- */

struct form {
    char bytes[SEARCH_FORM_MAX + 8];
    size_t len;
};

static bool put(struct form *form, annal_slice text)
{
    bool fits = form->len + text.len < sizeof form->bytes;
    if (fits && text.len > 0)
        memcpy(form->bytes + form->len, text.ptr, text.len);
    form->len += fits ? text.len : 0;
    return fits;
}

static int take_stem(void *arg, int flags, const char *token, int len, int begin, int end)
{
    struct form *stem = arg;
    (void)flags, (void)begin, (void)end;
    stem->len = 0;
    (void)put(stem, (annal_slice){token, (size_t)len});
    return SQLITE_OK;
}

static struct form stem_of(struct search_forms *forms, annal_slice word)
{
    struct form stem = {.len = 0};
    (void)forms->porter.xTokenize(forms->stemmer, &stem, FTS5_TOKENIZE_QUERY, word.ptr,
                                  (int)word.len, take_stem);
    return stem;
}

/* Return whether a word consists of letters of ASCII, and is not too short or long for forms. */
static bool has_stem(annal_slice word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.ptr[i] < 'a' || word.ptr[i] > 'z')
            return false;
    return word.len >= 3 && word.len <= SEARCH_FORM_MAX;
}

int annal__search_forms_of_stem(struct search_forms *forms, annal_slice word, search_form_fn fn,
                                void *arg)
{
    static const char *const endings[] = {
        "",      "e",      "s",    "es",    "ed", "d", "ing", "ings", "er", "ers",  "ion",  "ions",
        "ation", "ations", "ment", "ments", "ly", "y", "ies", "ied",  "al", "able", "ness", "ful"};
    int rc = fn(arg, word);
    if (rc != 0 || !has_stem(word))
        return rc;
    struct form stem = stem_of(forms, word);
    if (stem.len < 2)
        return rc;
    /* the stem of study is studi, the stem of running is run */
    annal_slice begins[] = {
        {stem.bytes, stem.len}, {stem.bytes, stem.len - 1}, {stem.bytes, stem.len}};
    const char twice[] = {stem.bytes[stem.len - 1], '\0'};
    const char *joints[] = {"", "", twice};
    for (size_t i = 0; i < 3 * sizeof endings / sizeof *endings && rc == 0; i++) {
        size_t way = i % 3;
        struct form form = {.len = 0};
        if (!put(&form, begins[way]) || !put(&form, annal_slice_of(joints[way])) ||
            !put(&form, annal_slice_of(endings[i / 3])))
            continue;
        annal_slice text = {form.bytes, form.len};
        struct form other = stem_of(forms, text);
        if (!annal__slice_same(text, word) && other.len == stem.len &&
            memcmp(other.bytes, stem.bytes, stem.len) == 0)
            rc = fn(arg, text);
    }
    return rc;
}

/* ---- Words of the texts ---- */

/* Find the first word that is not smaller than `from`. Returns a result code of SQLite: SQLITE_DONE
 * after the last word. */
static int find_next(struct search_forms *forms, annal_slice from, annal_slice *out)
{
    sqlite3_reset(forms->next);
    annal__db_bind_text(forms->next, 1, from);
    int rc = sqlite3_step(forms->next);
    if (rc == SQLITE_ROW)
        *out = annal__db_column(forms->next, 0);
    return rc;
}

/* Return the status after the search for a word ended with a result code. */
static int ended(struct search_forms *forms, int rc)
{
    return rc == SQLITE_ROW || rc == SQLITE_DONE
               ? ANNAL_OK
               : annal__db_fail(forms->err, sqlite3_db_handle(forms->next), rc,
                                "cannot read the words of the search index");
}

int annal__search_forms_of_begin(struct search_forms *forms, annal_slice begin, size_t most,
                                 search_form_fn fn, void *arg)
{
    SCOPED_BUF from = {0};
    annal_slice word;
    int rc = annal__buf_append_slice(&from, begin);
    int step = SQLITE_ROW;
    for (size_t i = 0; i < most && rc == 0; i++) {
        step = find_next(forms, annal__buf_slice(&from), &word);
        if (step != SQLITE_ROW || word.len < begin.len ||
            memcmp(word.ptr, begin.ptr, begin.len) != 0)
            break;
        rc = fn(arg, word);
        /* the next word is not smaller than this word and the smallest byte */
        from.len = 0;
        if (rc == 0 &&
            (annal__buf_append_slice(&from, word) < 0 || annal__buf_append(&from, "\1", 1) < 0))
            rc = ANNAL_ERR_NOMEM;
    }
    if (rc == 0)
        rc = ended(forms, step);
    sqlite3_reset(forms->next);
    return rc;
}

struct errors {
    struct form *words;
    size_t count;
};

/* Add the word with `gone` letters removed at a place, and a letter inserted there. */
static void add_error(struct errors *errors, annal_slice word, size_t at, size_t gone,
                      annal_slice letters)
{
    struct form form = {.len = 0};
    if (put(&form, (annal_slice){word.ptr, at}) && put(&form, letters) &&
        put(&form, (annal_slice){word.ptr + at + gone, word.len - at - gone}))
        errors->words[errors->count++] = form;
}

static void add_errors(struct errors *errors, annal_slice word)
{
    for (size_t at = 0; at <= word.len; at++) {
        bool has_letter = at < word.len;
        if (has_letter)
            add_error(errors, word, at, 1, (annal_slice){0});
        if (at + 1 < word.len) {
            const char pair[] = {word.ptr[at + 1], word.ptr[at]};
            add_error(errors, word, at, 2, (annal_slice){pair, 2});
        }
        for (const char *letter = LETTERS; *letter != '\0'; letter++) {
            add_error(errors, word, at, 0, (annal_slice){letter, 1});
            if (has_letter)
                add_error(errors, word, at, 1, (annal_slice){letter, 1});
        }
    }
}

static int compare_forms(const void *a, const void *b)
{
    const struct form *left = a, *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->bytes, right->bytes, len);
    return order != 0 ? order : (left->len > right->len) - (left->len < right->len);
}

int annal__search_forms_of_error(struct search_forms *forms, annal_slice word, search_form_fn fn,
                                 void *arg)
{
    struct errors errors = {0};
    struct form found = {.len = 0};
    annal_slice next;
    int rc = 0, step = SQLITE_ROW;
    if (word.len < LETTER_MIN || word.len > SEARCH_FORM_MAX)
        return 0;
    errors.words = annal__zalloc((word.len + 1) * 2 * sizeof LETTERS * sizeof *errors.words);
    if (errors.words == NULL)
        return ANNAL_ERR_NOMEM;
    add_errors(&errors, word);
    qsort(errors.words, errors.count, sizeof *errors.words, compare_forms);
    for (size_t i = 0, steps = 0; i < errors.count && steps < STEPS_MAX && rc == 0; i++) {
        const struct form *form = &errors.words[i];
        bool is_same = i > 0 && compare_forms(form, &errors.words[i - 1]) == 0;
        if (is_same || compare_forms(form, &found) < 0)
            continue;
        if (compare_forms(form, &found) > 0) {
            steps++;
            step = find_next(forms, (annal_slice){form->bytes, form->len}, &next);
            if (step != SQLITE_ROW)
                break;
            found.len = 0;
            if (!put(&found, next)) /* it is longer than any of these */
                (void)put(&found, (annal_slice){next.ptr, sizeof found.bytes - 1});
        }
        if (compare_forms(form, &found) == 0 &&
            !annal__slice_same(word, (annal_slice){form->bytes, form->len}))
            rc = fn(arg, (annal_slice){form->bytes, form->len});
    }
    if (rc == 0)
        rc = ended(forms, step);
    sqlite3_reset(forms->next);
    annal__free(errors.words);
    return rc;
}

/* ---- Common words ---- */

static int compare_common(const void *key, const void *item)
{
    const annal_slice *word = key;
    const char *text = *(const char *const *)item;
    size_t len = strlen(text), least = word->len < len ? word->len : len;
    int order = memcmp(word->ptr, text, least);
    return order != 0 ? order : (word->len > len) - (word->len < len);
}

bool annal__search_forms_is_common(annal_slice word)
{
    /* sorted */
    static const char *const common[] = {
        "a",    "about", "after",  "all",   "also",   "am",    "an",    "and",   "any",  "are",
        "as",   "at",    "be",     "been",  "before", "being", "but",   "by",    "can",  "could",
        "did",  "do",    "does",   "doing", "for",    "from",  "had",   "has",   "have", "having",
        "he",   "her",   "hers",   "him",   "his",    "how",   "i",     "if",    "in",   "into",
        "is",   "it",    "its",    "just",  "me",     "my",    "of",    "on",    "or",   "our",
        "s",    "she",   "should", "so",    "some",   "t",     "than",  "that",  "the",  "their",
        "them", "then",  "there",  "these", "they",   "this",  "those", "to",    "too",  "up",
        "was",  "we",    "were",   "what",  "when",   "where", "which", "while", "who",  "whom",
        "why",  "will",  "with",   "would", "you",    "your"};
    return bsearch(&word, common, sizeof common / sizeof *common, sizeof *common, compare_common) !=
           NULL;
}
