package process

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/filelock"
)

// tempPrefix begins the names of the folders with the data and the keys of a run.
const tempPrefix = "openshift-agent-env-"

// newTempDir makes a folder for what a run need not keep; closing the lock gives it up. Folders of runs that were killed
// are removed on that occasion.
func newTempDir() (path string, lock *os.File, err error) {
	// No other process may find the new folder before it is locked.
	guard, err := filelock.Wait(filepath.Join(lockDir(), "folders"))
	if err != nil {
		return "", nil, fmt.Errorf("cannot lock the temporary folders: %w", err)
	}
	defer guard.Close()
	// The error would be about a malformed pattern.
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, path := range left {
		// The owner holds the lock as long as it lives. What cannot be locked or removed is not ours.
		if lock, err := filelock.Try(filepath.Join(path, "lock")); err == nil {
			_ = os.RemoveAll(path)
			lock.Close()
		}
	}
	if path, err = os.MkdirTemp("", tempPrefix); err != nil {
		return "", nil, fmt.Errorf("cannot create a temporary folder: %w", err)
	}
	if lock, err = filelock.Wait(filepath.Join(path, "lock")); err != nil {
		return "", nil, fmt.Errorf("cannot lock a temporary folder: %w", err)
	}
	return path, lock, nil
}

// WriteFiles writes files, by their names, that only this user may read, into a folder, which is created if it does not exist.
func WriteFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot create %s: %w", dir, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}
