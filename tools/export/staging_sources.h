/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of logs in a bundle.
 *
 * (1) Each file must be a copy that tools/source/copies.h describes, with nothing after its last
 *     mark: its name fits its path and its generation, and its sessions are in the bundle.
 * (2) A log of which the store has a copy keeps it. Otherwise all files of the log are moved, the
 *     newest generation last.
 * (3) Before it is moved, a file gets a record INFO with "foreign":true: 'annal source restore'
 *     does not write such a log to its path, which another host has chosen.
 */
#pragma once

#include "tools/export/staging.h"

annal_status staging_sources_prove(struct staging *staging);
annal_status staging_sources_move(struct staging *staging);
