/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal watch as a service of the user: a systemd unit in the user's configuration. */
#pragma once

/* Write a unit for this program and this store, and start it now and at each login. Return the exit
 * status. */
int watch_unit_install(const char *store);

/* Stop the service and remove its unit. Return the exit status. */
int watch_unit_uninstall(void);
