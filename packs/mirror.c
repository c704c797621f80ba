/*
 * A project's memory as files, and proposals from files: annal/mirror.h.
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
#include "packs/files.h"
#include "packs/need.h"
#include "packs/post.h"

#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <annal/mirror.h>
#include <annal/query.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INBOX ".squad/decisions/inbox"

enum { PATH_BYTES_MAX = 8192 };

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
    bool stale; /* this round deletes, else it writes */
    annal_mirror_file_fn fn;
    void *arg;
    annal_mirror_counts counts;
    annal_error *err;
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
static annal_status make_folders(char *path, size_t root_len, annal_error *err)
{
    for (char *slash = strchr(path + root_len + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return annal__fail_errno(err, "make directory '%s'", path);
        *slash = '/';
    }
    return ANNAL_OK;
}

static bool holds(const char *path, annal_slice content)
{
    struct stat info;
    struct buf have = {.limit = content.len + 1};
    bool same = stat(path, &info) == 0 && (uint64_t)info.st_size == content.len &&
                annal__read_file(path, &have, NULL) == ANNAL_OK &&
                annal__slice_same(annal__buf_slice(&have), content);
    annal__buf_done(&have);
    return same;
}

static int tell(const struct mirror *mirror, const char *path)
{
    const annal_mirror_file file = {path + strlen(mirror->root) + 1, mirror->stale};
    return mirror->fn == NULL ? 0 : mirror->fn(mirror->arg, &file);
}

static int delete_file(struct mirror *mirror, const char *path)
{
    if (unlink(path) == 0) {
        mirror->counts.deleted++;
        return tell(mirror, path);
    }
    return errno == ENOENT || errno == ENOTDIR
               ? 0
               : annal__fail_errno(mirror->err, "delete '%s'", path);
}

static int write_file(struct mirror *mirror, char *path, annal_slice content)
{
    if (holds(path, content)) {
        mirror->counts.unchanged++;
        return 0;
    }
    annal_status status = make_folders(path, strlen(mirror->root), mirror->err);
    if (status == ANNAL_OK)
        status = annal__replace_file(path, content, mirror->err);
    if (status < 0)
        return status;
    mirror->counts.written++;
    return tell(mirror, path);
}

static int mirror_row(void *arg, const annal_row *row)
{
    struct mirror *mirror = arg;
    struct buf path = {.limit = PATH_BYTES_MAX};
    if ((row->values[3].kind == ANNAL_VALUE_NULL) != mirror->stale)
        return 0;
    int status =
        annal__buf_printf(&path, "%s/%.*s/", mirror->root, ANNAL_FMT(row->values[0].bytes));
    if (status >= 0)
        status = add_name(&path, row->values[1].bytes);
    if (status >= 0)
        status = annal__buf_append_slice(&path, row->values[2].bytes);
    if (status < 0 || annal__buf_cstr(&path) == NULL)
        status = annal__fail(mirror->err, status < 0 ? status : ANNAL_ERR_NOMEM,
                             "a file of the mirror: its name is too long");
    else if (mirror->stale)
        status = delete_file(mirror, path.ptr);
    else
        status = write_file(mirror, path.ptr, row->values[3].bytes);
    annal__buf_done(&path);
    return status;
}

/* ---- Asking ---- */

static annal_status need_packs(annal_index *index, annal_error *err)
{
    annal_status status = annal__need_pack(index, "agentweaver", err);
    return status < 0 ? status : annal__need_pack(index, "memory", err);
}

static int take_row(void *arg, const annal_row *row)
{
    (void)row;
    *(bool *)arg = true;
    return 0;
}

/* Whether a SELECT over a project and a slug has a row. */
static annal_status has_row(annal_index *index, const char *select, annal_slice project,
                            annal_slice slug, bool *out, annal_error *err)
{
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = project},
                                  {.kind = ANNAL_VALUE_TEXT, .bytes = slug}};
    const annal_sql_options options = {.params = params, .param_count = slug.len > 0 ? 2 : 1};
    *out = false;
    return annal_sql(index, annal_slice_of(select), &options, take_row, out, err);
}

