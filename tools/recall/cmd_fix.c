/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What worked here: `annal fix` and `annal how`. A search finds the events that contain the words,
 * and passes their places to one SELECT, fix.sql or how.sql, which answers.
 */
#include "journal/base/json_walk.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/rows.h"
#include "tools/cli/store_open.h"
#include "tools/show/session_rows.h"
#include "tools/show/values.h"

#include <annal/search.h>

#include <inttypes.h>
#include <string.h>

enum { ROWS_USUAL = 5, ROWS_MAX = 100, HITS = 200, SESSIONS = 60, PLACES = 5, WORDS_MAX = 24 };
enum { STEPS_SHOWN = 12 }; /* to people */

extern const char annal__sql_recall_fix[], annal__sql_recall_how[];

/* The columns that both SELECTs begin with. */
enum { SESSION, SEQ, TIMESTAMP, SAID, STEPS, FACT };

struct fix {
    const struct args *args;
    annal_store *store;
    annal_index *index;
    annal_search_options options;
    struct session_ids chosen;
    struct buf text;    /* the operands, with spaces between them */
    struct buf pattern; /* of the error */
    annal_slice words[WORDS_MAX];
    struct buf hits; /* items of a JSON array: [session, seq], or [session, seq, score] */
    uint64_t rows;
};

/* ---- The search ---- */

static void put_hit(struct fix *fix, const annal_search_hit *hit, bool has_score)
{
    must_printf(&fix->hits, fix->hits.len > 0 ? ",[\"%.*s\",%" PRIu64 : "[\"%.*s\",%" PRIu64,
                ANNAL_FMT(hit->session), hit->seq);
    must_printf(&fix->hits, has_score ? ",%.6f]" : "]", -hit->rank);
}

static int take_hit(void *arg, const annal_search_hit *hit)
{
    put_hit(arg, hit, false);
    return 0;
}

static int take_session(void *arg, const annal_search_session *found)
{
    for (size_t i = 0; i < found->place_count; i++)
        put_hit(arg, &found->places[i], true);
    return 0;
}

static int take_text(void *arg, const annal_row *row)
{
    must_append_slice(arg, row->values[0].bytes);
    return 0;
}

/* Set the words of a pattern: what is between words with #, as phrases, because the tokens of these
 * words differ. */
static void split_pattern(struct fix *fix)
{
    annal_slice text = annal__buf_slice(&fix->pattern);
    annal_slice *phrase = NULL;
    for (size_t at = 0, len; at < text.len && fix->options.word_count < WORDS_MAX; at += len + 1) {
        len = 0;
        while (at + len < text.len && text.ptr[at + len] != ' ')
            len++;
        if (memchr(text.ptr + at, '#', len) != NULL) {
            phrase = NULL;
            continue;
        }
        if (phrase == NULL) {
            phrase = &fix->words[fix->options.word_count++];
            phrase->ptr = text.ptr + at;
        }
        phrase->len = (size_t)(text.ptr + at + len - phrase->ptr);
    }
}

/* Find the results of calls that contain the words of the error. */
static annal_status find_errors(struct fix *fix, annal_error *err)
{
    annal_search_options *options = &fix->options;
    const annal_value param = text_value(annal__buf_slice(&fix->text));
    annal_status status = annal_index_sql(
        fix->index, ANNAL_SLICE("SELECT annal_pattern(annal_message(?1))"),
        &(annal_sql_options){.params = &param, .param_count = 1, .as_indexed = true}, take_text,
        &fix->pattern, err);
    split_pattern(fix);
    options->role = ANNAL_SLICE("tool");
    options->order = ANNAL_SEARCH_NEWEST;
    options->limit = HITS;
    return status < 0 ? status : annal_search_each(fix->index, options, take_hit, fix, NULL, err);
}

/* Find the prompts and titles that contain words of the task. */
static annal_status find_tasks(struct fix *fix, annal_error *err)
{
    static const annal_slice titles[] = {{"session.created", 15}, {"session.updated", 15}};
    annal_search_options *options = &fix->options;
    fix->words[0] = annal__buf_slice(&fix->text);
    options->word_count = 1;
    options->limit = SESSIONS;
    options->places = PLACES;
    options->role = ANNAL_SLICE("user");
    annal_status status =
        annal_search_session_each(fix->index, options, take_session, fix, NULL, err);
    options->role = (annal_slice){0};
    options->types = titles;
    options->type_count = sizeof titles / sizeof *titles;
    return status < 0
               ? status
               : annal_search_session_each(fix->index, options, take_session, fix, NULL, err);
}

/* ---- The answer ---- */

/* Print the steps, a JSON array of {"seq", "tool", "input"}, a line each. */
static void print_steps(annal_slice steps)
{
    struct json_walk walk;
    SCOPED_BUF text = {0};
    annal_slice step;
    uint64_t count = 0;
    bool more = annal__json_walk_array(&walk, steps);
    while (more && annal__json_walk_item(&walk, &step)) {
        if (++count > STEPS_SHOWN)
            continue;
        printf("    %.*s ", ANNAL_FMT(annal__json_member(step, "seq")));
        for (int i = 0; i < 2; i++) {
            annal_slice value = annal__json_member(step, i == 0 ? "tool" : "input"), shown = {0};
            annal__buf_clear(&text);
            if (value.len > 0 && value.ptr[0] == '"' &&
                annal__json_text(value, &text, &shown) >= 0) {
                fputc(' ', stdout);
                (void)out_cut(i == 0 ? 30 : (out_columns() > 60 ? out_columns() - 30 : 120), shown);
            }
        }
        fputc('\n', stdout);
    }
    if (count > STEPS_SHOWN)
        printf("    and %" PRIu64 " more calls\n", count - STEPS_SHOWN);
}

