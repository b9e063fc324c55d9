// Package desired builds the desired objects of a control plane from the facts of a reconcile and the
// decisions of its phases. It has no client.
package desired

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
)

// propagatedAnnotation marks infra machines with metadata of the machineTemplate.
const propagatedAnnotation = "controlplane.cluster.x-k8s.io/propagated-metadata"

// configAnnotations are copied from the control plane to its OpenshiftAssistedConfigs.
var configAnnotations = []string{bootstrapv1.DiscoveryIgnitionOverrideAnnotation, bootstrapv1.IgnitionOverrideAnnotation}

// machineLabels returns the labels of the Machine of an arbiter, or of another Machine, and of its objects.
func machineLabels(f *facts.Facts, arbiter bool) map[string]string {
	labels := facts.MachineTemplate(f.ControlPlane, arbiter).ObjectMeta.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, f.Labels())
	labels[clusterv1.MachineControlPlaneLabel] = ""
	delete(labels, bootstrapv1.ArbiterLabel)
	if arbiter {
		labels[bootstrapv1.ArbiterLabel] = ""
	}
	return labels
}

// ownerRef returns an owner reference without controller: Cluster API replaces it by the Machine as
// controller.
func ownerRef(f *facts.Facts) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: controlplanev1.GroupVersion.String(),
		Kind:       facts.ControlPlaneKind,
		Name:       f.ControlPlane.Name,
		UID:        f.ControlPlane.UID,
	}
}

// Machine returns the desired Machine of a slot, with its infra machine.
func Machine(f *facts.Facts, slot Slot, infra *unstructured.Unstructured, version string) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ControlPlane.Namespace, Name: slot.Name},
		Spec: clusterv1.MachineSpec{
			ClusterName: f.Cluster.Name,
			Version:     version,
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: workers.ConfigKind, Name: slot.Name,
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infra.GroupVersionKind().Group, Kind: infra.GetKind(), Name: slot.Name,
			},
			FailureDomain: slot.FailureDomain,
		},
	}
	setInPlace(f, m, slot.Arbiter)
	addEtcdHook(f, m, nil)
	SetDrainExclusion(f, m, nil, 0)
	keepRemediation(f.ControlPlane, controlplanev1.RemediationInProgressAnnotation, m)
	return m
}

// SyncedMachine returns the desired state of an existing Machine. Immutable fields keep their values, and so
// does the version if the desired one is unknown.
func SyncedMachine(f *facts.Facts, observed *clusterv1.Machine, version string) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: observed.Namespace, Name: observed.Name},
		Spec: clusterv1.MachineSpec{
			ClusterName:       observed.Spec.ClusterName,
			Version:           cmp.Or(version, observed.Spec.Version),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: observed.Spec.Bootstrap.ConfigRef},
			InfrastructureRef: observed.Spec.InfrastructureRef,
			FailureDomain:     observed.Spec.FailureDomain,
		},
	}
	setInPlace(f, m, IsArbiter(f, observed))
	addEtcdHook(f, m, observed)
	SetDrainExclusion(f, m, observed, 0)
	keepRemediation(observed, controlplanev1.RemediationForAnnotation, m)
	return m
}

// keepRemediation records on a Machine which Machine it replaces. The record limits how often Machines are
// replaced because of the same failure.
func keepRemediation(from metav1.Object, annotation string, m *clusterv1.Machine) {
	if record, kept := from.GetAnnotations()[annotation]; kept {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, controlplanev1.RemediationForAnnotation, record)
	}
}

// addEtcdHook adds the hook that blocks the deletion of a host until etcd works without it. During the
// installation no etcd has to be protected. An existing hook stays until the whole cluster is deleted.
func addEtcdHook(f *facts.Facts, m, observed *clusterv1.Machine) {
	hooked := false
	if observed != nil {
		_, hooked = observed.Annotations[controlplanev1.EtcdMemberHookAnnotation]
	}
	if f.ClusterDeleting() || !hooked && !f.Installed() {
		return
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, controlplanev1.EtcdMemberHookAnnotation, "")
}