/* A name that was mistyped is not made a mirror of. */
static annal_status check_project(annal_index *index, annal_slice project, annal_error *err)
{
    static const char select[] =
        "SELECT 1 WHERE ?1 IN (SELECT id FROM agentweaver.projects) OR ?1 IN (SELECT project_id "
        "FROM memory.decision_inbox UNION ALL SELECT project_id FROM memory.decisions UNION ALL "
        "SELECT project_id FROM memory.agent_memory)";
    bool known = false;
    annal_status status = has_row(index, select, project, (annal_slice){0}, &known, err);
    if (status == ANNAL_OK && !known)
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no project '%.*s'", ANNAL_FMT(project));
    return status;
}

annal_status annal_mirror_export(annal_index *index, annal_slice project, const char *directory,
                                 annal_mirror_file_fn fn, void *arg,
                                 annal_mirror_counts *out_counts, annal_error *err)
{
    struct mirror mirror = {.root = directory, .stale = true, .fn = fn, .arg = arg, .err = err};
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = project};
    const annal_sql_options options = {.params = &param, .param_count = 1};
    annal_status status = need_packs(index, err);
    if (status == ANNAL_OK)
        status = check_project(index, project, err);
    if (status == ANNAL_OK && mkdir(directory, 0777) < 0 && errno != EEXIST)
        status = annal__fail_errno(err, "make directory '%s'", directory);
    if (status == ANNAL_OK)
        status = annal_sql(index, annal_slice_of(FILES), &options, mirror_row, &mirror, err);
    mirror.stale = false;
    if (status == ANNAL_OK)
        status = annal_sql(index, annal_slice_of(FILES), &options, mirror_row, &mirror, err);
    if (status == ANNAL_OK && out_counts != NULL)
        *out_counts = mirror.counts;
    return status;
}

/* ---- Import, rule (3) ---- */

struct import {
    annal_index *index;
    annal_slice project;
    struct post post;
    annal_mirror_proposal_fn fn;
    void *arg;
    annal_mirror_imported imported;
};

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

/* `name: value`, the value with or without quotes (then it is JSON). False: out of memory. */
static bool take_field(struct proposal *proposal, annal_slice line, struct buf *scratch)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    if (colon == NULL)
        return true;
    annal_slice name = trim((annal_slice){line.ptr, (size_t)(colon - line.ptr)});
    annal_slice value = trim((annal_slice){colon + 1, line.len - (size_t)(colon + 1 - line.ptr)});
    annal_slice *to = annal__slice_is(name, "agent")   ? &proposal->agent
                      : annal__slice_is(name, "slug")  ? &proposal->slug
                      : annal__slice_is(name, "type")  ? &proposal->type
                      : annal__slice_is(name, "title") ? &proposal->title
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
    if (annal__buf_reserve(scratch, text.len) < 0 || !annal__slice_is(take_line(&rest), "---"))
        return false;
    for (;;) {
        if (rest.len == 0)
            return false;
        annal_slice line = take_line(&rest);
        if (annal__slice_is(line, "---"))
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

static int tell_proposal(const struct import *import, const annal_mirror_proposal *proposal)
{
    return import->fn == NULL ? 0 : import->fn(import->arg, proposal);
}

static annal_status write_data(const struct proposal *proposal, struct buf *data)
{
    const struct {
        const char *name;
        annal_slice text;
    } members[] = {{"agent_name", proposal->agent}, {"slug", proposal->slug},
                   {"type", proposal->type},        {"title", proposal->title},
                   {"content", proposal->content},  {"rationale", proposal->rationale}};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < sizeof members / sizeof *members; i++)
        status = annal__add_text(data, members[i].name,
                                 members[i].text.len > 0 ? members[i].text : (annal_slice){0});
    return status == ANNAL_OK ? annal__close_data(data) : status;
}

static int post_proposal(struct import *import, const char *path, const struct proposal *proposal,
                         annal_error *err)
{
    struct buf data = {0};
    annal_appended appended = {0};
    annal_error refusal = {0};
    int status = write_data(proposal, &data);
    if (status < 0) {
        annal__fail(err, status, "proposal '%.*s': out of memory", ANNAL_FMT(proposal->slug));
        goto done;
    }
    status =
        annal__post(import->index, &import->post, annal__buf_slice(&data), &appended, &refusal);
    annal_mirror_proposal news = {.file = path, .slug = proposal->slug};
    if (status == ANNAL_OK) {
        import->imported.taken++;
        news.outcome = ANNAL_MIRROR_TAKEN;
        news.seq = appended.seq;
        news.data = appended.data;
        status = tell_proposal(import, &news);
    } else if (status == ANNAL_ERR_REFUSED) {
        news.outcome = ANNAL_MIRROR_REFUSED;
        news.message = refusal.message;
        status = tell_proposal(import, &news);
    } else if (err != NULL) {
        *err = refusal;
    }

done:
    annal_index_free(appended.data.ptr);
    annal__buf_done(&data);
    return status;
}

