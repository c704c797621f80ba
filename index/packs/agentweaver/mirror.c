/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporting a project's memory to files, and importing proposals from files: annal/packs/mirror.h.
 *
 * (1) The files are a copy of the tables; an export never reads the files' content into the tables.
 *     Equal tables yield equal bytes, and a file that has these bytes already is not written.
 * (2) Before it writes, an export deletes the files of proposals that are no longer pending. A file
 *     with a slug that the tables do not contain is a proposal that was not imported yet: the file
 *     stays.
 * (3) An import only adds: a proposal for each file in the inbox whose slug the project does not
 *     have. A file that cannot be read as a proposal is reported and skipped.
 * (4) In the name of a file, each byte that is not safe (a slash in a slug, for example) is written
 *     as %XX. Nothing is read, written or deleted outside the given directory, even if agents
 *     create symbolic links in it (journal/base/below.h): an export fails if a component of a path
 *     is a link, and a link in the inbox is not read as a proposal.
 */
#include "index/packs/need.h"
#include "index/packs/post.h"

#include "journal/base/alloc.h"
#include "journal/base/below.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <annal/packs/mirror.h>
#include <annal/query.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INBOX    ".squad/decisions/inbox"
#define TOO_LONG "the file is longer than an event can be"

enum { PATH_BYTES_MAX = 8192 };

/* SQL of a value in front matter: JSON if the plain text could not be read back unchanged. */
#define LINE_OF(x)                                                                                 \
    "(CASE WHEN instr(" #x ", char(10)) > 0 OR " #x " GLOB '\"*' OR trim(" #x ") <> " #x           \
    " THEN json_quote(" #x ") ELSE " #x " END)"

/* The SELECT of the files of project ?1: folder, name, suffix and content of each file. content is
 * NULL for a file that must be deleted (rule 2). */
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
    struct below below;
    bool stale; /* whether this pass over FILES deletes files; if not, it writes files */
    annal_mirror_file_fn fn;
    void *arg;
    annal_mirror_counts counts;
    annal_error *err;
};

static const struct below_mode AS_USUAL = {.file = 0666, .folder = 0777};

/* Append a text to a path as a safe file name: rule (4). The suffix is appended without this
 * function, because its slash must stay. */
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

static bool holds(const struct mirror *mirror, const char *path, annal_slice content)
{
    struct buf have = {.limit = content.len + 1};
    bool same = annal__below_read(&mirror->below, path, &have, NULL) == ANNAL_OK &&
                annal__slice_same(annal__buf_slice(&have), content);
    annal__buf_done(&have);
    return same;
}

static int tell(const struct mirror *mirror, const char *path)
{
    const annal_mirror_file file = {path, mirror->stale};
    return mirror->fn == NULL ? 0 : mirror->fn(mirror->arg, &file);
}

static int delete_file(struct mirror *mirror, const char *path)
{
    bool deleted = false;
    annal_status status = annal__below_delete(&mirror->below, path, &deleted, mirror->err);
    if (status < 0 || !deleted)
        return status;
    mirror->counts.deleted++;
    return tell(mirror, path);
}

static int write_file(struct mirror *mirror, const char *path, annal_slice content)
{
    if (holds(mirror, path, content)) {
        mirror->counts.unchanged++;
        return 0;
    }
    annal_status status =
        annal__below_replace(&mirror->below, path, content, &AS_USUAL, mirror->err);
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
    int status = annal__buf_printf(&path, "%.*s/", ANNAL_FMT(row->values[0].bytes));
    if (status >= 0)
        status = add_name(&path, row->values[1].bytes);
    if (status >= 0)
        status = annal__buf_append_slice(&path, row->values[2].bytes);
    if (status < 0 || annal__buf_cstr(&path) == NULL)
        status = annal__fail(mirror->err, status < 0 ? status : ANNAL_ERR_NOMEM,
                             "export a file of the mirror: the name of the file is too long");
    else if (mirror->stale)
        status = delete_file(mirror, path.ptr);
    else
        status = write_file(mirror, path.ptr, row->values[3].bytes);
    annal__buf_done(&path);
    return status;
}

/* ---- Queries ---- */

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

/* Find out whether a SELECT returns a row. Its parameters are ?1 project and, unless slug is empty,
 * ?2 slug. */
static annal_status has_row(annal_index *index, const char *select, annal_slice project,
                            annal_slice slug, bool *out, annal_error *err)
{
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = project},
                                  {.kind = ANNAL_VALUE_TEXT, .bytes = slug}};
    const annal_sql_options options = {.params = params, .param_count = slug.len > 0 ? 2 : 1};
    *out = false;
    return annal_sql(index, annal_slice_of(select), &options, take_row, out, err);
}

