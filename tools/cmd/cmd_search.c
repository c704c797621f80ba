/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/slice.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_open.h"
#include "tools/cli/subject.h"
#include "tools/cli/width.h"
#include "tools/show/conversation.h"
#include "tools/show/event_out.h"
#include "tools/show/session_rows.h"

#include <annal/query.h>
#include <annal/search.h>

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { SESSIONS = 10, HITS = 20, CONTEXT_MAX = 1000, PLACES_MAX = 50 };

/* The marks around a found word: control characters for printing, stars for programs. */
#define MARK_BEGIN "\1"
#define MARK_END   "\2"
#define MARK_JSON  "**"

struct search {
    const struct args *args;
    annal_store *store;
    annal_index *index;
    annal_search_options options;
    annal_slice *words, *types;
    bool of_events;            /* whether events are listed, not sessions */
    bool has_notes;            /* whether the pack annotations is enabled */
    struct session_ids chosen; /* sessions of --session, --agent, --model, --project, --status */
    /* sessions of the working directory, which weigh more */
    struct session_list here;
    annal_slice *preferred;
    /* session of the last hit; agent, title and directory are those of this session */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct buf agent, title, directory;
    uint64_t context, hits;
    struct progress line;
    int exit_status;
};

/* ---- The query ---- */

static int read_options(struct search *search)
{
    const struct args *args = search->args;
    annal_search_options *options = &search->options;
    struct time_range range;
    int exit_status = EXIT_DONE;
    fields_list(args, "WORD", &search->words, &options->word_count);
    fields_list(args, "type", &search->types, &options->type_count);
    options->words = search->words;
    options->types = search->types;
    options->expression = fields_text(args, "match");
    options->role = fields_text(args, "role");
    options->tool = fields_text(args, "tool");
    fields_range(args, &range);
    options->since_us = range.since_us;
    options->until_us = range.until_us;
    search->of_events =
        args_has(args, "events") || args_has(args, "newest") || options->expression.len > 0;
    options->limit = fields_count(args, "limit", search->of_events ? HITS : SESSIONS);
    options->places = (uint32_t)fields_count(args, "places", 0);
    options->order = args_has(args, "newest") ? ANNAL_SEARCH_NEWEST : ANNAL_SEARCH_BEST;
    options->bookkeeping = args_has(args, "all");
    options->limits = limits_usual;
    options->mark_begin = args->json ? MARK_JSON : MARK_BEGIN;
    options->mark_end = args->json ? MARK_JSON : MARK_END;
    search->context = fields_count(args, "context", 0);
    if (exit_status == 0 && options->expression.len > 0 && options->word_count > 0)
        return fail_usage("give either search words or --match, not both");
    if (exit_status == 0 && options->expression.len == 0 && options->word_count == 0)
        return fail_usage("search needs words, such as: annal search connection refused");
    return exit_status;
}

/* ---- Hits ---- */

static bool is_break(char c)
{
    return c == MARK_BEGIN[0] || c == MARK_END[0] || c == '\n';
}

/* Print text of an event on a terminal, without control characters. */
static void print_snippet(annal_slice text)
{
    bool colours = out_colours(stdout);
    fputs("    ", stdout);
    for (size_t at = 0; at < text.len;) {
        size_t len = 0;
        while (at + len < text.len && !is_break(text.ptr[at + len]))
            len++;
        out_plain((annal_slice){text.ptr + at, len});
        at += len;
        if (at == text.len)
            break;
        char mark = text.ptr[at++];
        if (mark == '\n')
            fputc(' ', stdout);
        else if (colours)
            out_style(mark == MARK_BEGIN[0] ? "1;33" : "0");
        else
            fputs(mark == MARK_BEGIN[0] ? "[" : "]", stdout);
    }
    fputc('\n', stdout);
}

static int note_session(void *arg, const annal_row *row)
{
    struct search *search = arg;
    (void)!annal__buf_append_slice(&search->agent, row->values[0].bytes);
    (void)!annal__buf_append_slice(&search->title, row->values[1].bytes);
    (void)!annal__buf_append_slice(&search->directory, row->values[2].bytes);
    return 0;
}

