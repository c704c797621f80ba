/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: the examples that Python and Node share, and rules that these do not cover. */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <annal/artifact.h>
#include <annal/delete.h>
#include <annal/step.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 8, FIELDS_MAX = 8 };
#define KEY ANNAL_SLICE("a")

/* A session of the examples, and the processes that claimed it, the newest last. */
struct scene {
    char session[32];
    annal_steps *steps[OPEN_MAX];
    char started[OPEN_MAX][400]; /* the keys that each started, with a tab after each */
    int count;
    uint64_t seq; /* the last event that was compared */
};

static void scene_close(struct scene *scene)
{
    for (int i = 0; i < scene->count; i++)
        annal_steps_close(scene->steps[i]);
    scene->count = 0;
}

/* Cut a member that differs from run to run out of the data. */
static void cut(char *data, const char *member)
{
    char *at = strstr(data, member);
    if (at != NULL)
        memmove(at, at + strcspn(at + 1, ",}") + 1, strlen(at + strcspn(at + 1, ",}") + 1) + 1);
}

/* Compare the events of steps that were appended since the last call. */
static void ck_events(struct scene *scene, char **fields)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    ck_ok(annal_cursor_open(f.store, annal_slice_of(scene->session), scene->seq + 1, &cursor, err));
    while (annal_cursor_next(cursor, &event, NULL) == ANNAL_OK) {
        char text[2000];
        scene->seq = event.seq;
        if (strncmp(event.type.ptr, "session.", 8) == 0)
            continue;
        snprintf(text, sizeof text, "%.*s %.*s", ANNAL_FMT(event.type), ANNAL_FMT(event.data));
        cut(text, ",\"duration_ms\":");
        ck_assert_ptr_nonnull(*fields);
        ck_assert_str_eq(text, *fields++);
    }
    ck_assert_ptr_null(*fields);
    annal_cursor_close(cursor);
}

static void answer_text(char out[2000], annal_status status, const annal_step_answer *answer)
{
    if (status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_INVALID)
        strcpy(out, annal_status_name(status));
    else if (answer->is_failed)
        snprintf(out, 2000, "failed %.*s %.*s", ANNAL_FMT(answer->error_type),
                 ANNAL_FMT(answer->error_message));
    else
        snprintf(out, 2000, "%.*s", ANNAL_FMT(answer->result));
}

/* End a step that was begun: DOES is "returns JSON" or "raises TYPE MESSAGE". */
static annal_status end(annal_steps *steps, annal_slice key, char *does, annal_step_answer *answer)
{
    if (strncmp(does, "returns ", 8) == 0)
        return annal_step_complete(steps, key, annal_slice_of(does + 8), answer, NULL);
    char *type = does + 7, *message = strchr(type, ' ') + 1;
    const annal_step_error error = {.type = {type, (size_t)(message - 1 - type)},
                                    .message = annal_slice_of(message)};
    annal_status status = annal_step_fail(steps, key, &error, NULL);
    *answer = (annal_step_answer){
        .is_failed = true, .error_type = error.type, .error_message = error.message};
    return status;
}

static void act(struct scene *scene, char **fields)
{
    annal_slice key = annal_slice_of(fields[1]);
    annal_step_answer answer = {.is_failed = false};
    char text[2000] = "", mark[400];
    int by = scene->count - 1;
    annal_status status = ANNAL_OK;
    snprintf(mark, sizeof mark, "%s\t", fields[1]);
    if (strcmp(fields[0], "end") == 0) {
        while (strstr(scene->started[by], mark) == NULL)
            by--;
    } else {
        status = annal_step_begin(scene->steps[by], key, &answer, NULL);
    }
    if (strcmp(fields[0], "start") != 0 && status == ANNAL_OK)
        status = end(scene->steps[by], key, fields[2], &answer);
    else if (status == ANNAL_OK)
        strcat(scene->started[by], mark);
    answer_text(text, status, &answer);
    ck_assert_str_eq(text, fields[3] == NULL ? "" : fields[3]);
    ck_events(scene, fields[3] == NULL ? fields + 3 : fields + 4);
}