/* Fail with ANNAL_ERR_NOTFOUND if no table contains the project: its name may be mistyped, and no
 * files must be written for it. */
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
    struct mirror mirror = {.stale = true, .fn = fn, .arg = arg, .err = err};
    const annal_value param = {.kind = ANNAL_VALUE_TEXT, .bytes = project};
    const annal_sql_options options = {.params = &param, .param_count = 1};
    annal_status status = need_packs(index, err);
    if (status == ANNAL_OK)
        status = check_project(index, project, err);
    if (status == ANNAL_OK && mkdir(directory, 0777) < 0 && errno != EEXIST)
        status = annal__fail_errno(err, "cannot make directory '%s'", directory);
    if (status == ANNAL_OK)
        status = annal__below_open(directory, &mirror.below, err);
    if (status == ANNAL_OK)
        status = annal_sql(index, annal_slice_of(FILES), &options, mirror_row, &mirror, err);
    mirror.stale = false;
    if (status == ANNAL_OK)
        status = annal_sql(index, annal_slice_of(FILES), &options, mirror_row, &mirror, err);
    annal__below_close(&mirror.below);
    if (status == ANNAL_OK && out_counts != NULL)
        *out_counts = mirror.counts;
    return status;
}

/* ---- Import, rule (3) ---- */

struct import {
    struct below below;
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

/* Read a line `name: value` into a member of proposal; other names are ignored. A value in double
 * quotes is a JSON string, which is decoded into scratch. Returns false if memory ran out. */
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

/*
 * Parse a proposal. Returns false if the text is not a proposal, or memory ran out. The slices of
 * *out point into text and scratch; scratch is first given room for the whole text, so that its
 * bytes do not move.
 */
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
           out->content.len > 0 && annal__json_is_utf8(text);
}

static int report_proposal(const struct import *import, const annal_mirror_proposal *proposal)
{
    return import->fn == NULL ? 0 : import->fn(import->arg, proposal);
}

/* Report a file of the inbox that cannot be read as a proposal. path: the file's path, which begins
 * with the directory that the caller gave. Returns the result of fn. */
static int report_unreadable(const struct import *import, const char *path, const char *message)
{
    return report_proposal(import, &(annal_mirror_proposal){.outcome = ANNAL_MIRROR_UNREADABLE,
                                                            .file = path,
                                                            .message = message});
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
        status = annal__post_add_text(data, members[i].name,
                                      members[i].text.len > 0 ? members[i].text : (annal_slice){0});
    return status == ANNAL_OK ? annal__post_close_data(data) : status;
}

static int post_proposal(struct import *import, const char *path, const struct proposal *proposal,
                         annal_error *err)
{
    struct buf data = {0};
    annal_appended appended = {0};
    annal_error refusal = {0};
    int status = write_data(proposal, &data);
    if (status == ANNAL_ERR_LIMIT || data.len > ANNAL_DATA_BYTES_MAX) {
        status = report_unreadable(import, path, TOO_LONG);
        goto done;
    }
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
        status = report_proposal(import, &news);
    } else if (status == ANNAL_ERR_REFUSED) {
        news.outcome = ANNAL_MIRROR_REFUSED;
        news.message = refusal.message;
        status = report_proposal(import, &news);
    } else if (err != NULL) {
        *err = refusal;
    }

done:
    annal_free(appended.data.ptr);
    annal__buf_done(&data);
    return status;
}

/* Turn ANNAL_ERR_IO and ANNAL_ERR_NOTFOUND into ANNAL_ERR_INVALID: if the user's inbox cannot be
 * read, the store is not at fault. Returns any other status unchanged. */
static annal_status as_invalid(annal_status status, annal_error *err)
{
    if (status != ANNAL_ERR_IO && status != ANNAL_ERR_NOTFOUND)
        return status;
    if (err != NULL)
        err->status = ANNAL_ERR_INVALID;
    return ANNAL_ERR_INVALID;
}

/* Return the reason why a file of the inbox cannot be read, for the report: rule (3). Such a file
 * is skipped, so that an agent that writes it cannot stop the import of all other proposals. */
static const char *why_unreadable(int status, const annal_error *why)
{
    return status == ANNAL_ERR_LIMIT ? TOO_LONG
           : why->os_errno == ELOOP  ? "the file is a symbolic link, which is not followed"
           : why->os_errno == EISDIR ? "the path is a directory"
           : why->os_errno == ENODEV ? "the file is not a regular file"
                                     : strerror(why->os_errno);
}