/* Return the session that the notes in this session are about; the session itself if it has no
 * notes. */
static annal_slice about(const struct search *search, annal_slice session)
{
    size_t skip = strlen(SUBJECT_PREFIX);
    return search->has_notes && session.len > skip && annal__slice_begins(session, SUBJECT_PREFIX)
               ? (annal_slice){session.ptr + skip, session.len - skip}
               : session;
}

/* Find the agent and the title of a hit's session. Return false if both are empty, or if the hit
 * before is in the same session. */
static bool learn_session(struct search *search, annal_slice session)
{
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = about(search, session)};
    if (search->hits > 1 && annal__slice_is(session, search->session))
        return false;
    snprintf(search->session, sizeof search->session, "%.*s", ANNAL_FMT(session));
    annal__buf_clear(&search->agent);
    annal__buf_clear(&search->title);
    annal__buf_clear(&search->directory);
    /* ignore a failure: a session that is not in the tables yet is printed without agent and
     * title */
    (void)!annal_index_sql(
        search->index,
        ANNAL_SLICE("SELECT agent_id, title, working_directory FROM sessions WHERE id = ?1"),
        &(annal_sql_options){.params = &param, .param_count = 1, .as_indexed = true}, note_session,
        search, NULL);
    return search->agent.len > 0 || search->title.len > 0;
}

/* Print agent and title on one line, for example codex Why is the tide late? */
static void print_session(const struct search *search)
{
    SCOPED_BUF title = {0};
    int columns = out_columns() - 6 - (int)search->agent.len;
    (void)out_line(&title, annal__buf_slice(&search->title));
    size_t len = title.len;
    if (annal__buf_cstr(&title) != NULL && columns > 0)
        len = width_fitting(title.ptr, columns);
    fputs("    ", stdout);
    out_plain(annal__buf_slice(&search->agent));
    if (len > 0) {
        fputs(search->agent.len > 0 ? "  " : "", stdout);
        out_plain((annal_slice){title.ptr, len});
    }
    fputc('\n', stdout);
}

static int note_status(void *arg, const annal_row *row)
{
    return annal__buf_append_slice(arg, row->values[0].bytes) < 0;
}

/* Append the status of the hit's turn to out if the turn was taken back: abandoned or
 * rolled_back. */
static void find_taken_back(struct search *search, const annal_search_hit *hit, struct buf *out)
{
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = hit->session},
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = (int64_t)hit->seq}};
    (void)!annal_index_sql(
        search->index,
        ANNAL_SLICE("SELECT status FROM (SELECT status FROM turns WHERE session_id = ?1 AND"
                    " seq <= ?2 ORDER BY seq DESC LIMIT 1)"
                    " WHERE status IN ('abandoned', 'rolled_back')"),
        &(annal_sql_options){.params = params, .param_count = 2, .as_indexed = true}, note_status,
        out, NULL);
}

static void print_id(const struct search *search, annal_slice session)
{
    annal_slice subject = about(search, session);
    out_style("1");
    out_plain(out_columns() > 0 ? session_begin(subject) : subject);
    out_style("0");
    if (subject.len < session.len)
        fputs("  (note)", stdout);
}

/* Print where a hit is, and its words. with_session: it is not below the line of its session. */
static void print_hit(struct search *search, const annal_search_hit *hit, bool with_session)
{
    SCOPED_BUF taken = {0};
    bool is_other = with_session && learn_session(search, hit->session);
    if (with_session)
        print_id(search, hit->session);
    printf("  seq %" PRIu64 "  ", hit->seq);
    out_shown_time(hit->ts_us);
    fputs("  ", stdout);
    out_plain(hit->type);
    annal_slice who = hit->tool.len > 0 ? hit->tool : hit->role;
    if (who.len > 0) {
        fputs("  ", stdout);
        out_plain(who);
    }
    find_taken_back(search, hit, &taken);
    if (taken.len > 0)
        printf("  %.*s", (int)taken.len, taken.ptr);
    fputc('\n', stdout);
    if (is_other)
        print_session(search);
    print_snippet(hit->snippet);
}

