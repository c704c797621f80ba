/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of a pack: the commands `annal NOUN VERB` that its file defines.
 *
 * (1) A noun is followed by its verbs:
 *         -- noun NOUN   "SENTENCE"
 *         -- verb NOUN VERB   appends TYPE   session SESSION   "SENTENCE"
 *             The verb appends one event of this type, through fills and guards. {NAME} in SESSION
 *             is replaced by the value of NAME: team_{TEAM}.
 *         -- verb NOUN VERB   appends TYPE   each   "SENTENCE"
 *             The verb appends one such event for each row of the SELECT that follows: with the
 *             data in its column data, to the session in its column session. A column says is the
 *             line that people see. A row with a text in the column subject may be refused by a
 *             guard: the refusal is reported about the subject, and the other rows follow. All
 *             rows are read before the first event is appended. A value of another kind than text
 *             in one of the columns is an error.
 *         -- verb NOUN VERB   selects   [lines]   [session SESSION]   "SENTENCE"
 *             The verb prints the rows of the one SELECT that follows; ?1, ?2, … are the values in
 *             the order of their lines, and the only parameters. The SELECT can also use the
 *             databases that packs keep for SESSION. lines: people see only the last column, which
 *             --json leaves out.
 *         -- verb NOUN VERB   writes   "SENTENCE"
 *             The verb writes each row of the SELECT as a file below the operand DIR: the text
 *             content into folder/name followed by suffix. Files whose content is NULL are deleted
 *             first. A value of another kind in one of the columns is an error, before any file is
 *             changed. Bytes of name that are not safe in a file name are written as %XX. No link
 *             below DIR is followed (journal/base/below.h).
 *     The command annal may contain code for a verb of a built-in pack. Such a verb needs no
 *     session in the file, and has the word `runs` if it neither appends one event nor runs one
 *     SELECT.
 * (2) The lines directly below define the values and the output. Each begins with two dashes and
 *     three spaces. A line with more spaces continues the line above.
 *         NAME KIND [MEMBER] [= JSON] [(A|B|…)] "HELP"   an operand
 *         [NAME] …                                       an optional operand
 *         --NAME VALUE KIND [MEMBER] [= JSON] [(A|B|…)] [required] "HELP"
 *         --NAME flag [MEMBER] "HELP"
 *         MEMBER = JSON   a constant of data
 *         says TEXT       a line for people, printed after the event; {NAME} is a value, {MEMBER} a
 *                         member of data, {seq} and {session_id} are those of the event
 *         none TEXT       a line for people if a SELECT with `each` or `writes` returns no row; a
 *                         verb that writes then fails with it
 *         needs PACK      another pack that must be enabled
 *         about TEXT      paragraphs of its help
 *         example TEXT    commands
 *     KIND is one of enum annal_field_kind (annal/verb.h), in small letters. MEMBER is the member
 *     of data that receives the value: content, run.id. JSON is the default; A, B, … are the only
 *     allowed values; (1..100) are those of a number.
 * (3) Verbs do not change the content of tables, so the hashes that decide about a rebuild leave
 *     them out.
 */
#include "index/pack/builtin.h"
#include "index/pack/pack.h"

#include "index/db/db.h"
#include "index/db/token.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"

#include <annal/verb.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum bytes of a name on the command line, maximum bytes of a path into data, and maximum
 * number of values of a SELECT. */
enum { NAME_BYTES_MAX = 24, MEMBER_BYTES_MAX = 60, PARAMS_MAX = 16 };

#define ITEM_PREFIX "--   "
#define VERB_GRAMMAR                                                                               \
    "'-- verb NOUN VERB   appends TYPE   session SESSION   \"SENTENCE\"', or selects, or writes"

/* The text of a section that is being read; words are cut out of it in place. */
struct reading {
    const annal_pack *pack;
    unsigned line; /* number of the line that is being read */
    unsigned next; /* number of the line at which rest begins */
    char *rest;
};

static annal_status wrong(const struct reading *r, annal_error *err, const char *format, ...)
    ANNAL_PRINTF(3, 4);

static annal_status wrong(const struct reading *r, annal_error *err, const char *format, ...)
{
    char what[320];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return annal__fail(err, ANNAL_ERR_INVALID, "%s:%u: %s", r->pack->file, r->line, what);
}

/* ---- Words ---- */

