/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/runner.h"

#include <annal/packs/mirror.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void setup(void)
{
    packs_setup();
    PACKS_ENABLE(&p, "agentweaver", "memory");
}

#define P1 ANNAL_SLICE("p1")

static int add_file(void *arg, const annal_mirror_file *file)
{
    text_add(arg, file->deleted ? "-" : "+", 1);
    text_add(arg, file->path, strlen(file->path));
    text_add(arg, "\n", 1);
    return 0;
}

static int add_proposal(void *arg, const annal_mirror_proposal *proposal)
{
    static const char *const outcomes[] = {"", "taken", "refused", "unreadable"};
    char line[300];
    int len = snprintf(line, sizeof line, "%s %.*s %s\n", outcomes[proposal->outcome],
                       ANNAL_FMT(proposal->slug), strrchr(proposal->file, '/') + 1);
    ck_assert_int_eq(proposal->outcome == ANNAL_MIRROR_TAKEN, proposal->message == NULL);
    ck_assert_int_eq(proposal->outcome == ANNAL_MIRROR_TAKEN, proposal->seq > 0);
    ck_assert_int_eq(proposal->outcome == ANNAL_MIRROR_TAKEN, proposal->data.len > 0);
    text_add(arg, line, (size_t)len);
    return 0;
}

static int stop_at_file(void *arg, const annal_mirror_file *file)
{
    (void)arg;
    (void)file;
    return 7;
}

static int stop_at_proposal(void *arg, const annal_mirror_proposal *proposal)
{
    (void)arg;
    (void)proposal;
    return 7;
}

#define ck_file(got, expected)                                                                     \
    do {                                                                                           \
        ck_assert_str_eq((got)->ptr != NULL ? (got)->ptr : "", expected);                          \
        free((got)->ptr);                                                                          \
        *(got) = (struct text){0};                                                                 \
    } while (0)

static void propose(const char *slug)
{
    char data[300];
    snprintf(data, sizeof data,
             "{\"slug\":\"%s\",\"agent_name\":\"ada\",\"type\":\"scope\",\"title\":\"T\","
             "\"content\":\"C\"}",
             slug);
    ck_append(&p, "proj_p1", "decision.proposed", data);
}

START_TEST(a_program_writes_a_mirror_and_receives_a_callback_for_each_file)
{
    struct text files = {0};
    annal_mirror_counts counts = {0};
    char tree[4096];
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&p.dir, "w"));
    ck_fails(ANNAL_ERR_NOTFOUND, "there is no project 'p1'",
             annal_mirror_export(p.index, P1, tree, add_file, &files, &counts, err));
    propose("a/b");
    ck_ok(annal_mirror_export(p.index, P1, tree, add_file, &files, &counts, err));
    ck_file(&files, "+.squad/decisions.md\n+.squad/decisions/inbox/a%2Fb.md\n"
                    "+.squad/identity/now.md\n+.agentweaver/context/boundaries.md\n"
                    "+.agentweaver/context/patterns.md\n");
    ck_assert_uint_eq(counts.written, 5);
    ck_append(&p, "proj_p1", "decision.promoted", "{\"entry_id\":\"i1\"}");
    ck_ok(annal_mirror_export(p.index, P1, tree, add_file, &files, &counts, err));
    ck_file(&files, "-.squad/decisions/inbox/a%2Fb.md\n+.squad/decisions.md\n"
                    "+.agentweaver/context/boundaries.md\n");
    ck_assert_uint_eq(counts.written, 2);
    ck_assert_uint_eq(counts.deleted, 1);
    ck_assert_uint_eq(counts.unchanged, 2);
    ck_ok(annal_mirror_export(p.index, P1, tree, NULL, NULL, NULL, err));
    propose("more");
    ck_assert_int_eq(annal_mirror_export(p.index, P1, tree, stop_at_file, NULL, NULL, NULL), 7);
}
END_TEST

START_TEST(a_failure_to_write_a_mirror_names_the_path)
{
    propose("a");
    char tree[4096];
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&p.dir, "w"));
    file_write(tmpdir_path(&p.dir, "w"), "x", 1);
    ck_fails(ANNAL_ERR_IO, "/w': Not a directory",
             annal_mirror_export(p.index, P1, tree, NULL, NULL, NULL, err));
}
END_TEST

/* out/ represents the rest of the disk, where links lead. List its content. */
static char *outside(void)
{
    char command[400];
    size_t len;
    const char *list = tmpdir_path(&p.dir, "list");
    snprintf(command, sizeof command, "cd '%s' && find . -exec ls -ld --time-style=+ {} + >'%s'",
             tmpdir_path(&p.dir, "out"), list);
    ck_assert_int_eq(system(command), 0);
    return file_read(list, &len);
}

