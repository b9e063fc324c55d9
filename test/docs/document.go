package docs

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Document is a Markdown file.
type Document struct {
	// Path is relative to the root of the repository.
	Path   string
	source []byte
	tree   ast.Node
}

// Block is a code block.
type Block struct {
	// Language is what stands behind the opening fence.
	Language string
	// Line is that of the opening fence.
	Line int
	// Text is the content, without the indentation of a list.
	Text string
	// Remark is the text of the comment right before the block, without <!-- and -->; empty if there is none.
	Remark string
}

// Read reads all documents of the repository below root.
func Read(root string) ([]*Document, error) {
	paths, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		return nil, err
	}
	if err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("cannot look for documents: %w", err)
	}
	var documents []*Document
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read a document: %w", err)
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		documents = append(documents, Parse(filepath.ToSlash(relative), source))
	}
	return documents, nil
}

// Parse parses a document as GitHub does.
func Parse(path string, source []byte) *Document {
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	return &Document{Path: path, source: source, tree: parser.Parse(text.NewReader(source))}
}

// Links are the targets of links and pictures.
func (d *Document) Links() []string {
	var links []string
	d.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Link:
			links = append(links, string(n.Destination))
		case *ast.Image:
			links = append(links, string(n.Destination))
		}
	})
	return links
}

// anchorElement matches an element that only is an anchor.
var anchorElement = regexp.MustCompile(`^<a id="([A-Za-z0-9.-]+)">$`)

// Anchors are the fragments by which headings, and the rows of a table that have one, are linked to.
func (d *Document) Anchors() []string {
	var anchors []string
	seen := map[string]int{}
	d.each(func(n ast.Node) {
		if html, is := n.(*ast.RawHTML); is {
			if match := anchorElement.FindSubmatch(html.Segments.Value(d.source)); match != nil {
				anchors = append(anchors, string(match[1]))
			}
		}
		if n.Kind() != ast.KindHeading {
			return
		}
		anchor := slug(d.text(n))
		if times := seen[anchor]; times > 0 {
			anchors = append(anchors, fmt.Sprintf("%s-%d", anchor, times))
		} else {
			anchors = append(anchors, anchor)
		}
		seen[anchor]++
	})
	return anchors
}

// noSlug are the characters that GitHub leaves out of the anchor of a heading.
var noSlug = regexp.MustCompile(`[^\p{L}\p{M}\p{N}\p{Pc} -]`)

// slug is the anchor that GitHub gives a heading: https://docs.github.com/en/get-started/writing-on-github (section links).
func slug(heading string) string {
	return strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// Spans are the texts of inline code.
func (d *Document) Spans() []string {
	var spans []string
	d.each(func(n ast.Node) {
		if n.Kind() == ast.KindCodeSpan {
			spans = append(spans, d.text(n))
		}
	})
	return spans
}

// Blocks are the code blocks of a language.
func (d *Document) Blocks(language string) []Block {
	return slices.DeleteFunc(d.AllBlocks(), func(b Block) bool { return b.Language != language })
}

// AllBlocks are the code blocks that have a fence.
func (d *Document) AllBlocks() []Block {
	var blocks []Block
	d.each(func(n ast.Node) {
		fence, is := n.(*ast.FencedCodeBlock)
		if !is || fence.Lines().Len() == 0 {
			return
		}
		block := Block{
			Language: string(fence.Language(d.source)), Text: string(fence.Lines().Value(d.source)),
			Remark: d.remark(fence.PreviousSibling()),
		}
		block.Line = bytes.Count(d.source[:fence.Lines().At(0).Start], []byte("\n"))
		blocks = append(blocks, block)
	})
	return blocks
}

// remark is the text of a comment; empty when the node is none.
func (d *Document) remark(n ast.Node) string {
	html, is := n.(*ast.HTMLBlock)
	if !is {
		return ""
	}
	comment := html.Lines().Value(d.source)
	if html.HasClosure() {
		comment = append(comment, html.ClosureLine.Value(d.source)...)
	}
	remark, begins := strings.CutPrefix(strings.TrimSpace(string(comment)), "<!--")
	remark, ends := strings.CutSuffix(remark, "-->")
	if !begins || !ends {
		return ""
	}
	return strings.TrimSpace(remark)
}

func (d *Document) text(n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no error of ours
		if leaf, is := n.(*ast.Text); is && entering {
			out.Write(leaf.Value(d.source))
			if leaf.SoftLineBreak() {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

func (d *Document) each(do func(ast.Node)) {
	_ = ast.Walk(d.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no error of ours
		if entering {
			do(n)
		}
		return ast.WalkContinue, nil
	})
}
