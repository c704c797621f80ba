/*
 * A pack is one SQL file.
 *
 * (1) Its first line is
 *         -- pack NAME   version N   database FILE   [in DIR]   [sessions GLOB]   [writable]
 *             [scope cluster GLOB[, GLOB]...]
 *     FILE ends in .db and is in STORE, or in STORE/DIR, but not in a place of the store itself:
 *     events/, commit/, packs/, locks/, snapshots/, artifacts/, sessions.db. GLOB: only these
 *     sessions are fed to the pack. A * in FILE is replaced by what the * of GLOB matches: a
 *     database for each. writable: the plain sqlite3 shell may write the tables. scope cluster: in
 *     a store that belongs to a cluster, its stores share these sessions (guard_decide.c).
 * (2) What follows, up to the first section, creates the tables.
 * (3) Sections begin with a line of their own, and reach to the next one:
 *         -- on TYPE[, TYPE]...   [guarded "SENTENCE"]   [reads SESSION[, SESSION]...]
 *             One or more statements, which run in this order for each event of these types, all
 *             or none. guarded: such an event is refused, with this sentence, if the first
 *             statement changes no row or a constraint fails. TYPE may end in a star: `tool.*`
 *             are all that begin so, `*` are all.
 *         -- fill TYPE[, TYPE]...   [reads SESSION[, SESSION]...]
 *             One SELECT, asked before such an event is appended: its columns (a::b for $.a.b) are
 *             added to data where the caller left them out or null. Not asked again at replay.
 *         -- settle
 *             Statements with no parameter but :session, all or none, once a session's events are
 *             all applied, before anybody looks: for work that would be too much for each event.
 *             Once for a hundred events must make the same rows as a hundred times; sections that
 *             are asked in between (guards, fills, handlers) do not see what it makes.
 *         -- forget
 *             Statements with no parameter but :session: delete its rows, because its journal is
 *             gone.
 *         -- artifact TYPE[, TYPE]...   FIELD   over BYTES
 *             No SQL. A $.FIELD of more bytes goes to artifacts/ before the event is appended.
 *         -- noun NOUN   "SENTENCE"
 *         -- verb NOUN VERB   appends TYPE   session SESSION   "SENTENCE"
 *         -- verb NOUN VERB   selects   "SENTENCE"
 *             What `annal NOUN VERB` does. pack_verbs.c describes the lines that follow.
 *     reads: sessions that are caught up first, besides the event's own: an id, `name*` for all
 *     that begin so, `$field` or `name$field` for the one that a field of data names.
 * (4) Parameters: $name and $run::id are $.name and $.run.id of the event's data, by SQLite's ->>
 *     (absent: NULL; objects and arrays: their text). :session, :seq, :ts, :type, :id, :cause and
 *     :data come from the envelope; id and cause are NULL if the event has none. Nothing else may
 *     be bound.
 * (5) No clocks, no randomness, no tables but its own: permit.c. functions.c describes what we add
 *     to SQLite's functions.
 * (6) Every row belongs to one session. Handlers write only rows of :session.
 */
#include "index/pack/pack.h"

#include "index/db/database.h"
#include "index/sys/pack.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"

#include <ctype.h>
#include <string.h>

/* ---- Lines and words ---- */

