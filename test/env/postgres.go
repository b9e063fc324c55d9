package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// databaseUser is PostgreSQL's superuser; whoever reaches the socket may use its name.
	databaseUser = "assisted"
	// databaseName is the database that every PostgreSQL has.
	databaseName = "postgres"
)

// postgresFolders are where packages put the server, whose programs are rarely in the PATH.
var postgresFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"}

// findPostgres returns the folder with the programs of a PostgreSQL server: of the PATH, else the newest that is installed.
func findPostgres() (string, error) {
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
	return "", errors.New("assisted-service needs PostgreSQL, which is not installed here: install the package postgresql (Debian, Ubuntu) or postgresql-server (Fedora); its service need not run")
}

// serverVersion reads the version in a path like those of [postgresFolders]; 0.0.0 where there is none.
func serverVersion(folder string) semver.Version {
	// The error would say that there is none.
	version, _ := semver.ParseTolerant(strings.TrimPrefix(filepath.Base(filepath.Dir(folder)), "pgsql-"))
	return version
}

// startPostgres starts an empty PostgreSQL that is reached through a socket in the returned folder. PostgreSQL refuses to
// run as root: the user postgres, or nobody, runs it then.
func (e *Env) startPostgres(ctx context.Context) (process *Process, folder string, err error) {
	programs, err := findPostgres()
	if err != nil {
		return nil, "", err
	}
	owner, err := postgresOwner()
	if err != nil {
		return nil, "", err
	}
	if folder, err = e.postgresFolder(owner); err != nil {
		return nil, "", err
	}
	attributes := func(a *syscall.SysProcAttr) { a.Credential = owner }
	data := filepath.Join(folder, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "--pgdata="+data, "--username="+databaseUser,
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = folder, processAttributes()
	attributes(initdb.SysProcAttr)
	if output, err := initdb.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("cannot create a database: %w: %s", err, output)
	}
	process = e.process("postgres", storage, filepath.Join(programs, "postgres"),
		"-D", data,
		"-k", folder,
		"-c", "listen_addresses=",
		"-c", "max_connections=200", // the service opens 90
		"-c", "fsync=off", // the data does not outlive the run
		"-c", "jit=off",
	)
	process.dir, process.attributes = folder, attributes
	process.stopSignal = syscall.SIGINT // SIGTERM waits until all clients are gone
	process.before = func(ctx context.Context) error { return awaitAbandoned(ctx, data) }
	process.ready = func(ctx context.Context) error {
		_, err := run(ctx, folder, filepath.Join(programs, "pg_isready"), "--quiet", "--host="+folder, "--username="+databaseUser, "--dbname="+databaseName)
		return err
	}
	return process, folder, e.start(ctx, process)
}

// awaitAbandoned waits until no process works in the folder any more. What a killed PostgreSQL leaves behind ends by itself,
// and until then PostgreSQL refuses to start again.
func awaitAbandoned(ctx context.Context, folder string) error {
	err := wait.PollUntilContextTimeout(ctx, readyInterval, settleTimeout, true, func(context.Context) (bool, error) {
		// The error would be about a malformed pattern.
		processes, _ := filepath.Glob("/proc/[0-9]*/cwd")
		return !slices.ContainsFunc(processes, func(link string) bool {
			works, err := os.Readlink(link) // fails for processes that are gone or of others
			return err == nil && works == folder
		}), nil
	})
	if err != nil {
		return fmt.Errorf("processes still work in %s: %w", folder, err)
	}
	return nil
}

// postgresFolder makes a folder that the owner of the database reaches and nobody else can read.
func (e *Env) postgresFolder(owner *syscall.Credential) (string, error) {
	folder, err := os.MkdirTemp(e.temp, "postgres-")
	if err != nil {
		return "", fmt.Errorf("cannot create a folder for PostgreSQL: %w", err)
	}
	if owner == nil {
		return folder, nil
	}
	if err := os.Chmod(e.temp, 0o711); err != nil {
		return "", fmt.Errorf("cannot open the way to PostgreSQL's folder: %w", err)
	}
	if err := os.Chown(folder, int(owner.Uid), int(owner.Gid)); err != nil {
		return "", fmt.Errorf("cannot give PostgreSQL its folder: %w", err)
	}
	return folder, nil
}

// postgresOwner returns the user that PostgreSQL runs as; nil means our own.
func postgresOwner() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("no user but root to run PostgreSQL: %w", err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot read the id of user %s: %w", account.Username, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("cannot read the group id of user %s: %w", account.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// servicePolicy is the program that Debian's packages ask whether they may start their services.
const servicePolicy = "/usr/sbin/policy-rc.d"

// providePostgres installs PostgreSQL where it is missing and we may; else it tells what to do.
func (t *toolbox) providePostgres(ctx context.Context) error {
	_, missing := findPostgres()
	if missing == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		t.sayf("%v", missing)
		return nil
	}
	t.sayf("installing PostgreSQL: apt-get install postgresql, without starting its service")
	if _, err := os.Stat(servicePolicy); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(servicePolicy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
			return fmt.Errorf("cannot keep PostgreSQL's service from starting: %w", err)
		}
		defer os.Remove(servicePolicy)
	}
	apt := func(args ...string) error {
		_, err := run(ctx, t.root, "env", append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-y"}, args...)...)
		return err
	}
	install := []string{"install", "--no-install-recommends", "postgresql"}
	if apt(install...) == nil {
		return nil
	}
	// The package lists may be missing or old. An update may fail for a list that is not needed.
	updateErr := apt("update")
	if err := apt(install...); err != nil {
		return fmt.Errorf("cannot install PostgreSQL: %w", errors.Join(updateErr, err))
	}
	return nil
}
