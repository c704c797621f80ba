/*
 * A project's memory as files, for people and agents who look into the workspace: annal project
 * export and import.
 *
 * (1) The tables are what counts, files are a mirror of them. The same tables give the same bytes,
 *     and a file whose bytes are right already is not touched.
 * (2) Export deletes files of proposals that are pending no more, before it writes. A file whose slug
 *     the project does not know is a proposal that nobody took yet: it stays.
 * (3) Import only adds: a proposal for each file in the inbox whose slug the project does not have.
 *     What cannot be read as a proposal is named and passed over.
 * (4) A name that is no safe file name (a slug with a slash in it) is written with %XX for the bytes
 *     that would not be. Nothing is ever written outside the directory that was given.
 */
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "tools/agentweaver.h"
#include "tools/verb_data.h"
#include "tools/verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INBOX ".squad/decisions/inbox"

/* A value of front matter, as JSON where it would not come back as it is. */
#define LINE_OF(x)                                                                                 \
    "(CASE WHEN instr(" #x ", char(10)) > 0 OR " #x " GLOB '\"*' OR trim(" #x ") <> " #x           \
    " THEN json_quote(" #x ") ELSE " #x " END)"

/* ?1 the project. folder, name, suffix and content of each file; NULL content: it is stale. */
static const char FILES[] =
    "SELECT '" INBOX "' AS folder, slug AS name, '.md' AS suffix, NULL AS content FROM "
    "memory.decision_inbox WHERE project_id = ?1 AND status <> 'pending' "
    "UNION ALL "
    "SELECT '.squad', 'decisions', '.md', '# Decisions' || char(10) || COALESCE((SELECT "
    "group_concat(entry, '') FROM (SELECT char(10) || '## ' || id || ': ' || title || char(10, 10) "
    "|| '- type: ' || type || char(10) || '- status: ' || status || COALESCE(' by ' || "
    "superseded_by_id, '') || char(10) || COALESCE('- agent: ' || agent_name || char(10), '') || "
    "'- date: ' || created_at || char(10, 10) || content || char(10) || COALESCE(char(10) || "
    "'**Rationale:** ' || rationale || char(10), '') AS entry FROM memory.decisions WHERE "
    "project_id = ?1 ORDER BY created_at, seq, id)), '') "
    "UNION ALL "
    "SELECT '" INBOX "', slug, '.md', '---' || char(10) || 'agent: ' || " LINE_OF(
        agent_name) " || "
                    "char(10) || 'slug: ' || " LINE_OF(slug) " || char(10) || 'type: ' || " LINE_OF(
                        type) " || "
                              "char(10) || 'title: ' || " LINE_OF(
                                  title) " || char(10) || '---' || char(10, 10) || content || "
                                         "char(10) || COALESCE(char(10) || '**Rationale:** ' || "
                                         "rationale || char(10), '') FROM "
                                         "memory.decision_inbox WHERE project_id = ?1 AND status = "
                                         "'pending' "
                                         "UNION ALL "
                                         "SELECT '.squad/agents', agent_name, '/history.md', '# ' "
                                         "|| agent_name || char(10, 10) || "
                                         "group_concat(entry, '') FROM (SELECT agent_name, '- ' || "
                                         "created_at || ' ' || type || ' (' || "
                                         "importance || ')' || COALESCE(' [' || trim(tags, ',') || "
                                         "']', '') || ': ' || "
                                         "replace(content, char(10), char(10) || '  ') || char(10) "
                                         "AS entry FROM memory.agent_memory "
                                         "WHERE project_id = ?1 ORDER BY agent_name, created_at, "
                                         "seq, id) GROUP BY agent_name "
                                         "UNION ALL "
                                         "SELECT '.squad/identity', 'now', '.md', '# Now' || "
                                         "char(10, 10) || COALESCE((SELECT 'Session ' "
                                         "|| session_id || ', since ' || started_at || char(10) || "
                                         "COALESCE(char(10) || '## Focus' || "
                                         "char(10, 10) || focus_area || char(10), '') || "
                                         "COALESCE(char(10) || '## Active issues' || "
                                         "char(10, 10) || active_issues || char(10), '') || "
                                         "COALESCE(char(10) || '## Summary' || "
                                         "char(10, 10) || summary || char(10), '') FROM "
                                         "memory.session_contexts_current WHERE "
                                         "project_id = ?1), 'No session is open.' || char(10)) "
                                         "UNION ALL "
                                         "SELECT '.agentweaver/context', 'boundaries', '.md', '# "
                                         "Boundaries' || char(10) || "
                                         "COALESCE((SELECT group_concat(entry, '') FROM (SELECT "
                                         "char(10) || '## ' || title || ' (' || "
                                         "type || ')' || char(10, 10) || content || char(10) AS "
                                         "entry FROM memory.memory_boundaries "
                                         "WHERE project_id = ?1 ORDER BY created_at, seq, id)), "
                                         "'') "
                                         "UNION ALL "
                                         "SELECT '.agentweaver/context', 'patterns', '.md', '# "
                                         "Patterns' || char(10) || "
                                         "COALESCE((SELECT group_concat(entry, '') FROM (SELECT "
                                         "char(10) || '- ' || replace(content, "
                                         "char(10), char(10) || '  ') || ' (' || agent_name || ')' "
                                         "AS entry FROM memory.agent_memory "
                                         "WHERE project_id = ?1 AND type = 'pattern' ORDER BY "
                                         "created_at, seq, id)), '') || char(10)";