struct text {
    const char *at;
    const char *end;
    unsigned line; /* of at */
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

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* The next word of a line, or a comma, or a sentence with its quotes; empty at the end. */
static annal_slice take_word(annal_slice *rest)
{
    while (rest->len > 0 && is_space(*rest->ptr)) {
        rest->ptr++;
        rest->len--;
    }
    annal_slice word = {rest->ptr, 0};
    if (rest->len > 0 && *rest->ptr == '"') {
        const char *close = memchr(rest->ptr + 1, '"', rest->len - 1);
        word.len = close == NULL ? rest->len : (size_t)(close - rest->ptr) + 1;
    } else if (rest->len > 0 && *rest->ptr == ',') {
        word.len = 1;
    } else {
        while (word.len < rest->len && !is_space(rest->ptr[word.len]) && rest->ptr[word.len] != ',')
            word.len++;
    }
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

static char *copy_of(annal_slice word)
{
    return annal__strndup(word.ptr, word.len);
}

/* In the order of enum pack_section_kind. */
static const char *const section_words[] = {"on",     "fill", "forget", "artifact",
                                            "settle", "noun", "verb"};

/* Whether anything follows on the line of a section. */
static bool has_more(int kind)
{
    return kind != PACK_FORGET && kind != PACK_SETTLE;
}

static bool is_for_people(enum pack_section_kind kind)
{
    return kind == PACK_NOUN || kind == PACK_VERB;
}

/* Most lines are SQL, which one byte shows. */
static bool is_comment(annal_slice line)
{
    size_t i = 0;
    while (i < line.len && is_space(line.ptr[i]))
        i++;
    return i < line.len && line.ptr[i] == '-';
}

static bool begins_section(annal_slice line, enum pack_section_kind *out_kind)
{
    annal_slice rest = line;
    if (!is_comment(line) || !annal__slice_is(take_word(&rest), "--"))
        return false;
    annal_slice word = take_word(&rest);
    bool more = take_word(&rest).len > 0;
    for (size_t i = 0; i < sizeof section_words / sizeof *section_words; i++)
        if (annal__slice_is(word, section_words[i]) && more == has_more((int)i)) {
            *out_kind = (enum pack_section_kind)i;
            return true;
        }
    return false;
}

/* word, or word with one letter doubled, in any case of letters: a misspelling, not a comment. */
static bool is_nearly(annal_slice slice, const char *word)
{
    size_t len = strlen(word), i = 0;
    if (slice.len == len)
        return sqlite3_strnicmp(slice.ptr, word, (int)len) == 0;
    while (slice.len == len + 1 && i < len && sqlite3_strnicmp(slice.ptr + i, word + i, 1) == 0)
        i++;
    return slice.len == len + 1 && i > 0 && sqlite3_strnicmp(slice.ptr + i, word + i - 1, 1) == 0 &&
           sqlite3_strnicmp(slice.ptr + i, word + i - 1, (int)(len - i + 1)) == 0;
}

/* A comment that was meant to begin a section: its SQL would run with the section before. */
static annal_status check_comment(const annal_pack *pack, annal_slice line, unsigned number,
                                  annal_error *err)
{
    annal_slice rest = line;
    if (!annal__slice_is(take_word(&rest), "--"))
        return ANNAL_OK;
    annal_slice word = take_word(&rest);
    for (size_t i = 0; i < sizeof section_words / sizeof *section_words; i++)
        if (is_nearly(word, section_words[i]))
            return annal__fail(err, ANNAL_ERR_INVALID,
                               "%s:%u: '%.*s' begins no section: '-- on TYPE', '-- fill TYPE', "
                               "'-- settle', '-- forget', '-- artifact TYPE', '-- noun NOUN' and "
                               "'-- verb NOUN VERB' do (a comment begins with another word)",
                               pack->file, number, ANNAL_FMT(line));
    return ANNAL_OK;
}

static annal_status check_comments(const annal_pack *pack, struct text text, annal_error *err)
{
    enum pack_section_kind kind = PACK_ON;
    bool below_verb = false;
    annal_status status = ANNAL_OK;
    while (status >= 0 && text.at < text.end) {
        unsigned number = text.line;
        annal_slice line = take_line(&text);
        if (below_verb && annal__is_verb_line(line))
            continue;
        bool begins = begins_section(line, &kind);
        below_verb = begins && kind == PACK_VERB;
        if (!begins)
            status = check_comment(pack, line, number, err);
    }
    return status;
}

/* ---- The header line, rule 1 ---- */

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

/* A path of file names, none of them hidden, with at most this many stars in it. */
static bool is_path(annal_slice word, unsigned stars)
{
    if (word.len == 0 || word.len > 200)
        return false;
    char before = '/';
    for (size_t i = 0; i < word.len; before = word.ptr[i++]) {
        char c = word.ptr[i];
        bool first = before == '/';
        if (c == '*' && stars > 0)
            stars--;
        else if (c == '/' ? first : !is_name_char(c) || (first && !isalnum((unsigned char)c)))
            return false;
    }
    return before != '/';
}

/*
 * Names in a store that belong to the store itself, as the first part of a relative path; rule 1.
 */
static const char *const kept[] = {"events",    "commit",      "packs",     "locks",
                                   "snapshots", "artifacts",   "cursors",   "leases",
                                   "cluster",   "sessions.db", "search.db", "search.off"};

bool annal__path_is_kept(annal_slice path, annal_slice star)
{
    const char *slash = memchr(path.ptr, '/', path.len);
    size_t len = slash == NULL ? path.len : (size_t)(slash - path.ptr);
    const char *at = memchr(path.ptr, '*', len);
    size_t before = at == NULL ? len : (size_t)(at - path.ptr);
    size_t after = at == NULL ? 0 : len - before - 1;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strlen(kept[i]) == before + after + (at == NULL ? 0 : star.len) &&
            memcmp(kept[i], path.ptr, before) == 0 &&
            (at == NULL || ((star.len == 0 || memcmp(kept[i] + before, star.ptr, star.len) == 0) &&
                            memcmp(kept[i] + before + star.len, at + 1, after) == 0)))
            return true;
    return false;
}

static bool is_glob(annal_slice word)
{
    const char *star = memchr(word.ptr, '*', word.len);
    if (word.len == 0 || word.len > ANNAL_SESSION_ID_BYTES_MAX)
        return false;
    for (size_t i = 0; i < word.len; i++)
        if (!is_name_char(word.ptr[i]) && word.ptr + i != star)
            return false;
    return true;
}

static bool parse_version(annal_slice word, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (!isdigit((unsigned char)word.ptr[i]))
            return false;
        *out = *out * 10 + (uint32_t)(word.ptr[i] - '0');
    }
    return word.len > 0 && word.len < 9;
}

