package process

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/filelock"
)

// tempPrefix begins the names of the folders with the data and the keys of a run.
const tempPrefix = "openshift-agent-env-"

// newTempDir makes a folder for what a run need not keep; closing the lock gives it up. Folders of runs that were killed
// are removed on that occasion.
func newTempDir() (path string, lock *os.File, err error) {
	// Nobody else may find the new folder before it is locked.
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
