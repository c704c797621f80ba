// SPDX-License-Identifier: Apache-2.0
export default { test: { globals: true, include: ['tests/*.suite.mjs'], reporters: ['default'], testTimeout: 600_000 } };
