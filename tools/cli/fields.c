/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/fields.h"

#include "journal/base/calendar.h"
#include "journal/base/clock.h"
#include "tools/cli/must.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TIME_FORMS   "a time such as 2026-01-06T07:24, today, yesterday"
#define AGE_FORMS    "an age such as 45s, 30m, 2h, 7d, 2w"
#define MOMENT_FORMS "a seq, " TIME_FORMS " or " AGE_FORMS

/* ---- Values ---- */

bool fields_parse_number(const char *text, uint64_t *out)
{
    uint64_t number = 0;
    if (text[0] == '\0')
        return false;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9')
            return false;
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
            return false;
    }
    *out = number;
    return true;
}

bool fields_parse_amount(const char *text, double most, double *out)
{
    char *end = NULL;
    double amount = strtod(text, &end);
    if (end == text || *end != '\0' || !(amount >= 0 && amount <= most))
        return false;
    *out = amount;
    return true;
}

bool fields_parse_time(const char *text, int64_t *out_us)
{
    return annal__calendar_read_instant(
        annal_slice_of(text), annal__system_clock.wall_us(annal__system_clock.arg), out_us);
}

/* Read one bound of a range of times. *out_us 0 stands for no bound (text is NULL), so the time 0
 * itself is read as -1. Returns false if text is not a time. */
static bool parse_bound(const char *text, int64_t now_us, int64_t *out_us)
{
    *out_us = 0;
    if (text == NULL)
        return true;
    if (!annal__calendar_read_instant(annal_slice_of(text), now_us, out_us))
        return false;
    *out_us = *out_us == 0 ? -1 : *out_us;
    return true;
}

bool fields_parse_range(const char *since, const char *until, struct time_range *out)
{
    const int64_t now_us = annal__system_clock.wall_us(annal__system_clock.arg);
    if (!parse_bound(since, now_us, &out->since_us) || !parse_bound(until, now_us, &out->until_us))
        return false;
    out->has_since = since != NULL;
    out->has_until = until != NULL;
    if (!out->has_since && out->until_us > TIME_LEAST_US)
        out->since_us = TIME_LEAST_US;
    if (!out->has_until && out->since_us != 0 && out->since_us < now_us + TIME_AHEAD_US)
        out->until_us = now_us + TIME_AHEAD_US;
    return true;
}

bool fields_range_is_backward(const struct time_range *range)
{
    return range->since_us != 0 && range->until_us != 0 && range->since_us > range->until_us;
}

static bool parse_moment(const char *text, annal_moment *out)
{
    annal_moment moment = {0};
    if (fields_parse_number(text, &moment.seq))
        moment.kind = ANNAL_AT_SEQ;
    else if (fields_parse_time(text, &moment.time_us))
        moment.kind = ANNAL_AT_TIME;
    else
        return false;
    *out = moment;
    return true;
}

/* Return the index of text in the choices "a|b|FILE.sql", or -1. FILE.sql accepts each path with
 * its extension. */
static int find_choice(const char *choices, const char *text, bool any_case)
{
    size_t len = strlen(text);
    int place = 0;
    for (const char *at = choices; at != NULL; at = strchr(at, '|'), place++) {
        at += *at == '|';
        if (strncmp(at, "FILE.", 5) == 0 && len > strlen(at) - 4 &&
            strcmp(text + len - strlen(at) + 4, at + 4) == 0)
            return place;
        if (strcspn(at, "|") == len &&
            (any_case ? strncasecmp(at, text, len) : strncmp(at, text, len)) == 0)
            return place;
    }
    return -1;
}

/* ---- Checks ---- */

static int check_count(const struct field *field, const char *name, const char *text)
{
    uint64_t count = 0;
    uint64_t most = field->most != 0 ? field->most : UINT64_MAX;
    if (fields_parse_number(text, &count) && count >= field->least && count <= most)
        return 0;
    if (field->most != 0)
        return fail_usage("%s needs a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", name,
                          field->least, field->most, text);
    if (field->least != 0)
        return fail_usage("%s needs a whole number of at least %" PRIu64 ", not '%s'", name,
                          field->least, text);
    return fail_usage("%s needs a whole number, not '%s'", name, text);
}

static int check_amount(const struct field *field, const char *name, const char *text)
{
    double amount = 0;
    if (fields_parse_amount(text, (double)field->most, &amount))
        return 0;
    return fail_usage("%s needs a number such as 2 or 0.5, at most %" PRIu64 ", not '%s'", name,
                      field->most, text);
}

