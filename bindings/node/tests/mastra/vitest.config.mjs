// SPDX-License-Identifier: Apache-2.0
export default { test: { include: ['mastra/all.test.ts'], reporters: ['verbose'], testTimeout: 60_000, hookTimeout: 60_000 } };
