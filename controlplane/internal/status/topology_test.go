package status

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Cluster API reverts an edit of a field that the ClusterClass sets.
func TestTopologyIsNamedInsteadOfTheControlPlane(t *testing.T) {
	for situation, c := range map[string]struct {
		release, version string
		message          string
	}{
		"an upgrade outside":       {"4.19.3", "v1.32.6", "never downgraded: set the variable of the Cluster's topology that sets"},
		"the upgrade outside, too": {"4.19.3", "v1.32.6", "and spec.topology.version of the Cluster to v1.33.5"},
		"the version first":        {"4.20.8", "v1.34.2", "Set the variable of the Cluster's topology that sets spec.distributionVersion"},
		"a wrong patch":            {"4.20.8", "v1.33.4", "Set spec.topology.version of the Cluster to v1.33.5"},
	} {
		t.Run(situation, func(t *testing.T) {
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
				cp.Spec.DistributionVersion, cp.Spec.Version = c.release, c.version
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
			})
			f.Workload = workload.State{Connected: true, OpenShiftVersion: "4.20.8", KubernetesVersion: "v1.33.5", APIServersVersion: "1.33.5"}
			NewWithT(t).Expect(viewOf(f).replicas().UpToDate().Message).To(ContainSubstring(c.message))
		})
	}
}

func TestTopologyUpgradeable(t *testing.T) {
	runs := workload.State{Connected: true, OpenShiftVersion: "4.19.3", KubernetesVersion: "v1.32.6", APIServersVersion: "1.32.6"}
	withHash := workload.State{Connected: true, OpenShiftVersion: "4.16.2", KubernetesVersion: "v1.29.6+aba1e8d", APIServersVersion: "1.29.6"}
	for situation, c := range map[string]struct {
		release, version string
		deployments      int
		concurrency      string
		workload         workload.State
		worker           string
		reason, message  string
	}{
		"no upgrade": {release: "4.19.3", version: "v1.32.6", deployments: 2, workload: runs, worker: "v1.32.6"},
		"upgrade requested": {
			release: "4.20.8", version: "v1.33.5", deployments: 2, workload: runs,
			reason: controlplanev1.UpgradeConcurrencyTooLowReason, message: "to 3 or more",
		},
		"one MachineDeployment": {
			release: "4.20.8", version: "v1.33.5", deployments: 1, workload: runs,
			reason: controlplanev1.UpgradeConcurrencyTooLowReason, message: "has 1 MachineDeployments, and at most 1 may",
		},
		"as many as MachineDeployments": {
			release: "4.20.8", version: "v1.33.5", deployments: 2, concurrency: "2", workload: runs,
			reason: controlplanev1.UpgradeConcurrencyTooLowReason, message: "to 3 or more",
		},
		"one more":   {release: "4.20.8", version: "v1.33.5", deployments: 2, concurrency: "3", workload: runs},
		"no workers": {release: "4.20.8", version: "v1.33.5", workload: runs},
		"the version first": {
			release: "4.19.3", version: "v1.33.5", deployments: 1, workload: runs,
			reason: controlplanev1.UpgradeConcurrencyTooLowReason,
		},
		"workers wait for their version": {
			release: "4.19.3", version: "v1.32.6", deployments: 1, workload: runs, worker: "v1.31.2",
			reason: controlplanev1.UpgradeConcurrencyTooLowReason,
		},
		"outside of a topology": {release: "4.20.8", deployments: 0, workload: runs, worker: "v1.31.2"},
		"the hash is missing": {
			release: "4.16.2", version: "v1.29.6", deployments: 1, workload: withHash,
			reason: controlplanev1.KubernetesVersionMismatchReason, message: "Set spec.topology.version of the Cluster to v1.29.6+aba1e8d",
		},
		"another hash": {
			release: "4.16.2", version: "v1.29.6+bbb1e8d", deployments: 1, workload: withHash,
			reason: controlplanev1.KubernetesVersionMismatchReason, message: "Set spec.topology.version of the Cluster to v1.29.6+aba1e8d",
		},
		"with the hash": {release: "4.16.2", version: "v1.29.6+aba1e8d", deployments: 1, workload: withHash},
	} {
		t.Run(situation, func(t *testing.T) {
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
				cp.Spec.DistributionVersion, cp.Spec.Version = c.release, c.version
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
			})
			f.Workload, f.Cluster = c.workload, &clusterv1.Cluster{}
			f.Cluster.Spec.Topology.Version = c.version
			for i := range c.deployments {
				f.Cluster.Spec.Topology.Workers.MachineDeployments = append(f.Cluster.Spec.Topology.Workers.MachineDeployments,
					clusterv1.MachineDeploymentTopology{Name: strconv.Itoa(i)})
			}
			if c.concurrency != "" {
				f.Cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation: c.concurrency}
			}
			f.Sets = map[types.UID]workers.MachineSet{"set": {Version: c.worker}}
			found := viewOf(f).topologyUpgradeable()
			g := NewWithT(t)
			if c.reason == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found).To(HaveValue(And(HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.message)))))
		})
	}
}
