/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/args.h"

#include "journal/base/alloc.h"
#include "tools/cli/must.h"
#include "tools/cli/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { NAME_BYTES_MAX = 32, WAIT_SECONDS_MAX = 1000000, KEEP_FREE_MIB_MAX = 1 << 30 };

const struct option args_common[] = {
    {"store", "DIR", "the store (default: see 'annal help')", false},
    {"json", NULL, "output as one JSON object a line", false},
    {"wait", "SECONDS", "total time to wait for other processes (10)", false},
    {"utc", NULL, "days, hours and times without a zone in UTC", false},
    {"zone", "NAME", "the same in this zone, such as Europe/Berlin or +05:30", false},
    {"keep-free", "MIB", "space that appends leave free on the disk (16)", false},
    {"unsafe-filesystem", NULL, "allow writes on FUSE or NFS: a crash may lose events", false},
    {NULL, NULL, NULL, false}};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Return how many letters to change, add, remove or swap turn one word into the other;
 * NAME_BYTES_MAX if a word is longer than that. */
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

/* If name is similar enough to `given`, and more similar than *nearest, set *nearest to it. */
static void consider(const char *given, const char *name, const char **nearest, size_t *how_far)
{
    size_t far = distance(given, name);
    size_t len = strlen(given);
    if (len >= 2 && strncmp(given, name, len) == 0)
        far = 0; /* the beginning of a name is rather that name than another one of its length */
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
        return fail_usage("verb '%s%s%s' does not exist: did you mean '%s%s%s'?", name, space,
                          given, name, space, nearest);
    if (noun == NULL && strcmp(given, "completion") == 0)
        return fail_usage("verb 'completion' does not exist: new shells of bash, zsh and fish "
                          "complete the words of an installed annal by themselves");
    return fail_usage("verb '%s%s%s' does not exist: 'annal help%s%s' lists them", name, space,
                      given, space, name);
}

#define OWNERS_BYTES 128

/* Write " ('annal ls' has it)", with up to three verbs of one word that have this option, to text;
 * nothing if no verb has it. Returns text. */
static const char *say_owners(char text[OWNERS_BYTES], const char *option)
{
    enum { OWNERS_MAX = 3 };
    const char *owners[OWNERS_MAX];
    int count = 0;
    for (int i = 0; commands[i] != NULL && count < OWNERS_MAX; i++) {
        const struct option *own;
        for (int at = 0; (own = command_option(commands[i], &at)) != NULL;) {
            if (count < OWNERS_MAX && strcmp(own->name, option) == 0)
                owners[count++] = commands[i]->name;
        }
    }
    text[0] = '\0';
    for (int i = 0, len = 0; i < count; i++)
        len += snprintf(text + len, OWNERS_BYTES - (size_t)len, "%s'annal %s'",
                        i == 0 ? " (" : ", ", owners[i]);
    if (count > 0)
        strcat(text, count == 1 ? " has it)" : " have it)");
    return text;
}

static int fail_option(const struct args *args, const char *given)
{
    const char *nearest = NULL;
    size_t how_far = SIZE_MAX;
    char verb[VERB_BYTES], owners[OWNERS_BYTES];
    const struct command *command = args->command;
    const struct option *option;
    bool common = command == NULL || !command->no_store;
    for (option = args_common; common && option->name != NULL; option++)
        consider(given, option->name, &nearest, &how_far);
    for (int at = 0; command != NULL && (option = command_option(command, &at)) != NULL;)
        consider(given, option->name, &nearest, &how_far);
    args_verb(args, verb);
    const char *space = verb[0] != '\0' ? " " : "";
    if (say_owners(owners, given)[0] == '\0' && nearest != NULL)
        return fail_usage("annal%s%s has no option '--%s': did you mean '--%s'?", space, verb,
                          given, nearest);
    return fail_usage("annal%s%s has no option '--%s'%s: 'annal help%s%s' lists them", space, verb,
                      given, owners, space, verb);
}

static bool is_called(const struct option *option, const char *name, size_t len)
{
    return strlen(option->name) == len && memcmp(option->name, name, len) == 0;
}