static void print_object(const annal_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        printf("%s\"%s\":", i == 0 ? "{" : ",", row->names[i]);
        if (i == STEPS)
            out_slice(row->values[i].bytes);
        else
            rows_print_value(&row->values[i]);
    }
    fputs("}\n", stdout);
}

/* Print a row: an object, or a few lines. */
static int print_row(void *arg, const annal_row *row)
{
    struct fix *fix = arg;
    const annal_value *values = row->values;
    int64_t time_us = 0;
    fix->rows++;
    if (fix->args->json) {
        print_object(row);
        return !out_wanted();
    }
    fputs(fix->rows > 1 ? "\n" : "", stdout);
    out_style("1");
    out_plain(out_columns() > 0 ? session_begin(values[SESSION].bytes) : values[SESSION].bytes);
    out_style("0");
    printf("  seq %" PRId64 "  ", values[SEQ].integer);
    if (annal_time_parse(values[TIMESTAMP].bytes, &time_us, NULL) >= 0)
        out_shown_time(time_us);
    fputs("  ", stdout);
    out_plain(values[FACT].bytes);
    fputs("\n    ", stdout);
    out_plain(values[SAID].bytes);
    fputc('\n', stdout);
    print_steps(values[STEPS].bytes);
    return !out_wanted();
}

static annal_status answer(struct fix *fix, const char *sql, annal_error *err)
{
    SCOPED_BUF found = {0};
    char bounds[2][ANNAL_TIME_BYTES];
    struct time_range range;
    bool is_fix = sql == annal__sql_recall_fix;
    fields_range(fix->args, &range);
    if (is_fix)
        must_json(&found, "{\"pattern\":?,\"hits\":[#]}", annal__buf_slice(&fix->pattern),
                  annal__buf_slice(&fix->hits));
    else
        must_json(&found, "[#]", annal__buf_slice(&fix->hits));
    const annal_value params[] = {
        text_value(annal__buf_slice(&found)), time_or_null(range.since_us, bounds[0]),
        time_or_null(range.until_us, bounds[1]),
        integer_value((int64_t)fields_count(fix->args, "limit", ROWS_USUAL))};
    annal_status status = annal_index_sql(
        fix->index, annal_slice_of(sql),
        &(annal_sql_options){
            .params = params, .param_count = 4, .as_indexed = true, .limits = limits_usual},
        print_row, fix, err);
    return status;
}

static int ask(struct fix *fix, bool is_fix)
{
    annal_error err = {0};
    fix->options.words = fix->words;
    fix->options.limits = limits_usual;
    annal_status status = is_fix ? find_errors(fix, &err) : find_tasks(fix, &err);
    if (status >= 0)
        status = answer(fix, is_fix ? annal__sql_recall_fix : annal__sql_recall_how, &err);
    if (status < 0)
        return fields_fail_limited(&err);
    if (fix->rows > 0)
        return EXIT_DONE;
    return is_fix ? fail_refused("no call failed with this error; give the words of its message, "
                                 "or search for them: annal search --tool NAME WORD")
                  : fail_refused("no turn about this ended with a call that succeeded; search for "
                                 "its words: annal search WORD");
}

static int run_either(const struct args *args, bool is_fix)
{
    struct fix fix = {.args = args};
    for (int i = 0; i < args->operand_count; i++)
        must_printf(&fix.text, "%s%s", i > 0 ? " " : "", args->operands[i]);
    int exit_status = store_open(args, OPEN_READ, 0, &fix.store);
    if (exit_status == 0)
        exit_status = catch_up_open(fix.store, NULL, &fix.index);
    if (exit_status == 0)
        exit_status = session_ids_restrict(&fix.chosen, fix.index, args, &fix.options);
    if (exit_status == 0)
        exit_status = ask(&fix, is_fix);
    annal_index_close(fix.index);
    session_ids_done(&fix.chosen);
    annal__buf_done(&fix.text);
    annal__buf_done(&fix.pattern);
    annal__buf_done(&fix.hits);
    return store_close(fix.store, exit_status);
}

static int run_fix(const struct args *args)
{
    return run_either(args, true);
}

static int run_how(const struct args *args)
{
    return run_either(args, false);
}

#define RECALL_OPTIONS                                                                             \
    OPTION("session", "S", FIELD_SESSIONS, NULL, "session to search"),                             \
        OPTION("agent", "GLOB", FIELD_TEXT, NULL,                                                  \
               "part of the agent's name, or pattern with *, ?, [abc]"),                           \
        OPTION("model", "GLOB", FIELD_TEXT, NULL, "model, in the same way"), PROJECT_OPTION,       \
        OPTION("status", "S", FIELD_TEXT, NULL,                                                    \
               "only sessions with this status, such as idle or ended"),                           \
        OPTION("since", "T", FIELD_TIME, NULL, "at or after this time; ISO 8601, 2h or today"),    \
        OPTION("until", "T", FIELD_TIME, NULL,                                                     \
               "before this time; a day alone is its first instant"),                              \
        OPTION_WITH("limit", "N", FIELD_COUNT, NULL, "maximum number of answers (5)", .least = 1,  \
                    .most = ROWS_MAX),                                                             \
        FIELDS_END

static const struct field fix_fields[] = {
    OPERAND("ERROR", FIELD_LIST, NULL, "the message of the error"), RECALL_OPTIONS};
static const struct field how_fields[] = {OPERAND("TASK", FIELD_LIST, NULL, "words of the task"),
                                          RECALL_OPTIONS};

const struct command cmd_fix = {
    COMMAND("fix", "what was done after the same error", fix, fix_fields, run_fix)};

const struct command cmd_how = {COMMAND(
    "how", "the shortest calls with which such a task ended well", how, how_fields, run_how)};
