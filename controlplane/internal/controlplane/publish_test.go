package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// addJoiningWorker creates a worker that has its bootstrap data and no Node: the cluster expects its host.
func (h *hub) addJoiningWorker() *clusterv1.Machine {
	h.t.Helper()
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	worker.Spec.Bootstrap.DataSecretName = ptr.To("w")
	h.Expect(h.Create(h.t.Context(), worker)).To(Succeed())
	return worker
}

func TestServerCAIsPublishedWhileHostsAreExpected(t *testing.T) {
	h := newInstalledHub(t)
	annotations := func() map[string]string {
		install := &hiveext.AgentClusterInstall{}
		h.get("c1", install)
		return install.Annotations
	}
	h.workloads.facts.ServerCA = "PEM"
	h.reconcile()
	h.Expect(annotations()).NotTo(HaveKey(bootstrapv1.MachineConfigServerCAAnnotation), "no host is expected")

	worker := h.addJoiningWorker()
	h.workloads.facts.ServerCA = ""
	h.reconcile()
	h.Expect(annotations()).NotTo(HaveKey(bootstrapv1.MachineConfigServerCAAnnotation), "the CA is not known yet")
	for _, ca := range []string{"PEM", "renewed"} {
		h.workloads.facts.ServerCA = ca
		h.reconcile()
		h.Expect(annotations()).To(HaveKeyWithValue(bootstrapv1.MachineConfigServerCAAnnotation, ca))
	}
	h.workloads.facts.ServerCA, h.workloads.facts.Connected = "", false
	h.writes = nil
	h.reconcile()
	h.Expect(annotations()).To(HaveKeyWithValue(bootstrapv1.MachineConfigServerCAAnnotation, "renewed"), "the cluster does not answer")
	h.Expect(h.writes).NotTo(ContainElement("patch c1"))

	worker.Status.NodeRef.Name = "w"
	h.Expect(h.Status().Update(t.Context(), worker)).To(Succeed())
	h.reconcile()
	h.Expect(annotations()).NotTo(HaveKey(bootstrapv1.MachineConfigServerCAAnnotation), "the host has joined")
}

func TestForeignAgentClusterInstallGetsNoServerCA(t *testing.T) {
	h := newInstalledHub(t)
	install := &hiveext.AgentClusterInstall{}
	h.get("c1", install)
	install.Labels[clusterv1.ClusterNameLabel] = "another"
	h.Expect(h.Update(t.Context(), install)).To(Succeed())
	h.addJoiningWorker()
	h.workloads.facts.ServerCA = "PEM"
	h.reconcile()
	h.get("c1", install)
	h.Expect(install.Annotations).NotTo(HaveKey(bootstrapv1.MachineConfigServerCAAnnotation))
}

// assisted-service writes to the AgentClusterInstall several times a second when an installation ends.
func TestPublishingIsOneRequestThatNeedsNoCurrentObject(t *testing.T) {
	h := newInstalledHub(t)
	h.addJoiningWorker()
	h.workloads.facts.ServerCA, h.workloads.facts.OpenShiftVersion = "PEM", "4.19.4"
	outdated := h.gather()
	install := h.aci()
	metav1.SetMetaDataAnnotation(&install.ObjectMeta, "example.com/written", "after the read")
	h.Expect(h.Update(t.Context(), install)).To(Succeed())

	h.writes = nil
	h.r.writer.Recent = reconcile.NewRecentWrites(testingclock.NewFakeClock(time.Now()))
	_, err := h.r.metadata.Publish(t.Context(), outdated)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(h.writes).To(HaveExactElements("patch c1"))
	h.Expect(h.aci().Annotations).To(And(
		HaveKeyWithValue(bootstrapv1.MachineConfigServerCAAnnotation, "PEM"), HaveKeyWithValue(bootstrapv1.RunningReleaseAnnotation, "4.19.4"),
		HaveKeyWithValue("example.com/written", "after the read"),
	))
	_, err = h.r.metadata.Publish(t.Context(), outdated)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(h.writes).To(HaveLen(1), "the cache does not show the write yet")
}
