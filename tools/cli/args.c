#include "tools/cli/args.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "tools/cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 32, WAIT_SECONDS_MAX = 1000000 };

const struct option args_common[] = {
    {"store", "DIR", "the store ('annal help' says which is the default)", false},
    {"json", NULL, "print one JSON object a line", false},
    {"wait", "SECONDS", "how long to wait for other processes in all (10)", false},
    {NULL, NULL, NULL, false}};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters to change, add, drop or swap; words longer than NAME_BYTES_MAX are far away. */
static size_t distance(const char *a, const char *b)
{
    size_t len_a = strlen(a), len_b = strlen(b);
    size_t rows[3][NAME_BYTES_MAX + 1];
    if (len_a > NAME_BYTES_MAX || len_b > NAME_BYTES_MAX)
        return NAME_BYTES_MAX;
    size_t *before = rows[0], *above = rows[1], *here = rows[2];
    for (size_t j = 0; j <= len_b; j++)
        above[j] = j;
    for (size_t i = 1; i <= len_a; i++) {
        here[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
            here[j] = least(least(above[j], here[j - 1]) + 1, above[j - 1] + same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                here[j] = least(here[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above;
        above = here;
        here = oldest;
    }
    return above[len_b];
}

/* Keep name as the nearest so far, when it is near enough to be what was meant. */
static void consider(const char *given, const char *name, const char **nearest, size_t *how_far)
{
    size_t far = distance(given, name);
    size_t len = strlen(given);
    if (len >= 2 && strncmp(given, name, len) == 0)
        far = 1;
    if (far < *how_far && far <= 1 + strlen(name) / 4) {
        *nearest = name;
        *how_far = far;
    }
}

const char *args_verb(const struct args *args, char text[VERB_BYTES])
{
    snprintf(text, VERB_BYTES, "%s%s%s", args->noun ? args->noun->name : "",
             args->noun && args->command ? " " : "", args->command ? args->command->name : "");
    return text;
}

int args_fail_verb(const struct noun *noun, const char *given)
{
    const char *nearest = NULL;
    size_t how_far = SIZE_MAX;
    const struct command *verb = noun ? noun->verbs : NULL;
    for (; verb != NULL && verb->name != NULL; verb++)
        consider(given, verb->name, &nearest, &how_far);
    for (int i = 0; noun == NULL && commands[i] != NULL; i++)
        consider(given, commands[i]->name, &nearest, &how_far);
    for (size_t i = 0; noun == NULL && noun_at(i) != NULL; i++)
        consider(given, noun_at(i)->name, &nearest, &how_far);
    const char *name = noun ? noun->name : "";
    const char *space = noun ? " " : "";
    if (nearest != NULL)
        return fail_usage("there is no verb '%s%s%s': did you mean '%s%s%s'?", name, space, given,
                          name, space, nearest);
    return fail_usage("there is no verb '%s%s%s': 'annal help%s%s' lists them", name, space, given,
                      space, name);
}

static int fail_option(const struct args *args, const char *given)
{
    const char *nearest = NULL;
    size_t how_far = SIZE_MAX;
    char verb[VERB_BYTES];
    const struct command *command = args->command;
    const struct option *option;
    bool common = command == NULL || !command->no_store;
    for (option = args_common; common && option->name != NULL; option++)
        consider(given, option->name, &nearest, &how_far);
    for (int at = 0; command != NULL && (option = command_option(command, &at)) != NULL;)
        consider(given, option->name, &nearest, &how_far);
    args_verb(args, verb);
    const char *space = verb[0] != '\0' ? " " : "";
    if (nearest != NULL)
        return fail_usage("annal%s%s has no option '--%s': did you mean '--%s'?", space, verb,
                          given, nearest);
    return fail_usage("annal%s%s has no option '--%s': 'annal help%s%s' lists them", space, verb,
                      given, space, verb);
}

static bool is_called(const struct option *option, const char *name, size_t len)
{
    return strlen(option->name) == len && memcmp(option->name, name, len) == 0;
}

/* NULL: there is none of that name, of the verb or of all verbs. */
static const struct option *find(const struct command *command, const char *name, size_t len)
{
    const struct option *option = args_common;
    if (command == NULL || !command->no_store) {
        for (; option->name != NULL; option++) {
            if (is_called(option, name, len))
                return option;
        }
    }
    for (int at = 0; command != NULL && (option = command_option(command, &at)) != NULL;) {
        if (is_called(option, name, len))
            return option;
    }
    return NULL;
}

static int take_wait(struct args *args, const char *text)
{
    uint64_t seconds = 0;
    if (!parse_number(text, &seconds))
        return fail_usage("--wait needs a whole number, and was given '%s'", text);
    if (seconds > WAIT_SECONDS_MAX)
        return fail_usage("--wait is at most %d seconds", WAIT_SECONDS_MAX);
    /* The library reads 0 as its default; one millisecond is as good as not at all. */
    args->wait_ms = seconds == 0 ? 1 : (uint32_t)seconds * 1000;
    args->wait_given = true;
    return 0;
}

/* --json may stand in front of a verb and behind it. */
static bool was_given(const struct args *args, const struct option *option)
{
    if (strcmp(option->name, "wait") == 0)
        return args->wait_given;
    if (strcmp(option->name, "store") == 0)
        return args->store != NULL;
    return args_has(args, option->name);
}

static int take(struct args *args, const struct option *option, const char *text)
{
    if (!option->repeatable && was_given(args, option))
        return fail_usage("--%s was given twice", option->name);
    if (strcmp(option->name, "store") == 0) {
        if (text[0] == '\0')
            return fail_usage("--store needs a directory, and was given an empty name");
        args->store = text;
        return 0;
    }
    if (strcmp(option->name, "json") == 0) {
        args->json = true;
        return 0;
    }
    if (strcmp(option->name, "wait") == 0)
        return take_wait(args, text);
    args->values[args->value_count++] = (struct args_value){option, text};
    return 0;
}

/* One option at argv[*at]; moves *at over the value where that is a word of its own. */
static int take_option(struct args *args, int argc, char **argv, int *at)
{
    const char *name = argv[*at] + 2;
    size_t len = strcspn(name, "=");
    if (strcmp(name, "help") == 0) {
        args->help = true;
        return 0;
    }
    if (strcmp(name, "version") == 0 && args->command == NULL) {
        args->version = true;
        return 0;
    }
    const struct option *option = find(args->command, name, len);
    if (option == NULL) {
        argv[*at][2 + len] = '\0';
        return fail_option(args, name);
    }
    if (option->value == NULL && name[len] == '=')
        return fail_usage("--%s takes no value", option->name);
    if (option->value == NULL)
        return take(args, option, NULL);
    if (name[len] == '=')
        return take(args, option, name + len + 1);
    if (*at + 1 >= argc)
        return fail_usage("--%s needs a value: --%s %s", option->name, option->name, option->value);
    return take(args, option, argv[++*at]);
}

/*
 * Whether this is no option but a statement that begins with a comment, "-- the busiest". The name
 * of an option has no space; --NAME=VALUE, with a line break, is one when there is an option NAME.
 */
static bool is_statement(const struct args *args, const char *word)
{
    size_t len = strcspn(word + 2, "= \t\r\n");
    char end = word[2 + len];
    return args->command != NULL && args->command->takes_sql && end != '\0' &&
           (end != '=' ||
            (strchr(word, '\n') != NULL && find(args->command, word + 2, len) == NULL));
}

static int take_word(struct args *args, const char *word)
{
    if (args->command != NULL) {
        args->operands[args->operand_count++] = word;
        return 0;
    }
    if (args->noun == NULL) {
        args->command = command_find(word);
        args->noun = args->command == NULL ? noun_find(word) : NULL;
        return args->command == NULL && args->noun == NULL ? args_fail_verb(NULL, word) : 0;
    }
    args->command = noun_verb(args->noun, word);
    if (args->command == NULL && args->noun->usual != NULL) {
        args->command = noun_verb(args->noun, args->noun->usual);
        args->operands[args->operand_count++] = word;
    }
    return args->command == NULL ? args_fail_verb(args->noun, word) : 0;
}

/* The operand of a verb in a noun that is missing, or how the others call all of theirs. */
static const char *missing_operand(const struct args *args)
{
    int i = args->operand_count;
    const struct field *field = args->command->fields;
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (field->option.name == NULL && field->option.value != NULL && i-- == 0)
            return field->option.value;
    }
    return args->command->operands;
}

static int check_operands(const struct args *args)
{
    char verb[VERB_BYTES];
    const struct command *command = args->command;
    if (command == NULL || args->help)
        return 0;
    args_verb(args, verb);
    int most = command_operands_max(command);
    if (args->operand_count < command_operands_min(command))
        return fail_usage("annal %s needs %s: 'annal help %s' shows how", verb,
                          missing_operand(args), verb);
    if (most >= 0 && args->operand_count > most)
        return fail_usage("annal %s does not know what to do with '%s'", verb,
                          args->operands[most]);
    return 0;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strcspn(at, "|") == len && memcmp(at, text, len) == 0)
            return true;
    }
    return false;
}

/* What the table of a verb in a noun asks of its options and operands. */
static int check_fields(const struct args *args)
{
    char verb[VERB_BYTES];
    const struct field *field = args->command != NULL && !args->help ? args->command->fields : NULL;
    args_verb(args, verb);
    for (; field != NULL && field->kind != FIELD_END; field++) {
        const struct option *option = &field->option;
        const char *name = option->name != NULL ? option->name : option->value;
        const char *text = name == NULL ? NULL : verb_text(args, name);
        if (option->name != NULL && field->required && text == NULL)
            return fail_usage("annal %s needs --%s %s: 'annal help %s' shows how", verb,
                              option->name, option->value, verb);
        for (int at = 0; field->choices != NULL && (text = verb_next(args, name, &at)) != NULL;) {
            if (!is_choice(field->choices, text))
                return fail_usage("%s%s is one of %s, and was given '%s'",
                                  option->name != NULL ? "--" : "", name, field->choices, text);
        }
    }
    return 0;
}

/* The store that is named, wherever on the command line: its packs may have verbs. */
static const char *find_store(int argc, char **argv)
{
    const char *store = getenv("ANNAL_STORE");
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--store=", 8) == 0)
            return argv[i] + 8;
        if (strcmp(argv[i], "--store") == 0 && i + 1 < argc)
            return argv[i + 1];
    }
    return store;
}

