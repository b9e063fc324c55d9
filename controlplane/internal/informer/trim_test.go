package informer

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// applied is the record of the fields that this provider applied; others is a record that the caches drop.
var (
	applied = metav1.ManagedFieldsEntry{Manager: string(writer.FieldOwner), Operation: metav1.ManagedFieldsOperationApply}
	others  = metav1.ManagedFieldsEntry{Manager: "another-client", Operation: metav1.ManagedFieldsOperationUpdate}
)

// identity returns the identity of an object in the tests, with our labels.
func identity() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         lab,
		Name:              "c1",
		UID:               "1",
		ResourceVersion:   "5",
		Generation:        2,
		CreationTimestamp: metav1.Now(),
		DeletionTimestamp: ptr.To(metav1.Now()),
		Labels:            map[string]string{clusterv1.ClusterNameLabel: "cluster1", clusterv1.MachineControlPlaneNameLabel: "c1"},
	}
}

// burdened returns a copy of an object with metadata that no reader needs.
func burdened[T client.Object](kept T) T {
	whole := kept.DeepCopyObject().(T) //nolint:forcetypeassert // a copy of the same type
	labels, annotations := whole.GetLabels(), whole.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["other"], annotations[corev1.LastAppliedConfigAnnotation] = "x", "large"
	whole.SetLabels(labels)
	whole.SetAnnotations(annotations)
	whole.SetFinalizers([]string{"another-client"})
	whole.SetManagedFields(append([]metav1.ManagedFieldsEntry{others}, whole.GetManagedFields()...))
	return whole
}

func TestClusterDeploymentKeepsFieldsThatAreReadOrApplied(t *testing.T) {
	g := NewWithT(t)
	stated := &hivev1.ClusterDeployment{
		ObjectMeta: identity(),
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: "c1", BaseDomain: "example.com", PullSecretRef: &corev1.LocalObjectReference{Name: "pull"},
		},
	}
	stated.Annotations, stated.ManagedFields = map[string]string{
		assisted.OpenShiftVersionAnnotation: "4.19.3",
	}, []metav1.ManagedFieldsEntry{applied}
	stated.Spec.ClusterInstallRef = &hivev1.ClusterInstallLocalReference{Name: "c1"}
	whole := burdened(stated)
	whole.Status.APIURL = "large"
	g.Expect(trimDeployment(whole)).To(Equal(stated))

	whole.Spec.Installed = true
	installed := stated.DeepCopy()
	installed.ManagedFields, installed.Spec = nil, hivev1.ClusterDeploymentSpec{
		Installed: true, ClusterInstallRef: stated.Spec.ClusterInstallRef,
	}
	g.Expect(trimDeployment(whole)).To(Equal(installed), "the registration is not applied any more")
}

func TestAgentClusterInstallKeepsFieldsThatAreReadOrApplied(t *testing.T) {
	g := NewWithT(t)
	stated := &hiveext.AgentClusterInstall{ObjectMeta: identity()}
	stated.Labels[hiveext.ClusterConsumerLabel] = assisted.Consumer
	stated.Annotations, stated.ManagedFields = map[string]string{
		assisted.InstallConfigOverridesAnnotation: "{}", assisted.IgnoredHostValidationsAnnotation: "ntp-synced",
		assisted.NTPSourcesAnnotation: "ntp",
	}, []metav1.ManagedFieldsEntry{applied}
	stated.Spec = hiveext.AgentClusterInstallSpec{
		ImageSetRef:           &hivev1.ClusterImageSetReference{Name: "set"},
		ClusterDeploymentRef:  corev1.LocalObjectReference{Name: "c1"},
		SSHPublicKey:          "key",
		ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: 3, WorkerAgents: 2},
	}
	whole := burdened(stated)
	whole.Status.ConnectivityMajorityGroups = "large"
	g.Expect(trimInstall(whole)).To(Equal(stated))

	whole.Spec.ClusterMetadata = &hivev1.ClusterMetadata{ClusterID: "id", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "admin"}}
	installing := stated.DeepCopy()
	delete(installing.Labels, hiveext.ClusterConsumerLabel)
	installing.Annotations, installing.ManagedFields = map[string]string{assisted.IgnoredHostValidationsAnnotation: "ntp-synced"}, nil
	installing.Spec.SSHPublicKey, installing.Spec.ProvisionRequirements.ControlPlaneAgents = "", 0
	installing.Spec.ClusterMetadata = whole.Spec.ClusterMetadata
	g.Expect(trimInstall(whole)).To(Equal(installing), "the registration is not applied any more")

	const serverCA = "bootstrap.cluster.x-k8s.io/machine-config-server-ca"
	whole.Annotations[facts.ImportedAnnotation], whole.Annotations[serverCA] = "", "PEM"
	installing.Annotations[facts.ImportedAnnotation], installing.Annotations[serverCA] = "", "PEM"
	g.Expect(trimInstall(whole)).To(Equal(installing), "the cluster was imported, and a host is expected")
}

