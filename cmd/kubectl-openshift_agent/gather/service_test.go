package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/page"
)

// tarGz returns an archive of files.
func tarGz(t *testing.T, files ...[2]string) string {
	t.Helper()
	g := NewWithT(t)
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, file := range files {
		g.Expect(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file[0], Size: int64(len(file[1])), Mode: 0o644})).To(Succeed())
		_, err := w.Write([]byte(file[1]))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(w.Close()).To(Succeed())
	g.Expect(compressed.Close()).To(Succeed())
	return out.String()
}

// serve returns assisted-service with an AgentClusterInstall that names it.
func serve(t *testing.T, h *hub, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	h.add(t, `
apiVersion: extensions.hive.openshift.io/v1beta1
kind: AgentClusterInstall
metadata: {namespace: lab, name: ha, labels: {cluster.x-k8s.io/cluster-name: ha}}
status:
  debugInfo: {eventsURL: "`+server.URL+`/events?api_key=planted-api-key", logsURL: "`+server.URL+`/logs?api_key=planted-api-key"}
`)
	return server
}

func TestEventsAndHostLogsOfAssistedService(t *testing.T) {
	g, h := NewWithT(t), newHub(t)
	inner := tarGz(t, [2]string{"journal.log", "kubelet started password=planted\n"},
		[2]string{"../../root/.kube/kubeconfig", "planted"})
	logs := tarGz(t, [2]string{"../../../ha_m0.tar.gz", inner}, [2]string{"core.bin", "\x00\x01planted"},
		[2]string{"plain.txt", "planted-api-key"})
	server := serve(t, h, func(w http.ResponseWriter, r *http.Request) {
		g.Expect(r.URL.Query().Get("api_key")).To(Equal("planted-api-key"), "the key is used")
		if r.URL.Path == "/events" {
			_, _ = w.Write([]byte(`[{"event_time":"2026-11-29T11:20:00Z","severity":"error","message":"Host m0 failed: token=planted"}]`))
			return
		}
		_, _ = w.Write([]byte(logs))
	})
	s := h.sources()
	s.Service = server.Client()
	files := write(t, s)
	g.Expect(files["assisted-service/AgentClusterInstall-ha-events.json"]).To(ContainSubstring("Host m0 failed"))
	g.Expect(files["index.html"]).To(ContainSubstring("Host m0 failed"))
	g.Expect(files["assisted-service/AgentClusterInstall-ha-logs/ha_m0/journal.log"]).To(Equal("kubelet started password=[redacted]\n"))
	g.Expect(files["gather.yaml"]).To(And(ContainSubstring("may consist of credentials"), ContainSubstring("no text")))
	for name, content := range files {
		g.Expect(content).NotTo(ContainSubstring("planted"), name)
	}
}

func TestProblemsOfAssistedServiceAreListed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host got the API key") }))
	t.Cleanup(other.Close)
	for situation, tc := range map[string]struct {
		handler http.HandlerFunc
		cause   string
	}{
		"redirect to another host": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+"?"+r.URL.RawQuery, http.StatusFound)
			},
			"assisted-service redirects to another host",
		},
		"no right": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			"assisted-service answers 401 Unauthorized",
		},
		"closed connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(situation, func(t *testing.T) {
			g, h := NewWithT(t), newHub(t)
			s := h.sources()
			s.Service = serve(t, h, tc.handler).Client()
			files := write(t, s)
			g.Expect(files["gather.yaml"]).To(And(ContainSubstring("cause: "+tc.cause),
				ContainSubstring("logs of assisted-service for AgentClusterInstall ha")))
			for name, content := range files {
				g.Expect(content).NotTo(ContainSubstring("planted"), name)
			}
		})
	}
}

func TestArchivesInArchivesAreBounded(t *testing.T) {
	g, h := NewWithT(t), newHub(t)
	logs := "text\n"
	for range 8 {
		logs = tarGz(t, [2]string{"a.tar.gz", logs})
	}
	s := h.sources()
	s.Service = serve(t, h, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(logs)) }).Client()
	files := write(t, s)
	g.Expect(files["gather.yaml"]).To(ContainSubstring("too many archives in archives"))
	for name := range files {
		g.Expect(strings.HasPrefix(name, "assisted-service/AgentClusterInstall-ha-logs/")).To(BeFalse())
	}
}

func TestBudgetOfHostLogsIsSharedBySources(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	o.unpacked = budget{entries: 3, bytes: 1 << 20}
	logs := tarGz(t, [2]string{"a.log", "a"}, [2]string{"b.log", "b"})
	server := serve(t, h, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(logs)) })
	h.add(t, `
apiVersion: agent-install.openshift.io/v1beta1
kind: InfraEnv
metadata: {namespace: lab, name: ha}
status: {debugInfo: {logsURL: "`+server.URL+`/logs"}}
`)
	s := h.sources()
	s.Service = server.Client()
	gaps, err := Write(t.Context(), s, o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gaps).To(ContainElement(page.Gap{
		What: "rest of logs of assisted-service for InfraEnv ha", Cause: "the logs have more than 3 files or 1 MiB",
	}))
	files := contentOf(t, o.Output)
	g.Expect(files).To(And(HaveKey("assisted-service/AgentClusterInstall-ha-logs/b.log"),
		HaveKey("assisted-service/InfraEnv-ha-logs/a.log"), Not(HaveKey("assisted-service/InfraEnv-ha-logs/b.log"))))
}
