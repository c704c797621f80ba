// SPDX-License-Identifier: Apache-2.0
import annal = require('libannal');

export async function first(path: string): Promise<annal.Event | undefined> {
  const store = await annal.open(path, { readOnly: true });
  try {
    return await store.session('s1').at(0);
  } finally {
    await store.close();
  }
}
