package installation

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

const lab = "lab"

// newFacts returns the facts of a control plane that is not registered.
func newFacts() *facts.Facts {
	return &facts.Facts{
		ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1", UID: "cp-uid"}},
		Cluster:      &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cluster1", UID: "cluster-uid"}},
	}
}

func TestOwnershipOfTheRegistration(t *testing.T) {
	ours := newFacts().Labels()
	named := func() (*hivev1.ClusterDeployment, *hiveext.AgentClusterInstall) {
		d := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1"}}
		d.Spec.ClusterInstallRef = &hivev1.ClusterInstallLocalReference{Name: "c1"}
		i := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1"}}
		i.Spec.ClusterDeploymentRef.Name = "c1"
		i.Spec.ImageSetRef = &hivev1.ClusterImageSetReference{Name: "set"}
		return d, i
	}
	for situation, tc := range map[string]struct {
		change func(s *facts.Facts)
		ours   bool
	}{
		"no evidence":         {func(*facts.Facts) {}, false},
		"both are labeled":    {func(s *facts.Facts) { s.Deployment.Labels, s.Install.Labels = ours, ours }, true},
		"only one is labeled": {func(s *facts.Facts) { s.Install.Labels = ours }, true},
		"our annotation": {func(s *facts.Facts) {
			s.Deployment.Annotations = map[string]string{assisted.OpenShiftVersionAnnotation: "4.19.3"}
		}, true},
		"our ClusterImageSet": {func(s *facts.Facts) {
			s.OwnSets = []hivev1.ClusterImageSet{{ObjectMeta: metav1.ObjectMeta{Name: "set"}}}
		}, true},
		"a foreign ClusterImageSet": {func(s *facts.Facts) {
			s.OwnSets = []hivev1.ClusterImageSet{{ObjectMeta: metav1.ObjectMeta{Name: "another"}}}
		}, false},
		"our annotation, foreign labels": {func(s *facts.Facts) {
			s.Deployment.Annotations, s.Deployment.Labels = map[string]string{
				assisted.OpenShiftVersionAnnotation: "4.19.3",
			}, map[string]string{clusterv1.ClusterNameLabel: "other"}
		}, false},
		"one of ours that references a foreign object": {
			func(s *facts.Facts) { s.Install.Labels, s.Deployment.Spec.ClusterInstallRef.Name = ours, "other" }, false,
		},
		"one is ours, the other is foreign": {func(s *facts.Facts) {
			s.Install.Labels, s.Deployment.Labels = ours, map[string]string{clusterv1.ClusterNameLabel: "other"}
		}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := newFacts()
			s.Deployment, s.Install = named()
			tc.change(s)
			g.Expect(ownership.OwnsDeployment(s)).To(Equal(tc.ours))
			known := scope.New(s)
			g.Expect(foreign(known, s.Deployment, "ClusterDeployment")).NotTo(Equal(tc.ours))
			if !tc.ours {
				blocked := known.Found.Blocked(tasks.Installation)
				g.Expect(blocked.Reason).To(Equal(controlplanev1.InstallationNotOursReason))
				g.Expect(blocked.Message).NotTo(ContainSubstring("elete"), "a running cluster may depend on it")
				g.Expect(blocked.Message).To(ContainSubstring("cluster.x-k8s.io/cluster-name=cluster1"))
			}
		})
	}
}

func TestDeletionOfTheRegistrationOfFormerClusterBlocks(t *testing.T) {
	s := scope.New(newFacts())
	deployment := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1", Labels: s.Labels(), DeletionTimestamp: ptr.To(metav1.Now())},
	}
	deployment.Annotations = map[string]string{contract.ClusterUIDAnnotation: "former-uid"}
	s.Deployment = deployment
	g := NewWithT(t)
	g.Expect(foreign(s, deployment, "ClusterDeployment")).To(BeTrue())
	g.Expect(s.Found.Blocked(tasks.Installation)).To(HaveField("Reason", controlplanev1.WaitingForAssistedServiceReason))
}