/* What may follow FILE. */
struct clauses {
    annal_slice folder, sessions;
    annal_slice cluster; /* "GLOB, GLOB" */
};

/* cluster GLOB[, GLOB]... */
static bool parse_scope(annal_slice *rest, annal_slice *out)
{
    if (!annal__slice_is(take_word(rest), "cluster"))
        return false;
    annal_slice glob, comma, after = *rest;
    out->ptr = rest->ptr;
    do {
        glob = take_word(&after);
        *rest = after;
        comma = take_word(&after);
    } while (is_glob(glob) && annal__slice_is(comma, ","));
    *out = (annal_slice){out->ptr, (size_t)(rest->ptr - out->ptr)};
    return is_glob(glob);
}

/* False: something else follows, or something was given twice. */
static bool parse_clauses(annal_pack *pack, annal_slice rest, struct clauses *out)
{
    for (annal_slice word = take_word(&rest); word.len > 0; word = take_word(&rest)) {
        if (annal__slice_is(word, "in") && out->folder.len == 0) {
            out->folder = take_word(&rest);
            if (!is_path(out->folder, 0))
                return false;
        } else if (annal__slice_is(word, "sessions") && out->sessions.len == 0) {
            out->sessions = take_word(&rest);
            if (!is_glob(out->sessions))
                return false;
        } else if (annal__slice_is(word, "writable") && !pack->writable) {
            pack->writable = true;
        } else if (annal__slice_is(word, "scope") && out->cluster.len == 0) {
            if (!parse_scope(&rest, &out->cluster))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

/* Where databases may be; only core is in sessions.db. */
static annal_status check_database(const annal_pack *pack, annal_slice name, annal_slice database,
                                   annal_slice folder, annal_error *err)
{
    const annal_slice place = folder.len > 0 ? folder : database;
    if (database.len < 4 || memcmp(database.ptr + database.len - 3, ".db", 3) != 0)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:1: '%.*s' is no database: its name ends in .db", pack->file,
                           ANNAL_FMT(database));
    if (annal__path_is_kept(place, (annal_slice){0}) &&
        !(annal__slice_is(name, "core") && annal__slice_is(place, "sessions.db")))
        return annal__fail(err, ANNAL_ERR_INVALID, "%s:1: '%.*s' is the store's own", pack->file,
                           ANNAL_FMT(place));
    return ANNAL_OK;
}

static annal_status parse_header(annal_pack *pack, annal_slice line, annal_error *err)
{
    struct clauses clauses = {0};
    annal_slice rest = line;
    bool good =
        annal__slice_is(take_word(&rest), "--") && annal__slice_is(take_word(&rest), "pack");
    annal_slice name = take_word(&rest);
    good = good && is_path(name, 0) && memchr(name.ptr, '/', name.len) == NULL;
    good = good && annal__slice_is(take_word(&rest), "version");
    good = good && parse_version(take_word(&rest), &pack->version) && pack->version > 0;
    good = good && annal__slice_is(take_word(&rest), "database");
    annal_slice database = take_word(&rest);
    good = good && is_path(database, 1) && parse_clauses(pack, rest, &clauses);
    if (!good)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:1: a pack begins with '-- pack NAME   version N   database FILE   "
                           "[in DIR]   [sessions GLOB]   [writable]   [scope cluster GLOB]'",
                           pack->file);
    if (memchr(database.ptr, '*', database.len) != NULL &&
        (clauses.sessions.len == 0 ||
         memchr(clauses.sessions.ptr, '*', clauses.sessions.len) == NULL))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:1: the * of '%.*s' needs a * in 'sessions GLOB'", pack->file,
                           ANNAL_FMT(database));
    annal_status status = check_database(pack, name, database, clauses.folder, err);
    if (status < 0)
        return status;
    pack->name = copy_of(name);
    pack->database = copy_of(database);
    pack->folder = clauses.folder.len == 0 ? NULL : copy_of(clauses.folder);
    pack->sessions = clauses.sessions.len == 0 ? NULL : copy_of(clauses.sessions);
    pack->cluster = clauses.cluster.len == 0 ? NULL : copy_of(clauses.cluster);
    if (pack->name == NULL || pack->database == NULL ||
        (clauses.folder.len > 0 && pack->folder == NULL) ||
        (clauses.sessions.len > 0 && pack->sessions == NULL) ||
        (clauses.cluster.len > 0 && pack->cluster == NULL))
        return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
    return ANNAL_OK;
}

