/* SPDX-License-Identifier: Apache-2.0 */
/* Text generated from the tables of the verbs, besides help: `annal help --words`, `--man`. */
#ifndef TOOLS_CLI_MANUAL_H
#define TOOLS_CLI_MANUAL_H

#include "tools/cli/command.h"

/* Print the words that may follow a verb, a noun, or (both NULL) the command, one a line: options
 * of a verb (with a '=' if they take a value), otherwise verbs. Shell completion calls this. */
void manual_print_words(const struct noun *noun, const struct command *verb);

/* Print one verb in roff, as its help explains it; noun NULL: a verb of one word. */
void manual_print_verb(const struct noun *noun, const struct command *verb);
void manual_print_examples(const struct command *verb);

/* Print annal-verbs(1), for make install. */
void manual_print(void);

#endif
