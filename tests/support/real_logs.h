/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real logs, which are not part of the repository: in $ANNAL_TEST_DATA, or with ANNAL_TEST_FULL in
 * ../shared/data beside the clone.
 */
#pragma once

/* The folder with the real logs of a kind ("codex"); free() it. NULL if it is missing, which is
 * printed: skip the test. */
char *real_logs(const char *kind);
