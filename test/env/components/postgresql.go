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

// postgresFolders are where packages put the server, whose programs are rarely in the PATH.
var postgresFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"}

// PostgreSQL returns the folder with the programs of a PostgreSQL server: of the PATH, else the newest that is installed.
func PostgreSQL() (string, error) {
	candidates := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range postgresFolders {
		// The error would be about a malformed pattern.
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
	return "", errors.New("assisted-service needs PostgreSQL, which is not installed here: install the package " +
		"postgresql (Debian, Ubuntu) or postgresql-server (Fedora); its service need not run")
}

// serverVersion reads the version in a path like those of [postgresFolders]; 0.0.0 where there is none.
func serverVersion(folder string) semver.Version {
	// The error would say that there is none.
	version, _ := semver.ParseTolerant(strings.TrimPrefix(filepath.Base(filepath.Dir(folder)), "pgsql-"))
	return version
}

// ProvidePostgreSQL installs PostgreSQL where it is missing and we may; else it tells what to do.
func (b *Builder) ProvidePostgreSQL(ctx context.Context) error {
	return b.provide(ctx, "postgresql", func() error {
		_, missing := PostgreSQL()
		return missing
	})
}