// setInPlace sets the fields that change without a new Machine.
func setInPlace(f *facts.Facts, m *clusterv1.Machine, arbiter bool) {
	template := facts.MachineTemplate(f.ControlPlane, arbiter)
	m.Labels = machineLabels(f, arbiter)
	m.Annotations = template.ObjectMeta.Annotations
	m.OwnerReferences = []metav1.OwnerReference{*controllerRef(f)}
	m.Spec.ReadinessGates = template.Spec.ReadinessGates
	m.Spec.Taints = template.Spec.Taints
	m.Spec.Deletion = clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        template.Spec.Deletion.NodeDrainTimeoutSeconds,
		NodeVolumeDetachTimeoutSeconds: template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds:     template.Spec.Deletion.NodeDeletionTimeoutSeconds,
	}
	m.Spec.MinReadySeconds = ptr.To[int32](0)
}

// Config returns the desired OpenshiftAssistedConfig of an arbiter, or of another Machine. Its spec follows
// the control plane until the installation starts.
func Config(f *facts.Facts, name string, arbiter bool, observed *bootstrapv1.OpenshiftAssistedConfig) *bootstrapv1.OpenshiftAssistedConfig {
	c := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   f.ControlPlane.Namespace,
			Name:        name,
			Labels:      machineLabels(f, arbiter),
			Annotations: facts.MachineTemplate(f.ControlPlane, arbiter).ObjectMeta.Annotations,
		},
		Spec: facts.ConfigSpec(f.ControlPlane, arbiter),
	}
	for _, key := range configAnnotations {
		if value, ok := f.ControlPlane.Annotations[key]; ok {
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[key] = value
		}
	}
	if observed == nil {
		if arbiter {
			c.Spec.Role = bootstrapv1.HostRoleArbiter
		}
		c.OwnerReferences = []metav1.OwnerReference{ownerRef(f)}
		return c
	}
	c.Spec.Role = observed.Spec.Role // it never changes
	if _, marked := observed.Labels[bootstrapv1.ArbiterLabel]; marked {
		c.Labels[bootstrapv1.ArbiterLabel] = "" // on a conflict with the role the bootstrap provider waits for a decision of the user
	}
	if f.OwnerOf(observed) {
		c.OwnerReferences = []metav1.OwnerReference{ownerRef(f)}
	}
	if f.Begun {
		c.Spec = *observed.Spec.DeepCopy()
	}
	return c
}

// InfraMachine clones the infra machine of a slot from its template.
func InfraMachine(f *facts.Facts, template *unstructured.Unstructured, slot Slot) (*unstructured.Unstructured, error) {
	labels := map[string]string{
		clusterv1.MachineControlPlaneLabel:     "",
		clusterv1.MachineControlPlaneNameLabel: f.Labels()[clusterv1.MachineControlPlaneNameLabel],
	}
	if slot.Arbiter {
		labels[bootstrapv1.ArbiterLabel] = ""
	}
	return external.GenerateTemplate(&external.GenerateTemplateInput{
		Template: template,
		TemplateRef: &corev1.ObjectReference{
			APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Name: template.GetName(), Namespace: template.GetNamespace(),
		},
		Namespace:   f.ControlPlane.Namespace,
		Name:        slot.Name,
		ClusterName: f.Cluster.Name,
		OwnerRef:    ptr.To(ownerRef(f)),
		Labels:      labels,
	})
}

// InfraMetadata returns the part of the infra machine of an arbiter, or of another Machine, that follows the
// machineTemplate's metadata. It returns nil if there is and was none.
func InfraMetadata(f *facts.Facts, arbiter bool, observed *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := facts.MachineTemplate(f.ControlPlane, arbiter).ObjectMeta
	if len(wanted.Labels)+len(wanted.Annotations) == 0 && !Propagated(observed) {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(observed.GroupVersionKind())
	u.SetNamespace(observed.GetNamespace())
	u.SetName(observed.GetName())
	u.SetLabels(machineLabels(f, arbiter))
	if len(wanted.Labels)+len(wanted.Annotations) > 0 {
		annotations := maps.Clone(wanted.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[propagatedAnnotation] = "true"
		u.SetAnnotations(annotations)
	}
	return u
}

// Propagated reports whether an infra machine has metadata of the machineTemplate. Without the annotation all
// metadata is applied again.
func Propagated(infra *unstructured.Unstructured) bool {
	_, marked := infra.GetAnnotations()[propagatedAnnotation]
	return marked
}
