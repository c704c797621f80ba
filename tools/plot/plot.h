/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs annal stats --plot: pictures of a store, or of one session.
 *
 * plot.c reads the command line and opens the store; plot_store.c and plot_session.c read the data
 * and draw it, as text, as SVG or as JSON.
 */
#ifndef TOOLS_PLOT_PLOT_H
#define TOOLS_PLOT_PLOT_H

#include "index/sys/view.h"
#include "tools/cli/fields.h"
#include "tools/cli/sessions.h"
#include "tools/plot/gather_session.h"

/* Run annal stats with --plot. Returns an exit status. */
int plot_run(const struct args *args);

/* ---- Shared by the files that plot_run() uses ---- */

struct plot {
    const struct args *args;
    enum by by;
    struct time_range range;
    const char *svg; /* path of the SVG file, "-" for stdout; NULL to draw in the terminal */
    int columns;
    annal_store *store;
    annal_index *index;
    annal__view *view;
    struct session_list list; /* the session to draw, then its ancestors; empty to draw the store */
};

int plot_store(struct plot *plot);
int plot_session(struct plot *plot);

struct picture {
    struct drawing drawn; /* text, or the elements of an SVG down to height */
    int height;
    struct drawing notes; /* sentences below the picture, each on a line */
};

/* Append a sentence such as "No events since …". */
void plot_say_empty(const struct plot *plot, struct drawing *out);

/* Print the picture, or write it to the file, and free it. Returns an exit status. */
int plot_put(const struct plot *plot, const char *title, struct picture *picture);

#endif
