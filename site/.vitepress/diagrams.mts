// Blocks of the language mermaid, which GitHub draws, are drawn on the site by the component Mermaid.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type MarkdownIt from 'markdown-it'
import { pages, root } from './navigation.mts'

export function diagrams(markdown: MarkdownIt) {
  const fence = markdown.renderer.rules.fence!
  markdown.renderer.rules.fence = (tokens, index, ...rest) =>
    tokens[index].info.trim() === 'mermaid'
      ? `<Mermaid source="${encodeURIComponent(tokens[index].content)}" />`
      : fence(tokens, index, ...rest)
}

/** Fails when a diagram cannot be drawn, which would be seen in the browser only. */
export async function checkDiagrams() {
  const { Window } = await import('happy-dom') // mermaid needs a browser even to parse
  const window = new Window()
  Object.assign(globalThis, { window, document: window.document })
  const { default: mermaid } = await import('mermaid')
  for (const page of pages) {
    for (const [, source] of readFileSync(path.join(root, page), 'utf8').matchAll(/^```mermaid\n(.*?)^```$/gms)) {
      await mermaid.parse(source).catch(error => { throw new Error(`${page} has a diagram that cannot be drawn: ${error.message}`) })
    }
  }
  await window.happyDOM.close()
}
