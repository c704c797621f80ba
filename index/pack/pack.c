/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pack is one SQL file.
 *
 * (1) Its first line is
 *         -- pack NAME   version N   database FILE   [in DIR]   [sessions GLOB]   [writable]
 *             [scope cluster GLOB[, GLOB]...]
 *     FILE ends in .db and is in STORE, or in STORE/DIR, but does not have a name that belongs to
 *     the store itself: events/, commit/, packs/, locks/, snapshots/, artifacts/, sessions.db.
 *     sessions GLOB: only events of these sessions are fed to the pack. A * in FILE is replaced by
 *     the text that the * of GLOB matches: each such session has its own database. writable: the
 *     plain sqlite3 shell may write the tables. scope cluster: in a store that belongs to a
 *     cluster, the stores of the cluster share these sessions (guard_decide.c).
 * (2) The text up to the first section creates the tables.
 * (3) A section begins with a line of its own, and reaches to the next section:
 *         -- on TYPE[, TYPE]...   [when CONDITION[, CONDITION]...]   [guarded "SENTENCE"]
 *             [reads SESSION[, SESSION]...]
 *             One or more statements, which run in this order for each event of these types, all or
 *             none. guarded: before an append, an event is refused, with this sentence, if the
 *             first statement changes no row or a constraint fails. TYPE may end in a star:
 *             `tool.*` matches all types with this beginning, `*` all types. when: the section,
 *             with its guard, runs only if one of the conditions holds: $field (it is not NULL) or
 *             $field=text (it is this text). This costs less than a statement without effect.
 *         -- fill TYPE[, TYPE]...   [reads SESSION[, SESSION]...]
 *             One SELECT, which runs before an event of these types is appended: its columns (a::b
 *             for $.a.b) are added to data where the caller omitted them or passed null. It does
 *             not run at replay.
 *         -- settle
 *             Statements with no parameter but :session, all or none, which run once after all new
 *             events of a session were applied, before any reader sees the tables: for work that
 *             would be too much for each event. Running it once for a hundred events must yield the
 *             same rows as running it a hundred times; sections that run in between (guards, fills,
 *             handlers) do not see its rows.
 *         -- forget
 *             Statements with no parameter but :session, which delete the rows of a session whose
 *             journal was deleted.
 *         -- artifact TYPE[, TYPE]...   FIELD   over BYTES
 *             No SQL. A $.FIELD with more bytes is moved to artifacts/ before the append.
 *         -- noun NOUN   "SENTENCE"
 *         -- verb NOUN VERB   appends TYPE   session SESSION   "SENTENCE"
 *         -- verb NOUN VERB   selects   "SENTENCE"
 *             Define `annal NOUN VERB`. pack_verbs.c describes the lines that follow.
 *     reads: sessions that are caught up first, besides the event's own session: an id, `name*` for
 *     all sessions with this beginning, `$field` or `name$field` for the session that a field of
 *     data names.
 * (4) Parameters: $name and $run::id are $.name and $.run.id of the event's data, by SQLite's ->>
 *     (absent: NULL; objects and arrays: their text). :session, :seq, :ts, :type, :id, :cause and
 *     :data are parts of the envelope; id and cause are NULL if the event has none. Nothing else
 *     may be bound.
 * (5) A pack uses no clock, no randomness, and no tables but its own: permit.c. functions.c
 *     describes the functions that we add to SQLite's.
 * (6) Every row belongs to one session. Handlers write only rows of :session.
 */
#include "index/pack/pack.h"

#include "index/db/db.h"
#include "index/sys/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"

#include <string.h>

/* ---- Lines and words ---- */

struct text {
    const char *at;
    const char *end;
    unsigned line; /* number of the line to which `at` points */
};

static annal_slice take_line(struct text *text)
{
    const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
    const char *stop = newline == NULL ? text->end : newline;
    annal_slice line = {text->at, (size_t)(stop - text->at)};
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    text->at = newline == NULL ? text->end : newline + 1;
    text->line++;
    return line;
}

/* Words with which sections begin, in the order of enum pack_section_kind. */
static const char *const section_words[] = {"on",     "fill", "forget", "artifact",
                                            "settle", "noun", "verb"};