/* *out_star: what the * of the glob matches, or empty. */
static bool glob_matches(annal_slice glob, annal_slice session, annal_slice *out_star)
{
    const char *star = memchr(glob.ptr, '*', glob.len);
    size_t before = star == NULL ? glob.len : (size_t)(star - glob.ptr);
    size_t after = star == NULL ? 0 : glob.len - before - 1;
    if (session.len < before + after || (star == NULL && session.len != before) ||
        memcmp(session.ptr, glob.ptr, before) != 0 ||
        memcmp(session.ptr + session.len - after, glob.ptr + glob.len - after, after) != 0)
        return false;
    *out_star = (annal_slice){session.ptr + before, session.len - before - after};
    return true;
}

bool annal__pack_feeds(const annal_pack *pack, annal_slice session, annal_slice *out_star)
{
    annal_slice star = {session.ptr, 0};
    if (pack->sessions != NULL) {
        if (!glob_matches(annal_slice_of(pack->sessions), session, &star))
            return false;
        if (strchr(pack->database, '*') != NULL &&
            (!is_path(star, 0) ||
             (pack->folder == NULL && annal__path_is_kept(annal_slice_of(pack->database), star))))
            return false;
    }
    if (out_star != NULL)
        *out_star = star;
    return true;
}

bool annal__pack_shares(const annal_pack *pack, annal_slice session)
{
    if (pack->cluster == NULL)
        return false;
    annal_slice rest = annal_slice_of(pack->cluster), glob, star;
    do
        glob = take_word(&rest);
    while (glob.len > 0 && !glob_matches(glob, session, &star));
    return glob.len > 0;
}

/* ---- Sections, rule 3 ---- */

/* A type, or a prefix of types and a star. */
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

bool annal__is_field(annal_slice word)
{
    bool begins = true;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        if (c == ':' && i + 1 < word.len && word.ptr[i + 1] == ':' && !begins) {
            begins = true;
            i++;
        } else if (isalpha((unsigned char)c) || c == '_' ||
                   (isdigit((unsigned char)c) && !begins)) {
            begins = false;
        } else {
            return false;
        }
    }
    return !begins;
}