/* ---- Files ---- */

struct mirror {
    const char *root;
    bool json;
    bool stale; /* this round deletes, else it writes */
    int exit_status;
    uint64_t written, deleted, unchanged;
};

/* Rule (4). A slash stays where suffix has it: that one is ours. */
static annal_status add_name(struct buf *path, annal_slice name)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < name.len && status == ANNAL_OK; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        bool safe =
            c > ' ' && c != '/' && c != '%' && c != 0x7f && c != '\\' && (i > 0 || c != '.');
        status =
            safe ? annal__buf_append(path, name.ptr + i, 1) : annal__buf_printf(path, "%%%02X", c);
    }
    return status;
}

/* Make the directories above the file. */
static int make_folders(char *path, size_t root_len)
{
    for (char *slash = strchr(path + root_len + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0777) < 0 && errno != EEXIST;
        if (failed)
            return fail_storage("make directory '%s': %s", path, strerror(errno));
        *slash = '/';
    }
    return 0;
}

static bool holds(const char *path, annal_slice content)
{
    struct stat info;
    struct buf have = {0};
    bool same = stat(path, &info) == 0 && (uint64_t)info.st_size == content.len &&
                verb_read_file(path, &have) == 0 && have.len == content.len &&
                memcmp(have.ptr, content.ptr, content.len) == 0;
    annal__buf_done(&have);
    return same;
}

/* A reader finds the old bytes or the new ones. */
static int write_file(const char *path, annal_slice content)
{
    struct buf name = {.limit = 8192};
    const char *next = annal__buf_printf(&name, "%s.new", path) < 0 ? NULL : annal__buf_cstr(&name);
    int file = -1;
    bool good = next != NULL;
    if (good) {
        unlink(next);
        file = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    }
    good = file >= 0;
    for (size_t at = 0; good && at < content.len;) {
        ssize_t count = write(file, content.ptr + at, content.len - at);
        good = count > 0 || errno == EINTR;
        at += count > 0 ? (size_t)count : 0;
    }
    if (file >= 0 && close(file) < 0)
        good = false;
    good = good && rename(next, path) == 0;
    int exit_status = good ? 0 : fail_storage("write '%s': %s", path, strerror(errno));
    annal__buf_done(&name);
    return exit_status;
}

static void say_file(const struct mirror *mirror, const char *what, const char *path)
{
    if (!mirror->json)
        return;
    printf("{\"%s\":", what);
    out_json_string(annal_slice_of(path + strlen(mirror->root) + 1));
    printf("}\n");
}

static int put_file(struct mirror *mirror, char *path, const annal_value *content)
{
    if (mirror->stale) {
        if (unlink(path) == 0) {
            mirror->deleted++;
            say_file(mirror, "deleted", path);
        } else if (errno != ENOENT && errno != ENOTDIR) {
            return fail_storage("delete '%s': %s", path, strerror(errno));
        }
        return 0;
    }
    if (holds(path, content->bytes)) {
        mirror->unchanged++;
        return 0;
    }
    int exit_status = make_folders(path, strlen(mirror->root));
    if (exit_status == 0)
        exit_status = write_file(path, content->bytes);
    if (exit_status == 0) {
        mirror->written++;
        say_file(mirror, "written", path);
    }
    return exit_status;
}

static int mirror_row(void *arg, const annal_row *row)
{
    struct mirror *mirror = arg;
    struct buf path = {.limit = 8192};
    if ((row->values[3].kind == ANNAL_VALUE_NULL) != mirror->stale)
        return 0;
    annal_status status =
        annal__buf_printf(&path, "%s/%.*s/", mirror->root, ANNAL_FMT(row->values[0].bytes));
    if (status >= 0)
        status = add_name(&path, row->values[1].bytes);
    if (status >= 0)
        status = annal__buf_append_slice(&path, row->values[2].bytes);
    if (status < 0 || annal__buf_cstr(&path) == NULL)
        mirror->exit_status = fail_storage("a file of the mirror: its name is too long");
    else
        mirror->exit_status = put_file(mirror, path.ptr, &row->values[3]);
    annal__buf_done(&path);
    return mirror->exit_status;
}

