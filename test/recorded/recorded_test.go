package recorded_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/recorded"
)

func TestFilesContainOnlyWhatThePluginShows(t *testing.T) {
	g := NewWithT(t)
	const key = "https://img/byapikey/eyJ0"
	host := metal3.Host{ObjectMeta: metav1.ObjectMeta{Name: "rack1-u7"}}
	host.Spec.Image = &metal3.Image{URL: key}
	host.Spec.BMC.Address = "redfish://bmc7"
	host.Status.HardwareDetails = &metal3.Hardware{}
	host.Status.Provisioning.State = "provisioned"
	agent := aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "9063fe3d"}}
	agent.Status.Inventory.Hostname = "master-0"
	agent.Status.Inventory.SystemVendor.SerialNumber = "serial"
	machine := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m0", Finalizers: []string{"f"},
		Annotations: map[string]string{
			"cluster.x-k8s.io/conversion-data": key, "kubectl.kubernetes.io/last-applied-configuration": key, "kept": "x",
		},
	}}
	s := &snapshot.Snapshot{Hosts: []metal3.Host{host}, Agents: []aiv1beta1.Agent{agent}, Machines: []clusterv1.Machine{machine}}
	file := filepath.Join(t.TempDir(), "new", "installing.yaml")
	g.Expect(recorded.Write(file, s)).To(Succeed())
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	for _, shown := range []string{"rack1-u7", "provisioned", "9063fe3d", "master-0", "m0", "kept: x"} {
		g.Expect(string(content)).To(ContainSubstring(shown))
	}
	for _, other := range []string{"byapikey", "bmc7", "serial", "finalizers"} {
		g.Expect(string(content)).NotTo(ContainSubstring(other))
	}
	g.Expect(s.Hosts[0].Spec.Image).NotTo(BeNil(), "the snapshot is not changed")
	g.Expect(s.Machines[0].Annotations).To(HaveLen(3))
}