static bool is_reads(annal_slice word)
{
    const char *dollar = memchr(word.ptr, '$', word.len);
    if (dollar != NULL) {
        const annal_slice name = {word.ptr, (size_t)(dollar - word.ptr)};
        return (name.len == 0 || (is_glob(name) && memchr(name.ptr, '*', name.len) == NULL)) &&
               annal__is_field((annal_slice){dollar + 1, word.len - name.len - 1});
    }
    return is_glob(word) &&
           (memchr(word.ptr, '*', word.len) == NULL || word.ptr[word.len - 1] == '*');
}

/* The place of a section line, for messages. */
struct place {
    const annal_pack *pack;
    unsigned line;
};

/* A comma-separated list into *out; *word is the first word after it. */
static annal_status take_list(const struct place *place, annal_slice *rest, annal_slice *word,
                              bool (*is_item)(annal_slice), const char *item, char **out,
                              annal_error *err)
{
    char *list = annal__zalloc(rest->len + word->len + 3);
    if (list == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", place->pack->file);
    *out = list;
    for (;; *word = take_word(rest)) {
        if (!is_item(*word))
            return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: '%.*s' is no %s", place->pack->file,
                               place->line, ANNAL_FMT(*word), item);
        memcpy(list, word->ptr, word->len);
        list += word->len + 1;
        *word = take_word(rest);
        if (!annal__slice_is(*word, ","))
            return ANNAL_OK;
    }
}

static annal_status take_guard(const struct place *place, annal_slice *rest, char **out,
                               annal_error *err)
{
    annal_slice word = take_word(rest);
    if (word.len < 3 || word.ptr[0] != '"' || word.ptr[word.len - 1] != '"')
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:%u: a guard is a sentence in quotes: guarded \"why not\"",
                           place->pack->file, place->line);
    *out = annal__strndup(word.ptr + 1, word.len - 2);
    return *out == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", place->pack->file)
                        : ANNAL_OK;
}

/* What may follow the types of `on` and `fill`; *word is its first word. */
static annal_status parse_conditions(const struct place *place, struct pack_section *section,
                                     annal_slice *rest, annal_slice *word, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (status >= 0 && word->len > 0) {
        if (annal__slice_is(*word, "guarded") && section->kind == PACK_ON &&
            section->guard == NULL) {
            status = take_guard(place, rest, &section->guard, err);
            *word = take_word(rest);
        } else if (annal__slice_is(*word, "reads") && section->reads == NULL) {
            *word = take_word(rest);
            status = take_list(place, rest, word, is_reads, "session, name*, $field or name$field",
                               &section->reads, err);
        } else {
            return annal__fail(
                err, ANNAL_ERR_INVALID,
                "%s:%u: '%.*s' does not belong after the types of a section "
                "(types are separated by commas; a comment begins with another word)",
                place->pack->file, place->line, ANNAL_FMT(*word));
        }
    }
    return status;
}

/* FIELD over BYTES; *word is FIELD. */
static annal_status parse_artifact(const struct place *place, struct pack_section *section,
                                   annal_slice *rest, annal_slice *word, annal_error *err)
{
    annal_slice field = *word;
    uint32_t over = 0;
    if (!annal__is_field(field) || !annal__slice_is(take_word(rest), "over") ||
        !parse_version(take_word(rest), &over) || take_word(rest).len > 0)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "%s:%u: an artifact is '-- artifact TYPE[, TYPE]   FIELD   over BYTES'",
                           place->pack->file, place->line);
    section->over_bytes = over;
    section->field = copy_of(field);
    return section->field == NULL
               ? annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", place->pack->file)
               : ANNAL_OK;
}

static annal_status parse_section(const annal_pack *pack, struct pack_section *section,
                                  annal_slice line, unsigned number, annal_error *err)
{
    const struct place place = {pack, number};
    annal_slice rest = line;
    take_word(&rest); /* -- */
    take_word(&rest); /* on, fill, … */
    if (is_for_people(section->kind)) {
        section->head = copy_of(rest);
        return section->head == NULL ? annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file)
                                     : ANNAL_OK;
    }
    if (!has_more(section->kind))
        return ANNAL_OK;
    annal_slice word = take_word(&rest);
    annal_status status =
        take_list(&place, &rest, &word, is_type, "event type", &section->types, err);
    if (status < 0)
        return status;
    return section->kind == PACK_ARTIFACT ? parse_artifact(&place, section, &rest, &word, err)
                                          : parse_conditions(&place, section, &rest, &word, err);
}

