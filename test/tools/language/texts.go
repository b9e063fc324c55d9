package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// texts are the texts of a file in the form that Vale reads.
type texts struct {
	content   string
	extension string // appended to the name of the file, so that Vale reads it as plain text
	lines     []int  // see origin
}

func textsOf(path string, source []byte) (texts, error) {
	switch extension := filepath.Ext(path); {
	case extension == ".md":
		return texts{content: string(source)}, nil
	case extension == ".go":
		return textsOfGo(path, source)
	case extension == ".mod":
		return texts{content: commentsOf(source, moduleComment), extension: ".txt"}, nil
	case strings.Contains(path, "/testdata/") && !strings.HasPrefix(path, ruleTests):
		return texts{content: commentsOf(source, dataComment), extension: ".txt"}, nil
	default: // each line is a text of its own
		return texts{content: string(source), extension: ".txt"}, nil
	}
}

// ruleTests has test data that are texts of this repository, and not records of other programs.
const ruleTests = "config/monitoring/testdata/"

var (
	moduleComment = regexp.MustCompile(`// .*`)
	dataComment   = regexp.MustCompile(`(^|\s)# .*`)
)

// commentsOf returns the comments of a file, each on its line. All other lines are empty.
func commentsOf(source []byte, comment *regexp.Regexp) string {
	lines := strings.Split(string(source), "\n")
	for i, line := range lines {
		lines[i] = comment.FindString(line)
	}
	return strings.Join(lines, "\n")
}

// text is a comment, a string or a name, on one line.
type text struct {
	line  int
	value string
}

// textsOfGo returns each comment, line of a string and declared name of a Go file as a paragraph of Markdown.
// Vale recognizes sentences within a paragraph; lines of plain text would be joined.
func textsOfGo(path string, source []byte) (texts, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return texts{}, fmt.Errorf("cannot read %s: %w", path, err)
	}
	var all []text
	add := func(at token.Pos, value string) {
		if value = strings.Join(strings.Fields(value), " "); value != "" {
			all = append(all, text{line: files.Position(at).Line, value: literally.Replace(value)})
		}
	}
	for _, group := range file.Comments {
		for _, paragraph := range strings.Split(withoutMarkers(group.Text()), "\n\n") {
			add(group.Pos(), paragraph)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if value, err := strconv.Unquote(node.Value); node.Kind == token.STRING && err == nil && strings.Contains(value, " ") {
				for line := range strings.SplitSeq(value, "\n") {
					add(node.Pos(), line)
				}
			}
		case *ast.Field:
			addNames(add, node.Names)
			if node.Type != nil {
				return node.Tag == nil
			}
		default:
			addNames(add, declared(node))
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b text) int { return a.line - b.line })
	var content strings.Builder
	var lines []int
	for _, t := range all {
		content.WriteString(t.value + "\n\n")
		lines = append(lines, t.line, t.line)
	}
	return texts{content: content.String(), extension: ".md", lines: lines}, nil
}

// literally keeps what has a meaning in Markdown from having one.
var literally = strings.NewReplacer("```", "`", "<", "&lt;")

// marker matches the lines of a comment that tools read.
var marker = regexp.MustCompile(`(?m)^(\+|nolint|go:).*$`)

func withoutMarkers(comment string) string { return marker.ReplaceAllString(comment, "") }

// declared returns the names that a node declares.
func declared(node ast.Node) []*ast.Ident {
	switch node := node.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{node.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{node.Name}
	case *ast.ValueSpec:
		return node.Names
	case *ast.AssignStmt:
		var names []*ast.Ident
		for _, left := range node.Lhs {
			if name, is := left.(*ast.Ident); is && node.Tok == token.DEFINE {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

// word matches the words of a name such as hostIsBound or parseURLOf.
var word = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

func addNames(add func(token.Pos, string), names []*ast.Ident) {
	for _, name := range names {
		if words := word.FindAllString(name.Name, -1); len(words) > 0 {
			add(name.Pos(), strings.ToLower(strings.Join(words, " ")))
		}
	}
}

// longLines returns the lines of a file that are too long. Rows of tables, links and markers cannot be wrapped.
func longLines(path string, source []byte) []finding {
	if extension := filepath.Ext(path); extension != ".go" && extension != ".md" {
		return nil
	}
	var found []finding
	number := 0
	for line := range strings.SplitSeq(string(source), "\n") {
		number++
		length := utf8.RuneCountInString(line)
		if length > maxLine && !unbreakable.MatchString(line) {
			message := fmt.Sprintf("Wrap the line: it has %d characters, and the limit is %d.", length, maxLine)
			found = append(found, finding{path: path, line: number, message: message})
		}
	}
	return found
}

var unbreakable = regexp.MustCompile("^\\s*(\\||// \\+|//go:|<!--)|https?://\\S{60,}|`json:\"")
