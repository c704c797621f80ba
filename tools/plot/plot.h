/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal stats --plot: pictures of a store, or of one session.
 *
 * plot.c reads the command line and opens what is asked; plot_store.c and plot_session.c gather and
 * draw, each as text, as SVG and as JSON.
 */
#ifndef TOOLS_PLOT_PLOT_H
#define TOOLS_PLOT_PLOT_H

#include "index/sys/view.h"
#include "tools/cli/fields.h"
#include "tools/cli/sessions.h"
#include "tools/plot/gather_session.h"

/* The whole verb, with its options. The answer is an exit status. */
int plot_run(const struct args *args);

/* ---- For the files of plot_run() ---- */

struct plot {
    const struct args *args;
    enum by by;
    struct time_range range;
    const char *svg; /* the file, "-" for stdout; NULL: drawn in the terminal */
    int columns;
    annal_store *store;
    annal_index *index;
    annal__view *view;
    struct session_list list; /* the session that is drawn and its ancestors; none: the store is */
};

int plot_store(struct plot *plot);
int plot_session(struct plot *plot);

struct picture {
    struct drawing drawn; /* as text, or as the elements of an SVG down to height */
    int height;
    struct drawing notes; /* sentences below it, a line each */
};

/* "There are no events since …" */
void plot_say_empty(const struct plot *plot, struct drawing *out);

/* Print the picture, or write it as a file, and free it. An exit status. */
int plot_put(const struct plot *plot, const char *title, struct picture *picture);

#endif
