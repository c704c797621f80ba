#include "index/backup.h"

#include "tests/index/fixture.h"

#include <annal/artifact.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fixture f;
static const char *backup, *restored;
static annal_backup_result result;

static void setup(void)
{
    f = (struct fixture){0};
    FIXTURE_INIT(&f);
    backup = tmpdir_path(&f.dir, "backup");
    restored = tmpdir_path(&f.dir, "restored");
}

static void teardown(void)
{
    fixture_done(&f);
}

static annal_artifact_info put(const char *session, const char *text)
{
    annal_artifact_info info;
    char data[300];
    ck_ok(annal_artifact_put(f.store, annal_slice_of(session), annal_slice_of(text), &info, err));
    snprintf(data, sizeof data, "{\"sha256\":\"%s\",\"path\":\"artifacts/%s/%s.zst\"}", info.sha256,
             session, info.sha256);
    fixture_append(&f, session, "artifact.stored", data);
    return info;
}

/* Every event of every session of a store, in order; free() it. */
static int dump_session(void *arg, annal_slice session, uint64_t bytes);

struct dump {
    annal_store *store;
    struct text text;
};

static char *dump_of(annal_store *store)
{
    struct dump dump = {.store = store};
    text_add(&dump.text, "", 0);
    ck_ok(annal_store_sessions(store, dump_session, &dump, err));
    return dump.text.ptr;
}

static int dump_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    struct dump *dump = arg;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status;
    ck_ok(annal_cursor_open(dump->store, session, 1, &cursor, err));
    while ((status = annal_cursor_next(cursor, &event, NULL)) == ANNAL_OK) {
        char head[300];
        snprintf(head, sizeof head, "%.*s %llu %.*s ", ANNAL_FMT(session),
                 (unsigned long long)event.seq, ANNAL_FMT(event.type));
        text_add(&dump->text, head, strlen(head));
        text_add(&dump->text, event.data.ptr, event.data.len);
        text_add(&dump->text, "\n", 1);
    }
    ck_assert_int_eq(status, ANNAL_END);
    annal_cursor_close(cursor);
    return 0;
}

static annal_store *open_restored(void)
{
    annal_store *store = NULL;
    ck_ok(annal_store_open(restored, &(annal_store_options){.no_keeper = true}, &store, err));
    return store;
}

START_TEST(a_restored_store_has_the_same_events_artifacts_and_packs)
{
    fixture_append_session(&f, "s1");
    fixture_append_many(&f, "s2", 300, 1000000);
    annal_writer *writer = NULL;
    uint64_t seq;
    const annal_draft draft = {.type = ANNAL_SLICE("a.b"), .data = ANNAL_SLICE("{\"n\":1}")};
    ck_ok(annal_writer_open(f.store, ANNAL_SLICE("s3"),
                            &(annal_writer_options){.format = ANNAL_FORMAT_MSGPACK}, &writer, err));
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
    annal_artifact_info large = put("s1", "large");
    mkdir(tmpdir_path(&f.dir, "store/packs"), 0700);
    const char pack[] = "-- pack mine version 1 database mine.db\nCREATE TABLE t (n);\n";
    file_write(tmpdir_path(&f.dir, "store/packs/mine.sql"), pack, strlen(pack));
    ck_ok(annal_backup(f.index, backup, NULL, &result, err));
    ck_assert_uint_eq(result.sessions, 3);
    ck_assert_uint_eq(result.artifacts, 1);
    ck_assert_uint_eq(result.files, 5);
    ck_ok(annal_backup_check(backup, NULL, &result, err));
    ck_ok(annal_restore(backup, restored, NULL, &result, err));
    annal_store *store = open_restored();
    char *before = dump_of(f.store), *after = dump_of(store);
    ck_assert_str_eq(before, after);
    ck_ok(annal_artifact_read(store, ANNAL_SLICE("s1"), annal_slice_of(large.sha256), NULL, NULL,
                              NULL, err));
    size_t len;
    char *copied = file_read(tmpdir_path(&f.dir, "restored/packs/mine.sql"), &len);
    ck_assert_str_eq(copied, pack);
    ck_ok(annal_store_close(store, err));
    free(copied);
    free(before);
    free(after);
}
END_TEST

START_TEST(a_store_without_events_is_restored_as_one)
{
    ck_ok(annal_backup(f.index, backup, NULL, &result, err));
    ck_ok(annal_restore(backup, restored, NULL, &result, err));
    ck_ok(annal_store_close(open_restored(), err));
}
END_TEST

START_TEST(nothing_is_ever_overwritten)
{
    fixture_append_session(&f, "s1");
    mkdir(backup, 0700);
    mkdir(restored, 0700);
    ck_ok(annal_backup(f.index, backup, NULL, &result, err));
    ck_assert_int_eq(annal_backup(f.index, backup, NULL, &result, NULL), ANNAL_ERR_CONFLICT);
    ck_assert_int_eq(annal_restore(backup, f.path, NULL, &result, NULL), ANNAL_ERR_CONFLICT);
    ck_ok(annal_restore(backup, restored, NULL, &result, err));
    ck_assert_int_eq(annal_restore(backup, restored, NULL, &result, NULL), ANNAL_ERR_CONFLICT);
}
END_TEST

START_TEST(a_backup_that_broke_off_is_none)
{
    fixture_append_session(&f, "s1");
    ck_ok(annal_backup(f.index, backup, NULL, &result, err));
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "backup/manifest")), 0);
    ck_assert_int_eq(annal_backup_check(backup, NULL, &result, NULL), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal_restore(backup, restored, NULL, &result, NULL), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(access(restored, F_OK), -1);
}
END_TEST

