/* SPDX-License-Identifier: Apache-2.0 */
#include "index/backup/backup.h"
#include "journal/sys/artifact.h"
#include "journal/sys/delete.h"
#include "journal/sys/verify.h"

#include "journal/store.h"
#include "tests/index/fixture.h"
#include "tests/support/failing_io.h"
#include "tests/support/runner.h"

#include <annal/artifact.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *backup, *restored;
static annal_backup_result result;

static void setup(void)
{
    fixture_setup();
    backup = tmpdir_path(&f.dir, "backup");
    restored = tmpdir_path(&f.dir, "restored");
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

/* Dump every event of every session of a store, in order; free() it. */
static int dump_session(void *arg, annal_slice session, uint64_t bytes);

struct dump {
    annal_store *store;
    struct text text;
};

static char *dump_of(annal_store *store)
{
    struct dump dump = {.store = store};
    text_add(&dump.text, "", 0);
    ck_ok(annal_session_each(store, dump_session, &dump, err));
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
    mkdir(tmpdir_path(&f.dir, "store/cursors"), 0700);
    const char cursor[] = "{\"annal_cursor\":1}\n";
    file_write(tmpdir_path(&f.dir, "store/cursors/bill.json"), cursor, strlen(cursor));
    file_write(tmpdir_path(&f.dir, "store/cursors/bill.json.tmp-0123456789abcdef"), "x", 1);
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
    ck_assert_uint_eq(result.sessions, 3);
    ck_assert_uint_eq(result.artifacts, 1);
    ck_assert_uint_eq(result.files, 6);
    ck_ok(annal_backup_check(backup, NULL, &result, err));
    ck_ok(annal_backup_restore(backup, restored, NULL, &result, err));
    annal_store *store = open_restored();
    char *before = dump_of(f.store), *after = dump_of(store);
    ck_assert_str_eq(before, after);
    ck_ok(annal_artifact_read(store, ANNAL_SLICE("s1"), annal_slice_of(large.sha256), NULL, NULL,
                              NULL, err));
    size_t len;
    ck_text(file_read(tmpdir_path(&f.dir, "restored/packs/mine.sql"), &len), pack);
    char *copied = file_read(tmpdir_path(&f.dir, "restored/cursors/bill.json"), &len);
    ck_assert_str_eq(copied, cursor);
    ck_ok(annal_store_close(store, err));
    free(copied);
    free(before);
    free(after);
}
END_TEST

START_TEST(a_store_without_events_is_restored)
{
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
    ck_ok(annal_backup_restore(backup, restored, NULL, &result, err));
    ck_ok(annal_store_close(open_restored(), err));
}
END_TEST

START_TEST(a_backup_and_a_restore_overwrite_no_file)
{
    fixture_append_session(&f, "s1");
    mkdir(backup, 0700);
    mkdir(restored, 0700);
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
    ck_assert_int_eq(annal_backup_create(f.index, backup, NULL, &result, NULL), ANNAL_ERR_CONFLICT);
    ck_assert_int_eq(annal_backup_restore(backup, f.path, NULL, &result, NULL), ANNAL_ERR_CONFLICT);
    ck_ok(annal_backup_restore(backup, restored, NULL, &result, err));
    ck_assert_int_eq(annal_backup_restore(backup, restored, NULL, &result, NULL),
                     ANNAL_ERR_CONFLICT);
}
END_TEST

START_TEST(an_interrupted_backup_is_not_a_backup)
{
    fixture_append_session(&f, "s1");
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "backup/manifest")), 0);
    ck_assert_int_eq(annal_backup_check(backup, NULL, &result, NULL), ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(annal_backup_restore(backup, restored, NULL, &result, NULL),
                     ANNAL_ERR_NOTFOUND);
    ck_assert_int_eq(access(restored, F_OK), -1);
}
END_TEST