static int import_file(struct import *import, const char *path, annal_error *err)
{
    static const char select[] =
        "SELECT 1 FROM memory.decision_inbox WHERE project_id = ?1 AND slug = ?2";
    struct buf text = {.limit = (size_t)ANNAL_DATA_BYTES_MAX + 1}, scratch = {0};
    struct proposal proposal;
    bool known = false;
    int status = annal__read_file(path, &text, err);
    if (status < 0)
        goto done;
    if (!parse_proposal(annal__buf_slice(&text), &scratch, &proposal)) {
        status = tell_proposal(
            import, &(annal_mirror_proposal){
                        .outcome = ANNAL_MIRROR_UNREADABLE,
                        .file = path,
                        .message = "no proposal: it needs front matter with agent, slug, type and "
                                   "title, and content"});
        goto done;
    }
    status = has_row(import->index, select, import->project, proposal.slug, &known, err);
    if (status == ANNAL_OK && !known)
        status = post_proposal(import, path, &proposal, err);

done:
    annal__buf_done(&text);
    annal__buf_done(&scratch);
    return status;
}

static int is_markdown(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 3 && strcmp(entry->d_name + len - 3, ".md") == 0;
}

/* In place of what path held, with a NUL behind it. */
static annal_status set_path(struct buf *path, const char *directory, const char *name,
                             annal_error *err)
{
    annal__buf_clear(path);
    annal_status status =
        annal__buf_printf(path, "%s/" INBOX "%s%s", directory, name[0] != '\0' ? "/" : "", name);
    if (status == ANNAL_OK && annal__buf_cstr(path) == NULL)
        status = ANNAL_ERR_NOMEM;
    if (status < 0)
        annal__fail(err, status, "read the inbox: %s: '%s'",
                    status == ANNAL_ERR_LIMIT ? "its name is too long" : "out of memory",
                    directory);
    return status;
}

static int import_all(struct import *import, const char *directory, annal_error *err)
{
    struct buf path = {.limit = PATH_BYTES_MAX};
    struct dirent **entries = NULL;
    int count = 0, status = set_path(&path, directory, "", err);
    if (status < 0)
        goto done;
    count = scandir(path.ptr, &entries, is_markdown, alphasort);
    if (count < 0 && errno != ENOENT)
        status = annal__fail_read(err, path.ptr);
    import->imported.files = count > 0 ? (uint64_t)count : 0;
    for (int i = 0; status == ANNAL_OK && i < count; i++) {
        status = set_path(&path, directory, entries[i]->d_name, err);
        if (status == ANNAL_OK)
            status = import_file(import, path.ptr, err);
    }

done:
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    annal__buf_done(&path);
    return status;
}

annal_status annal_mirror_import(annal_index *index, annal_slice project, const char *directory,
                                 const annal_mirror_import_options *options,
                                 annal_mirror_proposal_fn fn, void *arg,
                                 annal_mirror_imported *out_imported, annal_error *err)
{
    struct buf session = {.limit = PATH_BYTES_MAX};
    struct import import = {.index = index, .project = project, .fn = fn, .arg = arg};
    annal_status status = need_packs(index, err);
    if (status < 0)
        return status;
    status = annal__buf_printf(&session, "proj_%.*s", ANNAL_FMT(project));
    if (status < 0)
        annal__fail(err, status, "project '%.*s': its name is too long", ANNAL_FMT(project));
    import.post = (struct post){.session = annal__buf_slice(&session),
                                .type = ANNAL_SLICE("decision.proposed")};
    if (options != NULL) {
        import.post.cause = options->cause;
        import.post.wait_ms = options->wait_ms;
    }
    if (status == ANNAL_OK)
        status = annal_session_id_check(import.post.session, err);
    if (status == ANNAL_OK)
        status = import_all(&import, directory, err);
    if (status == ANNAL_OK && out_imported != NULL)
        *out_imported = import.imported;
    annal__buf_done(&session);
    return status;
}
