/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary words as a command line.
 *
 * (1) The parser accepts it, or refuses it as wrong usage.
 * (2) Accepted arguments consist of the given words and of options of the verb; no word is both an
 *     option and an operand.
 * (3) Numbers are within their range, and ids of sessions are ids.
 * (4) The words of a verb after a noun give valid JSON for an event and a valid session id, or they
 *     are refused. (Files are not read.)
 */
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "tests/fuzz/fuzz.h"
#include "tools/cli/fields.h"
#include "tools/cli/verb_data.h"

#include <string.h>

#define WORDS_MAX 24

/* The values were checked; with --help none is. */
static void ask(const struct args *args)
{
    enum out_format format = OUT_TABLE;
    const struct field *field = args->command->fields;
    for (int i = 0; i < args->value_count; i++) {
        const char *name = args->values[i].option->name;
        int at = 0;
        MUST(args_has(args, name));
        MUST(args->values[i].option->value == NULL || args_next(args, name, &at) != NULL);
    }
    for (; field != NULL && field->kind != FIELD_END; field++) {
        const char *name = field->option.name != NULL ? field->option.name : field->option.value;
        const char *text;
        for (int at = 0; name != NULL && (text = args_next(args, name, &at)) != NULL;) {
            uint64_t number = fields_count(args, name, 7);
            MUST(field->kind != FIELD_COUNT || number >= field->least);
            MUST(field->kind != FIELD_COUNT || field->most == 0 || number <= field->most);
            MUST((field->kind != FIELD_SESSION && field->kind != FIELD_SESSIONS) ||
                 annal_session_id_check(annal_slice_of(text), NULL) == ANNAL_OK);
            if (field->choices != NULL && strcmp(field->choices, OUT_FORMATS) == 0)
                (void)fields_format(args, &format);
        }
    }
}

static bool reads_a_file(const struct args *args, const struct field *field)
{
    const char *name = field->option.name != NULL ? field->option.name : field->option.value;
    const char *text = name == NULL ? NULL : args_get(args, name);
    return field->kind == FIELD_FILE ||
           (text != NULL && (text[0] == '@' || strcmp(text, "-") == 0));
}

static void make_data(const struct args *args)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct buf json = {0};
    const struct field *field = args->command->fields;
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (reads_a_file(args, field))
            continue;
        int status = verb_field_json(args, field, &json);
        MUST(status == 0 || status == EXIT_USAGE || status == EXIT_REFUSED);
        if (status == 0 && json.len > 0)
            MUST(annal__json_check(annal__buf_slice(&json), ANNAL_DATA_DEPTH_MAX, NULL) ==
                 JSON_VALID);
    }
    if (args->command->session != NULL &&
        verb_session_id(args, args->command->session, session, sizeof session) == 0)
        MUST(annal_session_id_check(annal_slice_of(session), NULL) == ANNAL_OK);
    annal__buf_done(&json);
}

static bool is_word(char **words, int count, const char *text)
{
    for (int i = 0; i < count; i++) {
        if (text >= words[i] && text <= words[i] + strlen(words[i]))
            return true;
    }
    return false;
}

static void check(const struct args *args, char **words, int count)
{
    MUST(args->operand_count + args->value_count < count);
    for (int i = 0; i < args->operand_count; i++)
        MUST(is_word(words, count, args->operands[i]));
    for (int i = 0; i < args->value_count; i++) {
        const struct args_value *value = &args->values[i];
        MUST((value->text == NULL) == (value->option->value == NULL));
        MUST(value->text == NULL || is_word(words, count, value->text));
    }
    if (args->command != NULL && !args->help)
        MUST(args->operand_count >= command_operands_min(args->command) &&
             (command_operands_max(args->command) < 0 ||
              args->operand_count <= command_operands_max(args->command)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static FILE *nowhere;
    char *words[WORDS_MAX + 1];
    int count = 1;
    struct args args;
    char *text = malloc(len + 1);
    MUST(text != NULL);
    memcpy(text, bytes, len);
    text[len] = '\0';
    if (nowhere == NULL) {
        nowhere = fopen("/dev/null", "w");
        MUST(nowhere != NULL);
    }
    words[0] = text + len;
    char *rest = text, *word;
    while (count < WORDS_MAX && (word = strsep(&rest, "\n")) != NULL)
        words[count++] = word;
    words[count] = NULL;

    FILE *before = stderr;
    stderr = nowhere;
    int status = args_parse(&args, count, words);
    if (status == 0 && args.command != NULL && !args.help) {
        ask(&args);
        make_data(&args);
    }
    stderr = before;
    MUST(status == 0 || status == EXIT_USAGE);
    if (status == 0)
        check(&args, words, count);
    args_done(&args);
    free(text);
    return 0;
}