/* Return whether words may follow the first word on the line that begins a section of this kind. */
static bool has_more(enum pack_section_kind kind)
{
    return kind != PACK_FORGET && kind != PACK_SETTLE;
}

static bool is_for_people(enum pack_section_kind kind)
{
    return kind == PACK_NOUN || kind == PACK_VERB;
}

/* Return whether the first character of a line after spaces is the - of a comment. The second is
 * not read, because most lines are SQL and the answer must be quick. */
static bool is_comment(annal_slice line)
{
    size_t i = 0;
    while (i < line.len && annal__pack_is_space(line.ptr[i]))
        i++;
    return i < line.len && line.ptr[i] == '-';
}

static bool begins_section(annal_slice line, enum pack_section_kind *out_kind)
{
    annal_slice rest = line;
    if (!is_comment(line) || !annal__slice_is(annal__pack_take_word(&rest), "--"))
        return false;
    annal_slice word = annal__pack_take_word(&rest);
    bool more = annal__pack_take_word(&rest).len > 0;
    for (size_t i = 0; i < sizeof section_words / sizeof *section_words; i++)
        if (annal__slice_is(word, section_words[i]) &&
            more == has_more((enum pack_section_kind)i)) {
            *out_kind = (enum pack_section_kind)i;
            return true;
        }
    return false;
}

/* Return whether a word is a type, or a prefix of types followed by a star. */
static bool is_type(annal_slice word)
{
    if (word.len == 0 || word.len > ANNAL_TYPE_BYTES_MAX)
        return false;
    word.len -= word.ptr[word.len - 1] == '*';
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && strchr("_.-", c) == NULL)
            return false;
    }
    return true;
}

/*
 * Return whether slice equals `word`, or differs from it by one letter: replaced, added, missing,
 * or two letters swapped.
 */
static bool is_nearly(annal_slice slice, const char *word)
{
    size_t len = strlen(word), i = 0;
    while (i < slice.len && i < len && sqlite3_strnicmp(slice.ptr + i, word + i, 1) == 0)
        i++;
    const char *at = slice.ptr + i, *should = word + i;
    size_t left = slice.len - i, wanted = len - i;
    if (left == wanted)
        return left <= 1 || sqlite3_strnicmp(at + 1, should + 1, (int)left - 1) == 0 ||
               (at[0] == should[1] && at[1] == should[0] &&
                sqlite3_strnicmp(at + 2, should + 2, (int)left - 2) == 0);
    return (left == wanted + 1 && sqlite3_strnicmp(at + 1, should, (int)wanted) == 0) ||
           (left + 1 == wanted && sqlite3_strnicmp(at, should + 1, (int)left) == 0);
}

/*
 * Return whether slice is `word`, or `word` with one letter doubled, in any case of letters. A
 * comment that begins with such a word was probably meant to begin a section.
 */
static bool is_misspelt(annal_slice slice, const char *word)
{
    size_t len = strlen(word), i = 0;
    if (slice.len == len)
        return sqlite3_strnicmp(slice.ptr, word, (int)len) == 0;
    while (slice.len == len + 1 && i < len && sqlite3_strnicmp(slice.ptr + i, word + i, 1) == 0)
        i++;
    return slice.len == len + 1 && i > 0 && sqlite3_strnicmp(slice.ptr + i, word + i - 1, 1) == 0 &&
           is_nearly(slice, word);
}

/*
 * Return whether the text after the first word of a comment has the form of a section line of this
 * kind.
 */
static bool has_form(enum pack_section_kind kind, annal_slice rest)
{
    annal_slice word = annal__pack_take_word(&rest);
    if (!has_more(kind))
        return word.len == 0;
    if (is_for_people(kind))
        return rest.len > 0 && rest.ptr[rest.len - 1] == '"';
    bool dotted =
        memchr(word.ptr, '.', word.len) != NULL || memchr(word.ptr, '*', word.len) != NULL;
    while (is_type(word)) {
        word = annal__pack_take_word(&rest);
        if (!annal__slice_is(word, ","))
            break;
        word = annal__pack_take_word(&rest);
    }
    return dotted && (word.len == 0 || kind == PACK_ARTIFACT || is_nearly(word, "guarded") ||
                      is_nearly(word, "reads") || is_nearly(word, "when"));
}