static int mirror_round(struct verb_call *call, struct mirror *mirror, const char *project)
{
    annal_error err = {0};
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(project)};
    const annal_sql_options options = {.params = &param, .param_count = 1};
    annal_status status =
        annal_sql(call->index, annal_slice_of(FILES), &options, mirror_row, mirror, &err);
    if (mirror->exit_status != 0)
        return mirror->exit_status;
    return status < 0 ? fail_error(&err) : 0;
}

static int take_row(void *arg, const annal_row *row)
{
    (void)row;
    *(bool *)arg = true;
    return 0;
}

/* Whether a SELECT with these parameters has a row. 0 or an exit status. */
static int has_row(struct verb_call *call, const char *select, const annal_value *params,
                   size_t count, bool *out)
{
    annal_error err = {0};
    const annal_sql_options options = {.params = params, .param_count = count};
    *out = false;
    annal_status status =
        annal_sql(call->index, annal_slice_of(select), &options, take_row, out, &err);
    return status < 0 ? fail_error(&err) : 0;
}

/* A name that was mistyped is not made a mirror of. */
static int check_project(struct verb_call *call, const char *project)
{
    static const char select[] =
        "SELECT 1 WHERE ?1 IN (SELECT id FROM agentweaver.projects) OR ?1 IN (SELECT project_id "
        "FROM memory.decision_inbox UNION ALL SELECT project_id FROM memory.decisions UNION ALL "
        "SELECT project_id FROM memory.agent_memory)";
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(project)};
    bool known = false;
    int exit_status = has_row(call, select, &param, 1, &known);
    return exit_status != 0 || known ? exit_status
                                     : fail_refused("there is no project '%s'", project);
}

int mirror_export(const struct args *args)
{
    struct verb_call call;
    struct mirror mirror = {.root = verb_text(args, "DIR"), .json = args->json, .stale = true};
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verb_need_pack(&call, "memory");
    if (exit_status == 0)
        exit_status = check_project(&call, verb_text(args, "PROJECT"));
    if (exit_status == 0 && mkdir(mirror.root, 0777) < 0 && errno != EEXIST)
        exit_status = fail_storage("make directory '%s': %s", mirror.root, strerror(errno));
    if (exit_status == 0)
        exit_status = mirror_round(&call, &mirror, verb_text(args, "PROJECT"));
    mirror.stale = false;
    if (exit_status == 0)
        exit_status = mirror_round(&call, &mirror, verb_text(args, "PROJECT"));
    if (exit_status == 0 && !args->json)
        printf("%" PRIu64 " files written, %" PRIu64 " deleted, %" PRIu64 " as they were\n",
               mirror.written, mirror.deleted, mirror.unchanged);
    return verb_close(&call, exit_status);
}

/* ---- Import, rule (3) ---- */

struct proposal {
    annal_slice agent, slug, type, title, content, rationale;
};

static annal_slice trim(annal_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]) != NULL) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) != NULL)
        text.len--;
    return text;
}

static annal_slice take_line(annal_slice *rest)
{
    const char *newline = memchr(rest->ptr, '\n', rest->len);
    size_t len = newline == NULL ? rest->len : (size_t)(newline - rest->ptr);
    annal_slice line = {rest->ptr, len};
    rest->ptr += len + (newline != NULL);
    rest->len -= len + (newline != NULL);
    return trim(line);
}

