/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite on a simulated disk: a VFS that opens what lies below the root of a sim_process there, and
 * uses the system's VFS for everything else (databases in memory, temporary files).
 *
 * It has the sectors of the disk: 512 bytes, each written whole or not at all, and a write changes
 * no byte beside it (SQLITE_IOCAP_POWERSAFE_OVERWRITE). A new WAL or rollback journal has its
 * directory synced with its first sync, as SQLite's own VFS does. The shared memory of a WAL is a
 * file of the disk, and is emptied by the first process that opens it.
 */
#pragma once

/* Make it the default VFS of this process; calling it again does nothing. */
void sim_vfs_register(void);
