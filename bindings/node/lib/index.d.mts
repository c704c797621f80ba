// SPDX-License-Identifier: Apache-2.0
import * as annal from './index.js';

export * from './index.js';
export default annal;