int args_parse(struct args *args, int argc, char **argv)
{
    *args = (struct args){.wait_ms = WAIT_MS_USUAL};
    args->operands = annal__zalloc((size_t)argc * sizeof *args->operands);
    args->values = annal__zalloc((size_t)argc * sizeof *args->values);
    if (args->operands == NULL || args->values == NULL)
        return fail_storage("read the command line: out of memory");
    bool options_end = false;
    char verb[VERB_BYTES];
    nouns_look_in(find_store(argc, argv));
    for (int i = 1; i < argc; i++) {
        int exit_status = 0;
        if (!options_end && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (!options_end && strcmp(argv[i], "-h") == 0)
            args->help = true;
        else if (!options_end && strncmp(argv[i], "--", 2) == 0 && !is_statement(args, argv[i]))
            exit_status = take_option(args, argc, argv, &i);
        else if (!options_end && argv[i][0] == '-' && argv[i][1] != '-' && argv[i][1] != '\0')
            exit_status =
                fail_usage("there is no option '%s': options begin with two dashes "
                           "('annal help%s%s' lists them)",
                           argv[i], args->command || args->noun ? " " : "", args_verb(args, verb));
        else
            exit_status = take_word(args, argv[i]);
        if (exit_status != 0)
            return exit_status;
    }
    if (args->store == NULL) {
        const char *store = getenv("ANNAL_STORE");
        args->store = store != NULL && store[0] != '\0' ? store : NULL;
    }
    int wrong = check_operands(args);
    return wrong != 0 ? wrong : check_fields(args);
}

void args_done(struct args *args)
{
    annal__free(args->operands);
    annal__free(args->values);
    *args = (struct args){0};
}

const char *args_next(const struct args *args, const char *name, int *at)
{
    while (*at < args->value_count) {
        const struct args_value *value = &args->values[(*at)++];
        if (strcmp(value->option->name, name) == 0)
            return value->text;
    }
    return NULL;
}

const char *args_get(const struct args *args, const char *name)
{
    int at = 0;
    return args_next(args, name, &at);
}

bool args_has(const struct args *args, const char *name)
{
    for (int i = 0; i < args->value_count; i++) {
        if (strcmp(args->values[i].option->name, name) == 0)
            return true;
    }
    return false;
}

int args_format(const struct args *args, enum out_format *out)
{
    const char *text = args_get(args, "format");
    if (args->json && text != NULL && strcmp(text, "jsonl") != 0)
        return fail_usage("--json and --format %s exclude each other", text);
    if (args->json || (text != NULL && strcmp(text, "jsonl") == 0))
        *out = OUT_JSONL;
    else if (text != NULL && strcmp(text, "csv") == 0)
        *out = OUT_CSV;
    else if (text != NULL && strcmp(text, "table") == 0)
        *out = OUT_TABLE;
    else if (text != NULL)
        return fail_usage("--format is jsonl, csv or table, and was given '%s'", text);
    return 0;
}

int args_journal_format(const struct args *args, annal_format *out)
{
    const char *text = args_get(args, "format");
    if (text != NULL && strcmp(text, "jsonl") == 0)
        *out = ANNAL_FORMAT_JSON;
    else if (text != NULL && strcmp(text, "msgpack") == 0)
        *out = ANNAL_FORMAT_MSGPACK;
    else if (text != NULL)
        return fail_usage("--format is jsonl or msgpack, and was given '%s'", text);
    return 0;
}

bool parse_number(const char *text, uint64_t *out)
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

int args_number(const struct args *args, const char *name, uint64_t *out)
{
    const char *text = args_get(args, name);
    if (text == NULL || parse_number(text, out))
        return 0;
    return fail_usage("--%s needs a whole number, and was given '%s'", name, text);
}

int args_limit(const struct args *args, uint64_t *out)
{
    uint64_t limit = 1;
    int exit_status = args_number(args, "limit", &limit);
    if (exit_status == 0 && limit == 0)
        return fail_usage("--limit 0 asks for nothing: leave it out for all");
    if (exit_status == 0 && args_has(args, "limit"))
        *out = limit;
    return exit_status;
}

const annal_limits limits_usual = {
    .run_ms = 60000, .memory_bytes = (uint64_t)1 << 30, .temp_bytes = (uint64_t)1 << 30};

#define MB_MAX      ((uint64_t)1 << 32)
#define SECONDS_MAX 4000000

int args_limits(const struct args *args, annal_limits *out)
{
    uint64_t seconds = limits_usual.run_ms / 1000;
    uint64_t memory = limits_usual.memory_bytes >> 20, temp = limits_usual.temp_bytes >> 20;
    int exit_status = args_number(args, "timeout", &seconds);
    if (exit_status == 0)
        exit_status = args_number(args, "memory", &memory);
    if (exit_status == 0)
        exit_status = args_number(args, "temp", &temp);
    if (exit_status == 0 && seconds > SECONDS_MAX)
        return fail_usage("--timeout is at most %d seconds", SECONDS_MAX);
    if (exit_status == 0 && (memory > MB_MAX || temp > MB_MAX))
        return fail_usage("--memory and --temp are at most %llu MB", (unsigned long long)MB_MAX);
    *out = (annal_limits){.run_ms = (uint32_t)seconds * 1000,
                          .memory_bytes = memory << 20,
                          .temp_bytes = temp << 20,
                          .wait_ms = args->wait_ms};
    return exit_status;
}

int fail_limited(const annal_error *err)
{
    annal_error placed = *err;
    limits_hint(&placed);
    return fail_error(&placed);
}

void limits_hint(annal_error *err)
{
    const annal_error why = *err;
    if (err->status == ANNAL_ERR_LIMIT)
        snprintf(err->message, sizeof err->message,
                 "%.400s; --timeout, --memory and --temp change the limits", why.message);
}

/* "2h": two hours ago. */
static bool parse_age(const char *text, int64_t *out_us)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    unsigned long count = strtoul(text, &end, 10);
    if (errno != 0 || count > 1000000 || end[0] == '\0' || end[1] != '\0')
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].unit == end[0]) {
            int64_t now_us = annal__system_clock.wall_us(annal__system_clock.arg);
            *out_us = now_us - (int64_t)count * units[i].seconds * 1000000;
            return true;
        }
    }
    return false;
}

bool parse_time(const char *text, int64_t *out_us)
{
    return parse_age(text, out_us) ||
           annal_time_parse(annal_slice_of(text), out_us, NULL) == ANNAL_OK;
}

int args_time(const struct args *args, const char *name, int64_t *out_us)
{
    const char *text = args_get(args, name);
    if (text == NULL || parse_time(text, out_us))
        return 0;
    return fail_usage("--%s needs a time such as 2026-01-06T07:24:00Z or an age such as 45s, 30m, "
                      "2h, 7d, 2w, and was given '%s'",
                      name, text);
}

int args_session(const struct args *args, int i, annal_slice *out)
{
    annal_slice session = annal_slice_of(args->operands[i]);
    if (annal_session_id_check(session, NULL) < 0)
        return fail_usage(
            "'%.*s%s' is no session id: it has 1 to %d of A-Z a-z 0-9 . _ - and begins "
            "with neither . nor -",
            (int)(session.len < 60 ? session.len : 60), session.ptr,
            session.len > 60 ? "\u2026" : "", ANNAL_SESSION_ID_BYTES_MAX);
    *out = session;
    return 0;
}
