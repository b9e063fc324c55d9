package assistedservice

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

const (
	// databaseUser is PostgreSQL's superuser. Any client that reaches the socket may use the name.
	databaseUser = "assisted"
	// databaseName is the database that every PostgreSQL has.
	databaseName = "postgres"
	// abandonedTimeout is the timeout for the end of the child processes of a killed PostgreSQL, which takes a
	// second or two.
	abandonedTimeout = time.Minute
)

// startPostgres starts an empty PostgreSQL with a socket in the returned folder. PostgreSQL does not run as root:
// postgresOwner chooses the user.
func startPostgres(ctx context.Context, group *process.Group) (database *process.Process, folder string, err error) {
	programs, err := components.PostgreSQL()
	if err != nil {
		return nil, "", err
	}
	owner, err := postgresOwner()
	if err != nil {
		return nil, "", err
	}
	if folder, err = postgresFolder(group.Temp(), owner); err != nil {
		return nil, "", err
	}
	attributes := func(a *syscall.SysProcAttr) { a.Credential = owner }
	data := filepath.Join(folder, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "--pgdata="+data, "--username="+databaseUser,
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = folder, process.Attributes()
	attributes(initdb.SysProcAttr)
	if output, err := initdb.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("cannot create a database: %w: %s", err, output)
	}
	database = group.New("postgres", process.Storage, filepath.Join(programs, "postgres"),
		"-D", data,
		"-k", folder,
		"-c", "listen_addresses=",
		"-c", "max_connections=200", // the service opens 90
		"-c", "fsync=off", // the data is needed for this run only
		"-c", "jit=off",
	)
	database.Dir, database.Attributes = folder, attributes
	database.StopSignal = syscall.SIGINT // SIGTERM waits for all clients
	database.Before = func(ctx context.Context) error { return awaitAbandoned(ctx, data) }
	database.Ready = func(ctx context.Context) error {
		return exec.CommandContext(ctx, filepath.Join(programs, "pg_isready"),
			"--quiet", "--host="+folder, "--username="+databaseUser, "--dbname="+databaseName).Run()
	}
	return database, folder, group.Start(ctx, database)
}

// awaitAbandoned waits until no process works in the folder. The child processes of a killed PostgreSQL end
// automatically; until then PostgreSQL does not start.
func awaitAbandoned(ctx context.Context, folder string) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, abandonedTimeout, true, func(context.Context) (bool, error) {
		// The only possible error is a malformed pattern.
		processes, _ := filepath.Glob("/proc/[0-9]*/cwd")
		return !slices.ContainsFunc(processes, func(link string) bool {
			works, err := os.Readlink(link) // fails for ended and foreign processes
			return err == nil && works == folder
		}), nil
	})
	if err != nil {
		return fmt.Errorf("processes still work in %s: %w", folder, err)
	}
	return nil
}

// postgresFolder creates a folder that only the owner of the database can read.
func postgresFolder(temp string, owner *syscall.Credential) (string, error) {
	folder, err := os.MkdirTemp(temp, "postgres-")
	if err != nil {
		return "", fmt.Errorf("cannot create a folder for PostgreSQL: %w", err)
	}
	if owner == nil {
		return folder, nil
	}
	if err := os.Chmod(temp, 0o711); err != nil {
		return "", fmt.Errorf("cannot give access to PostgreSQL's folder: %w", err)
	}
	if err := os.Chown(folder, int(owner.Uid), int(owner.Gid)); err != nil {
		return "", fmt.Errorf("cannot give PostgreSQL its folder: %w", err)
	}
	return folder, nil
}

// postgresOwner returns the user that runs PostgreSQL; nil means the current user.
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
