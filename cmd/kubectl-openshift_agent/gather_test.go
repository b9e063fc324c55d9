package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

func TestAddressesOfAssistedService(t *testing.T) {
	served := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(served.Close)
	_, port, _ := strings.Cut(served.Listener.Addr().String(), ":")
	const loopback, linkLocal = "loopback addresses are refused", "link-local and multicast addresses are refused"
	for _, tc := range []struct {
		host  string
		local bool
		want  string
	}{
		{"127.0.0.1", false, loopback},
		{"localhost", false, loopback},
		{"0.0.0.0", false, loopback},
		{"[::ffff:127.0.0.1]", false, loopback},
		{"[::ffff:0.0.0.0]", false, loopback},
		{"127.0.0.1", true, ""},
		{"169.254.169.254", false, linkLocal},
		{"169.254.169.254", true, linkLocal},
		{"[::ffff:169.254.169.254]", true, linkLocal},
		{"[fe80::1]", true, linkLocal},
		{"224.0.0.1", true, linkLocal},
	} {
		t.Run(tc.host, func(t *testing.T) {
			g := NewWithT(t)
			client, err := serviceClient("", tc.local)
			g.Expect(err).NotTo(HaveOccurred())
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+tc.host+":"+port, nil)
			g.Expect(err).NotTo(HaveOccurred())
			response, err := client.Do(request)
			if tc.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
		})
	}
}

func TestLocalHub(t *testing.T) {
	for host, local := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://[::1]:6443": true, "localhost:6443": true, "https://api.lab.example.com:6443": false,
		"https://10.0.0.1": false, "https://%": false, "": true,
	} {
		NewWithT(t).Expect(isLocal(&rest.Config{Host: host})).To(Equal(local), host)
	}
}