START_TEST(the_shared_examples_hold)
{
    static struct scene scene;
    char line[4000];
    int cases = 0;
    FILE *file = fopen(TEST_STEPS, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[FIELDS_MAX + 2] = {NULL}, *rest = line;
        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < FIELDS_MAX && rest != NULL; i++)
            fields[i] = strsep(&rest, "\t");
        if (strcmp(fields[0], "case") == 0) {
            scene_close(&scene);
            scene = (struct scene){.count = 0};
            snprintf(scene.session, sizeof scene.session, "case-%d", ++cases);
        } else if (strcmp(fields[0], "open") == 0) {
            ck_assert_int_lt(scene.count, OPEN_MAX);
            ck_ok(annal_steps_open(f.index, annal_slice_of(scene.session), (annal_slice){0},
                                   &scene.steps[scene.count++], err));
        } else if (line[0] != '#') {
            act(&scene, fields);
        }
    }
    scene_close(&scene);
    fclose(file);
    ck_assert_int_gt(cases, 5);
}
END_TEST

static annal_steps *claim(void)
{
    annal_steps *steps = NULL;
    ck_ok(annal_steps_open(f.index, ANNAL_SLICE("s"), ANNAL_SLICE("payer"), &steps, err));
    return steps;
}

static void ck_result(const annal_step_answer *answer, const char *wanted)
{
    ck_assert_uint_eq(answer->result.len, strlen(wanted));
    ck_assert_int_eq(memcmp(answer->result.ptr, wanted, answer->result.len), 0);
}

START_TEST(a_step_continues_after_a_recorded_attempt)
{
    annal_step_answer answer;
    annal_steps *steps = claim();
    ck_ok(annal_step_begin(steps, KEY, &answer, err));
    const annal_step_error error = {.message = ANNAL_SLICE("no answer"), .attempt = 1};
    ck_ok(annal_step_fail(steps, KEY, &error, err));
    ck_ok(annal_step_complete(steps, KEY, ANNAL_SLICE(" [1] "), &answer, err));
    ck_result(&answer, "[1]");
    ck_assert_uint_eq(answer.seq, 4);
    annal_steps_close(steps);
    ck_sql(&f, "SELECT title, status FROM sessions", "payer|running\n");
    ck_sql(&f,
           "SELECT data ->> '$.reason', data ->> '$.attempt', data ->> '$.error.type' FROM events"
           " WHERE type = 'step.retried'",
           "error|1|Error\n");
}
END_TEST