START_TEST(an_export_follows_no_link_in_the_workspace_of_agents)
{
    static const char *const places[] = {".squad",
                                         ".squad/decisions",
                                         ".squad/decisions/inbox",
                                         ".squad/agents",
                                         ".squad/agents/ada",
                                         ".squad/identity",
                                         ".agentweaver",
                                         ".agentweaver/context",
                                         ".squad/decisions.md",
                                         ".squad/agents/ada/history.md",
                                         ".squad/decisions/inbox/b.md"};
    propose("a");
    propose("b");
    ck_append(&p, "proj_p1", "decision.rejected", "{\"entry_id\":\"i1\"}");
    ck_append(&p, "proj_p1", "memory.noted",
              "{\"agent_name\":\"ada\",\"type\":\"learning\",\"content\":\"c\"}");
    char tree[300], out[300];
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&p.dir, "w"));
    snprintf(out, sizeof out, "%s", tmpdir_path(&p.dir, "out"));
    ck_assert_int_eq(mkdir(out, 0700), 0);
    file_write(tmpdir_path(&p.dir, "out/a.md"), "theirs", 6); /* the name of a stale proposal */
    char *before = outside();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char place[400], to[400], command[900];
        snprintf(command, sizeof command, "rm -rf '%s'; mkdir -p \"$(dirname '%s/%s')\"", tree,
                 tree, places[i]);
        ck_assert_int_eq(system(command), 0);
        snprintf(place, sizeof place, "%s/%s", tree, places[i]);
        snprintf(to, sizeof to, "%s%s", out, strstr(place, ".md") != NULL ? "/new" : "");
        ck_assert_int_eq(symlink(to, place), 0);
        snprintf(command, sizeof command, "%s' is a symbolic link", places[i]);
        ck_fails(ANNAL_ERR_IO, command,
                 annal_mirror_export(p.index, P1, tree, NULL, NULL, NULL, err));
        char *after = outside();
        ck_assert_msg(strcmp(before, after) == 0, "%s: %s", places[i], after);
        free(after);
    }
    free(before);
    /* The path that the user gives may be a link. */
    ck_assert_int_eq(symlink(out, tmpdir_path(&p.dir, "link")), 0);
    ck_ok(annal_mirror_export(p.index, P1, tmpdir_path(&p.dir, "link"), NULL, NULL, NULL, err));
    ck_assert_int_eq(access(tmpdir_path(&p.dir, "out/.squad/decisions.md"), F_OK), 0);
}
END_TEST

static void put(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "w/.squad/decisions/inbox/%s", name);
    file_write(tmpdir_path(&p.dir, path), text, strlen(text));
}

START_TEST(a_program_imports_proposals_from_files_and_receives_a_callback_for_each)
{
    struct text news = {0};
    annal_mirror_imported imported = {0};
    const annal_mirror_import_options options = {.cause = ANNAL_SLICE("proj_p1:1")};
    char tree[4096];
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&p.dir, "w"));
    ck_ok(annal_mirror_import(p.index, P1, tree, NULL, add_proposal, &news, &imported, err));
    ck_assert_uint_eq(imported.files, 0);
    propose("known");
    ck_ok(annal_mirror_export(p.index, P1, tree, NULL, NULL, NULL, err));
    put("b.md", "---\nagent: bob\nslug: fresh\ntype: scope\ntitle: \"A \\u0042\"\n---\nBody\n");
    put("c.md", "nothing\n");
    put("d.md", "---\nagent: bob\nslug: last\ntype: scope\ntitle: D\n---\nBody\n");
    ck_assert_int_eq(
        annal_mirror_import(p.index, P1, tree, NULL, stop_at_proposal, NULL, NULL, NULL), 7);
    ck_ok(annal_mirror_import(p.index, P1, tree, &options, add_proposal, &news, &imported, err));
    ck_file(&news, "unreadable  c.md\ntaken last d.md\n");
    ck_assert_uint_eq(imported.files, 4);
    ck_assert_uint_eq(imported.taken, 1);
    ck_packs(&p, "SELECT slug, title, content, rationale FROM decision_inbox ORDER BY slug",
             "fresh|A B|Body|\nknown|T|C|\nlast|D|Body|\n");
    ck_ok(annal_mirror_import(p.index, P1, tree, NULL, NULL, NULL, NULL, err));
    ck_fails(ANNAL_ERR_INVALID, "of the session id is not one of",
             annal_mirror_import(p.index, ANNAL_SLICE("a/b"), tree, NULL, NULL, NULL, NULL, err));
}
END_TEST

START_TEST(an_import_follows_neither_a_link_in_the_inbox_nor_an_inbox_that_is_a_link)
{
    static const char text[] = "---\nagent: eve\nslug: %s\ntype: scope\ntitle: T\n---\nsecret\n";
    struct text news = {0};
    char tree[300];
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&p.dir, "w"));
    propose("known");
    ck_ok(annal_mirror_export(p.index, P1, tree, NULL, NULL, NULL, err));
    file_write(tmpdir_path(&p.dir, "secret.md"), text, sizeof text - 1);
    ck_assert_int_eq(symlink(tmpdir_path(&p.dir, "secret.md"),
                             tmpdir_path(&p.dir, "w/.squad/decisions/inbox/l.md")),
                     0);
    put("m.md", "---\nagent: bob\nslug: fresh\ntype: scope\ntitle: T\n---\nBody\n");
    ck_ok(annal_mirror_import(p.index, P1, tree, NULL, add_proposal, &news, NULL, err));
    ck_file(&news, "unreadable  l.md\ntaken fresh m.md\n");
    ck_assert_int_eq(
        rename(tmpdir_path(&p.dir, "w/.squad/decisions/inbox"), tmpdir_path(&p.dir, "elsewhere")),
        0);
    ck_assert_int_eq(
        symlink(tmpdir_path(&p.dir, "elsewhere"), tmpdir_path(&p.dir, "w/.squad/decisions/inbox")),
        0);
    ck_fails(ANNAL_ERR_INVALID, "/inbox' is a symbolic link",
             annal_mirror_import(p.index, P1, tree, NULL, NULL, NULL, NULL, err));
}
END_TEST

