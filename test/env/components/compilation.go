package components

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
)

// compilation counts the compiled packages of a build. It is the standard error output of `go build -v`, which has a
// line with the import path of each package that the go command compiles.
type compilation struct {
	mu sync.Mutex
	// missing are the import paths of the packages that are not in the build cache.
	missing map[string]bool
	total   int
	// line is the incomplete last line of the output. rest is the output without the lines of packages.
	line, rest bytes.Buffer
}

// expect sets the packages that the build has to compile, and discards earlier output.
func (c *compilation) expect(missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = map[string]bool{}
	for _, path := range missing {
		c.missing[path] = true
	}
	c.total = len(c.missing)
}

// Write implements io.Writer.
func (c *compilation) Write(output []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range bytes.Lines(output) {
		c.line.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		if path := strings.TrimSpace(c.line.String()); c.missing[path] {
			delete(c.missing, path)
		} else {
			c.rest.Write(c.line.Bytes())
		}
		c.line.Reset()
	}
	return len(output), nil
}

// String returns the output without the lines of packages.
func (c *compilation) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rest.String() + c.line.String()
}

// packages returns how many packages were compiled, and how many the build compiles in total. The total is 0 while it
// is unknown, and if all packages are in the build cache.
func (c *compilation) packages() (compiled, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total - len(c.missing), c.total
}

// notCompiled returns the import paths of the packages that a build with these flags has to compile.
func (b *Builder) notCompiled(ctx context.Context, dir, pkg string, flags ...string) ([]string, error) {
	args := slices.Concat([]string{"list", "-buildvcs=false"}, flags, []string{"-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", pkg})
	stale, err := b.goCommand(ctx, dir, args...)
	return strings.Fields(string(stale)), err
}