/* Find an option by its name, among those of the verb and those that all verbs have; NULL if no
 * option has this name. */
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
    if (!fields_parse_number(text, &seconds) || seconds > WAIT_SECONDS_MAX)
        return fail_usage("--wait needs a whole number of seconds, at most %d, not '%s'",
                          WAIT_SECONDS_MAX, text);
    /* 0 would be the library's default: pass 1 ms instead */
    args->wait_ms = seconds == 0 ? 1 : (uint32_t)seconds * 1000;
    args->wait_given = true;
    return 0;
}

static int take_keep_free(struct args *args, const char *text)
{
    uint64_t mib = 0;
    if (!fields_parse_number(text, &mib) || mib > KEEP_FREE_MIB_MAX)
        return fail_usage("--keep-free needs a whole number of MiB, at most %d, not '%s'",
                          KEEP_FREE_MIB_MAX, text);
    /* 0 would be the library's default: pass 1 byte instead */
    args->keep_free_bytes = mib == 0 ? 1 : mib << 20;
    return 0;
}

enum { ZONE_PATH_BYTES = 300, ZONE_LETTERS_MAX = 100 };

/* Convert "+05:30" to a value of TZ, which has the opposite sign and begins with a name without a
 * colon, in angle brackets. Returns false if it is not an offset. */
static bool put_offset(const char *name, char zone[ZONE_PATH_BYTES])
{
    unsigned hours = 0, minutes = 0;
    int end = 0;
    if ((name[0] != '+' && name[0] != '-') || name[1] < '0' || name[1] > '2' ||
        sscanf(name + 1, "%2u:%2u%n", &hours, &minutes, &end) != 2 || name[1 + end] != '\0' ||
        hours > 23 || minutes > 59)
        return false;
    snprintf(zone, ZONE_PATH_BYTES, "<%c%02u%02u>%c%02u:%02u", name[0], hours, minutes,
             name[0] == '+' ? '-' : '+', hours, minutes);
    return true;
}

/* Return whether the system knows the time zone. The C library would use UTC for an unknown one. */
static bool is_zone(const char *name)
{
    char path[ZONE_PATH_BYTES];
    const char *directory = getenv("TZDIR");
    struct stat file;
    if (strcmp(name, "UTC") == 0)
        return true;
    if (name[0] == '\0' || name[0] == '/' || strstr(name, "..") != NULL ||
        strlen(name) > ZONE_LETTERS_MAX)
        return false;
    int length = snprintf(path, sizeof path, "%s/%s",
                          directory != NULL ? directory : "/usr/share/zoneinfo", name);
    return length < ZONE_PATH_BYTES && stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

bool args_zone_is_known(const char *name)
{
    char zone[ZONE_PATH_BYTES];
    return put_offset(name, zone) || is_zone(name);
}

static int take_zone(struct args *args, const char *name)
{
    char zone[ZONE_PATH_BYTES];
    if (args->zone != NULL)
        return fail_usage("--utc and --zone cannot be used together");
    if (!args_zone_is_known(name))
        return fail_usage("--zone needs a zone that the system knows, such as Europe/Berlin, or an "
                          "offset such as +05:30, not '%.60s'",
                          name);
    args->zone = name;
    setenv("TZ", put_offset(name, zone) ? zone : name, 1);
    tzset();
    return 0;
}

/* Return whether an option was given already. For --json this is always false: it may be given both
 * before and after the verb. */
static bool was_given(const struct args *args, const struct option *option)
{
    if (strcmp(option->name, "wait") == 0)
        return args->wait_given;
    if (strcmp(option->name, "keep-free") == 0)
        return args->keep_free_bytes > 0;
    if (strcmp(option->name, "store") == 0)
        return args->store != NULL;
    if (strcmp(option->name, "zone") == 0)
        return args->zone != NULL && strcmp(args->zone, "UTC") != 0;
    return args_has(args, option->name);
}

static int take(struct args *args, const struct option *option, const char *text)
{
    if (!option->repeatable && was_given(args, option))
        return fail_usage("--%s was given twice", option->name);
    if (strcmp(option->name, "store") == 0) {
        if (text[0] == '\0')
            return fail_usage("--store needs a directory, not an empty name");
        args->store = text;
        return 0;
    }
    if (strcmp(option->name, "json") == 0) {
        args->json = true;
        return 0;
    }
    if (strcmp(option->name, "wait") == 0)
        return take_wait(args, text);
    if (strcmp(option->name, "utc") == 0 || strcmp(option->name, "zone") == 0)
        return take_zone(args, text == NULL ? "UTC" : text);
    if (strcmp(option->name, "keep-free") == 0)
        return take_keep_free(args, text);
    args->values[args->value_count++] = (struct args_value){option, text};
    return 0;
}

/* Read one option at argv[*at]; if its value is a separate word, move *at to that word. Returns 0
 * or EXIT_USAGE. */
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
 * Return whether a word that begins with "--" is not an option but a statement that begins with a
 * comment, such as "-- the busiest". The name of an option has no space; a word --NAME=VALUE with a
 * line break is an option if the verb has an option NAME.
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

/* Return the name of the first operand that was not given. */
static const char *missing_operand(const struct args *args)
{
    int i = args->operand_count;
    const struct field *field = args->command->fields;
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (field_is_operand(field) && i-- == 0)
            return field->option.value;
    }
    return "more";
}

