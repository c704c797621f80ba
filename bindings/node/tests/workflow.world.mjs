// SPDX-License-Identifier: Apache-2.0
export { createWorld } from 'libannal/workflow';