static char *skip_space(char *at)
{
    return at + strspn(at, " \t");
}

/* Remove the next word of a line, ended in place with a NUL; empty at the end of the line. */
static char *take(char **at)
{
    char *word = skip_space(*at), *end = word + strcspn(word, " \t");
    *at = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

static bool take_if(char **at, const char *word)
{
    char *next = skip_space(*at);
    size_t len = strlen(word);
    bool is = strncmp(next, word, len) == 0 && strchr(" \t", next[len]) != NULL;
    *at = is ? next + len : *at;
    return is;
}

/*
 * Remove "TEXT" at the end of a line; TEXT may contain quotes. Returns TEXT, or NULL if something
 * else follows.
 */
static char *take_sentence(char **at)
{
    char *text = skip_space(*at), *end = text + strlen(text);
    while (end > text && strchr(" \t", end[-1]) != NULL)
        end--;
    if (end - text < 3 || text[0] != '"' || end[-1] != '"')
        return NULL;
    end[-1] = '\0';
    *at = end;
    return text + 1;
}

/*
 * Remove the next JSON value, which may contain spaces within strings and brackets; NULL if it is
 * not JSON.
 */
static char *take_json(char **at)
{
    char *json = skip_space(*at), *end = json;
    bool quoted = false;
    int depth = 0;
    for (; *end != '\0' && (quoted || depth > 0 || strchr(" \t", *end) == NULL); end++) {
        if (quoted && *end == '\\' && end[1] != '\0')
            end++;
        else if (*end == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (strchr("[{", *end) != NULL) - (strchr("]}", *end) != NULL);
    }
    *at = *end == '\0' ? end : end + 1;
    *end = '\0';
    return annal__json_check(annal_slice_of(json), ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID ? json
                                                                                             : NULL;
}

/*
 * Return whether a word can be the name of a noun, a verb, an option or an operand: a letter,
 * followed by letters, digits and dashes. large: the letters are capitals.
 */
static bool is_name(const char *word, bool large)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < len; i++) {
        bool letter = word[i] >= (large ? 'A' : 'a') && word[i] <= (large ? 'Z' : 'z');
        if (!letter && (i == 0 || (word[i] != '-' && !isdigit((unsigned char)word[i]))))
            return false;
    }
    return len > 0 && len <= NAME_BYTES_MAX;
}

/* Return whether a word can be a member of data: content, run.id. */
static bool is_member(const char *word)
{
    size_t len = strlen(word);
    char before = '.';
    for (size_t i = 0; i < len; before = word[i++])
        if (!isalpha((unsigned char)word[i]) && word[i] != '_' &&
            (before == '.' || (word[i] != '.' && !isdigit((unsigned char)word[i]))))
            return false;
    return before != '.' && len <= MEMBER_BYTES_MAX;
}

/* ---- Lines below a verb, rule 2 ---- */

bool annal__pack_is_verb_line(annal_slice line)
{
    return line.len > strlen(ITEM_PREFIX) &&
           memcmp(line.ptr, ITEM_PREFIX, strlen(ITEM_PREFIX)) == 0;
}

/* Return the total length of the lines of a verb at the beginning of a section's text. */
static size_t head_len(const char *text)
{
    size_t len = 0;
    for (size_t line; line = strcspn(text + len, "\n"),
                      annal__pack_is_verb_line((annal_slice){text + len, line});)
        len += line + (text[len + line] == '\n');
    return len;
}

/* Remove the next of a verb's lines with its continuation lines, ended in place with a NUL; NULL
 * after the last. */
static char *take_item(struct reading *r)
{
    char *item = r->rest, *end = item;
    if (*item == '\0')
        return NULL;
    r->line = r->next;
    for (;; end++) {
        end += strcspn(end, "\n");
        r->next++;
        if (*end == '\0' || strncmp(end + 1, ITEM_PREFIX " ", strlen(ITEM_PREFIX) + 1) != 0)
            break;
    }
    r->rest = *end == '\0' ? end : end + 1;
    *end = '\0';
    return item;
}

/* Join the lines of an item, replacing each line break and its dashes by spaces. */
static void join(char *item)
{
    while ((item = strstr(item, "\n--")) != NULL)
        memset(item, ' ', 3);
}

/*
 * Return the text that begins at `text` in an item, with its continuation lines. In each line, the
 * indentation up to the column of the first line is replaced by `indent` spaces. The text is moved
 * to the beginning of item.
 */
static char *take_text(char *item, const char *text, size_t indent)
{
    size_t column = (size_t)(text - item);
    char *out = item;
    for (bool more = true; more;) {
        size_t len = strcspn(text, "\n");
        const char *next = text + len + 1;
        more = text[len] == '\n';
        memset(out, ' ', indent);
        memmove(out + indent, text, len);
        out += indent + len;
        if (more)
            *out++ = '\n';
        text = more ? next + 2 : text;
        for (size_t i = 2; more && i < column && *text == ' '; i++)
            text++;
    }
    *out++ = '\n';
    *out = '\0';
    return item;
}

/* ---- Fields ---- */

/* Parse the line of a value after its KIND: member, default, choices, required, help. */
static annal_status parse_rest(const struct reading *r, annal_field *field, char *at,
                               annal_error *err)
{
    while (field->help == NULL) {
        at = skip_space(at);
        char *word = at;
        if (*at == '"') {
            field->help = take_sentence(&at);
            if (field->help == NULL)
                return wrong(r, err, "a line must end with its help in quotes, not with %s", word);
        } else if (*at == '(' && strchr(at, ')') != NULL && field->choices == NULL) {
            field->choices = at + 1;
            at += strcspn(at, ")");
            *at++ = '\0';
        } else if (take_if(&at, "=") && field->preset == NULL) {
            field->preset = take_json(&at);
            if (field->preset == NULL)
                return wrong(r, err, "JSON must follow =, such as \"all\", 10 or [\"a\",\"b\"]");
        } else if (take_if(&at, "required") && field->name != NULL) {
            field->required = true;
        } else if (*(word = take(&at)) == '\0') {
            return wrong(r, err, "a line must end with its help in quotes");
        } else if (is_member(word) && field->to == NULL) {
            field->to = word;
        } else {
            return wrong(r, err, "'%s' is not allowed after the kind of a value", word);
        }
    }
    return ANNAL_OK;
}

/* Parse a field: word is the first word of its line, and the other words begin at `at`. */
static annal_status parse_field(const struct reading *r, annal_field *field, char *word, char *at,
                                annal_error *err)
{
    /* words of the kinds, in the order of enum annal_field_kind */
    static const char *const kinds[] = {"",     "text", "body", "file", "number",
                                        "json", "flag", "list", "time"};
    size_t len = strlen(word);
    if (strncmp(word, "--", 2) == 0) {
        field->name = word + 2;
        if (!take_if(&at, "flag"))
            field->value = take(&at);
        else
            field->kind = ANNAL_FIELD_FLAG;
        if (!is_name(field->name, false) || (field->value != NULL && !is_name(field->value, true)))
            return wrong(r, err, "write an option as '--name VALUE kind', or '--name flag'");
    } else {
        field->required = word[0] != '[';
        if (word[0] == '[' && word[len - 1] == ']')
            word[len - 1] = '\0';
        field->value = field->required ? word : word + 1;
        if (!is_name(field->value, true))
            return wrong(r, err,
                         "'%s' cannot begin a line of a verb: use NAME, [NAME], --NAME, MEMBER =, "
                         "says, none, needs, about or example",
                         word);
    }
    word = field->kind == ANNAL_FIELD_FLAG ? word : take(&at);
    for (size_t i = ANNAL_FIELD_TEXT; i < sizeof kinds / sizeof *kinds; i++)
        if (i != ANNAL_FIELD_FLAG && strcmp(word, kinds[i]) == 0)
            field->kind = (annal_field_kind)i;
    if (field->kind == ANNAL_FIELD_END)
        return wrong(
            r, err, "'%s' is not a kind of value: use text, body, file, number, json, list or time",
            word);
    return parse_rest(r, field, at, err);
}

/* Parse the line of a constant, MEMBER = JSON, into *field. word is MEMBER; the JSON begins at
 * `at`. */
static annal_status parse_constant(const struct reading *r, annal_field *field, char *word,
                                   char *at, annal_error *err)
{
    field->kind = ANNAL_FIELD_CONST;
    field->to = word;
    field->preset = take_json(&at);
    if (!is_member(word) || field->preset == NULL || *skip_space(at) != '\0')
        return wrong(r, err, "write a constant of data as 'MEMBER = JSON'");
    return ANNAL_OK;
}

/* Return the name of an option (its member name) or of an operand (its member value); NULL for a
 * constant. */
static const char *called(const annal_field *field)
{
    return field->name != NULL ? field->name : field->value;
}

/*
 * Check a field against the fields before it: each name occurs once, and operands can be
 * distinguished by their position.
 */
static annal_status check_field(const struct reading *r, const annal_verb *verb,
                                const annal_field *field, annal_error *err)
{
    static const char *const common[] = {"store", "json", "wait", "help", "version"};
    static const char *const of_events[] = {"event-id", "cause"};
    bool taken = false;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        taken |= field->name != NULL && strcmp(field->name, common[i]) == 0;
    for (size_t i = 0; i < sizeof of_events / sizeof *of_events; i++)
        taken |=
            field->name != NULL && verb->type != NULL && strcmp(field->name, of_events[i]) == 0;
    if (taken)
        return wrong(r, err, "every verb has an option --%s: use another name", field->name);
    for (const annal_field *before = verb->fields; before < field; before++) {
        if (called(field) != NULL && called(before) != NULL &&
            strcmp(called(field), called(before)) == 0)
            return wrong(r, err, "'%s' occurs twice", called(field));
        if (field->name != NULL || field->value == NULL || before->name != NULL ||
            before->value == NULL)
            continue;
        if (before->kind == ANNAL_FIELD_LIST)
            return wrong(r, err, "%s takes all remaining operands: it must be the last",
                         before->value);
        if (field->required && !before->required)
            return wrong(r, err, "%s is optional, so %s after it must be optional, too",
                         before->value, field->value);
    }
    unsigned long long least = 0, most = 0;
    if (field->choices != NULL && field->kind == ANNAL_FIELD_NUMBER &&
        (sscanf(field->choices, "%llu..%llu", &least, &most) != 2 || least > most))
        return wrong(r, err, "write the allowed values of a number as (1..100)");
    if (field->choices != NULL && field->kind != ANNAL_FIELD_TEXT &&
        field->kind != ANNAL_FIELD_LIST && field->kind != ANNAL_FIELD_NUMBER)
        return wrong(r, err, "only a text, a list or a number has choices");
    if ((verb->type == NULL || verb->kind == ANNAL_VERB_EACH) && field->to != NULL)
        return wrong(r, err, "'%s' cannot be a member of data: this verb %s", field->to,
                     verb->type == NULL ? "appends no event" : "takes data from its SELECT");
    return ANNAL_OK;
}

/* ---- Verbs ---- */

static annal_status parse_item(const struct reading *r, annal_verb *verb, annal_field *fields,
                               size_t *count, char *item, annal_error *err)
{
    static const char *const words[] = {"says", "about", "example", "none", "needs"};
    const char **const texts[] = {&verb->said, &verb->about, &verb->examples, &verb->none,
                                  &verb->needs};
    char *at = item + 2, *word = skip_space(at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!take_if(&at, words[i]))
            continue;
        if (*texts[i] != NULL || *skip_space(at) == '\0')
            return wrong(r, err, "a verb has only one '%s', with a text", words[i]);
        char *text = take_text(item, skip_space(at), i == 2 ? 2 : 0);
        if (i != 2) /* remove the newline at the end, which only examples keep */
            text[strlen(text) - 1] = '\0';
        *texts[i] = text;
        return ANNAL_OK;
    }
    join(item);
    annal_field *field = &fields[(*count)++];
    word = take(&at);
    annal_status status = take_if(&at, "=") ? parse_constant(r, field, word, at, err)
                                            : parse_field(r, field, word, at, err);
    return status < 0 ? status : check_field(r, verb, field, err);
}

