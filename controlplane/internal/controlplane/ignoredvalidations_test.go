package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
)

// annotateIgnored sets the annotation with ignored validations of hosts on the control plane; "" removes it.
func (h *hub) annotateIgnored(validations string) {
	h.t.Helper()
	cp := h.controlPlane()
	if cp.Annotations == nil {
		cp.Annotations = map[string]string{}
	}
	cp.Annotations[assisted.IgnoredHostValidationsAnnotation] = validations
	if validations == "" {
		delete(cp.Annotations, assisted.IgnoredHostValidationsAnnotation)
	}
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

// ignoredOfHosts returns the annotation of the AgentClusterInstall with ignored validations of hosts.
func (h *hub) ignoredOfHosts() string {
	h.t.Helper()
	_, install := h.registration()
	return install.Annotations[assisted.IgnoredHostValidationsAnnotation]
}

// After a change that assisted-service refuses, it writes no credentials of the cluster, and the cluster adds no hosts.
func TestIgnoredValidationsStayDuringInstallation(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.annotateIgnored("ntp-synced")
	h.reconcile()
	h.reconcile()
	h.Expect(h.ignoredOfHosts()).To(Equal("ntp-synced"))
	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
	h.annotateIgnored("ntp-synced,has-memory-for-role")
	h.reconcile()
	h.Expect(h.ignoredOfHosts()).To(Equal("ntp-synced,has-memory-for-role"))

	for _, state := range []string{"preparing-for-installation", "installing", "finalizing"} {
		h.setState(state, hiveext.ClusterInstallationInProgressReason, 30)
		for _, value := range []string{"", "has-memory-for-role"} {
			h.annotateIgnored(value)
			h.reconcile()
			h.Expect(h.ignoredOfHosts()).To(Equal("ntp-synced,has-memory-for-role"), state)
		}
		h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Config.IgnoredValidations = &controlplanev1.IgnoredValidations{Hosts: []string{"has-memory-for-role"}}
		})
		h.reconcile()
		h.Expect(h.ignoredOfHosts()).To(Equal("ntp-synced,has-memory-for-role"), state)
		h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.IgnoredValidations = nil })
	}
	h.annotateIgnored("ntp-synced,has-memory-for-role")
	h.install()
	h.annotateIgnored("has-memory-for-role")
	h.reconcile()
	h.Expect(h.ignoredOfHosts()).To(Equal("has-memory-for-role"), "assisted-service accepts a change while it adds hosts")
}

// The installation starts within seconds after the last change of the spec.
func TestIgnoredValidationsStayIfCacheIsBehind(t *testing.T) {
	for source, change := range map[string]func(h *hub){
		"field": func(h *hub) {
			h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
				s.Config.IgnoredValidations.Hosts = []string{"has-memory-for-role"}
			})
		},
		"field is withdrawn": func(h *hub) {
			h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.IgnoredValidations = nil })
		},
		"annotation": func(h *hub) {
			h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.IgnoredValidations = nil })
			h.annotateIgnored("has-memory-for-role")
		},
	} {
		t.Run(source, func(t *testing.T) {
			h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Spec.Config.IgnoredValidations = &controlplanev1.IgnoredValidations{Hosts: []string{"ntp-synced"}}
			})...).withTime()
			h.reconcile()
			h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
			h.reconcile()
			h.Expect(h.ignoredOfHosts()).To(Equal("ntp-synced"))
			cached := &hiveext.AgentClusterInstall{}
			h.Expect(h.cached.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "c1"}, cached)).To(Succeed())
			h.setState("preparing-for-installation", hiveext.ClusterInstallationInProgressReason, 1)
			change(h)
			h.cached.Client = kubetest.StaleCacheOf(h.cached.Client, cached, (*hiveext.AgentClusterInstall).DeepCopyInto)
			h.reconcile()
			h.Expect(h.ignoredOfHosts()).To(Equal("ntp-synced"))
		})
	}
}