/* Every byte of every file of a small backup, also of its manifest. */
START_TEST(every_flipped_byte_and_every_cut_of_a_backup_is_found)
{
    static const char *const names[] = {"backup/manifest", "backup/events/s1.jsonl"};
    fixture_append(&f, "s1", "a.b", "{\"n\":1}");
    ck_ok(annal_backup(f.index, backup, NULL, &result, err));
    for (size_t i = 0; i < 2; i++) {
        size_t len;
        const char *path = tmpdir_path(&f.dir, names[i]);
        char *bytes = file_read(path, &len);
        for (size_t at = 0; at < len; at++) {
            bytes[at] ^= 1;
            file_write(path, bytes, len);
            ck_assert_msg(annal_backup_check(backup, NULL, &result, NULL) == ANNAL_ERR_CORRUPT,
                          "byte %zu of %s", at, names[i]);
            bytes[at] ^= 1;
            file_write(path, bytes, at);
            ck_assert_msg(annal_backup_check(backup, NULL, &result, NULL) == ANNAL_ERR_CORRUPT,
                          "%s cut at %zu", names[i], at);
        }
        file_write(path, bytes, len);
        free(bytes);
    }
    ck_ok(annal_backup_check(backup, NULL, &result, err));
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, names[1])), 0);
    ck_assert_int_eq(annal_restore(backup, restored, NULL, &result, NULL), ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(access(restored, F_OK), -1);
}
END_TEST

START_TEST(a_manifest_cannot_lead_out_of_the_store)
{
    static const char *const paths[] = {"../x",           "/etc/x",    "events/../../x", "locks/x",
                                        "events/.gone/x", "events//x", "events/"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct buf text = {0};
        struct manifest manifest;
        struct backup_file file = {0}, read;
        snprintf(file.path, sizeof file.path, "%s", paths[i]);
        ck_assert_int_eq(annal__manifest_begin(&text, "T"), ANNAL_OK);
        ck_assert_int_eq(annal__manifest_add(&text, &file), ANNAL_OK);
        ck_assert_int_eq(annal__manifest_end(&text, 1, 0), ANNAL_OK);
        mkdir(backup, 0700);
        file_write(tmpdir_path(&f.dir, "backup/manifest"), text.ptr, text.len);
        ck_ok(annal__manifest_open(&manifest, &annal__system_io, backup, err));
        ck_assert_int_eq(annal__manifest_next(&manifest, &read, NULL), ANNAL_ERR_CORRUPT);
        annal__manifest_done(&manifest);
        annal__buf_done(&text);
    }
}
END_TEST

START_TEST(a_torn_end_is_left_out_and_damage_is_copied)
{
    fixture_append(&f, "s1", "a.b", "{\"n\":1}");
    fixture_append(&f, "s2", "a.b", "{\"n\":1}");
    fixture_append(&f, "s2", "a.b", "{\"n\":2}");
    ck_ok(annal_checkpoint(f.store, err));
    const char *torn = tmpdir_path(&f.dir, "store/events/s1.jsonl");
    const char *damaged = tmpdir_path(&f.dir, "store/events/s2.jsonl");
    size_t len, damaged_len;
    char *bytes = file_read(damaged, &damaged_len);
    strstr(bytes, "\"n\":2")[4] = '3';
    file_write(damaged, bytes, damaged_len);
    free(bytes);
    bytes = file_read(torn, &len);
    FILE *file = fopen(torn, "a");
    fputs("{\"seq\":2,\"ts\":\"2026", file);
    fclose(file);
    ck_ok(annal_backup(f.index, backup, NULL, &result, err));
    size_t copied_len;
    char *copied = file_read(tmpdir_path(&f.dir, "backup/events/s1.jsonl"), &copied_len);
    ck_assert_uint_eq(copied_len, len);
    ck_assert_mem_eq(copied, bytes, len);
    free(copied);
    copied = file_read(tmpdir_path(&f.dir, "backup/events/s2.jsonl"), &copied_len);
    ck_assert_uint_eq(copied_len, damaged_len);
    free(copied);
    free(bytes);
}
END_TEST

static int stop_at_once(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return 1;
}

START_TEST(progress_can_stop_it)
{
    const annal_backup_options options = {.progress = stop_at_once};
    fixture_append_session(&f, "s1");
    ck_assert_int_eq(annal_backup(f.index, backup, &options, &result, NULL), ANNAL_END);
    ck_assert_int_eq(access(tmpdir_path(&f.dir, "backup/manifest"), F_OK), -1);
}
END_TEST

Suite *suite_backup(void)
{
    Suite *suite = suite_create("backup");
    TCase *tcase = tcase_create("backup");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_restored_store_has_the_same_events_artifacts_and_packs);
    tcase_add_test(tcase, a_store_without_events_is_restored_as_one);
    tcase_add_test(tcase, nothing_is_ever_overwritten);
    tcase_add_test(tcase, a_backup_that_broke_off_is_none);
    tcase_add_test(tcase, every_flipped_byte_and_every_cut_of_a_backup_is_found);
    tcase_add_test(tcase, a_manifest_cannot_lead_out_of_the_store);
    tcase_add_test(tcase, a_torn_end_is_left_out_and_damage_is_copied);
    tcase_add_test(tcase, progress_can_stop_it);
    suite_add_tcase(suite, tcase);
    return suite;
}