/*
 * Return whether the rest of a comment ends with `guarded "SENTENCE"`. A rest that begins with - or
 * # is a line that was commented out on purpose, and returns false.
 */
static bool has_guard(annal_slice rest)
{
    annal_slice word = annal__pack_take_word(&rest);
    bool guards = word.len > 0 && word.ptr[0] != '-' && word.ptr[0] != '#';
    while (guards && word.len > 0 && !is_nearly(word, "guarded"))
        word = annal__pack_take_word(&rest);
    word = annal__pack_take_word(&rest);
    return guards && word.len > 2 && word.ptr[0] == '"' && word.ptr[word.len - 1] == '"';
}

/* Refuse a comment that was probably meant to begin a section: its SQL would otherwise run as a
 * part of the section before it. */
static annal_status check_comment(const annal_pack *pack, annal_slice line, unsigned number,
                                  annal_error *err)
{
    annal_slice rest = line;
    annal_slice word = annal__pack_take_word(&rest);
    if (word.len < 2 || memcmp(word.ptr, "--", 2) != 0)
        return ANNAL_OK;
    bool guards = false, meant = false;
    if (word.len == 2) {
        guards = has_guard(rest);
        word = annal__pack_take_word(&rest);
    } else { /* the comment is "--on", without a space */
        word = (annal_slice){word.ptr + 2, word.len - 2};
        guards = has_guard((annal_slice){word.ptr, (size_t)(rest.ptr + rest.len - word.ptr)});
    }
    for (size_t i = 0; !meant && i < sizeof section_words / sizeof *section_words; i++)
        meant = guards || is_misspelt(word, section_words[i]) ||
                (is_nearly(word, section_words[i]) && has_form((enum pack_section_kind)i, rest));
    return !meant
               ? ANNAL_OK
               : annal__fail(err, ANNAL_ERR_INVALID,
                             "%s:%u: '%.*s' does not begin a section: use '-- on TYPE', '-- fill "
                             "TYPE', '-- settle', '-- forget', '-- artifact TYPE', '-- noun NOUN' "
                             "or '-- verb NOUN VERB' (a comment must begin with another word)",
                             pack->file, number, ANNAL_FMT(line));
}

static annal_status check_comments(const annal_pack *pack, struct text text, annal_error *err)
{
    enum pack_section_kind kind = PACK_ON;
    bool below_verb = false;
    annal_status status = ANNAL_OK;
    while (status >= 0 && text.at < text.end) {
        unsigned number = text.line;
        annal_slice line = take_line(&text);
        if (below_verb && annal__pack_is_verb_line(line))
            continue;
        bool begins = begins_section(line, &kind);
        below_verb = begins && kind == PACK_VERB;
        if (!begins)
            status = check_comment(pack, line, number, err);
    }
    return status;
}

/* ---- Sections, rule 3 ---- */

static bool is_reads(annal_slice word)
{
    const char *dollar = memchr(word.ptr, '$', word.len);
    if (dollar != NULL) {
        const annal_slice name = {word.ptr, (size_t)(dollar - word.ptr)};
        return (name.len == 0 ||
                (annal__pack_is_glob(name) && memchr(name.ptr, '*', name.len) == NULL)) &&
               annal__pack_is_field((annal_slice){dollar + 1, word.len - name.len - 1});
    }
    return annal__pack_is_glob(word) &&
           (memchr(word.ptr, '*', word.len) == NULL || word.ptr[word.len - 1] == '*');
}

/* Return whether a word is a condition: $field, or $field=text. */
static bool is_condition(annal_slice word)
{
    if (word.len == 0 || word.ptr[0] != '$')
        return false;
    const char *sign = memchr(word.ptr, '=', word.len);
    const char *end = word.ptr + word.len, *name_end = sign == NULL ? end : sign;
    return annal__pack_is_field((annal_slice){word.ptr + 1, (size_t)(name_end - word.ptr - 1)}) &&
           (sign == NULL || sign + 1 != end);
}

/* The pack and the line number of a section line, for messages. */
struct place {
    const annal_pack *pack;
    unsigned line;
};

/* Read a comma-separated list into *out, from *word on; *word becomes the first word after the
 * list. */
