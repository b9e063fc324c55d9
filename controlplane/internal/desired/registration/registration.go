// Package registration builds the objects by which assisted-service registers a cluster: ClusterImageSet, ClusterDeployment and
// AgentClusterInstall. It also decides which changes of them require another registration.
package registration

import (
	"reflect"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// takes is which changes of a field assisted-service applies from the AgentClusterInstall of a registered
// cluster.
type takes int

const (
	takesNothing     takes = iota
	takesAdditions         // a first value
	takesOtherValues       // any value, but no removal
)

// registeredField is a field of an AgentClusterInstall of which assisted-service does not apply every change.
type registeredField struct {
	// name is the field of the control plane's spec that the user changed.
	name  string
	path  []string
	takes takes
	value func(*hiveext.AgentClusterInstallSpec) any
}

// registeredFields are in the order of their reports. Each was observed on the real service (April 2025): see
// checkRegistrations in test/env/assistedservice. The function that updates a cluster there is updateIfNeeded
// in clusterdeployments_controller.go.
var registeredFields = []registeredField{
	// "single-node clusters must have a single control plane node", "there should be 3-5 dedicated control plane nodes".
	{"replicas", []string{"provisionRequirements"}, takesNothing, func(s *hiveext.AgentClusterInstallSpec) any { return singleNode(s) }},
	// assisted-service's own webhook refuses another ClusterImageSet.
	{
		"the release image (config.releaseImage, config.clusterImageSetRef, config.imageRegistryRef or " +
			"openshiftAssistedConfigSpec.cpuArchitecture)",
		[]string{"imageSetRef"},
		takesAdditions,
		func(s *hiveext.AgentClusterInstallSpec) any { return s.ImageSetRef },
	},
	// "User Managed Networking cannot be set with API VIPs". If only one of both lists changes: "must include
	// the same number of apiVIPs (got 0)".
	{"config.apiVIPs", []string{"apiVIPs"}, takesAdditions, func(s *hiveext.AgentClusterInstallSpec) any { return s.APIVIPs }},
	{"config.ingressVIPs", []string{"ingressVIPs"}, takesAdditions, func(s *hiveext.AgentClusterInstallSpec) any { return s.IngressVIPs }},
	{
		"config.machineNetwork",
		[]string{"networking", "machineNetwork"},
		takesOtherValues,
		func(s *hiveext.AgentClusterInstallSpec) any { return s.Networking.MachineNetwork },
	},
	{
		"config.loadBalancer",
		[]string{"loadBalancer"},
		takesOtherValues,
		func(s *hiveext.AgentClusterInstallSpec) any { return s.LoadBalancer },
	},
	// "platform name cannot be changed once set" (a rule of the CRD).
	{
		"config.externalPlatform",
		[]string{"external"},
		takesAdditions,
		func(s *hiveext.AgentClusterInstallSpec) any { return s.ExternalPlatformSpec },
	},
	{
		"config.diskEncryption",
		[]string{"diskEncryption"},
		takesOtherValues,
		func(s *hiveext.AgentClusterInstallSpec) any { return s.DiskEncryption },
	},
	{"config.proxy", []string{"proxy"}, takesOtherValues, func(s *hiveext.AgentClusterInstallSpec) any { return s.Proxy }},
	// Even an addition is applied only together with a change of another field.
	{
		"config.imageRegistryRef",
		[]string{"mirrorRegistryRef"},
		takesNothing,
		func(s *hiveext.AgentClusterInstallSpec) any { return s.MirrorRegistryRef },
	},
}

// ContentOfMirrors stands for a field in the result of RegisterAgainFor.
const ContentOfMirrors = "the content of the ConfigMap that config.imageRegistryRef names"

// singleNode reports whether assisted-service registers a cluster as a single-node cluster, which cannot
// change.
func singleNode(spec *hiveext.AgentClusterInstallSpec) bool {
	return spec.ProvisionRequirements.ControlPlaneAgents == 1 && spec.ProvisionRequirements.WorkerAgents == 0
}

// RegisterAgainFor returns the field of the control plane whose change assisted-service applies only if the
// cluster is registered again; "" if there is none. owns reports whether the control plane provider owns a
// field of the registered AgentClusterInstall: the value of another client cannot be withdrawn.
func RegisterAgainFor(registered, wanted *hiveext.AgentClusterInstall, owns func(path ...string) bool) string {
	for _, field := range registeredFields {
		was, is := field.value(&registered.Spec), field.value(&wanted.Spec)
		if equality.Semantic.DeepEqual(was, is) {
			continue
		}
		switch added, withdrawn := isNone(was), isNone(is); {
		case added && field.takes != takesNothing:
		case !added && !withdrawn && field.takes == takesOtherValues:
		case withdrawn && !owns(slices.Concat([]string{"spec"}, field.path)...):
		default:
			return field.name
		}
	}
	if otherTimeServers(registered, wanted, owns) {
		return "config.ntpSources"
	}
	if assisted.OtherMirrors(
		registered.Annotations[bootstrapv1.MirrorsDigestAnnotation],
		wanted.Annotations[bootstrapv1.MirrorsDigestAnnotation],
	) {
		return ContentOfMirrors
	}
	return ""
}

// otherTimeServers reports whether an AgentClusterInstall gets its first NTP servers, or loses all of them. assisted-service
// ignores a list that is withdrawn (updateIfNeeded in its clusterdeployments_controller.go). A service with a
// time server of its own (NTP_DEFAULT_SERVER) has registered the cluster with it, and refuses a first list (updateNtpSources
// in its bminventory/inventory.go).
func otherTimeServers(registered, wanted *hiveext.AgentClusterInstall, owns func(path ...string) bool) bool {
	const key = assisted.NTPSourcesAnnotation
	if wanted.Annotations[key] != "" {
		return registered.Annotations[key] == ""
	}
	return registered.Annotations[key] != "" && owns("metadata", "annotations", key)
}

func isNone(value any) bool {
	return equality.Semantic.DeepEqual(value, reflect.Zero(reflect.TypeOf(value)).Interface())
}
