// The Markdown is written for GitHub, and means the same on the site. Links to pages stay as they are, and those to other files of the
// repository lead to GitHub.
import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import type MarkdownIt from 'markdown-it'
import { pages, repository, root } from './navigation.mts'

/** Lets {{ be text, which Vue would take for an expression. */
export function plainBraces(markdown: MarkdownIt) {
  const text = markdown.renderer.rules.text!
  markdown.renderer.rules.text = (...args) => text(...args).replaceAll('{{', '&#123;&#123;')
}

/** Gives a heading the anchor that it states: ### <a id="kind.spec.field"></a>spec.field */
export function anchors(markdown: MarkdownIt) {
  markdown.core.ruler.before('anchor', 'stated-anchors', state => {
    state.tokens.forEach((heading, index) => {
      if (heading.type !== 'heading_open') return
      const text = state.tokens[index + 1]
      const stated = text.content.match(/^<a id="([^"]+)"><\/a>/)
      if (!stated) return
      heading.attrSet('id', stated[1])
      text.content = text.content.slice(stated[0].length)
      text.children!.splice(0, 2)
    })
  })
}

export function links(markdown: MarkdownIt) {
  markdown.core.ruler.push('repository-links', state => {
    for (const block of state.tokens) {
      for (const token of block.children ?? []) {
        const target = token.type === 'link_open' ? token.attrGet('href') : null
        if (target && !/^([a-z]+:|#)/.test(target)) token.attrSet('href', onSite(target, state.env.path))
      }
    }
  })
}

/** Where a relative link of a page leads to. */
function onSite(target: string, page: string): string {
  const [file, anchor] = target.split('#')
  const absolute = path.resolve(path.dirname(page), file)
  const inRepository = path.relative(root, absolute)
  if (pages.includes(inRepository)) return target
  if (!existsSync(absolute)) throw new Error(`${path.relative(root, page)} links to ${target}, which does not exist`)
  const kind = statSync(absolute).isDirectory() ? 'tree' : 'blob'
  return `${repository}/${kind}/main/${inRepository}${anchor ? `#${anchor}` : ''}`
}
