package components

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// postgresFolders are the folders of packaged PostgreSQL servers, which are rarely in the PATH.
var postgresFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"}

// PostgreSQL returns the folder with the programs of a PostgreSQL server: the one in the PATH, or the newest
// installed one.
func PostgreSQL() (string, error) {
	candidates := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range postgresFolders {
		// The only possible error is a malformed pattern.
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return serverVersion(b).Compare(serverVersion(a)) })
		candidates = append(candidates, found...)
	}
	for _, folder := range candidates {
		complete := !slices.ContainsFunc([]string{"initdb", "postgres", "pg_isready"}, func(program string) bool {
			_, err := exec.LookPath(filepath.Join(folder, program))
			return err != nil
		})
		if complete {
			return folder, nil
		}
	}
	return "", errors.New("assisted-service needs PostgreSQL, which is not installed: install the package " +
		"postgresql (Debian, Ubuntu) or postgresql-server (Fedora); its service need not run")
}

// serverVersion returns the version in a path that matches [postgresFolders], or 0.0.0.
func serverVersion(folder string) semver.Version {
	// An error means that the path has no version.
	version, _ := semver.ParseTolerant(strings.TrimPrefix(filepath.Base(filepath.Dir(folder)), "pgsql-"))
	return version
}

// ProvidePostgreSQL installs PostgreSQL if missing and permitted; otherwise it returns an error with
// instructions.
func (b *Builder) ProvidePostgreSQL(ctx context.Context) error {
	return b.provide(ctx, "postgresql", func() error {
		_, missing := PostgreSQL()
		return missing
	})
}
