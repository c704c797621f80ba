/* SPDX-License-Identifier: Apache-2.0 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

const sha256 = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/* Licenses of the libraries in the page; a shared file contains copies of them, too. */
const licenses = ['preact', 'uplot', '@tanstack/virtual-core']
  .map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim()}`)
  .join('\n\n');

/* share.html: the same page in one file. `annal export --format html` replaces its marker by a session. */
function share(): Plugin {
  return {
    name: 'share',
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const text = (name: string) => {
          const file = bundle[name]!;
          return file.type === 'chunk' ? file.code : String(file.source);
        };
        const script = text('app.js').replaceAll('</script', '<\\/script');
        const style = text('app.css').trim();
        const policy = `default-src 'none'; script-src ${sha256(script)}; style-src ${sha256(style)}; img-src data: blob:`;
        this.emitFile({
          type: 'asset',
          fileName: 'share.html',
          source: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Annal</title>
<style>${style}</style>
<div id="app"></div>
<!--annal:data-->
<script type="module">${script}</script>
<script type="text/plain" id="licenses">
${licenses}
</script>
</html>
`,
        });
      },
    },
  };
}

export default defineConfig({
  base: './',
  plugins: [share()],
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    license: { fileName: 'licenses.md' },
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        assetFileNames: (file) => (file.names[0]?.endsWith('.css') ? 'app.css' : '[name][extname]'),
        codeSplitting: false,
      },
    },
  },
});
