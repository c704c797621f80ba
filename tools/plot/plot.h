/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run annal stats --plot: pictures of a store, or of one session.
 *
 * plot.c reads the command line and opens the store; plot_store.c and plot_session.c gather and
 * draw, each as text, as SVG and as JSON.
 */
#ifndef TOOLS_PLOT_PLOT_H
#define TOOLS_PLOT_PLOT_H

#include "index/sys/view.h"
#include "tools/cli/fields.h"
#include "tools/cli/sessions.h"
#include "tools/plot/gather_session.h"

/* Run the verb, with its options. Returns an exit status. */
int plot_run(const struct args *args);

/* ---- For the files of plot_run() ---- */

struct plot {
    const struct args *args;
    enum by by;
    struct time_range range;
    const char *svg; /* file, "-" for stdout; NULL: drawn in the terminal */
    int columns;
    annal_store *store;
    annal_index *index;
    annal__view *view;
    struct session_list list; /* session to draw and its ancestors; empty: the store */
};

int plot_store(struct plot *plot);
int plot_session(struct plot *plot);

struct picture {
    struct drawing drawn; /* text, or the elements of an SVG down to height */
    int height;
    struct drawing notes; /* sentences below it, a line each */
};

/* Append "No events since …". */
void plot_say_empty(const struct plot *plot, struct drawing *out);

/* Print the picture, or write it to a file, and free it. Returns an exit status. */
int plot_put(const struct plot *plot, const char *title, struct picture *picture);

#endif