START_TEST(a_result_that_is_not_json_is_refused_and_the_step_stays_begun)
{
    annal_step_answer answer;
    annal_steps *steps = claim();
    ck_assert_int_eq(annal_step_complete(steps, KEY, ANNAL_SLICE("1"), NULL, NULL),
                     ANNAL_ERR_INVALID);
    ck_ok(annal_step_begin(steps, KEY, &answer, err));
    const char *const wrong[] = {"", "{", "1,\"success\":false", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(annal_step_complete(steps, KEY, annal_slice_of(wrong[i]), NULL, NULL),
                         ANNAL_ERR_INVALID);
    ck_assert_int_eq(annal_step_begin(steps, ANNAL_SLICE("\xff"), &answer, NULL),
                     ANNAL_ERR_INVALID);
    ck_ok(annal_step_complete(steps, KEY, ANNAL_SLICE("1"), &answer, err));
    ck_assert_uint_eq(answer.seq, 3);
    annal_steps_close(steps);
}
END_TEST

/* As other programs store a long output: a text literally, other values as JSON. */
START_TEST(a_result_in_an_artifact_is_read_from_there)
{
    annal_step_answer answer;
    for (int is_json = 0; is_json < 2; is_json++) {
        const annal_slice content = is_json ? ANNAL_SLICE("[\"x\"]") : ANNAL_SLICE("\"x\ny");
        annal_artifact_info info;
        char data[600];
        ck_ok(annal_artifact_put(f.store, ANNAL_SLICE("s"), content, &info, err));
        snprintf(data, sizeof data,
                 "{\"call_id\":\"step:%d\",\"output_ref\":{\"sha256\":\"%s\",\"media_type\":\"%s\","
                 "\"path\":\"artifacts/s/%s.zst\"}}",
                 is_json, info.sha256, is_json ? "application/json" : "text/plain", info.sha256);
        fixture_append(&f, "s", "tool.returned", data);
    }
    annal_steps *steps = claim();
    ck_assert_int_eq(annal_step_begin(steps, ANNAL_SLICE("0"), &answer, NULL), ANNAL_END);
    ck_result(&answer, "\"\\\"x\\ny\"");
    ck_assert_int_eq(annal_step_begin(steps, ANNAL_SLICE("1"), &answer, NULL), ANNAL_END);
    ck_result(&answer, "[\"x\"]");
    annal_steps_close(steps);
}
END_TEST

START_TEST(a_result_of_more_than_48_mib_becomes_an_artifact)
{
    size_t len = ((size_t)48 << 20) + 3;
    char *result = malloc(len + 1);
    annal_step_answer answer;
    memset(result, 'x', len);
    result[0] = result[len - 1] = '"';
    annal_steps *steps = claim();
    ck_ok(annal_step_begin(steps, KEY, &answer, err));
    ck_ok(annal_step_complete(steps, KEY, (annal_slice){result, len}, &answer, err));
    ck_assert_uint_eq(answer.result.len, len);
    ck_assert_int_eq(memcmp(answer.result.ptr, result, len), 0);
    annal_steps_close(steps);
    ck_sql(&f,
           "SELECT data ->> '$.output_ref.bytes', data ->> '$.output_ref.media_type' FROM events"
           " WHERE type = 'tool.returned'",
           "50331651|application/json\n");
    free(result);
}
END_TEST

/* The fork has the steps of its parent, and its own owner. */
START_TEST(a_fork_has_the_steps_before_its_fork_point)
{
    annal_step_answer answer;
    annal_steps *steps = claim(), *forked = NULL;
    ck_ok(annal_step_begin(steps, KEY, &answer, err));
    ck_ok(annal_step_complete(steps, KEY, ANNAL_SLICE("1"), &answer, err));
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("s"), 0, ANNAL_SLICE("s2"), NULL, NULL, err));
    ck_ok(annal_steps_open(f.index, ANNAL_SLICE("s2"), (annal_slice){0}, &forked, err));
    ck_assert_int_eq(annal_step_begin(forked, KEY, &answer, NULL), ANNAL_END);
    ck_ok(annal_step_begin(forked, ANNAL_SLICE("b"), &answer, err));
    ck_ok(annal_step_begin(steps, ANNAL_SLICE("b"), &answer, err));
    annal_steps_close(forked);
    annal_steps_close(steps);
}
END_TEST

START_TEST(a_step_of_a_deleted_session_fails)
{
    const annal_slice session = ANNAL_SLICE("s");
    annal_step_answer answer;
    annal_steps *steps = claim();
    ck_ok(annal_session_delete(f.index, &session, 1, NULL, NULL, err));
    annal_error error = {0};
    ck_assert_int_eq(annal_step_begin(steps, KEY, &answer, &error), ANNAL_ERR_NOTFOUND);
    ck_assert_msg(strstr(error.message, "session 's'") != NULL, "%s", error.message);
    annal_steps *other = claim();
    ck_assert_int_lt(annal_step_begin(steps, KEY, &answer, NULL), 0);
    annal_steps_close(other);
    annal_steps_close(steps);
    annal_steps_close(NULL);
}
END_TEST

Suite *suite_steps(void)
{
    Suite *suite = suite_create("steps");
    TCase *tc = suite_case(suite, "steps", fixture_setup, fixture_teardown);
    tcase_add_test(tc, the_shared_examples_hold);
    tcase_add_test(tc, a_step_continues_after_a_recorded_attempt);
    tcase_add_test(tc, a_result_that_is_not_json_is_refused_and_the_step_stays_begun);
    tcase_add_test(tc, a_result_in_an_artifact_is_read_from_there);
    tcase_add_long_test(tc, a_result_of_more_than_48_mib_becomes_an_artifact);
    tcase_add_test(tc, a_fork_has_the_steps_before_its_fork_point);
    tcase_add_test(tc, a_step_of_a_deleted_session_fails);
    return suite;
}
