// The search of the site. queries.json names the page, or the section, that it has to find first for each query.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import MiniSearch, { type SearchOptions } from 'minisearch'
import queries from '../queries.json' with { type: 'json' }

/** The defaults of VitePress, with two changes. A short word such as "a" does not match all words that begin with it. A user searches
 * for the field of a spec before that of a status or of a template. */
export const searchOptions: SearchOptions = {
  fuzzy: 0.2,
  prefix: term => term.length > 2,
  boost: { title: 4, text: 2, titles: 1 },
  boostDocument: section => /#openshiftassisted\w*(template\.|\.status\b)/.test(section) ? 0.4 : 1,
}

/** Fails when the first hit of a query is not the expected section, or not on the expected page. */
export async function checkSearch({ outDir }: { outDir: string }) {
  const search = MiniSearch.loadJSON(await readIndex(outDir), { fields: ['title', 'titles', 'text'], searchOptions })
  const wrong = Object.entries(queries).flatMap(([query, page]) => {
    const section = search.search(query)[0]?.id.replace(/^\//, '').replace('.html', '.md')
    const found = page.includes('#') ? section : section?.replace(/#.*$/, '')
    return found === page ? [] : [`"${query}" finds ${found ?? 'nothing'} first, not ${page}`]
  })
  if (wrong.length > 0) throw new Error(`Change the headings of the pages, or site/queries.json:\n${wrong.join('\n')}`)
}

/** Reads the index from the chunk of the built site that the browser loads for a search. */
async function readIndex(outDir: string): Promise<string> {
  const chunks = path.join(outDir, 'assets/chunks')
  const chunk = readdirSync(chunks).find(name => name.startsWith('@localSearchIndexroot'))
  if (!chunk) throw new Error(`${chunks} has no index of the search`)
  const source = readFileSync(path.join(chunks, chunk))
  return (await import(`data:text/javascript;base64,${source.toString('base64')}`)).default
}
