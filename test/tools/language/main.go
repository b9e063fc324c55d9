// Command language checks the language of the repository with Vale. It reads the comments, strings and names of Go files,
// the Markdown pages, and the lines of manifests and scripts. The rules lie in styles/Plain.
// With -commits it checks the subjects of commits instead, with -sign-off their sign-offs.
// Run it in its own folder:
//
//	go -C test/tools/language run . -root ../../..
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	var c checker
	flag.StringVar(&c.root, "root", filepath.Join("..", "..", ".."), "root of the repository")
	commits := flag.String("commits", "", "range of commits, such as v0.1.0..HEAD, whose subjects are checked instead of the files")
	signedOff := flag.String("sign-off", "", "range of commits whose sign-offs are checked instead of the files")
	flag.Parse()
	c.out = os.Stdout
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case *commits != "":
		err = checkCommits(ctx, c.out, c.root, *commits)
	case *signedOff != "":
		err = checkSignOffs(ctx, c.out, c.root, *signedOff)
	default:
		err = c.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The folder of this program in the repository.
var folder = filepath.Join("test", "tools", "language")

// maxLine is the longest line of a Go file and of a paragraph of Markdown, in characters.
const maxLine = 140

// checker checks the files of a repository.
type checker struct {
	out  io.Writer
	root string
}

// finding is a violation of a rule.
type finding struct {
	path    string
	line    int
	message string
}

func (c *checker) run(ctx context.Context) error {
	files, err := c.files(ctx)
	if err != nil {
		return err
	}
	found, err := c.check(ctx, files)
	if err != nil {
		return err
	}
	for _, f := range found {
		fmt.Fprintf(c.out, "%s:%d: %s\n", f.path, f.line, f.message)
	}
	if len(found) > 0 {
		return fmt.Errorf("%d findings in the language of the repository", len(found))
	}
	fmt.Fprintf(c.out, "language: %d files read, no findings\n", len(files))
	return nil
}

// files returns the paths of the checked files, relative to the root. Generated and recorded files are not among them.
func (c *checker) files(ctx context.Context) ([]string, error) {
	command := exec.CommandContext(ctx, "git", "-C", c.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the files of the repository: %w", err)
	}
	var files []string
	for path := range strings.SplitSeq(string(listed), "\x00") {
		if isChecked(path) {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the repository has no files to check")
	}
	return files, nil
}

func isChecked(path string) bool {
	if isGenerated(path) {
		return false
	}
	folder, name := filepath.Split(path)
	extension := filepath.Ext(path)
	if strings.Contains(path, "/testdata/") {
		return slices.Contains([]string{".yaml", ".yml", ".txt"}, extension)
	}
	switch extension {
	case ".go", ".md", ".yaml", ".yml", ".sh", ".lua", ".mod", ".mts", ".ts", ".vue", ".css", ".tmpl", ".tpl":
		return true
	case "": // a script, if its name is no name of another tool
		return name == "Makefile" || folder == ".ci/" || folder == ".github/" || folder == "site/"
	default:
		return strings.HasPrefix(name, "Dockerfile.")
	}
}

// isGenerated reports whether a program wrote or recorded the file, or the file has findings on purpose.
func isGenerated(path string) bool {
	module := filepath.ToSlash(folder)
	return strings.HasPrefix(filepath.Base(path), "zz_generated") || strings.Contains(path, "/crd/") ||
		path == "docs/reference.md" || path == "docs/flags.md" || strings.HasPrefix(path, "config/argocd/testdata/") ||
		strings.HasPrefix(path, module+"/styles/") || path == module+"/main_test.go"
}

// check copies the texts of all files into a folder, and runs Vale on the folder. Vale itself reads no strings and names of Go.
func (c *checker) check(ctx context.Context, files []string) ([]finding, error) {
	copies, err := os.MkdirTemp("", "language")
	if err != nil {
		return nil, fmt.Errorf("cannot create a folder for the texts: %w", err)
	}
	defer os.RemoveAll(copies)
	var found []finding
	origins := map[string]origin{}
	for _, path := range files {
		source, err := os.ReadFile(filepath.Join(c.root, path))
		if errors.Is(err, os.ErrNotExist) { // deleted, but not committed
			continue
		}
		if err != nil {
			return nil, err
		}
		texts, err := textsOf(path, source)
		if err != nil {
			return nil, err
		}
		copied := filepath.Join(copies, path+texts.extension)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(copied, []byte(texts.content), 0o600); err != nil {
			return nil, err
		}
		origins[copied] = origin{path: path, lines: texts.lines}
		found = append(found, longLines(path, source)...)
	}
	alerts, err := runVale(ctx, copies)
	if err != nil {
		return nil, err
	}
	for copied, raised := range alerts {
		from, known := origins[copied]
		if !known {
			return nil, fmt.Errorf("vale reports the unknown file %s", copied)
		}
		for _, alert := range raised {
			found = append(found, finding{path: from.path, line: from.line(alert.Line), message: alert.Message})
		}
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line), strings.Compare(a.message, b.message))
	})
	return found, nil
}

// origin is the file that a text was read from.
type origin struct {
	path  string
	lines []int // lines[i] is the line of the file from which line i+1 of the text comes; nil if both are the same
}

func (o origin) line(line int) int {
	if line > 0 && line <= len(o.lines) {
		return o.lines[line-1]
	}
	return line
}

// alert is what Vale reports.
type alert struct {
	Line    int
	Message string
}

// runVale runs the Vale of this module on the files in a folder. The go command builds Vale on first use.
// The working directory has to be the folder of this module.
func runVale(ctx context.Context, files string) (map[string][]alert, error) {
	command := exec.CommandContext(ctx, "go", "tool", "vale", "--config", "vale.ini", "--output", "JSON", "--no-exit", files)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("vale failed: %w: %s", err, output)
	}
	alerts := map[string][]alert{}
	if err := json.Unmarshal(output, &alerts); err != nil {
		return nil, fmt.Errorf("cannot read the report of vale: %w", err)
	}
	return alerts, nil
}
