package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSubject is the longest subject of a commit, in characters.
const maxSubject = 72

var (
	// subject matches "area: change"; several areas are separated by commas.
	subject = regexp.MustCompile(`^[a-z0-9./_-]+(, [a-z0-9./_-]+)*: ([a-z][a-z-]*) \S`)
	// notImperative matches a verb that is no imperative, such as "added", "adds" or "adding".
	notImperative = regexp.MustCompile(`([^es]ed|[^s]s|ing)$`)
	imperatives   = []string{"alias", "bring", "embed", "focus", "ping", "shed", "string"}
)

// checkSubject returns what is wrong with the subject of a commit, or "".
func checkSubject(line string) string {
	if length := utf8.RuneCountInString(line); length > maxSubject {
		return fmt.Sprintf("has %d characters, and the limit is %d", length, maxSubject)
	}
	parts := subject.FindStringSubmatch(line)
	if parts == nil {
		return "does not have the form \"area: change\" in lower case"
	}
	if verb := parts[2]; notImperative.MatchString(verb) && !slices.Contains(imperatives, verb) {
		return fmt.Sprintf("begins with %q, which is no imperative", verb)
	}
	return ""
}

// checkCommits checks the subjects of the commits in a range, merges apart.
func checkCommits(ctx context.Context, out io.Writer, root, commits string) error {
	listed, err := exec.CommandContext(ctx, "git", "-C", root, "log", "--no-merges", "--format=%h %s", commits).Output()
	if err != nil {
		return fmt.Errorf("cannot list the commits %s: %w", commits, err)
	}
	checked, wrong := 0, 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(listed)), "\n") {
		hash, text, found := strings.Cut(line, " ")
		if !found {
			continue
		}
		checked++
		if problem := checkSubject(text); problem != "" {
			wrong++
			fmt.Fprintf(out, "commit %s: the subject %s: %s\n", hash, problem, text)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d subjects of commits are wrong", wrong, checked)
	}
	fmt.Fprintf(out, "commits: %d subjects are right\n", checked)
	return nil
}
