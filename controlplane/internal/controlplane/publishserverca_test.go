package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

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

	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	worker.Spec.Bootstrap.DataSecretName = ptr.To("w")
	h.Expect(h.Create(t.Context(), worker)).To(Succeed())
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
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	worker.Spec.Bootstrap.DataSecretName = ptr.To("w")
	h.Expect(h.Create(t.Context(), worker)).To(Succeed())
	h.workloads.facts.ServerCA = "PEM"
	h.reconcile()
	h.get("c1", install)
	h.Expect(install.Annotations).NotTo(HaveKey(bootstrapv1.MachineConfigServerCAAnnotation))
}
