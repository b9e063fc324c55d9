package controlplane

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// propagatedAnnotation marks infra machines that carry metadata of the machineTemplate.
const propagatedAnnotation = "controlplane.cluster.x-k8s.io/propagated-metadata"

// configAnnotations go from the control plane to its OpenshiftAssistedConfigs.
var configAnnotations = []string{bootstrapv1.DiscoveryIgnitionOverrideAnnotation, bootstrapv1.IgnitionOverrideAnnotation}

// machineLabels are the labels of the Machines and of what belongs to them.
func (s *scope) machineLabels() map[string]string {
	labels := maps.Clone(s.ControlPlane.Spec.MachineTemplate.ObjectMeta.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, s.Labels())
	labels[clusterv1.MachineControlPlaneLabel] = ""
	return labels
}

// ownerRef makes an object owned, not controlled: Cluster API replaces it by the Machine as controller.
func (s *scope) ownerRef() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: controlplanev1.GroupVersion.String(),
		Kind:       facts.ControlPlaneKind,
		Name:       s.ControlPlane.Name,
		UID:        s.ControlPlane.UID,
	}
}

// machine is the wanted Machine of a slot.
func (s *scope) machine(slot slot, infra *unstructured.Unstructured) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ControlPlane.Namespace, Name: slot.name},
		Spec: clusterv1.MachineSpec{
			ClusterName: s.Cluster.Name,
			Version:     cmp.Or(s.found.MachineVersion(s.Facts), "v"+s.found.Version.String()),
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: facts.ConfigKind, Name: slot.name,
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infra.GroupVersionKind().Group, Kind: infra.GetKind(), Name: slot.name,
			},
			FailureDomain: pickFailureDomain(s.Cluster, slot.index),
		},
	}
	s.setInPlace(m)
	return m
}

// syncedMachine is the wanted state of a Machine that exists: what cannot change in place stays as it is.
func (s *scope) syncedMachine(observed *clusterv1.Machine) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: observed.Namespace, Name: observed.Name},
		Spec: clusterv1.MachineSpec{
			ClusterName:       observed.Spec.ClusterName,
			Version:           cmp.Or(s.found.MachineVersion(s.Facts), observed.Spec.Version),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: observed.Spec.Bootstrap.ConfigRef},
			InfrastructureRef: observed.Spec.InfrastructureRef,
			FailureDomain:     observed.Spec.FailureDomain,
		},
	}
	s.setInPlace(m)
	return m
}

// setInPlace sets what changes without a new Machine.
func (s *scope) setInPlace(m *clusterv1.Machine) {
	template := &s.ControlPlane.Spec.MachineTemplate
	m.Labels = s.machineLabels()
	m.Annotations = maps.Clone(template.ObjectMeta.Annotations)
	m.OwnerReferences = []metav1.OwnerReference{*s.controllerRef()}
	m.Spec.ReadinessGates = template.Spec.ReadinessGates
	m.Spec.Taints = template.Spec.Taints
	m.Spec.Deletion = clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        template.Spec.Deletion.NodeDrainTimeoutSeconds,
		NodeVolumeDetachTimeoutSeconds: template.Spec.Deletion.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds:     template.Spec.Deletion.NodeDeletionTimeoutSeconds,
	}
	m.Spec.MinReadySeconds = ptr.To[int32](0)
}

// config is the wanted OpenshiftAssistedConfig. Its spec follows the control plane until the installation starts.
func (s *scope) config(name string, observed *bootstrapv1.OpenshiftAssistedConfig) *bootstrapv1.OpenshiftAssistedConfig {
	c := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   s.ControlPlane.Namespace,
			Name:        name,
			Labels:      s.machineLabels(),
			Annotations: maps.Clone(s.ControlPlane.Spec.MachineTemplate.ObjectMeta.Annotations),
		},
		Spec: *s.ControlPlane.Spec.OpenshiftAssistedConfigSpec.DeepCopy(),
	}
	for _, key := range configAnnotations {
		if value, ok := s.ControlPlane.Annotations[key]; ok {
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[key] = value
		}
	}
	if observed == nil {
		c.OwnerReferences = []metav1.OwnerReference{s.ownerRef()}
		return c
	}
	if s.OwnerOf(observed) {
		c.OwnerReferences = []metav1.OwnerReference{s.ownerRef()}
	}
	if s.Begun {
		c.Spec = *observed.Spec.DeepCopy()
	}
	return c
}

// infraMachine clones the infra machine from its template.
func (s *scope) infraMachine(slot slot) (*unstructured.Unstructured, error) {
	return external.GenerateTemplate(&external.GenerateTemplateInput{
		Template: s.template,
		TemplateRef: &corev1.ObjectReference{
			APIVersion: s.template.GetAPIVersion(), Kind: s.template.GetKind(), Name: s.template.GetName(), Namespace: s.template.GetNamespace(),
		},
		Namespace:   s.ControlPlane.Namespace,
		Name:        slot.name,
		ClusterName: s.Cluster.Name,
		OwnerRef:    ptr.To(s.ownerRef()),
		Labels: map[string]string{
			clusterv1.MachineControlPlaneLabel:     "",
			clusterv1.MachineControlPlaneNameLabel: s.Labels()[clusterv1.MachineControlPlaneNameLabel],
		},
	})
}

// infraMetadata is the part of an infra machine that follows the machineTemplate's metadata; nil when there is and was none.
func (s *scope) infraMetadata(observed *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := s.ControlPlane.Spec.MachineTemplate.ObjectMeta
	_, had := observed.GetAnnotations()[propagatedAnnotation]
	if len(wanted.Labels)+len(wanted.Annotations) == 0 && !had {
		return nil
	}
	u := kube.EmptyOf(observed)
	u.SetNamespace(observed.GetNamespace())
	u.SetName(observed.GetName())
	u.SetLabels(s.machineLabels())
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

// pickFailureDomain spreads the slots over the failure domains for control planes, in turn: the same slot always gets the same one.
func pickFailureDomain(cluster *clusterv1.Cluster, index int) string {
	var names []string
	for _, d := range cluster.Status.FailureDomains {
		if ptr.Deref(d.ControlPlane, false) {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return names[index%len(names)]
}