/* Print the members that say what is known of a session. */
static void print_session_json(struct search *search, annal_slice session)
{
    (void)learn_session(search, session);
    out_json("\"session_id\":?", session);
    if (about(search, session).len < session.len)
        out_json(",\"about\":?", about(search, session));
    out_json(",\"agent_id\":?,\"title\":?", annal__buf_slice(&search->agent),
             annal__buf_slice(&search->title));
}

/* Print the members of a hit, without those of its session. */
static void print_hit_json(struct search *search, const annal_search_hit *hit)
{
    out_json("\"seq\":#,\"timestamp\":?,\"type\":?,\"role\":?,\"tool\":?", JSON_U64(hit->seq),
             JSON_TIME(hit->ts_us), hit->type, hit->role, hit->tool);
    printf(",\"rank\":%.6g", hit->rank);
    out_json(",\"snippet\":?", hit->snippet);
    SCOPED_BUF taken = {0};
    find_taken_back(search, hit, &taken);
    if (taken.len > 0)
        printf(",\"turn_status\":\"%.*s\"", (int)taken.len, taken.ptr);
}

/* Print the events around a hit, and the hit. */
static annal_status print_context(struct search *search, const annal_search_hit *hit,
                                  annal_error *err)
{
    uint64_t n = search->context;
    annal_filter filter = {.sessions = &hit->session,
                           .session_count = 1,
                           .from_seq = hit->seq > n ? hit->seq - n : 1,
                           .to_seq = hit->seq + n};
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct conversation conversation = {.session = name,
                                        .colours = out_colours(stdout),
                                        .rewrites = isatty(STDOUT_FILENO),
                                        .columns = out_columns(),
                                        .types = search->options.bookkeeping ? "*" : NULL};
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    annal_status status = annal_query_open(search->index, &filter, &query, err);
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(hit->session));
    while (status >= 0 && (status = annal_query_next(query, &session, &event, err)) != ANNAL_END) {
        if (status != ANNAL_OK)
            continue;
        if (search->args->json)
            event_print(&event, session);
        else
            conversation_print(&conversation, &event);
    }
    annal_query_close(query);
    conversation_done(&conversation);
    return status < 0 ? status : ANNAL_OK;
}

static int show_context(struct search *search, const annal_search_hit *hit)
{
    annal_error err = {0};
    if (search->context == 0 || print_context(search, hit, &err) >= 0)
        return !out_wanted();
    search->exit_status = fail_error(&err);
    return 1;
}

static int show_hit(void *arg, const annal_search_hit *hit)
{
    struct search *search = arg;
    progress_hide(&search->line);
    if (search->hits++ > 0 && search->context > 0 && !search->args->json)
        fputc('\n', stdout);
    if (search->args->json) {
        fputc('{', stdout);
        print_session_json(search, hit->session);
        fputc(',', stdout);
        print_hit_json(search, hit);
        fputs("}\n", stdout);
    } else {
        print_hit(search, hit, true);
    }
    return show_context(search, hit);
}

/* ---- Sessions ---- */

static void print_found_json(struct search *search, const annal_search_session *found)
{
    fputc('{', stdout);
    print_session_json(search, found->session);
    out_json(",\"working_directory\":?,\"last_at\":?,\"events\":#",
             annal__buf_slice(&search->directory), JSON_TIME(found->last_us),
             JSON_U64(found->events));
    printf(",\"score\":%.6g", found->score);
    out_json(",\"why\":?,\"places\":[", found->why);
    for (size_t i = 0; i < found->place_count; i++) {
        fputs(i > 0 ? ",{" : "{", stdout);
        print_hit_json(search, &found->places[i]);
        fputc('}', stdout);
    }
    fputs("]}\n", stdout);
}

