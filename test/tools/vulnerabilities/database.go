package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
)

const (
	// liveDatabase is the database that govulncheck uses by default.
	liveDatabase = "https://vuln.go.dev"
	// liveTimeout is how long the live database may take to answer.
	liveTimeout = 10 * time.Second

	// copyModule contains the entries of the database. go.mod pins its version.
	copyModule = "golang.org/x/vulndb"
)

// database is a database of vulnerabilities.
type database struct {
	url string
	// description names the database, and the time of its last change.
	description string
}

// choose returns the live database, or the copy if the live database cannot be reached.
func choose(ctx context.Context, live string, pinned func(context.Context) (database, error)) (database, error) {
	modified, failure := lastChange(ctx, live)
	if failure == nil {
		return database{url: live, description: fmt.Sprintf("%s of %s", live, modified.Format(time.DateOnly))}, nil
	}
	used, err := pinned(ctx)
	if err != nil {
		return database{}, fmt.Errorf("the live database cannot be reached (%w), and the pinned copy cannot be used: %w", failure, err)
	}
	used.description += fmt.Sprintf(" (cannot reach the live database: %v)", failure)
	return used, nil
}

// lastChange returns the time of the last change of a live database.
func lastChange(ctx context.Context, live string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, live+"/index/db.json", nil)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot create a request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot send a request: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("%s answers %s", live, response.Status)
	}
	var index struct{ Modified time.Time }
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, 1<<20)).Decode(&index); err != nil {
		return time.Time{}, fmt.Errorf("cannot read the answer of %s: %w", live, err)
	}
	return index.Modified, nil
}

// pinnedCopy downloads the pinned copy of the database from the module proxy, or returns the one of the module cache.
func pinnedCopy(ctx context.Context) (database, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", copyModule)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return database{}, fmt.Errorf("cannot download %s: %w: %s%s", copyModule, err, out, stderr.String())
	}
	var downloaded struct{ Dir, Version string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return database{}, fmt.Errorf("cannot read the output of go mod download: %w", err)
	}
	created, err := module.PseudoVersionTime(downloaded.Version)
	if err != nil {
		return database{}, fmt.Errorf("cannot read the date of %s: %w", copyModule, err)
	}
	entries := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(downloaded.Dir, "data", "osv"))}
	return database{url: entries.String(), description: fmt.Sprintf("%s of %s", copyModule, created.Format(time.DateOnly))}, nil
}
