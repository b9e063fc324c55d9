package facts

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestMayHaveNode(t *testing.T) {
	for situation, tc := range map[string]struct {
		state    string
		stage    aiv1beta1.HostStage
		progress string
		wanted   bool
	}{
		"not bound":                            {"known", "", "", false},
		"being written":                        {"installing-in-progress", aiv1beta1.HostStageWritingImageToDisk, "", true},
		"installed":                            {"installed", aiv1beta1.HostStageDone, "", true},
		"failed before it booted its disk":     {"error", aiv1beta1.HostStageWritingImageToDisk, "Installing", false},
		"failed after it booted its disk":      {"error", aiv1beta1.HostStageJoined, "Rebooting", true},
		"no state, and it was being installed": {"", "", "Installing", true},
		"no state, and it was never installed": {"", "", "", false},
	} {
		t.Run(situation, func(t *testing.T) {
			config := &bootstrapv1.OpenshiftAssistedConfig{}
			config.Status.InstallationProgress = tc.progress
			agent := &aiv1beta1.Agent{}
			agent.Status.DebugInfo.State, agent.Status.Progress.CurrentStage = tc.state, tc.stage
			NewWithT(t).Expect((&Facts{Config: config}).MayHaveNode(agent)).To(Equal(tc.wanted))
		})
	}
}

func TestHostOfAbandonedInstallationHasNoNode(t *testing.T) {
	g := NewWithT(t)
	f := &Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, Install: &hiveext.AgentClusterInstall{}}
	rebooted, installed := &aiv1beta1.Agent{}, &aiv1beta1.Agent{}
	rebooted.Status.DebugInfo.State, rebooted.Status.Progress.CurrentStage = aiv1beta1.HostStatusError, aiv1beta1.HostStageRebooting
	installed.Status.DebugInfo.State = aiv1beta1.HostStatusInstalled
	g.Expect(f.MayHaveNode(rebooted)).To(BeTrue())
	f.Install.Annotations = map[string]string{"bootstrap.cluster.x-k8s.io/installation-given-up": ""}
	g.Expect(f.MayHaveNode(rebooted)).To(BeTrue(), "the installation has not failed")
	f.Install.Status.DebugInfo.State = "error"
	g.Expect(f.MayHaveNode(rebooted)).To(BeFalse())
	g.Expect(f.MayHaveNode(installed)).To(BeTrue())
}

func TestBoundElsewhere(t *testing.T) {
	cluster := &clusterv1.Cluster{}
	cluster.Spec.ControlPlaneRef.Name = "cp"
	for situation, tc := range map[string]struct {
		ref     *aiv1beta1.ClusterReference
		cluster *clusterv1.Cluster
		wanted  bool
	}{
		"not bound":                   {nil, cluster, false},
		"to the Machine's cluster":    {&aiv1beta1.ClusterReference{Namespace: "lab", Name: "cp"}, cluster, false},
		"to another of the namespace": {&aiv1beta1.ClusterReference{Namespace: "lab", Name: "other"}, cluster, true},
		"to one of another namespace": {&aiv1beta1.ClusterReference{Namespace: "tenant", Name: "cp"}, cluster, true},
		"the Cluster is deleted, and the deployment was its own": {&aiv1beta1.ClusterReference{Namespace: "lab", Name: "cp"}, nil, false},
		"the Cluster is deleted, and the deployment is foreign":  {&aiv1beta1.ClusterReference{Namespace: "lab", Name: "theirs"}, nil, true},
	} {
		t.Run(situation, func(t *testing.T) {
			f := &Facts{
				Config:  &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "lab"}},
				Cluster: tc.cluster, ForeignDeployments: []string{"theirs"},
			}
			NewWithT(t).Expect(f.BoundElsewhere(&aiv1beta1.Agent{Spec: aiv1beta1.AgentSpec{ClusterDeploymentName: tc.ref}})).To(Equal(tc.wanted))
		})
	}
}
