-- SPDX-License-Identifier: Apache-2.0
SELECT path, min(session_id), max(gone) FROM told GROUP BY path ORDER BY path