/* Print a session: id, time and project; agent and title; why it was found. */
static void print_found(struct search *search, const annal_search_session *found)
{
    bool is_known = learn_session(search, found->session);
    annal_slice directory = annal__buf_slice(&search->directory);
    const char *slash = directory.len == 0 ? NULL : memrchr(directory.ptr, '/', directory.len);
    print_id(search, found->session);
    fputs("  ", stdout);
    out_shown_time(found->last_us);
    if (slash != NULL && slash + 1 < directory.ptr + directory.len) {
        fputs("  ", stdout);
        out_plain((annal_slice){slash + 1, (size_t)(directory.ptr + directory.len - slash - 1)});
    }
    fputc('\n', stdout);
    if (is_known)
        print_session(search);
    fputs("    ", stdout);
    out_plain(found->why);
    fputc('\n', stdout);
}

static int show_session(void *arg, const annal_search_session *found)
{
    struct search *search = arg;
    int done = 0;
    progress_hide(&search->line);
    if (search->hits++ > 0 && !search->args->json)
        fputc('\n', stdout);
    if (search->args->json)
        print_found_json(search, found);
    else
        print_found(search, found);
    for (size_t i = 0; i < found->place_count && done == 0; i++) {
        if (!search->args->json)
            print_hit(search, &found->places[i], false);
        done = show_context(search, &found->places[i]);
    }
    return done != 0 ? done : !out_wanted();
}

static int add_here(void *arg, const annal_row *row)
{
    struct search *search = arg;
    sessions_add(&search->here, row->values[0].bytes, 0);
    return 0;
}

/* Let the sessions of the working directory weigh more. Ignore a failure: they then weigh as much
 * as others. */
static void prefer_here(struct search *search)
{
    char directory[PROJECT_BYTES];
    if (getcwd(directory, sizeof directory) == NULL)
        return;
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(directory)};
    if (annal_index_sql(
            search->index,
            ANNAL_SLICE("SELECT id FROM sessions WHERE working_directory = ?1 OR"
                        " substr(working_directory, 1, length(?1) + 1) = ?1 || '/'"),
            &(annal_sql_options){.params = &param, .param_count = 1, .as_indexed = true}, add_here,
            search, NULL) != ANNAL_OK ||
        search->here.count == 0)
        return;
    search->preferred = annal__realloc_array(NULL, search->here.count, sizeof *search->preferred);
    for (size_t i = 0; search->preferred != NULL && i < search->here.count; i++)
        search->preferred[i] = annal_slice_of(search->here.names[i].id);
    search->options.preferred = search->preferred;
    search->options.preferred_count = search->preferred == NULL ? 0 : search->here.count;
}

static int show_progress(void *arg, const annal_index_progress *progress)
{
    struct search *search = arg;
    search->line.total = progress->bytes_total;
    progress_set(&search->line, progress->bytes_done, NULL);
    return 0;
}

static int take_count(void *arg, const annal_row *row)
{
    *(uint64_t *)arg = (uint64_t)row->values[0].integer;
    return 0;
}

/* Append the options that restrict the search, for example: ; restricted by --role, --since */
static void put_filters(const struct args *args, struct buf *out)
{
    static const char *const names[] = {"session", "agent", "model", "project", "status",
                                        "role",    "tool",  "type",  "since",   "until"};
    size_t before = out->len;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (args_has(args, names[i]))
            (void)!annal__buf_printf(out, "%s--%s", out->len > before ? ", " : "; restricted by ",
                                     names[i]);
}

/* After a search without hits, say which sessions were searched, and how to search more. */
static void say_nothing_found(struct search *search)
{
    const annal_search_options *options = &search->options;
    char texts[HUMAN_BYTES], sessions[HUMAN_BYTES];
    uint64_t session_count = options->session_count;
    annal_search_info info = {0};
    SCOPED_BUF more = {0};
    if (session_count == 0)
        (void)!annal_index_sql(search->index, ANNAL_SLICE("SELECT COUNT(*) FROM sessions"),
                               &(annal_sql_options){.as_indexed = true}, take_count, &session_count,
                               NULL);
    (void)!annal_search_info_get(search->index, &info, NULL);
    put_filters(search->args, &more);
    if (!options->bookkeeping && options->type_count == 0)
        (void)!annal__buf_printf(&more, "; --all also searches import records and token counts");
    say("nothing found in %s %s; the store has %s events with text%.*s",
        human_count(sessions, session_count), session_count == 1 ? "session" : "sessions",
        human_count(texts, info.documents), ANNAL_FMT(annal__buf_slice(&more)));
}

