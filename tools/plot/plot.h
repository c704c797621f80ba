/* annal stats --plot: pictures of a store, or of one session. */
#ifndef TOOLS_PLOT_PLOT_H
#define TOOLS_PLOT_PLOT_H

#include "tools/args.h"

/* The whole verb, with the options of plot_run(). The answer is an exit status. */
int plot_run(const struct args *args);

/* Options that mean something only in a picture: EXIT_USAGE when there is one. */
int plot_refuse_options(const struct args *args);

#endif