int args_shown(const char *text)
{
    const char *behind_scheme = strstr(text, "//");
    return (int)(behind_scheme != NULL ? behind_scheme + 2 - text : (ptrdiff_t)strlen(text));
}

static int check_operands(const struct args *args)
{
    char verb[VERB_BYTES];
    const struct command *command = args->command;
    args_verb(args, verb);
    int most = command_operands_max(command);
    if (args->operand_count < command_operands_min(command))
        return fail_usage("annal %s needs %s: 'annal help %s' shows how", verb,
                          missing_operand(args), verb);
    if (most >= 0 && args->operand_count > most)
        return fail_usage("annal %s does not know what to do with '%.*s'", verb,
                          args_shown(args->operands[most]), args->operands[most]);
    return 0;
}

/* Return the value of --store anywhere on the command line, else $ANNAL_STORE, or NULL. It is
 * needed early, because the packs in that store may have verbs. */
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
    args->operands = must_zalloc((size_t)argc * sizeof *args->operands);
    args->values = must_zalloc((size_t)argc * sizeof *args->values);
    args->ids = must_zalloc((size_t)argc * 2 * ARGS_ID_BYTES);
    bool options_end = false;
    char verb[VERB_BYTES];
    tzset(); /* without this, each localtime_r() would read the file of the time zone again */
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
                fail_usage("option '%s' does not exist: options begin with two dashes "
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
    if (args->command == NULL || args->help)
        return 0;
    int wrong = check_operands(args);
    return wrong != 0 ? wrong : fields_check(args);
}

void args_done(struct args *args)
{
    annal__free(args->operands);
    annal__free(args->values);
    annal__free(args->ids);
    *args = (struct args){0};
}

/* Find an operand of the verb by name, and its position, from 0; NULL if the verb has no such
 * operand. */
static const struct field *find_operand(const struct command *verb, const char *name,
                                        int *out_place)
{
    const struct field *field = verb != NULL ? verb->fields : NULL;
    *out_place = 0;
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (!field_is_operand(field))
            continue;
        if (strcmp(field->option.value, name) == 0)
            return field;
        ++*out_place;
    }
    return NULL;
}

const char *args_next(const struct args *args, const char *name, int *at)
{
    int place = 0;
    const struct field *operand = find_operand(args->command, name, &place);
    if (operand != NULL && place + *at < args->operand_count &&
        (*at == 0 || FIELD_IS_LIST(operand->kind)))
        return args->operands[place + (*at)++];
    while (operand == NULL && *at < args->value_count) {
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

int args_number(const struct args *args, const char *name, uint64_t *out)
{
    const char *text = args_get(args, name);
    if (text == NULL || fields_parse_number(text, out))
        return 0;
    return fail_usage("--%s needs a whole number, not '%s'", name, text);
}
