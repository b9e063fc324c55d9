// What the site consists of: navigation.json names the pages of each section, or a folder whose pages are all in it.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import navigation from '../navigation.json' with { type: 'json' }

export const root = path.resolve(import.meta.dirname, '../..')
export const repository = 'https://github.com/openshift-agent/cluster-api-provider-openshift-agent'

type Section = { text: string, pages?: string[], folder?: string }

/** The Markdown files of a folder, relative to the root of the repository. */
const find = (folder: string, recursive = false) => readdirSync(path.join(root, folder), { recursive, encoding: 'utf8' })
  .filter(file => file.endsWith('.md')).map(file => path.posix.join(folder, file)).sort()

export const pages = [...find('.'), ...find('docs', true)]

export const sections = (navigation as Section[]).map(({ text, pages, folder }) => ({ text, pages: pages ?? find(folder!) }))

/** Entries of the sidebar, which have the titles of their pages. */
export const sidebar = (pages: string[]) => pages.map(page => ({ text: title(page), link: link(page) }))

const link = (page: string) => '/' + page.replace(/\.md$/, '')

function title(page: string): string {
  if (page === 'README.md') return 'Overview'
  const heading = readFileSync(path.join(root, page), 'utf8').match(/^# (.*)$/m)
  if (!heading) throw new Error(`${page} has no title: begin it with "# "`)
  return heading[1].replaceAll('`', '')
}

const linked = sections.flatMap(section => section.pages)
const forgotten = pages.filter(page => !linked.includes(page))
const missing = linked.filter(page => !existsSync(path.join(root, page)))
if (forgotten.length + missing.length > 0) {
  throw new Error([
    ...forgotten.map(page => `${page} is in no navigation: add it to site/navigation.json`),
    ...missing.map(page => `site/navigation.json names ${page}, which does not exist`),
  ].join('\n'))
}
