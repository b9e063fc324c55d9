// Package facts is what was read for one OpenshiftAssistedConfig in one reconcile, and what follows from it at once. It computes; it has no client.
package facts

import (
	"cmp"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Facts are what was read for one config, each object once. Nothing writes to them afterwards. Objects that do not exist are nil.
type Facts struct {
	// Config is as the cache has it, or as we wrote it last, where the cache is behind.
	Config  *bootstrapv1.OpenshiftAssistedConfig
	Machine *clusterv1.Machine
	Cluster *clusterv1.Cluster
	// InfraMachine is the infrastructure machine, of whatever provider; InfraMachineFailure is why it cannot be read.
	InfraMachine        *unstructured.Unstructured
	InfraMachineFailure error
	Deployment          *hivev1.ClusterDeployment
	Install             *hiveext.AgentClusterInstall
	// ControlPlaneRuns is true when a control-plane Machine of the cluster had a Node, though assisted-service has not begun to install it. It is looked for
	// only then.
	ControlPlaneRuns bool
	// RunningRelease is the release that an installed cluster runs. It is looked for only as long as the discovery image may have to follow it.
	RunningRelease string
	// InfraEnvs are those that serve this config: one, or more after a mishap. Namesake is the InfraEnv that has the Machine's name.
	InfraEnvs []*assisted.InfraEnv
	Namesake  *assisted.InfraEnv
	// NamesakeUnlabelled is true when we made the Namesake, and somebody took the label off by which it is found.
	NamesakeUnlabelled bool
	// NamesakeForeign states, for users, why the Namesake is not that of the config; empty when it is.
	NamesakeForeign string
	// Agents are those that booted from the InfraEnvs, in the order of their names.
	Agents []*aiv1beta1.Agent
	// OthersDeployments are the ClusterDeployments of other clusters to which Agents are bound, where the Machine's Cluster is gone.
	OthersDeployments []string
	// Host is the BareMetalHost behind the infrastructure machine.
	Host *metal3.Host
	// Shared is what other BareMetalHosts of the namespace have in common with the Host; nil: nothing was looked for, as an Agent is approved. All hosts are compared when it is called first.
	Shared func() metal3.SharedIdentity
	// Claimants are, by the name of the Host, or of one of the Hosts that may be given to the Machine, BareMetalHosts of any watched namespace whose server is the same and in use. They are looked
	// for until an Agent is approved; among the Hosts until the data is handed out.
	Claimants map[string][]*metal3.Host
	// TakenHost is the BareMetalHost that the infrastructure machine names as its own, where that one names another consumer.
	TakenHost *metal3.Host
	// Hosts are the BareMetalHosts of the namespace, and Waiting the Metal3Machines there that have none, the oldest first. They are looked for only as long as the
	// Machine has no host. Hosts are nil, and not just empty, where the API of BareMetalHosts is not served.
	Hosts   []*metal3.Host
	Waiting []*unstructured.Unstructured
	// DataSecret is the bootstrap data without its content.
	DataSecret *metav1.PartialObjectMetadata
	// FencingSecret is the Secret with the name of that which holds the credentials of the host's BMC, without its content. It is looked for only where the host is fenced.
	FencingSecret *metav1.PartialObjectMetadata
	// MirrorsDigest is that of the ConfigMap with the mirrors of the InfraEnv; empty: none is named, or it does not exist. It is looked for until the host is installed.
	MirrorsDigest string
	// Networks are the NMStateConfigs that the config selects, in the order of their names.
	Networks []*aiv1beta1.NMStateConfig
}

// Paused reports whether nothing is to be changed.
func (f *Facts) Paused() bool {
	if f.Cluster != nil {
		return annotations.IsPaused(f.Cluster, f.Config)
	}
	return annotations.HasPaused(f.Config)
}

// Deleting reports whether the config is being deleted.
func (f *Facts) Deleting() bool { return !f.Config.DeletionTimestamp.IsZero() }

// Recorded returns a condition as the last report left it; nil when there is none.
func (f *Facts) Recorded(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(f.Config.Status.Conditions, conditionType)
}

// HandedOut is the name of the bootstrap data secret that Cluster API was told; empty when it was told none. The Machine knows it where the status of the
// config was lost: after a move or a restore.
func (f *Facts) HandedOut() string {
	if f.Machine == nil {
		return f.Config.Status.DataSecretName
	}
	return cmp.Or(f.Config.Status.DataSecretName, ptr.Deref(f.Machine.Spec.Bootstrap.DataSecretName, ""))
}

// DataHandedOut reports whether Cluster API was told the name of the bootstrap data secret.
func (f *Facts) DataHandedOut() bool { return f.HandedOut() != "" }

// HasBareMetalHost reports whether a BareMetalHost stands behind the infrastructure machine.
func (f *Facts) HasBareMetalHost() bool {
	return f.InfraMachine != nil && f.InfraMachine.GetKind() == metal3.MachineKind
}

// NeedsHost reports whether the infrastructure machine is a Metal3Machine for which CAPM3 has not chosen a host yet.
func (f *Facts) NeedsHost() bool {
	return f.HasBareMetalHost() && f.Host == nil && f.InfraMachine.GetAnnotations()[metal3.HostAnnotation] == "" && !f.Deleting() && !f.WasInstalled()
}

// HostChosen reports whether the infrastructure provider may have looked at the boot image or data already, so that another would come too
// late. What registers before it was given the data is a stranger, which somebody booted from the image: it tells nothing.
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

// WasInstalled reports whether the Machine's host has been installed before. Then nothing may ever install it again.
func (f *Facts) WasInstalled() bool {
	return f.RecordedInstalled() || f.Machine != nil && metal3.HadNode(f.Machine)
}

// RecordedInstalled reports whether the host was reported as installed.
func (f *Facts) RecordedInstalled() bool {
	condition := f.Recorded(bootstrapv1.HostInstalledCondition)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// HandsOff reports whether the host was installed and is no longer looked after. A Node may be there before assisted-service is done; an approved Agent
// is only looked at.
func (f *Facts) HandsOff() bool {
	return f.WasInstalled() && (f.RecordedInstalled() || f.ApprovedAgent() == nil)
}

// PullSecretName is the config's own, else the cluster's; empty when neither names one.
func (f *Facts) PullSecretName() string {
	if ref := f.Config.Spec.PullSecretRef; ref != nil && ref.Name != "" {
		return ref.Name
	}
	if f.Deployment.Spec.PullSecretRef != nil {
		return f.Deployment.Spec.PullSecretRef.Name
	}
	return ""
}

// HostMayHaveBooted reports whether one of the Agents is, or may turn out to be, the Machine's host.
func (f *Facts) HostMayHaveBooted() bool { return slices.ContainsFunc(f.Agents, f.MayBeHost) }

// HostHasBooted reports whether one of the Agents is the Machine's host, as far as anybody can tell by now. One that has not told its hardware is not.
func (f *Facts) HostHasBooted() bool { return slices.ContainsFunc(f.Agents, f.seemsHost) }