/* Check that each {NAME} in the session of a verb is an operand or an option of the verb. */
static annal_status check_session(const struct reading *r, const annal_verb *verb, annal_error *err)
{
    for (const char *at = verb->session; at != NULL && (at = strchr(at, '{')) != NULL; at++) {
        size_t len = strcspn(at, "}") - 1;
        const annal_field *field = verb->fields;
        while (
            field->kind != ANNAL_FIELD_END &&
            (called(field) == NULL || !annal__slice_is((annal_slice){at + 1, len}, called(field))))
            field++;
        if (field->kind == ANNAL_FIELD_END || at[len + 1] != '}')
            return wrong(r, err,
                         "session %s: each {NAME} must be an operand or an option of the verb",
                         verb->session);
    }
    return ANNAL_OK;
}

/* If a token begins a parameter, check that it is one of ?1 to ?N, where N is the number of fields,
 * and raise verb->params to its number. Text in quotes and comments has no parameter. */
static annal_status check_param(const struct reading *r, annal_verb *verb,
                                const struct token *token, annal_error *err)
{
    const char *end = token->text.ptr + token->text.len, *at = end;
    unsigned long number = 0;
    unsigned fields = 0;
    if (token->kind == TOKEN_STRING || token->kind == TOKEN_NAME ||
        strchr("?:@$", token->text.ptr[0]) == NULL)
        return ANNAL_OK;
    while (verb->fields[fields].kind != ANNAL_FIELD_END)
        fields++;
    struct token next = annal__token_next(&at);
    if (next.kind == TOKEN_WORD && next.text.ptr == end)
        end += next.text.len;
    if (token->text.ptr[0] == '?' && isdigit((unsigned char)token->text.ptr[1]))
        number = strtoul(token->text.ptr + 1, NULL, 10);
    if (number == 0 || number > fields)
        return wrong(r, err,
                     "parameter '%.*s' is not one of ?1 to ?%u, the values of the verb '%s'",
                     (int)(end - token->text.ptr), token->text.ptr, fields, verb->name);
    verb->params = number > verb->params ? (unsigned)number : verb->params;
    return ANNAL_OK;
}