static annal_status take_list(const struct place *place, annal_slice *rest, annal_slice *word,
                              bool (*is_item)(annal_slice), const char *item, char **out,
                              annal_error *err)
{
    char *list = annal__zalloc(rest->len + word->len + 3);
    if (list == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory",
                           place->pack->file);
    *out = list;
    for (;; *word = annal__pack_take_word(rest)) {
        if (!is_item(*word))
            return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: '%.*s' is not a valid %s",
                               place->pack->file, place->line, ANNAL_FMT(*word), item);
        memcpy(list, word->ptr, word->len);
        list += word->len + 1;
        *word = annal__pack_take_word(rest);
        if (!annal__slice_is(*word, ","))
            return ANNAL_OK;
    }
}

static annal_status take_guard(const struct place *place, annal_slice *rest, char **out,
                               annal_error *err)
{
    annal_slice word = annal__pack_take_word(rest);
    if (word.len < 3 || word.ptr[0] != '"' || word.ptr[word.len - 1] != '"')
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:%u: a guard needs a sentence in quotes: guarded \"why not\"",
                           place->pack->file, place->line);
    *out = annal__strndup(word.ptr + 1, word.len - 2);
    return *out == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory",
                                      place->pack->file)
                        : ANNAL_OK;
}

/* Parse the conditions after the types of `on` and `fill`: guarded, reads, when. *word is the first
 * word after the types. */
static annal_status parse_conditions(const struct place *place, struct pack_section *section,
                                     annal_slice *rest, annal_slice *word, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (status >= 0 && word->len > 0) {
        if (annal__slice_is(*word, "guarded") && section->kind == PACK_ON &&
            section->guard == NULL) {
            status = take_guard(place, rest, &section->guard, err);
            *word = annal__pack_take_word(rest);
        } else if (annal__slice_is(*word, "reads") && section->reads == NULL) {
            *word = annal__pack_take_word(rest);
            status = take_list(place, rest, word, is_reads, "session, name*, $field or name$field",
                               &section->reads, err);
        } else if (annal__slice_is(*word, "when") && section->kind == PACK_ON &&
                   section->when == NULL) {
            *word = annal__pack_take_word(rest);
            status = take_list(place, rest, word, is_condition, "condition, $field or $field=text",
                               &section->when, err);
        } else {
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "%s:%u: '%.*s' is not allowed after the types of a section "
                               "(separate types by commas; a comment must begin with another word)",
                               place->pack->file, place->line, ANNAL_FMT(*word));
        }
    }
    return status;
}

/* Parse "FIELD over BYTES" on the line of an artifact section. *word is FIELD, which was already
 * read. */
static annal_status parse_artifact(const struct place *place, struct pack_section *section,
                                   annal_slice *rest, annal_slice *word, annal_error *err)
{
    annal_slice field = *word;
    uint32_t over = 0;
    if (!annal__pack_is_field(field) || !annal__slice_is(annal__pack_take_word(rest), "over") ||
        !annal__pack_parse_number(annal__pack_take_word(rest), &over) ||
        annal__pack_take_word(rest).len > 0)
        return annal__fail(
            err, ANNAL_ERR_INVALID,
            "%s:%u: write an artifact as '-- artifact TYPE[, TYPE]   FIELD   over BYTES'",
            place->pack->file, place->line);
    section->over_bytes = over;
    section->field = annal__strndup(field.ptr, field.len);
    return section->field == NULL ? annal__fail(err, ANNAL_ERR_NOMEM,
                                                "read pack '%s': out of memory", place->pack->file)
                                  : ANNAL_OK;
}

static annal_status parse_section(const annal_pack *pack, struct pack_section *section,
                                  annal_slice line, unsigned number, annal_error *err)
{
    const struct place place = {pack, number};
    annal_slice rest = line;
    annal__pack_take_word(&rest); /* skip "--" */
    annal__pack_take_word(&rest); /* skip "on", "fill", … */
    if (is_for_people(section->kind)) {
        section->head = annal__strndup(rest.ptr, rest.len);
        return section->head == NULL
                   ? annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", pack->file)
                   : ANNAL_OK;
    }
    if (!has_more(section->kind))
        return ANNAL_OK;
    annal_slice word = annal__pack_take_word(&rest);
    annal_status status =
        take_list(&place, &rest, &word, is_type, "event type", &section->types, err);
    if (status < 0)
        return status;
    return section->kind == PACK_ARTIFACT ? parse_artifact(&place, section, &rest, &word, err)
                                          : parse_conditions(&place, section, &rest, &word, err);
}

