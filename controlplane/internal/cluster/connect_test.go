package cluster

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
)

func TestEtcdServes(t *testing.T) {
	h, server := connectedHub(t)
	for code, serves := range map[int]bool{
		http.StatusOK: true, http.StatusInternalServerError: false, http.StatusForbidden: true, http.StatusNotFound: true,
	} {
		server.etcd.Store(int32(code))
		h.Expect(h.EtcdServes(t.Context(), clusterKey)).To(Equal(serves), "%d", code)
	}
	_, err := newHub(t, conntest.Kubeconfig(t, "https://127.0.0.1:1", nil)).EtcdServes(t.Context(), clusterKey)
	h.Expect(err).To(MatchError(ErrNotConnected))
}

func TestConnectRequiresConnection(t *testing.T) {
	h := newHub(t, conntest.Kubeconfig(t, "https://127.0.0.1:1", nil))
	requests := func(context.Context, *conn.Conn) error { panic("not connected") }
	h.Expect(h.Connect(t.Context(), clusterKey, requests)).To(MatchError(ErrNotConnected), "not visited")
	h.visit(t.Context())
	h.Expect(h.Connect(t.Context(), clusterKey, requests)).To(MatchError(ErrNotConnected), "no response")
}