func TestStatusOfAgentClusterInstallKeepsFieldsThatAreRead(t *testing.T) {
	g := NewWithT(t)
	condition := func(kind hivev1.ClusterInstallConditionType) hivev1.ClusterInstallCondition {
		return hivev1.ClusterInstallCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "Reason", Message: "message", LastTransitionTime: metav1.Now(),
		}
	}
	status := hiveext.AgentClusterInstallStatus{
		DebugInfo: hiveext.DebugInfo{State: assisted.StateInstalling, StateInfo: "info", EventsURL: "events", LogsURL: "logs"},
	}
	status.Progress.TotalPercentage = 7
	status.Conditions = []hivev1.ClusterInstallCondition{
		condition(hiveext.ClusterSpecSyncedCondition),
		condition(hiveext.ClusterValidatedCondition),
		condition(hiveext.ClusterRequirementsMetCondition),
		condition(hiveext.ClusterCompletedCondition), condition(hiveext.ClusterLastInstallationPreparationFailedCondition),
	}
	whole := &hiveext.AgentClusterInstall{Status: *status.DeepCopy()}
	whole.Status.Conditions = append(whole.Status.Conditions, condition("Other"))
	whole.Status.Conditions[0].LastProbeTime, whole.Status.APIVIP = metav1.Now(), "192.0.2.1"
	g.Expect(trimInstall(whole).Status).To(Equal(status))

	whole.Status.DebugInfo.State = ""
	g.Expect(trimInstall(whole).Status.Conditions).To(HaveLen(6), "each shows since when assisted-service does not answer")

	whole.Status.DebugInfo.State, whole.Status.Conditions[3].Status = assisted.StateFinalizing, corev1.ConditionTrue
	completed := hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionTrue, LastTransitionTime: status.Conditions[3].LastTransitionTime,
	}
	installed := hiveext.AgentClusterInstallStatus{
		DebugInfo: hiveext.DebugInfo{State: assisted.StateFinalizing}, Conditions: []hivev1.ClusterInstallCondition{completed},
	}
	g.Expect(trimInstall(whole).Status).To(Equal(installed), "the course of the installation is not reported any more")
}

