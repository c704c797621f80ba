/* The verbs of two words as a manual page, and all words that can stand on a command line. */
#include "tools/cli/manual.h"

#include "tools/cli/verbs.h"

#include <stdio.h>

/* ---- What may follow ---- */

void words_print(const struct noun *noun, const struct command *verb)
{
    const struct option *option;
    if (verb != NULL) {
        for (int at = 0; (option = command_option(verb, &at)) != NULL;)
            printf("--%s%s\n", option->name, option->value ? "=" : "");
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
        printf("%s\n", noun_at(i)->name);
}

/* ---- roff ---- */

/* Text as troff reads it: no line is a request, and a dash is one. */
static void print_roff(const char *text)
{
    bool line_begins = true;
    for (; *text != '\0'; text++) {
        if (line_begins && (*text == '.' || *text == '\''))
            printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
        line_begins = *text == '\n';
    }
}

static void print_tag(const struct option *option, const char *choices)
{
    printf(".TP\n.B ");
    if (option->name != NULL)
        printf("\\-\\-");
    print_roff(option->name != NULL ? option->name : option->value);
    if (option->name != NULL && option->value != NULL) {
        printf(" \\fI");
        print_roff(option->value);
        printf("\\fR");
    }
    printf("%s\n", option->repeatable ? " ..." : "");
    print_roff(option->help);
    if (choices != NULL)
        printf("; one of ");
    for (; choices != NULL && *choices != '\0'; choices++) {
        if (*choices == '|')
            printf(", ");
        else if (*choices == '-')
            printf("\\-");
        else
            putchar(*choices);
    }
    printf("\n");
}

static void print_verb(const struct noun *noun, const struct command *verb)
{
    const struct option *option;
    const struct field *field = verb->fields;
    printf(".SS annal %s %s", noun->name, verb->name);
    for (; field != NULL && field->kind != FIELD_END; field++) {
        if (field_is_operand(field))
            printf(field->required ? " %s%s" : " [%s%s]", field->option.value,
                   FIELD_IS_LIST(field->kind) ? "..." : "");
    }
    printf("\n");
    print_roff(verb->about != NULL ? verb->about : verb->summary);
    printf("\n");
    for (field = verb->fields; field != NULL && field->kind != FIELD_END; field++) {
        if (field_is_operand(field))
            print_tag(&field->option, field->choices);
    }
    for (int at = 0; (option = command_option(verb, &at)) != NULL;)
        print_tag(option, command_choices(verb, option));
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
           "What agents and people write into the tables of the packs, one event each.\n"
           "Options of every verb, exit statuses and files:\n.BR annal (1).\n");
    const struct noun *noun;
    for (size_t i = 0; (noun = noun_at(i)) != NULL; i++) {
        printf(".SH \"ANNAL %s\"\n", noun->name);
        print_roff(noun->summary);
        printf("%s%s%s\n", noun->pack ? " (pack " : "", noun->pack ? noun->pack : "",
               noun->pack ? ")" : "");
        for (const struct command *verb = noun->verbs; verb->name != NULL; verb++)
            print_verb(noun, verb);
    }
    printf(".SH SEE ALSO\n.BR annal (1)\n");
}