static bool is(annal_slice text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

/* `name: value`, the value with or without quotes (then it is JSON). False: out of memory. */
static bool take_field(struct proposal *proposal, annal_slice line, struct buf *scratch)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    if (colon == NULL)
        return true;
    annal_slice name = trim((annal_slice){line.ptr, (size_t)(colon - line.ptr)});
    annal_slice value = trim((annal_slice){colon + 1, line.len - (size_t)(colon + 1 - line.ptr)});
    annal_slice *to = is(name, "agent")   ? &proposal->agent
                      : is(name, "slug")  ? &proposal->slug
                      : is(name, "type")  ? &proposal->type
                      : is(name, "title") ? &proposal->title
                                          : NULL;
    if (to == NULL)
        return true;
    *to = value;
    if (value.len > 1 && value.ptr[0] == '"' &&
        annal__json_check(value, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID)
        return annal__json_text(value, scratch, to) != ANNAL_ERR_NOMEM;
    return true;
}

/* False: the text is no proposal. scratch has room for the whole text, so that its bytes stay. */
static bool parse_proposal(annal_slice text, struct buf *scratch, struct proposal *out)
{
    static const char mark[] = "**Rationale:**";
    annal_slice rest = text;
    *out = (struct proposal){0};
    if (annal__buf_reserve(scratch, text.len) < 0 || !is(take_line(&rest), "---"))
        return false;
    for (;;) {
        if (rest.len == 0)
            return false;
        annal_slice line = take_line(&rest);
        if (is(line, "---"))
            break;
        if (!take_field(out, line, scratch))
            return false;
    }
    out->content = trim(rest);
    const char *found = memmem(rest.ptr, rest.len, mark, sizeof mark - 1);
    if (found != NULL) {
        out->content = trim((annal_slice){rest.ptr, (size_t)(found - rest.ptr)});
        found += sizeof mark - 1;
        out->rationale = trim((annal_slice){found, (size_t)(rest.ptr + rest.len - found)});
    }
    return out->agent.len > 0 && out->slug.len > 0 && out->type.len > 0 && out->title.len > 0 &&
           out->content.len > 0 && annal__is_utf8(text);
}

static int has_slug(struct verb_call *call, annal_slice slug, bool *out)
{
    const annal_value params[] = {
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(verb_text(call->args, "PROJECT"))},
        {.kind = ANNAL_VALUE_TEXT, .bytes = slug}};
    return has_row(call, "SELECT 1 FROM memory.decision_inbox WHERE project_id = ?1 AND slug = ?2",
                   params, 2, out);
}

static int post_proposal(struct verb_call *call, const struct proposal *proposal, uint64_t *added)
{
    const struct {
        const char *to;
        annal_slice text;
    } members[] = {{"agent_name", proposal->agent}, {"slug", proposal->slug},
                   {"type", proposal->type},        {"title", proposal->title},
                   {"content", proposal->content},  {"rationale", proposal->rationale}};
    annal_error err = {0};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        int exit_status = i == 5 && members[i].text.len == 0
                              ? verb_set(call, members[i].to, ANNAL_SLICE("null"))
                              : verb_set_text(call, members[i].to, members[i].text);
        if (exit_status != 0)
            return exit_status;
    }
    annal_status status = verb_try(call, &err);
    if (status == ANNAL_ERR_REFUSED) {
        say("%.*s: %s", ANNAL_FMT(proposal->slug), err.message);
        return 0;
    }
    if (status < 0)
        return fail_error(&err);
    ++*added;
    if (call->args->json)
        verb_print(call);
    return 0;
}

static int import_file(struct verb_call *call, const char *path, uint64_t *added)
{
    struct buf text = {0}, scratch = {0};
    struct proposal proposal;
    bool known = false;
    int exit_status = verb_read_file(path, &text);
    if (exit_status == 0 && !parse_proposal(annal__buf_slice(&text), &scratch, &proposal)) {
        say("%s: no proposal: it needs front matter with agent, slug, type and title, and content",
            path);
    } else if (exit_status == 0) {
        exit_status = has_slug(call, proposal.slug, &known);
        if (exit_status == 0 && !known)
            exit_status = post_proposal(call, &proposal, added);
    }
    annal__buf_done(&text);
    annal__buf_done(&scratch);
    return exit_status;
}

static int is_markdown(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 3 && strcmp(entry->d_name + len - 3, ".md") == 0;
}

int mirror_import(const struct args *args)
{
    struct verb_call call;
    struct buf path = {.limit = 8192};
    struct dirent **entries = NULL;
    uint64_t added = 0;
    const char *root = verb_text(args, "DIR");
    int count = 0;
    int exit_status = verb_open(&call, args);
    if (exit_status == 0)
        exit_status = verb_need_pack(&call, "memory");
    if (exit_status == 0)
        exit_status = verb_set_session(&call, "proj_%s", verb_text(args, "PROJECT"));
    if (exit_status == 0 && annal__buf_printf(&path, "%s/%s", root, INBOX) < 0)
        exit_status = fail_storage("out of memory");
    if (exit_status == 0) {
        count = scandir(annal__buf_cstr(&path), &entries, is_markdown, alphasort);
        if (count < 0 && errno != ENOENT)
            exit_status = fail_refused("read '%s': %s", path.ptr, strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        annal__buf_clear(&path);
        if (exit_status == 0 &&
            annal__buf_printf(&path, "%s/%s/%s", root, INBOX, entries[i]->d_name) >= 0)
            exit_status = import_file(&call, annal__buf_cstr(&path), &added);
        free(entries[i]);
    }
    free(entries);
    if (exit_status == 0 && !args->json)
        printf("%" PRIu64 " proposals taken from %d files\n", added, count > 0 ? count : 0);
    annal__buf_done(&path);
    return verb_close(&call, exit_status);
}
