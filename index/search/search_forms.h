/* SPDX-License-Identifier: Apache-2.0 */
/* The forms in which the texts may contain a word that a user types: others of the same stem,
 * longer ones with the same begin, and those that differ by a typing error. */
#pragma once

#include "journal/base/buf.h"

#include <sqlite3.h>
#include <stdbool.h>

/* bytes of the longest word that has other forms */
#define SEARCH_FORM_MAX 32

struct search_forms;

/* db: a connection to search.db; it must outlive the forms. */
annal_status annal__search_forms_new(sqlite3 *db, struct search_forms **out_forms,
                                     annal_error *err);
void annal__search_forms_free(struct search_forms *forms);

/* Receives a form, which is valid until the function returns. A result other than 0 ends the calls
 * and is returned. */
typedef int (*search_form_fn)(void *arg, annal_slice form);

/* Call fn for a word and for each English word that may occur in a text and has the same stem, as
 * Porter's algorithm computes it: migrate, migrated, migration. */
int annal__search_forms_of_stem(struct search_forms *forms, annal_slice word, search_form_fn fn,
                                void *arg);

/* Call fn for the words of the texts that begin with these letters, in the order of their bytes; at
 * most for `most` words. */
int annal__search_forms_of_begin(struct search_forms *forms, annal_slice begin, size_t most,
                                 search_form_fn fn, void *arg);

/* Call fn for the words of the texts that differ from a word by one typing error: a letter too
 * many, too few, or wrong, or two letters in the wrong order. */
int annal__search_forms_of_error(struct search_forms *forms, annal_slice word, search_form_fn fn,
                                 void *arg);

/* Return whether a word is so common in English that it says nothing about a session. */
bool annal__search_forms_is_common(annal_slice word);
