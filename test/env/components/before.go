package components

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoHistory reports that the checkout has no git history, or only its last commits.
var ErrNoHistory = errors.New("the checkout has no history")

// firstVersion is the version of the state before the first release.
const firstVersion = "v0.1.0"

// Before returns the builder of the previous release and its version. The previous release is the newest tag
// before the last commit, or without tags the commit before the last change of the API. Its checkout lies in
// .tools, named after the commit. It returns [ErrNoHistory] if the history is missing.
func (b *Builder) Before(ctx context.Context) (*Builder, string, error) {
	commit, version, err := b.commitBefore(ctx)
	if err != nil {
		return nil, "", err
	}
	unlock, err := b.lock()
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	before := &Builder{root: filepath.Join(b.root, ".tools", "before-"+commit), out: b.out}
	if _, err := os.Stat(before.root); err == nil {
		return before, version, nil
	}
	temporary := before.root + ".new"
	if err := errors.Join(os.RemoveAll(temporary), os.MkdirAll(temporary, 0o755)); err != nil {
		return nil, "", fmt.Errorf("cannot create a folder for the previous release: %w", err)
	}
	archive := filepath.Join(temporary, ".tar")
	if _, err := b.git(ctx, "archive", "--format=tar", "--output="+archive, commit); err != nil {
		return nil, "", fmt.Errorf("cannot read the previous release: %w", err)
	}
	if _, err := run(ctx, temporary, "tar", "-xf", archive); err != nil {
		return nil, "", fmt.Errorf("cannot unpack the previous release: %w", err)
	}
	if err := errors.Join(os.Remove(archive), os.Rename(temporary, before.root)); err != nil {
		return nil, "", fmt.Errorf("cannot move the previous release to its folder: %w", err)
	}
	b.sayf("the previous release is %s, commit %s", version, commit)
	return before, version, nil
}

func (b *Builder) commitBefore(ctx context.Context) (commit, version string, err error) {
	shallow, err := b.git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil || shallow != "false" {
		return "", "", errors.Join(ErrNoHistory, err)
	}
	if tag, err := b.git(ctx, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^"); err == nil {
		commit, err = b.git(ctx, "rev-parse", tag+"^{commit}")
		return commit, tag, err
	}
	changed, err := b.git(ctx, "log", "-1", "--format=%H", "--", "config/bootstrap/crd", "config/controlplane/crd")
	if err != nil {
		return "", "", err
	}
	commit, err = b.git(ctx, "rev-parse", changed+"^")
	if err != nil {
		return "", "", errors.Join(ErrNoHistory, err)
	}
	return commit, firstVersion, nil
}

// git runs git in the checkout, which may belong to another user.
func (b *Builder) git(ctx context.Context, args ...string) (string, error) {
	output, err := run(ctx, b.root, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	return strings.TrimSpace(string(output)), err
}
