// The documentation site: the Markdown files of the repository as they are, which are read on GitHub as well.
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'
import { checkDiagrams, diagrams } from './diagrams.mts'
import { checkHome } from './home.mts'
import { anchors, links, plainBraces } from './markdown.mts'
import { repository, root, sections, sidebar } from './navigation.mts'
import { checkSearch, searchOptions } from './search.mts'

export default defineConfig({
  title: 'OpenShift on bare metal',
  description: 'Cluster API providers that install and run OpenShift on bare metal',
  base: process.env.DOCS_BASE ?? '/', // where the site will be found on its server
  srcDir: root,
  srcExclude: ['!(docs|site)/*', '!(docs|site)/*/**'],
  outDir: `${root}/site/dist`,
  cacheDir: `${root}/.tools/site-cache`,
  rewrites: { 'site/index.md': 'index.md' },
  // The fields of the API are headings of the fourth level.
  transformPageData: page => { if (page.filePath === 'docs/reference.md') page.frontmatter.outline = 'deep' },
  buildEnd: async site => { checkHome(site); await checkDiagrams(); await checkSearch(site) },
  markdown: {
    anchor: { slugify: text => slug(text) }, // the anchors that GitHub gives
    config: markdown => { markdown.use(anchors).use(links).use(plainBraces).use(diagrams) },
  },
  vite: {
    build: { chunkSizeWarningLimit: 5000 }, // kB: Mermaid and the search index are loaded when they are needed
  },
  themeConfig: {
    nav: sections.map(({ text, pages }) => ({ text, link: sidebar([pages[0]])[0].link })),
    sidebar: sections.map(({ text, pages }) => ({ text, collapsed: false, items: sidebar(pages) })),
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/:path` },
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch: { searchOptions } } },
  },
})
