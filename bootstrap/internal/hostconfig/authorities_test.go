package hostconfig

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
)

// TestAuthoritiesOfManagerVerifyDownloads: no config names the authority of assisted-service.
func TestAuthoritiesOfManagerVerifyDownloads(t *testing.T) {
	const ignition = `{"ignition":{"version":"3.1.0"}}`
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(ignition)) }))
	defer server.Close()
	objects := lab()
	objects["metal3"] = metal3Machine("qcow2")
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.offer("", server.URL+"/discovery.ign")
	w.reconcile()
	w.downloaded()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.IgnitionDownloadFailedReason)

	file := filepath.Join(t.TempDir(), "ca.crt")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	w.Expect(os.WriteFile(file, authority, 0o600)).To(Succeed())
	authorities, err := bootmode.ReadAuthorities(file, logr.Discard())
	w.Expect(err).NotTo(HaveOccurred())
	w.authorities = authorities
	w.restart()
	w.reconcile()
	w.downloaded()
	w.Expect(w.data()).To(Equal(ignition))
}