/* Set verb->sql to the SELECT in the SQL of a verb, without the semicolon and the comments around
 * it; sql, whose first line is r->next, is changed in place. */
static annal_status cut_select(struct reading *r, annal_verb *verb, char *sql, annal_error *err)
{
    const char *at = sql, *counted = sql;
    struct token token = annal__token_next(&at);
    char *begin = sql + (token.text.ptr - sql), *end = begin;
    bool good = annal__token_is(&token, "select") || annal__token_is(&token, "with") ||
                annal__token_is(&token, "values");
    annal_status status = ANNAL_OK;
    for (r->line = r->next;
         status >= 0 && token.kind != TOKEN_END && !annal__slice_is(token.text, ";");
         token = annal__token_next(&at)) {
        for (; counted < token.text.ptr; counted++)
            r->line += *counted == '\n';
        end = sql + (token.text.ptr + token.text.len - sql);
        status = check_param(r, verb, &token, err);
    }
    if (status < 0)
        return status;
    r->line = verb->line;
    if (token.kind != TOKEN_END)
        token = annal__token_next(&at);
    if (!good || token.kind != TOKEN_END)
        return wrong(r, err, "a verb that selects needs one SELECT below its lines");
    *end = '\0';
    verb->sql = begin;
    return ANNAL_OK;
}

