// Package facts holds what was read for one OpenshiftAssistedConfig in one reconcile, and immediate
// conclusions from it. It has no client.
package facts

import (
	"cmp"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Facts are the objects that were read for one config, each read once. They are not changed afterwards.
// Missing objects are nil.
type Facts struct {
	// Config is the cached config, or the last written one while the cache is stale.
	Config  *bootstrapv1.OpenshiftAssistedConfig
	Machine *clusterv1.Machine
	Cluster *clusterv1.Cluster
	// InfraMachine is the infra machine of any provider; InfraMachineFailure is the error of its read.
	InfraMachine        *unstructured.Unstructured
	InfraMachineFailure error
	// BootMode is the boot mode of the host, once the infra machine exists. BootModeProblem is why the infra machine
	// cannot be booted in the mode, with an action; BootMode is empty then.
	BootMode        bootstrapv1.BootMode
	BootModeProblem string
	Deployment      *hivev1.ClusterDeployment
	Install         *hiveext.AgentClusterInstall
	// ControlPlaneRuns is true if a control-plane Machine of the cluster had a Node, although
	// assisted-service has not started its installation. It is read only in this case.
	ControlPlaneRuns bool
	// InfraEnvs are the InfraEnvs of this config: one, or more after a fault. Namesake is the InfraEnv with
	// the name of the Machine.
	InfraEnvs []*aiv1beta1.InfraEnv
	Namesake  *aiv1beta1.InfraEnv
	// NamesakeUnlabeled is true if this provider created the Namesake, and another client removed the label
	// by which it is found.
	NamesakeUnlabeled bool
	// NamesakeForeign is why the Namesake does not belong to the config, for messages; "" if it does.
	NamesakeForeign string
	// Agents are the Agents that booted from the InfraEnvs, sorted by name.
	Agents []*aiv1beta1.Agent
	// ForeignDeployments are the ClusterDeployments of other clusters to which Agents are bound, if the
	// Machine's Cluster is deleted.
	ForeignDeployments []string
	// Host is the BareMetalHost of the infra machine.
	Host *metal3.Host
	// Shared returns what other BareMetalHosts of the namespace have in common with the Host; nil if an Agent
	// is approved. Its first call compares all hosts.
	Shared func() metal3.SharedIdentity
	// Claimants are BareMetalHosts of any watched namespace with the same server in use. They are listed by
	// the name of the Host, or of a Host that may be given to the Machine. They are read until an Agent is
	// approved, those of possible Hosts until the data is handed out.
	Claimants map[string][]*metal3.Host
	// TakenHost is the BareMetalHost that the infra machine names as its own, if the BareMetalHost names
	// another consumer.
	TakenHost *metal3.Host
	// Hosts are the BareMetalHosts of the namespace, and Waiting its Metal3Machines without a host, oldest
	// first. They are read only while the Machine has no host. Hosts is nil, and not just empty, if the API
	// of BareMetalHosts is not served.
	Hosts   []*metal3.Host
	Waiting []*unstructured.Unstructured
	// DataSecret is the bootstrap data without its content.
	DataSecret *metav1.PartialObjectMetadata
	// FencingSecret is the Secret with the credentials of the host's BMC, without its content. It is read
	// only if the host is fenced.
	FencingSecret *metav1.PartialObjectMetadata
	// MirrorsDigest is the digest of the ConfigMap with the mirrors of the InfraEnv; empty if none is named, or it
	// does not exist. It is read until the host is installed.
	MirrorsDigest string
	// Networks are the NMStateConfigs that the config selects, sorted by name.
	Networks []*aiv1beta1.NMStateConfig
}

// Paused reports whether reconciliation is paused.
func (f *Facts) Paused() bool {
	if f.Cluster != nil {
		return annotations.IsPaused(f.Cluster, f.Config)
	}
	return annotations.HasPaused(f.Config)
}

// Deleting reports whether the config is being deleted.
func (f *Facts) Deleting() bool { return !f.Config.DeletionTimestamp.IsZero() }

// Recorded returns a condition of the stored status; nil if there is none.
func (f *Facts) Recorded(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(f.Config.Status.Conditions, conditionType)
}

// HandedOut returns the name of the bootstrap data Secret that was reported to Cluster API; "" if none was.
// After a move or a restore the status of the config is lost, and the Machine has the name.
func (f *Facts) HandedOut() string {
	if f.Machine == nil {
		return f.Config.Status.DataSecretName
	}
	return cmp.Or(f.Config.Status.DataSecretName, ptr.Deref(f.Machine.Spec.Bootstrap.DataSecretName, ""))
}

// DataHandedOut reports whether the name of the bootstrap data Secret was reported to Cluster API.
func (f *Facts) DataHandedOut() bool { return f.HandedOut() != "" }

// HasBareMetalHost reports whether the infra machine uses a BareMetalHost.
func (f *Facts) HasBareMetalHost() bool {
	return f.InfraMachine != nil && f.InfraMachine.GetKind() == metal3.MachineKind
}

// NeedsHost reports whether the infra machine is a Metal3Machine for which CAPM3 has not chosen a host yet.
func (f *Facts) NeedsHost() bool {
	return f.HasBareMetalHost() && f.Host == nil && f.InfraMachine.GetAnnotations()[metal3.HostAnnotation] == "" && !f.Deleting() &&
		!f.WasInstalled()
}

// HostChosen reports whether the infrastructure provider may have read the boot image or data already, so
// that a change would be too late. An Agent that registered before the data existed runs on another server,
// and does not count.
func (f *Facts) HostChosen() bool {
	registered := slices.ContainsFunc(f.Agents, func(agent *aiv1beta1.Agent) bool { return !f.RegisteredBeforeData(agent) })
	if f.Host != nil || registered && f.DataHandedOut() || f.InfraMachine.GetAnnotations()[metal3.HostAnnotation] != "" {
		return true
	}
	providerID, _, _ := unstructured.NestedString(f.InfraMachine.Object, "spec", "providerID")
	provisioned, _, _ := unstructured.NestedBool(f.InfraMachine.Object, "status", "initialization", "provisioned")
	ready, _, _ := unstructured.NestedBool(f.InfraMachine.Object, "status", "ready")
	return providerID != "" || provisioned || ready
}

// WasInstalled reports whether the Machine's host has been installed. It must never be installed again.
func (f *Facts) WasInstalled() bool {
	return f.RecordedInstalled() || f.Machine != nil && metal3.HadNode(f.Machine)
}

// RecordedInstalled reports whether the status reports the host as installed.
func (f *Facts) RecordedInstalled() bool {
	condition := f.Recorded(bootstrapv1.HostInstalledCondition)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// IsFinished reports whether the host was installed and is no longer managed. A Node may exist before
// assisted-service has finished; the approved Agent is then still observed.
func (f *Facts) IsFinished() bool {
	return f.WasInstalled() && (f.RecordedInstalled() || f.ApprovedAgent() == nil)
}

// PullSecretName returns the pull secret of the config, or else that of the cluster; "" if neither names one.
func (f *Facts) PullSecretName() string {
	if ref := f.Config.Spec.PullSecretRef; ref != nil && ref.Name != "" {
		return ref.Name
	}
	if f.Deployment.Spec.PullSecretRef != nil {
		return f.Deployment.Spec.PullSecretRef.Name
	}
	return ""
}

// HostMayHaveBooted reports whether one of the Agents is, or may turn out to be, on the Machine's host.
func (f *Facts) HostMayHaveBooted() bool { return slices.ContainsFunc(f.Agents, f.MayBeHost) }

// HostHasBooted reports whether one of the Agents is on the Machine's host, by what is known now. An Agent
// without inventory does not count.
func (f *Facts) HostHasBooted() bool { return slices.ContainsFunc(f.Agents, f.appearsToBeHost) }