/* Split the only operand into words, which point into it. Return whether it has several words. */
static bool split_phrase(struct search *search)
{
    const char *text = search->options.word_count == 1 ? search->words[0].ptr : "";
    annal_slice *words = NULL;
    size_t count = 0;
    for (size_t len; *(text += strspn(text, " ")) != '\0'; text += len) {
        len = strcspn(text, " ");
        annal_slice *word = annal__array_add(&words, &count, sizeof *word);
        if (word == NULL)
            break;
        *word = (annal_slice){text, len};
    }
    if (count < 2) {
        annal__free(words);
        return false;
    }
    annal__free(search->words);
    search->words = words;
    search->options.words = words;
    search->options.word_count = count;
    return true;
}

static int ask(struct search *search)
{
    const annal_catch_up_options catch_up = {
        .timeout_ms = ANNAL_NO_TIMEOUT, .progress = show_progress, .arg = search};
    annal_error err = {0};
    annal_lag lag;
    search->options.catch_up = &catch_up;
    progress_begin(&search->line, "search", 0);
    annal_status status =
        search->of_events
            ? annal_search_each(search->index, &search->options, show_hit, search, &lag, &err)
            : annal_search_session_each(search->index, &search->options, show_session, search, &lag,
                                        &err);
    progress_hide(&search->line);
    if (status < 0)
        return fail_error(&err);
    catch_up_say_lag(&lag);
    if (search->exit_status != EXIT_DONE)
        return search->exit_status;
    if (search->hits == 0 && search->of_events && split_phrase(search)) {
        say("no event contains the phrase: these events contain all words of the phrase");
        return ask(search);
    }
    if (search->hits == 0) {
        say_nothing_found(search);
        return EXIT_REFUSED;
    }
    if (search->hits == search->options.limit && out_columns() > 0)
        say("these are the first %" PRIu64 " %s; --limit N shows more", search->hits,
            search->of_events ? "hits" : "sessions");
    return EXIT_DONE;
}

/* ---- Managing the search index ---- */

static int tell(struct search *search)
{
    char documents[HUMAN_BYTES], bytes[HUMAN_BYTES];
    annal_error err = {0};
    annal_search_info info;
    if (annal_search_info_get(search->index, &info, &err) < 0)
        return fail_error(&err);
    if (search->args->json)
        printf("{\"on\":%s,\"exists\":%s,\"documents\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
               info.on ? "true" : "false", info.exists ? "true" : "false", info.documents,
               info.bytes);
    else if (!info.on)
        printf("search is switched off\n");
    else if (!info.exists)
        printf("search is on; the first search reads all journals\n");
    else
        printf("search is on: %s events, search.db has %s\n",
               human_count(documents, info.documents), human_bytes(bytes, info.bytes));
    return EXIT_DONE;
}

static int rebuild(struct search *search)
{
    const annal_catch_up_options catch_up = {
        .timeout_ms = ANNAL_NO_TIMEOUT, .progress = show_progress, .arg = search};
    annal_error err = {0};
    progress_begin(&search->line, "search", 0);
    annal_status status = annal_search_rebuild(search->index, &catch_up, &err);
    progress_hide(&search->line);
    return status < 0 ? fail_error(&err) : tell(search);
}

static int keep(struct search *search)
{
    const struct args *args = search->args;
    annal_error err = {0};
    if (args_has(args, "rebuild"))
        return rebuild(search);
    if (!args_has(args, "info") &&
        annal_search_enable(search->index, args_has(args, "on"), &err) < 0)
        return fail_error(&err);
    return tell(search);
}