/* Check that each { in a sentence for people has its }. */
static annal_status check_said(const struct reading *r, const char *word, const char *said,
                               annal_error *err)
{
    for (const char *at = said; at != NULL && (at = strchr(at, '{')) != NULL; at++)
        if (strchr(at, '}') == NULL)
            return wrong(r, err, "%s: a { without its }", word);
    return ANNAL_OK;
}

/* Check that a verb that writes files has the operand DIR. */
static bool has_directory(const annal_verb *verb)
{
    const annal_field *field = verb->fields;
    while (field->kind != ANNAL_FIELD_END &&
           (field->name != NULL || field->value == NULL || strcmp(field->value, "DIR") != 0))
        field++;
    return field->kind == ANNAL_FIELD_TEXT && field->required;
}

/*
 * Check that a verb has all parts that its kind needs, and no others, after all its lines were
 * read; sql is the text below the lines.
 */
static annal_status check_verb(struct reading *r, annal_verb *verb, char *sql, annal_error *err)
{
    const char *at = sql;
    bool of_user = annal__builtin_pack(r->pack->name) == NULL;
    bool appends = verb->kind == ANNAL_VERB_APPENDS;
    bool selects = !appends && verb->kind != ANNAL_VERB_RUNS;
    bool acts = verb->kind == ANNAL_VERB_EACH || verb->kind == ANNAL_VERB_WRITES;
    if (of_user && verb->kind == ANNAL_VERB_RUNS)
        return wrong(r, err, "only verbs of built-in packs can run code");
    if (verb->kind == ANNAL_VERB_NONE ||
        (verb->type != NULL) != (appends || verb->kind == ANNAL_VERB_EACH))
        return wrong(r, err, "a verb is " VERB_GRAMMAR);
    if (selects && verb->said != NULL)
        return wrong(r, err, "a verb that selects prints rows, so it cannot have 'says'");
    if (verb->none != NULL && !acts)
        return wrong(r, err, "only a verb with 'each' or 'writes' can have 'none'");
    if (verb->kind == ANNAL_VERB_WRITES && !has_directory(verb))
        return wrong(r, err, "a verb that writes files needs the line 'DIR   text   \"HELP\"'");
    if (of_user && appends && verb->session == NULL)
        return wrong(r, err, "the session of the event is missing: add 'session NAME'");
    for (size_t i = 0; selects && verb->fields[i].kind != ANNAL_FIELD_END; i++)
        if (i == PARAMS_MAX)
            return wrong(r, err, "a SELECT takes at most %d values", PARAMS_MAX);
    annal_status status = check_said(r, "says", verb->said, err);
    if (status >= 0)
        status = check_said(r, "none", verb->none, err);
    if (status >= 0)
        status = check_session(r, verb, err);
    if (status < 0 || selects)
        return status < 0 ? status : cut_select(r, verb, sql, err);
    return annal__token_next(&at).kind == TOKEN_END
               ? ANNAL_OK
               : wrong(r, err, "only a verb that selects has SQL below its lines");
}

