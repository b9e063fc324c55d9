package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// signOffFormat lists the hash, the author and the sign-offs of a commit, separated by NUL bytes.
const signOffFormat = "--format=%h%x00%an <%ae>%x00%(trailers:key=Signed-off-by,valueonly,separator=%x00)"

// checkSignOffs checks that each commit in a range, merges apart, has the sign-off of its author. The author confirms
// with the sign-off the Developer Certificate of Origin.
func checkSignOffs(ctx context.Context, out io.Writer, root, commits string) error {
	listed, err := exec.CommandContext(ctx, "git", "-C", root, "log", "--no-merges", signOffFormat, commits).Output()
	if err != nil {
		return fmt.Errorf("cannot list the commits %s: %w", commits, err)
	}
	checked, missing := 0, 0
	for line := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\n"), "\n") {
		fields := strings.Split(line, "\x00")
		if len(fields) < 2 {
			continue
		}
		checked++
		if hash, author := fields[0], fields[1]; !slices.Contains(fields[2:], author) {
			missing++
			fmt.Fprintf(out, "commit %s: the line \"Signed-off-by: %s\" is missing: run git rebase --signoff\n", hash, author)
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d commits have no sign-off of their author: see CONTRIBUTING.md", missing, checked)
	}
	fmt.Fprintf(out, "commits: %d sign-offs are right\n", checked)
	return nil
}