static int is_about_keeping(const struct args *args, bool *out)
{
    static const char *const names[] = {"on", "off", "rebuild", "info"};
    int given = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        given += args_has(args, names[i]);
    *out = given > 0;
    if (given > 1 || (given == 1 && (args->operand_count > 0 || args->value_count > 1)))
        return fail_usage("--on, --off, --rebuild and --info take no other option and no words");
    return 0;
}

static int run(const struct args *args)
{
    struct search search = {.args = args};
    annal_error err = {0};
    bool keeps = false;
    int exit_status = is_about_keeping(args, &keeps);
    if (exit_status == 0 && !keeps)
        exit_status = read_options(&search);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &search.store);
    if (exit_status == 0 && !keeps)
        exit_status = catch_up_open(search.store, NULL, &search.index);
    else if (exit_status == 0 && annal_index_open(search.store, NULL, &search.index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0 && !keeps)
        exit_status = session_ids_restrict(&search.chosen, search.index, args, &search.options);
    if (exit_status == 0 && !keeps)
        search.has_notes = session_has_marks(search.index);
    if (exit_status == 0 && !keeps && !search.of_events)
        prefer_here(&search);
    if (exit_status == 0)
        exit_status = keeps ? keep(&search) : ask(&search);
    annal_index_close(search.index);
    annal__free(search.words);
    annal__free(search.types);
    annal__free(search.preferred);
    session_ids_done(&search.chosen);
    sessions_done(&search.here);
    annal__buf_done(&search.agent);
    annal__buf_done(&search.title);
    annal__buf_done(&search.directory);
    return store_close(search.store, exit_status);
}

static const struct field fields[] = {
    OPERAND_MAYBE("WORD", FIELD_LIST, NULL, "a word, a phrase, or the beginning of a word and *"),
    OPTION("session", "S", FIELD_SESSIONS, NULL,
           "session to search, with the shared events of a fork"),
    OPTION("agent", "GLOB", FIELD_TEXT, NULL,
           "part of the agent's name, or pattern with *, ?, [abc]"),
    OPTION("model", "GLOB", FIELD_TEXT, NULL, "model, in the same way"),
    OPTION("status", "S", FIELD_TEXT, NULL,
           "only sessions with this status, such as idle or ended"),
    OPTION("role", "ROLE", FIELD_TEXT, NULL,
           "role of the message: user, assistant, system or tool"),
    OPTION("tool", "NAME", FIELD_TEXT, NULL, "tool of the calls and results"),
    OPTION("type", "GLOB", FIELD_LIST, NULL, "type of the events; may contain *, ? and [abc]"),
    FLAG("all", NULL, "include import records and token counts"),
    PROJECT_OPTION,
    OPTION("since", "T", FIELD_TIME, NULL, "at or after this time; ISO 8601, 2h or today"),
    OPTION("until", "T", FIELD_TIME, NULL, "before this time; a day alone is its first instant"),
    OPTION_WITH("limit", "N", FIELD_COUNT, NULL, "maximum number of sessions (10) or events (20)",
                .least = 1),
    OPTION_WITH("places", "N", FIELD_COUNT, NULL, "maximum number of events of each session (3)",
                .least = 1, .most = PLACES_MAX),
    FLAG("events", NULL, "events with every word, instead of sessions; best first"),
    FLAG("newest", NULL, "such events, newest first"),
    OPTION_WITH("context", "N", FIELD_COUNT, NULL, "number of events before and after each event",
                .most = CONTEXT_MAX),
    OPTION("match", "EXPR", FIELD_TEXT, NULL,
           "events, by an expression: \"a AND (b OR c*) NOT d\""),
    FLAG("info", NULL, "state and size of the search index of this store"),
    FLAG("rebuild", NULL, "rebuild search.db from the journals"),
    FLAG("off", NULL, "switch search off and remove search.db"),
    FLAG("on", NULL, "switch search on again"),
    FIELDS_END};

const struct command cmd_search = {
    COMMAND("search", "find sessions by their messages and tool output", search, fields, run)};