func TestClusterImageSetKeepsFieldsThatAreApplied(t *testing.T) {
	stated := &hivev1.ClusterImageSet{ObjectMeta: identity(), Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/ocp@sha256:aaaa"}}
	stated.Annotations = map[string]string{
		facts.OwnerAnnotation: "lab/c1", facts.ResolvedFromAnnotation: "image", facts.ResolvedThroughAnnotation: "version",
	}
	stated.ManagedFields = []metav1.ManagedFieldsEntry{applied}
	NewWithT(t).Expect(trimImageSet(burdened(stated))).To(Equal(stated))
}

func TestAgentKeepsFieldsThatAreRead(t *testing.T) {
	g := NewWithT(t)
	kept := &aiv1beta1.Agent{ObjectMeta: identity()}
	kept.Labels = map[string]string{aiv1beta1.InfraEnvNameLabel: "m"}
	kept.Spec = aiv1beta1.AgentSpec{
		Hostname:              "rack1-u7",
		ClusterDeploymentName: &aiv1beta1.ClusterReference{Name: "c1"},
		NodeLabels:            map[string]string{"metal3.io/uuid": "uid"},
	}
	kept.Status.Inventory.Hostname, kept.Status.Inventory.Interfaces = "localhost", []aiv1beta1.HostInterface{
		{IPV4Addresses: []string{"192.168.1.10", "fd00::10"}},
	}
	kept.Status.DebugInfo = aiv1beta1.DebugInfo{State: aiv1beta1.HostStatusInsufficient, StateInfo: "info"}
	kept.Status.Role, kept.Status.Bootstrap = aiv1beta1.HostRoleMaster, true
	kept.Status.Progress.CurrentStage, kept.Status.Progress.StageStartTime = aiv1beta1.HostStageRebooting, &metav1.Time{Time: time.Unix(1, 0)}
	kept.Status.Conditions = []conditionsv1.Condition{{Type: aiv1beta1.ValidatedCondition, Status: corev1.ConditionFalse, Message: "message"}}
	whole := burdened(kept)
	whole.Spec.IgnitionConfigOverrides, whole.Spec.NodeLabels["other"] = "large", "x"
	whole.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{
		{MacAddress: "52:54:00:00:00:01", IPV4Addresses: []string{"192.168.1.10/24"}}, {IPV6Addresses: []string{"fd00::10/64", "fe80::1/64"}},
	}
	whole.Status.Progress.InstallationPercentage = 88
	whole.Status.Conditions = append([]conditionsv1.Condition{{Type: aiv1beta1.ConnectedCondition}}, whole.Status.Conditions...)
	g.Expect(trimAgent(whole)).To(Equal(kept))

	joined := whole.DeepCopy()
	joined.Status.Progress.CurrentStage = aiv1beta1.HostStageDone
	g.Expect(trimAgent(joined).Status.Inventory.Interfaces).To(BeEmpty(), "its Node reports its addresses")

	whole.Status.Conditions[1].Status = corev1.ConditionTrue
	g.Expect(trimAgent(whole).Status.Conditions).To(BeEmpty(), "only unmet conditions are reported")
	since := metav1.NewTime(time.Unix(2, 0))
	whole.Status.Conditions[0] = conditionsv1.Condition{
		Type: aiv1beta1.RequirementsMetCondition, Status: corev1.ConditionTrue, LastTransitionTime: since, Reason: "reason", Message: "message",
	}
	g.Expect(trimAgent(whole).Status.Conditions).To(ConsistOf(conditionsv1.Condition{
		Type: aiv1beta1.RequirementsMetCondition, Status: corev1.ConditionTrue, LastTransitionTime: since,
	}))
	whole.Status.Conditions[0].Status = corev1.ConditionFalse
	g.Expect(trimAgent(whole).Status.Conditions).To(BeEmpty())
	whole.Status.Conditions[0] = conditionsv1.Condition{
		Type: aiv1beta1.BoundCondition, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: "message",
	}
	g.Expect(trimAgent(whole).Status.Conditions).To(ConsistOf(conditionsv1.Condition{
		Type: aiv1beta1.BoundCondition, Status: corev1.ConditionTrue, LastTransitionTime: since,
	}))
}

func TestSecretsAndConfigMapsKeepFieldsThatAreRead(t *testing.T) {
	g := NewWithT(t)
	secret := kube.MetadataOf(kube.Secret)
	secret.ObjectMeta = identity()
	secret.Labels = nil
	secret.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: facts.ControlPlaneKind, Name: "c1", UID: "cp-uid", Controller: ptr.To(true)},
	}
	secret.Annotations = map[string]string{
		facts.KubeconfigSourceAnnotation:      "s",
		facts.KubeconfigRenewalAnnotation:     "r",
		facts.KubeconfigTokenAnnotation:       "t",
		facts.KubeconfigAuthoritiesAnnotation: "a",
	}
	g.Expect(trimSecret(burdened(secret))).To(Equal(secret))

	configMap := kube.MetadataOf(kube.ConfigMap)
	configMap.ObjectMeta = identity()
	configMap.Labels = nil
	g.Expect(kube.MetadataIdentity(burdened(configMap))).To(Equal(configMap))
}

func TestTransformsDoNotChangeOtherKinds(t *testing.T) {
	for kind, options := range Cached() {
		unknown := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		kept, err := options.Transform(unknown)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(kept).To(Equal(unknown), "%T", kind)
	}
}