/* Parse the clauses of a verb, which follow NOUN VERB in its first line. */
static annal_status parse_clauses(const struct reading *r, annal_verb *verb, char *at,
                                  annal_error *err)
{
    /* a word, and the kinds before and after it */
    static const struct {
        const char *word;
        annal_verb_kind from, to;
    } words[] = {{"selects", ANNAL_VERB_NONE, ANNAL_VERB_SELECTS},
                 {"lines", ANNAL_VERB_SELECTS, ANNAL_VERB_LINES},
                 {"writes", ANNAL_VERB_NONE, ANNAL_VERB_WRITES},
                 {"runs", ANNAL_VERB_NONE, ANNAL_VERB_RUNS},
                 {"each", ANNAL_VERB_APPENDS, ANNAL_VERB_EACH}};
    for (at = skip_space(at); *at != '"' && *at != '\0'; at = skip_space(at)) {
        size_t i = 0;
        while (i < sizeof words / sizeof *words &&
               (verb->kind != words[i].from || !take_if(&at, words[i].word)))
            i++;
        if (i < sizeof words / sizeof *words) {
            verb->kind = words[i].to;
        } else if (verb->kind == ANNAL_VERB_NONE && take_if(&at, "appends")) {
            verb->kind = ANNAL_VERB_APPENDS;
            verb->type = take(&at);
            const annal_draft draft = {.type = annal_slice_of(verb->type),
                                       .data = ANNAL_SLICE("{}")};
            if (annal_draft_check(&draft, NULL) < 0)
                return wrong(r, err, "'%s' is not an event type", verb->type);
        } else if (take_if(&at, "session") && verb->session == NULL) {
            verb->session = take(&at);
        } else {
            break;
        }
    }
    verb->summary = take_sentence(&at);
    return verb->summary == NULL ? wrong(r, err, "a verb is " VERB_GRAMMAR) : ANNAL_OK;
}