START_TEST(a_bad_file_in_the_inbox_blocks_no_other_proposal)
{
    static const char head[] = "---\nagent: eve\nslug: big\ntype: scope\ntitle: T\n---\n";
    struct text news = {0};
    char tree[300], inbox[400];
    size_t len = ANNAL_DATA_BYTES_MAX / 6 + 1000;
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&p.dir, "w"));
    propose("known");
    ck_ok(annal_mirror_export(p.index, P1, tree, NULL, NULL, NULL, err));
    snprintf(inbox, sizeof inbox, "%s/.squad/decisions/inbox", tree);
    int folder = open(inbox, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(folder, 0);
    ck_assert_int_eq(mkdirat(folder, "a.md", 0700), 0);
    ck_assert_int_eq(mkfifoat(folder, "b.md", 0600), 0);
    ck_assert_int_eq(unlinkat(folder, "known.md", 0), 0);
    char *large = malloc(len);
    ck_assert_ptr_nonnull(large);
    memset(large, '\1', len); /* six times as long in JSON */
    memcpy(large, head, sizeof head - 1);
    snprintf(inbox, sizeof inbox, "%s/.squad/decisions/inbox/c.md", tree);
    file_write(inbox, large, len);
    free(large);
    put("d.md", "");
    ck_assert_int_eq(truncate(tmpdir_path(&p.dir, "w/.squad/decisions/inbox/d.md"),
                              (off_t)ANNAL_DATA_BYTES_MAX + 2),
                     0);
    put("m.md", "---\nagent: bob\nslug: fresh\ntype: scope\ntitle: T\n---\nBody\n");
    ck_ok(annal_mirror_import(p.index, P1, tree, NULL, add_proposal, &news, NULL, err));
    ck_file(&news, "unreadable  a.md\nunreadable  b.md\nunreadable  c.md\nunreadable  d.md\n"
                   "taken fresh m.md\n");
    close(folder);
}
END_TEST

START_TEST(an_unreadable_inbox_is_an_error_of_the_caller)
{
    char tree[4096];
    snprintf(tree, sizeof tree, "%s", tmpdir_path(&p.dir, "w"));
    propose("a");
    ck_ok(annal_mirror_export(p.index, P1, tree, NULL, NULL, NULL, err));
    ck_assert_int_eq(rename(tmpdir_path(&p.dir, "w/.squad/decisions/inbox"),
                            tmpdir_path(&p.dir, "w/.squad/decisions/aside")),
                     0);
    file_write(tmpdir_path(&p.dir, "w/.squad/decisions/inbox"), "", 0);
    ck_fails(ANNAL_ERR_INVALID, "inbox': Not a directory",
             annal_mirror_import(p.index, P1, tree, NULL, NULL, NULL, NULL, err));
    char *longest = calloc(1, 9001);
    ck_assert_ptr_nonnull(longest);
    memset(longest, 'x', 9000);
    ck_fails(ANNAL_ERR_LIMIT, "the path is too long",
             annal_mirror_import(p.index, P1, longest, NULL, NULL, NULL, NULL, err));
    free(longest);
    ck_ok(annal_pack_disable(p.store, "memory", err));
    ck_fails(ANNAL_ERR_NOTFOUND, "pack memory is not enabled",
             annal_mirror_import(p.index, P1, tree, NULL, NULL, NULL, NULL, err));
}
END_TEST

Suite *suite_mirror(void)
{
    Suite *suite = suite_create("mirror");
    TCase *tcase = suite_case(suite, "mirror", setup, packs_teardown);
    tcase_add_test(tcase, a_program_writes_a_mirror_and_receives_a_callback_for_each_file);
    tcase_add_test(tcase, an_export_follows_no_link_in_the_workspace_of_agents);
    tcase_add_test(tcase,
                   an_import_follows_neither_a_link_in_the_inbox_nor_an_inbox_that_is_a_link);
    tcase_add_test(tcase, a_failure_to_write_a_mirror_names_the_path);
    tcase_add_test(tcase, a_program_imports_proposals_from_files_and_receives_a_callback_for_each);
    tcase_add_test(tcase, a_bad_file_in_the_inbox_blocks_no_other_proposal);
    tcase_add_test(tcase, an_unreadable_inbox_is_an_error_of_the_caller);
    return suite;
}