static int check_session(const struct field *field, const char *text)
{
    const char *name = field->option.name;
    annal_slice session = annal_slice_of(text);
    if (annal_session_id_check(session, NULL) == ANNAL_OK)
        return 0;
    return fail_usage("%s%s%s'%.*s%s' is not a valid %s: use 1 to %d of A-Z a-z 0-9 . _ -, and "
                      "begin with neither . nor -",
                      name != NULL ? "--" : "", name != NULL ? name : "", name != NULL ? " " : "",
                      (int)(session.len < 60 ? session.len : 60), session.ptr,
                      session.len > 60 ? "\u2026" : "", name != NULL ? "id" : "session id",
                      ANNAL_SESSION_ID_BYTES_MAX);
}

/* Check that text is one of the choices. The message is such as "--level must be sync, batch or os,
 * not 'x'". */
static int check_choice(const struct field *field, const char *name, const char *text)
{
    SCOPED_BUF list = {0};
    if (find_choice(field->choices, text, field->kind == FIELD_CHOICE) >= 0)
        return 0;
    for (const char *at = field->choices, *bar; at != NULL; at = bar != NULL ? bar + 1 : NULL) {
        bar = strchr(at, '|');
        const char *before = at == field->choices ? "" : bar != NULL ? ", " : " or ";
        must_printf(&list, "%s%.*s", before, (int)strcspn(at, "|"), at);
    }
    return fail_usage("%s must be %.*s, not '%s'", name, ANNAL_FMT(annal__buf_slice(&list)), text);
}

static int check_value(const struct field *field, const char *name, const char *text)
{
    int64_t time_us = 0;
    annal_moment moment;
    switch (field->kind) {
    case FIELD_COUNT:
        return check_count(field, name, text);
    case FIELD_NUMBER:
        return field->most != 0 ? check_count(field, name, text) : 0;
    case FIELD_AMOUNT:
        return check_amount(field, name, text);
    case FIELD_TIME:
        return fields_parse_time(text, &time_us)
                   ? 0
                   : fail_usage("%s needs " TIME_FORMS " or " AGE_FORMS ", not '%s'", name, text);
    case FIELD_AGE:
        return annal__calendar_read_age(annal_slice_of(text), &time_us)
                   ? 0
                   : fail_usage("%s needs " AGE_FORMS ", not '%s'", name, text);
    case FIELD_MOMENT:
        return parse_moment(text, &moment)
                   ? 0
                   : fail_usage("%s needs " MOMENT_FORMS ", not '%s'", name, text);
    case FIELD_SESSION:
    case FIELD_SESSIONS:
    case FIELD_ID:
    case FIELD_IDS:
        return check_session(field, text);
    default:
        return field->choices != NULL ? check_choice(field, name, text) : 0;
    }
}

static bool was_given(const struct args *args, const char *name, size_t len)
{
    char copy[VERB_BYTES];
    snprintf(copy, sizeof copy, "%.*s", (int)len, name);
    return strcmp(copy, "json") == 0 ? args->json : args_has(args, copy);
}

/* Check that all options are given which this option needs, and none that it excludes. */
static int check_others(const struct args *args, const struct field *field)
{
    const char *name = field->option.name;
    if (field->with != NULL && !args_has(args, field->with))
        return fail_usage("--%s needs --%s", name, field->with);
    for (const char *at = field->without; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "|");
        if (was_given(args, at, len))
            return fail_usage("--%.*s and --%s cannot be used together", (int)len, at, name);
        at += len + (at[len] == '|' ? 1 : 0);
    }
    return 0;
}

static int check_field(const struct args *args, const struct field *field)
{
    char label[VERB_BYTES], verb[VERB_BYTES];
    const struct option *option = &field->option;
    bool is_option = option->name != NULL;
    const char *name = is_option ? option->name : option->value;
    const char *text = args_get(args, name);
    int exit_status = 0;
    snprintf(label, sizeof label, "%s%s", is_option ? "--" : "", name);
    if (is_option && field->required && text == NULL)
        return fail_usage("annal %s needs --%s %s: 'annal help %s' shows how",
                          args_verb(args, verb), name, option->value, verb);
    for (int at = 0; exit_status == 0 && (text = args_next(args, name, &at)) != NULL;) {
        if (is_option && text[0] == '\0' && args->noun == NULL)
            exit_status = fail_usage("--%s needs a value: --%s %s", name, name, option->value);
        else
            exit_status = check_value(field, label, text);
    }
    if (exit_status == 0 && is_option && args_has(args, name))
        exit_status = check_others(args, field);
    return exit_status;
}

