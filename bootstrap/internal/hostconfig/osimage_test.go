package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// upgraded returns a world with a cluster that was installed with 4.19.3 and whose control-plane Machines
// have the given releases.
func upgraded(t *testing.T, state string, releases ...string) *world {
	t.Helper()
	objects := lab()
	install, ok := objects["install"].(*hiveext.AgentClusterInstall)
	NewWithT(t).Expect(ok).To(BeTrue())
	install.Status.DebugInfo.State = state
	for i, release := range releases {
		name := string(rune('a'+i)) + "-cp"
		objects[name] = controlPlaneMachine(name, "c", release)
	}
	objects["another cluster's"] = controlPlaneMachine("other", "other", "4.15.1")
	return newWorld(t, values(objects)...)
}

func controlPlaneMachine(name, cluster, release string) client.Object {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{clusterv1.ClusterNameLabel: cluster, clusterv1.MachineControlPlaneLabel: ""},
		},
		Spec: clusterv1.MachineSpec{ClusterName: cluster, Version: release},
	}
}

func (w *world) osImageVersion() string {
	w.t.Helper()
	return read(w, "m", &aiv1beta1.InfraEnv{}).Spec.OSImageVersion
}

func TestDiscoveryImageHasRunningRelease(t *testing.T) {
	for situation, tc := range map[string]struct {
		state    string
		releases []string
		own      string
		wanted   string
	}{
		"upgraded":                                           {"adding-hosts", []string{"4.21.4", "v4.21.4"}, "", "4.21"},
		"being upgraded: the oldest":                         {"adding-hosts", []string{"4.21.4", "4.20.9", "v4.21.4"}, "", "4.20"},
		"to a minor version of two digits":                   {"adding-hosts", []string{"4.9.1", "4.10.1"}, "", "4.9"},
		"no release in the Machines":                         {"adding-hosts", []string{"", "latest"}, "", "4.19"},
		"not installed yet: the release of the installation": {"insufficient", []string{"4.21.4"}, "", "4.19"},
		"the config requests another release":                {"adding-hosts", []string{"4.21.4"}, "4.20", "4.20"},
	} {
		t.Run(situation, func(t *testing.T) {
			w := upgraded(t, tc.state, tc.releases...)
			config := w.config()
			w.change(config, func() { config.Spec.OSImageVersion = tc.own })
			w.reconcile()
			w.Expect(w.osImageVersion()).To(Equal(tc.wanted))
		})
	}
}

// TestDiscoveryImageOfBootingHostStays: the bootstrap data of the host was created from the image.
func TestDiscoveryImageOfBootingHostStays(t *testing.T) {
	w := upgraded(t, "adding-hosts", "4.20.9")
	machine := read(w, "a-cp", &clusterv1.Machine{})
	upgrade := func(release string) {
		w.change(machine, func() { machine.Spec.Version = release })
		w.reconcile()
	}
	w.reconcile()
	upgrade("4.21.4")
	w.Expect(w.osImageVersion()).To(Equal("4.21"), "the image was not handed out yet")
	w.makeImage()
	w.reconcile()
	w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty(), "the data is handed out")
	upgrade("4.22.1")
	w.Expect(w.osImageVersion()).To(Equal("4.21"))

	w.remove(read(w, "m", &aiv1beta1.InfraEnv{}))
	w.reconcile()
	w.reconcile()
	w.Expect(w.osImageVersion()).To(Equal("4.22"), "a recreated image has the running release")
}

// TestDiscoveryImageWithoutAssistedService: the host may be booting, while assisted-service reports no state
// of the cluster because its database is unavailable.
func TestDiscoveryImageWithoutAssistedService(t *testing.T) {
	w := upgraded(t, "adding-hosts", "4.20.9")
	machine := read(w, "a-cp", &clusterv1.Machine{})
	w.change(machine, func() { machine.Status.NodeRef.Name = "a-cp" })
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty(), "the data is handed out")
	for _, state := range []string{"", "adding-hosts"} {
		install := read(w, "cp", &hiveext.AgentClusterInstall{})
		w.change(install, func() { install.Status.DebugInfo.State = state })
		w.reconcile()
		w.Expect(w.osImageVersion()).To(Equal("4.20"), "state %q", state)
	}
}