/*
 * Copy the text up to the next section into a new string. of_verb: whether the text begins with the
 * lines of a verb, which do not begin a section.
 */
static char *take_body(struct text *text, bool of_verb)
{
    const char *begin = text->at;
    enum pack_section_kind kind;
    while (text->at < text->end) {
        struct text peek = *text;
        annal_slice line = take_line(&peek);
        of_verb = of_verb && annal__pack_is_verb_line(line);
        if (!of_verb && begins_section(line, &kind))
            break;
        *text = peek;
    }
    return annal__strndup(begin, (size_t)(text->at - begin));
}

/* Add a part of the text that is not a verb to pack->hash. */
static void hash_text(annal_pack *pack, const char *from, const char *to)
{
    if (from < to)
        pack->hash = annal__hash(from, (size_t)(to - from), pack->hash);
}

/*
 * Parse the sections, and compute pack->hash over the text without nouns and verbs. hashed is the
 * beginning of the text that was not hashed yet.
 */
static annal_status parse_sections(annal_pack *pack, struct text *text, const char *hashed,
                                   annal_error *err)
{
    while (text->at < text->end) {
        struct pack_section *section =
            annal__array_add(&pack->sections, &pack->section_count, sizeof *section);
        if (section == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", pack->file);
        section->line = text->line + 1;
        unsigned number = text->line;
        const char *begin = text->at;
        annal_slice line = take_line(text);
        ANNAL_ASSERT(begins_section(line, &section->kind));
        annal_status status = parse_section(pack, section, line, number, err);
        if (status < 0)
            return status;
        section->sql = take_body(text, section->kind == PACK_VERB);
        if (section->sql == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", pack->file);
        if (is_for_people(section->kind)) {
            hash_text(pack, hashed, begin);
            hashed = text->at;
        }
    }
    hash_text(pack, hashed, text->end);
    return ANNAL_OK;
}

/*
 * Return whether a line of a pack file with errors may begin a section that guards or fills events.
 * In doubt (an unexpected word after the types) the answer is true. *out_types: the types that the
 * line names.
 */
static bool may_guard(annal_slice line, annal_slice *out_types)
{
    annal_slice rest = line;
    if (!annal__slice_is(annal__pack_take_word(&rest), "--"))
        return false;
    annal_slice word = annal__pack_take_word(&rest), after = rest;
    bool fills = is_nearly(word, "fill");
    if (!fills && !is_nearly(word, "on"))
        return false;
    do {
        (void)annal__pack_take_word(&after);
        *out_types = (annal_slice){rest.ptr, (size_t)(after.ptr - rest.ptr)};
        word = annal__pack_take_word(&after);
    } while (annal__slice_is(word, ","));
    bool reads = annal__slice_is(word, "reads") || annal__slice_is(word, "when");
    while (!fills && reads && word.len > 0 && sqlite3_strnicmp(word.ptr, "guard", 5) != 0)
        word = annal__pack_take_word(&after);
    return fills || word.len > 0;
}

annal_status annal__pack_guarded(annal_slice bytes, struct buf *list, annal_error *err)
{
    struct text text = {.at = bytes.ptr, .end = bytes.ptr + bytes.len};
    annal_slice types;
    annal_status status = ANNAL_OK;
    while (status >= 0 && text.at < text.end) {
        bool guards = may_guard(take_line(&text), &types);
        for (annal_slice type; guards && status >= 0;) {
            type = annal__pack_take_word(&types);
            if (type.len == 0)
                break;
            if (type.ptr[0] != ',')
                status = annal__buf_append_slice(list, type);
            if (status >= 0 && type.ptr[0] != ',')
                status = annal__buf_append(list, "", 1);
        }
    }
    return status < 0 ? annal__fail(err, status, "cannot list the guards of a pack") : ANNAL_OK;
}

/* ---- Parsing and freeing ---- */

/* Fail because a text is empty, or contains a NUL byte. */
static annal_status fail_not_text(const char *name, annal_slice text, annal_error *err)
{
    unsigned line = 1;
    if (text.len == 0)
        return annal__fail(err, ANNAL_ERR_INVALID, "%s: a pack must be a text file", name);
    for (const char *c = text.ptr; *c != '\0'; c++)
        line += *c == '\n';
    return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: a NUL byte: a pack must be a text file",
                       name, line);
}

static annal_status parse(const char *name, annal_slice text, annal_pack **out_pack,
                          annal_error *err)
{
    struct text rest = {text.ptr, text.ptr + text.len, 1};
    annal_status status = ANNAL_OK;
    annal_pack *pack = annal__zalloc(sizeof *pack);
    if (pack != NULL)
        pack->file = annal__strndup(name, strlen(name));
    if (pack == NULL || pack->file == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", name);
        goto done;
    }
    if (text.len == 0 || memchr(text.ptr, '\0', text.len) != NULL) {
        status = fail_not_text(name, text, err);
        goto done;
    }
    status = annal__pack_parse_header(pack, take_line(&rest), err);
    if (status < 0)
        goto done;
    status = check_comments(pack, rest, err);
    if (status < 0)
        goto done;
    pack->tables_line = rest.line;
    pack->tables = take_body(&rest, false);
    if (pack->tables == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read pack '%s': out of memory", name);
        goto done;
    }
    status = parse_sections(pack, &rest, text.ptr, err);
    if (status >= 0)
        status = annal__pack_read_verbs(pack, err);
    if (status < 0)
        goto done;
    *out_pack = pack;
    pack = NULL;

done:
    annal_pack_free(pack);
    return status;
}

annal_status annal__pack_read(const char *name, annal_slice text, annal_pack **out_pack,
                              annal_error *err)
{
    annal_pack *pack = NULL;
    annal_status status = parse(name, text, &pack, err);
    if (status >= 0)
        status = annal__pack_read_sql(pack, err);
    if (status >= 0)
        *out_pack = pack;
    else
        annal_pack_free(pack);
    return status;
}

/*
 * Parse the core pack. It is built in, so its SQL is not tried here (a test does that), because
 * each process that opens an index parses it. Its names and hashes are not computed: core has
 * sessions.db to itself, so they are not needed.
 */
annal_status annal__pack_core(annal_pack **out_pack, annal_error *err)
{
    annal_pack *pack = NULL;
    annal_status status = parse("packs/core.sql", annal_slice_of(annal__sql_core), &pack, err);
    if (status < 0)
        return status;
    pack->tried = true;
    pack->blank = annal__zalloc(sizeof *pack->blank);
    status = pack->blank == NULL
                 ? annal__fail(err, ANNAL_ERR_NOMEM, "read the core pack: out of memory")
                 : annal__shape_of_text(&pack->shape, pack->tables, err);
    if (status < 0)
        annal_pack_free(pack);
    else
        *out_pack = pack;
    return status;
}

void annal_pack_free(annal_pack *pack)
{
    if (pack == NULL)
        return;
    annal__pack_free_verbs(pack);
    for (size_t i = 0; i < pack->section_count; i++) {
        annal__free(pack->sections[i].types);
        annal__free(pack->sections[i].guard);
        annal__free(pack->sections[i].reads);
        annal__free(pack->sections[i].when);
        annal__free(pack->sections[i].field);
        annal__free(pack->sections[i].head);
        annal__free(pack->sections[i].sql);
    }
    annal__free(pack->sections);
    if (pack->blank != NULL)
        annal__free(atomic_load(pack->blank));
    annal__free(pack->blank);
    annal__free(pack->tables);
    annal__free(pack->own);
    annal__shape_done(&pack->shape);
    annal__free(pack->name);
    annal__free(pack->database);
    annal__free(pack->folder);
    annal__free(pack->cluster);
    annal__free(pack->sessions);
    annal__free(pack->file);
    annal__free(pack);
}

const char *annal__pack_name(const annal_pack *pack)
{
    return pack->name;
}

uint32_t annal__pack_version(const annal_pack *pack)
{
    return pack->version;
}

const char *annal__pack_database(const annal_pack *pack)
{
    return pack->database;
}
