/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal_snippet(said, mark_begin, mark_end, words): the part of a text that best shows the words
 * that were found in it.
 *
 * FTS5's own snippet() compares every instance of a word with every other instance, which takes
 * hours if a log repeats a word a million times. This function takes time linear in the text before
 * the end of the part that it shows.
 */
#pragma once

#include <annal/base.h>

#include <sqlite3.h>

/* Add the function to a connection with FTS5. */
annal_status annal__snippet_add(sqlite3 *db, annal_error *err);
