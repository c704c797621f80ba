/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is generated from the tables of the verbs, besides help: `annal help --words` and
 * `annal help --man`. */
#pragma once

#include "tools/cli/command.h"

/* Print the words that may follow a verb, or a noun, or (both NULL) the command, one a line: the
 * options of a verb (with a '=' if they have a value, and then its choices), otherwise verbs. Shell
 * completion runs this. */
void manual_print_words(const struct noun *noun, const struct command *verb);

/* Print the manual of one verb in roff, from its help; noun is NULL for a verb of one word. */
void manual_print_verb(const struct noun *noun, const struct command *verb);
void manual_print_examples(const struct command *verb);

/* Print the manual page annal-verbs(1); make install uses this. */
void manual_print(void);