static int check_range(const struct args *args)
{
    struct time_range range = {0};
    if (args_has(args, "since") && args_has(args, "until"))
        fields_range(args, &range);
    if (!fields_range_is_backward(&range))
        return 0;
    return fail_usage("--since %s is after --until %s", args_get(args, "since"),
                      args_get(args, "until"));
}

int fields_check(const struct args *args)
{
    int exit_status = 0;
    const struct field *field = args->command->fields;
    for (; exit_status == 0 && field != NULL && field->kind != FIELD_END; field++) {
        if (field->kind != FIELD_CONST)
            exit_status = check_field(args, field);
    }
    return exit_status == 0 ? check_range(args) : exit_status;
}

/* ---- Values that were given ---- */

uint64_t fields_count(const struct args *args, const char *name, uint64_t usual)
{
    const char *text = args_get(args, name);
    if (text != NULL)
        (void)fields_parse_number(text, &usual);
    return usual;
}

double fields_amount(const struct args *args, const char *name, double usual)
{
    const char *text = args_get(args, name);
    if (text != NULL)
        (void)fields_parse_amount(text, HUGE_VAL, &usual);
    return usual;
}

void fields_range(const struct args *args, struct time_range *out)
{
    (void)fields_parse_range(args_get(args, "since"), args_get(args, "until"), out);
}

int64_t fields_age(const struct args *args, const char *name)
{
    int64_t age_us = 0;
    const char *text = args_get(args, name);
    if (text != NULL)
        (void)annal__calendar_read_age(annal_slice_of(text), &age_us);
    return age_us;
}

void fields_moment(const struct args *args, const char *name, annal_moment *out)
{
    const char *text = args_get(args, name);
    if (text != NULL)
        (void)parse_moment(text, out);
}

int fields_choice(const struct args *args, const char *name)
{
    const char *text = args_get(args, name);
    const struct field *field = args->command->fields;
    while (field->option.name == NULL || strcmp(field->option.name, name) != 0)
        field++;
    return text == NULL ? -1 : find_choice(field->choices, text, true);
}

annal_slice fields_text(const struct args *args, const char *name)
{
    return annal_slice_of(args_get(args, name));
}

void fields_list(const struct args *args, const char *name, annal_slice **out, size_t *out_count)
{
    const char *text;
    size_t room = (size_t)(args->value_count + args->operand_count + 1);
    *out = must_zalloc(room * sizeof **out);
    *out_count = 0;
    for (int at = 0; (text = args_next(args, name, &at)) != NULL;)
        (*out)[(*out_count)++] = annal_slice_of(text);
}

/* ---- Groups of options ---- */

const annal_limits limits_usual = {
    .run_ms = 60000, .memory_bytes = (uint64_t)1 << 30, .temp_bytes = (uint64_t)1 << 30};

annal_limits fields_limits(const struct args *args)
{
    return (annal_limits){
        .run_ms = (uint32_t)fields_count(args, "timeout", limits_usual.run_ms / 1000) * 1000,
        .memory_bytes = fields_count(args, "memory", limits_usual.memory_bytes >> 20) << 20,
        .temp_bytes = fields_count(args, "temp", limits_usual.temp_bytes >> 20) << 20,
        .wait_ms = args->wait_ms};
}

int fields_fail_limited(const annal_error *err)
{
    annal_error placed = *err;
    fields_limits_hint(&placed);
    return fail_error(&placed);
}

void fields_limits_hint(annal_error *err)
{
    const annal_error why = *err;
    if (err->status == ANNAL_ERR_LIMIT)
        snprintf(err->message, sizeof err->message,
                 "%.400s; --timeout, --memory and --temp change the limits", why.message);
}

void fields_journal_format(const struct args *args, annal_format *out)
{
    static const annal_format formats[] = {ANNAL_FORMAT_JSON, ANNAL_FORMAT_MSGPACK};
    int choice = fields_choice(args, "format");
    if (choice >= 0)
        *out = formats[choice];
}

int fields_format(const struct args *args, enum out_format *out)
{
    static const enum out_format formats[] = {OUT_JSONL, OUT_CSV, OUT_TABLE};
    int choice = fields_choice(args, "format");
    if (args->json && choice > 0)
        return fail_usage("--json and --format %s cannot be used together",
                          args_get(args, "format"));
    if (choice >= 0)
        *out = formats[choice];
    else if (args->json)
        *out = OUT_JSONL;
    return 0;
}
