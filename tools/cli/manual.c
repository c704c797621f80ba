/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the manual page of the verbs of two words, and the words for completion. */
#include "tools/cli/manual.h"

#include "tools/cli/verbs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Words for completion ---- */

void manual_print_words(const struct noun *noun, const struct command *verb)
{
    const struct option *option;
    if (verb != NULL) {
        for (int at = 0; (option = command_option(verb, &at)) != NULL;)
            printf("--%s%s%s\n", option->name, option->value ? "=" : "",
                   command_choices(verb, option) ? command_choices(verb, option) : "");
        for (option = args_common; !verb->no_store && option->name != NULL; option++)
            printf("--%s%s\n", option->name, option->value ? "=" : "");
        printf("--help\n");
        return;
    }
    const struct command *row = noun != NULL ? noun->verbs : NULL;
    for (; row != NULL && row->name != NULL; row++)
        printf("%s\n", row->name);
    for (int i = 0; noun == NULL && commands[i] != NULL; i++)
        printf("%s\n", commands[i]->name);
    for (size_t i = 0; noun == NULL && noun_at(i) != NULL; i++)
        if (noun_is_on(noun_at(i)))
            printf("%s\n", noun_at(i)->name);
}

/* ---- roff ---- */

/* Print text so that troff reads no line as a request, and no dash as a hyphen. */
static void print_roff_n(const char *text, size_t len)
{
    static const char safe[] = "\\&";
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\')
            printf("\\e");
        else if (text[i] == '-')
            printf("\\-");
        else if (text[i] == '"')
            printf("\\(dq");
        else
            printf("%s%c",
                   (text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n') ? safe
                                                                                          : "",
                   text[i]);
    }
}

static void print_roff(const char *text)
{
    print_roff_n(text, strlen(text));
}

/* Return whether the word names an operand of the verb, or the value of one of its options. */
static bool is_value(const struct command *verb, const char *word, size_t len)
{
    const struct field *field = verb->fields;
    if (len == 1 && strncmp(word, "A ", 2) == 0 && islower((unsigned char)word[2]))
        return false; /* the article "A", not an operand A */
    for (; field != NULL && field->kind != FIELD_END; field++) {
        const char *value = field->option.value;
        if (value != NULL && strlen(value) == len && memcmp(value, word, len) == 0)
            return true;
    }
    return false;
}

/*
 * Print sentences: options and quoted commands ('annal cat SESSION') in bold, values in italics; an
 * empty line begins a paragraph.
 */
static void print_prose(const struct command *verb, const char *text)
{
    bool quoted = false, begins = true;
    for (size_t len; *text != '\0'; begins = text[len - 1] == '\n', text += len) {
        len = strcspn(text, " \n,;:.()'");
        bool option = strncmp(text, "--", 2) == 0 && len > 2;
        if (len > 0 && !quoted && (option || is_value(verb, text, len))) {
            printf(option ? "\\fB" : "\\fI");
            print_roff_n(text, len);
            printf("\\fR");
        } else if (len > 0) {
            print_roff_n(text, len);
        } else if (strncmp(text, "\n\n", len = 2) == 0) {
            printf("\n.PP\n");
        } else if (*text == '\'' && (quoted || strncmp(text, "'annal ", 7) == 0)) {
            printf(quoted ? "\\fR" : "\\fB");
            quoted = !quoted;
            len = 1;
        } else {
            printf("%s%c", begins && strchr(".'", *text) != NULL ? "\\&" : "", *text);
            len = 1;
        }
    }
}

/* Print the help of an operand or option as a sentence, with a capital letter and a full stop. */
static void print_sentence(const struct command *verb, const char *help)
{
    char text[300];
    size_t len = strlen(help);
    snprintf(text, sizeof text, "%c%s%s", toupper((unsigned char)help[0]), help + 1,
             strchr(".?!", help[len - 1]) != NULL ? "" : ".");
    print_prose(verb, text);
    printf("\n");
}

static void print_tag(const struct command *verb, const struct option *option, const char *choices)
{
    const char *value = option->name != NULL ? option->value : NULL;
    printf(".TP\n.B %s", option->name != NULL ? "\\-\\-" : "");
    print_roff(option->name != NULL ? option->name : option->value);
    if (value != NULL) {
        printf(" \\fI");
        print_roff(value);
        printf("\\fR");
    }
    printf("%s\n", option->repeatable ? " ..." : "");
    print_sentence(verb, option->help);
    const char *before = "One of ";
    for (size_t len; choices != NULL && *choices != '\0'; choices += len + (choices[len] == '|')) {
        len = strcspn(choices, "|");
        printf("%s\\fB", before);
        print_roff_n(choices, len);
        printf("\\fR");
        before = ", ";
    }
    printf("%s", choices != NULL ? ".\n" : "");
}

void manual_print_verb(const struct noun *noun, const struct command *verb)
{
    const struct option *option;
    const struct field *field = verb->fields;
    printf(".SS annal %s%s%s", noun != NULL ? noun->name : "", noun != NULL ? " " : "", verb->name);
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (!field_is_operand(field))
            continue;
        printf(field->required ? " " : " [");
        print_roff(field->option.value);
        printf("%s%s", FIELD_IS_LIST(field->kind) ? "..." : "", field->required ? "" : "]");
    }
    printf("\n");
    print_prose(verb, verb->about != NULL ? verb->about : verb->summary);
    printf("\n");
    for (field = verb->fields; field != NULL && field->kind != FIELD_END; field++) {
        if (field_is_operand(field))
            print_tag(verb, &field->option, field->choices);
    }
    for (int at = 0; (option = command_option(verb, &at)) != NULL;)
        print_tag(verb, option, command_choices(verb, option));
}

void manual_print_examples(const struct command *verb)
{
    if (verb->examples == NULL)
        return;
    printf(".PP\n.nf\n.RS\n");
    print_roff(verb->examples);
    printf(".RE\n.fi\n");
}

void manual_print(void)
{
    printf(".TH ANNAL\\-VERBS 1 \"\" \"annal %s\" \"User commands\"\n", annal_version());
    printf(".SH NAME\nannal\\-verbs \\- the nouns of annal and their verbs\n"
           ".SH SYNOPSIS\n.B annal\n.I NOUN VERB\n.RI [ options ]\n"
           ".SH DESCRIPTION\n"
           "Verbs of the packs: each appends one event, or queries the tables of a pack.\n"
           "Options of every verb, exit statuses and files:\n.BR annal (1).\n");
    const struct noun *noun;
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        printf(".SH \"ANNAL %s\"\n", noun->name);
        print_roff(noun->summary);
        printf("%s%s%s\n", noun->pack ? " (pack " : "", noun->pack ? noun->pack : "",
               noun->pack ? ")" : "");
        for (const struct command *verb = noun->verbs; verb->name != NULL; verb++) {
            manual_print_verb(noun, verb);
            manual_print_examples(verb);
        }
    }
    printf(".SH SEE ALSO\n.BR annal (1)\n");
}
