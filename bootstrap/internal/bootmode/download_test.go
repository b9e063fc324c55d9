package bootmode

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

const credential = "api_key=top-secret"

func TestDownloadIgnition(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"/ok":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"/denied": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, credential, http.StatusUnauthorized) },
		"/huge": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), discoveryLimit+1))
		},
		"/circling": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) },
	}
	mux := http.NewServeMux()
	for path, answer := range answers {
		mux.HandleFunc(path, answer)
	}
	plain := httptest.NewServer(mux)
	defer plain.Close()
	private := httptest.NewTLSServer(mux)
	defer private.Close()
	elsewhere := httptest.NewServer(mux)
	defer elsewhere.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: private.Certificate().Raw})

	moved := func(path, to string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to+"?"+credential, http.StatusFound) })
	}
	moved("/within", plain.URL+"/ok")
	moved("/elsewhere", elsewhere.URL+"/ok")
	moved("/without-tls", plain.URL+"/ok")
	moved("/twice", plain.URL+"/elsewhere")

	for name, tc := range map[string]struct {
		url string
		ca  []byte
		err string
	}{
		"plain":                         {url: plain.URL + "/ok"},
		"private authority":             {url: private.URL + "/ok", ca: ca},
		"unknown authority":             {url: private.URL + "/ok", err: "certificate"},
		"invalid authority":             {url: private.URL + "/ok", ca: []byte("x"), err: "no PEM certificate"},
		"not authorized":                {url: plain.URL + "/denied", err: "answers 401 Unauthorized"},
		"too large":                     {url: plain.URL + "/huge", err: "more than 4 MiB"},
		"redirects to the same address": {url: plain.URL + "/within"},
		"redirects to another address": {
			url: plain.URL + "/elsewhere", err: "it redirects to " + elsewhere.URL + ", and only redirects within " + plain.URL,
		},
		"second redirect leads to another address": {url: plain.URL + "/twice", err: "it redirects to " + elsewhere.URL},
		"redirects to another scheme":              {url: private.URL + "/without-tls", ca: ca, err: "it redirects to http://"},
		"redirects in circles":                     {url: plain.URL + "/circling", err: "redirects"},
		"no server":                                {url: "http://127.0.0.1:1/ok", err: "cannot reach 127.0.0.1:1"},
		"not a URL":                                {url: "http://[", err: "no valid URL"},
		"credentials in a broken URL":              {url: "gopher://u:top-secret@h/ok", err: "cannot reach"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			body, err := downloadIgnition(t.Context(), tc.url+"?"+credential, tc.ca)
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(body.Value)).To(Equal("{}"))
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			g.Expect(err).To(MatchError(Not(ContainSubstring("top-secret"))), "the error holds no credential")
		})
	}
}