/* Parse a verb: NOUN VERB and its clauses, and the lines below. */
static annal_status parse_verb(struct reading *r, const annal_noun *noun, annal_verb *verb,
                               char *sql, annal_error *err)
{
    size_t count = 1;
    char *line = take_item(r);
    join(line);
    const char *word = take(&line);
    verb->line = r->line;
    verb->name = take(&line);
    if (strcmp(word, noun->name) != 0)
        return wrong(r, err, "the verbs of '%s' must follow '-- noun %s'", word, word);
    if (!is_name(verb->name, false))
        return wrong(r, err, "'%s' cannot be the name of a verb: use a-z, 0-9 and -", verb->name);
    for (const annal_verb *before = noun->verbs; before < verb; before++)
        if (strcmp(before->name, verb->name) == 0)
            return wrong(r, err, "the verb '%s %s' occurs twice", noun->name, verb->name);
    for (const char *c = r->rest; *c != '\0'; c++)
        count += *c == '\n';
    annal_field *fields = annal__zalloc((count + 1) * sizeof *fields);
    verb->fields = fields;
    if (fields == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the verbs of pack '%s': out of memory",
                           r->pack->file);
    annal_status status = parse_clauses(r, verb, line, err);
    char *item = NULL;
    for (count = 0; status >= 0 && (item = take_item(r)) != NULL;)
        status = parse_item(r, verb, fields, &count, item, err);
    r->line = r->next;
    if (status >= 0 && strncmp(sql, "--", 2) == 0)
        return wrong(r, err,
                     "a line of a verb must begin with two dashes and three spaces (put an empty "
                     "line before a comment)");
    r->line = verb->line;
    return status < 0 ? status : check_verb(r, verb, sql, err);
}

/* ---- All verbs of a pack ---- */

static annal_status parse_noun(struct reading *r, size_t i, annal_noun *noun, annal_error *err)
{
    char *line = r->pack->sections[i].head;
    const char *at = r->pack->sections[i].sql;
    size_t verbs = 0;
    for (i++; i < r->pack->section_count && r->pack->sections[i].kind != PACK_NOUN; i++)
        verbs += r->pack->sections[i].kind == PACK_VERB;
    noun->line = r->line;
    noun->name = take(&line);
    noun->summary = take_sentence(&line);
    noun->verbs = annal__zalloc((verbs + 1) * sizeof *noun->verbs);
    if (noun->verbs == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the verbs of pack '%s': out of memory",
                           r->pack->file);
    if (!is_name(noun->name, false) || noun->summary == NULL)
        return wrong(r, err, "write a noun as '-- noun NOUN   \"SENTENCE\"'; use a-z, 0-9 and -");
    for (const annal_noun *before = r->pack->nouns; before < noun; before++)
        if (strcmp(before->name, noun->name) == 0)
            return wrong(r, err, "the noun '%s' occurs twice", noun->name);
    return annal__token_next(&at).kind == TOKEN_END
               ? ANNAL_OK
               : wrong(r, err, "a noun has no SQL below its line");
}

/* Separate the lines of a verb from its SQL, in memory that can be changed: section->head contains
 * both, r->rest is the lines, *out_sql the SQL. */
static annal_status split(struct reading *r, struct pack_section *section, char **out_sql,
                          annal_error *err)
{
    size_t first = strlen(section->head), head = head_len(section->sql);
    size_t sql = strlen(section->sql) - head;
    char *text = annal__realloc_array(section->head, first + head + sql + 3, 1);
    if (text == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the verbs of pack '%s': out of memory",
                           r->pack->file);
    section->head = r->rest = text;
    text[first] = '\n';
    memcpy(text + first + 1, section->sql, head);
    text[first + 1 + head] = '\0';
    *out_sql = text + first + head + 2;
    memcpy(*out_sql, section->sql + head, sql + 1);
    for (char *c = r->rest; *c != '\0'; c++)
        *c = *c == '\r' ? ' ' : *c;
    return ANNAL_OK;
}

annal_status annal__pack_read_verbs(annal_pack *pack, annal_error *err)
{
    annal_noun *noun = NULL, *next = annal__zalloc((pack->section_count + 1) * sizeof *next);
    annal_verb *verb = NULL;
    annal_status status = ANNAL_OK;
    pack->nouns = next;
    if (next == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the verbs of pack '%s': out of memory",
                           pack->file);
    for (size_t i = 0; status >= 0 && i < pack->section_count; i++) {
        struct pack_section *section = &pack->sections[i];
        struct reading r = {pack, section->line - 1, section->line - 1, NULL};
        char *sql = NULL;
        if (section->kind == PACK_NOUN) {
            noun = next++;
            status = parse_noun(&r, i, noun, err);
            verb = (annal_verb *)noun->verbs;
        } else if (section->kind == PACK_VERB && noun == NULL) {
            status = wrong(&r, err, "a verb must follow the line of its noun, '-- noun NOUN'");
        } else if (section->kind == PACK_VERB) {
            status = split(&r, section, &sql, err);
            if (status >= 0)
                status = parse_verb(&r, noun, verb++, sql, err);
        }
    }
    return status;
}