static int import_file(struct import *import, const char *path, annal_error *err)
{
    static const char select[] =
        "SELECT 1 FROM memory.decision_inbox WHERE project_id = ?1 AND slug = ?2";
    struct buf text = {.limit = (size_t)ANNAL_DATA_BYTES_MAX + 1}, scratch = {0};
    struct proposal proposal;
    annal_error why = {0};
    bool known = false;
    int status =
        annal__below_read(&import->below, path + strlen(import->below.root) + 1, &text, &why);
    if (status == ANNAL_ERR_NOMEM) {
        if (err != NULL)
            *err = why;
        goto done;
    }
    if (status < 0) {
        status = report_unreadable(import, path, why_unreadable(status, &why));
        goto done;
    }
    if (!parse_proposal(annal__buf_slice(&text), &scratch, &proposal)) {
        status = report_unreadable(
            import, path,
            "not a proposal: it needs front matter with agent, slug, type and title, and content");
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

static bool is_markdown(const char *name)
{
    size_t len = strlen(name);
    return name[0] != '.' && len > 3 && strcmp(name + len - 3, ".md") == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* List the names of the inbox's files *.md, sorted. The caller frees each name and the array.
 * folder: descriptor of the inbox, which is closed. */
static annal_status list_inbox(int folder, const char *directory, char ***out_names,
                               size_t *out_count, annal_error *err)
{
    annal_status status = ANNAL_OK;
    DIR *stream = fdopendir(folder);
    if (stream == NULL) {
        status = annal__fail_errno(err, "cannot read '%s/" INBOX "'", directory);
        close(folder);
        return status;
    }
    errno = 0;
    for (const struct dirent *entry; status == ANNAL_OK && (entry = readdir(stream)) != NULL;) {
        if (!is_markdown(entry->d_name))
            continue;
        char **name = annal__array_add(out_names, out_count, sizeof *name);
        if (name != NULL)
            *name = annal__strndup(entry->d_name, strlen(entry->d_name));
        if (name == NULL || *name == NULL)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "read the inbox: out of memory");
        errno = 0;
    }
    if (status == ANNAL_OK && errno != 0)
        status = annal__fail_errno(err, "cannot read '%s/" INBOX "'", directory);
    closedir(stream);
    if (*out_count > 0)
        qsort(*out_names, *out_count, sizeof **out_names, by_name);
    return status;
}

/* Set path to the path of a file in the inbox, followed by a NUL. */
static annal_status set_path(struct buf *path, const char *directory, const char *name,
                             annal_error *err)
{
    annal__buf_clear(path);
    annal_status status = annal__buf_printf(path, "%s/" INBOX "/%s", directory, name);
    if (status == ANNAL_OK && annal__buf_cstr(path) == NULL)
        status = ANNAL_ERR_NOMEM;
    if (status < 0)
        annal__fail(err, status, "read the inbox: %s: '%s'",
                    status == ANNAL_ERR_LIMIT ? "the path is too long" : "out of memory",
                    directory);
    return status;
}

static annal_status open_inbox(struct import *import, const char *directory, char ***out_names,
                               size_t *out_count, annal_error *err)
{
    int folder = -1;
    annal_error why = {0};
    annal_status status = annal__below_open(directory, &import->below, &why);
    if (status == ANNAL_OK)
        status = annal__below_folder(&import->below, INBOX, NULL, &folder, &why);
    if (status == ANNAL_OK)
        status = list_inbox(folder, directory, out_names, out_count, &why);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK; /* without the directory or its inbox no proposals exist */
    status = as_invalid(status, &why);
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static int import_all(struct import *import, const char *directory, annal_error *err)
{
    struct buf path = {.limit = PATH_BYTES_MAX};
    char **names = NULL;
    size_t count = 0;
    int status = set_path(&path, directory, "", err);
    if (status == ANNAL_OK)
        status = open_inbox(import, directory, &names, &count, err);
    import->imported.files = count;
    for (size_t i = 0; status == ANNAL_OK && i < count; i++) {
        status = set_path(&path, directory, names[i], err);
        if (status == ANNAL_OK)
            status = import_file(import, path.ptr, err);
    }
    for (size_t i = 0; i < count; i++)
        annal__free(names[i]);
    annal__free(names);
    annal__below_close(&import->below);
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
        annal__fail(err, status,
                    "import the mirror of project '%.*s': the name of the project is too long",
                    ANNAL_FMT(project));
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
