// The landing page of the site.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

const anchor = /<a[^>]* href="([^"#]+)(?:#([^"]+))?"/g

/** Fails when a link of the landing page leads nowhere. Its links are in the frontmatter: VitePress checks only those of Markdown. */
export function checkHome({ outDir, site: { base } }: { outDir: string, site: { base: string } }) {
  const html = readFileSync(path.join(outDir, 'index.html'), 'utf8')
  const links = [...html.matchAll(anchor)].filter(([, page]) => page.startsWith(base) && page !== base)
  if (links.length < 6) throw new Error(`The landing page has ${links.length} links to pages: site/index.md has more`)
  for (const [, page, id] of links) {
    const file = path.join(outDir, page.slice(base.length))
    if (!existsSync(file)) throw new Error(`site/index.md links to ${page}, which does not exist`)
    if (id && !readFileSync(file, 'utf8').includes(`id="${id}"`)) throw new Error(`site/index.md links to ${page}#${id}, which does not exist`)
  }
}