void annal__pack_free_verbs(annal_pack *pack)
{
    for (annal_noun *noun = pack->nouns; noun != NULL && noun->name != NULL; noun++) {
        for (const annal_verb *verb = noun->verbs; verb != NULL && verb->name != NULL; verb++)
            annal__free((void *)verb->fields);
        annal__free((void *)noun->verbs);
    }
    annal__free(pack->nouns);
}

const annal_noun *annal_pack_nouns(const annal_pack *pack)
{
    return pack->nouns;
}

/* ---- Checking the SELECTs of verbs ---- */

/*
 * Return whether SQLite's message is about a table that may belong to another pack, or to the
 * store.
 */
static bool is_elsewhere(const annal_error *why)
{
    return strstr(why->message, "no such table: ") != NULL;
}

/* Check that the SELECT of a verb that appends or writes has the columns that its kind needs. */
static annal_status check_columns(const annal_pack *pack, const annal_verb *verb,
                                  sqlite3_stmt *stmt, annal_error *err)
{
    static const char *const each[] = {"session", "data", NULL};
    static const char *const writes[] = {"folder", "name", "suffix", "content", NULL};
    static const char *const none[] = {NULL};
    const char *const *names = verb->kind == ANNAL_VERB_EACH     ? each
                               : verb->kind == ANNAL_VERB_WRITES ? writes
                                                                 : none;
    for (; stmt != NULL && *names != NULL; names++) {
        int at = 0, count = sqlite3_column_count(stmt);
        while (at < count && strcmp(sqlite3_column_name(stmt, at), *names) != 0)
            at++;
        if (at == count)
            return annal__fail(err, ANNAL_ERR_SQL,
                               "%s:%u: the SELECT of the verb '%s' needs a column '%s'", pack->file,
                               verb->line, verb->name, *names);
    }
    return ANNAL_OK;
}

static annal_status check_select(const annal_pack *pack, const struct pack_section *section,
                                 const annal_verb *verb, sqlite3 *db, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    struct allowed allowed = {0};
    annal_error why = {0};
    const char *at = section->sql;
    const char *begin = annal__token_next(&at).text.ptr;
    unsigned line = section->line;
    annal_status status =
        annal__db_prepare_select(db, annal_slice_of(verb->sql), &allowed, &stmt, &why);
    int offset = status < 0 ? sqlite3_error_offset(db) : 0;
    annal__db_end_select(db);
    for (const char *c = section->sql; c < begin + (offset < 0 ? 0 : offset); c++)
        line += *c == '\n';
    if (status == ANNAL_ERR_NOMEM && err != NULL)
        *err = why;
    else if (status < 0 && is_elsewhere(&why))
        status = ANNAL_OK;
    else if (status < 0)
        annal__fail(err, status, "%s:%u: %s", pack->file, line,
                    why.message + (strncmp(why.message, "SQL: ", 5) == 0 ? 5 : 0));
    if (status >= 0)
        status = check_columns(pack, verb, stmt, err);
    sqlite3_finalize(stmt);
    return status;
}

annal_status annal__pack_check_verbs(const annal_pack *pack, sqlite3 *db, annal_error *err)
{
    const annal_noun *noun = pack->nouns;
    const annal_verb *verb = noun->verbs;
    char *stem = noun->name == NULL ? NULL : annal__pack_stem(pack, pack->database);
    annal_status status =
        noun->name == NULL || stem != NULL
            ? ANNAL_OK
            : annal__fail(err, ANNAL_ERR_NOMEM, "read the verbs of pack '%s': out of memory",
                          pack->file);
    /* let SQL name the pack's own tables as STEM.TABLE, too: stem is the name of their database */
    if (stem != NULL)
        sqlite3_db_config(db, SQLITE_DBCONFIG_MAINDBNAME, stem);
    for (size_t i = 0; status >= 0 && i < pack->section_count; i++) {
        if (pack->sections[i].kind != PACK_VERB)
            continue;
        while (verb->name == NULL)
            verb = (++noun)->verbs;
        if (verb->sql != NULL)
            status = check_select(pack, &pack->sections[i], verb, db, err);
        verb++;
    }
    sqlite3_db_config(db, SQLITE_DBCONFIG_MAINDBNAME, "main");
    annal__free(stem);
    return status;
}