/* Flip every byte of every file of a small backup, also of its manifest. */
START_TEST(every_flipped_byte_and_every_cut_of_a_backup_is_reported)
{
    static const char *const names[] = {"backup/manifest", "backup/events/s1.jsonl"};
    fixture_append(&f, "s1", "a.b", "{\"n\":1}");
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
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
    ck_assert_int_eq(annal_backup_restore(backup, restored, NULL, &result, NULL),
                     ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(access(restored, F_OK), -1);
}
END_TEST

START_TEST(a_manifest_cannot_name_a_file_outside_of_the_store)
{
    static const char *const paths[] = {"../x",           "/etc/x",    "events/../../x", "locks/x",
                                        "events/.gone/x", "events//x", "events/"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct buf text = {0};
        struct manifest manifest;
        struct backup_file file = {0}, read;
        snprintf(file.path, sizeof file.path, "%s", paths[i]);
        ck_assert_int_eq(annal__backup_manifest_begin(&text, "T"), ANNAL_OK);
        ck_assert_int_eq(annal__backup_manifest_add(&text, &file), ANNAL_OK);
        ck_assert_int_eq(annal__backup_manifest_end(&text, 1, 0), ANNAL_OK);
        mkdir(backup, 0700);
        file_write(tmpdir_path(&f.dir, "backup/manifest"), text.ptr, text.len);
        ck_ok(annal__backup_manifest_open(&manifest, &annal__system_io, backup, err));
        ck_assert_int_eq(annal__backup_manifest_next(&manifest, &read, NULL), ANNAL_ERR_CORRUPT);
        annal__backup_manifest_done(&manifest);
        annal__buf_done(&text);
    }
}
END_TEST

START_TEST(a_torn_end_is_left_out_and_damage_is_copied)
{
    fixture_append(&f, "s1", "a.b", "{\"n\":1}");
    fixture_append(&f, "s2", "a.b", "{\"n\":1}");
    fixture_append(&f, "s2", "a.b", "{\"n\":2}");
    ck_ok(annal_store_checkpoint(f.store, err));
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
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
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

START_TEST(the_progress_callback_can_stop_a_backup)
{
    const annal_backup_options options = {.progress = stop_at_once};
    fixture_append_session(&f, "s1");
    ck_assert_int_eq(annal_backup_create(f.index, backup, &options, &result, NULL), ANNAL_END);
    ck_assert_int_eq(access(tmpdir_path(&f.dir, "backup/manifest"), F_OK), -1);
}
END_TEST

/* A disk that refuses each call in turn, once or from then on. */
static void fail_each_call(bool for_good)
{
    bool failed = true;
    unsigned at = 1;
    for (; failed; at++) {
        struct failing_io disk;
        annal_store *store = NULL;
        annal_index *index = NULL;
        char name[64];
        failing_io_init(&disk);
        disk.lazy = true;
        disk.by_table = true;
        const struct seams seams = {.io = &disk.io, .clock = &annal__system_clock};
        const annal_store_options options = {.no_keeper = true, .wait_ms = 1};
        ck_ok(annal__store_open(f.path, &options, &seams, &store, err));
        ck_ok(annal_index_open(store, NULL, &index, err));
        snprintf(name, sizeof name, "backup-%d-%u", for_good, at);
        const char *directory = tmpdir_path(&f.dir, name);
        disk.calls = 0;
        disk.fail_at = at;
        disk.for_good = for_good;
        annal_status status = annal_backup_create(index, directory, NULL, &result, NULL);
        failed = disk.failed[0] != '\0';
        disk.fail_at = 0;
        annal_status check = annal_backup_check(directory, NULL, &result, NULL);
        ck_assert_msg(status == ANNAL_OK ? check == ANNAL_OK
                                         : check == ANNAL_OK || check == ANNAL_ERR_NOTFOUND,
                      "call %u, %s: backup %s, check %s", at, disk.failed,
                      annal_status_name(status), annal_status_name(check));
        if (check == ANNAL_OK) {
            ck_assert_uint_eq(result.sessions, 2);
            ck_assert_uint_eq(result.artifacts, 1);
        }
        annal_index_close(index);
        (void)!annal_store_close(store, NULL);
    }
    ck_assert_uint_gt(at, 30);
}

START_TEST(on_a_failing_disk_a_backup_is_whole_or_not_a_backup)
{
    fixture_append_session(&f, "s1");
    put("s2", "large");
    ck_ok(annal_store_checkpoint(f.store, err));
    fail_each_call(_i == 1);
}
END_TEST

/* The same for a restore. */
START_TEST(on_a_failing_disk_a_store_is_restored_whole_or_not_at_all)
{
    bool failed = true;
    unsigned at = 1;
    fixture_append_session(&f, "s1");
    put("s2", "large");
    ck_ok(annal_backup_create(f.index, backup, NULL, &result, err));
    for (; failed; at++) {
        struct failing_io disk;
        char name[64];
        failing_io_init(&disk);
        disk.lazy = true;
        disk.by_table = true;
        disk.fail_at = at;
        disk.for_good = _i == 1;
        snprintf(name, sizeof name, "restored-%u", at);
        const char *path = tmpdir_path(&f.dir, name);
        annal_status status = annal__backup_restore(&disk.io, backup, path, NULL, &result, NULL);
        failed = disk.failed[0] != '\0';
        ck_assert_msg(status == ANNAL_OK || failed, "call %u", at);
        if (access(path, F_OK) != 0) {
            ck_assert_int_lt(status, 0);
            continue;
        }
        annal_store *store = NULL;
        ck_ok(annal_store_open(path, &(annal_store_options){.no_keeper = true}, &store, err));
        char *before = dump_of(f.store);
        ck_text(dump_of(store), before);
        free(before);
        ck_ok(annal_store_close(store, err));
    }
    ck_assert_uint_gt(at, 30);
}
END_TEST

/* A process that appends, deletes, converts and stores artifacts as fast as it can. */
_Noreturn static void live(const char *path, int ready)
{
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    annal_error err;
    char data[400], name[8];
    uint64_t seq;
    if (annal_store_open(path, NULL, &store, &err) < 0)
        _exit(1);
    for (unsigned n = 0;; n++) {
        annal_artifact_info info;
        annal__artifact_hold *hold = NULL;
        snprintf(name, sizeof name, "l%u", n % 5);
        snprintf(data, sizeof data, "content number %u of a living writer", n);
        if (annal__artifact_hold_new(store, &hold, &err) < 0 ||
            annal_artifact_put(store, annal_slice_of(name), annal_slice_of(data), &info, &err) < 0)
            _exit(2);
        snprintf(data, sizeof data, "{\"sha256\":\"%s\",\"path\":\"artifacts/%s/%s.zst\"}",
                 info.sha256, name, info.sha256);
        const annal_draft draft = {.type = ANNAL_SLICE("a.b"), .data = annal_slice_of(data)};
        if (annal_writer_open(store, annal_slice_of(name), NULL, &writer, &err) < 0 ||
            annal_writer_append(writer, &draft, 1, NULL, &seq, &err) < 0)
            _exit(3);
        annal_writer_close(writer);
        annal__artifact_hold_free(hold);
        if (n == 20)
            (void)!write(ready, "x", 1);
        if (n % 7 == 3) {
            const annal_convert_options how = {.format = n % 2 == 0 ? ANNAL_FORMAT_JSON
                                                                    : ANNAL_FORMAT_MSGPACK};
            annal_convert_result converted;
            (void)!annal_session_convert(store, annal_slice_of(name), &how, &converted, NULL);
        } else if (n % 11 == 5 &&
                   annal__replace_delete(store, annal_slice_of(name), NULL, NULL) == 0) {
            (void)!annal__artifact_drop(store, annal_slice_of(name), NULL);
        }
    }
}

static int missing(void *arg, annal_slice path)
{
    (void)arg;
    ck_abort_msg("%.*s is missing", ANNAL_FMT(path));
    return 0;
}

static void check_event(void *arg, const annal_event *event, bool after_damage)
{
    (void)after_damage;
    ck_ok(annal__artifact_check_data(arg, event->data, missing, NULL, err));
}

static int verify_one(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    annal_verify_result proved;
    ck_ok(annal__verify_events(arg, session, NULL, NULL, check_event, arg, &proved, err));
    ck_assert_uint_eq(proved.findings, 0);
    return 0;
}

START_TEST(every_backup_is_sound_while_sessions_are_written_deleted_and_converted)
{
    int ready[2];
    char byte, name[32];
    annal_artifact_verify_result proved;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0)
        live(f.path, ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    for (int i = 0; i < 4; i++) {
        annal_store *store = NULL;
        snprintf(name, sizeof name, "backup-%d", i);
        const char *directory = tmpdir_path(&f.dir, name);
        snprintf(name, sizeof name, "restored-%d", i);
        const char *path = tmpdir_path(&f.dir, name);
        ck_ok(annal_backup_create(f.index, directory, NULL, &result, err));
        ck_assert_uint_gt(result.sessions, 0);
        ck_ok(annal_backup_restore(directory, path, NULL, &result, err));
        ck_ok(annal_store_open(path, &(annal_store_options){.no_keeper = true}, &store, err));
        ck_ok(annal_session_each(store, verify_one, store, err));
        ck_ok(annal_artifact_verify(store, NULL, NULL, &proved, err));
        ck_assert_uint_eq(proved.damaged, 0);
        ck_ok(annal_store_close(store, err));
    }
    kill(pid, SIGKILL);
    int ended = 0;
    ck_assert_int_eq(waitpid(pid, &ended, 0), pid);
    ck_assert_msg(WIFSIGNALED(ended), "the writer ended by itself: %d", WEXITSTATUS(ended));
    close(ready[0]);
    close(ready[1]);
}
END_TEST

Suite *suite_backup(void)
{
    Suite *suite = suite_create("backup");
    TCase *tcase = suite_case(suite, "backup", setup, fixture_teardown);
    tcase_add_test(tcase, a_restored_store_has_the_same_events_artifacts_and_packs);
    tcase_add_test(tcase, a_store_without_events_is_restored);
    tcase_add_test(tcase, a_backup_and_a_restore_overwrite_no_file);
    tcase_add_test(tcase, an_interrupted_backup_is_not_a_backup);
    tcase_add_test(tcase, every_flipped_byte_and_every_cut_of_a_backup_is_reported);
    tcase_add_test(tcase, a_manifest_cannot_name_a_file_outside_of_the_store);
    tcase_add_test(tcase, a_torn_end_is_left_out_and_damage_is_copied);
    tcase_add_test(tcase, the_progress_callback_can_stop_a_backup);
    tcase_add_loop_test(tcase, on_a_failing_disk_a_backup_is_whole_or_not_a_backup, 0, 2);
    tcase_add_loop_test(tcase, on_a_failing_disk_a_store_is_restored_whole_or_not_at_all, 0, 2);
    tcase_add_test(tcase, every_backup_is_sound_while_sessions_are_written_deleted_and_converted);
    return suite;
}
