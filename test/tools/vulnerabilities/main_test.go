package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

var pinned = database{url: "file:///copy", description: "copy of 2026-11-05"}

func usePinned(context.Context) (database, error) { return pinned, nil }

// serve serves an answer as the index of a live database.
func serve(t *testing.T, status int, answer string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /index/db.json", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestLiveDatabaseIsPreferred(t *testing.T) {
	g := NewWithT(t)
	live := serve(t, http.StatusOK, `{"modified":"2026-11-28T10:00:00Z"}`)
	used, err := choose(t.Context(), live, usePinned)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(used).To(Equal(database{url: live, description: live + " of 2026-11-28"}))
}

func TestCopyReplacesUnreachableDatabase(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, live := range map[string]string{
		"refused":     closed.URL,
		"unavailable": serve(t, http.StatusServiceUnavailable, ""),
		"not JSON":    serve(t, http.StatusOK, "<html>Log in</html>"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			used, err := choose(t.Context(), live, usePinned)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(used.url).To(Equal(pinned.url))
			g.Expect(used.description).To(HavePrefix(pinned.description+" (cannot reach the live database: "), "the output states why")
		})
	}
}

func TestMissingDatabaseIsAnError(t *testing.T) {
	_, err := choose(t.Context(), serve(t, http.StatusNotFound, ""), func(context.Context) (database, error) {
		return database{}, errors.New("no module proxy")
	})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("404 Not Found"), ContainSubstring("no module proxy"))))
}

func TestToolchainOfProductIsRead(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "go.mod")
	g.Expect(os.WriteFile(path, []byte("module m\n\ngo 1.26.0\n\ntoolchain go1.26.7\n"), 0o600)).To(Succeed())
	g.Expect(readToolchain(path)).To(Equal("go1.26.7"))
	g.Expect(os.WriteFile(path, []byte("module m\n\ngo 1.26.0\n"), 0o600)).To(Succeed())
	_, err := readToolchain(path)
	g.Expect(err).To(MatchError(ContainSubstring("has no toolchain line")))
}