/* The text up to the next section, as a string of its own. The lines of a verb do not begin a
 * section. */
static char *take_body(struct text *text, bool of_verb)
{
    const char *begin = text->at;
    enum pack_section_kind kind;
    while (text->at < text->end) {
        struct text peek = *text;
        annal_slice line = take_line(&peek);
        of_verb = of_verb && annal__is_verb_line(line);
        if (!of_verb && begins_section(line, &kind))
            break;
        *text = peek;
    }
    return annal__strndup(begin, (size_t)(text->at - begin));
}

/* A part of the text that is not a verb. */
static void hash_text(annal_pack *pack, const char *from, const char *to)
{
    if (from < to)
        pack->hash = annal__hash(from, (size_t)(to - from), pack->hash);
}

/* Computes pack->hash on the way; hashed is up to where it is computed. */
static annal_status parse_sections(annal_pack *pack, struct text *text, const char *hashed,
                                   annal_error *err)
{
    while (text->at < text->end) {
        struct pack_section *section =
            annal__array_add(&pack->sections, &pack->section_count, sizeof *section);
        if (section == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
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
            return annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", pack->file);
        if (is_for_people(section->kind)) {
            hash_text(pack, hashed, begin);
            hashed = text->at;
        }
    }
    hash_text(pack, hashed, text->end);
    return ANNAL_OK;
}

bool annal__section_takes(const struct pack_section *section, annal_slice type)
{
    const char *at = section->types == NULL ? "" : section->types;
    for (size_t len; (len = strlen(at)) > 0; at += len + 1) {
        bool same = type.len >= len - 1 && memcmp(type.ptr, at, len - 1) == 0;
        if (same && (at[len - 1] == '*' || (type.len == len && type.ptr[len - 1] == at[len - 1])))
            return true;
    }
    return false;
}

static bool has_section(const annal_pack *pack, enum pack_section_kind kind)
{
    for (size_t i = 0; i < pack->section_count; i++)
        if (pack->sections[i].kind == kind)
            return true;
    return false;
}

bool annal__pack_forgets(const annal_pack *pack)
{
    return has_section(pack, PACK_FORGET);
}

bool annal__pack_settles(const annal_pack *pack)
{
    return has_section(pack, PACK_SETTLE);
}

/* ---- Parsing and freeing ---- */

static annal_status parse(const char *name, annal_slice text, annal_pack **out_pack,
                          annal_error *err)
{
    struct text rest = {text.ptr, text.ptr + text.len, 1};
    annal_status status = ANNAL_OK;
    annal_pack *pack = annal__zalloc(sizeof *pack);
    if (pack != NULL)
        pack->file = annal__strndup(name, strlen(name));
    if (pack == NULL || pack->file == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", name);
        goto done;
    }
    if (text.len == 0 || memchr(text.ptr, '\0', text.len) != NULL) {
        status = annal__fail(err, ANNAL_ERR_INVALID, "%s: a pack is a text file", name);
        goto done;
    }
    status = parse_header(pack, take_line(&rest), err);
    if (status < 0)
        goto done;
    status = check_comments(pack, rest, err);
    if (status < 0)
        goto done;
    pack->tables_line = rest.line;
    pack->tables = take_body(&rest, false);
    if (pack->tables == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "pack '%s'", name);
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

/* Without the trial, which a test makes: it is built in. Each process that opens an index reads
 * it, and nobody asks for the names and hashes of a pack that has sessions.db to itself. */
annal_status annal__pack_core(annal_pack **out_pack, annal_error *err)
{
    annal_status status = parse("packs/core.sql", annal_slice_of(annal__sql_core), out_pack, err);
    if (status < 0)
        return status;
    (*out_pack)->tried = true;
    (*out_pack)->blank = annal__zalloc(sizeof *(*out_pack)->blank);
    if ((*out_pack)->blank != NULL)
        return ANNAL_OK;
    annal_pack_free(*out_pack);
    return annal__fail(err, ANNAL_ERR_NOMEM, "the core pack");
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
