package faultproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// hubServer is an API server with one object. A PATCH with a body changes the object, a PATCH without body does not.
type hubServer struct {
	mu      sync.Mutex
	version int
}

func (s *hubServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.version
	if r.Method != http.MethodGet && r.ContentLength > 0 {
		version++
	}
	if !r.URL.Query().Has("dryRun") {
		s.version = version
	}
	_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"}}`, version)
}

// fakeProcess counts its kills and starts.
type fakeProcess struct {
	kills, starts int
	// blocked blocks the kill until it is closed; nil: the kill is not blocked.
	blocked chan struct{}
}

func (p *fakeProcess) Kill() {
	p.kills++
	if p.blocked != nil {
		<-p.blocked
	}
}

func (p *fakeProcess) Start(context.Context) error { p.starts++; return nil }

// proxyTo returns a proxy to a server and the URL of the proxy for a manager.
func proxyTo(t *testing.T, handler http.Handler) (*Proxy, string) {
	t.Helper()
	g := NewWithT(t)
	behind := httptest.NewServer(handler)
	t.Cleanup(behind.Close)
	hub := filepath.Join(t.TempDir(), "hub")
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: behind.URL}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub"}
	config.CurrentContext = "hub"
	p, err := Listen(t.Context(), "lab-system:manager", hub)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Close)
	path, err := p.Kubeconfig(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	manager, err := clientcmd.RESTConfigFromKubeConfig(content)
	g.Expect(err).NotTo(HaveOccurred())
	code, _, _, err := send(t.Context(), http.MethodGet, manager.Host, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(http.StatusServiceUnavailable), "no hub yet")
	g.Expect(clientcmd.WriteToFile(*config, hub)).To(Succeed())
	return p, manager.Host
}

func TestManagerCrashesAtWrites(t *testing.T) {
	const object = "/apis/x/v1/namespaces/lab/things/a"
	for name, test := range map[string]struct {
		moment             Moment
		method, path, body string
		crashes, executed  int
	}{
		"read":                         {AfterWrites, http.MethodGet, object, "", 0, 0},
		"write":                        {AfterWrites, http.MethodPatch, object, "changed", 1, 1},
		"write of the status":          {AfterWrites, http.MethodPatch, object + "/status", "changed", 1, 1},
		"write without effect":         {AfterWrites, http.MethodPatch, object, "", 0, 0},
		"dry run":                      {AroundWrites, http.MethodPatch, object + "?dryRun=All", "changed", 0, 0},
		"creation":                     {AfterWrites, http.MethodPost, "/apis/x/v1/namespaces/lab/things", "new", 1, 1},
		"write of a release":           {AfterWrites, http.MethodPatch, "/apis/x/v1/clusterimagesets/a", "changed", 1, 1},
		"write in another namespace":   {AfterWrites, http.MethodPatch, "/apis/x/v1/namespaces/other/things/a", "changed", 0, 1},
		"Event":                        {AfterWrites, http.MethodPost, "/api/v1/namespaces/lab/events", "new", 0, 1},
		"write, with a crash before":   {AroundWrites, http.MethodPatch, object, "changed", 1, 0},
		"deletion, with a crash after": {AfterWrites, http.MethodDelete, object, "", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, process := &hubServer{}, &fakeProcess{}
			p, url := proxyTo(t, server)
			p.CrashAtWrites(process, "lab", test.moment)
			_, _, _, err := send(t.Context(), test.method, url+test.path, test.body)
			g.Expect(err != nil).To(Equal(test.crashes > 0), "a crash cuts the connection: %v", err)
			g.Expect(p.StopCrashes()).To(Equal(test.crashes))
			g.Expect(process.kills).To(Equal(test.crashes))
			g.Expect(process.starts).To(Equal(test.crashes))
			g.Expect(server.version).To(Equal(test.executed), "executed writes")
			code, _, _, err := send(t.Context(), test.method, url+test.path, test.body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(code).To(Equal(http.StatusOK), "no crash after StopCrashes")
		})
	}
}

func TestManagerMakesProgressWithCrashesAroundWrites(t *testing.T) {
	g := NewWithT(t)
	server, process := &hubServer{}, &fakeProcess{}
	p, url := proxyTo(t, server)
	p.CrashAtWrites(process, "lab", AroundWrites)
	for range 4 {
		_, _, _, err := send(t.Context(), http.MethodPatch, url+"/apis/x/v1/namespaces/lab/things/a", "changed")
		g.Expect(err).To(HaveOccurred())
		p.crashes.restarts.Wait()
	}
	g.Expect(server.version).To(Equal(2))
	g.Expect(p.StopCrashes()).To(Equal(4))
}

func TestCrashingManagerIsDisconnected(t *testing.T) {
	g := NewWithT(t)
	server, process := &hubServer{}, &fakeProcess{blocked: make(chan struct{})}
	p, url := proxyTo(t, server)
	p.CrashAtWrites(process, "lab", AfterWrites)
	for _, method := range []string{http.MethodPatch, http.MethodPatch, http.MethodGet} {
		code, _, _, err := send(t.Context(), method, url+"/apis/x/v1/namespaces/lab/things/a", "changed")
		g.Expect(err).To(HaveOccurred(), method)
		g.Expect(code).To(BeZero())
	}
	close(process.blocked)
	g.Expect(p.StopCrashes()).To(Equal(1))
	g.Expect(server.version).To(Equal(1), "the second write is not executed")
}
